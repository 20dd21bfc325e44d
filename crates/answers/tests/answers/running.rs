//! Jobs that hold nodes, and the history of jobs. Specification: answers.md 7 (ANS-114), 8 (ANS-115).

use vc_answers::{JobHistory, RunningFilter, RunningJob, Timeline, running_jobs};
use vc_engine::CycleTime;
use vc_model::ObjectKey;
use vc_model::fixture::{START_MICROS, events_of};

use crate::support::{Asked, conf};
use crate::timeline::Recorded;

const RUNTIME: &str = "annotation.reservation.volcano.sh/runtime";
const SECOND: i64 = 1_000_000;

/// Returns a job as text: name, pods, start, end, and what says so. Times are seconds.
fn row(job: &RunningJob) -> String {
    let seconds = |micros: Option<i64>| {
        micros.map_or("-".to_owned(), |micros| ((micros - START_MICROS) / SECOND).to_string())
    };
    let source = job.end.map_or("-", |end| end.source.as_str());
    let (start, end) = (seconds(job.start_micros), seconds(job.end.map(|end| end.at_micros)));
    format!("{} {} {start} {end} {source}", job.key.name, job.pods)
}

#[test]
fn ans_114_running_jobs_end_with_their_last_pod() {
    let text = format!(
        "queue q\nnode n1 cpu=16
         job b running\n task a cpu=1 @n1 running started=0 {RUNTIME}=2h
         job a running\n task a cpu=1 @n1 running started=60 deadline=7140
         job two running\n task a cpu=1 @n1 running started=0 {RUNTIME}=2h
         task b cpu=1 @n1 running started=0 {RUNTIME}=3h
         job open running\n task a cpu=1 @n1 running started=0 {RUNTIME}=2h
         task b cpu=1 @n1 running started=0
         job first queue=q running\n task a cpu=1 @n1 running scheduled=60 {RUNTIME}=90m
         job waits\n task a cpu=99"
    );
    let conf = conf("enqueue, allocate", "priority gang predicates nodeorder");
    let it = Asked::new(&conf, &text);
    let (cluster, now_micros) = (it.engine.cluster(), START_MICROS + 5_400 * SECOND);
    let rows = |filter: RunningFilter<'_>| -> Vec<String> {
        let jobs = running_jobs(cluster, &Timeline::default(), filter, now_micros);
        jobs.iter().map(row).collect()
    };
    let all = RunningFilter::default();
    let expected = [
        "first 1 60 5460 stated",
        "a 1 60 7200 deadline",
        "b 1 0 7200 stated",
        "two 2 0 10800 stated",
        "open 2 0 - -",
    ];
    assert_eq!(rows(all), expected, "by end, then by name");
    assert_eq!(rows(RunningFilter { queue: Some("q"), ..all }), expected[..1]);
    assert!(rows(RunningFilter { namespace: Some("other"), ..all }).is_empty());
}

/// A start that the pods do not tell is that of the timeline.
#[test]
fn ans_114_a_job_runs_since_its_first_pod_was_bound() {
    let mut recorded = Recorded::new("enqueue, allocate", "gang priority predicates proportion");
    recorded.cycle("node n cpu=8\nqueue default");
    recorded.cycle("job ml/train min=2\n task a cpu=2 x2");
    recorded.cycle("job ml/other min=1\n task a cpu=1");
    let now_micros = START_MICROS + 2 * SECOND;
    let cluster = recorded.engine.cluster();
    let jobs = running_jobs(cluster, &recorded.timeline, RunningFilter::default(), now_micros);
    assert_eq!(jobs.iter().map(row).collect::<Vec<_>>(), ["other 1 2 - -", "train 2 1 - -"]);
}

/// A job that held nodes before anything was recorded, or since a gap, has no known start unless its pods say it.
#[test]
fn ans_114_a_start_that_nobody_saw_is_not_known() {
    let mut recorded = Recorded::new("enqueue, allocate", "gang priority predicates proportion");
    let running = |name: &str| format!("job ml/{name} min=1 running\n task a cpu=1 @n running");
    let (old, told) = (running("old"), running("told"));
    recorded.cycle(&format!(
        "node n cpu=8\nqueue default\n{old}\n{told} started=0\njob ml/placed min=1\n task a cpu=1"
    ));
    recorded.timeline.note_gap();
    recorded.cycle(&running("meanwhile"));
    recorded.cycle(&running("seen"));
    let (cluster, timeline) = (recorded.engine.cluster(), &recorded.timeline);
    let now_micros = START_MICROS + 3 * SECOND;
    let jobs = running_jobs(cluster, timeline, RunningFilter::default(), now_micros);
    let expected =
        ["meanwhile 1 - - -", "old 1 - - -", "placed 1 0 - -", "seen 1 2 - -", "told 1 0 - -"];
    assert_eq!(jobs.iter().map(row).collect::<Vec<_>>(), expected);
    let old = cluster.job(&ObjectKey::new("ml", "old")).unwrap();
    assert_eq!(JobHistory::of(cluster, timeline, old).first_bind_micros, None);
}

/// A list of these jobs holds as long as the timeline knows the same of them, however many cycles pass.
#[test]
fn ans_114_the_timeline_says_when_it_knows_something_else_of_these_jobs() {
    let mut recorded = Recorded::new("enqueue, allocate", "gang priority predicates proportion");
    let changes = |recorded: &mut Recorded, text: &str| {
        let before = recorded.timeline.jobs_revision();
        recorded.cycle(text);
        recorded.timeline.jobs_revision() != before
    };
    assert!(!changes(&mut recorded, "node n cpu=8\nqueue default"));
    assert!(changes(&mut recorded, "job ml/train min=1\n task a cpu=2"), "it begins");
    assert!(!changes(&mut recorded, ""), "a cycle in which nothing happens");
    let ended = "job ml/train min=1 running\n task a cpu=2 @n succeeded started=0";
    assert!(changes(&mut recorded, ended), "it ends");
}

#[test]
fn ans_115_a_job_has_a_history() {
    let mut recorded = Recorded::new("enqueue, allocate", "gang priority predicates proportion");
    recorded.cycle(
        "node n cpu=8\nqueue default
         job ml/old min=1 running\n task a cpu=1 @n running started=0",
    );
    recorded.cycle("job ml/train min=2 created=1\n task a cpu=4 x2");
    let history = |recorded: &Recorded, name: &str| {
        let cluster = recorded.engine.cluster();
        let job = cluster.job(&ObjectKey::new("ml", name)).unwrap();
        JobHistory::of(cluster, &recorded.timeline, job)
    };
    let at = |second: i64| Some(START_MICROS + second * SECOND);
    let waits = history(&recorded, "train");
    assert_eq!((waits.created_micros, waits.first_bind_micros), (at(1), None), "{waits:?}");
    assert_eq!((waits.admitted_micros, waits.on_nodes), (at(1), 0), "{waits:?}");
    let old = history(&recorded, "old");
    assert_eq!((old.first_bind_micros, old.on_nodes), (at(0), 1), "{old:?}");
    assert_eq!(old.admitted_micros, None, "it was admitted before anything was recorded");
    recorded.cycle("job ml/old min=1 running\n task a cpu=1 @n succeeded started=0");
    let old = history(&recorded, "old");
    assert_eq!((old.on_nodes, old.ended, old.evicted), (0, 1, 0), "{old:?}");
    recorded.cycle("");
    let placed = history(&recorded, "train");
    assert_eq!(placed.on_nodes, 2, "{placed:?}");
    assert_eq!((placed.first_bind_micros, placed.admitted_micros), (at(2), at(1)), "{placed:?}");
}

/// A PodGroup whose admission nobody saw is not taken for one that was admitted when it began to run.
#[test]
fn ans_115_an_admission_that_may_have_been_missed_is_not_known() {
    for has_gap in [false, true] {
        let mut recorded =
            Recorded::new("enqueue, allocate", "gang priority predicates proportion");
        recorded.cycle("node n cpu=8\nqueue default");
        let job = "job ml/train min=1 created=1\n task a cpu=4";
        match has_gap {
            true => {
                let now = CycleTime { unix_micros: START_MICROS + SECOND };
                recorded.engine.cycle(events_of(job), now);
                recorded.timeline.note_gap();
            }
            false => recorded.cycle(job),
        }
        recorded.cycle("");
        recorded.cycle("");
        let cluster = recorded.engine.cluster();
        let job = cluster.job(&ObjectKey::new("ml", "train")).unwrap();
        let history = JobHistory::of(cluster, &recorded.timeline, job);
        assert_eq!(history.on_nodes, 1, "{history:?}");
        assert_eq!(history.admitted_micros.is_none(), has_gap, "{history:?}");
    }
}

#[test]
fn ans_115_evictions_of_a_job_are_counted() {
    let mut recorded = Recorded::new("allocate, preempt", "gang priority predicates");
    recorded.cycle(
        "node n cpu=4\nqueue default
         job ml/low min=1 running priority=1\n task a cpu=2 x2 @n running",
    );
    recorded.cycle("job ml/high min=1 priority=10\n task a cpu=2");
    let cluster = recorded.engine.cluster();
    let of = |name: &str| {
        let job = cluster.job(&ObjectKey::new("ml", name)).unwrap();
        JobHistory::of(cluster, &recorded.timeline, job)
    };
    let (low, high) = (of("low"), of("high"));
    assert_eq!((low.evicted, high.evicted), (1, 0), "{low:?}");
    assert_eq!(low.last_eviction_micros, Some(START_MICROS + SECOND));
}
