//! Objects of Kubernetes in requests to the service of `extender`: the fields that the tables keep.

use serde_json::{Map, Value, json};
use vc_model::{
    Class, Cluster, Labels, Node, Queue, Taint, TaintEffect, Task, TaskStatus, Toleration,
    TolerationOperator,
};
use vc_resource::{Dim, Resource};

use crate::format_time;

/// Name of the container that stands for all containers of a pod.
const ALL_CONTAINERS: &str = "all";

/// Returns the annotations of a pod that the tables keep: those about shared devices.
pub(super) fn annotations(task: &Task, class: &Class) -> Labels {
    let demand = class.device_demand.iter().flat_map(|demand| &demand.annotations);
    let devices = task.devices.iter().flat_map(|devices| devices.iter());
    demand.chain(devices).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Returns a pod. Its containers are one, which requests what the pod requests.
pub(super) fn pod(
    cluster: &Cluster,
    task: &Task,
    class: &Class,
    node: &str,
    annotations: &Labels,
) -> Value {
    let mut request = class.request.clone();
    request.remove(Dim::PODS);
    let phase = match task.status {
        TaskStatus::Running => "Running",
        TaskStatus::Succeeded => "Succeeded",
        TaskStatus::Failed => "Failed",
        TaskStatus::Unknown => "Unknown",
        _ => "Pending",
    };
    let gates = task.gate_names.iter().flat_map(|names| names.split(", "));
    let gates: Vec<Value> = gates.map(|name| json!({"name": name})).collect();
    let container = json!({
        "name": ALL_CONTAINERS,
        "image": class.images.first().map_or("", |image| &**image),
        "resources": {"requests": quantities(cluster, &request)},
    });
    json!({
        "metadata": {
            "name": task.key.name,
            "namespace": task.key.namespace,
            "uid": task.uid,
            "labels": class.labels,
            "annotations": annotations,
            "creationTimestamp": format_time(task.created_micros),
        },
        "spec": {
            "containers": [container],
            "nodeName": node,
            "nodeSelector": class.node_selector,
            "tolerations": class.tolerations.iter().map(toleration).collect::<Vec<_>>(),
            "priority": task.pod_priority,
            "priorityClassName": task.priority_class_name,
            "preemptionPolicy": never_or_lower(task.never_preempts),
            "schedulingGates": gates,
        },
        "status": {"phase": phase},
    })
}

fn never_or_lower(never_preempts: bool) -> &'static str {
    if never_preempts { "Never" } else { "PreemptLowerPriority" }
}

/// Returns a node.
pub(super) fn node(cluster: &Cluster, node: &Node) -> Value {
    let annotations = node.devices.as_deref().cloned().unwrap_or_default();
    json!({
        "metadata": {"name": node.name, "labels": node.labels, "annotations": annotations},
        "spec": {
            "unschedulable": node.unschedulable,
            "taints": node.taints.iter().map(taint).collect::<Vec<_>>(),
        },
        "status": {
            "capacity": quantities(cluster, &node.capacity),
            "allocatable": quantities(cluster, &node.allocatable),
        },
    })
}

/// Returns a queue.
pub(super) fn queue(cluster: &Cluster, queue: &Queue) -> Value {
    json!({
        "metadata": {
            "name": queue.name,
            "uid": queue.uid,
            "annotations": queue.annotations,
            "creationTimestamp": format_time(queue.created_micros),
        },
        "spec": {
            "weight": queue.weight,
            "priority": queue.priority,
            "parent": queue.parent,
            "reclaimable": queue.reclaimable,
            "capability": quantities(cluster, &queue.capability),
            "deserved": quantities(cluster, &queue.deserved),
            "guarantee": {"resource": quantities(cluster, &queue.guarantee)},
        },
        "status": {"state": queue.state.as_str()},
    })
}

/// Returns amounts as a resource list.
pub(super) fn quantities(cluster: &Cluster, amounts: &Resource) -> Value {
    let list = amounts.to_quantities(&cluster.dims);
    Value::Object(list.into_iter().map(|(name, text)| (name, text.into())).collect::<Map<_, _>>())
}

fn toleration(toleration: &Toleration) -> Value {
    let operator = match toleration.operator {
        TolerationOperator::Equal => "Equal",
        TolerationOperator::Exists => "Exists",
        TolerationOperator::Other => "",
    };
    json!({
        "key": toleration.key,
        "operator": operator,
        "value": toleration.value,
        "effect": toleration.effect.map_or("", effect),
    })
}

fn taint(taint: &Taint) -> Value {
    json!({"key": taint.key, "value": taint.value, "effect": effect(taint.effect)})
}

fn effect(effect: TaintEffect) -> &'static str {
    match effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
        TaintEffect::Unknown => "",
    }
}
