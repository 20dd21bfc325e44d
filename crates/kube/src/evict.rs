//! An eviction: conditions on the pod, then DELETE with its uid; there is no right on `eviction`.
//! Specification: core.md 7.2 (C-24), rust-ecosystem.md 5.4.

use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Preconditions};
use serde_json::{Value, json};
use vc_engine::{EvictReason, evict_message};
use vc_model::ObjectKey;

use crate::call::{CallError, call, pods};
use crate::status::{change_pod, now, upsert};

/// What the pod and its PodGroup are told (core.md 7.2; for quota cohort.md B.8).
pub(crate) struct EvictTexts {
    pub(crate) of_pod: String,
    pub(crate) of_group: String,
    pub(crate) of_condition: String,
}

impl EvictTexts {
    pub(crate) fn new(
        reason: EvictReason,
        pod_group: Option<&ObjectKey>,
        message: Option<&str>,
    ) -> Self {
        match message {
            Some(message) => {
                let of_pod = format!("Pod is evicted, because of {message}");
                Self { of_condition: of_pod.clone(), of_pod, of_group: message.to_owned() }
            }
            None => Self {
                of_pod: evict_message(reason, pod_group),
                of_group: reason.as_str().to_owned(),
                of_condition: evict_message(reason, None),
            },
        }
    }
}

/// Writes the conditions, then deletes whatever came of that. A pod that is gone already is a
/// success.
///
/// # Errors
/// The first step that failed; the pod is looked at again then.
pub(crate) async fn evict(
    client: &Client,
    pod: &ObjectKey,
    uid: &str,
    message: &str,
) -> Result<(), CallError> {
    let marked = change_pod(client, pod, uid, |object| mark(object, message)).await;
    delete(client, pod, uid).await?;
    marked.map(drop)
}

/// False: both conditions are there already, and only the DELETE is missing (C-24).
fn mark(pod: &mut DynamicObject, message: &str) -> bool {
    let scheduler = pod.data["spec"]["schedulerName"].as_str().unwrap_or_default().to_owned();
    let ready = json!({"type": "Ready", "status": "False", "reason": "Evict",
        "message": message, "lastTransitionTime": now()});
    let target = json!({"type": "DisruptionTarget", "status": "True",
        "reason": "PreemptionByScheduler",
        "message": format!("{scheduler}: preempting to accommodate a higher priority pod"),
        "lastTransitionTime": now()});
    let conditions: &mut Value = &mut pod.data["status"]["conditions"];
    // Not `||`: both have to be written.
    upsert(conditions, ready) | upsert(conditions, target)
}

async fn delete(client: &Client, pod: &ObjectKey, uid: &str) -> Result<(), CallError> {
    let preconditions = Preconditions { uid: Some(uid.into()), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match call(pods(client, &pod.namespace).delete(&pod.name, &params)).await {
        Err(error) if error.is_not_found() => Ok(()),
        answer => answer.map(drop),
    }
}
