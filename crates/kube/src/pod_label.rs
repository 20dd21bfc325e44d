//! A label of the scheduler's own pod. Specification: answers.md 12 (ANS-83).

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::call::{CallError, call};
use crate::client::Clients;

/// Sets a label of a pod, or removes it.
///
/// # Errors
/// The API server refuses, or does not answer.
pub async fn label_pod(
    clients: &Clients,
    (namespace, name): (&str, &str),
    (label, value): (&str, Option<&str>),
) -> Result<(), CallError> {
    let pods = Api::<Pod>::namespaced(clients.core.clone(), namespace);
    let patch = Patch::Merge(json!({"metadata": {"labels": {label: value}}}));
    call(pods.patch(name, &PatchParams::default(), &patch)).await.map(drop)
}
