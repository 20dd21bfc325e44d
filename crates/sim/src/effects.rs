//! What the API server would store for each effect of the scheduler. Specification: core.md 7.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use vc_engine::{Effect, Nomination};
use vc_model::{PodGroupStatus, QUEUE_GATE};
use vc_wire::{Kind, format_time};

use crate::simulation::Id;
use vc_objects::field::object_mut;

/// Grace period in seconds of a pod that states none, as the API server has it.
const DEFAULT_GRACE_SECONDS: i64 = 30;
/// Longest grace period in seconds that is simulated: a year.
const MOST_GRACE_SECONDS: i64 = 365 * 86_400;

/// The object that an effect changes.
pub(crate) fn target(effect: &Effect) -> Option<Id> {
    let (kind, key) = match effect {
        Effect::Bind { pod, .. }
        | Effect::Resync { pod, .. }
        | Effect::Evict { pod, .. }
        | Effect::PodCondition { pod, .. }
        | Effect::ClearNomination { pod, .. }
        | Effect::RemoveGate { pod, .. } => (Kind::Pod, pod),
        Effect::PodGroupStatus { pod_group, .. } => (Kind::PodGroup, pod_group),
        Effect::QueueStatus { queue, .. }
        | Effect::QueueAnnotation { queue, .. }
        | Effect::CreateQueue { queue, .. } => {
            return Some((Kind::Queue, String::new(), queue.to_string()));
        }
        Effect::NodeShardStatus { shard, .. } => {
            return Some((Kind::NodeShard, String::new(), shard.to_string()));
        }
        Effect::DeallocateClaim { claim, .. } => (Kind::ResourceClaim, claim),
        // Of several objects: the simulation changes them. It keeps no usage.
        Effect::PreBind { .. }
        | Effect::UnreserveClaims { .. }
        | Effect::SaveUsage { .. }
        | Effect::Event { .. } => return None,
    };
    Some((kind, key.namespace.to_string(), key.name.to_string()))
}

/// Changes the object.
pub(crate) fn apply(effect: &Effect, object: &mut Value, now_micros: i64) {
    match effect {
        Effect::Bind { node, annotations, .. } => bind(object, node, annotations),
        Effect::Evict { .. } => evict(object, now_micros),
        Effect::PodCondition { condition, nomination, .. } => {
            set_condition(
                object,
                json!({
                    "type": "PodScheduled", "status": "False",
                    "reason": *condition.reason, "message": *condition.message,
                }),
            );
            nominate(object, nomination);
        }
        Effect::ClearNomination { .. } => nominate(object, &Nomination::Clear),
        Effect::PodGroupStatus { status, .. } => set_pod_group_status(object, status),
        Effect::QueueStatus { allocated, .. } => {
            let list: Map<String, Value> = allocated
                .iter()
                .map(|(name, quantity)| (name.clone(), Value::from(quantity.as_str())))
                .collect();
            if let Some(status) = object_mut(object, &["status"]) {
                status.insert("allocated".to_owned(), Value::Object(list));
            }
        }
        Effect::QueueAnnotation { key, value, .. } => {
            if let Some(map) = object_mut(object, &["metadata", "annotations"]) {
                map.insert((*key).to_owned(), value.as_str().into());
            }
        }
        Effect::NodeShardStatus { nodes_in_use, nodes_to_remove, nodes_to_add, .. } => {
            let Some(status) = object_mut(object, &["status"]) else { return };
            for (name, nodes) in [
                ("nodesInUse", nodes_in_use),
                ("nodesToRemove", nodes_to_remove),
                ("nodesToAdd", nodes_to_add),
            ] {
                status.insert(name.to_owned(), nodes.iter().map(text).collect());
            }
        }
        Effect::RemoveGate { .. } => {
            let gates = object.pointer_mut("/spec/schedulingGates").and_then(Value::as_array_mut);
            if let Some(gates) = gates {
                gates.retain(|gate| gate["name"] != QUEUE_GATE);
            }
        }
        Effect::DeallocateClaim { allocation, consumer, .. } => {
            vc_wire::deallocate_claim(object, allocation, consumer);
        }
        Effect::PreBind { .. }
        | Effect::UnreserveClaims { .. }
        | Effect::Resync { .. }
        | Effect::CreateQueue { .. }
        | Effect::SaveUsage { .. }
        | Effect::Event { .. } => {}
    }
}

fn bind(pod: &mut Value, node: &str, annotations: &[(Arc<str>, Arc<str>)]) {
    if let Some(spec) = object_mut(pod, &["spec"]) {
        spec.insert("nodeName".to_owned(), node.into());
    }
    if !annotations.is_empty()
        && let Some(map) = object_mut(pod, &["metadata", "annotations"])
    {
        map.extend(annotations.iter().map(|(key, value)| (text(key), Value::from(text(value)))));
    }
    set_condition(pod, json!({ "type": "PodScheduled", "status": "True" }));
}

/// Marks a pod as the API server does: it is to be gone when its grace period ends.
fn evict(pod: &mut Value, now_micros: i64) {
    let grace = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let grace = grace.unwrap_or(DEFAULT_GRACE_SECONDS).clamp(0, MOST_GRACE_SECONDS);
    let end_micros = now_micros.saturating_add(grace * 1_000_000);
    if let Some(metadata) = object_mut(pod, &["metadata"]) {
        metadata.insert("deletionTimestamp".to_owned(), format_time(end_micros).into());
    }
    let reason = "PreemptionByScheduler";
    let condition = json!({ "type": "DisruptionTarget", "status": "True", "reason": reason });
    set_condition(pod, condition);
}

fn text(part: &Arc<str>) -> String {
    part.to_string()
}

fn nominate(pod: &mut Value, nomination: &Nomination) {
    let Some(status) = object_mut(pod, &["status"]) else {
        return;
    };
    match nomination {
        Nomination::Keep => {}
        Nomination::Set(node) => {
            status.insert("nominatedNodeName".to_owned(), (**node).into());
        }
        Nomination::Clear => {
            status.remove("nominatedNodeName");
        }
    }
}

/// Replaces the condition of the same type, or appends it.
fn set_condition(object: &mut Value, condition: Value) {
    let Some(status) = object_mut(object, &["status"]) else {
        return;
    };
    let conditions = status.entry("conditions").or_insert(Value::Null);
    if conditions.is_null() {
        *conditions = json!([]);
    }
    if let Some(list) = conditions.as_array_mut() {
        match list.iter_mut().find(|old| old["type"] == condition["type"]) {
            Some(old) => *old = condition,
            None => list.push(condition),
        }
    }
}

fn set_pod_group_status(group: &mut Value, status: &PodGroupStatus) {
    let condition = |condition: &vc_model::PodGroupCondition| {
        json!({
            "type": *condition.kind, "status": *condition.status,
            "transitionID": *condition.transition_id,
            "lastTransitionTime": *condition.last_transition_time,
            "reason": *condition.reason, "message": *condition.message,
        })
    };
    let conditions: Vec<Value> = status.conditions.iter().map(condition).collect();
    if let Some(fields) = object_mut(group, &["status"]) {
        fields.insert("phase".to_owned(), status.phase.as_str().into());
        fields.insert("conditions".to_owned(), conditions.into());
        for (name, count) in [
            ("running", status.running),
            ("succeeded", status.succeeded),
            ("failed", status.failed),
        ] {
            fields.insert(name.to_owned(), count.into());
        }
    }
}
