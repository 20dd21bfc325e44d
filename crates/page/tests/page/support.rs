//! A cluster as text behind the routes, and users with the rights of a table.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use serde_json::Value;
use tower::ServiceExt;
use vc_conf::Config;
use vc_engine::{CycleTime, Engine, EngineOptions, KNOWN};
use vc_model::fixture::{START_MICROS, events_of};
use vc_page::{
    Access, AnswerSource, AnswerView, Answered, BASE, BundleFile, Document, Everybody, Problem,
    Question, Right, Route, RouteOptions, StateSource, Timeline, TimelineStep, Uncounted, User,
    routes,
};

const CONF: &str = "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n  - name: \
    priority\n  - name: predicates\n  - name: capacity\n  - name: nodeorder\n";

/// Example A, a job of another namespace behind it, and a queue at its limit.
pub(crate) const CLUSTER: &str = "node g1 cpu=64 gpu=8\nnode g2 cpu=64 gpu=8
    node g4 cpu=64 gpu=8 taint=team=vision:NoSchedule\nnode c1 cpu=64
    queue research\nqueue small cap.gpu=4
    job ml/train queue=research min=2\n task a cpu=8 gpu=4 x2
    job prod/serve queue=research min=1 created=2400\n task a cpu=8 gpu=4
    job ml/on-g1 queue=research min=1 running\n task a gpu=5 @g1 running
    job prod/on-g2 queue=research min=1 running\n task a gpu=5 @g2 running
    job ml/held queue=small min=2\n task a gpu=3 x2";

/// Two zones of racks over the nodes of [`CLUSTER`].
pub(crate) const RACKS: &str = "hypernode rack-a tier=1 node=g1 node=g2
    hypernode rack-b tier=1 node=g4
    hypernode zone tier=2 member=rack-a member=rack-b";

/// Returns the engine of a cluster after one cycle, and the answers about it.
pub(crate) fn view(text: &str) -> (Engine, AnswerView, Timeline) {
    view_with("capacity", text)
}

/// Returns the same with this plugin in place of `capacity`.
pub(crate) fn view_with(quota: &str, text: &str) -> (Engine, AnswerView, Timeline) {
    let conf = CONF.replace("capacity", quota);
    let config: Config = vc_conf::parse("test.conf", &conf, &KNOWN).unwrap().config;
    let (mut engine, _warnings) = Engine::new(EngineOptions::default(), &config);
    engine.explain(true);
    let now = CycleTime { unix_micros: START_MICROS + 5_400_000_000 };
    let events = events_of(&format!("queue default\n{text}"));
    let n_events = events.len();
    let (effects, report) = engine.cycle(events, now);
    let view = AnswerView::new(&engine, &report, StateSource::Daemon { behind_millis: 7 });
    let mut timeline = Timeline::default();
    timeline.record(&TimelineStep {
        cluster: engine.cluster(),
        effects: &effects,
        report: Some(&report),
        cycle: engine.n_cycles(),
        now_micros: now.unix_micros,
        took_micros: 7,
        n_events,
    });
    (engine, view, timeline)
}

/// Answers from a view, or with a problem.
pub(crate) struct Source(pub(crate) Result<Mutex<(Engine, AnswerView, Timeline)>, Problem>);

impl AnswerSource for Source {
    fn revision(&self) -> Result<String, Problem> {
        self.0.as_ref().map(|_| "1-2".to_owned()).map_err(Clone::clone)
    }

    async fn ask(&self, question: Question) -> Result<Answered, Problem> {
        let mut asked = self.0.as_ref().map_err(Clone::clone)?.lock().unwrap();
        let (engine, view, timeline) = &mut *asked;
        if let Question::Bundle { n_cycles } = question {
            let contents = format!("{n_cycles:?} cycles").into_bytes();
            let document = Document::Bundle(Box::new(BundleFile { cycle: 7, contents }));
            return Ok(Answered { document, names: view.names() });
        }
        Ok(Answered { document: view.answer(engine, timeline, &question)?, names: view.names() })
    }
}

/// The token is the name of the user. A right is `verb resource namespace`; `*` stands for any.
pub(crate) struct Table(pub(crate) &'static [(&'static str, &'static str)]);

impl Access for Table {
    async fn user(&self, token: &str) -> Result<Option<User>, String> {
        match token {
            "broken" => Err("no answer within 10 s".to_owned()),
            "nobody" => Ok(None),
            name => Ok(Some(User { name: name.to_owned(), ..User::default() })),
        }
    }

    async fn may(&self, user: &User, right: &Right) -> Result<bool, String> {
        let namespace = right.namespace.as_deref().unwrap_or("-");
        let asked = [right.verb, right.resource, namespace];
        Ok(self.0.iter().any(|(name, granted)| {
            let words = granted.split(' ').zip(asked);
            *name == user.name && { words }
                .all(|(granted, asked)| granted == "*" || granted == asked)
        }))
    }
}

/// An administrator, and a user of namespace ml.
pub(crate) const USERS: &[(&str, &str)] = &[
    ("admin", "* * *"),
    ("jo", "get explanations ml"),
    ("jo", "list explanations ml"),
    ("lister", "list explanations *"),
    ("lister", "list timelines *"),
    ("jo", "create whatifs ml"),
    ("guest", "create whatifs *"),
    ("viewer", "get queues *"),
    ("viewer", "list nodes *"),
    ("viewer", "get nodes *"),
    ("of-ml", "list * *"),
    ("of-ml", "get queues *"),
    ("of-ml", "get nodes *"),
    ("of-ml", "get explanations ml"),
    ("of-ml", "create whatifs *"),
    ("of-jobs", "* explanations *"),
    ("of-jobs", "list timelines *"),
    ("of-jobs", "list cycles *"),
    ("of-jobs", "list summaries *"),
    ("of-jobs", "create whatifs *"),
];

/// Returns a path of the route that answers about [`CLUSTER`] and namespace ml.
pub(crate) fn example_path(route: &Route) -> String {
    let name = match route.resource {
        "queues" => "research",
        "nodes" => "g1",
        _ => "train",
    };
    let path = route.path.replace("{namespace}", "ml").replace("{name}", name);
    path.trim_start_matches('/').to_owned()
}

/// What was answered.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// Returns the sentence of a `Status`.
    pub(crate) fn message(&self) -> String {
        let status = self.json();
        assert_eq!((&status["kind"], &status["code"]), (&"Status".into(), &self.code.into()));
        status["message"].as_str().unwrap().to_owned()
    }
}

/// The routes.
pub(crate) struct Page(Router);

impl From<Router> for Page {
    fn from(router: Router) -> Self {
        Self(router)
    }
}

impl Page {
    pub(crate) fn new() -> Self {
        Self::of(Source(Ok(Mutex::new(view(CLUSTER)))))
    }

    pub(crate) fn of(source: Source) -> Self {
        Self(routes(Table(USERS), source, Arc::new(Uncounted), RouteOptions { has_page: true }))
    }

    /// The routes without tokens.
    pub(crate) fn open(source: Source) -> Self {
        let options = RouteOptions { has_page: true };
        Self(routes(Everybody, source, Arc::new(Uncounted), options))
    }

    /// Asks with these headers. The path is below that of the version if it does not begin with `/`.
    pub(crate) async fn ask(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("{BASE}/{path}"),
        };
        self.send(http::Request::get(path), headers, Body::empty()).await
    }

    async fn send(
        &self,
        mut request: http::request::Builder,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Reply {
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.0.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8_lossy(&body).into_owned();
        Reply { code: parts.status.as_u16(), headers: parts.headers, text }
    }

    /// Sends a body as this user.
    pub(crate) async fn post(&self, user: &str, path: &str, body: &str) -> Reply {
        let request = http::Request::post(format!("{BASE}/{path}"));
        let token = format!("Bearer {user}");
        self.send(request, &[("authorization", &token)], body.to_owned().into()).await
    }

    /// Asks as this user.
    pub(crate) async fn get(&self, user: &str, path: &str) -> Reply {
        self.ask(path, &[("authorization", &format!("Bearer {user}"))]).await
    }
}
