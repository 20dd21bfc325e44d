//! As much OpenAPI as `kubectl apply` and `create` want to see before they send anything: each kind
//! takes the parameter `fieldValidation`, so they leave validation to the server. There are no
//! schemas; strategic merge patch is not named here, so `kubectl` makes it by its own types.

use serde_json::{Map, Value, json};

use super::kinds::{KINDS, ServedKind};

/// `/openapi/v3`: where the document of each group version is.
pub(super) fn index() -> Value {
    let entry = |kind: &ServedKind| {
        let path = path_of(kind);
        (path.clone(), json!({ "serverRelativeURL": format!("/openapi/v3/{path}?hash=vcsim") }))
    };
    let paths: Map<String, Value> = KINDS.iter().map(entry).collect();
    json!({ "paths": paths })
}

/// `/openapi/v3/<path of a group version>`; absent when it is not served.
pub(super) fn document(path: &str) -> Option<Value> {
    let kinds: Vec<&ServedKind> = KINDS.iter().filter(|kind| path_of(kind) == path).collect();
    if kinds.is_empty() {
        return None;
    }
    let item = |kind: &&ServedKind| {
        let namespace = if kind.is_namespaced() { "namespaces/{namespace}/" } else { "" };
        (format!("/{path}/{namespace}{}/{{name}}", kind.plural), json!({ "patch": patch(kind) }))
    };
    let paths: Map<String, Value> = kinds.iter().map(item).collect();
    Some(json!({
        "openapi": "3.0.0", "info": { "title": "vcsim", "version": "v1.36.0" }, "paths": paths,
    }))
}

fn path_of(kind: &ServedKind) -> String {
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    format!("{root}/{}", kind.api_version())
}

fn patch(kind: &ServedKind) -> Value {
    json!({
        "parameters": [{
            "name": "fieldValidation", "in": "query",
            "schema": { "type": "string", "uniqueItems": true },
        }],
        "requestBody": { "content": { "application/merge-patch+json": {} } },
        "responses": { "200": { "description": "OK" } },
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {
            "group": kind.group, "version": kind.version, "kind": kind.kind,
        },
    })
}
