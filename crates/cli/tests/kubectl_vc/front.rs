//! An API server with a cluster and without a scheduler, and the ways to a scheduler that it may have.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path as Segments, Request};
use axum::http::{HeaderMap, Response, StatusCode, Uri};
use axum::routing::{any, get};
use serde_json::{Value, json};
use vc_kube::{AnswersAccess, AnswersClient};

use crate::servers::{open_tunnel, serve_plain};
use crate::{BASE, cluster, kubeconfig_of};

/// What somebody answers: a code and a text.
pub(crate) type FixedAnswer = (u16, String);

/// The ways that were asked, in order.
#[derive(Clone, Default)]
pub(crate) struct AskedWays(Arc<Mutex<Vec<String>>>);

impl AskedWays {
    fn add(&self, way: String) {
        self.0.lock().unwrap().push(way);
    }

    /// Returns the ways since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// What the API server has beside the objects of a cluster.
#[derive(Clone, Default)]
pub(crate) struct Front {
    /// What the group of the answers answers about a cluster. `None`: the API server does not have the group.
    pub(crate) group: Option<FixedAnswer>,
    /// What the discovery of the group answers. `None`: that the group is there, if it is.
    pub(crate) discovery: Option<FixedAnswer>,
    /// Namespaces and names of Services with the label of the answers.
    pub(crate) labelled: Vec<(&'static str, &'static str)>,
    /// True if the user may not list Services.
    pub(crate) hides_services: bool,
    /// What the Service `ask` answers, in any namespace.
    pub(crate) other: Option<FixedAnswer>,
    /// What the Service of the chart answers.
    pub(crate) default: Option<FixedAnswer>,
    /// Namespaces and names of pods with the label of the leader, and what their condition `Ready` says.
    pub(crate) pods: Vec<(&'static str, &'static str, &'static str)>,
    /// Where tunnels to pods lead. `None`: the user may not open any.
    pub(crate) tunnels: Option<SocketAddr>,
    /// Names of pods whose tunnels lead elsewhere, and where.
    pub(crate) other_tunnels: Vec<(&'static str, SocketAddr)>,
    /// The ways that were asked.
    pub(crate) asked: AskedWays,
    /// Path of a collection that the user may not list.
    pub(crate) forbidden: Option<&'static str>,
    /// Namespace of a user who may read its objects and list nodes, and nothing else. `None`: all may be read.
    pub(crate) only_in: Option<&'static str>,
    /// Objects of the cluster beside those of [`cluster`].
    pub(crate) objects: Vec<Value>,
}

/// True if a user of one namespace may read a path.
fn may_read(path: &str, namespace: &str) -> bool {
    let is_of_answers = path.contains("/apis/answers.volcano.sh/");
    path == "/api/v1/nodes"
        || (path.contains(&format!("/namespaces/{namespace}/")) && !is_of_answers)
}

/// Returns what the API server tells a user who may not read a path.
fn unreadable(path: &str) -> FixedAnswer {
    let text = match path.contains("/proxy/") {
        true => "services \"https:vc-scheduler-answers:answers\" is forbidden",
        false => "the user may not list them",
    };
    status(403, text)
}

pub(crate) fn status(code: u16, message: &str) -> FixedAnswer {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code,
        "message": message});
    (code, status.to_string())
}

fn response((code, text): FixedAnswer) -> Response<Body> {
    let code = StatusCode::from_u16(code).unwrap();
    Response::builder().status(code).body(Body::from(text)).unwrap()
}

/// Serves a cluster without a scheduler, and the ways to one. Returns the kubeconfig.
pub(crate) async fn serve(folder: &Path, front: Front) -> PathBuf {
    let inner = folder.join("inner");
    let options = vc_sim::serve::ServeOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        nodes: 2,
        objects: cluster(2).into_iter().chain(front.objects.clone()).collect(),
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
    // The server of the objects serves as long as somebody may ask it.
    let objects = Arc::new((AnswersClient::new(&access).await.unwrap(), server));
    let only_in = front.only_in;
    let pass = move |request: Request| {
        let objects = objects.clone();
        async move {
            let path = request.uri().path();
            if only_in.is_some_and(|namespace| !may_read(path, namespace)) {
                return response(unreadable(path));
            }
            let (parts, body) = request.into_parts();
            let body: Bytes = to_bytes(body, usize::MAX).await.unwrap();
            let answered = objects.0.forward(Request::from_parts(parts, body)).await.unwrap();
            // Its headers are about the way that it came.
            let code = answered.status();
            Response::builder().status(code).body(Body::from(answered.into_body())).unwrap()
        }
    };
    let refuse = async || response(status(403, "the user may not list them"));
    let ways = match front.only_in {
        // What leads to a scheduler may not be read either.
        Some(_) => Router::new(),
        None => routes(&front).merge(routes_of_pods(&front)),
    };
    let routes = ways.route(front.forbidden.unwrap_or("/forbidden"), get(refuse)).fallback(pass);
    let address = serve_plain(routes).await;
    kubeconfig_of(folder, "secret", &format!("http://{address}"))
}

/// The group and the Services.
fn routes(front: &Front) -> Router {
    let Front { group, discovery, labelled, hides_services, .. } = front.clone();
    let Front { other, default, asked, .. } = front.clone();
    let list = move |Segments(wanted): Segments<String>| async move {
        let item = |(namespace, name): &(&str, &str)| {
            let metadata = json!({"namespace": namespace, "name": name});
            json!({ "metadata": metadata })
        };
        let here = labelled.iter().filter(|(namespace, _)| *namespace == wanted);
        let items: Vec<Value> = here.map(item).collect();
        let list = json!({"apiVersion": "v1", "kind": "ServiceList", "items": items});
        let refused = status(403, "services is forbidden: User \"jo\" cannot list resource");
        response(if hides_services { refused } else { (200, list.to_string()) })
    };
    let proxied = asked.clone();
    let proxy = move |Segments(segments): Segments<(String, String, String)>| async move {
        let (namespace, service, _path) = segments;
        let name = service.split(':').nth(1).unwrap();
        proxied.add(format!("Service {namespace}/{name}"));
        let answer = if name == "ask" { other } else { default };
        response(answer.unwrap_or_else(|| status(404, &format!("services \"{name}\" not found"))))
    };
    let routes = Router::new()
        .route("/api/v1/namespaces/{namespace}/services", get(list))
        .route("/api/v1/namespaces/{namespace}/services/{name}/proxy/{*path}", any(proxy));
    let known =
        r#"{"kind": "APIResourceList", "groupVersion": "answers.volcano.sh/v1", "resources": []}"#;
    let discovery = discovery.or_else(|| group.as_ref().map(|_| (200, known.to_owned())));
    let Some(discovery) = discovery else { return routes };
    let routes = routes.route(BASE, get(async move || response(discovery)));
    let Some(group) = group else { return routes };
    let answer = move |uri: Uri, headers: HeaderMap| async move {
        // What is not about a cluster is for everybody.
        if uri.path().ends_with("/openapi.json") {
            return response((200, "{}".to_owned()));
        }
        // The API server knows the user by its own credentials; no other ones are sent to it.
        assert_eq!(headers["authorization"], "Bearer secret");
        assert!(!headers.contains_key("x-answers-authorization"));
        asked.add("group".to_owned());
        response(group)
    };
    routes.route(&format!("{BASE}/{{*path}}"), any(answer))
}

/// The pods of a scheduler, with tunnels to them.
fn routes_of_pods(front: &Front) -> Router {
    let Front { pods, tunnels, other_tunnels, asked, .. } = front.clone();
    let list = move |Segments(wanted): Segments<String>, uri: Uri| async move {
        let query = uri.query().unwrap_or_default().replace("%2F", "/").replace("%3D", "=");
        assert!(query.contains("labelSelector=scheduling.volcano.sh/answers=true"), "{query}");
        let item = |(namespace, name, ready): &(&str, &str, &str)| {
            json!({"metadata": {"namespace": namespace, "name": name,
                    "labels": {"scheduling.volcano.sh/answers": "true"}},
                "spec": {"containers": [{"name": "vc-scheduler",
                    "ports": [{"name": "answers", "containerPort": 8443}]}]},
                "status": {"conditions": [{"type": "Ready", "status": ready}]}})
        };
        let here = pods.iter().filter(|(namespace, ..)| *namespace == wanted);
        let items: Vec<Value> = here.map(item).collect();
        let list = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items});
        response((200, list.to_string()))
    };
    let forward = move |Segments(segments): Segments<(String, String)>, request: Request| async move {
        let (namespace, name) = segments;
        assert_eq!(request.headers()["authorization"], "Bearer secret");
        let query = request.uri().query().unwrap_or_default().trim_start_matches('&');
        asked.add(format!("pod {namespace}/{name} {query}"));
        let refused = format!("pods {name:?} is forbidden: User \"jo\" cannot create resource");
        let other = other_tunnels.iter().find(|(of, _)| *of == name).map(|(_, target)| *target);
        match other.or(tunnels) {
            Some(target) => open_tunnel(request, target),
            None => response(status(403, &refused)),
        }
    };
    Router::new()
        .route("/api/v1/namespaces/{namespace}/pods", get(list))
        .route("/api/v1/namespaces/{namespace}/pods/{name}/portforward", any(forward))
}
