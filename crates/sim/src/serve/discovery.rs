//! What clients ask before they ask for objects: version, health, groups and the kinds in them.

use std::collections::BTreeMap;

use axum::{body::Body, http::StatusCode, response::Response};
use serde_json::{Value, json};

use super::{
    kinds::{BINDINGS, KINDS, PODS, ServedKind},
    openapi,
    routes::json_response,
};

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The answer for a path that is about the server and not about objects.
pub(super) fn page(path: &str) -> Option<Response> {
    let steps: Vec<&str> = path.trim_matches('/').split('/').collect();
    let answer = match steps.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => return Some(Response::new(Body::from("ok"))),
        ["version"] => version(),
        ["openapi", "v3"] => openapi::index(),
        ["openapi", "v3", path @ ..] => openapi::document(&path.join("/"))?,
        ["api"] => json!({ "kind": "APIVersions", "versions": ["v1"] }),
        ["apis"] => json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups() }),
        ["api", "v1"] => resources("", "v1")?,
        ["apis", group] => groups().into_iter().find(|found| found["name"] == json!(group))?,
        ["apis", group, version] => resources(group, version)?,
        _ => return None,
    };
    Some(json_response(StatusCode::OK, answer.to_string()))
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.0+vcsim", "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "",
        "compiler": "rustc", "platform": "linux/amd64",
    })
}

/// Groups in the order of the table: of two kinds with one plural the first wins in `kubectl`.
fn groups() -> Vec<Value> {
    let mut groups: Vec<&ServedKind> = Vec::new();
    for kind in KINDS.iter().filter(|kind| !kind.group.is_empty()) {
        if groups.iter().all(|known| known.group != kind.group) {
            groups.push(kind);
        }
    }
    groups.into_iter().map(group).collect()
}

fn group(kind: &ServedKind) -> Value {
    let version = json!({ "groupVersion": kind.api_version(), "version": kind.version });
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": kind.group,
        "versions": [version], "preferredVersion": version,
    })
}

fn resources(group: &str, version: &str) -> Option<Value> {
    let kinds: Vec<&ServedKind> =
        KINDS.iter().filter(|kind| kind.group == group && kind.version == version).collect();
    let resources: Vec<Value> = kinds.iter().flat_map(|kind| resource(kind)).collect();
    let group_version = kinds.first()?.api_version();
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
        "resources": resources,
    }))
}

/// A kind and its subresources.
fn resource(kind: &ServedKind) -> Vec<Value> {
    let one = |suffix: &str, kind_name: &str, verbs: &[&str]| {
        json!({
            "name": format!("{}{suffix}", kind.plural), "singularName": "",
            "namespaced": kind.is_namespaced(), "kind": kind_name, "verbs": verbs,
        })
    };
    if *kind == BINDINGS {
        return vec![one("", kind.kind, &["create"])];
    }
    let mut main = one("", kind.kind, &VERBS);
    main["singularName"] = kind.kind.to_lowercase().into();
    main["shortNames"] = json!(kind.short_names);
    if is_in_all(kind) {
        main["categories"] = json!(["all"]);
    }
    let mut all = vec![main];
    if kind.has_status() {
        all.push(one("/status", kind.kind, &["get", "patch", "update"]));
    }
    if *kind == PODS {
        let subresources: BTreeMap<&str, (&str, &str)> = BTreeMap::from([
            ("/binding", ("Binding", "create")),
            ("/eviction", ("Eviction", "create")),
            ("/log", ("Pod", "get")),
        ]);
        for (suffix, (name, verb)) in subresources {
            all.push(one(suffix, name, &[verb]));
        }
    }
    all
}

/// Whether `kubectl get all` shows the kind.
fn is_in_all(kind: &ServedKind) -> bool {
    match kind.group {
        "" => matches!(kind.plural, "pods" | "services" | "replicationcontrollers"),
        group => matches!(group, "apps" | "batch"),
    }
}
