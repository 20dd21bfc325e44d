//! `kubectl-vc` as a process, against a server with fixed answers and over files. Specification:
//! answers.md 13.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod bundles;
mod certificates;
mod completion;
mod connection;
mod fallback;
mod front;
mod golden;
mod html;
mod running;
mod servers;
mod unreadable;
mod ways;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::Path as Segment;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{get, post};
use vc_conf::AllowMissing;
use vc_page::StateSource;
use vc_sim::KubeletMode;
use vc_sim::run::{RunLimit, RunOptions};
use vc_sim::why::{WhyOptions, why};

const BASE: &str = "/apis/answers.volcano.sh/v1";

fn call(words: &[&str], kubeconfig: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-vc"));
    command.args(words).env("KUBECONFIG", kubeconfig).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An answer as the scheduler gives it, by way of files.
fn explanation() -> String {
    let answered = why(&WhyOptions {
        run: run_options(),
        namespace: Some("ml".to_owned()),
        name: Some("train".to_owned()),
    });
    serde_json::to_string(answered.unwrap().json()).unwrap()
}

fn examples(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/why").join(file)
}

fn run_options() -> RunOptions {
    RunOptions {
        scheduler_conf: Some(examples("scheduler.conf")),
        allow_missing: AllowMissing::Nothing,
        until: RunLimit::Cycles(1),
        kubelet: KubeletMode::None,
        keeps_history: false,
        paths: vec![examples("taint.yaml")],
        source: StateSource::File,
    }
}

/// A scheduler that knows one job, and lets in whoever has the token `secret`.
fn scheduler(explanation: String) -> Router {
    let answer = move |headers: HeaderMap| async move {
        let status = |code: u16, message: &str| {
            let status = serde_json::json!({"apiVersion": "v1", "kind": "Status", "status": "Failure",
                "code": code, "reason": "Unauthorized", "message": message});
            (StatusCode::from_u16(code).unwrap(), status.to_string())
        };
        match headers.get("authorization").map(|value| value.to_str().unwrap()) {
            Some("Bearer secret") => (StatusCode::OK, explanation),
            Some(_) => status(401, "the token was refused"),
            None => status(401, "a bearer token is needed\nhint: send one"),
        }
    };
    Router::new().route(&format!("{BASE}/namespaces/ml/explanations/train"), get(answer))
}

/// The same scheduler as a server; its URL.
async fn serve(explanation: String) -> String {
    url_of(scheduler(explanation)).await
}

/// Serves routes; returns their URL.
async fn url_of(routes: Router) -> String {
    format!("http://{}", servers::serve_plain(routes).await)
}

/// A kubeconfig whose user has this token.
fn kubeconfig(folder: &Path, token: &str) -> PathBuf {
    kubeconfig_of(folder, token, "https://127.0.0.1:1")
}

/// The same with the address of an API server.
fn kubeconfig_of(folder: &Path, token: &str, server: &str) -> PathBuf {
    let path = folder.join(token);
    let config = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "ml"}}],
    });
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_87_88_a_server_is_asked_with_the_token_of_the_kubeconfig() {
    let url = serve(explanation()).await;
    let folder = tempfile::tempdir().unwrap();
    let secret = kubeconfig(folder.path(), "secret");
    let wrong = kubeconfig(folder.path(), "wrong");
    let none = folder.path().join("none");
    let server = ["--server", url.as_str()];
    let cases: &[(&[&str], &PathBuf, i32, &str)] = &[
        (&["why", "train"], &secret, 0, ""),
        (&["why", "train", "--exit-code"], &secret, 3, ""),
        (&["why", "train"], &wrong, 1, "error: the token was refused\n"),
        (
            &["why", "train", "-n", "ml"],
            &none,
            1,
            "error: a bearer token is needed\nhint: send one\n",
        ),
        (&["why", "train", "-A"], &secret, 1, "error: a job is in one namespace\n"),
        (&["why", "train", "--kind", "x"], &secret, 2, "error: unexpected argument"),
        (&["sing"], &secret, 2, "error: unrecognized subcommand"),
    ];
    for (words, config, code, said) in cases {
        let called = call(&[*words, &server].concat(), config);
        let stderr = text(&called.stderr);
        assert_eq!(called.status.code(), Some(*code), "{words:?}: {stderr}");
        assert!(stderr.starts_with(said) && stderr.is_empty() == said.is_empty(), "{stderr}");
        assert_eq!(called.stdout.is_empty(), matches!(code, 1 | 2), "{words:?}");
    }
    let of_server = call(&[&["why", "train"][..], &server].concat(), &secret);
    let of_server = text(&of_server.stdout);
    assert!(of_server.starts_with("ml/train (job, PodGroup train-7f3c, "));
    let json = call(&[&["why", "train", "-o", "json"][..], &server].concat(), &secret);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["verdict"]["code"], "Fragmented");
    let yaml = call(&[&["why", "train", "-o", "yaml"][..], &server].concat(), &secret);
    assert!(text(&yaml.stdout).contains("code: Fragmented\n"), "{}", text(&yaml.stdout));
}

/// Writes a kubeconfig with this user entry, and returns its path.
fn kubeconfig_of_user(folder: &Path, name: &str, user: &serde_json::Value) -> PathBuf {
    let path = kubeconfig(folder, name);
    let mut config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["users"][0]["user"] = user.clone();
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

/// Writes a plugin that gives the token `secret`, and adds a line to the file `runs` of this folder whenever it runs.
/// Returns its entry in a kubeconfig.
fn plugin(folder: &Path) -> serde_json::Value {
    let (path, runs) = (folder.join("log-in"), folder.join("runs"));
    let credential = r#"{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "secret"}}"#;
    let script = format!("#!/bin/sh\necho run >> {}\necho '{credential}'\n", runs.display());
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    serde_json::json!({"apiVersion": "client.authentication.k8s.io/v1", "command": path,
        "interactiveMode": "Never"})
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_89_the_token_is_that_of_a_file_or_of_a_plugin() {
    let url = serve(explanation()).await;
    let folder = tempfile::tempdir().unwrap();
    let tokens = ["secret", " secret\n"].map(|text| {
        let path = folder.path().join(format!("token-{}", text.len()));
        std::fs::write(&path, text).unwrap();
        path
    });
    let exec = plugin(folder.path());
    let users = [
        ("file", serde_json::json!({"tokenFile": tokens[0]})),
        ("line", serde_json::json!({"tokenFile": tokens[1]})),
        ("plugin", serde_json::json!({"exec": exec})),
    ];
    for (name, user) in users {
        let config = kubeconfig_of_user(folder.path(), name, &user);
        let called = call(&["why", "train", "--server", &url], &config);
        assert!(called.status.success(), "{name}: {}", text(&called.stderr));
    }
    let missing = serde_json::json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1",
        "command": folder.path().join("none"), "interactiveMode": "Never"}});
    let config = kubeconfig_of_user(folder.path(), "missing", &missing);
    let called = call(&["why", "train", "--server", &url], &config);
    let said = text(&called.stderr);
    assert!(called.status.code() == Some(1) && said.contains("hint: check the user "), "{said}");
}

/// An API server whose Service of the answers has no pod, or knows one job. It takes
/// `Authorization` for itself.
async fn serve_proxy(explanation: Option<String>) -> String {
    let answer = move |headers: HeaderMap| async move {
        let token = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(token("authorization").as_deref(), Some("Bearer secret"));
        match (explanation, token("x-answers-authorization").as_deref()) {
            (Some(explanation), Some("Bearer secret")) => (StatusCode::OK, explanation),
            _ => {
                let status = serde_json::json!({"apiVersion": "v1", "kind": "Status",
                    "status": "Failure", "code": 503, "reason": "ServiceUnavailable", "message":
                    "no endpoints available for service \"https:ask:answers\""});
                (StatusCode::SERVICE_UNAVAILABLE, status.to_string())
            }
        }
    };
    let service = "/api/v1/namespaces/sched/services/https:ask:answers/proxy";
    let path = format!("{service}{BASE}/namespaces/ml/explanations/train");
    let routes = Router::new().route(&path, get(answer));
    url_of(routes).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_the_service_is_asked_through_the_api_server() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["why", "job/train", "--service", "sched/ask"];
    let url = serve_proxy(Some(explanation())).await;
    let called = call(&words, &kubeconfig_of(folder.path(), "secret", &url));
    assert!(text(&called.stdout).starts_with("ml/train (job, "), "{}", text(&called.stderr));
    let url = serve_proxy(None).await;
    let old = url.clone();
    let called = call(&words, &kubeconfig_of(folder.path(), "secret", &url));
    let expected = "error: no answer from Service sched/ask: no endpoints available for service \
        \"https:ask:answers\"\nhint: no scheduler answers there now: try again ";
    assert!(text(&called.stderr).starts_with(expected), "{}", text(&called.stderr));
    assert_eq!(called.status.code(), Some(1));
    // A user without a token: the API server would not pass the certificate on.
    let config = std::fs::read_to_string(folder.path().join("secret")).unwrap();
    let without = folder.path().join("without");
    std::fs::write(&without, config.replace("\"token\":\"secret\"", "")).unwrap();
    let called = call(&words, &without);
    let expected = "error: the kubeconfig has no token, and none of ServiceAccount sched/ask-admin is \
        given: ";
    assert!(text(&called.stderr).starts_with(expected), "{}", text(&called.stderr));
    // One who may have the token of a ServiceAccount asks with its rights.
    let url = serve_accounts(explanation()).await;
    std::fs::write(&without, config.replace("\"token\":\"secret\"", "").replace(&old, &url))
        .unwrap();
    let called = call(&words, &without);
    assert!(text(&called.stdout).starts_with("ml/train (job, "), "{}", text(&called.stderr));
    let other = [&words[..], &["--service-account", "sched/other"]].concat();
    let refused = call(&other, &without);
    let expected = "error: the kubeconfig has no token, and none of ServiceAccount sched/other is \
        given: serviceaccounts \"other\" is forbidden\nhint: ";
    assert!(text(&refused.stderr).starts_with(expected), "{}", text(&refused.stderr));
}

/// The same with an API server that gives everybody a token of one ServiceAccount.
async fn serve_accounts(explanation: String) -> String {
    let answer = move |headers: HeaderMap| async move {
        let token = headers.get("x-answers-authorization").map(|value| value.to_str().unwrap());
        assert_eq!((token, headers.get("authorization")), (Some("Bearer of-account"), None));
        explanation
    };
    let give = |Segment(name): Segment<String>, body: String| async move {
        let asked: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (&asked["kind"], &asked["spec"]["expirationSeconds"]),
            (&"TokenRequest".into(), &600.into())
        );
        if name == "ask-admin" {
            return (StatusCode::CREATED, r#"{"status": {"token": "of-account"}}"#.to_owned());
        }
        let message = format!("serviceaccounts {name:?} is forbidden");
        let status = serde_json::json!({"apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": 403, "reason": "Forbidden", "message": message});
        (StatusCode::FORBIDDEN, status.to_string())
    };
    let service = "/api/v1/namespaces/sched/services/https:ask:answers/proxy";
    let path = format!("{service}{BASE}/namespaces/ml/explanations/train");
    let routes = Router::new()
        .route(&path, get(answer))
        .route("/api/v1/namespaces/sched/serviceaccounts/{name}/token", post(give));
    url_of(routes).await
}

/// A scheduler that answers changes with the path and the body that it got.
fn what_ifs() -> Router {
    let answer = |uri: Uri, body: String| async move {
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let changes = &body["spec"]["changes"];
        let pods = changes.as_array().unwrap().iter().filter(|it| it.get("apply").is_some());
        let unplaced: Vec<String> = pods.map(|_| "ml/more-0".to_owned()).collect();
        serde_json::json!({
            "apiVersion": "answers.volcano.sh/v1", "kind": "WhatIfResult",
            "asOf": {"time": "", "cycle": 1, "source": "daemon", "version": ""},
            "complete": true, "cycles": 2, "settled": true,
            "placed": [{"pod": "ml/train-0", "node": "g1-whatif-1"}],
            "notPlaced": [], "moved": [], "evicted": [], "spared": [], "waiting": [], "queues": [],
            "unplaced": unplaced, "warnings": [uri.to_string(), changes.to_string()], "truncated": {},
        })
        .to_string()
    };
    Router::new()
        .route(&format!("{BASE}/whatifs"), post(answer))
        .route(&format!("{BASE}/namespaces/ml/whatifs"), post(answer))
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_117_changes_are_sent_as_one_document() {
    let url = url_of(what_ifs()).await;
    let folder = tempfile::tempdir().unwrap();
    let secret = kubeconfig(folder.path(), "secret");
    let job = folder.path().join("job.yaml");
    std::fs::write(&job, "{apiVersion: v1, kind: Pod, metadata: {name: more-0}}").unwrap();
    let document = examples("what-if.yaml");
    let (job, document) = (job.to_str().unwrap(), document.to_str().unwrap());
    let what_if = |words: &[&str]| {
        let called = call(&[&["what-if", "--server", url.as_str()], words].concat(), &secret);
        (called.status.code(), text(&called.stdout))
    };
    let (code, said) = what_if(&["--add-nodes", "g1=1", "--drain", "g2"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("+ placed   ml/train-0 → g1-whatif-1\n"), "{said}");
    assert!(said.contains("note     /apis/answers.volcano.sh/v1/whatifs?namespace=ml\n"), "{said}");
    let changes = r#"[{"addNodes":{"count":1,"like":"g1"}},{"removeNodes":{"names":["g2"]}}]"#;
    assert!(said.contains(changes), "{said}");
    assert!(said.ends_with("1 placed, 0 evicted, 0 wait (2 cycles, settled)\n"), "{said}");
    // A pod of the namespace of the context is asked there, and has no place.
    let (code, said) = what_if(&["-f", job]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("/v1/namespaces/ml/whatifs\n"), "{said}");
    assert!(said.contains(r#""namespace":"ml""#), "{said}");
    // Changes of a document come first.
    let (_, said) = what_if(&["-f", document, "-f", job, "--set-queue", "research.weight=2"]);
    let order = ["removeNodes", "addNodes", "\"weight\":4", "apply", "\"weight\":2"];
    let places: Vec<usize> = order.iter().map(|word| said.find(word).unwrap()).collect();
    assert!(places.is_sorted(), "{said}");
    let (code, said) = what_if(&["--drain", "g1", "-o", "json"]);
    assert_eq!((code, said.starts_with('{')), (Some(0), true), "{said}");
}

#[test]
fn ans_88_files_are_answered_as_vcsim_does() {
    let (conf, objects) = (examples("scheduler.conf"), examples("taint.yaml"));
    let (conf, objects) = (conf.to_str().unwrap(), objects.to_str().unwrap());
    let files = ["--scheduler-conf", conf, "--from", objects];
    let nowhere = Path::new("/nonexistent");
    for name in [Some("train"), None] {
        let words: Vec<&str> = ["why"].into_iter().chain(name).chain(files).collect();
        let called = call(&words, nowhere);
        let options =
            WhyOptions { run: run_options(), namespace: None, name: name.map(str::to_owned) };
        assert_eq!(text(&called.stdout), why(&options).unwrap().text());
        assert_eq!(called.status.code(), Some(0));
    }
    for (words, said) in [
        (&["queues"][..], "research"),
        (&["queues", "research", "-o", "wide"], "WEIGHT"),
        (&["line", "research"], "ml/train"),
        (&["nodes", "-o", "wide"], "team=vision:NoSchedule"),
        (&["nodes", "g4"], "team=vision:NoSchedule"),
        (&["hypernodes"], "there are no HyperNodes"),
        (&["runs", "-A"], "ml/eval"),
        (&["top"], "NODES"),
    ] {
        let called = call(&[words, &files[..]].concat(), nowhere);
        let (out, told) = (text(&called.stdout), text(&called.stderr));
        assert!(out.contains(said) && out.contains("as of "), "{words:?}: {out}{told}");
    }
    let called = call(&[&["nodes", "g9"], &files[..]].concat(), nowhere);
    assert_eq!(called.status.code(), Some(1));
    assert!(text(&called.stderr).starts_with("error: no node g9"), "{}", text(&called.stderr));
    let called = call(&[&["cycles"], &files[..]].concat(), nowhere);
    let refused = "error: --from answers no question about what a scheduler remembers\nhint: ";
    assert!(text(&called.stderr).starts_with(refused), "{}", text(&called.stderr));
    let called = call(&[&["what-if", "--add-nodes", "g1=1"], &files[..]].concat(), nowhere);
    assert!(text(&called.stdout).contains("ml/train-worker-0 → g1-whatif-1"));
    let called = call(&[&["what-if"], &files[..]].concat(), nowhere);
    assert!(text(&called.stderr).starts_with("error: no change is given\nhint: "));
    let called = call(&["why", "train"], nowhere);
    assert_eq!(called.status.code(), Some(1));
    assert!(text(&called.stderr).starts_with("error: kubeconfig: "), "{}", text(&called.stderr));
}

/// What the page gets: by path, cookie and host.
async fn fetch(address: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut request = format!("GET {path} HTTP/1.0\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, head.to_lowercase(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_90_the_page_of_this_machine_adds_the_credentials() {
    use std::io::{BufRead, BufReader};
    let url = serve(explanation()).await;
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-vc"))
        .args(["ui", "--server", &url])
        .env("KUBECONFIG", kubeconfig(folder.path(), "secret"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let rest = line.trim().strip_prefix("http://").unwrap();
    let (address, path) = rest.split_at(rest.find('/').unwrap());
    let host = [("host", address)];
    let answer = format!("{BASE}/namespaces/ml/explanations/train");

    // Without the address that was printed nobody gets anything.
    for path in ["/", "/ui/", "/?key=00", &answer] {
        assert_eq!(fetch(address, path, &host).await.0, 403, "{path}");
    }
    assert_eq!(fetch(address, path, &[("host", "evil.example")]).await.0, 403);
    let (code, head, _) = fetch(address, path, &host).await;
    assert_eq!(code, 303, "{head}");
    let (_, cookie) = head.split_once("set-cookie: ").unwrap();
    assert!(cookie.contains("; httponly; samesite=strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let entered = [("host", address), ("cookie", cookie)];
    let (code, _, page) = fetch(address, "/ui/", &entered).await;
    assert!(code == 200 && page.contains("<title>vc-scheduler</title>"), "{page}");
    let (code, _, body) = fetch(address, &answer, &entered).await;
    assert_eq!((code, body.contains("Fragmented")), (200, true), "{body}");
    // What the server refuses is passed on.
    let (code, ..) = fetch(address, &format!("{BASE}/queues"), &entered).await;
    assert_eq!(code, 404);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Objects of a cluster without any scheduler: a gang of two pods too large for its two nodes.
fn cluster(n_pods: usize) -> Vec<serde_json::Value> {
    let namespace = serde_json::json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "volcano-system"}});
    let group = serde_json::json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "big", "namespace": "default"},
        "spec": {"minMember": 2, "queue": "default"}});
    let pod = |name: String| {
        serde_json::json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default",
                "annotations": {"scheduling.k8s.io/group-name": "big"}},
            "spec": {"schedulerName": "volcano", "containers": [{"name": "main", "image": "busybox",
                "resources": {"requests": {"cpu": "1000"}}}]}})
    };
    let pods = (0..n_pods).map(|number| pod(format!("big-{number}")));
    [namespace, group].into_iter().chain(pods).collect()
}

fn conf_map(text: &str) -> serde_json::Value {
    serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
        "data": {"volcano-scheduler.conf": text}})
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_91_a_cluster_is_asked_without_its_scheduler() {
    // More pods than one page of a list holds.
    let mut objects = cluster(620);
    objects.push(conf_map(
        "actions: \"enqueue, allocate, preempt\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n",
    ));
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let options = vc_sim::serve::ServeOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        nodes: 2,
        objects,
        write_kubeconfig: Some(config.clone()),
        ..vc_sim::serve::ServeOptions::default()
    };
    let server = vc_sim::serve::start(options).await.unwrap();
    assert!(server.rejected.is_empty(), "{:?}", server.rejected);
    let called = call(&["why", "big", "--local", "--exit-code"], &config);
    let (out, told) = (text(&called.stdout), text(&called.stderr));
    assert_eq!(called.status.code(), Some(3), "{out}{told}");
    assert!(out.starts_with("default/big (PodGroup, queue default, "), "{out}{told}");
    assert!(out.contains(": 620 pods, 2 needed, "), "{out}");
    assert!(out.contains("1k cpu") || out.contains("1000 cpu"), "{out}");
    assert!(told.starts_with("asked without the scheduler: "), "{told}");
    let default = "neither preempt nor reclaim is among the actions";
    assert!(!out.contains(default), "the configuration is that of the cluster: {out}");
    let other = call(&["why", "-A", "--local", "--configmap", "volcano-system/none"], &config);
    let (out, told) = (text(&other.stdout), text(&other.stderr));
    assert!(out.contains("default/big"), "{out}{told}");
    let of_chart = call(&["why", "big", "--local", "--configmap", "volcano-system/none"], &config);
    assert!(text(&of_chart.stdout).contains(default), "{}", text(&of_chart.stdout));
    let missing = "the configuration is that of the chart: ConfigMap volcano-system/none: ";
    assert!(told.contains(missing) && told.contains("\nhint: give --configmap "), "{told}");
    let line = call(&["line", "default", "--local"], &config);
    assert!(text(&line.stdout).contains("default/big"), "{}", text(&line.stdout));
    let last = text(&line.stdout).lines().last().unwrap_or_default().to_owned();
    assert!(last.starts_with("as of ") && last.ends_with(", from lists of the cluster"), "{last}");
    let what_if: [&str; 3] = ["what-if", "--add-nodes", "node-1=1"];
    for words in [&["why", "big"][..], &["why"], &["top"], &what_if] {
        let called = call(&[words, &["--local", "-o", "json"]].concat(), &config);
        let answer: serde_json::Value = serde_json::from_slice(&called.stdout).unwrap();
        assert_eq!(answer["asOf"]["source"], "local", "{words:?}: {}", text(&called.stderr));
    }
    let refused = call(&["cycles", "--local"], &config);
    assert!(text(&refused.stderr).contains("error: --local answers no question about what "));
    let none = call(&["why", "big", "--local"], &kubeconfig(folder.path(), "x"));
    assert!(text(&none.stderr).contains("error: cannot list Node: "), "{}", text(&none.stderr));
}

/// The first answer comes at once, and the next one when something has changed.
#[tokio::test(flavor = "multi_thread")]
async fn ans_13_why_is_watched() {
    let n_asked = Arc::new(AtomicUsize::new(0));
    let answer = move || {
        let is_first = n_asked.fetch_add(1, Ordering::Relaxed) == 0;
        let code = if is_first { "Fragmented" } else { "NoRoom" };
        let text = explanation().replace("\"Fragmented\"", &format!("\"{code}\""));
        async move { text }
    };
    let routes =
        Router::new().route(&format!("{BASE}/namespaces/ml/explanations/train"), get(answer));
    let url = url_of(routes).await;
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), "secret");
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-vc"))
        .args(["why", "train", "--watch", "--server", &url])
        .env("KUBECONFIG", &config)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut codes = lines.map_while(Result::ok).filter(|line| line.starts_with("WHY "));
    assert!(codes.next().unwrap().contains("Fragmented: "));
    assert!(codes.next().unwrap().contains("NoRoom: "));
    child.kill().unwrap();
    child.wait().unwrap();
    let config = config.as_path();
    assert_eq!(call(&["why", "--watch", "--exit-code"], config).status.code(), Some(2));
}
