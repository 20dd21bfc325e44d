//! An API server on loopback with schedulers in this process; every request is seen, and may be
//! refused.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::interval;
use vc_kube::Clients;
use vc_scheduler::answers::AnswerHandle;
use vc_scheduler::environment::{Environment, OwnPod};
use vc_scheduler::fatal::Fatal;
use vc_scheduler::flags::{Flags, LogFormat};
use vc_scheduler::host::OwnHost;
use vc_scheduler::log;
use vc_scheduler::meter::{Meter, State};
use vc_scheduler::run::{self, Process};
use vc_sim::serve::{PODS, ServeOptions, ServedKind, Server, start};

/// Only so that a lost event fails a test instead of hanging it.
pub(crate) const HANG: Duration = Duration::from_secs(180);

/// The fault of an answer that is lost: the server has done what it was asked for.
pub(crate) const LOST: u16 = 504;

/// The fault of an answer that never comes: the server has done nothing.
pub(crate) const SILENT: u16 = 0;

/// Requests as `VERB path`, in the order in which they were sent.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;
/// HTTP status instead of an answer, from the request's line and how many of it there were before.
pub(crate) type Fault = fn(&str, usize) -> Option<u16>;

/// A scheduler in this process.
pub(crate) struct Replica {
    pub(crate) log: Log,
    pub(crate) meter: Arc<Meter>,
    pub(crate) answers: AnswerHandle,
    stop: oneshot::Sender<()>,
    scheduler: JoinHandle<Result<(), Fatal>>,
}

impl Replica {
    pub(crate) fn start(server: &Server, args: &[&str], fault: Fault) -> Self {
        Self::start_in(None, server, args, fault)
    }

    /// In this pod.
    pub(crate) fn start_in(
        pod: Option<OwnPod>,
        server: &Server,
        args: &[&str],
        fault: Fault,
    ) -> Self {
        let log = Log::default();
        let clients = Clients::shared(client(&server.url(), log.clone(), fault));
        let flags = Flags::parse(["vc-scheduler"].iter().chain(args).map(Into::into)).unwrap();
        let socket_dir = folder("sockets");
        let environment = Environment { socket_dir, pod, ..Environment::read(|_| None) };
        let (meter, level) = (Arc::new(Meter::default()), log::start(0, LogFormat::Text));
        let good_conf = None;
        let answers = AnswerHandle::default();
        let process = Process { flags, environment, meter: meter.clone(), good_conf };
        let host = OwnHost { level, answers: answers.clone() };
        let (stop, stopped) = oneshot::channel();
        let scheduler = tokio::spawn(async move {
            run::run(&host, &process, clients, async { drop(stopped.await) }).await
        });
        Self { log, meter, answers, stop, scheduler }
    }

    /// Waits until it is as far as that.
    pub(crate) async fn reaches(&self, wanted: State) {
        let mut state = self.meter.state.subscribe();
        let reached = state.wait_for(|state| *state == wanted);
        tokio::time::timeout(HANG, reached).await.expect("it gets there").unwrap();
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(HANG, self.scheduler).await.unwrap().unwrap().unwrap();
    }

    /// How it ends by itself.
    pub(crate) async fn ended(self) -> Result<(), Fatal> {
        tokio::time::timeout(HANG, self.scheduler).await.unwrap().unwrap()
    }
}

/// An API server with a scheduler.
pub(crate) struct Cluster {
    pub(crate) server: Server,
    pub(crate) replica: Replica,
}

/// A new empty folder.
pub(crate) fn folder(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("vc-api-{}-{number}-{name}", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Left over from a process of the same number.
    drop(std::fs::remove_dir_all(&path));
    std::fs::create_dir_all(&path).unwrap();
    path
}

pub(crate) async fn serve(objects: Vec<Value>) -> Server {
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = ServeOptions { listen, nodes: 2, objects, ..ServeOptions::default() };
    let server = start(options).await.unwrap();
    assert!(server.rejected.is_empty(), "{:?}", server.rejected);
    server
}

/// The real client, behind something that sees every request and may refuse it.
pub(crate) fn client(url: &str, log: Log, fault: Fault) -> Client {
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
            if code == SILENT {
                let () = std::future::pending().await;
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "code": code, "reason": "Injected", "message": "no luck"});
            let body = Body::from(status.to_string().into_bytes());
            Ok(Response::builder().status(code).body(body).unwrap())
        }
    });
    Client::new(service, "default")
}

/// Waits until nobody is left who could send a request.
pub(crate) async fn all_gone(log: &Log) {
    poll("the clients are gone", async || (Arc::strong_count(log) == 1).then_some(())).await;
}

pub(crate) fn count(log: &Log, line: &str) -> usize {
    log.lock().unwrap().iter().filter(|seen| *seen == line).count()
}

impl Cluster {
    /// Nobody else is there, so nobody is elected.
    pub(crate) async fn start(objects: Vec<Value>, args: &[&str], fault: Fault) -> Self {
        let server = serve(objects).await;
        let args = [&["--leader-elect=false"], args].concat();
        let replica = Replica::start(&server, &args, fault);
        Self { server, replica }
    }

    /// Waits until a version of some object of the kind is as wanted.
    pub(crate) async fn until(
        &self,
        kind: &'static ServedKind,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        wait(&self.server, kind, wanted).await
    }

    pub(crate) async fn bound(&self, pod: &str) {
        bound(&self.server, pod).await;
    }

    /// Objects of a user, as they come later.
    pub(crate) async fn create(&self, objects: Vec<Value>) {
        create(&self.server, objects).await;
    }

    pub(crate) async fn stop(self) {
        self.replica.stop().await;
        self.server.stop().await;
    }
}

pub(crate) async fn bound(server: &Server, pod: &str) {
    wait(server, &PODS, |value| is(value, pod) && value["spec"]["nodeName"].is_string()).await;
}

pub(crate) async fn create(server: &Server, objects: Vec<Value>) {
    let api = Client::try_from(Config::new(server.url().parse().unwrap())).unwrap();
    for object in objects {
        let path = match object["kind"] == "Pod" {
            true => "/api/v1/namespaces/default/pods",
            false => "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups",
        };
        let body = object.to_string().into_bytes();
        let post = Request::post(path).header("content-type", "application/json");
        api.request::<Value>(post.body(body).unwrap()).await.unwrap();
    }
}

pub(crate) async fn wait(
    server: &Server,
    kind: &'static ServedKind,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
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

/// Looks again and again until there is something.
pub(crate) async fn poll<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut ticks = interval(Duration::from_millis(20));
    let search = async {
        loop {
            ticks.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    tokio::time::timeout(HANG, search).await.unwrap_or_else(|_| panic!("in vain: {what}"))
}

pub(crate) fn is(value: &Value, name: &str) -> bool {
    value["metadata"]["name"] == name
}

pub(crate) fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    let list = pod["status"]["conditions"].as_array()?;
    list.iter().find(|condition| condition["type"] == kind)
}

pub(crate) fn waits(pod: &Value, name: &str, reason: &str) -> bool {
    is(pod, name) && condition(pod, "PodScheduled").is_some_and(|found| found["reason"] == reason)
}

pub(crate) fn pod_group(name: &str, min: u32) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": min}})
}

pub(crate) fn pod(name: &str, group: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default",
            "annotations": {"scheduling.k8s.io/group-name": group}},
        "spec": {"schedulerName": "volcano", "containers": [
            {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]}})
}

pub(crate) fn gang(name: &str, n_pods: u32, cpu: &str) -> Vec<Value> {
    let pods = (0..n_pods).map(|index| pod(&format!("{name}-{index}"), name, cpu));
    [pod_group(name, n_pods)].into_iter().chain(pods).collect()
}

pub(crate) fn no_fault(_: &str, _: usize) -> Option<u16> {
    None
}
