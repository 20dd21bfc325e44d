//! Jobs and pods that the cluster has forgotten. Specification: answers.md 20, case 47.

use std::sync::Mutex;

use serde_json::Value;
use vc_engine::{CycleTime, Engine};
use vc_model::fixture::{START_MICROS, events_of};
use vc_model::{ClusterEvent, ObjectKey};
use vc_page::{
    AnswerView, AskedJob, Document, Question, StateSource, Timeline, TimelineStep, time_text,
    why_text,
};

use crate::support::{CLUSTER, Page, Source, view};

/// Two jobs of controllers beside those of [`CLUSTER`].
const JOBS: &str = "job ml/eval-9c owner=9c queue=research min=1 running\n task a cpu=1 @c1 running
    job ml/sweep-1f owner=1f queue=research min=1 running\n task a cpu=1 @c1 running";
/// The first of them after its end.
const ENDED: &str =
    "job ml/eval-9c owner=9c queue=research min=1 running\n task a cpu=1 @c1 succeeded";

/// An engine after cycles that are recorded, one second after the other.
struct World {
    engine: Engine,
    view: AnswerView,
    timeline: Timeline,
}

impl World {
    fn new() -> Self {
        let (engine, view, timeline) = view(&format!("{CLUSTER}\n{JOBS}"));
        Self { engine, view, timeline }
    }

    fn now_micros(&self) -> i64 {
        self.engine.last_micros()
    }

    fn cycle(&mut self, events: Vec<ClusterEvent>) {
        let now_micros = self.now_micros() + 1_000_000;
        let n_events = events.len();
        self.timeline.learn(self.engine.cluster(), &events, now_micros);
        let now = CycleTime { unix_micros: now_micros };
        let (effects, report) = self.engine.cycle(events, now);
        self.timeline.record(&TimelineStep {
            cluster: self.engine.cluster(),
            effects: &effects,
            report: Some(&report),
            cycle: self.engine.n_cycles(),
            now_micros,
            took_micros: 7,
            n_events,
        });
        let source = StateSource::Daemon { behind_millis: 7 };
        self.view = AnswerView::new(&self.engine, &report, source);
    }

    /// Returns the lines about a job or pod of the namespace ml.
    fn lines(&mut self, name: &str) -> Vec<String> {
        let (namespace, name) = ("ml".to_owned(), name.to_owned());
        let question = Question::Explanation(AskedJob { namespace, name, ..AskedJob::default() });
        match self.view.answer(&self.engine, &self.timeline, &question) {
            Ok(Document::Explanation(one)) => why_text(&one).lines().map(str::to_owned).collect(),
            Ok(other) => panic!("no explanation: {other:?}"),
            Err(problem) => vec![problem.message],
        }
    }

    fn page(self) -> Page {
        Page::of(Source(Ok(Mutex::new((self.engine, self.view, self.timeline)))))
    }
}

fn group_deleted(name: &str) -> ClusterEvent {
    ClusterEvent::PodGroupDeleted { key: ObjectKey::new("ml", name) }
}

fn pod_deleted(name: &str) -> ClusterEvent {
    let uid = format!("ml-{name}").as_str().into();
    ClusterEvent::PodDeleted { key: ObjectKey::new("ml", name), uid }
}

#[test]
fn ans_47_a_job_that_has_ended_or_was_deleted_is_gone() {
    let mut world = World::new();
    world.cycle(events_of(ENDED));
    let ended = format!("WHY      Gone: ended at {}", time_text(world.now_micros()));
    assert!(!world.lines("eval").contains(&ended), "its PodGroup says that it exists");
    world.cycle(vec![group_deleted("eval-9c")]);
    let head = "ml/eval (job, PodGroup eval-9c) is gone";
    // The pod still exists, and nothing of it waits.
    for name in ["eval", "eval-9c"] {
        assert_eq!(world.lines(name)[..2], [head, &ended], "{name}");
    }
    assert!(!world.lines("eval-9c-a")[1].contains("Gone"), "{:?}", world.lines("eval-9c-a"));
    world.cycle(vec![
        pod_deleted("eval-9c-a"),
        pod_deleted("sweep-1f-a"),
        group_deleted("sweep-1f"),
    ]);
    assert_eq!(world.lines("eval")[..2], [head, &ended]);
    let pod = world.lines("eval-9c-a");
    let of_group = format!("{ended}, pod of PodGroup ml/eval-9c");
    assert_eq!(pod[..2], ["ml/eval-9c-a (pod) is gone", &of_group]);
    let deleted = format!("WHY      Gone: deleted at {}", time_text(world.now_micros()));
    let lines = world.lines("sweep");
    assert_eq!(lines[..2], ["ml/sweep (job, PodGroup sweep-1f) is gone", &deleted]);
    assert_eq!(lines.len(), 3, "{lines:?}");
    let unknown = world.lines("nothing");
    assert!(unknown[0].starts_with("no job, PodGroup or pod ml/nothing"), "{unknown:?}");
}

#[tokio::test]
async fn ans_47_a_job_that_is_gone_is_answered_over_http() {
    let mut world = World::new();
    world.cycle(vec![pod_deleted("sweep-1f-a"), group_deleted("sweep-1f")]);
    let deleted = format!("deleted at {}", time_text(START_MICROS + 5_401_000_000));
    let page = world.page();
    let reply = page.get("jo", "namespaces/ml/explanations/sweep").await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    let json: Value = reply.json();
    let verdict = ["stage", "code", "text"].map(|field| json["verdict"][field].clone());
    assert_eq!(verdict, ["ours".into(), "Gone".into(), Value::from(deleted)]);
    let subject = ["kind", "name", "job"].map(|field| json["subject"][field].clone());
    assert_eq!(subject, ["PodGroup".into(), "sweep-1f".into(), Value::from("sweep")]);
    let pod = page.get("jo", "namespaces/ml/explanations/sweep-1f-a?kind=pod").await.json();
    assert_eq!((&pod["verdict"]["code"], &pod["subject"]["kind"]), (&"Gone".into(), &"Pod".into()));
    let wrong = page.get("jo", "namespaces/ml/explanations/sweep-1f-a?kind=job").await;
    assert_eq!(wrong.code, 404, "{}", wrong.text);
}

#[test]
fn ans_47_a_job_of_another_controller_is_gone() {
    let etl = "job ml/podgroup-5e owner=etl kind=Job queue=research min=1 running\n task a cpu=1 @c1 running";
    let (engine, view, timeline) = view(&format!("{CLUSTER}\n{etl}"));
    let mut world = World { engine, view, timeline };
    world.cycle(vec![pod_deleted("podgroup-5e-a"), group_deleted("podgroup-5e")]);
    let head = "ml/etl (job, PodGroup podgroup-5e) is gone";
    for name in ["etl", "podgroup-5e"] {
        assert_eq!(world.lines(name)[0], head, "{name}");
    }
}
