//! What happened lately. Specification: answers.md 8 (ANS-45, ANS-46).

use vc_answers::{Timeline, TimelineFilter, TimelineStep};
use vc_engine::{CycleTime, Engine, EngineOptions, Unit};
use vc_model::fixture::{START_MICROS, events_of};
use vc_model::{ClusterEvent, ObjectKey};
use vc_resource::Dim;

use crate::support::conf;

const SECOND: i64 = 1_000_000;

/// An engine whose cycles are recorded, one second after the other.
pub(crate) struct Recorded {
    pub(crate) engine: Engine,
    pub(crate) timeline: Timeline,
    /// True if the timeline is told events before the engine is, as by the copy that answers. False
    /// if it is not, as by a simulation.
    pub(crate) learns: bool,
    seconds: i64,
}

impl Recorded {
    pub(crate) fn new(actions: &str, plugins: &str) -> Self {
        Self::with(EngineOptions::default(), actions, plugins)
    }

    pub(crate) fn with(options: EngineOptions, actions: &str, plugins: &str) -> Self {
        let (mut engine, _) = Engine::new(options, &conf(actions, plugins));
        engine.explain(true);
        Self { engine, timeline: Timeline::default(), learns: true, seconds: 0 }
    }

    pub(crate) fn cycle(&mut self, text: &str) {
        self.cycle_with(events_of(text));
    }

    /// Deletes the pods of a job.
    pub(crate) fn delete_pods(&mut self, job: &ObjectKey) {
        let cluster = self.engine.cluster();
        let tasks = &cluster.jobs[cluster.job(job).unwrap()].tasks;
        let deleted = |&task| {
            let row = &cluster.tasks[task];
            ClusterEvent::PodDeleted { key: row.key.clone(), uid: row.uid.clone() }
        };
        let events = tasks.iter().map(deleted).collect();
        self.cycle_with(events);
    }

    pub(crate) fn cycle_with(&mut self, events: Vec<ClusterEvent>) {
        let now_micros = START_MICROS + self.seconds * SECOND;
        self.seconds += 1;
        let n_events = events.len();
        if self.learns {
            self.timeline.learn(self.engine.cluster(), &events, now_micros);
        }
        let (effects, report) = self.engine.cycle(events, CycleTime { unix_micros: now_micros });
        self.timeline.record(&TimelineStep {
            cluster: self.engine.cluster(),
            effects: &effects,
            report: Some(&report),
            cycle: self.engine.n_cycles(),
            now_micros,
            took_micros: 7,
            n_events,
        });
    }

    fn jobs(&self) -> Vec<(String, u32, i64, Option<i64>)> {
        let second = |micros: i64| (micros - START_MICROS) / SECOND;
        let spans = self.timeline.jobs(ALL).into_iter();
        let row = |it: &vc_answers::JobSpan| {
            let end = it.end_micros.map(second);
            (it.key.to_string(), it.pods, second(it.start_micros), end)
        };
        spans.map(row).collect()
    }
}

pub(crate) const ALL: TimelineFilter<'_> =
    TimelineFilter { from_micros: 0, to_micros: i64::MAX, queue: None, namespace: None };

#[test]
fn ans_45_jobs_have_spans_and_cycles_have_counts() {
    let mut recorded = Recorded::new("enqueue, allocate", "gang priority predicates proportion");
    recorded.cycle("node n cpu=8\nqueue default\nqueue q\njob old queue=q min=1 running\n task a cpu=1 @n running");
    recorded.cycle("job ml/train min=2\n task a cpu=2 x2\njob ml/large min=1\n task a cpu=100");
    let job = |name: &str, pods, start, end| (name.to_owned(), pods, start, end);
    assert_eq!(recorded.jobs()[0], job("ml/train", 2, 1, None));
    assert_eq!(recorded.jobs().len(), 2, "what ran before is there, too");
    // Nothing comes and nothing is decided: no entry.
    recorded.cycle("");
    recorded.cycle("");
    recorded.delete_pods(&ObjectKey::new("ml", "train"));
    let ended = recorded.jobs().into_iter().find(|it| it.0 == "ml/train").unwrap();
    assert!(ended.3.is_some(), "{ended:?}");
    let cycles: Vec<_> = recorded.timeline.cycles().collect();
    let counts: Vec<_> = cycles.iter().map(|it| (it.cycle, it.binds, it.waiting)).collect();
    assert_eq!(counts.last(), Some(&(1, 0, 0)));
    assert!(counts.contains(&(2, 2, 1)), "{counts:?}");
    assert!(counts.iter().all(|it| it.0 != 4), "{counts:?}");
    assert!(cycles.iter().all(|it| it.took_micros == 7));
}

#[test]
fn ans_45_jobs_have_the_times_of_their_lives_and_binds_by_cycle() {
    let mut recorded = Recorded::new("enqueue, allocate", "gang priority predicates proportion");
    recorded.cycle("node n cpu=2\nqueue default");
    recorded.cycle("job ml/train min=2 created=1\n task a cpu=1 x3");
    recorded.cycle("");
    recorded.cycle("node m cpu=1");
    let at = |second: i64| START_MICROS + second * SECOND;
    let span = recorded.timeline.jobs(ALL)[0];
    assert_eq!((span.created_micros, span.first_bind_micros), (Some(at(1)), Some(at(1))));
    assert!(span.admitted_micros.is_some_and(|admitted| at(1) <= admitted), "{span:?}");
    let binds = |filter| -> Vec<(u64, i64, u32)> {
        let binds = recorded.timeline.binds(filter).of_span(span).into_iter();
        binds.map(|it| (it.cycle, it.at_micros, it.pods)).collect()
    };
    assert_eq!(binds(ALL), [(2, at(1), 2), (4, at(3), 1)]);
    assert_eq!(binds(TimelineFilter { from_micros: at(2), ..ALL }), [(4, at(3), 1)]);
    assert_eq!(binds(TimelineFilter { namespace: Some("other"), ..ALL }), []);
}

/// Counts of binds go first, and take no other entry with them.
#[test]
fn ans_45_counts_of_binds_say_how_far_they_reach() {
    let (mut engine, _) =
        Engine::new(EngineOptions::default(), &conf("enqueue, allocate", "gang predicates"));
    engine.explain(true);
    let events = events_of("node n cpu=2\nqueue default\njob ml/train min=1\n task a cpu=1");
    let (effects, _) = engine.cycle(events, CycleTime { unix_micros: START_MICROS });
    let mut timeline = Timeline::default();
    // As if the pod got a node again and again.
    for second in 0..=30_000 {
        assert_eq!(timeline.binds_since_micros(), None, "{second}");
        timeline.record(&TimelineStep {
            cluster: engine.cluster(),
            effects: &effects,
            report: None,
            cycle: 1,
            now_micros: START_MICROS + second * SECOND,
            took_micros: 7,
            n_events: 0,
        });
    }
    assert_eq!(timeline.binds_since_micros(), Some(START_MICROS + 1));
    assert_eq!((timeline.since_micros(), timeline.jobs(ALL).len()), (Some(START_MICROS), 1));
}

#[test]
fn ans_45_filters_choose_queues_namespaces_and_times() {
    let mut recorded = Recorded::new("enqueue, allocate", "gang priority predicates proportion");
    recorded.cycle("node n cpu=8\nqueue default\nqueue q\njob a/x queue=q min=1\n task a cpu=1\njob b/y min=1\n task a cpu=2");
    let names = |filter| -> Vec<String> {
        recorded.timeline.jobs(filter).into_iter().map(|it| it.key.to_string()).collect()
    };
    assert_eq!(names(ALL), ["a/x", "b/y"]);
    assert_eq!(names(TimelineFilter { queue: Some("q"), ..ALL }), ["a/x"]);
    assert_eq!(names(TimelineFilter { namespace: Some("b"), ..ALL }), ["b/y"]);
    assert_eq!(names(TimelineFilter { to_micros: START_MICROS - 1, ..ALL }), [""; 0]);
    let samples = recorded.timeline.samples(ALL);
    assert_eq!(samples.iter().map(|it| (it.waiting, it.running)).collect::<Vec<_>>(), [(0, 2)]);
    assert_eq!(recorded.timeline.samples(TimelineFilter { queue: Some("q"), ..ALL })[0].running, 1);
    assert_eq!(recorded.timeline.since_micros(), Some(START_MICROS));
}

#[test]
fn ans_45_each_minute_has_what_queues_hold_and_deserve() {
    // Capacity limits what is deserved by what the cluster has. Without a plugin that divides it the queue says it.
    for (plugin, of_queue) in [("capacity", 8_000), ("", 9_000)] {
        let plugins = format!("gang priority predicates {plugin}");
        let mut recorded = Recorded::new("enqueue, allocate", &plugins);
        recorded.cycle(
            "node n cpu=8\nqueue default\nqueue q deserved.cpu=9\nqueue r deserved.cpu=2\nqueue idle deserved.cpu=1
            job x queue=q min=1\n task a cpu=1\njob y queue=r min=1\n task a cpu=2",
        );
        recorded.cycle("queue r deserved.cpu=3");
        recorded.seconds = 60;
        recorded.cycle("");
        let cpus = |filter| -> Vec<(i64, i64)> {
            let samples = recorded.timeline.samples(filter).into_iter();
            samples.map(|it| (it.allocated.get(Dim::CPU), it.deserved.get(Dim::CPU))).collect()
        };
        let of = |queue| cpus(TimelineFilter { queue: Some(queue), ..ALL });
        assert_eq!(of("q"), [(1_000, of_queue), (1_000, of_queue)], "{plugin}");
        assert_eq!(of("r"), [(2_000, 2_000), (2_000, 3_000)], "{plugin}");
        let sums = [2_000, 3_000].map(|of_r| (3_000, of_queue + of_r));
        assert_eq!(cpus(ALL), sums, "{plugin}: queues without jobs do not count");
    }
}

#[test]
fn ans_46_an_eviction_is_remembered_with_what_granted_it() {
    let mut recorded = Recorded::new("allocate, preempt", "gang priority predicates");
    recorded.cycle("node n cpu=4\nqueue default\njob low min=1 running priority=1\n task a cpu=2 x2 @n running");
    recorded.cycle("job high min=1 priority=10\n task a cpu=2");
    let evicted: Vec<_> = recorded.timeline.evictions(ALL).collect();
    assert_eq!(evicted.len(), 1, "{evicted:?}");
    let group = |name: &str| Some(ObjectKey::new("default", name));
    assert_eq!(evicted[0].action, "preempt");
    assert_eq!((&evicted[0].pod_group, &evicted[0].for_group), (&group("low"), &group("high")));
    assert!(evicted[0].plugins.contains(&"priority"), "{evicted:?}");
    assert_eq!((evicted[0].tier, evicted[0].minimal), (Some(1), Some(Unit::Pod)));
    for name in ["low", "high"] {
        assert_eq!(recorded.timeline.evictions_about(&ObjectKey::new("default", name)).count(), 1);
    }
    assert!(recorded.timeline.eviction_of(&evicted[0].pod.clone()).is_some());
}
