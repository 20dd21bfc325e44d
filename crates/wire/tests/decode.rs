//! Objects to events, whole and malformed (rust-ecosystem.md, test cases 4-6; core.md 3.2-3.9).

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use vc_model::{
    ClusterEvent, NodeRecord, NodeShardRecord, PodGroupRecord, PodPhase, PodRecord, QueueRecord,
};
use vc_model::{Operator, QueueState, TaintEffect, TolerationOperator};
use vc_wire::{Kind, WireError, decode, decode_deleted, kind_of};

fn pod(object: &Value) -> (PodRecord, Vec<String>) {
    let decoded = decode(Kind::Pod, object).unwrap();
    let ClusterEvent::PodApplied(pod) = decoded.event else { panic!("not a pod") };
    (*pod, decoded.problems)
}

fn node(object: &Value) -> NodeRecord {
    let ClusterEvent::NodeApplied(node) = decode(Kind::Node, object).unwrap().event else {
        panic!("not a node")
    };
    *node
}

fn pod_group(object: &Value) -> Result<PodGroupRecord, WireError> {
    decode(Kind::PodGroup, object).map(|decoded| match decoded.event {
        ClusterEvent::PodGroupApplied(record) => *record,
        _ => panic!("not a podgroup"),
    })
}

fn queue(object: &Value) -> QueueRecord {
    let ClusterEvent::QueueApplied(queue) = decode(Kind::Queue, object).unwrap().event else {
        panic!("not a queue")
    };
    *queue
}

fn bare_pod(spec: Value) -> Value {
    json!({"metadata": {"name": "p1", "namespace": "c1", "uid": "u1"}, "spec": spec})
}

#[test]
fn a_pod_with_everything_that_is_read() {
    let (pod, problems) = pod(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "p1", "namespace": "c1", "uid": "u1", "resourceVersion": "7",
            "creationTimestamp": "1970-01-01T00:00:01Z",
            "deletionTimestamp": "1970-01-01T00:00:02Z", "labels": {"a": "b"},
            "annotations": {"scheduling.k8s.io/group-name": "pg", "unread": "x"},
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {
            "schedulerName": "volcano", "nodeName": "n1", "priority": 5,
            "priorityClassName": "high", "preemptionPolicy": "Never", "unknown": {"x": [1]},
            "nodeSelector": {}, "overhead": {"cpu": "10m"},
            "resources": {"requests": {"cpu": 4}, "limits": {"memory": "2Gi"}},
            "schedulingGates": [{"name": "g"}],
            "containers": [{
                "name": "main", "image": "busybox",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": 2}},
                "ports": [{"containerPort": 80}, {"hostPort": 8080}, {"hostPort": 53,
                    "protocol": "UDP", "hostIP": "10.0.0.1"}],
            }],
            "initContainers": [{"name": "side", "restartPolicy": "Always"}],
            "tolerations": [{"operator": "Exists"}, {"key": "k", "effect": "NoExecute"}],
            "affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "z", "operator": "In", "values": ["a"]}]}]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference":
                    {"matchFields": [{"key": "metadata.name", "operator": "Gt"}]}}],
            }},
        },
        "status": {
            "phase": "Running", "nominatedNodeName": "n2",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "r", "message": "m"},
                {"type": "DisruptionTarget", "reason": "PreemptionByScheduler"},
                {"type": "PodResizePending", "reason": "Infeasible"},
            ],
            "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "2"}},
                "allocatedResources": {"cpu": "3"}}, {"name": "other"}],
        },
    }));
    assert_eq!(problems, [] as [&str; 0]);
    assert_eq!(
        (pod.key.to_string(), &*pod.uid, pod.created_micros),
        ("c1/p1".into(), "u1", 1_000_000)
    );
    assert!(pod.deleting && pod.never_preempts && pod.invalid.is_none());
    assert_eq!(pod.deletion_micros, Some(2_000_000));
    assert!(pod.resize_infeasible && pod.evicted_by_scheduler);
    assert_eq!(pod.annotations.len(), 1);
    assert_eq!(pod.phase, PodPhase::Running);
    assert_eq!((pod.node_name.as_deref(), pod.nominated_node.as_deref()), (Some("n1"), Some("n2")));
    assert_eq!(pod.node_selector, Some(Default::default()));
    let main = &pod.containers[0];
    assert_eq!(main.requests[0].1.milli(), 1000);
    assert_eq!((&*main.limits[0].0, main.limits[0].1.milli()), ("cpu", 2000));
    assert_eq!((&*pod.pod_limits[0].0, pod.pod_limits[0].1.value()), ("memory", 2 << 30));
    let ports: Vec<_> = main.host_ports.iter().map(|port| (port.port, &*port.ip)).collect();
    assert_eq!(ports, [(8080, "0.0.0.0"), (53, "10.0.0.1")]);
    assert_eq!(main.in_place.as_ref().unwrap().allocated[0].1.milli(), 3000);
    assert!(pod.init_containers[0].restartable);
    assert_eq!(pod.pod_requests[0].1.milli(), 4000);
    assert_eq!(pod.tolerations[0].operator, TolerationOperator::Exists);
    assert_eq!(pod.tolerations[1].effect, Some(TaintEffect::NoExecute));
    let affinity = &pod.node_affinity;
    assert_eq!(affinity.required.as_ref().unwrap()[0].match_expressions[0].operator, Operator::In);
    assert_eq!(affinity.preferred[0].term.match_fields[0].operator, Operator::Gt);
    assert_eq!(&*pod.scheduled_condition.unwrap().message, "m");
}

/// Case 5: `null` means absent everywhere.
#[test]
fn ecosystem_05_nulls_are_absent() {
    let (pod, problems) = pod(&json!({
        "metadata": {"name": "p1", "namespace": "c1", "uid": "u1", "labels": null,
            "annotations": null, "creationTimestamp": null, "deletionTimestamp": null},
        "spec": {"nodeSelector": null, "containers": [{"name": "x", "resources": null,
            "ports": null}], "initContainers": null, "affinity": null, "tolerations": null},
        "status": null,
    }));
    assert_eq!(problems, [] as [&str; 0]);
    assert!(!pod.deleting && pod.node_selector.is_none() && pod.labels.is_empty());
    assert_eq!(pod.deletion_micros, None);
    assert_eq!(pod.phase, PodPhase::Pending);
}

/// A limit only changes a score: one that cannot be read does not keep the pod from being placed.
#[test]
fn a_malformed_limit_is_named_and_left_out() {
    let limits = json!({"cpu": "many", "memory": -1, "nvidia.com/gpu": {}, "ephemeral-storage": 1});
    let (pod, problems) = pod(&json!({
        "metadata": {"name": "p1", "namespace": "c1", "uid": "u1"},
        "spec": {"containers": [
            {"name": "a", "resources": {"limits": limits}},
            {"name": "b", "resources": {"limits": {"cpu": null, "memory": "1Mi"}}},
            {"name": "c", "resources": {"limits": "none"}},
        ]},
    }));
    let limits = |at: usize| -> Vec<&str> {
        pod.containers[at].limits.iter().map(|(name, _)| &**name).collect()
    };
    assert_eq!((limits(0), limits(1), limits(2)), (vec![], vec!["memory"], vec![]));
    assert_eq!(pod.invalid, None);
    let path = "pod c1/p1: spec.containers";
    for (problem, expected) in problems.iter().zip([
        "[0].resources.limits.cpu: ",
        "[0].resources.limits.memory: is below zero, it is ignored: -1",
        "[2].resources.limits: must be a map",
    ]) {
        assert!(problem.starts_with(&format!("{path}{expected}")), "{problem}");
    }
    assert_eq!(problems.len(), 3, "{problems:?}");
}

#[test]
fn a_malformed_pod_is_named_with_its_path_and_kept_as_invalid() {
    for (spec, problem) in [
        (
            json!({"containers": [{"resources": {"requests": {"cpu": "5x", "memory": "1Gi"}}}]}),
            "pod c1/p1: spec.containers[0].resources.requests.cpu: unknown quantity suffix: \"5x\"",
        ),
        (
            json!({"containers": {"a": 1}}),
            "pod c1/p1: spec.containers: must be a list: is an object",
        ),
        (json!({"priority": "high"}), "pod c1/p1: spec.priority: must be an integer: \"high\""),
        (
            json!({"containers": [{"ports": [{"hostPort": 70000}]}]}),
            "pod c1/p1: spec.containers[0].ports[0].hostPort: must be between 0 and 65535: 70000",
        ),
        (
            json!({"nodeSelector": {"a.b/c": true}}),
            "pod c1/p1: spec.nodeSelector[a.b/c]: must be a string: true",
        ),
        (json!("x"), "pod c1/p1: spec: must be an object: \"x\""),
    ] {
        let (pod, problems) = pod(&bare_pod(spec));
        assert_eq!(problems[0].lines().next(), Some(problem));
        let invalid = pod.invalid.unwrap();
        assert_eq!(format!("pod c1/p1: {invalid}"), problem);
    }
}

/// plugins-nodes.md 3.2: a term with a bad operator matches nothing, other terms still count.
#[test]
fn an_unknown_operator_is_named_and_the_pod_stays_valid() {
    let (pod, problems) = pod(&bare_pod(json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "z", "operator": "Is", "values": ["a"]}]}]}}}})));
    assert!(pod.invalid.is_none());
    assert!(problems[0].starts_with("pod c1/p1: spec.affinity.nodeAffinity."), "{problems:?}");
    assert!(problems[0].contains("matchExpressions[0].operator: unknown operator: \"Is\"\nhint: "));
    let required = pod.node_affinity.required.unwrap();
    assert_eq!(required[0].match_expressions[0].operator, Operator::Unknown);
}

#[test]
fn without_an_identity_there_is_no_record() {
    let message = |kind, object| decode(kind, &object).unwrap_err().to_string();
    assert_eq!(message(Kind::Pod, json!({})), "pod: metadata.name: is missing");
    let no_uid = json!({"metadata": {"name": "p", "namespace": "c"}});
    assert_eq!(message(Kind::Pod, no_uid), "pod: metadata.uid: is missing");
    let number = json!({"metadata": {"name": 5}});
    assert_eq!(message(Kind::Node, number), "node: metadata.name: must be a string: 5");
    let long = message(Kind::Node, json!({"metadata": {"name": "n".repeat(254)}}));
    assert!(long.starts_with("node: metadata.name: is longer than 253 characters"), "{long}");
    assert!(decode(Kind::Node, &json!({"metadata": {"name": "n".repeat(253)}})).is_ok());
    assert!(message(Kind::Pod, json!("pod")).starts_with("pod: invalid type"));
}

/// Case 4: the object is reported, and its neighbours are not touched.
#[test]
fn ecosystem_04_a_pod_group_with_a_text_as_min_member() {
    let of = |min_member: Value| json!({"metadata": {"name": "pg", "namespace": "c1"}, "spec": {"minMember": min_member}});
    assert_eq!(pod_group(&of(json!(3))).unwrap().min_member, 3);
    assert_eq!(
        pod_group(&of(json!("3"))).unwrap_err().to_string(),
        "podgroup c1/pg: spec.minMember: must be an integer: \"3\""
    );
}

#[test]
fn a_pod_group_with_everything_that_is_read() {
    let group = pod_group(&json!({
        "metadata": {"name": "pg", "namespace": "c1", "uid": "u", "resourceVersion": "9"},
        "spec": {
            "minMember": 2, "minTaskMember": {"ps": 1}, "queue": "q", "priorityClassName": "high",
            "minResources": {"cpu": "2"},
            "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
            "subGroupPolicy": [{"name": "s", "subGroupSize": 2, "matchLabelKeys": ["k"],
                "labelSelector": {"matchLabels": {"a": "b"}}}],
        },
        "status": {"phase": "Inqueue", "running": 1, "conditions": [{"type": "Unschedulable",
            "status": "True", "transitionID": "t", "reason": "r", "message": "m"}]},
    }));
    let group = group.unwrap();
    assert_eq!((group.min_member, &*group.queue, group.status.running), (2, "q", 1));
    assert_eq!(group.min_task_member.get("ps"), Some(&1));
    assert_eq!(group.min_resources.unwrap()[0].1.milli(), 2000);
    assert!(group.network_topology.unwrap().soft);
    assert_eq!(group.sub_group_policies[0].sub_group_size, Some(2));
    assert_eq!((group.status.phase.as_str(), group.status.is_phase_empty), ("Inqueue", false));
    assert_eq!(&*group.status.conditions[0].transition_id, "t");
}

#[test]
fn a_node_and_what_it_offers() {
    let record = node(&json!({
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {"unschedulable": true, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "3900m", "pods": 110}, "capacity": {"cpu": "4"}},
    }));
    assert!(record.unschedulable);
    assert_eq!(record.taints[0].effect, TaintEffect::NoSchedule);
    assert_eq!(record.allocatable[1].1.value(), 110);
    let broken = json!({"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4 cores"}}});
    let error = decode(Kind::Node, &broken).unwrap_err().to_string();
    assert!(error.starts_with("node n1: status.allocatable.cpu: unknown quantity suffix"));
}

#[test]
fn a_queue_has_the_defaults_of_its_crd() {
    let plain = queue(&json!({"metadata": {"name": "q"}}));
    assert_eq!((plain.weight, plain.reclaimable, plain.state), (1, true, QueueState::Open));
    let full = queue(&json!({
        "metadata": {"name": "q", "annotations": {"volcano.sh/hierarchy": "root/q"}},
        "spec": {"weight": 4, "reclaimable": false, "capability": {"cpu": 8}, "parent": "p",
            "guarantee": {"resource": {"cpu": 2}}, "dequeueStrategy": "fifo"},
        "status": {"state": "Closing", "allocated": {"cpu": "1"}},
    }));
    assert_eq!((full.weight, full.reclaimable, full.state), (4, false, QueueState::Closing));
    assert!(full.fifo && full.guarantee[0].1.value() == 2 && full.annotations.len() == 1);
}

#[test]
fn a_node_shard_and_its_status() {
    let object = json!({
        "metadata": {"name": "s"}, "spec": {"nodesDesired": ["n1", "n2"]},
        "status": {"nodesInUse": ["n1"], "nodesToAdd": ["n2"], "lastUpdateTime": "x"},
    });
    let kind = kind_of("shard.volcano.sh/v1alpha1", "NodeShard").unwrap();
    let ClusterEvent::NodeShardApplied(shard) = decode(kind, &object).unwrap().event else {
        panic!("not a node shard")
    };
    let wanted = NodeShardRecord {
        name: "s".into(),
        nodes_desired: vec!["n1".into(), "n2".into()],
        nodes_in_use: vec!["n1".into()],
        nodes_to_remove: vec![],
        nodes_to_add: vec!["n2".into()],
    };
    assert_eq!(*shard, wanted);
    let event = decode_deleted(kind, &object).unwrap();
    assert!(matches!(event, ClusterEvent::NodeShardDeleted { name } if &*name == "s"));
    let wrong = json!({"metadata": {"name": "s"}, "spec": {"nodesDesired": [1]}});
    let error = decode(kind, &wrong).unwrap_err().to_string();
    assert_eq!(error, "nodeshard s: spec.nodesDesired[0]: must be a string: 1");
}

#[test]
fn a_hyper_node_has_a_tier_and_members() {
    let members = json!([
        {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "^n[2-4]$"}}},
        {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "a"}}}},
        {"type": "HyperNode", "selector": {"exactMatch": {"name": "b"}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "("}}},
        {"type": "Node", "selector": {"labelMatch": {}}},
        {"type": "Node", "selector": {}},
        {"type": "HyperNode", "selector": {"regexMatch": {"pattern": "b"}}},
        {"type": "Rack"}
    ]);
    let spec = json!({"tier": 2, "tierName": "row", "members": members});
    let object = json!({"metadata": {"name": "h"}, "spec": spec});
    let kind = kind_of("topology.volcano.sh/v1alpha1", "HyperNode").unwrap();
    let vc_wire::DecodedEvent { event, problems } = decode(kind, &object).unwrap();
    let ClusterEvent::HyperNodeApplied(record) = event else { panic!("{event:?}") };
    assert_eq!((&*record.name, record.tier, &*record.tier_name), ("h", 2, "row"));
    assert_eq!(record.members.len(), 4, "{:?}", record.members);
    let at = |index: usize| format!("hypernode h: spec.members[{index}]");
    let wanted = [
        format!(
            "{}.selector.regexMatch.pattern: not a regular expression: error: unclosed group; \
             no node matches",
            at(4)
        ),
        format!("{}.selector.labelMatch: is empty; no node matches", at(5)),
        format!("{}.selector: needs exactly one of exactMatch, regexMatch and labelMatch", at(6)),
        format!(
            "{}.selector: a member of type HyperNode needs exactMatch, and nothing else",
            at(7)
        ),
        format!("{}.type: neither Node nor HyperNode: \"Rack\"", at(8)),
    ];
    assert_eq!(problems, wanted);
    let event = decode_deleted(kind, &object).unwrap();
    assert!(matches!(event, ClusterEvent::HyperNodeDeleted { name } if &*name == "h"));
    let error = decode(kind, &json!({"metadata": {}})).unwrap_err().to_string();
    assert!(error.starts_with("hypernode: "), "{error}");
}

#[test]
fn the_first_owner_divides_work_and_does_no_other_harm() {
    let of = |owners: Value| {
        let mut object = bare_pod(json!({}));
        object["metadata"]["ownerReferences"] = owners;
        let (pod, problems) = pod(&object);
        assert_eq!(pod.invalid, None);
        (pod.owner_name.unwrap_or_default().to_string(), problems)
    };
    let owner = |name: Value| json!({"kind": "Job", "name": name, "uid": "u"});
    assert_eq!(of(json!([owner(json!("a")), owner(json!("b"))])), ("a".into(), vec![]));
    assert_eq!(of(json!([])), ("".into(), vec![]));
    let (name, problems) = of(json!([owner(json!(5))]));
    assert_eq!(name, "");
    assert_eq!(problems, ["pod c1/p1: metadata.ownerReferences: must be a string: 5"]);
    let group = json!({"metadata": {"name": "g", "namespace": "c", "uid": "u",
        "ownerReferences": [{"name": "a"}]}});
    assert_eq!(pod_group(&group).unwrap().owner_name.as_deref(), Some("a"));
}

#[test]
fn ans_05_the_controller_of_a_pod_group_has_a_kind() {
    let of = |owners: Value| {
        let group = json!({"metadata": {"name": "g", "namespace": "c", "uid": "u",
            "ownerReferences": owners}});
        let group = pod_group(&group).unwrap();
        let text = |field: Option<std::sync::Arc<str>>| field.unwrap_or_default().to_string();
        [group.controller_kind, group.owner_name, group.controller_uid].map(text)
    };
    let owner = |kind: Value, name: &str, controls: bool| {
        let mut owner = json!({"kind": kind, "name": name, "uid": name});
        owner["controller"] = controls.into();
        owner
    };
    let (set, other) = (json!("ReplicaSet"), json!("Other"));
    let expected = ["ReplicaSet", "web", "web"];
    assert_eq!(of(json!([owner(set.clone(), "web", true)])), expected);
    let second = owner(other, "x", false);
    assert_eq!(of(json!([owner(set.clone(), "web", true), second.clone()])), expected);
    let both = json!([second, owner(set.clone(), "web", true)]);
    assert_eq!(of(both), ["", "x", "web"], "the name that is kept is not the controller's");
    assert_eq!(of(json!([owner(set, "web", false)])), ["", "web", ""]);
    assert_eq!(of(json!([owner(json!(5), "web", true)])), ["", "web", "web"]);
    let forged = owner(json!("A\nB"), "web", true);
    assert_eq!(of(json!([forged])), ["A\\nB", "web", "web"]);
    assert_eq!(of(json!([])), ["", "", ""]);
}

#[test]
fn deletions_need_only_the_identity() {
    let object = json!({"metadata": {"name": "p", "namespace": "c", "uid": "u"}, "spec": 5});
    let event = decode_deleted(Kind::Pod, &object).unwrap();
    assert!(matches!(event, ClusterEvent::PodDeleted { uid, .. } if &*uid == "u"));
    let event = decode_deleted(Kind::Queue, &object).unwrap();
    assert!(matches!(event, ClusterEvent::QueueDeleted { name } if &*name == "p"));
}

#[test]
fn other_versions_are_not_read() {
    assert_eq!(kind_of("v1", "Pod"), Some(Kind::Pod));
    assert_eq!(kind_of("scheduling.volcano.sh/v1beta1", "Queue"), Some(Kind::Queue));
    assert_eq!(kind_of("scheduling.incubator.k8s.io/v1alpha1", "Queue"), None);
}

/// A name that the API server does not check may forge no line of a log (core.md 1.8).
#[test]
fn what_cannot_be_shown_is_escaped_in_names() {
    let forged = "x\n\r\tE1123 00:00:00 forged\u{202e}";
    let shown = "x\\n\\r\\tE1123 00:00:00 forged\\u{202e}";
    let mut object = bare_pod(json!({}));
    object["metadata"]["annotations"] = json!({
        "scheduling.k8s.io/group-name": forged, "scheduling.volcano.sh/queue-name": forged,
        "volcano.sh/task-spec": forged, "volcano.sh/numa-topology-policy": forged});
    let annotations = pod(&object).0.annotations;
    let value = |key: &str| annotations.get(key).map(|value| &**value);
    assert_eq!(value("scheduling.k8s.io/group-name"), Some(shown));
    assert_eq!(value("scheduling.volcano.sh/queue-name"), Some(shown));
    assert_eq!(value("volcano.sh/task-spec"), Some(shown));
    assert_eq!(value("volcano.sh/numa-topology-policy"), Some(forged), "it names nothing");
    let group = json!({"metadata": {"name": "g", "namespace": "ns", "uid": "u"}, "spec": {
        "queue": forged, "priorityClassName": forged, "minTaskMember": {forged: "many"},
        "networkTopology": {"highestTierName": forged}, "subGroupPolicy": [{"name": forged}]}});
    let decoded = decode(Kind::PodGroup, &group);
    let problem = match &decoded {
        Ok(decoded) => decoded.problems.join(""),
        Err(error) => error.to_string(),
    };
    assert!(problem.contains(shown) && !problem.contains(forged), "{problem}");
    let mut group = group;
    group["spec"]["minTaskMember"] = json!(null);
    let record = pod_group(&group).unwrap();
    let topology = record.network_topology.unwrap();
    let names = [&record.queue, &record.priority_class_name, &topology.highest_tier_name];
    assert_eq!(names.map(|name| &**name), [shown; 3]);
    assert_eq!(&*record.sub_group_policies[0].name, shown);
}

#[test]
fn ans_36_what_tells_run_times_is_kept() {
    let mut object = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}});
    object["metadata"]["annotations"] = json!({"reservation.volcano.sh/runtime": "1h",
        "reservation.volcano.sh/template": "etl", "kueue.x-k8s.io/max-exec-time-seconds": "60"});
    assert_eq!(pod(&object).0.annotations.len(), 3);
}
