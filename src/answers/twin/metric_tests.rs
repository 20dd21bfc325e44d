//! Tests of the metrics that the twin writes. Specification: answers.md 17.

use serde_json::{Value, json};
use tokio::sync::oneshot;
use vc_engine::{CycleTime, EngineOptions, KNOWN};
use vc_model::ClusterEvent;
use vc_page::{AskedJob, Document};
use vc_wire::Kind;

use super::tests::{following, nothing, start_with};
use super::*;

/// 2026-01-01T00:00:00Z, in seconds since 1970.
const MIDNIGHT: i64 = 1_767_225_600;

const CONF: &str = "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n  \
    - name: predicates\n  - name: nodeorder\n";

/// An engine that decides, and the twin that follows it.
struct Followed {
    engine: Engine,
    twin: Twin,
}

impl Followed {
    fn new() -> Self {
        let config = vc_conf::parse("test.conf", CONF, &KNOWN).unwrap().config;
        let (mut engine, _warnings) = Engine::new(EngineOptions::default(), &config);
        let (mut twin, _handle, progress) = following();
        start_with(&mut engine, &mut twin, &progress);
        Self { engine, twin }
    }

    /// Decides at so many seconds after midnight.
    fn cycle(&mut self, seconds: i64, events: Vec<ClusterEvent>) {
        let batch = EngineBatch { kind: BatchKind::Cycle, events, now: time(seconds), digest: 0 };
        let digest = batch.clone().repeat(&mut self.engine).digest;
        self.twin.take(TwinInput::Batch(EngineBatch { digest, ..batch }));
        assert!(self.twin.engine.is_some(), "the twin decides the same");
    }

    /// A cycle that is given nothing and decides nothing.
    fn idle_cycle(&mut self, seconds: i64) {
        let (kind, events) = (BatchKind::Cycle, Vec::new());
        let batch = EngineBatch { kind, events, now: time(seconds), digest: nothing() };
        self.twin.follow_by(batch, |_, _| RepeatedBatch {
            digest: nothing(),
            effects: Vec::new(),
            report: None,
        });
    }

    /// Returns the sum of a metric over its labels.
    fn sum(&self, metric: &str) -> u64 {
        let exported = self.twin.meter.metrics.encode();
        let values = exported.lines().filter_map(|line| {
            let rest = line.strip_prefix(metric)?.strip_prefix(['{', ' '])?;
            rest.rsplit(' ').next()?.parse::<u64>().ok()
        });
        values.sum()
    }
}

fn time(seconds: i64) -> CycleTime {
    CycleTime { unix_micros: (MIDNIGHT + seconds) * 1_000_000 }
}

fn event(kind: Kind, object: &Value) -> ClusterEvent {
    vc_wire::decode(kind, object).unwrap().event
}

/// Returns a pod of 4 cpu of the PodGroup of this name. On the node it ends at 01:00.
fn pod(name: &str, node: Option<&str>, phase: &str) -> ClusterEvent {
    let annotations = json!({
        "scheduling.k8s.io/group-name": name, "reservation.volcano.sh/runtime": "1h",
    });
    let container = json!({"name": "main", "resources": {"requests": {"cpu": "4"}}});
    let mut pod = json!({
        "metadata": {
            "name": format!("{name}-0"), "namespace": "default", "uid": format!("{name}-0"),
            "annotations": annotations,
        },
        "spec": {"schedulerName": "volcano", "containers": [container]},
        "status": {"phase": phase},
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
        pod["status"]["startTime"] = "2026-01-01T00:00:00Z".into();
    }
    event(Kind::Pod, &pod)
}

/// Returns a job of one pod.
fn job(name: &str, node: Option<&str>) -> Vec<ClusterEvent> {
    let phase = if node.is_some() { "Running" } else { "Pending" };
    let group = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"minMember": 1, "queue": "default"},
        "status": {"phase": phase},
    });
    vec![event(Kind::PodGroup, &group), pod(name, node, phase)]
}

/// Returns a node of 4 cpu that job `holds` has, and job `waits`.
fn cluster() -> Vec<ClusterEvent> {
    let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    let node = json!({
        "metadata": {"name": "n"}, "status": {"allocatable": amounts, "capacity": amounts},
    });
    let queue = json!({
        "metadata": {"name": "default", "uid": "default"},
        "spec": {"weight": 1}, "status": {"state": "Open"},
    });
    let objects = vec![event(Kind::Node, &node), event(Kind::Queue, &queue)];
    [objects, job("holds", Some("n")), job("waits", None)].concat()
}

#[test]
fn metrics_17_jobs_that_wait_are_counted_once_a_minute_if_something_has_changed() {
    let mut followed = Followed::new();
    let waiting = |followed: &Followed| followed.sum("volcano_waiting_jobs");
    followed.cycle(600, cluster());
    assert_eq!(waiting(&followed), 1);
    followed.cycle(630, job("more", None));
    assert_eq!(waiting(&followed), 1, "the minute is the same");
    followed.cycle(660, Vec::new());
    assert_eq!(waiting(&followed), 2);
    let counts = [(("default", "of the test"), 7)];
    followed.twin.meter.metrics.waiting_jobs(counts.into_iter());
    followed.idle_cycle(720);
    assert_eq!(waiting(&followed), 7, "nothing has changed");
    followed.cycle(780, job("third", None));
    assert_eq!(waiting(&followed), 3);
}

#[test]
fn metrics_17_trials_and_starts_that_were_told_are_counted() {
    let mut followed = Followed::new();
    followed.cycle(600, cluster());
    let n_trials = |followed: &Followed| followed.sum("volcano_answers_trials_total");
    let of_list = n_trials(&followed);
    let (namespace, name) = ("default".to_owned(), "waits".to_owned());
    let asked = AskedJob { namespace, name, when: true, ..AskedJob::default() };
    let (reply, mut answer) = oneshot::channel();
    let question = Question::Explanation(asked);
    followed.twin.answer(TwinQuestion { question, asked: Instant::now(), reply });
    let Document::Explanation(told) = answer.try_recv().unwrap().unwrap().document else {
        panic!("no explanation")
    };
    let expected = told.start.and_then(|start| start.expected);
    assert_eq!(expected.as_deref(), Some("2026-01-01T01:00:00Z"));
    assert!(of_list < n_trials(&followed));
    let n_started = |followed: &Followed| {
        let of_ratio = followed.sum("volcano_start_prediction_error_ratio_count");
        (followed.sum("volcano_start_predictions_total"), of_ratio)
    };
    assert_eq!(n_started(&followed), (0, 0));
    followed.cycle(3_600, vec![pod("holds", Some("n"), "Succeeded")]);
    assert_eq!(n_started(&followed), (1, 1));
    let exported = followed.twin.meter.metrics.encode();
    assert!(exported.contains("volcano_start_predictions_total{covered=\"true\"} 1"), "{exported}");
}
