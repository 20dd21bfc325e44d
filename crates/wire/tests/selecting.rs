//! Services, controllers and the controller of a pod. Specification: plugins-nodes.md 7.8.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use vc_model::{ClusterEvent, LabelSelector, ObjectKey, Operator, SelectorKind};
use vc_wire::{Kind, decode, decode_deleted, kind_of};

const KINDS: [(&str, &str, Kind, SelectorKind); 4] = [
    ("v1", "Service", Kind::Service, SelectorKind::Service),
    (
        "v1",
        "ReplicationController",
        Kind::ReplicationController,
        SelectorKind::ReplicationController,
    ),
    ("apps/v1", "ReplicaSet", Kind::ReplicaSet, SelectorKind::ReplicaSet),
    ("apps/v1", "StatefulSet", Kind::StatefulSet, SelectorKind::StatefulSet),
];

fn selects(kind: Kind, selector: Value) -> (Option<LabelSelector>, Vec<String>) {
    let object = json!({"metadata": {"name": "x", "namespace": "ns"},
        "spec": {"selector": selector, "replicas": 3}});
    let decoded = decode(kind, &object).unwrap();
    let ClusterEvent::SelectorApplied(object) = decoded.event else { panic!("no selector") };
    (object.selector, decoded.problems)
}

fn by_labels(labels: &[(&str, &str)]) -> Option<LabelSelector> {
    let match_labels = labels.iter().map(|&(key, value)| (key.into(), value.into())).collect();
    Some(LabelSelector { match_labels, ..LabelSelector::default() })
}

#[test]
fn kinds_and_their_ends() {
    for (version, name, kind, selecting) in KINDS {
        assert_eq!(kind_of(version, name), Some(kind));
        let object = json!({"metadata": {"name": "x", "namespace": "ns"}});
        match decode_deleted(kind, &object).unwrap() {
            ClusterEvent::SelectorDeleted { kind, key } => {
                assert_eq!((kind, key), (selecting, ObjectKey::new("ns", "x")));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(kind_of("extensions/v1beta1", "ReplicaSet"), None);
}

#[test]
fn each_kind_has_its_form_of_selector() {
    for kind in [Kind::Service, Kind::ReplicationController] {
        assert_eq!(selects(kind, json!({"app": "web"})), (by_labels(&[("app", "web")]), vec![]));
        assert_eq!(selects(kind, json!({})), (by_labels(&[]), vec![]));
        assert_eq!(selects(kind, json!(null)), (None, vec![]));
    }
    for kind in [Kind::ReplicaSet, Kind::StatefulSet] {
        let rule = json!({"key": "tier", "operator": "NotIn", "values": ["db"]});
        let selector = json!({"matchLabels": {"app": "web"}, "matchExpressions": [rule]});
        let (selector, problems) = selects(kind, selector);
        let selector = selector.unwrap();
        assert_eq!(selector.match_labels, by_labels(&[("app", "web")]).unwrap().match_labels);
        assert_eq!(selector.match_expressions[0].operator, Operator::NotIn);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(selects(kind, json!(null)), (None, vec![]));
    }
}

#[test]
fn what_cannot_be_read_selects_nothing_and_is_named() {
    let (selector, problems) = selects(Kind::Service, json!({"app": 7}));
    assert_eq!((selector, problems.len()), (None, 1));
    assert!(problems[0].starts_with("service ns/x: spec.selector"), "{problems:?}");
    let (selector, problems) = selects(Kind::ReplicaSet, json!({"matchLabels": ["app"]}));
    assert_eq!((selector, problems.len()), (None, 1));
    assert!(problems[0].starts_with("replicaset ns/x: spec.selector.matchLabels"), "{problems:?}");
}

#[test]
fn the_controller_of_a_pod() {
    let controller = |owners: Value| {
        let object = json!({"metadata": {"name": "p", "namespace": "ns", "uid": "u",
            "ownerReferences": owners}});
        let ClusterEvent::PodApplied(pod) = decode(Kind::Pod, &object).unwrap().event else {
            panic!("no pod")
        };
        pod.controller
    };
    let owner = |version: &str, kind: &str, controls: bool| {
        json!({"apiVersion": version,
        "kind": kind, "name": "web", "uid": "w", "controller": controls})
    };
    for (version, kind, _, selecting) in &KINDS[1..] {
        let other = owner("v1", "ConfigMap", false);
        let expected = Some((*selecting, "web".into()));
        assert_eq!(controller(json!([other, owner(version, kind, true)])), expected);
        assert_eq!(controller(json!([owner(version, kind, false)])), None);
    }
    assert_eq!(controller(json!([owner("batch.volcano.sh/v1alpha1", "Job", true)])), None);
    assert_eq!(controller(json!([owner("extensions/v1beta1", "ReplicaSet", true)])), None);
    assert_eq!(controller(json!([])), None);
}
