//! PodDisruptionBudgets, ResourceQuotas and the cooldown of pods as they are decoded
//! (plugins-jobs-queues.md 10-12).

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use vc_model::{BudgetRecord, ClusterEvent, Covers, ObjectKey, Operator, QuotaRecord};
use vc_wire::{Kind, WireError, decode, decode_deleted, kind_of};

fn budget(spec: Value, status: Value) -> (BudgetRecord, Vec<String>) {
    let metadata = json!({"name": "b", "namespace": "ns"});
    let object = json!({"metadata": metadata, "spec": spec, "status": status});
    let decoded = decode(Kind::PodDisruptionBudget, &object).unwrap();
    let ClusterEvent::BudgetApplied(budget) = decoded.event else { panic!("not a budget") };
    (*budget, decoded.problems)
}

fn quota(status: Value) -> (QuotaRecord, Vec<String>) {
    let object = json!({"metadata": {"name": "q", "namespace": "ns"}, "status": status});
    let decoded = decode(Kind::ResourceQuota, &object).unwrap();
    let ClusterEvent::QuotaApplied(quota) = decoded.event else { panic!("not a quota") };
    (*quota, decoded.problems)
}

#[test]
fn a_budget_with_everything() {
    let selector = json!({
        "matchLabels": {"app": "x"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
    });
    let status = json!({
        "disruptionsAllowed": 2, "currentHealthy": 5, "desiredHealthy": 3,
        "disruptedPods": {"p1": "2026-01-01T00:00:00Z"},
    });
    let (budget, problems) = budget(json!({"selector": selector, "minAvailable": 3}), status);
    assert_eq!(problems, [""; 0]);
    assert_eq!((budget.allowed, budget.healthy), (2, 5));
    assert_eq!(budget.key, ObjectKey::new("ns", "b"));
    assert!(budget.disrupted.contains("p1"));
    let Covers::Matching(selector) = budget.covers else { panic!("{:?}", budget.covers) };
    assert_eq!(&**selector.match_labels.get("app").unwrap(), "x");
    assert_eq!(selector.match_expressions[0].operator, Operator::In);
}

#[test]
fn a_budget_without_selector_covers_nobody_and_allows_nothing() {
    for spec in [json!({}), json!({"selector": null}), json!({"selector": {}}), json!(null)] {
        let (budget, problems) = budget(spec, json!(null));
        assert_eq!((budget.covers, budget.allowed), (Covers::Nobody, 0));
        assert_eq!(problems, [""; 0]);
    }
}

#[test]
fn a_broken_selector_protects_everybody_and_says_so() {
    let rule = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "k", "operator": operator, "values": values}]});
    let at = "poddisruptionbudget ns/b: spec.selector";
    for (selector, problem) in [
        (json!("app=x"), ": must be an object: \"app=x\""),
        (json!({"matchLabels": {"app": 5}}), ".matchLabels.app: must be a string: 5"),
        (rule("Like", json!([])), ".matchExpressions[0].operator: unknown operator: \"Like\""),
        (rule("In", json!([])), ".matchExpressions[0].operator: does not go with 0 values: In"),
        (rule("Exists", json!(["v"])), ".matchExpressions[0].operator: does not go with 1 values"),
        (rule("Gt", json!(["1"])), ".matchExpressions[0].operator: does not go with 1 values: Gt"),
    ] {
        let (budget, problems) =
            budget(json!({"selector": selector}), json!({"disruptionsAllowed": 9}));
        assert_eq!(budget.covers, Covers::Everybody, "{selector}");
        assert!(problems[0].starts_with(&format!("{at}{problem}")), "{problems:?}");
        let last = problems.last().unwrap();
        assert!(last.starts_with(&format!("{at}: is not usable, so that no pod")), "{last}");
        assert!(last.contains("\nhint: "), "{last}");
    }
}

#[test]
fn a_broken_status_allows_nothing() {
    let selector = json!({"selector": {"matchLabels": {"app": "x"}}});
    let (budget, problems) = budget(selector, json!({"disruptionsAllowed": "many"}));
    assert_eq!(budget.allowed, 0);
    assert!(matches!(budget.covers, Covers::Matching(_)));
    let expected =
        "poddisruptionbudget ns/b: status.disruptionsAllowed: must be an integer: \"many\"";
    assert_eq!(problems, [expected]);
}

#[test]
fn a_quota_counts_by_its_status_and_a_broken_amount_leaves_the_others() {
    let (quota, problems) = quota(json!({
        "hard": {"cpu": "2", "requests.cpu": 3, "count/pods": "5", "memory": "2X"},
        "used": {"cpu": "500m"},
    }));
    let names: Vec<&str> = quota.hard.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["count/pods", "cpu", "requests.cpu"]);
    assert_eq!(quota.used[0].1.milli(), 500);
    let text = "resourcequota ns/q: status.hard.memory: unknown quantity suffix: \"2X\"";
    assert!(problems.len() == 1 && problems[0].starts_with(text), "{problems:?}");
}

#[test]
fn both_live_in_a_namespace() {
    for (api_version, name, kind) in [
        ("policy/v1", "PodDisruptionBudget", Kind::PodDisruptionBudget),
        ("v1", "ResourceQuota", Kind::ResourceQuota),
    ] {
        assert_eq!(kind_of(api_version, name), Some(kind));
        let homeless = json!({"metadata": {"name": "x"}});
        assert!(matches!(decode(kind, &homeless), Err(WireError::Identity { .. })));
        let gone = decode_deleted(kind, &json!({"metadata": {"name": "x", "namespace": "ns"}}));
        let (ClusterEvent::BudgetDeleted { key } | ClusterEvent::QuotaDeleted { key }) =
            gone.unwrap()
        else {
            panic!("{name}")
        };
        assert_eq!(key, ObjectKey::new("ns", "x"));
    }
}

#[test]
fn when_a_pod_was_scheduled() {
    let scheduled = |condition: Value| {
        let metadata = json!({"name": "p", "namespace": "ns", "uid": "u"});
        let pod = json!({"metadata": metadata, "status": {"conditions": [condition]}});
        let decoded = decode(Kind::Pod, &pod).unwrap();
        let ClusterEvent::PodApplied(pod) = decoded.event else { panic!("not a pod") };
        assert_eq!(pod.invalid, None);
        (pod.scheduled_micros, decoded.problems)
    };
    let condition = |status: &str, time: Value| json!({"type": "PodScheduled", "status": status, "lastTransitionTime": time});
    let time = json!("1970-01-01T00:00:05Z");
    assert_eq!(scheduled(condition("True", time.clone())), (Some(5_000_000), Vec::new()));
    assert_eq!(scheduled(condition("False", time)), (None, Vec::new()));
    assert_eq!(scheduled(condition("True", json!(null))), (None, Vec::new()));
    let (micros, problems) = scheduled(condition("True", json!("noon")));
    assert_eq!(micros, None);
    let text = "pod ns/p: status.conditions[0].lastTransitionTime: ";
    assert!(problems[0].starts_with(text), "{problems:?}");
}
