//! Queues and PodGroups.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use vc_model::{
    ControllerName, NetworkTopology, NodeGroupAffinity, PodGroupCondition, PodGroupRecord,
    QueueRecord, SubGroupPolicy,
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
    if let Some(owners) = owner_references(it) {
        metadata["ownerReferences"] = owners;
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

/// Returns the first owner, and the controller if it may be another one. Returns `None` if there are
/// no owners.
///
/// Of the first owner the kind is known only if it is the controller, and the version never.
fn owner_references(it: &PodGroupRecord) -> Option<Value> {
    let first = it.owner_name.as_deref().map(|name| ControllerName { kind: "Job", name });
    let Some(controller) = it.controller() else {
        return Some(json!([owner_reference(first, first?.name, false)]));
    };
    // A name without a kind is known only of a Volcano Job, from the name of its PodGroup.
    let known = controller.name.filter(|_| first.is_some());
    let is_first = known.is_some_and(|known| first.is_some_and(|it| it.name == known.name));
    let others = first.filter(|_| !is_first).map(|it| owner_reference(Some(it), it.name, false));
    let controlling = owner_reference(known, controller.uid, true);
    Some(others.into_iter().chain([controlling]).collect())
}

/// Returns a reference to an owner. Without a kind and a name only the uid is written.
fn owner_reference(owner: Option<ControllerName<'_>>, uid: &str, is_controller: bool) -> Value {
    let api = owner.map(|it| match it.kind {
        "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet" => "apps/v1",
        _ => "batch.volcano.sh/v1alpha1",
    });
    present_fields([
        ("apiVersion", api.map(Value::from)),
        ("kind", owner.map(|it| it.kind.into())),
        ("name", owner.map(|it| it.name.into())),
        ("uid", Some(uid.into())),
        ("controller", Some(is_controller.into())),
    ])
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

#[cfg(test)]
mod tests {
    use vc_model::ClusterEvent;
    use vc_wire::{Kind, decode};

    use super::*;

    fn record(name: &str, owners: &Value) -> PodGroupRecord {
        let object = json!({
            "metadata": { "namespace": "ml", "name": name, "uid": "1", "ownerReferences": owners },
            "spec": {},
        });
        match decode(Kind::PodGroup, &object).unwrap().event {
            ClusterEvent::PodGroupApplied(record) => *record,
            other => panic!("{other:?}"),
        }
    }

    /// Writes the PodGroup with these owners and returns its owners. Read again they are the same.
    fn written(name: &str, owners: Value) -> Value {
        let read = record(name, &owners);
        let written = pod_group(&read)["metadata"]["ownerReferences"].clone();
        let again = record(name, &written);
        assert_eq!(again.owner_name, read.owner_name, "{owners}");
        assert_eq!(again.controller_uid, read.controller_uid, "{owners}");
        assert_eq!(again.controller(), read.controller(), "{owners}");
        written
    }

    #[test]
    fn ans_107_the_controller_of_a_pod_group_is_written_as_far_as_it_is_known() {
        let owner = |kind: &str, name: &str, uid: &str, controller: bool| {
            let api = if kind == "Job" { "batch.volcano.sh/v1alpha1" } else { "apps/v1" };
            json!({
                "apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": controller,
            })
        };
        assert_eq!(written("g", json!([])), Value::Null);
        let set = json!([owner("ReplicaSet", "web-5d9f7c", "7f", true)]);
        assert_eq!(written("podgroup-7f", set.clone()), set);
        // Of an owner that does not control the PodGroup the kind is not known.
        let alone = json!([owner("ReplicaSet", "web-5d9f7c", "7f", false)]);
        let unknown = json!([owner("Job", "web-5d9f7c", "web-5d9f7c", false)]);
        assert_eq!(written("podgroup-7f", alone), unknown);
        // The controller is the second owner, and only its uid is known.
        let second =
            json!([owner("Job", "flow", "1a", false), owner("StatefulSet", "db", "7f", true)]);
        let by_uid =
            json!([owner("Job", "flow", "flow", false), { "uid": "7f", "controller": true }]);
        assert_eq!(written("podgroup-7f", second), by_uid);
        // An owner without a name counts as none.
        let nameless = json!([{ "uid": "1a" }, owner("Job", "train", "7f", true)]);
        assert_eq!(written("train-7f", nameless), json!([{ "uid": "7f", "controller": true }]));
        // The name of the PodGroup tells of a Volcano Job.
        let second = json!([owner("Job", "flow", "1a", false), owner("Job", "train", "7f", true)]);
        let named = json!([owner("Job", "flow", "flow", false), owner("Job", "train", "7f", true)]);
        assert_eq!(written("train-7f", second), named);
    }

    #[test]
    fn ans_107_a_volcano_job_of_an_earlier_state_is_one_owner() {
        let controller =
            json!([{ "kind": "Job", "name": "train", "uid": "7f", "controller": true }]);
        let mut read = record("train-7f", &controller);
        read.controller_kind = None;
        let written = pod_group(&read)["metadata"]["ownerReferences"].clone();
        assert_eq!(written[0]["name"], "train");
        assert_eq!(written[0]["controller"], true);
        assert_eq!(written.as_array().map(Vec::len), Some(1));
    }
}
