//! Node groups of queues and strategies of pods, as objects say them (plugins-nodes.md 10.2, 11.1).

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::{Value, json};
use vc_model::{
    ClusterEvent, NodeGroupAffinity, NodeGroupLimits, PodResourceStrategy, QueueRecord,
    ResourceStrategy,
};
use vc_wire::{Kind, decode};

fn queue(spec: Value, annotations: Value) -> QueueRecord {
    let object = json!({"metadata": {"name": "q", "annotations": annotations}, "spec": spec});
    match decode(Kind::Queue, &object).unwrap().event {
        ClusterEvent::QueueApplied(queue) => *queue,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_queue_names_groups_in_four_lists() {
    let lists = |required: Value, preferred: Value| {
        json!({"requiredDuringSchedulingIgnoredDuringExecution": required,
            "preferredDuringSchedulingIgnoredDuringExecution": preferred})
    };
    let affinity = json!({"nodeGroupAffinity": lists(json!(["a", "b"]), json!(["b"])),
        "nodeGroupAntiAffinity": lists(json!(["c"]), json!(["d"]))});
    let of = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<_>>();
    let expected = NodeGroupAffinity {
        required: of(&["a", "b"]),
        preferred: of(&["b"]),
        anti_required: of(&["c"]),
        anti_preferred: of(&["d"]),
    };
    let found =
        |affinity: Value| queue(json!({"affinity": affinity}), json!({})).node_group_affinity;
    assert_eq!(found(affinity), Some(expected));
    assert_eq!(found(json!({})), Some(NodeGroupAffinity::default()), "an empty one is present");
    let empty = json!({"nodeGroupAffinity": lists(json!([]), json!(null))});
    assert_eq!(found(empty), Some(NodeGroupAffinity::default()));
    assert_eq!(found(json!(null)), None);
    let wrong = json!({"metadata": {"name": "q"}, "spec": {"affinity": {"nodeGroupAffinity":
        lists(json!("a"), json!([]))}}});
    let error = decode(Kind::Queue, &wrong).unwrap_err().to_string();
    let field = "spec.affinity.nodeGroupAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    assert_eq!(error, format!("queue q: {field}: must be a list: \"a\""));
}

/// The limits as `group: resource=amount`, or why they cannot be read.
fn limits(text: &str) -> Result<Vec<String>, String> {
    let annotations = json!({"volcano.sh/nodegroup-resource-limits": text});
    match queue(json!({}), annotations).node_group_limits {
        NodeGroupLimits::Unreadable(problem) => Err(problem.to_string()),
        NodeGroupLimits::ByGroup(groups) => Ok(groups
            .iter()
            .map(|(group, amounts)| {
                let amounts =
                    amounts.iter().map(|(name, amount)| format!(" {name}={}", amount.text(name)));
                format!("{group}:{}", amounts.collect::<String>())
            })
            .collect()),
    }
}

#[test]
fn nodes_105_limits_of_an_annotation() {
    let key = "volcano.sh/nodegroup-resource-limits";
    assert_eq!(queue(json!({}), json!({})).node_group_limits, NodeGroupLimits::default());
    for (text, expected) in [
        (
            r#"{"b": {"cpu": "3", "memory": "10Gi"}, "a": {"x/y": 2}}"#,
            vec!["a: x/y=2", "b: cpu=3 memory=10Gi"],
        ),
        (r#"{"a": {}, "b": null}"#, vec!["a:", "b:"]),
        ("{}", vec![]),
        ("null", vec![]),
    ] {
        assert_eq!(limits(text).unwrap(), expected, "{text}");
    }
    for (text, expected) in [
        ("", format!("{key}: is not valid JSON: ")),
        (r#"{"group1":{"cpu":"#, format!("{key}: is not valid JSON: ")),
        (r#"{"a": {"cpu": "1"}} x"#, format!("{key}: is not valid JSON: ")),
        ("[]", format!("{key}: must be a map: ")),
        (r#"{"a": 5}"#, format!("{key}.a: must be a map: 5")),
        (r#"{"a": {"cpu": "3 cores"}}"#, format!("{key}.a.cpu: ")),
        (r#"{"a": {"x/y": true}}"#, format!("{key}.a[x/y]: must be a quantity: true")),
    ] {
        let problem = limits(text).unwrap_err();
        assert!(problem.starts_with(&expected) && !problem.contains('\n'), "{text}: {problem}");
    }
}

/// The strategy of a pod, and what is noted about its annotations.
fn strategy(annotations: Value) -> (Option<Arc<PodResourceStrategy>>, Vec<String>) {
    let object = json!({"metadata": {"name": "p", "namespace": "c", "uid": "u",
        "annotations": annotations}});
    let decoded = decode(Kind::Pod, &object).unwrap();
    let ClusterEvent::PodApplied(pod) = decoded.event else { panic!("not a pod") };
    assert_eq!(pod.invalid, None, "the pod can be placed");
    (pod.resource_strategy, decoded.problems)
}

#[test]
fn nodes_97_strategy_of_a_pod() {
    let [kind, weights] =
        ["scoring-type", "weight"].map(|name| format!("volcano.sh/resource-strategy-{name}"));
    assert_eq!(strategy(json!({})), (None, vec![]));
    assert_eq!(strategy(json!({&weights: "{}"})), (None, vec![]), "the type decides");
    for (name, expected) in [
        ("MostAllocated", ResourceStrategy::MostAllocated),
        ("LeastAllocated", ResourceStrategy::LeastAllocated),
    ] {
        let given = json!({&kind: name, &weights: r#"{"cpu": 2, "x/y": -1, "z": null}"#});
        let (found, problems) = strategy(given);
        let found = found.unwrap();
        assert_eq!((found.strategy, problems), (expected, vec![]));
        let pairs: Vec<_> = found.weights.iter().map(|(name, weight)| (&**name, *weight)).collect();
        assert_eq!(pairs, [("cpu", 2), ("x/y", -1), ("z", 0)]);
    }
    for (given, key) in [
        (json!({&kind: "MostAllocated"}), &weights),
        (json!({&kind: "MostAllocated", &weights: ""}), &weights),
        (json!({&kind: "MostAllocated", &weights: "{"}), &weights),
        (json!({&kind: "MostAllocated", &weights: "[1]"}), &weights),
        (json!({&kind: "MostAllocated", &weights: r#"{"cpu": 1.5}"#}), &weights),
        (json!({&kind: "MostAllocated", &weights: r#"{"cpu": "1"}"#}), &weights),
        (json!({&kind: "Middle", &weights: r#"{"cpu": 1}"#}), &kind),
        (json!({&kind: "", &weights: r#"{"cpu": 1}"#}), &kind),
    ] {
        let (found, problems) = strategy(given.clone());
        assert!(found.is_some_and(|found| found.weights.is_empty()), "{given}");
        assert_eq!(problems.len(), 1, "{given}: {problems:?}");
        let begin = format!("pod c/p: metadata.annotations[{key}]: is ");
        assert!(problems[0].starts_with(&begin), "{given}: {problems:?}");
    }
}
