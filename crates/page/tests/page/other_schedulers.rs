//! Pods of other schedulers. Specification: answers.md 2 (ANS-5, ANS-6), 20, case 3.

use std::sync::Mutex;

use serde_json::Value;
use vc_engine::CycleTime;
use vc_model::ClusterEvent;
use vc_model::fixture::events_of;
use vc_page::{AnswerView, StateSource};

use crate::support::{CLUSTER, Page, Source, view};

/// The page of [`CLUSTER`] with a pod of another scheduler that has a node, and one that waits.
fn page() -> Page {
    let (mut engine, _view, timeline) = view(CLUSTER);
    let mut events = events_of("pod ml/far cpu=1 @c1 running\npod ml/elsewhere cpu=1");
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event {
            pod.scheduler_name = "default-scheduler".into();
        }
    }
    let now = CycleTime { unix_micros: engine.last_micros() + 1_000_000 };
    let (_effects, report) = engine.cycle(events, now);
    let view = AnswerView::new(&engine, &report, StateSource::Daemon { behind_millis: 7 });
    Page::of(Source(Ok(Mutex::new((engine, view, timeline)))))
}

#[tokio::test]
async fn ans_03_another_scheduler_decides_about_a_pod_on_a_node() {
    let page = page();
    let reply = page.get("jo", "namespaces/ml/explanations/far?when=true").await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    let json = reply.json();
    let verdict = ["stage", "code", "text"].map(|field| json["verdict"][field].clone());
    let text = "scheduler default-scheduler decides about it";
    assert_eq!(verdict, ["ours", "NotOurs", text].map(Value::from));
    let subject = ["kind", "namespace", "name"].map(|field| json["subject"][field].clone());
    assert_eq!(subject, ["Pod", "ml", "far"].map(Value::from));
    assert!(json.get("start").is_none() && json.get("gang").is_none(), "{json}");
}

#[tokio::test]
async fn ans_03_a_pod_that_waits_for_another_scheduler_is_not_known() {
    let reply = page().get("jo", "namespaces/ml/explanations/elsewhere").await;
    assert_eq!(reply.code, 404, "{}", reply.text);
    let expected = "no job, PodGroup or pod ml/elsewhere\nhint: pods of other schedulers are not \
                    known here; ";
    assert!(reply.message().starts_with(expected), "{}", reply.message());
}
