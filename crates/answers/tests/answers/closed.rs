//! A recorded story in a world that answers to other decisions. Case 99; the times are worked out by hand.

use std::sync::Arc;

use vc_answers::{ClosedFigures, OutsideStory, WaitTimes, closed_run};
use vc_conf::Config;
use vc_engine::{BatchKind, CycleTime, Effect, Engine, EngineBatch, EngineOptions};
use vc_model::ClusterEvent;
use vc_model::fixture::{START_MICROS, events_of};

use crate::support::conf;

const SECOND: i64 = 1_000_000;
const PRIORITIES: &str = "priority gang predicates nodeorder";

/// An engine whose cycles are recorded.
struct Recorded {
    engine: Engine,
    begin: Engine,
    story: OutsideStory,
}

impl Recorded {
    /// Begins with these objects and a cycle.
    fn new(config: &Config, text: &str) -> Self {
        let (mut engine, _warnings) = Engine::new(EngineOptions::default(), config);
        let now = CycleTime { unix_micros: START_MICROS };
        engine.cycle(events_of(&format!("queue default\n{text}")), now);
        let begin = engine.copy();
        let story = OutsideStory::new(&begin, START_MICROS);
        Self { engine, begin, story }
    }

    /// Runs a cycle so many seconds after the first one. Returns binds and evictions.
    fn at(&mut self, seconds: i64, text: &str) -> Vec<String> {
        self.cycle(seconds, events_of(text))
    }

    /// The same after a pod is gone, and perhaps its PodGroup too.
    fn gone(&mut self, seconds: i64, pod: &str, with_group: bool, text: &str) -> Vec<String> {
        let cluster = self.engine.cluster();
        let (_, row) = cluster.tasks.iter().find(|(_, row)| *row.key.name == *pod).unwrap();
        let group = row.job.map(|job| cluster.jobs[job].key.clone());
        let mut events =
            vec![ClusterEvent::PodDeleted { key: row.key.clone(), uid: row.uid.clone() }];
        let group = group.filter(|_| with_group);
        events.extend(group.map(|key| ClusterEvent::PodGroupDeleted { key }));
        events.extend(events_of(text));
        self.cycle(seconds, events)
    }

    /// Gives the engine these objects between two cycles.
    fn between(&mut self, seconds: i64, text: &str) {
        let now = CycleTime { unix_micros: START_MICROS + seconds * SECOND };
        let effects = self.engine.follow_up(events_of(text), now);
        let kind = BatchKind::FollowUp;
        let batch = EngineBatch { kind, events: events_of(text), now, digest: 0 };
        self.story.add_batch(&batch, &effects, self.engine.cluster());
    }

    fn uid(&self, pod: &str) -> Arc<str> {
        let mut tasks = self.engine.cluster().tasks.iter();
        tasks.find(|(_, row)| *row.key.name == *pod).unwrap().1.uid.clone()
    }

    fn cycle(&mut self, seconds: i64, events: Vec<ClusterEvent>) -> Vec<String> {
        let now = CycleTime { unix_micros: START_MICROS + seconds * SECOND };
        let (effects, _report) = self.engine.cycle(events.clone(), now);
        let batch = EngineBatch { kind: BatchKind::Cycle, events, now, digest: 0 };
        self.story.add_batch(&batch, &effects, self.engine.cluster());
        let decided = effects.iter().filter_map(|effect| match effect {
            Effect::Bind { pod, .. } => Some(format!("bind {}", pod.name)),
            Effect::Evict { pod, .. } => Some(format!("evict {}", pod.name)),
            _ => None,
        });
        decided.collect()
    }

    fn figures(&self, config: Option<&Config>) -> ClosedFigures {
        closed_run(&self.begin, &self.story, config)
    }
}

/// Mean and longest wait in seconds.
fn waits(spread: WaitTimes) -> (f64, f64) {
    (spread.mean as f64 / 1e6, spread.max as f64 / 1e6)
}

/// Three jobs that need the whole node one after the other, one that no node holds, and one that is given up.
fn queue_of_jobs() -> Recorded {
    let mut it = Recorded::new(&conf("enqueue, allocate", PRIORITIES), "node n1 cpu=4");
    let job = |name: &str, priority: u8, created: u8, state: &str| {
        format!(
            "job {name} priority={priority} created={created}\n task x cpu=4 created={created} {state}\n"
        )
    };
    assert_eq!(it.at(1, &job("a", 1, 1, "")), ["bind a-x"]);
    it.at(2, &job("a", 1, 1, "@n1 running"));
    it.at(10, &job("b", 1, 10, ""));
    it.at(12, "job large created=12\n task x cpu=9 created=12\n");
    it.at(14, &job("given-up", 5, 14, ""));
    it.at(20, &job("c", 9, 20, ""));
    it.gone(30, "given-up-x", true, "");
    assert_eq!(it.at(61, &job("a", 1, 1, "@n1 succeeded")), ["bind c-x"]);
    it.at(62, &job("c", 9, 20, "@n1 running"));
    it.gone(70, "a-x", true, "");
    assert_eq!(it.at(91, &job("c", 9, 20, "@n1 succeeded")), ["bind b-x"]);
    it.at(92, &job("b", 1, 10, "@n1 running"));
    it.at(121, &job("b", 1, 10, "@n1 succeeded"));
    it
}

#[test]
fn ans_106_with_the_configuration_in_force_the_story_is_the_recorded_one() {
    let figures = queue_of_jobs().figures(None);
    assert_eq!((figures.n_binds, figures.n_evictions), (3, 0));
    assert_eq!((figures.n_started, figures.n_waiting), (3, 1));
    // a waits for 0 s, c from 20 to 61, and b from 10 to 91.
    assert_eq!(waits(figures.waits), (40.666666, 81.0));
    assert_eq!((figures.mean_overtaken, figures.most_overtaken), (1.0 / 3.0, 1));
    let slowdown = figures.mean_slowdown.unwrap();
    assert!((slowdown - (1.0 + 71.0 / 30.0 + 111.0 / 30.0) / 3.0).abs() < 1e-9, "{slowdown}");
    let held = figures.utilisation.unwrap();
    assert!((held - 120.0 / 121.0).abs() < 1e-9, "{held}");
}

#[test]
fn ans_106_without_priorities_jobs_start_in_the_order_in_which_they_came() {
    let other = conf("enqueue, allocate", "gang predicates nodeorder");
    let figures = queue_of_jobs().figures(Some(&other));
    // b starts at 61, runs for 30 s, and c starts at 91.
    assert_eq!(waits(figures.waits), (40.666666, 71.0));
    assert_eq!((figures.most_overtaken, figures.n_started), (0, 3));
}

/// An urgent job evicts another one, whose controller makes its pod anew.
fn eviction() -> Recorded {
    // Without gang, which keeps the only pod of a job.
    let config = conf("enqueue, allocate, preempt", "priority predicates nodeorder");
    let mut it = Recorded::new(&config, "node n1 cpu=4");
    let low = |task: &str, state: &str| {
        format!("job low priority=1 created=1\n task {task} cpu=4 created=1 {state}\n")
    };
    let high =
        |state: &str| format!("job high priority=9 created=10\n task x cpu=4 created=10 {state}\n");
    assert_eq!(it.at(1, &low("x", "")), ["bind low-x"]);
    it.at(2, &low("x", "@n1 running"));
    assert_eq!(it.at(10, &high("")), ["evict low-x"]);
    assert_eq!(it.gone(11, "low-x", false, &low("y", "")), ["bind high-x"]);
    it.at(12, &high("@n1 running"));
    assert_eq!(it.at(41, &high("@n1 succeeded")), ["bind low-y"]);
    it.at(42, &low("y", "@n1 running"));
    it.at(81, &low("y", "@n1 succeeded"));
    it
}

#[test]
fn ans_106_an_evicted_pod_is_made_anew_as_it_was() {
    let figures = eviction().figures(None);
    assert_eq!((figures.n_binds, figures.n_evictions), (3, 1));
    assert_eq!(waits(figures.waits), (0.5, 1.0));
    let held = figures.utilisation.unwrap();
    // Between the eviction and the bind the node is empty for a second.
    assert!((held - 79.0 / 81.0).abs() < 1e-9, "{held}");
}

#[test]
fn ans_106_without_preemption_the_pod_runs_as_long_as_its_successor_did() {
    let other = conf("enqueue, allocate", "priority predicates nodeorder");
    let figures = eviction().figures(Some(&other));
    assert_eq!((figures.n_binds, figures.n_evictions), (2, 0));
    // It runs from 1 to 41.
    assert_eq!(waits(figures.waits), (15.5, 31.0));
}

#[test]
fn ans_106_its_controller_may_make_the_pod_anew_before_the_evicted_one_is_gone() {
    let config = conf("enqueue, allocate, preempt", "priority predicates nodeorder");
    let mut it = Recorded::new(&config, "node n1 cpu=4");
    let low = |task: &str, state: &str| {
        format!("job low priority=1 created=1\n task {task} cpu=4 created=1 {state}\n")
    };
    it.at(1, &low("x", ""));
    it.at(2, &low("x", "@n1 running"));
    let high = "job high priority=9 created=10\n task x cpu=4 created=10\n";
    assert_eq!(it.at(10, high), ["evict low-x"]);
    it.at(11, &low("y", ""));
    assert_eq!(it.gone(12, "low-x", false, ""), ["bind high-x"]);
    it.at(13, &high.replace("cpu=4", "cpu=4 @n1 running"));
    let figures = it.figures(None);
    assert_eq!((figures.n_binds, figures.n_evictions, figures.n_waiting), (2, 1, 0));
}

#[test]
fn ans_106_what_comes_between_two_cycles_waits_for_the_second_one() {
    let mut it = Recorded::new(&conf("enqueue, allocate", PRIORITIES), "node n1 cpu=4");
    it.at(5, "");
    it.between(9, "job a created=9\n task x cpu=4 created=9\n");
    assert_eq!(it.at(11, ""), ["bind a-x"]);
    assert_eq!(waits(it.figures(None).waits), (2.0, 2.0));
}

#[test]
fn ans_106_a_wait_begins_with_the_job_and_not_with_its_pods() {
    let mut it = Recorded::new(&conf("enqueue, allocate", PRIORITIES), "node n1 cpu=4");
    it.at(1, "job a created=1\njob b created=1 minres.cpu=9\n");
    assert_eq!(it.at(21, "job a created=1\n task x cpu=4 created=20\n"), ["bind a-x"]);
    let figures = it.figures(None);
    assert_eq!((waits(figures.waits), figures.n_waiting), ((20.0, 20.0), 0));
}

/// A restore of the API server makes such events.
#[test]
fn ans_106_a_pod_that_was_forgotten_and_is_told_again_is_the_same() {
    let mut it = Recorded::new(&conf("enqueue, allocate", PRIORITIES), "node n1 cpu=4");
    let job = |state: &str| format!("job a created=1\n task x cpu=4 created=1 {state}\n");
    let large = "job b created=1\n task x cpu=9 created=1\n";
    it.at(1, large);
    assert_eq!(it.at(2, &job("")), ["bind a-x"]);
    let uid = it.uid("a-x");
    it.cycle(
        3,
        vec![ClusterEvent::BindFailed { uid, node: "n1".into(), error: "no".into(), pauses: true }],
    );
    assert_eq!(it.gone(4, "a-x", false, &job("")), ["bind a-x"]);
    it.gone(5, "b-x", false, large);
    let figures = it.figures(None);
    assert_eq!((figures.n_binds, figures.n_started, figures.n_waiting), (1, 1, 1));
}

#[test]
fn ans_106_what_runs_or_ends_when_the_story_begins_is_no_start() {
    let begin =
        "node n1 cpu=4\njob a min=1\n task x cpu=2 @n1 running\n task y cpu=2 @n1 running\n";
    let mut it = Recorded::new(&conf("enqueue, allocate", PRIORITIES), begin);
    it.gone(10, "a-x", false, "");
    let job = "job b created=11\n task x cpu=2 created=11\n";
    assert_eq!(it.at(11, job), ["bind b-x"]);
    let figures = it.figures(None);
    assert_eq!((figures.n_started, figures.n_waiting), (1, 0));
    assert_eq!(waits(figures.waits), (0.0, 0.0));
    let held = figures.utilisation.unwrap();
    assert!((held - (4.0 * 10.0 + 2.0) / 44.0).abs() < 1e-9, "{held}");
}

/// Neither pod may keep the room of the node that has gone.
#[test]
fn ans_106_pods_of_a_node_that_goes_wait_again() {
    let mut it =
        Recorded::new(&conf("enqueue, allocate", PRIORITIES), "node n1 cpu=4\nnode n2 cpu=1\n");
    assert_eq!(it.at(1, "job a created=1\n task x cpu=4 created=1\n"), ["bind a-x"]);
    it.cycle(5, vec![ClusterEvent::NodeDeleted { name: "n1".into() }]);
    it.at(6, "node n3 cpu=4\n");
    let figures = it.figures(None);
    assert_eq!((figures.n_binds, figures.n_started), (2, 1));
}
