//! The writer against an API server that is a function, and effects for it.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use vc_engine::{About, Effect, Nomination};
use vc_kube::{Clients, Decisions, EngineMessage, Observer, inbox, write};
use vc_model::{ClusterEvent, ObjectKey, PodCondition};

use crate::fake::{self, Answer, Log, Seen, json_answer};

pub(crate) const POD: &str = "/api/v1/namespaces/ns/pods/p";
pub(crate) const EVENTS: &str = "POST /api/v1/namespaces/ns/events";

/// The writer against a server.
pub(crate) struct Edge {
    pub(crate) log: Log,
    pub(crate) effects: mpsc::Sender<Decisions>,
    pub(crate) outcomes: mpsc::Receiver<EngineMessage>,
    pub(crate) writer: JoinHandle<()>,
}

/// Events are stored; the rest is up to the handler.
pub(crate) fn edge(handle: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static) -> Edge {
    let stored = move |seen: &Seen| match seen.line.contains("/events") {
        true => json_answer(201, seen.body.clone()),
        false => handle(seen),
    };
    observed(stored, fake::unobserved())
}

/// All requests are up to the handler.
pub(crate) fn observed(
    handle: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
    observer: Arc<dyn Observer>,
) -> Edge {
    let (client, log) = fake::client(handle);
    let (sender, outcomes) = inbox();
    let (effects, batches) = mpsc::channel(4);
    let writer = write(Clients::shared(client), "volcano".into(), sender, batches, observer);
    Edge { log, effects, outcomes, writer: tokio::spawn(writer) }
}

impl Edge {
    /// Performs everything and ends; the outcomes in the order in which they came.
    pub(crate) async fn run(mut self, effects: Vec<Effect>) -> (Log, Vec<ClusterEvent>) {
        self.effects.send(effects.into()).await.unwrap();
        drop(self.effects);
        self.writer.await.unwrap();
        let mut events = Vec::new();
        while let Some(message) = self.outcomes.recv().await {
            let EngineMessage::Event(event) = message else { panic!("not an event") };
            events.push(event);
        }
        (self.log, events)
    }

    pub(crate) async fn send(&self, effect: Effect) {
        self.effects.send(vec![effect].into()).await.unwrap();
    }

    pub(crate) async fn outcome(&mut self) -> ClusterEvent {
        match self.outcomes.recv().await {
            Some(EngineMessage::Event(event)) => event,
            other => panic!("not an event: {other:?}"),
        }
    }
}

pub(crate) fn key() -> ObjectKey {
    ObjectKey::new("ns", "p")
}

pub(crate) fn uid() -> Arc<str> {
    "uid-p".into()
}

pub(crate) fn bind() -> Effect {
    let annotations = vec![("volcano.sh/topology-decision".into(), "x".into())];
    Effect::Bind { pod: key(), uid: uid(), node: "n1".into(), annotations, node_lock: None }
}

pub(crate) fn condition(nomination: Nomination) -> Effect {
    let (status, reason, message) = ("False".into(), "Unschedulable".into(), "no room".into());
    let condition = Arc::new(PodCondition { status, reason, message });
    Effect::PodCondition { pod: key(), uid: uid(), condition, nomination }
}

/// Type, reason and message of the events that were written.
pub(crate) fn events(log: &Log) -> Vec<(String, String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |seen: &Seen| {
        let about = text(&seen.body["involvedObject"]["kind"]);
        let body = &seen.body;
        (about, text(&body["type"]), text(&body["reason"]), text(&body["message"]))
    };
    log.of(EVENTS).iter().map(row).collect()
}

pub(crate) fn event(
    about: &str,
    kind: &str,
    reason: &str,
    text: &str,
) -> (String, String, String, String) {
    (about.into(), kind.into(), reason.into(), text.into())
}

pub(crate) fn success() -> Option<Answer> {
    json_answer(201, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
}

/// As enqueue says it; the warning of a group that waits would rest.
pub(crate) fn condition_event() -> Effect {
    let about = About::PodGroup { key: ObjectKey::new("ns", "pg"), uid: "uid-pg".into() };
    Effect::Event { about, warning: false, reason: "Unschedulable", message: "m".into() }
}
