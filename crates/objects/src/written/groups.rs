//! Queues and PodGroups.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use vc_model::{
    NetworkTopology, NodeGroupAffinity, PodGroupCondition, PodGroupRecord, QueueRecord,
    SubGroupPolicy,
};

use super::terms::label_selector;
use super::{amounts, listed, named, nonempty, object, present_fields, set_identity, texts};

const API: &str = "scheduling.volcano.sh/v1beta1";

pub(super) fn queue(it: &QueueRecord) -> Value {
    let mut queue = object(API, "Queue", ("", &it.name));
    set_identity(&mut queue, &it.uid, it.created_micros);
    if let Some(annotations) = named(&it.annotations) {
        queue["metadata"]["annotations"] = annotations;
    }
    queue["spec"] = present_fields([
        ("weight", Some(it.weight.into())),
        ("priority", (it.priority != 0).then(|| it.priority.into())),
        ("reclaimable", Some(it.reclaimable.into())),
        ("capability", amounts(&it.capability)),
        ("deserved", amounts(&it.deserved)),
        ("guarantee", amounts(&it.guarantee).map(|amounts| json!({ "resource": amounts }))),
        ("parent", nonempty(&it.parent)),
        ("dequeueStrategy", it.fifo.then(|| "fifo".into())),
        ("affinity", it.node_group_affinity.as_ref().map(node_groups)),
    ]);
    queue["status"] = present_fields([
        ("state", Some(it.state.as_str().into())),
        ("allocated", amounts(&it.status_allocated)),
    ]);
    queue
}

fn node_groups(it: &NodeGroupAffinity) -> Value {
    let both = |required: &[Arc<str>], preferred: &[Arc<str>]| {
        let written = present_fields([
            ("requiredDuringSchedulingIgnoredDuringExecution", texts(required)),
            ("preferredDuringSchedulingIgnoredDuringExecution", texts(preferred)),
        ]);
        (written != json!({})).then_some(written)
    };
    present_fields([
        ("nodeGroupAffinity", both(&it.required, &it.preferred)),
        ("nodeGroupAntiAffinity", both(&it.anti_required, &it.anti_preferred)),
    ])
}

pub(super) fn pod_group(it: &PodGroupRecord) -> Value {
    let mut group = object(API, "PodGroup", (&it.key.namespace, &it.key.name));
    set_identity(&mut group, &it.uid, it.created_micros);
    let metadata = &mut group["metadata"];
    if let Some(labels) = named(&it.labels) {
        metadata["labels"] = labels;
    }
    if let Some(annotations) = named(&it.annotations) {
        metadata["annotations"] = annotations;
    }
    if let Some(owner) = &it.owner_name {
        // The version of the owner is not known, and its kind only if it controls the PodGroup.
        let kind = it.controller_kind.as_deref().unwrap_or("Job");
        let api = match kind {
            "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet" => "apps/v1",
            _ => "batch.volcano.sh/v1alpha1",
        };
        metadata["ownerReferences"] = json!([{
            "apiVersion": api, "kind": kind, "name": &**owner,
            "uid": it.controller_uid.as_deref().unwrap_or(owner),
            "controller": it.controller_uid.is_some(),
        }]);
    }
    let roles: Map<String, Value> =
        it.min_task_member.iter().map(|(role, n)| (role.to_string(), (*n).into())).collect();
    group["spec"] = present_fields([
        ("minMember", Some(it.min_member.into())),
        ("minTaskMember", (!roles.is_empty()).then(|| roles.into())),
        ("queue", nonempty(&it.queue)),
        ("priorityClassName", nonempty(&it.priority_class_name)),
        ("minResources", it.min_resources.as_ref().map(|list| amounts(list).unwrap_or(json!({})))),
        ("networkTopology", it.network_topology.as_ref().map(topology)),
        ("subGroupPolicy", listed(&it.sub_group_policies, policy)),
    ]);
    let status = &it.status;
    let count = |n: i32| (n != 0).then(|| n.into());
    group["status"] = present_fields([
        ("phase", (!status.is_phase_empty).then(|| status.phase.as_str().into())),
        ("conditions", listed(&status.conditions, condition)),
        ("running", count(status.running)),
        ("succeeded", count(status.succeeded)),
        ("failed", count(status.failed)),
    ]);
    group
}

fn topology(it: &NetworkTopology) -> Value {
    present_fields([
        ("mode", Some(if it.soft { "soft" } else { "hard" }.into())),
        ("highestTierAllowed", it.highest_tier_allowed.map(Value::from)),
        ("highestTierName", nonempty(&it.highest_tier_name)),
    ])
}

fn policy(it: &SubGroupPolicy) -> Value {
    present_fields([
        ("name", Some((&*it.name).into())),
        ("networkTopology", it.network_topology.as_ref().map(topology)),
        ("subGroupSize", it.sub_group_size.map(Value::from)),
        ("minSubGroups", (it.min_sub_groups != 0).then(|| it.min_sub_groups.into())),
        ("labelSelector", it.label_selector.as_ref().map(label_selector)),
        ("matchLabelKeys", texts(&it.match_label_keys)),
    ])
}

fn condition(it: &PodGroupCondition) -> Value {
    present_fields([
        ("type", Some((&*it.kind).into())),
        ("status", Some((&*it.status).into())),
        ("transitionID", nonempty(&it.transition_id)),
        ("lastTransitionTime", nonempty(&it.last_transition_time)),
        ("reason", nonempty(&it.reason)),
        ("message", nonempty(&it.message)),
    ])
}
