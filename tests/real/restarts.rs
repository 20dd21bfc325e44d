//! The API server, or the scheduler, ends in the middle of the work and comes back: everything
//! runs in the end, nothing was bound twice, no node is over-committed.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::sleep;

use crate::api::{Api, code, until};
use crate::audit::Asked;
use crate::cluster::Cluster;
use crate::harness::End;
use crate::objects::{gang, name, node_of};
use crate::process::Scheduler;

/// Pods of a gang, of one CPU each: 20 gangs fill 10 nodes of 8 to the last CPU.
const GANG: u32 = 4;

/// Five bindings a second: what is left of them takes longer than whatever comes in between.
pub(crate) const SLOW: [&str; 2] = ["--kube-api-qps=5", "--kube-api-burst=20"];

/// Creates gangs whatever happens to the server.
pub(crate) async fn load(api: Api, namespace: &'static str, names: Vec<String>) {
    for name in names {
        for object in gang(namespace, &name, GANG, "1") {
            while let Err(error) = api.create(&object).await {
                if code(&error) == 409 {
                    break;
                }
                sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// All gangs run, each pod was bound by at most one binding, and no node has more than it holds.
pub(crate) async fn all_run(cluster: &Cluster, gangs: &[String]) {
    let mut used = BTreeMap::<String, u32>::new();
    for gang in gangs {
        for pod in cluster.running(gang, GANG as usize).await {
            *used.entry(node_of(&pod).to_owned()).or_default() += 1;
        }
    }
    assert!(used.values().all(|cpu| *cpu <= 8), "{used:?}");
    let twice = cluster.audit.binds().into_iter().filter(|(_, n_binds)| 1 < *n_binds);
    assert_eq!(twice.collect::<Vec<_>>(), []);
    // The server says so itself: what is bound already is refused.
    let bind = |asked: &Asked| asked.is_binding() && asked.code == 409;
    assert_eq!(cluster.audit.count(bind), 0);
}

pub(crate) async fn bound(cluster: &Cluster, wanted: usize) {
    until(&format!("{wanted} bound pods"), async || {
        let pods = cluster.api.list(&cluster.path("pods")).await;
        let n_bound = pods.iter().filter(|pod| !node_of(pod).is_empty()).count();
        (wanted <= n_bound).then_some(())
    })
    .await;
}

/// Whoever comes next has something to do.
pub(crate) async fn something_waits(cluster: &Cluster) {
    let pods = cluster.api.list(&cluster.path("pods")).await;
    assert!(pods.iter().any(|pod| node_of(pod).is_empty()), "all pods are bound already");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_restarts_under_load() {
    let mut cluster = Cluster::take("server-restarts", 10).await;
    let _scheduler = Scheduler::start(&cluster).await;
    let mut gangs = Vec::new();
    for (round, end) in [End::Graceful, End::Killed].into_iter().enumerate() {
        let new: Vec<String> = (0..10).map(|index| format!("gang-{round}-{index}")).collect();
        let before = gangs.len() * GANG as usize;
        gangs.extend(new.clone());
        let load = tokio::spawn(load(cluster.api.clone(), cluster.namespace, new));
        bound(&cluster, before + GANG as usize).await;
        cluster.end_server(end);
        cluster.start_server().await;
        load.await.unwrap();
        all_run(&cluster, &gangs).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_scheduler_is_replaced_in_the_middle() {
    let cluster = Cluster::take("scheduler-killed", 10).await;
    let gangs: Vec<String> = (0..20).map(|index| format!("gang-{index}")).collect();
    load(cluster.api.clone(), cluster.namespace, gangs.clone()).await;
    let slow = ["--leader-elect=false", SLOW[0], SLOW[1]];
    let first = Scheduler::start_with(&cluster, &slow).await;
    bound(&cluster, 10).await;
    first.kill().await;
    something_waits(&cluster).await;
    let _second = Scheduler::start(&cluster).await;
    all_run(&cluster, &gangs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_that_is_there_first_waits_for_the_server() {
    let mut cluster = Cluster::take("server-late", 1).await;
    cluster.submit("early", GANG, "1").await;
    cluster.end_server(End::Graceful);
    let _scheduler = Scheduler::start(&cluster).await;
    cluster.start_server().await;
    all_run(&cluster, &["early".to_owned()]).await;
}

/// The server has forgotten what happened since (410): everything is listed again, and what is gone
/// is gone for the scheduler too. It stands still while the server ends for the first time, so that
/// it cannot have seen what the second server is told, and the third one no longer knows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_has_expired_is_begun_anew() {
    let mut cluster = Cluster::take("expired-watch", 1).await;
    let scheduler = Scheduler::start(&cluster).await;
    cluster.submit("before", 2, "4").await;
    let pods = cluster.running("before", 2).await;
    scheduler.signal("STOP").await;
    cluster.end_server(End::Graceful);
    cluster.start_server().await;
    for pod in &pods {
        let path = cluster.path(&format!("pods/{}", name(pod)));
        cluster.api.delete(&path).await.unwrap();
    }
    cluster.submit("after", 2, "4").await;
    cluster.end_server(End::Graceful);
    cluster.start_server().await;
    let begun =
        |asked: &Asked| asked.is("watch", "pods") && asked.query.contains("sendInitialEvents=true");
    let before = cluster.audit.count(begun);
    scheduler.signal("CONT").await;
    cluster.running("after", 2).await;
    let again = async || (before < cluster.audit.count(begun)).then_some(());
    until("the pods are listed again", again).await;
    cluster.audit.bound_once(["after-0", "after-1"]).await;
}
