//! The whole of the process against an API server: over HTTP to the embedded one, with faults in
//! between; and the binary itself, its exit codes and signals. Specification: core.md 1, 7.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use vc_kube::Clients;
use vc_scheduler::{flags::Flags, run};
use vc_sim::serve::{EVENTS, Kind, POD_GROUPS, PODS, QUEUES, ServeOptions, Server, start};

/// Only so that a lost event fails a test instead of hanging it.
const HANG: Duration = Duration::from_secs(60);

/// The fault of an answer that is lost: the server has done what it was asked for.
const LOST: u16 = 504;

/// Requests as `VERB path`, in the order in which they were sent.
type Log = Arc<Mutex<Vec<String>>>;
/// HTTP status instead of an answer, from the request's line and how many of it there were before.
type Fault = fn(&str, usize) -> Option<u16>;

/// An API server with a scheduler.
struct Cluster {
    server: Server,
    log: Log,
    stop: oneshot::Sender<()>,
    scheduler: JoinHandle<anyhow::Result<()>>,
}

async fn serve(objects: Vec<Value>) -> Server {
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = ServeOptions { listen, nodes: 2, objects, ..ServeOptions::default() };
    let server = start(options).await.unwrap();
    assert!(server.rejected.is_empty(), "{:?}", server.rejected);
    server
}

/// The real client, behind something that sees every request and may refuse it.
fn client(url: &str, log: Log, fault: Fault) -> Client {
    let inner = Client::try_from(Config::new(url.parse().unwrap())).unwrap();
    let service = tower::service_fn(move |request: Request<Body>| {
        let line = format!("{} {}", request.method(), request.uri().path());
        let (inner, log) = (inner.clone(), log.clone());
        async move {
            let before = count(&log, &line);
            log.lock().unwrap().push(line.clone());
            let Some(code) = fault(&line, before) else { return inner.send(request).await };
            if code == LOST {
                drop(inner.send(request).await);
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "code": code, "reason": "Injected", "message": "no luck"});
            let body = Body::from(status.to_string().into_bytes());
            Ok(Response::builder().status(code).body(body).unwrap())
        }
    });
    Client::new(service, "default")
}

fn count(log: &Log, line: &str) -> usize {
    log.lock().unwrap().iter().filter(|seen| *seen == line).count()
}

impl Cluster {
    async fn start(objects: Vec<Value>, args: &[&str], fault: Fault) -> Self {
        let server = serve(objects).await;
        let log = Log::default();
        let clients = Clients::shared(client(&server.url(), log.clone(), fault));
        let flags = Flags::parse(["vc-scheduler"].iter().chain(args).map(Into::into)).unwrap();
        let (stop, stopped) = oneshot::channel();
        let scheduler = tokio::spawn(async move {
            let config = run::configuration(&flags)?;
            run::run(&flags, &config, clients, async { drop(stopped.await) }).await
        });
        Self { server, log, stop, scheduler }
    }

    /// Waits until a version of some object of the kind is as wanted.
    async fn until(&self, kind: &'static Kind, wanted: impl Fn(&Value) -> bool) -> Value {
        wait(&self.server, kind, wanted).await
    }

    async fn bound(&self, pod: &str) {
        self.until(&PODS, |value| is(value, pod) && value["spec"]["nodeName"].is_string()).await;
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.scheduler.await.unwrap().unwrap();
        self.server.stop().await;
    }
}

async fn wait(server: &Server, kind: &'static Kind, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut changes = server.store.subscribe(kind);
    let listed = server.store.list(kind, None).objects.into_iter();
    if let Some(object) = { listed }.find(|object| wanted(&object.value)) {
        return object.value.clone();
    }
    let search = async {
        loop {
            let events = changes.next().await.unwrap();
            if let Some(event) = events.iter().find(|event| wanted(&event.object.value)) {
                return event.object.value.clone();
            }
        }
    };
    tokio::time::timeout(HANG, search).await.expect("what is waited for comes")
}

fn is(value: &Value, name: &str) -> bool {
    value["metadata"]["name"] == name
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    let list = pod["status"]["conditions"].as_array()?;
    list.iter().find(|condition| condition["type"] == kind)
}

fn waits(pod: &Value, name: &str, reason: &str) -> bool {
    is(pod, name) && condition(pod, "PodScheduled").is_some_and(|found| found["reason"] == reason)
}

fn pod_group(name: &str, min: u32) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": min}})
}

fn pod(name: &str, group: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default",
            "annotations": {"scheduling.k8s.io/group-name": group}},
        "spec": {"schedulerName": "volcano", "containers": [
            {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]}})
}

fn gang(name: &str, n_pods: u32, cpu: &str) -> Vec<Value> {
    let pods = (0..n_pods).map(|index| pod(&format!("{name}-{index}"), name, cpu));
    [pod_group(name, n_pods)].into_iter().chain(pods).collect()
}

fn no_fault(_: &str, _: usize) -> Option<u16> {
    None
}

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
    assert_eq!(count(&cluster.log, path), 1);
    cluster.stop().await;
}

#[tokio::test]
async fn core_79_a_refused_bind_is_told_and_tried_again() {
    const BIND: &str = "POST /api/v1/namespaces/default/pods/train-0/binding";
    let faults: [Fault; 2] = [
        |line, before| (line == BIND && before == 0).then_some(409),
        |line, before| (line == BIND && before == 0).then_some(500),
    ];
    for fault in faults {
        let args = ["--schedule-period=50ms"];
        let cluster = Cluster::start(gang("train", 1, "1"), &args, fault).await;
        let refused = cluster.until(&PODS, |pod| waits(pod, "train-0", "SchedulerError")).await;
        let found = condition(&refused, "PodScheduled").unwrap();
        assert_eq!(found["status"], "False");
        assert_eq!(found["message"], "failed to bind to node node-0: no luck");
        cluster.until(&EVENTS, |event| event["reason"] == "FailedScheduling").await;
        cluster.bound("train-0").await;
        assert_eq!(count(&cluster.log, BIND), 2);
        assert!(2 <= count(&cluster.log, "GET /api/v1/namespaces/default/pods/train-0"));
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
        let api = Client::try_from(Config::new(cluster.server.url().parse().unwrap())).unwrap();
        for object in gang(&name, 1, "1") {
            let path = match object["kind"] == "Pod" {
                true => "/api/v1/namespaces/default/pods",
                false => "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups",
            };
            let body = object.to_string().into_bytes();
            let post = Request::post(path).header("content-type", "application/json");
            api.request::<Value>(post.body(body).unwrap()).await.unwrap();
        }
        cluster.bound(&format!("{name}-0")).await;
    }
    let puts = count(&cluster.log, "PUT /api/v1/namespaces/default/pods/big-0/status");
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
    assert_eq!(count(&cluster.log, BIND), 1);
    cluster.stop().await;
}

fn scheduler(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vc-scheduler")).args(args).output().unwrap()
}

fn code(args: &[&str]) -> i32 {
    scheduler(args).status.code().unwrap()
}

#[test]
fn core_2_core_4_core_5_exit_codes() {
    assert_eq!(code(&["--nope"]), 2);
    assert_eq!(code(&["--help"]), 0);
    assert_eq!(code(&["--leader-elect-lease-duration=10s"]), 1);
    assert_eq!(code(&["--disable-default-scheduler-config", "--master=127.0.0.1:1"]), 255);
    assert_eq!(code(&["--kubeconfig=/does/not/exist"]), 1);
    let version = scheduler(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    let text = String::from_utf8(version.stdout).unwrap();
    assert_eq!(text.lines().count(), 6);
    assert!(text.starts_with("API Version: v1alpha1\nVersion: "), "{text}");
}

#[test]
fn check_prints_what_is_in_force_or_exits_1() {
    let conf = concat!(env!("CARGO_MANIFEST_DIR"), "/config/volcano-scheduler.conf");
    let good = scheduler(&["check", "--scheduler-conf", conf]);
    assert_eq!(good.status.code(), Some(0));
    let text = String::from_utf8(good.stdout).unwrap();
    assert!(text.starts_with("actions, in this order:\n  enqueue\n"), "{text}");
    for args in [&["check"][..], &["check", "--scheduler-conf=/does/not/exist"]] {
        let bad = scheduler(args);
        assert_eq!(bad.status.code(), Some(1));
        assert!(bad.stdout.is_empty());
        assert!(String::from_utf8(bad.stderr).unwrap().contains("hint: "));
    }
    // Not the first argument: a positional one, which is ignored; there is no cluster here.
    assert_eq!(code(&["--kubeconfig=/does/not/exist", "check"]), 1);
}

#[tokio::test]
async fn the_binary_binds_and_ends_with_sigterm() {
    let server = serve(gang("train", 2, "1")).await;
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_vc-scheduler"))
        .args(["--master", &server.url(), "--logtostderr", "-v=3", "2>&1"])
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let is_bound = |pod: &Value| is(pod, "train-1") && pod["spec"]["nodeName"].is_string();
    wait(&server, &PODS, is_bound).await;
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let status = tokio::time::timeout(HANG, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    server.stop().await;
}
