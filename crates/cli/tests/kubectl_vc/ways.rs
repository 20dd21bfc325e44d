//! Which way leads to an answer where none is given. Specification: answers.md 13 (ANS-88), case 79.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path as Segments, Request};
use axum::http::{Response, StatusCode};
use axum::routing::{any, get};
use serde_json::{Value, json};
use vc_kube::{AnswersAccess, AnswersClient};

use crate::{call, cluster, explanation, kubeconfig_of, text};

/// What the Service `ask` answers, in any namespace: a code and a text.
type OtherAnswer = (u16, String);

/// What the API server has beside the objects of a cluster.
#[derive(Clone, Default)]
struct Front {
    /// Namespaces and names of Services with the label of the answers.
    labelled: Vec<(&'static str, &'static str)>,
    other: Option<OtherAnswer>,
    /// Path of a collection that the user may not list.
    forbidden: Option<&'static str>,
}

fn status(code: u16, message: &str) -> OtherAnswer {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code,
        "message": message});
    (code, status.to_string())
}

/// Serves a cluster without a scheduler, and Services of answers. Returns the kubeconfig.
async fn serve(folder: &Path, front: Front) -> PathBuf {
    let inner = folder.join("inner");
    let options = vc_sim::serve::ServeOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        nodes: 2,
        objects: cluster(2),
        write_kubeconfig: Some(inner.clone()),
        ..vc_sim::serve::ServeOptions::default()
    };
    let server = vc_sim::serve::start(options).await.unwrap();
    assert!(server.rejected.is_empty(), "{:?}", server.rejected);
    let text = std::fs::read_to_string(&inner).unwrap();
    let url = text.split_whitespace().find(|word| word.starts_with("http")).unwrap();
    let access = AnswersAccess {
        kubeconfig: Some(inner),
        server: Some(url.trim_matches(['"', ',', '}']).to_owned()),
        ..AnswersAccess::default()
    };
    let objects = Arc::new(AnswersClient::new(&access).await.unwrap());
    let pass = move |request: Request| async move {
        let (parts, body) = request.into_parts();
        let body: Bytes = to_bytes(body, usize::MAX).await.unwrap();
        let answered = objects.forward(Request::from_parts(parts, body)).await.unwrap();
        // Its headers are about the way that it came.
        let code = answered.status();
        Response::builder().status(code).body(Body::from(answered.into_body())).unwrap()
    };
    let Front { labelled, other, forbidden } = front;
    let list = move |Segments(wanted): Segments<String>| async move {
        let item = |(namespace, name): (&str, &str)| {
            let metadata = json!({"namespace": namespace, "name": name});
            json!({ "metadata": metadata })
        };
        let there = labelled.into_iter().filter(|(namespace, _)| *namespace == wanted);
        let items: Vec<Value> = there.map(item).collect();
        json!({"apiVersion": "v1", "kind": "ServiceList", "items": items}).to_string()
    };
    let proxy = move |Segments(segments): Segments<(String, String, String)>| async move {
        let (_namespace, service, _path) = segments;
        let name = service.split(':').nth(1).unwrap();
        let (code, text) = match other.filter(|_| name == "ask") {
            Some(other) => other,
            None => status(404, &format!("services \"{name}\" not found")),
        };
        let code = StatusCode::from_u16(code).unwrap();
        Response::builder().status(code).body(Body::from(text)).unwrap()
    };
    let refuse = async || {
        let (_, text) = status(403, "the user may not list them");
        (StatusCode::FORBIDDEN, text)
    };
    let routes = Router::new()
        .route("/api/v1/namespaces/{namespace}/services", get(list))
        .route("/api/v1/namespaces/{namespace}/services/{name}/proxy/{*path}", any(proxy))
        .route(forbidden.unwrap_or("/forbidden"), get(refuse))
        .fallback(pass);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        // It serves as long as it is there.
        let _server = server;
        axum::serve(listener, routes).await
    });
    kubeconfig_of(folder, "secret", &format!("http://{address}"))
}

const FIRST: &str = "no answer from Service volcano-system/vc-scheduler-answers: services \
    \"vc-scheduler-answers\" not found\n";

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_one_way_is_gone_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let config = serve(folder.path(), Front::default()).await;
    let told = |words: &[&str]| {
        let called = call(words, &config);
        (text(&called.stdout), text(&called.stderr))
    };
    let (out, said) = told(&["why", "big", "-n", "default"]);
    assert!(out.starts_with("default/big (PodGroup, queue default, "), "{out}{said}");
    assert!(said.starts_with(&format!("{FIRST}asked without the scheduler: ")), "{said}");
    let (_, said) = told(&["why", "big", "-n", "default", "-v"]);
    let asked = format!("Service volcano-system/vc-scheduler-answers: {FIRST}");
    assert!(said.starts_with(&format!("{asked}{FIRST}asked without ")), "{said}");
    // What a scheduler remembers is in no list, and whoever names a place wants that one.
    for words in [
        &["cycles"][..],
        &["why", "big", "--service", "volcano-system/vc-scheduler-answers"],
        &["why", "big", "--watch"],
        &["what-if", "-f", "-", "-n", "default"],
    ] {
        let (out, said) = told(words);
        assert!(out.is_empty() && said.starts_with(&format!("error: {FIRST}hint: ")), "{said}");
    }
    let (out, said) = told(&["why", "big", "--server", "http://127.0.0.1:1"]);
    let unreached = "error: no answer from http://127.0.0.1:1: ";
    assert!(out.is_empty() && said.starts_with(unreached), "{said}");
    // Another release has another name. A Service of any other namespace must not get the token.
    for (namespace, answers) in [("volcano-system", true), ("other", false)] {
        let labelled = vec![(namespace, "ask")];
        let front = Front { labelled, other: Some((200, explanation())), ..Front::default() };
        let config = serve(folder.path(), front).await;
        let called = call(&["why", "job/train", "-v"], &config);
        let (out, said) = (text(&called.stdout), text(&called.stderr));
        assert_eq!(out.starts_with("ml/train (job, "), answers, "{out}{said}");
        assert_eq!(said == format!("{asked}Service {namespace}/ask: answers\n"), answers, "{said}");
        assert_eq!(said.contains("/ask"), answers, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_a_refusal_is_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let other = status(404, "no job, PodGroup or pod my-service");
    let labelled = vec![("volcano-system", "ask")];
    let front = Front { labelled, other: Some(other), ..Front::default() };
    let config = serve(folder.path(), front).await;
    let called = call(&["why", "my-service"], &config);
    let said = text(&called.stderr);
    assert_eq!(said, "error: no job, PodGroup or pod my-service\n");
    assert_eq!(called.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_91_a_kind_that_may_not_be_listed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let forbidden = Some("/apis/policy/v1/poddisruptionbudgets");
    let config = serve(folder.path(), Front { forbidden, ..Front::default() }).await;
    let called = call(&["why", "big", "-n", "default", "--local"], &config);
    let (out, said) = (text(&called.stdout), text(&called.stderr));
    assert!(out.starts_with("default/big (PodGroup, queue default, "), "{out}{said}");
    let named = "without PodDisruptionBudget: the user may not list them";
    assert!(said.lines().any(|line| line.starts_with(named)), "{said}");
    // Without nodes nothing can be said.
    let front = Front { forbidden: Some("/api/v1/nodes"), ..Front::default() };
    let config = serve(folder.path(), front).await;
    let called = call(&["why", "big", "-n", "default", "--local"], &config);
    let expected = "error: cannot list Node: the user may not list them";
    assert!(text(&called.stderr).starts_with(expected), "{}", text(&called.stderr));
    assert_eq!((called.status.code(), called.stdout.is_empty()), (Some(1), true));
}
