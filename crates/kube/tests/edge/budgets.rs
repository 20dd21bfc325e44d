//! PodDisruptionBudgets are followed like an optional kind, ResourceQuotas like every kind, and a
//! broken one costs neither itself nor its neighbours (C-06, plugins-jobs-queues.md 10, 11).

use serde_json::{Value, json};
use vc_kube::{Clients, EngineMessage, Feeds, KindSet, follow, inbox};
use vc_model::{ClusterEvent, Covers};
use vc_wire::Kind;

use crate::fake::{self, added, end_of_list, json_answer, refusal, unobserved, watch};

const BUDGETS: &str = "GET /apis/policy/v1/poddisruptionbudgets";

fn budget(name: &str, selector: Value) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "7"},
        "spec": {"selector": selector}, "status": {"disruptionsAllowed": 1}})
}

fn quota(name: &str, hard: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "7"},
        "status": {"hard": hard}})
}

fn text(message: EngineMessage) -> Option<String> {
    match message {
        EngineMessage::Event(ClusterEvent::BudgetApplied(budget)) => {
            let everybody = budget.covers == Covers::Everybody;
            Some(format!("{} {everybody}", budget.key.name))
        }
        EngineMessage::Event(ClusterEvent::BudgetDeleted { key }) => {
            Some(format!("gone {}", key.name))
        }
        EngineMessage::Event(ClusterEvent::QuotaApplied(quota)) => {
            Some(format!("{} {}", quota.key.name, quota.hard.len()))
        }
        EngineMessage::Synced(Kind::PodDisruptionBudget | Kind::ResourceQuota) => {
            Some("synced".into())
        }
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn c06_budgets_are_looked_for_again() {
    let good = budget("good", json!({"matchLabels": {"app": "x"}}));
    let broken = budget("broken", json!({"matchLabels": 5}));
    let groups = json!({"groups": [{"name": "policy", "versions": [{"version": "v1"}]}]});
    let kinds = json!({"resources": [{"name": "poddisruptionbudgets/status"}]});
    let (client, _) = fake::client(move |seen| match (seen.line.as_str(), seen.before) {
        ("GET /apis", _) => json_answer(200, groups.clone()),
        ("GET /apis/policy/v1", _) => json_answer(200, kinds.clone()),
        (_, 1) => watch(vec![
            added(&broken),
            added(&good),
            end_of_list("8"),
            json!({"type": "ERROR", "object": {"code": 410, "message": "too old"}}),
        ]),
        _ => refusal(404, "NotFound", "the server could not find the requested resource"),
    });
    let ((sender, mut inbox), mut feeds) = (inbox(), Feeds::default());
    feeds.follow(KindSet::Budgets, &Clients::shared(client), &sender, &unobserved());
    let mut reported = Vec::new();
    while reported.len() < 5 {
        reported.extend(text(inbox.recv().await.unwrap()));
    }
    assert_eq!(reported, ["synced", "broken true", "good false", "gone broken", "gone good"]);
}

#[tokio::test(start_paused = true)]
async fn quotas_are_always_followed() {
    let quotas = [quota("broken", json!({"cpu": "2x", "memory": "1Gi"})), quota("q", json!({}))];
    let (client, _) = fake::client(move |seen| match seen.line == "GET /api/v1/resourcequotas" {
        true => watch(vec![added(&quotas[0]), added(&quotas[1]), end_of_list("8")]),
        false => watch(vec![end_of_list("1")]),
    });
    let (sender, mut inbox) = inbox();
    let _feeds = follow(&Clients::shared(client), &[], &sender, &unobserved());
    let mut reported = Vec::new();
    while reported.len() < 3 {
        reported.extend(text(inbox.recv().await.unwrap()));
    }
    assert_eq!(reported, ["broken 1", "q 0", "synced"]);
}

/// A proxy that has lost its server says 404 to everything, an old API server to what is new.
#[tokio::test(start_paused = true)]
async fn c06_a_404_that_nobody_confirms_takes_no_budget_away() {
    let good = budget("good", json!({"matchLabels": {"app": "x"}}));
    let expired = json!({"type": "ERROR", "object": {"code": 410, "message": "too old"}});
    let (client, log) = fake::client(move |seen| match (seen.line.as_str(), seen.before) {
        (BUDGETS, 0) => watch(vec![added(&good), end_of_list("8"), expired.clone()]),
        (BUDGETS, 5..) => watch(vec![end_of_list("9")]),
        _ => refusal(404, "NotFound", "default backend"),
    });
    let ((sender, mut inbox), mut feeds) = (inbox(), Feeds::default());
    feeds.follow(KindSet::Budgets, &Clients::shared(client), &sender, &unobserved());
    let mut reported = Vec::new();
    while reported.len() < 3 {
        reported.extend(text(inbox.recv().await.unwrap()));
    }
    // It is gone when a list lacks it.
    assert_eq!(reported, ["good false", "synced", "gone good"]);
    assert_eq!(log.of(BUDGETS).len(), 6);
}
