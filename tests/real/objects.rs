//! Objects of the tests, and what they say.

use serde_json::{Value, json};

use crate::api::text;

/// On everything that is not in a namespace and must be gone before the next test.
pub(crate) const LABEL: &str = "vc-scheduler.test/temporary";

pub(crate) fn node(name: &str, cpu: &str) -> Value {
    let amounts = json!({"cpu": cpu, "memory": "64Gi", "pods": "110"});
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}})
}

/// A PodGroup and as many pods as it needs.
pub(crate) fn gang(namespace: &str, name: &str, n_pods: u32, cpu: &str) -> Vec<Value> {
    let group = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": n_pods, "queue": "default"}});
    let pod = |index| pod(namespace, &format!("{name}-{index}"), name, cpu);
    [group].into_iter().chain((0..n_pods).map(pod)).collect()
}

fn pod(namespace: &str, name: &str, group: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"gang": group},
            "annotations": {"scheduling.k8s.io/group-name": group}},
        "spec": {"schedulerName": "volcano", "containers": [
            {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]}})
}

pub(crate) fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

pub(crate) fn node_of(pod: &Value) -> &str {
    text(&pod["spec"]["nodeName"])
}

pub(crate) fn phase(object: &Value) -> &str {
    text(&object["status"]["phase"])
}

/// The condition of that type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let list = object["status"]["conditions"].as_array()?;
    list.iter().find(|condition| condition["type"] == kind)
}

/// Why the pod waits, as its condition says: reason and message.
pub(crate) fn refusal(pod: &Value) -> Option<(&str, &str)> {
    let found = condition(pod, "PodScheduled").filter(|found| found["status"] == "False")?;
    Some((text(&found["reason"]), text(&found["message"])))
}
