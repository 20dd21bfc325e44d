//! Two replicas with leader election, also of two versions: one schedules, and when it ends the other
//! goes on, with nothing bound twice. Specification: core.md 1.4, 1.6 (C-05).

use serde_json::Value;

use crate::api::{text, until};
use crate::cluster::{Cluster, LEASES};
use crate::process::Scheduler;
use crate::restarts::{SLOW, all_run, bound, load, something_waits};

const SOON: &str = "--schedule-period=100ms";

/// Longer than a test waits: whoever leads next got the Lease from its holder.
const LONG: [&str; 4] = [
    SOON,
    "--leader-elect-lease-duration=600s",
    "--leader-elect-renew-deadline=500s",
    "--leader-elect-retry-period=200ms",
];

/// Short enough to wait for its end, long enough for a machine that stands still for a while.
pub(crate) const SHORT: [&str; 4] = [
    SOON,
    "--leader-elect-lease-duration=12s",
    "--leader-elect-renew-deadline=10s",
    "--leader-elect-retry-period=1s",
];

async fn lease(cluster: &Cluster) -> Value {
    cluster.api.get(&format!("{LEASES}/volcano")).await.unwrap_or_default()
}

/// Waits until somebody else leads; its identity.
pub(crate) async fn leader_after(cluster: &Cluster, before: &str) -> String {
    until("another leader", async || {
        let lease = lease(cluster).await;
        let holder = text(&lease["spec"]["holderIdentity"]).to_owned();
        (!holder.is_empty() && holder != before).then_some(holder)
    })
    .await
}

async fn told_as_leader(cluster: &Cluster, identity: &str) {
    let reported = format!("{identity} became leader");
    until("the event of an election", async || {
        let events = cluster.api.list("/api/v1/namespaces/volcano-system/events").await;
        let is_told = |event: &Value| event["message"] == *reported && event["type"] == "Normal";
        events.iter().any(is_told).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_14_sigterm_hands_the_lease_over() {
    let cluster = Cluster::take("lease-released", 1).await;
    let first = Scheduler::start_with(&cluster, &LONG).await;
    let leader = leader_after(&cluster, "").await;
    assert!(lease(&cluster).await["spec"]["leaseDurationSeconds"] == 600);
    cluster.submit("one", 1, "1").await;
    cluster.running("one", 1).await;
    assert_eq!(first.terminate().await.code(), Some(0));
    let released = lease(&cluster).await["spec"].clone();
    assert_eq!(text(&released["holderIdentity"]), "");
    assert_eq!(released["leaseDurationSeconds"], 1);

    let second = Scheduler::start_with(&cluster, &LONG).await;
    let next = leader_after(&cluster, &leader).await;
    // The standby has made no decision while another leads.
    let _third = Scheduler::start_with(&cluster, &LONG).await;
    cluster.submit("two", 1, "1").await;
    cluster.running("two", 1).await;
    // It has one attempt at it, which ends with the process.
    told_as_leader(&cluster, &next).await;
    assert_eq!(second.terminate().await.code(), Some(0));
    leader_after(&cluster, &next).await;
    cluster.submit("three", 1, "1").await;
    cluster.running("three", 1).await;
    assert_eq!(lease(&cluster).await["spec"]["leaseTransitions"], 2);
    assert_eq!(cluster.audit.count(|asked| asked.code == 403), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_leader_is_replaced_in_the_middle() {
    let cluster = Cluster::take("leader-killed", 10).await;
    let gangs: Vec<String> = (0..20).map(|index| format!("gang-{index}")).collect();
    load(cluster.api.clone(), cluster.namespace, gangs.clone()).await;
    let slow = [&SHORT[..], &SLOW].concat();
    let first = Scheduler::start_with(&cluster, &slow).await;
    let leader = leader_after(&cluster, "").await;
    let _second = Scheduler::start_with(&cluster, &SHORT).await;
    bound(&cluster, 10).await;
    first.kill().await;
    something_waits(&cluster).await;
    leader_after(&cluster, &leader).await;
    all_run(&cluster, &gangs).await;
}

/// A rolling upgrade, and the way back, while gangs come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_versions_hand_over_under_load() {
    let cluster = Cluster::take("two-versions", 15).await;
    let gangs: Vec<String> = (0..30).map(|index| format!("gang-{index}")).collect();
    let submit = |numbers: std::ops::Range<usize>| {
        load(cluster.api.clone(), cluster.namespace, gangs[numbers].to_vec())
    };
    let slow = [&SHORT[..], &SLOW].concat();
    submit(0..10).await;
    let earlier = Scheduler::start_earlier(&cluster, &slow);
    let of_earlier = leader_after(&cluster, "").await;
    let later = Scheduler::start_with(&cluster, &slow).await;
    bound(&cluster, 10).await;
    submit(10..20).await;
    something_waits(&cluster).await;
    assert!(earlier.terminate().await.success());
    let of_later = leader_after(&cluster, &of_earlier).await;
    bound(&cluster, 60).await;
    let _again = Scheduler::start_earlier(&cluster, &SHORT);
    submit(20..30).await;
    something_waits(&cluster).await;
    later.kill().await;
    leader_after(&cluster, &of_later).await;
    all_run(&cluster, &gangs).await;
}
