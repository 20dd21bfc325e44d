//! Why a pod waits that no session has looked at. Specification: core.md 4.2, 4.8, C-20, C-21.

use serde_json::Value;
use vc_model::ClusterEvent;
use vc_wire::Kind;

use super::result::group_of;
use crate::simulation::Simulation;
use vc_objects::field::text;
use vc_objects::workload::SCHEDULER;

/// Whether a pod is ours and has no node yet.
pub(super) fn waits(pod: &Value) -> bool {
    text(pod, "/spec/schedulerName") == SCHEDULER
        && text(pod, "/spec/nodeName").is_empty()
        && text(pod, "/metadata/deletionTimestamp").is_empty()
        && matches!(text(pod, "/status/phase"), "" | "Pending")
}

/// The reason in one line.
pub(super) fn of(pod: &Value, simulation: &Simulation) -> String {
    if let Ok(decoded) = vc_wire::decode(Kind::Pod, pod)
        && let ClusterEvent::PodApplied(record) = decoded.event
    {
        if let Some(problem) = record.invalid {
            return problem.to_string();
        }
        if !record.scheduling_gates.is_empty() {
            let gates: Vec<&str> = record.scheduling_gates.iter().map(|gate| &**gate).collect();
            return format!("scheduling is gated: {}", gates.join(", "));
        }
    }
    let name = group_of(pod);
    let Some((namespace, group)) = name.split_once('/') else {
        return "the pod is in no PodGroup".to_owned();
    };
    let Some(group) = simulation.object(Kind::PodGroup, namespace, group) else {
        return format!("PodGroup {name} does not exist");
    };
    let queue = match text(&group, "/spec/queue") {
        "" => "default",
        queue => queue,
    };
    if simulation.object(Kind::Queue, "", queue).is_none() {
        return format!("queue {queue} does not exist");
    }
    let conditions = group.pointer("/status/conditions").and_then(Value::as_array);
    let unschedulable = conditions.into_iter().flatten().find(|one| one["type"] == "Unschedulable");
    match unschedulable.map_or("", |condition| text(condition, "/message")) {
        "" => format!("PodGroup {name} is {}", phase(&group)),
        message => message.to_owned(),
    }
}

fn phase(group: &Value) -> &str {
    match text(group, "/status/phase") {
        "" => "Pending",
        phase => phase,
    }
}
