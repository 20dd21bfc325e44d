//! Numbers for metrics: core.md 9, actions.md 4.10; and what is written when only they change.

use std::sync::atomic::{AtomicU64, Ordering};

use vc_engine::{
    CycleTime, Engine, EngineOptions, EvictReason, GangState, PendingReason, PluginStage, Report,
    Sample,
};
use vc_model::ClusterEvent;

use crate::support::*;

fn config() -> vc_conf::Config {
    conf("enqueue, allocate, backfill", "gang drf predicates proportion nodeorder")
}

fn samples(world: &mut World) -> Vec<Sample> {
    world.cycle().report.samples
}

/// `queue reason number` of what the last sample of waiting pods says.
fn pending(report: &Report) -> Vec<String> {
    let of_pods = |sample: &Sample| match sample {
        Sample::PendingPods(pods) => Some(pods.clone()),
        _ => None,
    };
    let pods = report.samples.iter().find_map(of_pods).expect("they have changed");
    let line = |entry: &vc_engine::PendingPods| {
        format!("{} {} {}", entry.queue, entry.reason.text().0, entry.n_pods)
    };
    pods.iter().map(line).collect()
}

#[test]
fn a_cycle_in_which_nothing_changes_has_no_news() {
    let text = "node n1 cpu=4
        job runs min=2
          task a cpu=1 x2 @n1 running
        job waits min=3
          task a cpu=1 x3
        job fits min=1
          task a cpu=1";
    let mut world = World::new(&config(), text);
    for _ in 0..3 {
        world.cycle();
        world.kubelets();
    }
    for _ in 0..2 {
        let placed = Sample::JobPlaced {
            job: key("waits"),
            queue: "default".into(),
            n_tasks: 1,
            waited_micros: 3_600_000_000,
            now_micros: START_MICROS + 3_600_000_000,
        };
        assert_eq!(samples(&mut world), [Sample::UnreadyJobs(1), placed]);
    }
}

#[test]
fn a_job_is_gone_with_its_last_pod_and_a_queue_at_once() {
    let text = "node n1 cpu=4
        queue q1
        job j queue=q1 min=1
          task a cpu=1 @n1 running";
    let gone = |sample: &Sample| matches!(sample, Sample::JobGone(_) | Sample::QueueGone(_));
    let mut world = World::new(&config(), text);
    let mut news = move |change: &dyn Fn(&mut World)| -> Vec<Sample> {
        change(&mut world);
        samples(&mut world).into_iter().filter(gone).collect()
    };
    assert_eq!(news(&|_| {}), []);
    let group_gone = || ClusterEvent::PodGroupDeleted { key: key("j") };
    assert_eq!(news(&|world| world.send(group_gone())), []);
    assert_eq!(news(&|world| world.delete_queue("q1")), [Sample::QueueGone("q1".into())]);
    assert_eq!(news(&|world| world.add("queue q1")), []);
    assert_eq!(news(&|world| world.delete_pod("j-a")), [Sample::JobGone(key("j"))]);
    assert_eq!(news(&|_| {}), []);
    let again = |world: &mut World| {
        world.delete_queue("q1");
        world.add("queue q1\n job k queue=q1");
        world.send(ClusterEvent::PodGroupDeleted { key: key("k") });
        world.add("job k queue=q1");
    };
    assert_eq!(news(&again), [], "both were made again before anybody looked");
}

#[test]
fn every_event_of_a_pod_group_tells_its_start() {
    let mut world = World::new(&config(), "queue q1\n job b queue=q1\n job a");
    let seen = |samples: Vec<Sample>| -> Vec<String> {
        let line = |sample| match sample {
            Sample::JobSeen { job, queue, created_micros } => {
                Some(format!("{} {queue} {}", job.name, created_micros - START_MICROS))
            }
            _ => None,
        };
        samples.into_iter().filter_map(line).collect()
    };
    assert_eq!(seen(samples(&mut world)), ["a default 0", "b q1 0"]);
    assert_eq!(seen(samples(&mut world)), [""; 0]);
    world.add("job a queue=q1");
    assert_eq!(seen(samples(&mut world)), ["a q1 0"]);
}

#[test]
fn what_pods_wait_for() {
    let text = "node n1 cpu=2
        queue closed state=Closed
        job a min=3
          task a cpu=1 x2
        job b queue=nowhere
          task a cpu=1
        job c queue=closed
          task a cpu=1
        job d min=1 minres.cpu=99 pending
          task a cpu=1
        job e min=2
          task a cpu=2 x2
        job f
          task a cpu=2 @n1 running deleting
        job g
          task a cpu=1
        job h";
    let mut world = World::new(&config(), text);
    let cycle = world.cycle();
    assert_eq!(
        pending(&cycle.report),
        [
            " no_queue 1",
            "closed queue_not_open 1",
            "default not_admitted 1",
            "default gang_incomplete 2",
            "default no_fit 2",
            "default waits_for_room 1",
        ]
    );
    world.kubelets();
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind g-a n1");
    let waiting = pending(&cycle.report);
    assert!(!waiting.iter().any(|line| line.contains("waits_for_room")), "{waiting:?}");
}

#[test]
fn reasons_are_a_fixed_list_of_different_words() {
    let mut words: Vec<&str> = PendingReason::ALL.map(|reason| reason.text().0).to_vec();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), PendingReason::ALL.len());
}

#[test]
fn core_97_a_transaction_is_counted_once_and_shuffle_is_not() {
    let text = "node n1 cpu=9
        job j min=0
          task a cpu=1 x9 @n1 running";
    let mut stage = Stage::new(&conf("allocate", "gang"), Vec::new(), text);
    let outbox = stage.session(|session| {
        for (reason, pods) in [
            (EvictReason::Preempt, vec!["j-a-0", "j-a-1", "j-a-2"]),
            (EvictReason::Shuffle, vec!["j-a-3"]),
            (EvictReason::GangReclaim, vec!["j-a-4"]),
        ] {
            let victims: Vec<_> = pods.iter().map(|pod| task(session, pod)).collect();
            let mut statement = session.statement();
            for victim in victims {
                statement.evict(victim, reason, None).expect("it runs");
            }
            assert!(statement.commit());
        }
        let victim = task(session, "j-a-5");
        let mut statement = session.statement();
        statement.evict(victim, EvictReason::Reclaim, None).expect("it runs");
        statement.discard();
    });
    let expected =
        [EvictReason::Preempt, EvictReason::GangReclaim].map(Sample::EvictionTransaction);
    assert_eq!(outbox.samples, expected);
}

#[test]
fn tasks_that_find_a_place_are_counted_and_committed_ones_again() {
    let text = "node n1 cpu=2
        job j min=2
          task a cpu=1 x2
          task be";
    let mut world = World::new(&config(), text);
    let cycle = world.cycle();
    let waited_micros = 3_600_000_000;
    let n_assumed = |sample: &Sample| match sample {
        Sample::Assumed { waited_micros: waited, n_tasks } if *waited == waited_micros => *n_tasks,
        _ => 0,
    };
    assert_eq!(cycle.report.samples.iter().map(n_assumed).sum::<u32>(), 3);
    let now_micros = START_MICROS + waited_micros;
    let (job, queue) = (key("j"), "default".into());
    let placed = Sample::JobPlaced { job, queue, n_tasks: 3, waited_micros, now_micros };
    assert!(cycle.report.samples.contains(&placed), "{:?}", cycle.report.samples);
}

#[test]
fn gangs_are_told_when_they_change_and_when_they_leave() {
    let text = "node n1 cpu=1
        queue q1
        job j queue=q1 min=2
          task a cpu=1 x2";
    let mut world = World::new(&config(), text);
    let gangs = |samples: Vec<Sample>| -> Vec<(GangState, u64)> {
        let n_unready = samples.iter().find_map(|sample| match sample {
            Sample::UnreadyJobs(n_jobs) => Some(*n_jobs),
            _ => None,
        });
        let state = |sample: &Sample| match sample {
            Sample::JobGang { state, .. } => Some((*state, n_unready.expect("gang was closed"))),
            _ => None,
        };
        samples.iter().filter_map(state).collect()
    };
    assert_eq!(gangs(samples(&mut world)), [(GangState::Unready(1), 1)]);
    assert_eq!(gangs(samples(&mut world)), []);
    world.add("node n2 cpu=1");
    assert_eq!(gangs(samples(&mut world)), [(GangState::Ready, 0)]);
    world.delete_queue("q1");
    assert_eq!(gangs(samples(&mut world)), [(GangState::Unsaid, 0)]);
    assert_eq!(gangs(samples(&mut world)), []);
}

#[test]
fn a_condition_that_stands_is_written_with_the_id_of_its_last_session() {
    let text = "node n1 cpu=4
        job j min=1
          task a cpu=1 @n1 running
          task b cpu=1 @n1 bound";
    let mut world = World::new(&config(), text);
    world.cycle();
    let before = world.group("j").status.clone();
    world.tick(60);
    assert_eq!(world.cycle().only(&["group"]), "", "nothing but the time has changed");
    assert_eq!(world.group("j").status, before);
    world.kubelets();
    world.cycle();
    let after = &world.group("j").status;
    assert_eq!((before.running, after.running), (1, 2));
    let (old, new) = (&before.conditions[..], &after.conditions[..]);
    assert!(old.len() == 1 && new.len() == 1 && old[0].same_content(&new[0]), "{old:?} {new:?}");
    assert_ne!(old[0].transition_id, new[0].transition_id);
    assert_eq!(&*new[0].last_transition_time, "2026-01-01T01:01:00Z");
}

/// A clock that goes on by a microsecond whenever somebody looks.
fn ticking() -> u64 {
    static NANOS: AtomicU64 = AtomicU64::new(0);
    NANOS.fetch_add(1_000, Ordering::Relaxed)
}

#[test]
fn times_are_taken_only_with_a_stopwatch() {
    let cycle = |stopwatch| {
        let options = EngineOptions { stopwatch, ..EngineOptions::default() };
        let (mut engine, _) = Engine::new(options, &config());
        engine.cycle(Vec::new(), CycleTime { unix_micros: START_MICROS }).1
    };
    assert_eq!(cycle(None).timings, None);
    let timings = cycle(Some(ticking)).timings.expect("there is a clock");
    let names: Vec<&str> = timings.actions.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["enqueue", "allocate", "backfill"]);
    let of = |stage| timings.plugins.iter().filter(move |time| time.stage == stage);
    for stage in [PluginStage::Open, PluginStage::Close] {
        let names: Vec<&str> = of(stage).map(|time| time.plugin).collect();
        assert_eq!(names, ["gang", "drf", "predicates", "proportion", "nodeorder"]);
        assert!(of(stage).all(|time| 0 < time.nanos));
    }
    let parts: u64 = timings.actions.iter().map(|(_, nanos)| nanos).sum();
    assert_eq!(timings.cycle, timings.apply + timings.open + parts + timings.close);
    assert!(0 < timings.apply && 0 < timings.open && 0 < timings.close);
}
