//! POST `pods/NAME/binding`, with the uid, so that the server refuses a pod recreated under the
//! same name. Specification: core.md 7.3 (C-25: only annotations of this cycle), rust-ecosystem.md
//! 5.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Binding, ObjectReference};
use kube::api::ObjectMeta;
use vc_model::ObjectKey;

use crate::call::{CallError, patiently, post};
use crate::direct::DirectClient;

/// Binds the pod to the node; a 429 is waited out.
///
/// # Errors
/// 409: already bound, or another pod of that name; after a time-out the outcome is unknown.
pub(crate) async fn bind(
    way: &DirectClient,
    pod: &ObjectKey,
    uid: &str,
    node: &str,
    annotations: &[(Arc<str>, Arc<str>)],
) -> Result<(), CallError> {
    let binding = body(pod, uid, node, annotations);
    let path = format!("/api/v1/namespaces/{}/pods/{}/binding", pod.namespace, pod.name);
    patiently(|| post(way, &path, &binding)).await
}

fn body(pod: &ObjectKey, uid: &str, node: &str, annotations: &[(Arc<str>, Arc<str>)]) -> Binding {
    let pairs = annotations.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    let annotations: BTreeMap<String, String> = pairs.collect();
    Binding {
        metadata: ObjectMeta {
            name: Some(pod.name.to_string()),
            namespace: Some(pod.namespace.to_string()),
            uid: Some(uid.into()),
            annotations: (!annotations.is_empty()).then_some(annotations),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Node".into()),
            name: Some(node.into()),
            ..ObjectReference::default()
        },
    }
}
