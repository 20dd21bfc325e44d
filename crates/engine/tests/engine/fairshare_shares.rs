//! Deserved shares that follow past usage, in cycles of both evaluators. Specification: fair-share.md
//! 6, whose cases the tests are named after.

use std::sync::Arc;

use vc_conf::Config;
use vc_engine::{CycleTime, Effect};
use vc_model::{ClusterEvent, PodPhase, SavedUsage};

use crate::support::*;

/// A half-life so long that nothing fades, and steps of 100 s.
const SLOW: &str = "fairshare.halfLifeMinutes=240000 fairshare.shareInterval=100s";

fn configuration(arguments: &str) -> Config {
    let plugins = format!("gang | fairshare{{* {SLOW} {arguments}}} proportion{{*}} | predicates");
    conf("enqueue, allocate, reclaim", &plugins)
}

const CLUSTER: &str = "queue q1\n queue q2\n node n gpu=16 cpu=640 pods=200";

/// The queue runs pods on so many GPUs for so long.
fn run(world: &mut World, queue: &str, gpus: usize, seconds: i64) {
    let job = |at| format!("job {queue}-past-{at} queue={queue}\n  task t gpu=1 cpu=1\n");
    world.add(&(0..gpus).map(job).collect::<String>());
    world.cycle();
    world.kubelets_and_controllers();
    world.tick(seconds);
    for at in 0..gpus {
        world.edit(&format!("{queue}-past-{at}-t"), |pod| pod.phase = PodPhase::Succeeded);
    }
    world.cycle();
}

/// Example E: of 1,000 s the queue q1 had all GPUs for 600 s, and q2 for 200 s.
fn example(arguments: &str, cluster: &str) -> World {
    let mut world = World::new(&configuration(arguments), cluster);
    run(&mut world, "q1", 16, 600);
    run(&mut world, "q2", 16, 200);
    world.tick(200);
    for queue in ["q1", "q2"] {
        let job = |at| format!("job {queue}-{at} queue={queue}\n  task t gpu=1 cpu=1\n");
        world.add(&(0..16).map(job).collect::<String>());
    }
    world
}

/// What a queue deserves, in GPUs.
fn deserved(cycle: &Cycle, queue: &str) -> f64 {
    let queues = &cycle.report.queues;
    let found = queues.iter().find(|it| &*it.queue == queue).expect("the queue has jobs");
    let amounts = found.deserved.as_ref().expect("proportion divides the cluster");
    let gpus = amounts.iter().find(|(name, _)| name.contains("gpu"));
    let text = &gpus.expect("the cluster has GPUs").1;
    let (number, unit) = text.strip_suffix('m').map_or((&**text, 1.0), |text| (text, 1_000.0));
    number.parse::<f64>().expect("a number") / unit
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 0.01
}

fn assert_deserved(cycle: &Cycle, expected: [f64; 2]) {
    let found = ["q1", "q2"].map(|queue| deserved(cycle, queue));
    let is_close = found.iter().zip(expected).all(|(&found, expected)| close(found, expected));
    assert!(is_close, "{found:?} instead of {expected:?}");
}

/// Two queues get the deserved amounts of example E. Without `kValue` they get equal amounts.
#[test]
fn fs_shares_k() {
    for (arguments, expected) in [
        ("fairshare.kValue=1", [16.0 / 3.0, 32.0 / 3.0]),
        ("fairshare.kValue=0", [8.0, 8.0]),
        ("", [8.0, 8.0]),
        ("fairshare.kValue=0.5", [16.0 * 0.45 / 1.1, 16.0 * 0.65 / 1.1]),
    ] {
        let cycle = example(arguments, CLUSTER).cycle();
        assert_deserved(&cycle, expected);
    }
}

/// A queue that had all of the cluster deserves its guarantee, while another one wants the rest.
#[test]
fn fs_shares_guarantee() {
    let guaranteed = CLUSTER.replace("queue q1", "queue q1 guarantee.gpu=3");
    assert_deserved(&example("fairshare.kValue=9", CLUSTER).cycle(), [0.0, 16.0]);
    assert_deserved(&example("fairshare.kValue=9", &guaranteed).cycle(), [3.0, 13.0]);
}

/// Queues that had as much as their part are weighed as without usage.
#[test]
fn fs_shares_even() {
    let mut world = World::new(&configuration("fairshare.kValue=9"), CLUSTER);
    for queue in ["q1", "q2"] {
        let job =
            |at| format!("job {queue}-{at} queue={queue} created={at}\n  task t gpu=1 cpu=1\n");
        world.add(&(0..16).map(job).collect::<String>());
    }
    world.cycle();
    world.kubelets_and_controllers();
    world.tick(1_000);
    assert_deserved(&world.cycle(), [8.0, 8.0]);
}

/// FS-51: deserved amounts stay the same until the next step, and a cycle runs at that time.
#[test]
fn fs_shares_step() {
    let mut world = example("fairshare.kValue=1", CLUSTER);
    assert_deserved(&world.cycle(), [16.0 / 3.0, 32.0 / 3.0]);
    world.kubelets_and_controllers();
    world.tick(99);
    assert_deserved(&world.cycle(), [16.0 / 3.0, 32.0 / 3.0]);
    world.tick(1);
    let cycle = world.cycle();
    // In 100 s q1 had 5 of 16 GPUs and q2 had 11, or one more that the rounding left over.
    let found = ["q1", "q2"].map(|queue| deserved(&cycle, queue));
    assert!(16.0 / 3.0 + 0.1 < found[0] && found[1] < 32.0 / 3.0 - 0.1, "{found:?}");
    assert!(close(found[0] + found[1], 16.0), "{found:?}");
}

/// FS-54: a pod that has run for 3 minutes is not reclaimed, although its queue has too much.
#[test]
fn fs_reclaim_young_stays() {
    let evicted = |arguments: &str, seconds: i64| {
        let mut world = World::new(&configuration(arguments), CLUSTER);
        let job = |queue: &str, at: usize| {
            format!("job {queue}-{at} queue={queue}\n  task t gpu=1 cpu=1\n")
        };
        world.add(&(0..16).map(|at| job("q1", at)).collect::<String>());
        world.cycle();
        world.kubelets_and_controllers();
        world.tick(seconds);
        world.add(&job("q2", 0));
        world.cycle().report.n_evictions
    };
    assert_eq!(evicted("", 180), 1);
    assert_eq!(evicted("fairshare.kValue=1", 180), 0);
    assert_eq!(evicted("fairshare.kValue=1 fairshare.minRunTime=2m", 180), 1);
    assert_eq!(evicted("fairshare.kValue=1", 660), 1);
}

/// FS-80, FS-83: another process goes on with the usage of queues and of the cluster.
#[test]
fn fs_state_keeps_shares() {
    // Only the first cycle saves, and the end of the process.
    let arguments = "fairshare.kValue=1 fairshare.persistState=true \
        fairshare.flushIntervalSeconds=999999";
    let mut world = example(arguments, CLUSTER);
    let now = CycleTime { unix_micros: world.now_micros() };
    let saved = |effect: &Effect| match effect {
        Effect::SaveUsage { usage, .. } => Some(usage.clone()),
        _ => None,
    };
    let mut usage: Option<Arc<SavedUsage>> = world.engine.last_writes(now).iter().find_map(saved);
    for is_kept in [true, false] {
        if !is_kept {
            usage = None;
        }
        world.restart(&configuration(arguments));
        world.send(ClusterEvent::UsageRead(usage.clone()));
        let expected = if is_kept { [16.0 / 3.0, 32.0 / 3.0] } else { [8.0, 8.0] };
        assert_deserved(&world.cycle_unanswered(), expected);
    }
}
