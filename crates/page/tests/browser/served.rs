//! The routes over a cluster as text, on a port of this machine.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tower::ServiceExt;
use vc_engine::Engine;
use vc_page::{
    Access, AnswerSource, AnswerView, Answered, BASE, Document, Everybody, Problem, Question,
    RequestObserver, RouteOptions, Timeline, routes,
};

use crate::support::{CLUSTER, Table, view};

/// Time after which a user may send one more what-if.
const BETWEEN_WHAT_IFS: Duration = Duration::from_millis(100);

/// A cluster after a cycle, and the answers about it.
pub(crate) type View = (Engine, AnswerView, Timeline);

/// What is answered, and what was asked so far.
pub(crate) struct State {
    view: Mutex<View>,
    revision: AtomicUsize,
    n_asked: AtomicUsize,
    /// The changes of what-ifs, each as it was sent.
    changes: Mutex<Vec<Value>>,
    /// Path of the route, and status, of each request.
    answered: Mutex<Vec<(&'static str, u16)>>,
    /// So many of the next what-ifs are too many.
    n_too_many: AtomicUsize,
    /// What is done to an answer before it is sent.
    alter: Mutex<Option<fn(&mut Document)>>,
    /// True if a job is explained without sets, remedies and start, which take minutes in a test build of a large
    /// cluster.
    is_quick: AtomicBool,
}

impl State {
    fn new(view: View) -> Self {
        Self {
            view: Mutex::new(view),
            revision: AtomicUsize::new(1),
            n_asked: AtomicUsize::default(),
            changes: Mutex::default(),
            n_too_many: AtomicUsize::default(),
            answered: Mutex::default(),
            alter: Mutex::default(),
            is_quick: AtomicBool::default(),
        }
    }

    /// Replaces the cluster.
    pub(crate) fn replace(&self, text: &str) {
        *self.view.lock().unwrap() = view(text);
        self.revision.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets the page ask for everything anew, as after a cycle.
    pub(crate) fn change(&self) {
        self.revision.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets jobs be explained without what takes long.
    pub(crate) fn explain_quickly(&self) {
        self.is_quick.store(true, Ordering::Relaxed);
    }

    /// Lets this function change every answer from now on.
    pub(crate) fn alter_answers(&self, alter: fn(&mut Document)) {
        *self.alter.lock().unwrap() = Some(alter);
    }

    /// Answers so many of the next what-ifs that there are too many.
    pub(crate) fn refuse_next(&self, n_what_ifs: usize) {
        self.n_too_many.store(n_what_ifs, Ordering::Relaxed);
    }

    /// Returns how often the view was asked: requests that are answered 304 do not ask it.
    pub(crate) fn n_asked(&self) -> usize {
        self.n_asked.load(Ordering::Relaxed)
    }

    /// Returns how many requests for this route were answered with this status.
    pub(crate) fn n_answered(&self, route: &str, code: u16) -> usize {
        let answered = self.answered.lock().unwrap();
        answered.iter().filter(|it| **it == (route, code)).count()
    }

    pub(crate) fn last_changes(&self) -> Value {
        self.changes.lock().unwrap().last().cloned().unwrap_or_default()
    }
}

/// The state as the routes want it.
#[derive(Clone)]
struct Live(Arc<State>);

impl AnswerSource for Live {
    fn revision(&self) -> Result<String, Problem> {
        Ok(self.0.revision.load(Ordering::Relaxed).to_string())
    }

    async fn ask(&self, mut question: Question) -> Result<Answered, Problem> {
        self.0.n_asked.fetch_add(1, Ordering::Relaxed);
        if let Question::Explanation(asked) = &mut question {
            let is_quick = self.0.is_quick.load(Ordering::Relaxed);
            asked.quick |= is_quick;
            // A start takes the sets.
            asked.when &= !is_quick;
        }
        if let Question::WhatIf(texts) = &question {
            let document = texts.document.as_ref().map(|(_, object)| &object.value);
            let changes = document.map(|it| it["spec"]["changes"].clone());
            let left = self.0.n_too_many.load(Ordering::Relaxed);
            if 0 < left {
                self.0.n_too_many.store(left - 1, Ordering::Relaxed);
                let (message, retry_after) = ("too many what-ifs".to_owned(), Some(1));
                let (field, nameless) = (None, None);
                return Err(Problem { code: 429, message, retry_after, field, nameless });
            }
            self.0.changes.lock().unwrap().push(changes.unwrap_or_default());
        }
        let mut view = self.0.view.lock().unwrap();
        let (engine, view, timeline) = &mut *view;
        let mut document = view.answer(engine, timeline, &question)?;
        if let Some(alter) = *self.0.alter.lock().unwrap() {
            alter(&mut document);
        }
        Ok(Answered { document, names: view.names() })
    }
}

impl RequestObserver for Live {
    fn answered(&self, route: &'static str, _user: &str, code: u16, _took: Duration) {
        self.0.answered.lock().unwrap().push((route, code));
    }
}

/// A server that runs.
struct Running {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

/// A server on a port of its own.
pub(crate) struct Served {
    pub(crate) state: Arc<State>,
    router: Router,
    address: SocketAddr,
    running: Option<Running>,
}

impl Served {
    /// Serves the usual cluster without tokens.
    pub(crate) async fn open() -> Self {
        Self::open_cluster(CLUSTER).await
    }

    /// Serves a cluster without tokens.
    pub(crate) async fn open_cluster(text: &str) -> Self {
        Self::open_view(view(text)).await
    }

    pub(crate) async fn open_view(view: View) -> Self {
        Self::start(Everybody, view).await
    }

    /// Serves the usual cluster to users with these rights. A token is the name of its user.
    pub(crate) async fn with_users(users: &'static [(&'static str, &'static str)]) -> Self {
        Self::start(Table(users), view(CLUSTER)).await
    }

    async fn start(access: impl Access, view: View) -> Self {
        let state = Arc::new(State::new(view));
        let live = Live(state.clone());
        let options = RouteOptions { has_page: true };
        let router = routes(access, live.clone(), Arc::new(live), options);
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut served = Self { state, router, address, running: None };
        served.restart().await;
        served
    }

    /// Listens, on the same port as before if there was one.
    pub(crate) async fn restart(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = axum::serve(listener, self.router.clone());
        let serving = serving.with_graceful_shutdown(async { drop(stopped.await) });
        let ended = tokio::spawn(async { serving.await.unwrap() });
        self.running = Some(Running { stop, ended });
    }

    /// Ends all connections and listens no more.
    pub(crate) async fn stop(&mut self) {
        let running = self.running.take().unwrap();
        running.stop.send(()).unwrap();
        running.ended.await.unwrap();
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns the address of a view.
    pub(crate) fn page(&self, hash: &str) -> String {
        format!("http://{}/ui/{hash}", self.address)
    }

    /// Returns what the routes answer to a path below that of the version.
    pub(crate) async fn get(&self, path: &str) -> Value {
        self.get_as("", path).await
    }

    pub(crate) async fn get_as(&self, token: &str, path: &str) -> Value {
        self.send(http::Request::get(format!("{BASE}{path}")), token, String::new()).await
    }

    /// Returns what these changes would do.
    pub(crate) async fn suppose(&self, changes: &Value) -> Value {
        let spec = json!({ "changes": changes, "cycles": "settled" });
        let document =
            json!({ "apiVersion": "answers.volcano.sh/v1", "kind": "WhatIf", "spec": spec });
        self.post_as("", "/whatifs", &document.to_string()).await
    }

    pub(crate) async fn post_as(&self, token: &str, path: &str, text: &str) -> Value {
        let request = http::Request::post(format!("{BASE}{path}"));
        self.send(request, token, text.to_owned()).await
    }

    /// Sends a request, past the port. Sends it again as long as the user has asked too much.
    async fn send(&self, request: http::request::Builder, token: &str, body: String) -> Value {
        let request = request.header("authorization", format!("Bearer {token}"));
        let (parts, ()) = request.body(()).unwrap().into_parts();
        loop {
            let request = http::Request::from_parts(parts.clone(), Body::from(body.clone()));
            let response = self.router.clone().oneshot(request).await.unwrap();
            let is_limited = response.status().as_u16() == 429;
            let text = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            if !is_limited {
                return serde_json::from_slice(&text).unwrap();
            }
            sleep(BETWEEN_WHAT_IFS).await;
        }
    }
}
