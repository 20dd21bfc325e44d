//! Decisions become writes, and failed writes are tried again. Specification: core.md 7.

use serde_json::Value;
use vc_scheduler::meter::State;
use vc_sim::serve::{EVENTS, POD_GROUPS, PODS, QUEUES};

use crate::cluster::{Cluster, Fault, LOST, Replica, condition, count, gang, is, no_fault, waits};

#[tokio::test]
async fn a_gang_is_bound_over_http() {
    let cluster = Cluster::start(gang("train", 3, "10"), &[], no_fault).await;
    for index in 0..3 {
        cluster.bound(&format!("train-{index}")).await;
    }
    let running = |value: &Value| is(value, "train") && value["status"]["phase"] == "Running";
    let group = cluster.until(&POD_GROUPS, running).await;
    assert_eq!(group["spec"]["minMember"], 3);
    let used = |value: &Value| value["status"]["allocated"]["cpu"] == "30";
    cluster.until(&QUEUES, |value| is(value, "default") && used(value)).await;
    cluster.until(&QUEUES, |value| is(value, "root") && used(value)).await;
    let scheduled = |value: &Value| value["reason"] == "Scheduled" && value["type"] == "Normal";
    cluster.until(&EVENTS, scheduled).await;
    let path = "POST /api/v1/namespaces/default/pods/train-0/binding";
    assert_eq!(count(&cluster.replica.log, path), 1);
    cluster.stop().await;
}

#[tokio::test]
async fn core_79_a_refused_bind_is_told_and_tried_again() {
    const BIND: &str = "POST /api/v1/namespaces/default/pods/train-0/binding";
    // Only what is no conflict pauses.
    let faults: [(Fault, &str); 2] = [
        (|line, before| (line == BIND && before == 0).then_some(409), ""),
        (
            |line, before| (line == BIND && before == 0).then_some(500),
            ". It is tried again after 1 s, at ",
        ),
    ];
    for (fault, pause) in faults {
        let args = ["--schedule-period=50ms"];
        let cluster = Cluster::start(gang("train", 1, "1"), &args, fault).await;
        let refused = cluster.until(&PODS, |pod| waits(pod, "train-0", "SchedulerError")).await;
        let found = condition(&refused, "PodScheduled").unwrap();
        assert_eq!(found["status"], "False");
        let message = found["message"].as_str().unwrap();
        let wanted = format!("failed to bind to node node-0: no luck{pause}");
        assert!(message.starts_with(&wanted), "{message}");
        assert_eq!(message == wanted, pause.is_empty(), "{message}");
        cluster.until(&EVENTS, |event| event["reason"] == "FailedScheduling").await;
        cluster.bound("train-0").await;
        assert_eq!(count(&cluster.replica.log, BIND), 2);
        assert!(2 <= count(&cluster.replica.log, "GET /api/v1/namespaces/default/pods/train-0"));
        cluster.stop().await;
    }
}

#[tokio::test]
async fn core_82_a_constant_refusal_is_written_once() {
    let cluster = Cluster::start(gang("big", 1, "1000"), &[], no_fault).await;
    cluster.until(&PODS, |pod| waits(pod, "big-0", "Unschedulable")).await;
    // Each small gang that is bound proves one more cycle.
    for index in 0..5 {
        let name = format!("small-{index}");
        cluster.create(gang(&name, 1, "1")).await;
        cluster.bound(&format!("{name}-0")).await;
    }
    let puts = count(&cluster.replica.log, "PUT /api/v1/namespaces/default/pods/big-0/status");
    assert_eq!(puts, 1);
    let about = |event: &Value| {
        event["involvedObject"]["name"] == "big-0" && event["reason"] == "FailedScheduling"
    };
    let first = cluster.until(&EVENTS, about).await;
    assert_eq!(first["count"], 1);
    let events = cluster.server.store.list(&EVENTS, None).objects;
    assert_eq!(events.iter().filter(|event| about(&event.value)).count(), 1);
    cluster.stop().await;
}

#[tokio::test]
async fn a_bind_whose_answer_is_lost_is_not_repeated() {
    const BIND: &str = "POST /api/v1/namespaces/default/pods/train-0/binding";
    let lost: Fault = |line, before| (line == BIND && before == 0).then_some(LOST);
    let cluster = Cluster::start(gang("train", 1, "1"), &[], lost).await;
    let running = |value: &Value| is(value, "train") && value["status"]["phase"] == "Running";
    cluster.until(&POD_GROUPS, running).await;
    assert_eq!(count(&cluster.replica.log, BIND), 1);
    cluster.stop().await;
}

#[tokio::test]
async fn a_bare_pod_is_scheduled_if_that_is_wanted() {
    let mut bare = gang("alone", 1, "1").remove(1);
    bare["metadata"].as_object_mut().unwrap().remove("annotations");
    let cluster = Cluster::start(vec![bare], &["--bare-pods=schedule"], no_fault).await;
    cluster.bound("alone-0").await;
    cluster.stop().await;
}

#[tokio::test]
async fn two_replicas_without_election_bind_no_pod_twice() {
    let cluster = Cluster::start(gang("train", 4, "1"), &[], no_fault).await;
    let args = ["--leader-elect=false", "--schedule-period=50ms"];
    let other = Replica::start(&cluster.server, &args, no_fault);
    other.reaches(State::Leading { synced: true }).await;
    cluster.create(gang("next", 4, "1")).await;
    for index in 0..4 {
        cluster.bound(&format!("train-{index}")).await;
        cluster.bound(&format!("next-{index}")).await;
    }
    // A second bind of a pod is refused, so the node of a pod never changes.
    let running = |value: &Value| is(value, "next") && value["status"]["phase"] == "Running";
    cluster.until(&POD_GROUPS, running).await;
    other.stop().await;
    cluster.stop().await;
}
