//! NodeShards and scheduling gates: an optional kind, and two writes (core.md 4.10, 7.8, C-06).

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use vc_engine::Effect;
use vc_kube::{Clients, EngineMessage, Feeds, KindSet, inbox, write};
use vc_model::{ClusterEvent, ObjectKey};
use vc_wire::Kind;

use crate::fake::{
    self, Answer, Log, Seen, end_of_list, json_answer, list, refusal, unobserved, watch,
};

const SHARDS: &str = "/apis/shard.volcano.sh/v1alpha1/nodeshards";

fn shard(nodes: &[&str]) -> Value {
    json!({"apiVersion": "shard.volcano.sh/v1alpha1", "kind": "NodeShard",
        "metadata": {"name": "s", "uid": "uid-s", "resourceVersion": "7"},
        "spec": {"nodesDesired": nodes},
        "status": {"nodesInUse": ["old"], "lastUpdateTime": "2026-01-01T00:00:00Z"}})
}

/// Performs the effect; the requests, and what the engine hears.
async fn perform(
    effect: Effect,
    handle: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
) -> (Log, Vec<ClusterEvent>) {
    let (client, log) = fake::client(handle);
    let ((sender, mut outcomes), (effects, batches)) = (inbox(), mpsc::channel(1));
    effects.send(vec![effect].into()).await.unwrap();
    drop(effects);
    write(Clients::shared(client), "volcano".into(), sender, batches, unobserved()).await;
    let mut events = Vec::new();
    while let Some(EngineMessage::Event(event)) = outcomes.recv().await {
        events.push(event);
    }
    (log, events)
}

/// What comes from the feed, with the seconds that have passed.
async fn followed(
    wanted: usize,
    handle: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
) -> Vec<(String, u64)> {
    let (client, _) = fake::client(handle);
    let ((sender, mut inbox), mut feeds) = (inbox(), Feeds::default());
    feeds.follow(KindSet::NodeShards, &Clients::shared(client), &sender, &unobserved());
    assert_eq!(feeds.len(), 1);
    let (start, mut reported) = (Instant::now(), Vec::new());
    while reported.len() < wanted {
        let text = match inbox.recv().await.unwrap() {
            EngineMessage::Event(ClusterEvent::NodeShardApplied(shard)) => {
                format!("{} {}", shard.name, shard.nodes_desired.join(","))
            }
            EngineMessage::Event(ClusterEvent::NodeShardDeleted { name }) => format!("gone {name}"),
            EngineMessage::Synced(Kind::NodeShard) => "synced".to_owned(),
            other => panic!("not about shards: {other:?}"),
        };
        reported.push((text, start.elapsed().as_secs()));
    }
    reported
}

#[tokio::test(start_paused = true)]
async fn c06_an_unknown_kind_counts_as_empty_and_is_looked_for_again() {
    let reported = followed(3, |seen| match (seen.line.as_str(), seen.before) {
        ("GET /apis", _) => json_answer(200, json!({"kind": "APIGroupList", "groups": []})),
        (_, 1) => refusal(422, "Invalid", "sendInitialEvents"),
        (_, 2) => list(&[shard(&["n1", "n2"])]),
        // The kind comes late, and goes again with what it had.
        _ => refusal(404, "NotFound", "the server could not find the requested resource"),
    })
    .await;
    let reported: Vec<(&str, u64)> =
        reported.iter().map(|(text, at)| (text.as_str(), *at)).collect();
    assert_eq!(reported, [("synced", 0), ("s n1,n2", 60), ("gone s", 60)]);
}

#[tokio::test(start_paused = true)]
async fn node_shards_are_streamed_like_every_kind() {
    let reported =
        followed(2, |_| watch(vec![fake::added(&shard(&["n1"])), end_of_list("8")])).await;
    assert_eq!(reported, [("s n1".to_owned(), 0), ("synced".to_owned(), 0)]);
}

#[tokio::test(start_paused = true)]
async fn core_95_the_status_is_put_and_the_rest_stays() {
    let effect = || Effect::NodeShardStatus {
        shard: "s".into(),
        nodes_in_use: vec!["1".into(), "3".into()],
        nodes_to_remove: Vec::new(),
        nodes_to_add: vec!["2".into()],
    };
    let stored = shard(&["1", "2", "3"]);
    let (log, heard) = perform(effect(), move |_| json_answer(200, stored.clone())).await;
    let mut wanted = shard(&["1", "2", "3"]);
    wanted["status"]["nodesInUse"] = json!(["1", "3"]);
    wanted["status"]["nodesToRemove"] = json!([]);
    wanted["status"]["nodesToAdd"] = json!(["2"]);
    assert_eq!(log.lines(), [format!("GET {SHARDS}/s"), format!("PUT {SHARDS}/s/status")]);
    assert_eq!(log.of("PUT")[0].body, wanted);
    assert!(heard.is_empty());
    let (_, heard) = perform(effect(), |_| refusal(500, "InternalError", "etcd")).await;
    assert!(matches!(heard[..], [ClusterEvent::NodeShardFailed { .. }]));
}

#[tokio::test(start_paused = true)]
async fn core_90_exactly_the_gate_of_the_queue_is_deleted() {
    let effect = || Effect::RemoveGate { pod: ObjectKey::new("ns", "p"), uid: "uid-p".into() };
    let (log, heard) = perform(effect(), |_| json_answer(200, fake::pod("p"))).await;
    assert_eq!(log.lines(), ["PATCH /api/v1/namespaces/ns/pods/p"]);
    let gate = "scheduling.volcano.sh/queue-allocation-gate";
    let patch = json!({"metadata": {"uid": "uid-p"},
        "spec": {"schedulingGates": [{"name": gate, "$patch": "delete"}]}});
    assert_eq!(log.of("PATCH")[0].body, patch);
    assert!(heard.is_empty());
    let (_, heard) = perform(effect(), |_| refusal(403, "Forbidden", "no")).await;
    assert!(matches!(heard[..], [ClusterEvent::PodStatusFailed { .. }]));
    let (_, heard) = perform(effect(), |_| fake::not_found()).await;
    assert!(heard.is_empty(), "a pod that is gone needs nothing");
}
