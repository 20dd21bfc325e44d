//! PodGroups of pods that have none: Volcano's PodGroup controller makes `podgroup-<uid>` for the
//! controller of a pod, or for the pod itself. Specification: core.md 4.2.

use serde_json::{Map, Value, json};

use super::context::{WorkloadContext, controller_uid};
use super::request::RequestTotal;
use super::{GROUP_NAME, SCHEDULER};
use crate::field::{object_mut, text};

/// An annotation of a controller that sets `minMember` of the PodGroup of its pods.
const MIN_MEMBER: &str = "scheduling.volcano.sh/group-min-member";
/// An annotation of a pod that names the queue of its PodGroup.
const QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";
/// Annotations and labels of this prefix go over to the PodGroup.
const INHERITED: &str = "volcano.sh/";

/// Puts one of our pods without a PodGroup into one, and returns the PodGroup if it is a new one.
pub fn join_group(
    pod: &mut Value,
    owner: Option<&Value>,
    context: &WorkloadContext,
) -> Option<Value> {
    let is_ours = text(pod, "/spec/schedulerName") == SCHEDULER;
    if !is_ours || pod["metadata"]["annotations"][GROUP_NAME].is_string() {
        return None;
    }
    let uid = controller_uid(pod).unwrap_or(text(pod, "/metadata/uid"));
    let name = format!("podgroup-{uid}");
    let namespace = text(pod, "/metadata/namespace");
    let is_new = !context.has_pod_group(namespace, &name);
    let group = is_new.then(|| group(pod, owner, &name));
    object_mut(pod, &["metadata", "annotations"])?.insert(GROUP_NAME.to_owned(), name.into());
    group
}

fn group(pod: &Value, owner: Option<&Value>, name: &str) -> Value {
    let none = Value::Null;
    let of_owner = &owner.unwrap_or(&none)["metadata"]["annotations"];
    let min_member = of_owner[MIN_MEMBER].as_str().and_then(|text| text.parse::<i32>().ok());
    let min_member = min_member.filter(|&count| 0 <= count).unwrap_or(1);
    let mut total = RequestTotal::default();
    total.add(pod, i64::from(min_member));
    let annotations = &pod["metadata"]["annotations"];
    let mut inherited = inherited(of_owner);
    inherited.extend(self::inherited(annotations));
    let mut group = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {
            "name": name, "namespace": pod["metadata"]["namespace"],
            "annotations": inherited, "labels": self::inherited(&pod["metadata"]["labels"]),
            "ownerReferences": pod["metadata"]["ownerReferences"],
        },
        "spec": { "minMember": min_member, "minResources": total.to_json() },
        "status": { "phase": "Pending" },
    });
    if let Some(queue) = annotations[QUEUE_NAME].as_str() {
        group["spec"]["queue"] = queue.into();
    }
    if let Some(class) = pod["spec"]["priorityClassName"].as_str() {
        group["spec"]["priorityClassName"] = class.into();
    }
    group
}

fn inherited(entries: &Value) -> Map<String, Value> {
    let entries = entries.as_object().into_iter().flatten();
    let kept = entries.filter(|(key, _)| key.starts_with(INHERITED));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}
