//! When a job starts. Specification: answers.md 20, cases 18, 32, 40, 42, 43, 45.

use proptest::prelude::*;
use vc_answers::{
    Change, EndSource, EndlessPods, RemedyKind, StartAnswer, StartUnknown, Timeline, TimelineStep,
};
use vc_engine::{CycleTime, Effect, Evaluator};
use vc_model::fixture::{START_MICROS, events_of, task};
use vc_model::{ClusterEvent, ObjectKey};

use crate::support::{Asked, conf, random_cases, without_sets};

const RUNTIME: &str = "annotation.reservation.volcano.sh/runtime";

fn asked(text: &str) -> Asked {
    Asked::new(&conf("enqueue, allocate", "priority gang predicates nodeorder"), text)
}

/// Seconds after the start of time; the cycle was at 5,400.
fn seconds(micros: Option<i64>) -> Option<i64> {
    micros.map(|micros| (micros - START_MICROS) / 1_000_000)
}

fn start(it: &Asked, name: &str) -> StartAnswer {
    *it.why_with_start(name).start.unwrap()
}

/// One text for each job that is waited for: `run n1 7200 stated`.
fn awaited(start: &StartAnswer) -> Vec<String> {
    let row = |it: &vc_answers::AwaitedJob| {
        let end = seconds(Some(it.end.at_micros)).unwrap();
        format!("{} {} {end} {}", it.job.name, it.nodes.join("+"), it.end.source.as_str())
    };
    start.waits_for.iter().map(row).collect()
}

#[test]
fn ans_40_ends_by_deadline_annotation_and_label() {
    let text = format!(
        "node n1 cpu=16
         job a running\n task a cpu=1 @n1 running started=0 deadline=7200
         job b running\n task a cpu=1 @n1 running started=0 {RUNTIME}=2h
         job c running {RUNTIME}=2h\n task a cpu=1 @n1 running started=0
         job d running\n task a cpu=1 @n1 running started=0 label.kueue.x-k8s.io/max-exec-time-seconds=7200
         job e running {RUNTIME}=2h\n task a cpu=1 @n1 running started=0 deadline=6000
         job f running\n task a cpu=1 @n1 running scheduled=60 {RUNTIME}=90m
         job g running\n task a cpu=1 @n1 running started=0 {RUNTIME}=1h
         job h running\n task a cpu=1 @n1 running started=0"
    );
    let it = asked(&text);
    let cluster = it.engine.cluster();
    let end = |name: &str| {
        let now = START_MICROS + 5_400_000_000;
        let end = it.ends.end_of(cluster, task(cluster, &format!("{name}/a")), now)?;
        Some((seconds(Some(end.at_micros))?, end.source.as_str()))
    };
    for name in ["b", "c", "d"] {
        assert_eq!(end(name), Some((7_200, "stated")), "{name}");
    }
    assert_eq!(end("a"), Some((7_200, "deadline")));
    assert_eq!(end("e"), Some((6_000, "deadline")), "the smaller of both");
    assert_eq!(end("f"), Some((5_460, "stated")), "from when it was scheduled");
    assert_eq!(end("g"), Some((7_200, "stated")), "overdue: doubled");
    assert_eq!(end("h"), None);
}

#[test]
fn ans_45_the_release_set_is_minimal() {
    let text = format!(
        "node n1 cpu=8\nnode n2 cpu=8
         job a running\n task a cpu=4 @n1 running started=0 {RUNTIME}=100m
         job b running\n task a cpu=4 @n2 running started=0 {RUNTIME}=110m
         job c running\n task a cpu=4 @n2 running started=0 {RUNTIME}=120m
         job d running\n task a cpu=4 @n1 running started=0 {RUNTIME}=10h
         job j\n task a cpu=8"
    );
    let it = asked(&text);
    let start = start(&it, "j");
    assert_eq!(seconds(start.expected_micros), Some(7_200));
    assert_eq!(start.earliest_micros, start.expected_micros);
    assert_eq!(start.assumes, ["noArrivals"]);
    assert_eq!(awaited(&start), ["b n2 6600 stated", "c n2 7200 stated"]);
    let mut unblock = it.why_with_start("j").unblock;
    assert!(unblock.iter().all(|remedy| remedy.kind != RemedyKind::EndJobs), "{unblock:?}");
    let wait = unblock.remove(0);
    assert_eq!((wait.kind, wait.at_micros), (RemedyKind::Wait, start.expected_micros));
}

#[test]
fn ans_37_earliest_is_without_the_jobs_before_it() {
    let text = format!(
        "node n1 cpu=4
         job run running\n task a cpu=4 @n1 running started=0 {RUNTIME}=100m
         job first priority=9\n task a cpu=4 {RUNTIME}=1h
         job j priority=1\n task a cpu=4"
    );
    let it = asked(&text);
    let start = start(&it, "j");
    assert_eq!(seconds(start.earliest_micros), Some(6_000));
    // The first one starts with the cycle after the end, and runs for an hour.
    assert_eq!(seconds(start.expected_micros), Some(9_601));
    assert_eq!(awaited(&start), ["run n1 6000 stated"]);
    assert!(
        it.why_with_start("j").unblock.iter().all(|it| it.kind != RemedyKind::Wait),
        "not soon"
    );
}

#[test]
fn ans_42_reasons_for_an_unknown_start() {
    let run = |run: &str, job: &str| {
        let text = format!(
            "node n1 cpu=4\njob run running\n task a cpu=4 @n1 running started=0 {run}\njob j\n task a {job}"
        );
        start(&asked(&text), "j").unknown
    };
    let held = vec![("cpu".to_owned(), "4".to_owned())];
    assert_eq!(run("", "cpu=4"), Some(StartUnknown::NoEnd(EndlessPods { pods: 1, held })));
    assert_eq!(run(&format!("{RUNTIME}=100h"), "cpu=4"), Some(StartUnknown::BeyondWindow));
    assert_eq!(run(&format!("{RUNTIME}=2h"), "cpu=5"), Some(StartUnknown::NotByTime));
    assert_eq!(
        run(&format!("{RUNTIME}=2h"), "cpu=4 selector.zone=a"),
        Some(StartUnknown::NotByTime)
    );
    assert_eq!(run(&format!("{RUNTIME}=2h"), "cpu=4"), None);
    let held = vec![("cpu".to_owned(), "4".to_owned()), ("pods".to_owned(), "1".to_owned())];
    let text = StartUnknown::NoEnd(EndlessPods { pods: 3, held }).text();
    assert_eq!(text, "what it waits for is held by 3 pods without an expected end: 4 cpu, 1 pods");
    let text = StartUnknown::NoEnd(EndlessPods { pods: 1, held: Vec::new() }).text();
    assert_eq!(text, "what it waits for is held by 1 pod without an expected end");
    let mut many = format!(
        "node n1 cpu=4\njob run running\n task a cpu=4 @n1 running started=0 {RUNTIME}=2h\n"
    );
    for at in 0..101 {
        many.push_str(&format!("job k{at} priority=9\n task a cpu=4 {RUNTIME}=1m\n"));
    }
    let many = many + "job j priority=1\n task a cpu=4";
    let back = start(&asked(&many), "j");
    assert_eq!(back.unknown, Some(StartUnknown::TooFarBack));
    assert_eq!(seconds(back.earliest_micros), Some(7_200), "still known");
    assert_eq!(back.earliest_unknown, None);
    let back = start(&asked(&many.replace(&format!("{RUNTIME}=2h"), "deadline=360000")), "j");
    let reasons = (back.unknown, back.earliest_unknown);
    let both = (Some(StartUnknown::TooFarBack), Some(StartUnknown::BeyondWindow));
    assert_eq!((back.earliest_micros, reasons), (None, both), "each has a reason");
    // The first one starts, and never ends.
    let blocked = format!(
        "node n1 cpu=4\njob run running\n task a cpu=4 @n1 running started=0 {RUNTIME}=2h
         job first priority=9\n task a cpu=4\njob j priority=1\n task a cpu=4"
    );
    let blocked = start(&asked(&blocked), "j");
    assert_eq!(blocked.unknown, Some(StartUnknown::BlockedAhead));
    assert_eq!(seconds(blocked.earliest_micros), Some(7_200), "still known");
    let mut ends = "node n1 cpu=1000\njob run running\n".to_owned();
    for at in 0..202 {
        let end = 7_200 + at;
        ends.push_str(&format!(" task a{at} cpu=1 @n1 running started=0 {RUNTIME}={end}s\n"));
    }
    let busy = start(&asked(&(ends + "job j\n task a cpu=1000")), "j");
    assert_eq!(busy.unknown, Some(StartUnknown::Budget));
}

#[test]
fn ans_42_a_job_without_pods_has_no_start() {
    let config = conf("enqueue, allocate", "gang predicates proportion");
    for (words, code) in [("minres.cpu=9", "NotAdmitted"), ("minres.cpu=1", "NotValid")] {
        let it = Asked::new(&config, &format!("node n cpu=4\njob j min=2 {words}"));
        assert_eq!(it.why("j").verdict.code.as_str(), code);
        let start = start(&it, "j");
        assert_eq!(start.unknown, Some(StartUnknown::NoPods), "{words}");
        assert_eq!((start.earliest_micros, start.expected_micros), (None, None));
    }
    assert_eq!(StartUnknown::NoPods.text(), "it has no pods yet");
}

#[test]
fn ans_18_b_together() {
    let taint = "taint=team=vision:NoSchedule";
    let text = format!(
        "node g1 cpu=8 {taint}
         job eval running\n task a cpu=5 @g1 running started=0 {RUNTIME}=100m
         job train\n task a cpu=4"
    );
    let it = asked(&text);
    let why = it.why_with_start("train");
    assert_eq!(why.start.unwrap().unknown, Some(StartUnknown::NotByTime));
    let together = why.unblock.iter().find(|it| it.kind == RemedyKind::Together).unwrap();
    assert_eq!(
        together.text,
        "tolerate team=vision:NoSchedule; it starts when default/eval on g1 ends"
    );
    assert_eq!(seconds(together.at_micros), Some(6_000));
}

/// Returns text and time of the remedy `together`, with how many pods start if its changes are asked about.
fn together(it: &Asked) -> (String, Option<i64>, usize) {
    let unblock = it.why_with_start("train").unblock;
    let found = unblock.into_iter().find(|it| it.kind == RemedyKind::Together).unwrap();
    let placed = it.what_if(found.change.unwrap().as_changes()).placed;
    let who = found.who.as_str();
    (format!("{who}: {}", found.text), seconds(found.at_micros), placed.len())
}

#[test]
fn ans_28_together_changes_pods_and_nodes() {
    let it = asked(
        "node g1 cpu=8 zone=b taint=team=vision:NoSchedule unschedulable taint=node.kubernetes.io/unschedulable:NoSchedule
         job train\n task a cpu=4 selector.zone=a",
    );
    let text = "tolerate team=vision:NoSchedule, do not ask for label zone, uncordon nodes";
    assert_eq!(together(&it), (format!("admin: {text}"), None, 1));
}

#[test]
fn ans_28_together_waits_for_room_and_for_limits_of_the_queue() {
    let run = format!("running\n task a cpu=5 @g1 running started=0 {RUNTIME}=100m");
    let it = asked(&format!(
        "node g1 cpu=8 zone=b\njob eval {run}\njob train\n task a cpu=4 selector.zone=a"
    ));
    let text = "you: do not ask for label zone; it starts when default/eval on g1 ends";
    assert_eq!(together(&it), (text.to_owned(), Some(6_000), 0));
    let queue = "queue q cap.cpu=8\nnode g1 cpu=16 taint=x:NoSchedule";
    let text = format!("{queue}\njob eval queue=q {run}\njob train queue=q\n task a cpu=4");
    let it = Asked::new(&conf("enqueue, allocate", "priority gang predicates capacity"), &text);
    let text = "you: tolerate x:NoSchedule; it starts when default/eval on g1 ends";
    assert_eq!(together(&it), (text.to_owned(), Some(6_000), 0));
}

/// Example F: preempt has evicted a pod for the job, and its grace period runs.
#[test]
fn ans_18_f_victims_leave_when_their_grace_period_ends() {
    let text = "node n cpu=4\njob low min=1 running\n task a cpu=2 @n running x2
        job high priority=9 min=1\n task a cpu=2 priority=9";
    let mut it = Asked::new(&conf("allocate, preempt", "priority gang predicates"), text);
    let evicted = it.effects.iter().find_map(|effect| match effect {
        Effect::Evict { pod, uid, .. } => Some((pod.clone(), uid.clone())),
        _ => None,
    });
    let (victim, uid) = evicted.unwrap();
    let times_and_ends = |it: &Asked| {
        let start = start(it, "high");
        let times = [start.earliest_micros, start.expected_micros, start.latest_micros];
        (times.map(seconds), awaited(&start))
    };
    let all_at = |end: i64| ([Some(end); 3], vec![format!("low n {end} terminating")]);
    assert_eq!(times_and_ends(&it), all_at(5_430), "the watch has not shown the deletion yet");
    let terminating_until = |end: i64| {
        let running = events_of(text).into_iter().find_map(|event| match event {
            ClusterEvent::PodApplied(pod) if pod.key == victim => Some(pod),
            _ => None,
        });
        let mut pod = running.unwrap();
        (pod.deleting, pod.evicted_by_scheduler) = (true, true);
        pod.deletion_micros = Some(START_MICROS + end * 1_000_000);
        ClusterEvent::PodApplied(pod)
    };
    it.cycle(vec![terminating_until(5_000)]);
    assert_eq!(times_and_ends(&it), all_at(5_461), "it should be gone: a minute from now");
    it.cycle(vec![terminating_until(6_000)]);
    assert_eq!(times_and_ends(&it), all_at(6_000));
    let why = it.why_with_start("high");
    assert_eq!(why.verdict.code.as_str(), "AwaitsVictims");
    let remedies: Vec<_> = why.unblock.iter().map(|it| (it.kind, it.text.as_str())).collect();
    assert_eq!(remedies, [(RemedyKind::Wait, "default/low on n ends")]);
    let gone = vec![ClusterEvent::PodDeleted { key: victim, uid }];
    it.cycle_at(gone, START_MICROS + 6_000_000_000);
    let bound = it.effects.iter().find_map(|effect| match effect {
        Effect::Bind { pod, .. } => Some(pod.name.to_string()),
        _ => None,
    });
    assert_eq!(bound.as_deref(), Some("high-a"));
}

#[test]
fn ans_40_room_is_free_when_the_last_pod_that_is_needed_has_left_it() {
    let verdict_and_start = |pods: &str, cpu: i64| {
        let it = asked(&format!("node n cpu=4\njob old running\n{pods}\njob j\n task a cpu={cpu}"));
        let start = start(&it, "j");
        let n_pods: Vec<usize> = start.waits_for.iter().map(|it| it.pods).collect();
        let code = it.why("j").verdict.code.as_str();
        (code, seconds(start.expected_micros), awaited(&start), n_pods)
    };
    let two = " task a cpu=2 @n releasing=5500\n task b cpu=2 @n releasing=5600";
    let last = vec!["old n 5600 terminating".to_owned()];
    assert_eq!(verdict_and_start(two, 4), ("WaitsForRelease", Some(5_600), last, vec![2]));
    let first = vec!["old n 5500 terminating".to_owned()];
    assert_eq!(verdict_and_start(two, 2), ("WaitsForRelease", Some(5_500), first, vec![1]));
    let soon = vec!["old n 5430 terminating".to_owned()];
    let unknown = verdict_and_start(" task a cpu=4 @n releasing", 4);
    assert_eq!(unknown, ("WaitsForRelease", Some(5_430), soon, vec![1]));
    let one_runs =
        format!(" task a cpu=2 @n releasing=5500\n task b cpu=2 @n running started=0 {RUNTIME}=2h");
    let (code, expected, ends, _) = verdict_and_start(&one_runs, 4);
    assert_eq!((code, expected), ("NoRoom", Some(7_200)));
    assert_eq!(ends, ["old n 5500 terminating", "old n 7200 stated"], "a row for each source");
}

#[test]
fn ans_33_raise_priority_names_the_lowest_class() {
    let text = "node n1 cpu=4
        priorityclass c5 value=5\npriorityclass c7 value=7\npriorityclass c9 value=9
        job low min=1 priority=6 running\n task a cpu=4 @n1 running priority=6
        job j priority=2\n task a cpu=4 priority=2";
    let config = conf("enqueue, allocate, preempt", "priority conformance | gang predicates");
    let it = Asked::new(&config, text);
    let why = it.why_with_start("j");
    let raise = why.unblock.iter().find(|it| it.kind == RemedyKind::RaisePriority).unwrap();
    assert_eq!(raise.text, "priority class c7, which evicts 1 pod of default/low");
    let changed = it.what_if(raise.change.as_ref().unwrap().as_changes());
    assert_eq!((changed.placed.len(), changed.evicted.len()), (1, 1));
}

/// Whoever wants the start alone gets the same one, whether the whole answer was asked for before or not.
#[test]
fn ans_70_a_start_alone_is_that_of_the_whole_answer() {
    let config = conf("enqueue, allocate, preempt", "priority conformance | gang predicates");
    for run in ["", "deadline=7200", "deadline=6000"] {
        for pod in ["cpu=4", "cpu=2 x2", "cpu=5", "cpu=4 selector.zone=a"] {
            let text = format!(
                "node n1 cpu=4\npriorityclass c9 value=9
                 job run priority=6 running\n task a cpu=4 @n1 running started=0 priority=6 {run}
                 job j priority=2\n task a {pod} priority=2"
            );
            let it = Asked::new(&config, &text);
            let alone = it.why_with_start_alone_in(&mut it.state(), "j");
            let mut state = it.state();
            let whole = without_sets(it.why_with_start_in(&mut state, "j"));
            assert!(whole.start.is_some(), "{text}");
            assert_eq!(alone, whole, "{text}");
            assert_eq!(it.why_with_start_alone_in(&mut state, "j"), whole, "{text}");
        }
    }
}

/// A cluster with pods that end, and waiting gangs of several priorities and queues.
pub(crate) fn busy_cluster() -> impl Strategy<Value = String> {
    let pods = prop::collection::vec((1..5_i64, 1..200_i64, 1..4_i64), 0..4);
    let nodes = prop::collection::vec((0..4_i64, pods), 1..4);
    let jobs = prop::collection::vec((1..4_i64, 1..6_i64, 1..4_i64, 1..90_i64), 1..6);
    (nodes, jobs).prop_map(|(nodes, jobs)| {
        let mut text = "queue a weight=2\nqueue b\n".to_owned();
        for (at, (free, pods)) in nodes.iter().enumerate() {
            let cpu = free + pods.iter().map(|pod| pod.0).sum::<i64>();
            text.push_str(&format!("node n{at} cpu={cpu}\n"));
            for (number, (cpu, minutes, priority)) in pods.iter().enumerate() {
                let (queue, run) = (["a", "b"][number % 2], 90 + minutes);
                text.push_str(&format!(
                    "job r{at}-{number} queue={queue} priority={priority} running
                      task a cpu={cpu} @n{at} running priority={priority} started=0 {RUNTIME}={run}m\n"
                ));
            }
        }
        for (at, (pods, cpu, priority, minutes)) in jobs.iter().enumerate() {
            let queue = ["a", "b"][at % 2];
            text.push_str(&format!(
                "job j{at} queue={queue} min={pods} priority={priority}
                  task a cpu={cpu} x{pods} priority={priority} {RUNTIME}={minutes}m\n"
            ));
        }
        text
    })
}

proptest! {
    #![proptest_config(random_cases(120))]

    /// Case 21: caches of the fast evaluator see what is done to the rows of a supposed run.
    #[test]
    fn ans_21_both_evaluators_suppose_the_same(text in busy_cluster(), minutes in 1..300_i64) {
        let config = conf(
            "enqueue, allocate, preempt, reclaim, backfill",
            "priority gang conformance | predicates proportion nodeorder",
        );
        let answers = |evaluator: Evaluator| {
            let it = Asked::evaluated(evaluator, &config, &text);
            let advanced = it.what_if(vec![Change::Advance(minutes * 60_000_000)]);
            let why = it.why_with_start("j0");
            (advanced, why.start, why.unblock)
        };
        prop_assert_eq!(answers(Evaluator::Fast), answers(Evaluator::Plain), "{}", text);
    }

    #[test]
    fn ans_70_a_start_alone_is_that_of_the_whole_answer_in_busy_clusters(text in busy_cluster()) {
        let config = conf(
            "enqueue, allocate, preempt, reclaim, backfill",
            "priority gang conformance | predicates proportion nodeorder",
        );
        let it = Asked::evaluated(Evaluator::Fast, &config, &text);
        let alone = it.why_with_start_alone_in(&mut it.state(), "j0");
        prop_assert_eq!(alone, without_sets(it.why_with_start("j0")), "{}", text);
    }
}

/// Cpus of nodes, each with pods of a request and an end in minutes after the cycle.
fn cluster() -> impl Strategy<Value = Vec<(i64, Vec<(i64, i64)>)>> {
    let pods = prop::collection::vec((1..5_i64, 1..200_i64), 0..4);
    prop::collection::vec((1..9_i64, pods), 1..4)
}

proptest! {
    #![proptest_config(random_cases(100))]

    /// Case 43: with exact ends and no arrivals one pod starts at the first end at which it fits.
    #[test]
    fn ans_43_exact_ends(nodes in cluster(), asked_cpu in 1..12_i64) {
        let mut text = String::new();
        for (at, (free, pods)) in nodes.iter().enumerate() {
            let cpu = free + pods.iter().map(|pod| pod.0).sum::<i64>();
            text.push_str(&format!("node n{at} cpu={cpu}\njob r{at} running\n"));
            for (number, (cpu, minutes)) in pods.iter().enumerate() {
                let run = 90 + minutes;
                text.push_str(&format!(
                    " task a{number} cpu={cpu} @n{at} running started=0 {RUNTIME}={run}m\n"
                ));
            }
        }
        text.push_str(&format!("job j\n task a cpu={asked_cpu}"));
        let first = nodes.iter().filter_map(|(free, pods)| {
            let mut ends: Vec<(i64, i64)> = pods.iter().map(|&(cpu, end)| (end, cpu)).collect();
            ends.sort_unstable();
            let mut free = *free;
            if asked_cpu <= free {
                return Some(0);
            }
            ends.into_iter().find_map(|(end, cpu)| {
                free += cpu;
                (asked_cpu <= free).then_some(end)
            })
        });
        let expected = first.min().map(|minutes| 5_400 + 60 * minutes);
        if expected == Some(5_400) {
            return Ok(());
        }
        let it = asked(&text);
        let start = start(&it, "j");
        prop_assert_eq!(seconds(start.expected_micros), expected, "{}\n{:?}", text, start);
        prop_assert_eq!(start.earliest_micros, start.expected_micros);
        prop_assert_eq!(start.waits_for.is_empty(), expected.is_none());
    }
}

/// A cluster in which jobs of the templates `etl` and `two` have run: pods end with the given run
/// times in seconds, one after the other.
fn learned(etl: &[i64]) -> (Asked, Timeline) {
    let (mut timeline, mut text) = (Timeline::default(), "node n1 cpu=8\n".to_owned());
    let owners = ["etl-28473829", "etl-x7k2p"].iter().cycle();
    for (at, (run, owner)) in etl.iter().zip(owners).enumerate() {
        let ended = 5_400 - run;
        text.push_str(&format!(
            "job e{at} owner={owner} running\n task a cpu=4 @n1 running started={ended}\n"
        ));
    }
    let asked = Asked::new(&conf("enqueue, allocate", "priority gang predicates nodeorder"), &text);
    let succeeded: Vec<ClusterEvent> = events_of(&text.replace("@n1 running", "@n1 succeeded"));
    let now_micros = START_MICROS + 5_400_000_000;
    // Each end is told twice at once, as a pod changes again after its end.
    let twice = [&succeeded[..], &succeeded[..]].concat();
    timeline.learn(asked.engine.cluster(), &twice, now_micros);
    // The same events bring nothing new once the cluster has seen them.
    let mut asked = asked;
    asked.cycle(succeeded.clone());
    let known = format!("{timeline:?}");
    timeline.learn(asked.engine.cluster(), &succeeded, now_micros + 1);
    assert_eq!(format!("{timeline:?}"), known);
    asked.ends = timeline.ends();
    (asked, timeline)
}

#[test]
fn ans_41_run_times_are_learned_from_pods_of_the_same_template_and_request() {
    let runs: Vec<i64> =
        vec![600, 500, 700, 900, 800, 1_000, 1_100, 1_200, 1_300, 1_400, 1_500, 1_600];
    let (mut it, _) = learned(&runs);
    // One of them runs now; another one has other requests, a third one another template.
    it.cycle(events_of(
        "job now owner=etl-99999 running\n task a cpu=4 @n1 running started=5400
         job other owner=etl-7 running\n task a cpu=3 @n1 running started=5400
         job third owner=web-1 running\n task a cpu=1 @n1 running started=5400
         job j\n task a cpu=4",
    ));
    let it_start = start(&it, "j");
    let times = [it_start.earliest_micros, it_start.expected_micros, it_start.latest_micros];
    // The 2nd, 6th and 11th of twelve.
    assert_eq!(times.map(seconds), [Some(6_000), Some(6_400), Some(6_900)]);
    assert_eq!(awaited(&it_start), ["now n1 6400 learned"]);
    assert_eq!(it_start.waits_for[0].end.source, EndSource::Learned(12));
    assert!(!it_start.is_of_few);
}

/// Two of twelve runs took more than a day, so that a start after a long one is beyond the window.
#[test]
fn ans_39_a_time_that_is_not_known_beside_the_expected_start_has_a_reason() {
    let (mut it, _) = learned(&[[600; 10].as_slice(), &[100_000; 2]].concat());
    it.cycle(events_of(
        "job now owner=etl-99999 running\n task a cpu=4 x2 @n1 running started=5400\njob j\n task a cpu=4",
    ));
    let it = start(&it, "j");
    let times = [it.earliest_micros, it.expected_micros, it.latest_micros];
    assert_eq!(times.map(seconds), [Some(6_000), Some(6_000), None]);
    assert_eq!((it.unknown, it.earliest_unknown), (None, None));
    assert_eq!(it.latest_unknown, Some(StartUnknown::BeyondWindow));
}

#[test]
fn ans_41_few_runs_are_said_to_be_few_and_one_is_none() {
    let asked_after = |runs: &[i64]| {
        let (mut it, _) = learned(runs);
        it.cycle(events_of(
            "job now owner=etl-99999 running\n task a cpu=4 x2 @n1 running started=5400\njob j\n task a cpu=4",
        ));
        start(&it, "j")
    };
    let few = asked_after(&[600, 500, 700]);
    assert!(few.is_of_few);
    let times = [few.earliest_micros, few.expected_micros, few.latest_micros];
    assert_eq!(times.map(seconds), [Some(5_900), Some(6_000), Some(6_100)]);
    let held = vec![("cpu".to_owned(), "8".to_owned())];
    let unknown = StartUnknown::NoEnd(EndlessPods { pods: 2, held });
    assert_eq!(asked_after(&[600]).unknown, Some(unknown));
    // What is stated comes before what is learned, and a deadline counts beside it.
    let (mut it, _) = learned(&[600, 500, 700]);
    it.cycle(events_of(&format!(
        "job now owner=etl-99999 running\n task a cpu=4 @n1 running started=5400 {RUNTIME}=3h
         job now2 owner=etl-99999 running\n task a cpu=4 @n1 running started=5400 deadline=60
         job j\n task a cpu=4",
    )));
    assert_eq!(awaited(&start(&it, "j")), ["now2 n1 5460 deadline"]);
}

#[test]
fn ans_44_predictions_are_compared_with_the_start() {
    let key = ObjectKey::new("default", "j");
    let told = |from: i64, at: i64, to: i64| StartAnswer {
        earliest_micros: Some(from * 1_000_000),
        expected_micros: Some(at * 1_000_000),
        latest_micros: Some(to * 1_000_000),
        ..StartAnswer::default()
    };
    let started_at = |start: i64| {
        let mut timeline = Timeline::default();
        timeline.told(&key, &told(1_000, 1_200, 1_400), 200_000_000);
        // Only the first one counts.
        timeline.told(&key, &told(1, 1, 1), 300_000_000);
        let mut it = asked("node n1 cpu=8");
        let events = events_of("job j\n task a cpu=4");
        let now = CycleTime { unix_micros: start * 1_000_000 };
        let (effects, report) = it.engine.cycle(events, now);
        timeline.record(&TimelineStep {
            cluster: it.engine.cluster(),
            effects: &effects,
            report: Some(&report),
            cycle: 2,
            now_micros: now.unix_micros,
            took_micros: 1,
            n_events: 1,
        });
        let outcomes = timeline.take_outcomes();
        assert!(timeline.take_outcomes().is_empty(), "each is taken once");
        (timeline.held(), outcomes[0].is_covered, outcomes[0].error_ratio)
    };
    assert_eq!(started_at(1_200), (Some((1, 1)), true, Some(0.0)));
    assert_eq!(started_at(940), (Some((1, 1)), true, Some(-0.26)), "a minute is allowed");
    assert_eq!(started_at(1_461), (Some((0, 1)), false, Some(0.261)));
    assert_eq!(started_at(2_200).2, Some(1.0), "twice as late as told");
}

#[test]
fn ans_37_an_end_that_passes_while_cycles_run_is_due_at_once() {
    let text = format!(
        "node n1 cpu=4
         job a running\n task a cpu=2 @n1 running started=0 {RUNTIME}=100m
         job b running\n task a cpu=2 @n1 running started=0 {RUNTIME}=6001s
         job j\n task a cpu=4"
    );
    let start = start(&asked(&text), "j");
    assert_eq!(seconds(start.expected_micros), Some(6_001), "not put off by doubling");
}
