//! The short way from text to soft fields against serde_json: equal on random objects, and on texts
//! that are damaged it accepts nothing that serde_json refuses. Specification: rust-ecosystem.md 4.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::fmt::Debug;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vc_wire::{FieldShape, SlimNode, SlimPod, SlimPodGroup, scanned};

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "p1", "namespace": "c1", "uid": "u1", "resourceVersion": "7",
            "creationTimestamp": "1970-01-01T00:00:01Z", "generation": 1,
            "deletionTimestamp": "1970-01-01T00:00:02Z", "labels": {"a": "b", "c": "d\n\u{e9}"},
            "annotations": {"scheduling.k8s.io/group-name": "pg", "unread": "x\"y\\"},
            "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {"k:{\"a\":\"b\"}": {}}}}],
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o",
                "uid": "u", "controller": true}],
        },
        "spec": {
            "schedulerName": "volcano", "nodeName": "n1", "priority": 5,
            "priorityClassName": "high", "preemptionPolicy": "Never",
            "nodeSelector": {"x": "y"}, "overhead": {"cpu": "10m"},
            "resources": {"requests": {"cpu": 4}}, "schedulingGates": [{"name": "g"}],
            "containers": [{
                "name": "main", "image": "busybox", "command": ["a", -1, 0.5e-3, 10, []],
                "resources": {"requests": {"cpu": "1", "memory": 0.5}, "limits": {"cpu": 2}},
                "ports": [{"containerPort": 80}, {"hostPort": 53, "protocol": "UDP",
                    "hostIP": "10.0.0.1"}],
            }],
            "initContainers": [{"name": "side", "restartPolicy": "Always"}],
            "tolerations": [{"operator": "Exists"}, {"key": "k", "value": "v",
                "effect": "NoExecute", "tolerationSeconds": 300}],
            "affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "z", "operator": "In", "values": ["a"]}]}]}}},
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}],
            "volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "b"}},
                {"name": "c", "ephemeral": {}}, {"iscsi": {"iqn": "i", "readOnly": true}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
        },
        "status": {
            "phase": "Running", "nominatedNodeName": "n2", "startTime": "1970-01-01T00:00:03Z",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "r",
                "message": "m", "lastProbeTime": null,
                "lastTransitionTime": "1970-01-01T00:00:03Z"}],
            "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "2"}},
                "allocatedResources": {"cpu": "3"}, "ready": true}],
            "initContainerStatuses": [{"name": "side"}],
            "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "made"}],
        },
    })
}

fn pod_group() -> Value {
    json!({
        "metadata": {"name": "g", "namespace": "c1", "uid": "u", "annotations": null},
        "spec": {"minMember": 3, "minTaskMember": {"worker": 3}, "queue": "q",
            "priorityClassName": "p", "minResources": {"cpu": "3", "memory": 1024},
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
            "subGroupPolicy": [{"name": "s", "subGroupSize": 2, "matchLabelKeys": ["k"]}]},
        "status": {"phase": "Running", "running": 3, "succeeded": 0, "failed": 1, "conditions": [
            {"type": "Scheduled", "status": "True", "reason": "r", "message": "m",
                "transitionID": "t", "lastTransitionTime": "1970-01-01T00:00:03Z"}]},
    })
}

fn node() -> Value {
    json!({
        "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}},
        "spec": {"unschedulable": false, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "64", "pods": 110}, "capacity": {"cpu": "64"},
            "images": [{"names": ["a", "b"], "sizeBytes": 9_000_000_000_i64}]},
    })
}

/// Anything, at any place.
fn value() -> impl Strategy<Value = Value> {
    let texts = ["", "1", "5x", "100m", "True", "1970-01-01T00:00:02Z", "\u{1}\t\"", "\u{1f600}/"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        select(vec![0, 1, -1, 7, 300, 70_000, i64::MAX, i64::MIN]).prop_map(Value::from),
        select(vec![0.5, -0.0, 1e300, 1e18]).prop_map(Value::from),
        Just(Value::from(u64::MAX)),
        select(texts.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let key = select(vec!["name", "key", "cpu", "requests", "a\nb", "type"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key.prop_map(str::to_owned), inner, 0..4)
                .prop_map(Value::from_iter),
        ]
    })
}

/// The object with another value at this place, counted from its root.
fn replace(object: &mut Value, place: &mut usize, by: &Value) {
    *place -= 1;
    if *place == 0 {
        *object = by.clone();
        *place = usize::MAX;
        return;
    }
    match object {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, place, by)),
        Value::Object(map) => map.values_mut().for_each(|item| replace(item, place, by)),
        _ => {}
    }
}

/// What a damaged text has instead of a byte.
const DAMAGE: [&str; 16] =
    ["", "\"", "\\", "\\u12", "{", "}", "[", "]", ",", ":", "0", "-", ".", "e", " ", "\u{1}"];

fn debug<T: Debug, E>(read: Result<T, E>) -> Option<String> {
    read.ok().map(|object| format!("{object:?}"))
}

/// As the watch reads it where there is no short way.
fn by_serde<T: DeserializeOwned + Debug>(text: &str) -> Option<String> {
    let direct = debug(serde_json::from_str::<T>(text));
    // A field that is there twice is no error of a tree, where the last one counts.
    direct.or_else(|| debug(T::deserialize(serde_json::from_str::<Value>(text).ok()?)))
}

fn whole<T: FieldShape + DeserializeOwned + Debug>(text: &str) {
    let short = scanned::<T>(text).map(|object| format!("{object:?}"));
    assert_eq!(short.unwrap(), by_serde::<T>(text).unwrap(), "{text}");
}

fn damaged<T: FieldShape + DeserializeOwned + Debug>(text: &str) {
    if let Some(short) = scanned::<T>(text) {
        assert_eq!(Some(format!("{short:?}")), by_serde::<T>(text), "{text}");
    }
}

proptest! {
    #[test]
    fn any_object_is_read_as_serde_reads_it(
        kind in 0..3_usize,
        changes in prop::collection::vec((1..120_usize, value()), 0..4),
        damages in prop::collection::vec((any::<Index>(), select(DAMAGE.to_vec())), 1..3),
    ) {
        let mut object = [pod(), pod_group(), node()][kind].clone();
        for (mut place, by) in changes {
            // The root stays an object.
            place += 1;
            replace(&mut object, &mut place, &by);
        }
        let text = object.to_string();
        let mut broken: Vec<char> = text.chars().collect();
        for (place, by) in damages {
            let place = place.index(broken.len());
            broken.splice(place..=place, by.chars());
        }
        let broken: String = broken.into_iter().collect();
        match kind {
            0 => (whole::<SlimPod>(&text), damaged::<SlimPod>(&broken)),
            1 => (whole::<SlimPodGroup>(&text), damaged::<SlimPodGroup>(&broken)),
            _ => (whole::<SlimNode>(&text), damaged::<SlimNode>(&broken)),
        };
    }
}

#[test]
fn what_is_skipped_is_json_all_the_same() {
    let deep = |depth| format!(r#"{{"x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    for (text, is_json) in [
        (r#"{"x":-0.5e+7,"y":[{},[],"\u00e9\n"],"z":{"a":null}}"#, true),
        (&deep(60), true),
        (&deep(80), false),
        (r#"{"x":01}"#, false),
        (r#"{"x":1.}"#, false),
        (r#"{"x":-}"#, false),
        (r#"{"x":1e}"#, false),
        (r#"{"x":"\q"}"#, false),
        (r#"{"x":"\u12g4"}"#, false),
        ("{\"x\":\"\t\"}", false),
        (r#"{"x":tru}"#, false),
        (r#"{"x":[1,]}"#, false),
        (r#"{"x":[1}"#, false),
        (r#"{"x":1,}"#, false),
        (r#"{"x" 1}"#, false),
        (r#"{"x":1}}"#, false),
        (r#"{"x":"#, false),
        (r#"{"x":"a"#, false),
        ("[]", false),
        ("null", false),
    ] {
        assert_eq!(scanned::<SlimPod>(text).is_some(), is_json, "{text}");
    }
}
