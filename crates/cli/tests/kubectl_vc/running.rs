//! Verbs that go on until they are ended: which way they take, what they say of it, and how they follow the leader.
//! Specification: answers.md 13 (ANS-88, ANS-90), case 79.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::json;

use crate::front::{FixedAnswer, Front, serve, status};
use crate::servers::{self_made, serve_tls};
use crate::{BASE, explanation, fetch, kubeconfig, url_of};

const SERVICE: &str = "Service volcano-system/vc-scheduler-answers";
const PODS: [(&str, &str, &str); 2] =
    [("volcano-system", "vc-0", "True"), ("volcano-system", "vc-1", "True")];

/// A process of `kubectl vc`.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(words: &[&str], kubeconfig: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-vc"));
        command.args(words).env("KUBECONFIG", kubeconfig);
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// Returns the next line of the answer that begins like this; an empty one at its end.
    fn line(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            let n_bytes = self.out.read_line(&mut line).unwrap();
            if n_bytes == 0 || line.starts_with(beginning) {
                return line;
            }
        }
    }

    /// Ends the process, and returns what it has said beside its answers.
    fn end(mut self) -> String {
        self.child.kill().unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        self.child.wait().unwrap();
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that fails leaves no process behind.
        drop(self.child.kill());
    }
}

/// A page of `kubectl vc ui`.
struct Page {
    running: Running,
    address: String,
    cookie: String,
}

impl Page {
    async fn open(words: &[&str], kubeconfig: &Path) -> Self {
        let mut running = Running::start(&[&["ui"], words].concat(), kubeconfig);
        let line = running.line("http://");
        let Some(rest) = line.trim().strip_prefix("http://") else {
            panic!("no page: {}", running.end());
        };
        let (address, path) = rest.split_at(rest.find('/').unwrap());
        let (_, head, _) = fetch(address, path, &[("host", address)]).await;
        let (_, cookie) = head.split_once("set-cookie: ").unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        Self { running, address: address.to_owned(), cookie }
    }

    /// Asks as the page does.
    async fn ask(&self) -> (u16, String) {
        let headers = [("host", self.address.as_str()), ("cookie", &self.cookie)];
        let path = format!("{BASE}/namespaces/ml/explanations/train");
        let (code, _, body) = fetch(&self.address, &path, &headers).await;
        (code, body)
    }
}

/// An answer with this code.
fn answer(code: &str) -> FixedAnswer {
    (200, explanation().replace("\"Fragmented\"", &format!("\"{code}\"")))
}

/// A pod that gives one answer after the other, and the last one from then on.
async fn pod(answers: Vec<FixedAnswer>) -> SocketAddr {
    let n_asked = Arc::new(AtomicUsize::new(0));
    let answer = move || {
        let place = n_asked.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
        let (code, text) = answers[place].clone();
        async move { (StatusCode::from_u16(code).unwrap(), text) }
    };
    serve_tls(self_made(), Router::new().fallback(answer)).await
}

/// Two pods, of which the first one leads until it was asked once, and leads again after its second answer.
async fn new_leader() -> Front {
    let standby = status(503, "vc-1 leads");
    let old = pod(vec![answer("Fragmented"), standby, answer("QueueFull")]).await;
    let new = pod(vec![answer("NoRoom")]).await;
    Front {
        pods: PODS.to_vec(),
        tunnels: Some(new),
        other_tunnels: vec![("vc-0", old)],
        default: Some(status(403, "services \"https:vc-scheduler-answers:answers\" is forbidden")),
        ..Front::default()
    }
}

/// The second answer is the first one but for its time, and is not printed.
#[tokio::test(flavor = "multi_thread")]
async fn ans_13_sums_are_watched() {
    let n_asked = Arc::new(AtomicUsize::new(0));
    let answer = move || {
        let nth = n_asked.fetch_add(1, Ordering::Relaxed);
        let summary = json!({"apiVersion": "answers.volcano.sh/v1", "kind": "Summary",
            "asOf": {"time": "", "cycle": nth, "source": "daemon", "version": ""},
            "nodes": 4 + nth / 2, "queues": 1, "jobs": 2, "pods": {"running": 3}, "totalPods": 3,
            "waiting": {}, "totalWaiting": 0, "allocatable": {}, "used": {}, "usedPercent": {}});
        async move { summary.to_string() }
    };
    let url = url_of(Router::new().route(&format!("{BASE}/summary"), get(answer))).await;
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), "secret");
    let mut running = Running::start(&["top", "--watch", "--server", &url], &config);
    let lines = [running.line("NODES "), running.line("NODES ")];
    running.end();
    assert_eq!(lines, ["NODES    4\n", "NODES    5\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_a_watch_follows_the_leader_and_names_its_pods() {
    let folder = tempfile::tempdir().unwrap();
    let config = serve(folder.path(), new_leader().await).await;
    let mut running = Running::start(&["why", "train", "--watch"], &config);
    let (first, second) = (running.line("WHY "), running.line("WHY "));
    let said = running.end();
    assert!(first.contains("Fragmented: ") && second.contains("NoRoom: "), "{second}{said}");
    let expected = "asked pod volcano-system/vc-0\nvc-1 leads\nasked pod volcano-system/vc-1\n";
    assert_eq!(said, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_the_page_follows_the_leader_and_names_its_pods() {
    let folder = tempfile::tempdir().unwrap();
    let config = serve(folder.path(), new_leader().await).await;
    let page = Page::open(&[], &config).await;
    // The page asks again by itself.
    assert_eq!(page.ask().await.0, 503);
    let (code, body) = page.ask().await;
    let said = page.running.end();
    assert!(code == 200 && body.contains("NoRoom"), "{code} {body}{said}");
    assert_eq!(said, "asked pod volcano-system/vc-0\nasked pod volcano-system/vc-1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_whoever_gets_the_token_is_named_with_the_first_answer() {
    let folder = tempfile::tempdir().unwrap();
    let tunnels = Some(pod(vec![answer("Fragmented")]).await);
    let front = Front { pods: PODS.to_vec(), tunnels, ..Front::default() };
    let config = serve(folder.path(), front).await;
    let asked = "asked pod volcano-system/vc-0\n";
    let told = "\npod volcano-system/vc-0: answers\n";
    let mut watch = Running::start(&["why", "train", "--watch"], &config);
    assert!(watch.line("ml/train ").starts_with("ml/train (job, "));
    assert_eq!(watch.end(), asked);
    let mut watch = Running::start(&["why", "train", "--watch", "-v"], &config);
    assert!(watch.line("ml/train ").starts_with("ml/train (job, "));
    let said = watch.end();
    assert!(said.ends_with(told), "{said}");
    assert_eq!(Page::open(&[], &config).await.running.end(), asked);
    let said = Page::open(&["-v"], &config).await.running.end();
    assert!(said.ends_with(told), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_the_page_takes_a_way_by_which_its_views_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    // The OpenAPI document comes from behind the group in each case.
    let cases = [
        ("it is not believed", status(401, "a bearer token is needed")),
        ("it refuses", status(403, "explanations.answers.volcano.sh is forbidden")),
        ("nobody is behind it", (503, "service unavailable\n".to_owned())),
    ];
    for (case, group) in cases {
        let default = Some(answer("Fragmented"));
        let front = Front { group: Some(group.clone()), default, ..Front::default() };
        let asked = front.asked.clone();
        let config = serve(folder.path(), front).await;
        let page = Page::open(&[], &config).await;
        let (code, body) = page.ask().await;
        let said = page.running.end();
        assert!(code == 200 && body.contains("Fragmented"), "{case}: {code} {body}{said}");
        assert_eq!(asked.take(), ["group", SERVICE, SERVICE], "{case}");
    }
}
