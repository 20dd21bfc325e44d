//! Status and annotations of PodGroups and queues: written whole, with what we do not know kept
//! (core.md 7.5-7.7).

use serde_json::{Value, json};
use vc_engine::Effect;
use vc_model::{ClusterEvent, ObjectKey, PodGroupCondition, PodGroupPhase, PodGroupStatus};

use crate::fake::{json_answer, list, refusal};
use crate::writer::{condition_event, edge, events};

const POD_GROUPS: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups";

pub(crate) fn pod_group(phase: &str, version: &str) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "pg", "namespace": "ns", "uid": "uid-pg", "resourceVersion": version,
            "labels": {"a": "b"}},
        "spec": {"minMember": 2, "novelty": true},
        "status": {"phase": phase, "running": 5, "novelty": 1}})
}

pub(crate) fn pod_group_status() -> Effect {
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
async fn a_status_that_is_stored_already_is_not_written_again() {
    let Effect::PodGroupStatus { status: wanted, .. } = pod_group_status() else { panic!() };
    let mut stored = pod_group("Inqueue", "7");
    stored["status"] = json!({"phase": "Inqueue", "succeeded": 1, "novelty": 1, "conditions": [
        {"type": "Unschedulable", "status": "True", "transitionID": "s-1",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "NotEnoughResources",
            "message": "2/2 tasks in gang unschedulable"}]});
    let (log, outcomes) =
        edge(move |_| list(&[stored.clone()])).run(vec![pod_group_status()]).await;
    assert!(log.of("PUT").is_empty());
    let [ClusterEvent::PodGroupWritten { resource_version, status, .. }] = &outcomes[..] else {
        panic!()
    };
    assert_eq!((&**resource_version, &**status), ("7", &wanted));

    let stored = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "q"}, "status": {"allocated": {"cpu": "2"}}});
    let allocated = vec![("cpu".to_owned(), "2".to_owned())];
    let effect = Effect::QueueStatus { queue: "q".into(), allocated };
    let (log, _) = edge(move |_| json_answer(200, stored.clone())).run(vec![effect]).await;
    assert_eq!((log.of("GET").len(), log.of("PUT").len()), (1, 0));
}
