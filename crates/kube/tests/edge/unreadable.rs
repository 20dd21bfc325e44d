//! Kinds that the API server refuses to us: optional ones count as none, required ones are waited
//! for, and rights that come or go take effect without a restart (core.md 1.5, 1.9; C-06).

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::time::Instant;
use vc_engine::Effect;
use vc_kube::{Clients, EngineMessage, Feeds, KindRefusal, KindSet, Observer, follow, inbox};
use vc_model::ClusterEvent;
use vc_wire::Kind;

use crate::fake::{self, Answer, Log, Seen, added, end_of_list, json_answer, refusal, watch};
use crate::log_lines::Lines;
use crate::writer::edge;

const BUDGETS: &str = "GET /apis/policy/v1/poddisruptionbudgets";
const QUOTAS: &str = "GET /api/v1/resourcequotas";
const HYPER_NODES: &str = "GET /apis/topology.volcano.sh/v1alpha1/hypernodes";
const PODS: &str = "GET /api/v1/pods";

/// What an observer was told, as `+ ...` for a refusal and `- ...` for its end.
#[derive(Default)]
struct ObservedTexts(Mutex<Vec<String>>);

impl ObservedTexts {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for ObservedTexts {
    fn kind_refused(&self, refusal: &KindRefusal) {
        self.0.lock().unwrap().push(format!("+ {refusal}, required: {}", refusal.is_required));
    }

    fn kind_readable(&self, resource: &'static str) {
        self.0.lock().unwrap().push(format!("- {resource}"));
    }
}

fn forbidden() -> Option<Answer> {
    refusal(403, "Forbidden", "budgets is forbidden: User \"u\" cannot watch resource")
}

fn budget(name: &str) -> serde_json::Value {
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "7"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}}, "status": {"disruptionsAllowed": 1}})
}

/// The messages about budgets with the seconds that have passed, what the observer was told, and the
/// requests.
async fn budgets(
    wanted: usize,
    handle: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
) -> (Vec<(String, u64)>, Vec<String>, Log) {
    let (client, log) = fake::client(handle);
    let ((sender, mut inbox), mut feeds) = (inbox(), Feeds::default());
    let observed = Arc::new(ObservedTexts::default());
    let observer: Arc<dyn Observer> = observed.clone();
    feeds.follow(KindSet::Budgets, &Clients::shared(client), &sender, &observer);
    let (start, mut reported) = (Instant::now(), Vec::new());
    while reported.len() < wanted {
        let text = match inbox.recv().await.unwrap() {
            EngineMessage::Event(ClusterEvent::BudgetApplied(budget)) => {
                budget.key.name.to_string()
            }
            EngineMessage::Event(ClusterEvent::BudgetDeleted { key }) => {
                format!("gone {}", key.name)
            }
            EngineMessage::Synced(Kind::PodDisruptionBudget) => "synced".to_owned(),
            other => panic!("not about budgets: {other:?}"),
        };
        reported.push((text, start.elapsed().as_secs()));
    }
    (reported, observed.all(), log)
}

const REFUSED: &str =
    "+ no right to watch poddisruptionbudgets in API group policy (403), required: false";

fn as_texts(reported: &[(String, u64)]) -> Vec<(&str, u64)> {
    reported.iter().map(|(text, at)| (text.as_str(), *at)).collect()
}

#[tokio::test(start_paused = true)]
async fn c06_an_optional_kind_that_is_refused_counts_as_none_until_the_right_is_granted() {
    let (lines, _guard) = Lines::collect();
    let (reported, observed, log) = budgets(2, |seen| match seen.before {
        0..3 => forbidden(),
        _ => watch(vec![added(&budget("b")), end_of_list("8")]),
    })
    .await;
    // Asked again once a minute; told once, and once that it is over.
    assert_eq!(as_texts(&reported), [("synced", 0), ("b", 180)]);
    assert_eq!(observed, [REFUSED, "- poddisruptionbudgets"]);
    assert_eq!(log.of(BUDGETS).len(), 4);
    let all = lines.all();
    let warnings: Vec<&String> = all.iter().filter(|line| line.contains("no right")).collect();
    assert_eq!(warnings.len(), 1, "{all:#?}");
}

#[tokio::test(start_paused = true)]
async fn c06_a_right_that_is_taken_away_leaves_what_is_known_for_a_minute() {
    let expired = json!({"type": "ERROR", "object": {"code": 410, "message": "too old"}});
    let first = vec![added(&budget("b")), end_of_list("8"), expired];
    let (reported, observed, log) = budgets(4, move |seen| match seen.before {
        0 => watch(first.clone()),
        // A minute of refusals, and two more of those that come once a minute.
        1.. if seen.before < 66 => forbidden(),
        _ => watch(vec![added(&budget("new")), end_of_list("9")]),
    })
    .await;
    let [ref applied, ref synced, ref gone, ref new] = reported[..] else { panic!("{reported:?}") };
    assert_eq!((&*applied.0, applied.1, &*synced.0, synced.1), ("b", 0, "synced", 0));
    assert_eq!((&*gone.0, &*new.0), ("gone b", "new"));
    assert!((60..=62).contains(&gone.1), "{reported:?}");
    assert!(gone.1 + 60 <= new.1 && (new.1 - gone.1) % 60 == 0, "{reported:?}");
    assert_eq!(observed, [REFUSED, "- poddisruptionbudgets"]);
    assert!(log.of(BUDGETS).len() <= 67);
}

/// A ClusterRole that is replaced is missing for some seconds.
#[tokio::test(start_paused = true)]
async fn c06_a_short_refusal_takes_nothing_away() {
    let expired = json!({"type": "ERROR", "object": {"code": 410, "message": "too old"}});
    let (reported, observed, _) = budgets(3, move |seen| match seen.before {
        0 => watch(vec![added(&budget("b")), end_of_list("8"), expired.clone()]),
        1..10 => forbidden(),
        _ => watch(vec![added(&budget("c")), added(&budget("b")), end_of_list("9")]),
    })
    .await;
    let names: Vec<&str> = reported.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(names, ["b", "synced", "c"]);
    assert_eq!(observed, [REFUSED, "- poddisruptionbudgets"]);
}

/// The messages about HyperNodes with the seconds that have passed.
async fn hyper_nodes(
    wanted: usize,
    handle: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
) -> Vec<(String, u64)> {
    let (client, _log) = fake::client(move |seen| match seen.line.as_str() {
        HYPER_NODES => handle(seen),
        "GET /apis" => json_answer(200, json!({"kind": "APIGroupList", "groups": []})),
        _ => watch(vec![end_of_list("1")]),
    });
    let (sender, mut inbox) = inbox();
    let _feeds = follow(&Clients::shared(client), &[], &sender, &fake::unobserved());
    let (start, mut reported) = (Instant::now(), Vec::new());
    while reported.len() < wanted {
        let text = match inbox.recv().await.unwrap() {
            EngineMessage::Event(ClusterEvent::HyperNodeApplied(record)) => record.name.to_string(),
            EngineMessage::Event(ClusterEvent::HyperNodeDeleted { name }) => format!("gone {name}"),
            EngineMessage::Event(ClusterEvent::HyperNodesListed { is_complete: true }) => {
                "all".into()
            }
            EngineMessage::Event(ClusterEvent::HyperNodesListed { .. }) => "unknown".into(),
            EngineMessage::Synced(Kind::HyperNode) => "synced".to_owned(),
            _ => continue,
        };
        reported.push((text, start.elapsed().as_secs()));
    }
    reported
}

#[tokio::test(start_paused = true)]
async fn c06_hyper_nodes_that_cannot_be_read_are_not_ready_rather_than_none() {
    let hyper_node = json!({"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
        "metadata": {"name": "h", "uid": "h", "resourceVersion": "7"}, "spec": {"tier": 1}});
    let expired = json!({"type": "ERROR", "object": {"code": 410, "message": "too old"}});
    let lines = vec![added(&hyper_node), end_of_list("8"), expired];
    let reported = hyper_nodes(5, move |seen| match seen.before {
        0 => forbidden(),
        // The definition of the kind comes late, and goes again.
        1 => watch(lines.clone()),
        _ => refusal(404, "NotFound", "the server could not find the requested resource"),
    })
    .await;
    let wanted = [("synced", 0), ("h", 60), ("all", 60), ("gone h", 60), ("unknown", 60)];
    assert_eq!(as_texts(&reported), wanted);
    let reported = hyper_nodes(2, |_| watch(vec![end_of_list("8")])).await;
    assert_eq!(as_texts(&reported), [("all", 0), ("synced", 0)]);
}

/// Follows everything, with pods refused so often, and answers how long it took until they came and
/// what the observer was told.
async fn without_pods(n_refusals: usize) -> (u64, Vec<String>) {
    let (client, _log) = fake::client(move |seen| match seen.line.as_str() {
        PODS if seen.before < n_refusals => forbidden(),
        QUOTAS => forbidden(),
        _ => watch(vec![end_of_list("1")]),
    });
    let (sender, mut inbox) = inbox();
    let observed = Arc::new(ObservedTexts::default());
    let observer: Arc<dyn Observer> = observed.clone();
    let feeds = follow(&Clients::shared(client), &[KindSet::PriorityClasses], &sender, &observer);
    let (start, mut n_synced) = (Instant::now(), 0);
    while n_synced < feeds.len() {
        n_synced += usize::from(matches!(inbox.recv().await.unwrap(), EngineMessage::Synced(_)));
    }
    (start.elapsed().as_secs(), observed.all())
}

#[tokio::test(start_paused = true)]
async fn required_kinds_are_waited_for_and_named_once_a_minute() {
    let (seconds, mut reported) = without_pods(100).await;
    // Asked again every second: who grants the right does not wait.
    assert!((90..=100).contains(&seconds), "{seconds}");
    reported.sort();
    let pods = "+ no right to watch pods in the core API group (403), required: true";
    let quotas = "+ no right to watch resourcequotas in the core API group (403), required: false";
    assert_eq!(reported, [pods, pods, quotas, "- pods"]);
}

/// The role of Volcano 1.12.0 grants patch instead of update.
#[tokio::test(start_paused = true)]
async fn a_refused_status_of_queues_is_logged_once_for_all_of_them() {
    let (lines, _guard) = Lines::collect();
    let queue = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "q", "resourceVersion": "4"}});
    let words = "queues.scheduling.volcano.sh \"q\" is forbidden: User \"u\" cannot update \
        resource \"queues/status\" in API group \"scheduling.volcano.sh\" at the cluster scope";
    let effect = |name: &str| Effect::QueueStatus { queue: name.into(), allocated: Vec::new() };
    let (log, outcomes) = edge(move |seen| match seen.line.starts_with("GET") {
        true => json_answer(200, queue.clone()),
        false => refusal(403, "Forbidden", words),
    })
    .run(vec![effect("a"), effect("b"), effect("c")])
    .await;
    assert_eq!((log.of("PUT").len(), outcomes.len()), (3, 3));
    let all = lines.all();
    assert_eq!(all.len(), 1, "{all:#?}");
    let wanted = "the status of queues cannot be written: no right to update queues/status in API \
        group scheduling.volcano.sh (403). ";
    assert!(all[0].starts_with(wanted), "{}", all[0]);
}
