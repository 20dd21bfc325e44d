//! Writes: bodies, conflicts, failures and what the engine hears of them (core.md 7).

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use vc_engine::{About, Effect, EvictReason, Nomination};
use vc_kube::{Clients, Decisions, Incoming, inbox, write};
use vc_model::{
    Allocation, ClusterEvent, DeviceResult, ObjectKey, PodGroupCondition, PodGroupPhase,
    PodGroupStatus,
};

use crate::fake::{self, Answer, Log, Seen, json_answer, list, not_found, pod, refusal};

const POD: &str = "/api/v1/namespaces/ns/pods/p";
const POD_GROUPS: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups";
const EVENTS: &str = "POST /api/v1/namespaces/ns/events";

/// The writer against a server.
struct Edge {
    log: Log,
    effects: mpsc::Sender<Decisions>,
    outcomes: mpsc::Receiver<Incoming>,
    writer: JoinHandle<()>,
}

/// Events are stored; the rest is up to the handler.
fn edge(handle: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static) -> Edge {
    let (client, log) = fake::client(move |seen| match seen.line.contains("/events") {
        true => json_answer(201, seen.body.clone()),
        false => handle(seen),
    });
    let (sender, outcomes) = inbox();
    let (effects, batches) = mpsc::channel(4);
    let writer =
        write(Clients::shared(client), "volcano".into(), sender, batches, fake::unobserved());
    Edge { log, effects, outcomes, writer: tokio::spawn(writer) }
}

impl Edge {
    /// Performs everything and ends; the outcomes in the order in which they came.
    async fn run(mut self, effects: Vec<Effect>) -> (Log, Vec<ClusterEvent>) {
        self.effects.send(effects.into()).await.unwrap();
        drop(self.effects);
        self.writer.await.unwrap();
        let mut events = Vec::new();
        while let Some(message) = self.outcomes.recv().await {
            let Incoming::Event(event) = message else { panic!("not an event") };
            events.push(event);
        }
        (self.log, events)
    }

    async fn send(&self, effect: Effect) {
        self.effects.send(vec![effect].into()).await.unwrap();
    }

    async fn outcome(&mut self) -> ClusterEvent {
        match self.outcomes.recv().await {
            Some(Incoming::Event(event)) => event,
            other => panic!("not an event: {other:?}"),
        }
    }
}

fn key() -> ObjectKey {
    ObjectKey::new("ns", "p")
}

fn uid() -> Arc<str> {
    "uid-p".into()
}

fn bind() -> Effect {
    let annotations = vec![("volcano.sh/topology-decision".into(), "x".into())];
    Effect::Bind { pod: key(), uid: uid(), node: "n1".into(), annotations }
}

fn condition(nomination: Nomination) -> Effect {
    let (reason, message) = ("Unschedulable".into(), "no room".into());
    Effect::PodCondition { pod: key(), uid: uid(), reason, message, nomination }
}

fn evict() -> Effect {
    Effect::Evict {
        pod: key(),
        uid: uid(),
        pod_group: Some(Box::new((ObjectKey::new("ns", "pg"), "uid-pg".into()))),
        reason: EvictReason::Preempt,
        for_pod: None,
        for_pod_group: Some(Box::new(ObjectKey::new("ns", "high"))),
        message: None,
    }
}

/// Type, reason and message of the events that were written.
fn events(log: &Log) -> Vec<(String, String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |seen: &Seen| {
        let about = text(&seen.body["involvedObject"]["kind"]);
        let body = &seen.body;
        (about, text(&body["type"]), text(&body["reason"]), text(&body["message"]))
    };
    log.of(EVENTS).iter().map(row).collect()
}

fn event(about: &str, kind: &str, reason: &str, text: &str) -> (String, String, String, String) {
    (about.into(), kind.into(), reason.into(), text.into())
}

fn success() -> Option<Answer> {
    json_answer(201, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
}

#[tokio::test(start_paused = true)]
async fn eco_8_core_78_bind_names_pod_uid_and_node() {
    let (log, outcomes) = edge(|_| success()).run(vec![bind()]).await;
    let binds = log.of(&format!("POST {POD}/binding"));
    assert_eq!(binds.len(), 1);
    assert_eq!(
        binds[0].body,
        json!({"apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": "p", "namespace": "ns", "uid": "uid-p",
                "annotations": {"volcano.sh/topology-decision": "x"}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}})
    );
    let text = "Successfully assigned ns/p to n1";
    assert_eq!(events(&log), [event("Pod", "Normal", "Scheduled", text)]);
    assert!(outcomes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn eco_8_a_silent_server_is_given_up_after_30_seconds() {
    let mut edge = edge(|_| None);
    let start = tokio::time::Instant::now();
    edge.send(bind()).await;
    let ClusterEvent::BindFailed { error, .. } = edge.outcome().await else { panic!() };
    assert_eq!(error, "no answer within 30 s");
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn core_79_a_refused_bind_is_reported_and_the_pod_read_again() {
    let message = "pod p is already assigned to node \"n2\"";
    for code in [409, 500] {
        let mut edge = edge(move |seen| match (seen.line.starts_with("POST"), seen.before) {
            (true, _) => refusal(code, "Conflict", message),
            (false, 0) => refusal(500, "InternalError", "etcd"),
            (false, _) => json_answer(200, pod("p")),
        });
        edge.send(bind()).await;
        let ClusterEvent::BindFailed { uid, node, error } = edge.outcome().await else { panic!() };
        assert_eq!((&*uid, &*node, &*error), ("uid-p", "n1", message));
        let ClusterEvent::PodResynced(pod) = edge.outcome().await else { panic!() };
        assert_eq!(pod.key, key());
        assert_eq!(edge.log.of(&format!("GET {POD}")).len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_or_replaced_is_reported_deleted() {
    let mut other = pod("p");
    other["metadata"]["uid"] = "other".into();
    for (code, body) in [(404, json!({"kind": "Status", "code": 404})), (200, other)] {
        let mut edge = edge(move |seen| match seen.line.starts_with("POST") {
            true => not_found(),
            false => json_answer(code, body.clone()),
        });
        edge.send(bind()).await;
        assert!(matches!(edge.outcome().await, ClusterEvent::BindFailed { .. }));
        let ClusterEvent::PodDeleted { key: gone, uid } = edge.outcome().await else { panic!() };
        assert_eq!((gone, &*uid), (key(), "uid-p"));
    }
}

/// A pod with things that scheduling does not know.
fn rich_pod() -> Value {
    let mut object = pod("p");
    object["metadata"]["finalizers"] = json!(["x.io/keep"]);
    object["spec"]["novelty"] = json!({"deep": [1, 2.5]});
    object["status"]["conditions"] = json!([
        {"type": "Initialized", "status": "True"},
        {"type": "PodScheduled", "status": "False", "reason": "Old", "message": "old",
            "lastTransitionTime": "2026-01-02T03:04:05Z"}]);
    object
}

#[tokio::test(start_paused = true)]
async fn eco_7_a_status_write_keeps_what_it_does_not_know() {
    let (log, outcomes) = edge(|_| json_answer(200, rich_pod()))
        .run(vec![condition(Nomination::Set("n3".into()))])
        .await;
    let put = log.of(&format!("PUT {POD}/status"))[0].body.clone();
    let mut wanted = rich_pod();
    wanted["status"]["nominatedNodeName"] = "n3".into();
    wanted["status"]["conditions"][1] = json!({"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "no room", "lastProbeTime": null,
        "lastTransitionTime": "2026-01-02T03:04:05Z"});
    assert_eq!(put, wanted);
    assert_eq!(events(&log), [event("Pod", "Warning", "FailedScheduling", "no room")]);
    assert!(outcomes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn eco_7_a_conflict_is_retried_once() {
    for (conflicts, n_outcomes) in [(1, 0), (2, 1)] {
        let handle = move |seen: &Seen| match seen.line.starts_with("PUT") {
            true if seen.before < conflicts => refusal(409, "Conflict", "changed"),
            _ => json_answer(200, pod("p")),
        };
        let (log, outcomes) = edge(handle).run(vec![condition(Nomination::Keep)]).await;
        assert_eq!(log.of("GET").len(), 2);
        assert_eq!(log.of("PUT").len(), 2);
        assert_eq!(outcomes.len(), n_outcomes);
        let failed = |event: &ClusterEvent| matches!(event, ClusterEvent::PodStatusFailed { .. });
        assert!(outcomes.iter().all(failed));
    }
}

#[tokio::test(start_paused = true)]
async fn eco_7_nothing_is_written_to_another_pod_or_a_bound_one() {
    let mut other = pod("p");
    other["metadata"]["uid"] = "other".into();
    let mut bound = pod("p");
    bound["spec"]["nodeName"] = "n1".into();
    let mut same = pod("p");
    same["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "no room"}]);
    for object in [other, bound, same] {
        let (log, outcomes) = edge(move |_| json_answer(200, object.clone()))
            .run(vec![condition(Nomination::Keep)])
            .await;
        assert!(log.of("PUT").is_empty());
        assert!(outcomes.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn core_83_nomination_is_kept_set_or_cleared() {
    let cases = [
        (Nomination::Keep, json!("old")),
        (Nomination::Set("new".into()), json!("new")),
        (Nomination::Clear, Value::Null),
    ];
    for (nomination, wanted) in cases {
        let mut object = pod("p");
        object["status"]["nominatedNodeName"] = "old".into();
        let (log, _) =
            edge(move |_| json_answer(200, object.clone())).run(vec![condition(nomination)]).await;
        assert_eq!(log.of("PUT")[0].body["status"]["nominatedNodeName"], wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn eco_9_core_81_evict__conditions() {
    let (log, outcomes) = edge(|seen| match seen.line.starts_with("DELETE") {
        true => not_found(),
        false => json_answer(200, pod("p")),
    })
    .run(vec![evict()])
    .await;
    let conditions = &log.of(&format!("PUT {POD}/status"))[0].body["status"]["conditions"];
    assert_eq!(conditions[0]["type"], "Ready");
    assert_eq!(conditions[0]["status"], "False");
    assert_eq!(conditions[0]["reason"], "Evict");
    assert_eq!(conditions[0]["message"], "Pod is evicted, because of preempt");
    assert_eq!(conditions[1]["type"], "DisruptionTarget");
    assert_eq!(conditions[1]["status"], "True");
    assert_eq!(conditions[1]["reason"], "PreemptionByScheduler");
    let text = "volcano: preempting to accommodate a higher priority pod";
    assert_eq!(conditions[1]["message"], text);
    let deletes = log.of(&format!("DELETE {POD}"));
    assert_eq!(deletes[0].body["preconditions"], json!({"uid": "uid-p"}));
    assert_eq!(deletes[0].body.get("gracePeriodSeconds"), None);
    let wanted = [
        event("PodGroup", "Normal", "Evict", "preempt"),
        event(
            "Pod",
            "Warning",
            "Evict",
            "Pod is evicted, because of preempt: for PodGroup ns/high",
        ),
    ];
    assert_eq!(events(&log), wanted);
    assert!(outcomes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn core_81_the_delete_comes_whatever_the_status_write_does() {
    let mut marked = pod("p");
    marked["status"]["conditions"] = json!([
        {"type": "Ready", "status": "False", "reason": "Evict",
            "message": "Pod is evicted, because of preempt"},
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
            "message": "volcano: preempting to accommodate a higher priority pod"}]);
    let (log, outcomes) = edge(move |_| json_answer(200, marked.clone())).run(vec![evict()]).await;
    assert_eq!((log.of("PUT").len(), log.of("DELETE").len()), (0, 1));
    assert!(outcomes.is_empty());

    let mut edge = edge(|seen| match seen.line.starts_with("PUT") {
        true => refusal(409, "Conflict", "changed"),
        false => json_answer(200, pod("p")),
    });
    edge.send(evict()).await;
    assert!(matches!(edge.outcome().await, ClusterEvent::PodResynced(_)));
    assert_eq!((edge.log.of("PUT").len(), edge.log.of("DELETE").len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_nomination_is_taken_away_from_a_bound_pod_too() {
    let clear = || Effect::ClearNomination { pod: key(), uid: uid() };
    let mut object = pod("p");
    object["spec"]["nodeName"] = "n1".into();
    for (nominated, n_puts) in [(json!("n2"), 1), (Value::Null, 0)] {
        object["status"]["nominatedNodeName"] = nominated;
        let stored = object.clone();
        let (log, outcomes) =
            edge(move |_| json_answer(200, stored.clone())).run(vec![clear()]).await;
        let puts = log.of(&format!("PUT {POD}/status"));
        assert_eq!(puts.len(), n_puts);
        assert!(puts.iter().all(|put| put.body["status"]["nominatedNodeName"].is_null()));
        assert!(events(&log).is_empty() && outcomes.is_empty());
    }
}

fn pod_group(phase: &str, version: &str) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "pg", "namespace": "ns", "uid": "uid-pg", "resourceVersion": version,
            "labels": {"a": "b"}},
        "spec": {"minMember": 2, "novelty": true},
        "status": {"phase": phase, "running": 5, "novelty": 1}})
}

fn pod_group_status() -> Effect {
    let condition = PodGroupCondition {
        kind: "Unschedulable".into(),
        status: "True".into(),
        transition_id: "s-1".into(),
        last_transition_time: "2026-01-01T00:00:00Z".into(),
        reason: "NotEnoughResources".into(),
        message: "2/2 tasks in gang unschedulable".into(),
    };
    let status = PodGroupStatus {
        phase: PodGroupPhase::Inqueue,
        conditions: [condition].into(),
        succeeded: 1,
        ..PodGroupStatus::default()
    };
    let pod_group = ObjectKey::new("ns", "pg");
    Effect::PodGroupStatus { pod_group, uid: "uid-pg".into(), status, phase_changed: true }
}

#[tokio::test(start_paused = true)]
async fn a_pod_group_is_listed_changed_and_put_whole() {
    let (log, outcomes) = edge(|seen| match seen.line.starts_with("PUT") {
        true => json_answer(200, pod_group("Inqueue", "8")),
        false => list(&[pod_group("Pending", "7")]),
    })
    .run(vec![pod_group_status()])
    .await;
    let read = &log.of(&format!("GET {POD_GROUPS}"))[0];
    assert!(read.query.contains("fieldSelector=metadata.name%3Dpg"), "{}", read.query);
    let mut wanted = pod_group("Inqueue", "7");
    wanted["status"] = json!({"phase": "Inqueue", "succeeded": 1, "novelty": 1, "conditions": [
        {"type": "Unschedulable", "status": "True", "transitionID": "s-1",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "NotEnoughResources",
            "message": "2/2 tasks in gang unschedulable"}]});
    assert_eq!(log.of(&format!("PUT {POD_GROUPS}/pg"))[0].body, wanted);
    let [ClusterEvent::PodGroupWritten { resource_version, .. }] = &outcomes[..] else { panic!() };
    assert_eq!(&**resource_version, "8");
}

#[tokio::test(start_paused = true)]
async fn core_86_a_conflict_is_retried_unless_the_phase_was_changed() {
    for (phase, n_puts, written) in [("Pending", 2, true), ("Running", 1, false)] {
        let (log, outcomes) = edge(move |seen| match (seen.line.starts_with("PUT"), seen.before) {
            (true, 0) => refusal(409, "Conflict", "changed"),
            (true, _) => json_answer(200, pod_group("Inqueue", "9")),
            (false, 0) => list(&[pod_group("Pending", "7")]),
            (false, _) => list(&[pod_group(phase, "8")]),
        })
        .run(vec![pod_group_status(), condition_event()])
        .await;
        assert_eq!(log.of("PUT").len(), n_puts);
        assert_eq!(matches!(outcomes[0], ClusterEvent::PodGroupWritten { .. }), written);
        assert_eq!(matches!(outcomes[0], ClusterEvent::PodGroupFailed { .. }), !written);
        assert_eq!(events(&log).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_bind_that_the_server_has_no_time_for_is_repeated_as_it_says() {
    let start = tokio::time::Instant::now();
    let (log, outcomes) = edge(|seen| match seen.before {
        0 => refusal(429, "TooManyRequests", "later"),
        1 => json_answer(
            429,
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429,
                "details": {"retryAfterSeconds": 7}}),
        ),
        _ => json_answer(201, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})),
    })
    .run(vec![bind()])
    .await;
    assert_eq!((log.of("POST /api/v1/namespaces/ns/pods/p/binding").len(), outcomes.len()), (3, 0));
    assert_eq!(start.elapsed().as_secs(), 8);
    assert_eq!(events(&log).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_status_needs_no_list_unless_the_object_was_changed_meanwhile() {
    let mut edge = edge(|seen| match (seen.line.starts_with("PUT"), seen.before) {
        (true, 2) => refusal(409, "Conflict", "changed"),
        (true, n_before) => json_answer(200, pod_group("Inqueue", &n_before.to_string())),
        (false, _) => list(&[pod_group("Inqueue", "7")]),
    });
    for (n_lists, n_puts) in [(1, 1), (1, 2), (2, 4)] {
        edge.send(pod_group_status()).await;
        assert!(matches!(edge.outcome().await, ClusterEvent::PodGroupWritten { .. }));
        assert_eq!((edge.log.of("GET").len(), edge.log.of("PUT").len()), (n_lists, n_puts));
    }
}

/// As enqueue says it; the warning of a group that waits would rest.
fn condition_event() -> Effect {
    let about = About::PodGroup { key: ObjectKey::new("ns", "pg"), uid: "uid-pg".into() };
    Effect::Event { about, warning: false, reason: "Unschedulable", message: "m".into() }
}

#[tokio::test(start_paused = true)]
async fn a_queue_keeps_the_status_of_its_controller() {
    let queue = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "q", "resourceVersion": "4"}, "spec": {"weight": 3},
        "status": {"state": "Open", "pending": 2, "allocated": {"cpu": "1", "x.io/gpu": "1"}}});
    let effect = || Effect::QueueStatus {
        queue: "q".into(),
        allocated: vec![("cpu".into(), "3".into()), ("memory".into(), "0".into())],
    };
    let stored = queue.clone();
    let (log, outcomes) = edge(move |_| json_answer(200, stored.clone())).run(vec![effect()]).await;
    let puts = log.of("PUT /apis/scheduling.volcano.sh/v1beta1/queues/q/status");
    let mut wanted = queue;
    wanted["status"]["allocated"] = json!({"cpu": "3", "memory": "0"});
    assert_eq!(puts[0].body, wanted);
    assert!(outcomes.is_empty());
    let (_, outcomes) = edge(|_| refusal(500, "InternalError", "etcd")).run(vec![effect()]).await;
    assert!(matches!(outcomes[..], [ClusterEvent::QueueFailed { .. }]));
}

#[tokio::test(start_paused = true)]
async fn an_annotation_of_a_queue_leaves_everything_else() {
    let queue = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "q", "resourceVersion": "4", "annotations": {"a": "b"}},
        "spec": {"weight": 3}, "status": {"state": "Open"}});
    let effect = |value: &str| Effect::QueueAnnotation {
        queue: "q".into(),
        key: "cohort.volcano.sh/weightedShare",
        value: value.into(),
    };
    let stored = queue.clone();
    let (log, _) = edge(move |_| json_answer(200, stored.clone())).run(vec![effect("125")]).await;
    let puts = log.of("PUT /apis/scheduling.volcano.sh/v1beta1/queues/q");
    let mut wanted = queue;
    wanted["metadata"]["annotations"]["cohort.volcano.sh/weightedShare"] = json!("125");
    assert_eq!(puts.len(), 1);
    assert_eq!((puts[0].line.ends_with("/status"), &puts[0].body), (false, &wanted));
    // It says so already.
    let (log, _) = edge(move |_| json_answer(200, wanted.clone())).run(vec![effect("125")]).await;
    assert_eq!(log.of("PUT").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_raises_its_count() {
    let (log, _) = edge(|_| success()).run(vec![condition_event(); 3]).await;
    let created = &log.of(EVENTS)[0].body;
    assert_eq!(created["source"]["component"], "volcano");
    assert_eq!(created["involvedObject"]["apiVersion"], "scheduling.volcano.sh/v1beta1");
    assert_eq!(created["count"], 1);
    assert_eq!(log.of(EVENTS).len(), 1);
    let name = created["metadata"]["name"].as_str().unwrap();
    let patches = log.of(&format!("PATCH /api/v1/namespaces/ns/events/{name}"));
    let counts: Vec<&Value> = patches.iter().map(|seen| &seen.body["count"]).collect();
    assert_eq!(counts, [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn eco_16_a_flood_of_events_delays_no_bind() {
    let (client, log) = fake::client(|seen| match seen.line.contains("/events") {
        true => None,
        false => success(),
    });
    let (sender, _outcomes) = inbox();
    let (effects, batches) = mpsc::channel(4);
    let writer =
        write(Clients::shared(client), "volcano".into(), sender, batches, fake::unobserved());
    let writer = tokio::spawn(writer);
    let flood = (0..10_000).map(|index| {
        let about = About::Pod { key: key(), uid: uid() };
        let message = format!("m{index}").into();
        Effect::Event { about, warning: false, reason: "Test", message }
    });
    effects.send(flood.chain([bind()]).collect::<Vec<_>>().into()).await.unwrap();
    while log.of(&format!("POST {POD}/binding")).is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(log.of(EVENTS).len() <= 1);
    writer.abort();
}

#[tokio::test(start_paused = true)]
async fn events_yield_while_decisions_are_written() {
    let silent = edge(|_| None);
    let events = vec![condition_event(); 3];
    silent.effects.send([vec![bind()], events].concat().into()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(75)).await;
    // One at its slow pace, the others wait for the answer that does not come.
    assert_eq!(silent.log.of("POST /api/v1/namespaces/ns/events").len(), 1);
    assert_eq!(silent.log.of("PATCH").len(), 0);
    silent.writer.abort();
    let (log, _) = edge(|_| success()).run(vec![bind(), condition_event()]).await;
    assert_eq!(log.of("POST /api/v1/namespaces/ns/events").len(), 2);
}

/// So many effects of their own objects.
fn binds(count: usize) -> Vec<Effect> {
    let bind = |index| {
        let (pod, uid) = (ObjectKey::new("ns", &format!("p{index}")), format!("u{index}").into());
        Effect::Bind { pod, uid, node: "n1".into(), annotations: Vec::new() }
    };
    (0..count).map(bind).collect()
}

fn tales(count: usize) -> Vec<Effect> {
    let event = |index| {
        let (key, uid) = (ObjectKey::new("ns", &format!("p{index}")), format!("u{index}").into());
        let about = About::Pod { key, uid };
        Effect::Event { about, warning: false, reason: "Test", message: "m".into() }
    };
    (0..count).map(event).collect()
}

#[tokio::test(start_paused = true)]
async fn threads_rest_only_while_more_waits_than_may_be_in_flight() {
    let cases = [
        (binds(10), 10, false),
        (binds(200), 96, true),
        (tales(10), 10, false),
        (tales(200), 32, true),
    ];
    for (effects, n_in_flight, rests) in cases {
        let (client, log) = fake::client(|seen| match seen.line.starts_with("POST") {
            true => None,
            false => not_found(),
        });
        let clients = Clients::shared(client);
        let backlog = clients.backlog.clone();
        let (sender, _outcomes) = inbox();
        let (decisions, batches) = mpsc::channel(4);
        let writer = write(clients, "volcano".into(), sender, batches, fake::unobserved());
        let writer = tokio::spawn(writer);
        decisions.send(effects.into()).await.unwrap();
        while log.of("POST").len() < n_in_flight {
            tokio::task::yield_now().await;
        }
        // Whatever else would be sent without an answer is sent now.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(log.of("POST").len(), n_in_flight);
        assert_eq!(backlog.rest(Instant::now()).is_some(), rests, "{n_in_flight}");
        // No call is answered, so that all end by their time.
        drop(decisions);
        writer.await.unwrap();
        assert_eq!(backlog.rest(Instant::now()), None);
    }
}

const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims";

fn claim(status: Value) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c", "resourceVersion": "3"},
        "spec": {}, "status": status})
}

fn reserved() -> Value {
    json!({"allocation": {"devices": {"results": []}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}]})
}

fn unreserve() -> Effect {
    Effect::UnreserveClaims { pod: key(), uid: uid(), claims: vec!["c".into()] }
}

/// The answer to a bind may be lost: whether the pod needs its claims is what the server says.
#[tokio::test(start_paused = true)]
async fn claims_of_a_pod_that_is_bound_after_all_stay_reserved() {
    for (node, n_puts) in [(Value::Null, 1), (json!("n1"), 0)] {
        let (log, outcomes) = edge(move |seen| match seen.line.as_str() {
            line if line.ends_with("/pods/p") => {
                let mut stored = pod("p");
                stored["spec"]["nodeName"] = node.clone();
                json_answer(200, stored)
            }
            line if line.starts_with("PUT") => json_answer(200, seen.body.clone()),
            _ => list(&[claim(reserved())]),
        })
        .run(vec![unreserve()])
        .await;
        let puts = log.of(&format!("PUT {CLAIMS}/c/status"));
        assert_eq!((puts.len(), outcomes.len()), (n_puts, 0));
        assert!(puts.iter().all(|put| put.body["status"]["reservedFor"] == json!([])));
    }
}

#[tokio::test(start_paused = true)]
async fn claims_are_given_back_however_often_that_fails() {
    let edge = edge(|seen| match (seen.line.as_str(), seen.before) {
        (line, 0) if line.ends_with("/pods/p") => refusal(500, "InternalError", "etcd"),
        (line, _) if line.ends_with("/pods/p") => not_found(),
        (line, 0..2) if line.starts_with("PUT") => refusal(503, "ServiceUnavailable", "busy"),
        (line, _) if line.starts_with("PUT") => json_answer(200, seen.body.clone()),
        _ => list(&[claim(reserved())]),
    });
    edge.send(unreserve()).await;
    // Of the paused clock: all attempts are over.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(edge.log.of(&format!("GET {POD}")).len(), 4);
    assert_eq!(edge.log.of(&format!("PUT {CLAIMS}/c/status")).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn only_the_devices_that_were_decided_about_are_taken_away() {
    let deallocate = || {
        let chosen = DeviceResult { request: "r".into(), ..DeviceResult::default() };
        let allocation = Allocation { results: vec![chosen], ..Allocation::default() };
        Effect::DeallocateClaim {
            claim: ObjectKey::new("ns", "c"),
            uid: "uid-c".into(),
            allocation: Arc::new(allocation),
            consumer: uid(),
        }
    };
    let result =
        |device: &str| json!([{"request": "r", "driver": "", "pool": "", "device": device}]);
    for (device, n_puts) in [("", 1), ("other", 0)] {
        let mut status = reserved();
        status["allocation"]["devices"]["results"] = result(device);
        let (log, _) = edge(move |seen| match seen.line.starts_with("PUT") {
            true => json_answer(200, seen.body.clone()),
            false => list(&[claim(status.clone())]),
        })
        .run(vec![deallocate()])
        .await;
        assert_eq!(log.of("PUT").len(), n_puts, "{device:?}");
    }
}

/// Nobody knows then which nomination the pod has.
#[tokio::test(start_paused = true)]
async fn a_pod_whose_nomination_was_not_written_is_looked_at_again() {
    let clear = Effect::ClearNomination { pod: key(), uid: uid() };
    let cases = [
        (condition(Nomination::Keep), false),
        (condition(Nomination::Clear), true),
        (condition(Nomination::Set("n1".into())), true),
        (clear, true),
    ];
    for (effect, is_read_again) in cases {
        let text = format!("{effect:?}");
        let mut edge = edge(|seen| match seen.line.starts_with("PUT") {
            true => refusal(500, "InternalError", "etcd"),
            false => {
                let mut stored = pod("p");
                stored["status"]["nominatedNodeName"] = "n2".into();
                json_answer(200, stored)
            }
        });
        edge.send(effect).await;
        let failed = edge.outcome().await;
        assert!(matches!(failed, ClusterEvent::PodStatusFailed { .. }), "{text}");
        // Of the paused clock: whatever follows has followed.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let again = edge.outcomes.try_recv();
        let resynced =
            |message: &_| matches!(message, Incoming::Event(ClusterEvent::PodResynced(_)));
        assert_eq!(again.is_ok_and(|message| resynced(&message)), is_read_again, "{text}");
    }
}
