//! Who is asked where no place is given. Specification: answers.md 13 (ANS-88, ANS-91), cases 79, 82.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path as Segments, Request};
use axum::http::{Response, StatusCode};
use axum::routing::{any, get};
use serde_json::{Value, json};
use vc_kube::{AnswersAccess, AnswersClient};

use crate::{call, cluster, explanation, kubeconfig_of, text};

/// What a Service answers: a code and a text.
type ServiceAnswer = (u16, String);

/// What the API server has beside the objects of a cluster.
#[derive(Clone, Default)]
struct Front {
    /// Namespaces and names of Services with the label of the answers.
    labelled: Vec<(&'static str, &'static str)>,
    /// What the Service `ask` answers, in any namespace.
    other: Option<ServiceAnswer>,
    /// What the Service of the chart answers.
    default: Option<ServiceAnswer>,
    /// Namespaces of the Services that were asked, in order.
    asked: Arc<Mutex<Vec<String>>>,
    /// Path of a collection that the user may not list.
    forbidden: Option<&'static str>,
}

fn status(code: u16, message: &str) -> ServiceAnswer {
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
    let Front { labelled, other, default, asked, forbidden } = front;
    let list = |labelled: Vec<(&str, &str)>| {
        let item = |(namespace, name): (&str, &str)| {
            let metadata = json!({"namespace": namespace, "name": name});
            json!({ "metadata": metadata })
        };
        let items: Vec<Value> = labelled.into_iter().map(item).collect();
        json!({"apiVersion": "v1", "kind": "ServiceList", "items": items}).to_string()
    };
    let all = labelled.clone();
    let list_all = move || async move { list(all) };
    let list_of_one = move |Segments(wanted): Segments<String>| async move {
        list(labelled.into_iter().filter(|(namespace, _)| *namespace == wanted).collect())
    };
    let proxy = move |Segments(segments): Segments<(String, String, String)>| async move {
        let (namespace, service, _path) = segments;
        asked.lock().unwrap().push(namespace);
        let name = service.split(':').nth(1).unwrap();
        let answer = if name == "ask" { other } else { default };
        let unknown = || status(404, &format!("services \"{name}\" not found"));
        let (code, text) = answer.unwrap_or_else(unknown);
        let code = StatusCode::from_u16(code).unwrap();
        Response::builder().status(code).body(Body::from(text)).unwrap()
    };
    let refuse = async || {
        let (_, text) = status(403, "the user may not list them");
        (StatusCode::FORBIDDEN, text)
    };
    let routes = Router::new()
        .route("/api/v1/services", get(list_all))
        .route("/api/v1/namespaces/{namespace}/services", get(list_of_one))
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
async fn ans_88_the_cluster_is_listed_where_no_scheduler_answers() {
    let folder = tempfile::tempdir().unwrap();
    let config = serve(folder.path(), Front::default()).await;
    let printed = |words: &[&str]| {
        let called = call(words, &config);
        (text(&called.stdout), text(&called.stderr))
    };
    let (out, said) = printed(&["why", "big", "-n", "default"]);
    assert!(out.starts_with("default/big (PodGroup, queue default, "), "{out}{said}");
    assert!(said.starts_with(&format!("{FIRST}asked without the scheduler: ")), "{said}");
    let (_, said) = printed(&["why", "big", "-n", "default", "-v"]);
    let expected = format!(
        "Service volcano-system/vc-scheduler-answers: {FIRST}asked without the scheduler: "
    );
    assert!(said.starts_with(&expected), "{said}");
    // What a scheduler remembers is in no list, and whoever names a place wants that one.
    for words in [
        &["cycles"][..],
        &["bundle"],
        &["ui"],
        &["why", "big", "--service", "volcano-system/vc-scheduler-answers"],
        &["why", "big", "--watch"],
        &["what-if", "-f", "-", "-n", "default"],
        &["what-if", "-f", "/dev/stdin", "-n", "default"],
    ] {
        let (out, said) = printed(words);
        assert!(out.is_empty(), "{words:?}: {out}");
        assert!(said.starts_with(&format!("error: {FIRST}hint: ")), "{words:?}: {said}");
    }
    let (out, said) = printed(&["why", "big", "--server", "http://127.0.0.1:1"]);
    let unreached = "error: no answer from http://127.0.0.1:1: ";
    assert!(out.is_empty() && said.starts_with(unreached), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_a_service_of_another_name_is_asked_in_its_own_namespace_alone() {
    let folder = tempfile::tempdir().unwrap();
    let front = |namespace| Front {
        labelled: vec![(namespace, "ask")],
        other: Some((200, explanation())),
        ..Front::default()
    };
    let ours = front("volcano-system");
    let config = serve(folder.path(), ours).await;
    let called = call(&["why", "job/train"], &config);
    let (out, said) = (text(&called.stdout), text(&called.stderr));
    assert!(out.starts_with("ml/train (job, "), "{out}{said}");
    assert_eq!(said, "asked Service volcano-system/ask\n");
    // Whoever may create Services elsewhere must not get the token.
    let foreign = front("tenant");
    let asked = foreign.asked.clone();
    let config = serve(folder.path(), foreign).await;
    let called = call(&["why", "job/train"], &config);
    assert_eq!(called.status.code(), Some(1), "{}", text(&called.stdout));
    assert_eq!(*asked.lock().unwrap(), ["volcano-system"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_whoever_is_there_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = "no job, PodGroup or pod services \"x\" reach service";
    let away = "no endpoints available for service \"https:vc-scheduler-answers:answers\"";
    let hint = "hint: no scheduler answers there now: try again in some seconds";
    let of_away = format!(
        "error: no answer from Service volcano-system/vc-scheduler-answers: {away}\n{hint}"
    );
    let cases = [(404, unknown, format!("error: {unknown}\n")), (503, away, of_away)];
    for (code, message, expected) in cases {
        let default = Some(status(code, message));
        let labelled = vec![("volcano-system", "ask")];
        let other = Some((200, explanation()));
        let front = Front { labelled, other, default, ..Front::default() };
        let asked = front.asked.clone();
        let config = serve(folder.path(), front).await;
        let called = call(&["why", "job/train"], &config);
        let said = text(&called.stderr);
        assert!(said.starts_with(&expected), "{said}");
        assert_eq!((called.status.code(), asked.lock().unwrap().len()), (Some(1), 1));
    }
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
