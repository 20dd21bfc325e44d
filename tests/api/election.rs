//! Two replicas and one Lease. Specification: core.md 1.4, 1.5, C-05.

use serde_json::{Value, json};
use vc_scheduler::fatal::Fatal;
use vc_scheduler::meter::State;
use vc_sim::serve::{LEASES, Server};

use crate::cluster::{Replica, all_gone, bound, count, create, gang, no_fault, serve, wait};

/// A Lease of ten minutes: whoever leads next got it from its holder.
const LONG: [&str; 3] = [
    "--leader-elect-lease-duration=600s",
    "--leader-elect-renew-deadline=500s",
    "--leader-elect-retry-period=100ms",
];

async fn server() -> Server {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "volcano-system"}});
    serve(vec![namespace]).await
}

async fn holder(server: &Server, wanted: impl Fn(&str) -> bool) -> String {
    let holder = |lease: &Value| lease["spec"]["holderIdentity"].as_str().map(str::to_owned);
    let found = wait(server, &LEASES, |lease| holder(lease).is_some_and(|name| wanted(&name)));
    holder(&found.await).unwrap()
}

#[tokio::test]
async fn core_14_a_standby_takes_over_from_a_leader_that_ends() {
    let server = server().await;
    let first = Replica::start(&server, &LONG, no_fault);
    first.reaches(State::Leading { synced: true }).await;
    let leader = holder(&server, |name| !name.is_empty()).await;
    let second = Replica::start(&server, &LONG, no_fault);
    second.reaches(State::Standby { connected: true }).await;
    let leads = |replica: &Replica| replica.meter.metrics.encode().contains("volcano_leader 1");
    assert!(leads(&first) && !leads(&second));
    create(&server, gang("train", 2, "1")).await;
    bound(&server, "train-1").await;
    // It has looked at the queues, and watches nothing.
    let queues = "GET /apis/scheduling.volcano.sh/v1beta1/queues/";
    assert_eq!(count(&second.log, &format!("{queues}default")), 1);
    let lines = second.log.lock().unwrap().clone();
    let is_watch = |line: &&String| line.ends_with("/pods") || line.ends_with("/nodes");
    assert_eq!(lines.iter().find(is_watch), None);
    first.stop().await;
    second.reaches(State::Leading { synced: true }).await;
    let successor = holder(&server, |name| !name.is_empty() && *name != *leader).await;
    assert_ne!(successor, leader);
    create(&server, gang("next", 2, "1")).await;
    bound(&server, "next-1").await;
    let binds = |log| count(log, "POST /api/v1/namespaces/default/pods/train-0/binding");
    assert_eq!(binds(&second.log), 0);
    second.stop().await;
    holder(&server, str::is_empty).await;
    server.stop().await;
}

#[tokio::test]
async fn a_leader_whose_lease_is_taken_ends_with_255() {
    let server = server().await;
    let replica = Replica::start(&server, &LONG, no_fault);
    replica.reaches(State::Leading { synced: true }).await;
    holder(&server, |name| !name.is_empty()).await;
    take(&server).await;
    let log = replica.log.clone();
    let error = replica.ended().await.unwrap_err();
    assert!(matches!(error, Fatal::LeaseLost));
    assert_eq!((error.code(), error.to_string().as_str()), (255, "leaderelection lost"));
    assert_eq!(holder(&server, |_| true).await, "thief");
    all_gone(&log).await;
    server.stop().await;
}

/// Somebody writes over the Lease, as often as its renewals get in between.
async fn take(server: &Server) {
    let api = kube::Client::try_from(kube::Config::new(server.url().parse().unwrap())).unwrap();
    let path = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano";
    let body = json!({"spec": {"holderIdentity": "thief"}}).to_string().into_bytes();
    let patch = http::Request::patch(path).header("content-type", "application/merge-patch+json");
    api.request::<Value>(patch.body(body).unwrap()).await.unwrap();
}
