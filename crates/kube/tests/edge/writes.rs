//! Writes about pods: bodies, conflicts, failures and what the engine hears of them (core.md 7).

use std::time::Duration;

use serde_json::{Value, json};
use vc_engine::{Effect, EvictReason, Nomination};
use vc_kube::EngineMessage;
use vc_model::{ClusterEvent, ObjectKey, ReadAfter};

use crate::fake::{Seen, json_answer, not_found, pod, refusal};
use crate::writer::{POD, bind, condition, edge, event, events, key, success, uid};

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

/// What it was asked may still be done for as long as it gives a request itself: the room is kept.
#[tokio::test(start_paused = true)]
async fn eco_8_a_silent_server_is_given_up_after_30_seconds_and_believed_after_65() {
    let mut edge = edge(|_| None);
    let start = tokio::time::Instant::now();
    edge.send(bind()).await;
    let ClusterEvent::BindFailed { error, .. } = edge.outcome().await else { panic!() };
    assert_eq!(error, "no answer within 30 s");
    assert_eq!(start.elapsed().as_secs(), 65);
}

#[tokio::test(start_paused = true)]
async fn core_79_a_refused_bind_is_reported_and_the_pod_read_again() {
    let message = "pod p is already assigned to node \"n2\"";
    for (code, reason) in [(409, "Conflict"), (500, "InternalError")] {
        let mut edge = edge(move |seen| match (seen.line.starts_with("POST"), seen.before) {
            (true, _) => refusal(code, reason, message),
            (false, 0) => refusal(500, "InternalError", "etcd"),
            (false, _) => json_answer(200, pod("p")),
        });
        edge.send(bind()).await;
        let ClusterEvent::BindFailed { uid, node, error, pauses } = edge.outcome().await else {
            panic!()
        };
        assert_eq!(pauses, code != 409);
        assert_eq!((&*uid, &*node, &*error), ("uid-p", "n1", message));
        let ClusterEvent::PodRead { pod, after: ReadAfter::Bind } = edge.outcome().await else {
            panic!()
        };
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
    assert!(matches!(
        edge.outcome().await,
        ClusterEvent::PodRead { after: ReadAfter::Eviction, .. }
    ));
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
        // Of the paused clock, which runs on only while nobody has anything to do: whatever follows
        // has followed.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let again = edge.outcomes.try_recv();
        let read = |message: &_| {
            matches!(
                message,
                EngineMessage::Event(ClusterEvent::PodRead { after: ReadAfter::Nomination, .. })
            )
        };
        assert_eq!(again.is_ok_and(|message| read(&message)), is_read_again, "{text}");
    }
}
