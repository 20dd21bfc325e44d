//! The stages of a task that the edge measures. Specification: core.md 9.1.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use vc_engine::Effect;
use vc_kube::{Clients, Decisions, Observer, inbox, write};
use vc_model::ObjectKey;

use crate::fake::{self, json_answer, refusal};

#[derive(Default)]
struct ObservedTexts(Mutex<Vec<&'static str>>);

impl Observer for ObservedTexts {
    fn stage(&self, stage: &'static str, _: Duration) {
        self.0.lock().unwrap().push(stage);
    }

    fn task_stage(&self, stage: &'static str, _: Duration) {
        self.0.lock().unwrap().push(stage);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_written_before_a_bind_and_the_bind_are_measured_if_they_succeed() {
    let (client, _log) = fake::client(|seen| match seen.line.ends_with("/b/binding") {
        true => refusal(500, "InternalError", "no luck"),
        false => json_answer(201, json!({"kind": "Status", "apiVersion": "v1"})),
    });
    let (reported, (sender, _outcomes)) = (Arc::new(ObservedTexts::default()), inbox());
    let (effects, batches) = mpsc::channel(4);
    let writer =
        write(Clients::shared(client), "volcano".into(), sender, batches, reported.clone());
    let writer = tokio::spawn(writer);
    let pod = |name: &str| ObjectKey::new("ns", name);
    let pre_bind = Effect::PreBind {
        pod: pod("a"),
        uid: "a".into(),
        node: "n".into(),
        writes: Box::default(),
    };
    let bind = |name: &str| Effect::Bind {
        pod: pod(name),
        uid: name.into(),
        node: "n".into(),
        annotations: Vec::new(),
        node_lock: None,
    };
    for effect in [pre_bind, bind("a"), bind("b")] {
        let created_micros = [("a".into(), 0), ("b".into(), 0)].into_iter().collect();
        effects.send(Decisions { effects: vec![effect], created_micros }).await.unwrap();
    }
    drop(effects);
    writer.await.unwrap();
    assert_eq!(*reported.0.lock().unwrap(), ["PreBind", "PreBound", "Bind", "Bound"]);
}
