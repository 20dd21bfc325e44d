//! The documents by which clients of Kubernetes find the group.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::access::GROUP;
use crate::routes::{BASE, ROUTES, Route};

/// Returns paths and documents.
pub(crate) fn documents() -> [(&'static str, Value); 3] {
    let version = json!({"groupVersion": format!("{GROUP}/v1"), "version": "v1"});
    let group = json!({
        "name": GROUP,
        "versions": [version],
        "preferredVersion": version,
    });
    let mut one = group.clone();
    one["kind"] = "APIGroup".into();
    one["apiVersion"] = "v1".into();
    let groups = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]});
    [("/apis", groups), ("/apis/answers.volcano.sh", one), (BASE, resources())]
}

/// Returns the kind of the objects of a resource, by the first route that has it.
fn kind(route: &Route) -> &'static str {
    match route.resource {
        // What is created, not what is answered.
        "whatifs" => "WhatIf",
        _ => route.schema.trim_end_matches("List"),
    }
}

/// Returns the resources with their verbs.
fn resources() -> Value {
    let mut rows: BTreeMap<&str, (bool, Vec<&str>, &str)> = BTreeMap::new();
    for route in ROUTES {
        let row = rows.entry(route.resource).or_insert((false, Vec::new(), kind(route)));
        row.0 |= route.path.contains("{namespace}");
        if !row.1.contains(&route.verb) {
            row.1.push(route.verb);
        }
    }
    let rows = rows.into_iter().map(|(name, (namespaced, verbs, kind))| {
        let singular = kind.to_lowercase();
        json!({"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind,
            "verbs": verbs})
    });
    let rows: Vec<Value> = rows.collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/v1"),
        "resources": rows})
}
