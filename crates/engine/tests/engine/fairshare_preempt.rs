//! Preemption by usage, in cycles of both evaluators. Specification: fair-share.md 8, whose cases the
//! tests are named after.

use vc_conf::Config;
use vc_model::{ClusterEvent, PodPhase};

use crate::fairshare::jobs;
use crate::support::*;

/// A half-life so long that nothing fades.
const SLOW: &str = "fairshare.preempt=true fairshare.halfLifeMinutes=240000";

fn configuration(arguments: &str) -> Config {
    let plugins = format!("gang conformance | fairshare{{* {arguments}}} | predicates");
    conf("enqueue, allocate, preempt", &plugins)
}

fn world(arguments: &str, text: &str) -> World {
    World::new(&configuration(arguments), text)
}

/// Number of evictions by namespace.
fn evictions(cycle: &Cycle, namespace: &str) -> usize {
    let prefix = format!("evict {namespace}/");
    cycle.lines.iter().filter(|line| line.starts_with(&prefix)).count()
}

/// Runs a cycle every 10 s, with kubelets and controllers, and returns the seconds at which pods of
/// each namespace were evicted, with their number.
fn run(world: &mut World, from: i64, until: i64) -> Vec<(i64, &'static str, usize)> {
    let mut found = Vec::new();
    for second in (from..until).step_by(10) {
        let cycle = world.cycle();
        for namespace in ["a", "b", "c"] {
            match evictions(&cycle, namespace) {
                0 => {}
                n => found.push((second, namespace, n)),
            }
        }
        world.kubelets_and_controllers();
        world.tick(10);
    }
    found
}

/// Example F: all 16 pods go once the gap is reached, none for as long after, and then back.
#[test]
fn fs_preempt_example() {
    let mut world = world(SLOW, "node n gpu=16 cpu=64 pods=99");
    world.add(&jobs("b", 16));
    assert_eq!(run(&mut world, 0, 300), []);
    world.add(&jobs("a", 16));
    // Whole steps of 10 s: the gap is a little more than 10 minutes of the whole cluster.
    assert_eq!(run(&mut world, 300, 2_000), [(610, "b", 16), (1_840, "a", 16)]);
}

/// FS-61, the gap alone: pods are old enough, and the target is met from the start.
#[test]
fn fs_preempt_gap() {
    for (hysteresis, at) in [("20m", 1_210), ("5m", 610), ("0s", 600)] {
        let arguments = format!("{SLOW} fairshare.hysteresis={hysteresis}");
        let mut world = world(&arguments, "node n gpu=4 cpu=64 pods=99");
        world.add(&jobs("b", 4));
        run(&mut world, 0, 10);
        world.add(&jobs("a", 1));
        let found = run(&mut world, 10, 1_300);
        let expected = if hysteresis == "5m" { 600 } else { at };
        assert_eq!(found.first(), Some(&(expected, "b", 1)), "{hysteresis}: {found:?}");
    }
}

/// FS-61, the age alone.
#[test]
fn fs_preempt_age() {
    for (time, at) in [("2m", 310), ("15m", 900)] {
        let arguments = format!("{SLOW} fairshare.hysteresis=5m fairshare.minRunTime={time}");
        let mut world = world(&arguments, "node n gpu=4 cpu=64 pods=99");
        world.add(&jobs("b", 4));
        run(&mut world, 0, 10);
        world.add(&jobs("a", 1));
        assert_eq!(run(&mut world, 10, 1_000).first(), Some(&(at, "b", 1)), "{time}");
    }
}

/// FS-61, the target alone: no more is taken than makes both equal at the horizon.
#[test]
fn fs_preempt_target() {
    let arguments = format!("{SLOW} fairshare.hysteresis=1m fairshare.minRunTime=1m");
    for (horizon, n_evicted) in [("5m", 4), ("2m", 6), ("10s", 8)] {
        let arguments = format!("{arguments} fairshare.entryHorizon={horizon}");
        let mut world = world(&arguments, "node n gpu=8 cpu=64 pods=99");
        world.add(&jobs("b", 8));
        run(&mut world, 0, 70);
        world.add(&jobs("a", 8));
        let found = run(&mut world, 70, 80);
        assert_eq!(found, [(70, "b", n_evicted)], "{horizon}");
    }
}

/// FS-61: pods of the same namespace stay, and those of queues that are no target.
#[test]
fn fs_preempt_own_account() {
    let arguments = format!("{SLOW} fairshare.hysteresis=1s fairshare.minRunTime=0s");
    for (namespace, targets, is_evicted) in
        [("a", "default", true), ("b", "default", false), ("a", "other", false)]
    {
        let arguments = format!("{arguments} fairshare.targetQueues={targets}");
        let text = "queue other\n node n gpu=4 cpu=64 pods=99";
        let mut world = world(&arguments, text);
        world.add(&jobs("b", 4));
        run(&mut world, 0, 100);
        world.add(&jobs(namespace, 5));
        let found = run(&mut world, 100, 110);
        assert_eq!(!found.is_empty(), is_evicted, "{namespace} {targets}: {found:?}");
    }
}

/// Weights: who has weight 2 is behind with less than twice the usage of the other.
#[test]
fn fs_preempt_weights() {
    let arguments = format!("{SLOW} fairshare.hysteresis=1m fairshare.minRunTime=1m");
    let text = "node n gpu=6 cpu=64 pods=99
        quota a/q hard.volcano.sh/namespace.weight=2";
    let mut world = world(&arguments, text);
    world.add(&jobs("b", 6));
    run(&mut world, 0, 600);
    world.add(&jobs("a", 6));
    // At 600 s b has used 3600: a may catch up to 7200 before its pods give way again.
    assert_eq!(run(&mut world, 600, 610), [(600, "b", 6)]);
}

/// FS-63: gangpreempt takes surplus pods one by one, and whole gangs only if each member is old.
#[test]
fn fs_63_bundles() {
    let arguments = format!("{SLOW} fairshare.hysteresis=1m fairshare.minRunTime=10m");
    let plugins = format!("gang conformance fairshare{{* {arguments}}} | predicates");
    for (n_young, is_evicted) in [(0, true), (4, false)] {
        let mut world = World::new(
            &conf("enqueue, allocate, gangpreempt", &plugins),
            "node n gpu=4 cpu=64 pods=99",
        );
        world.add("job b/old min=2 priority=1\n  task t gpu=1 x4");
        run(&mut world, 0, 700);
        let now = world.now_micros();
        for at in 0..n_young {
            let pod = format!("b/old-t-{at}");
            world.edit(&pod, |pod| pod.started_micros = Some(now - 60_000_000));
        }
        world.add("job a/gang min=2 priority=10\n  task t gpu=1 x2");
        let found = run(&mut world, 700, 800);
        assert_eq!(!found.is_empty(), is_evicted, "{found:?} {}", world.cycle().all());
    }
}

/// FS-54: reclaim leaves pods that have just started.
#[test]
fn fs_reclaim_young_stays() {
    let arguments = "fairshare.resourceKey=cpu fairshare.preempt=true fairshare.minRunTime=3m";
    let plugins =
        format!("priority gang conformance | predicates proportion fairshare{{* {arguments}}}");
    let text = "queue q1\n queue q2\n node n cpu=4 pods=99";
    let mut world = World::new(&conf("enqueue, allocate, reclaim", &plugins), text);
    for at in 0..4 {
        world.add(&format!("job b/j{at} queue=q1\n  task t cpu=1"));
    }
    run(&mut world, 0, 10);
    world.add("job a/j queue=q2\n  task t cpu=1");
    assert_eq!(run(&mut world, 10, 300), [(180, "b", 1)]);
}

/// Preemption by usage goes on after a restart.
#[test]
fn fs_preempt_after_restart() {
    let arguments = format!("{SLOW} fairshare.persistState=true fairshare.flushIntervalSeconds=1");
    let mut world = world(&arguments, "node n gpu=4 cpu=64 pods=99");
    world.add(&jobs("b", 4));
    run(&mut world, 0, 1_000);
    for at in 0..4 {
        world.edit(&format!("b/j0{at}-t"), |pod| pod.phase = PodPhase::Succeeded);
    }
    let cycle = world.cycle();
    let usage = cycle.effects.iter().find_map(|effect| match effect {
        vc_engine::Effect::SaveUsage { usage, .. } => Some(usage.clone()),
        _ => None,
    });
    world.restart(&configuration(&arguments));
    world.send(ClusterEvent::UsageRead(usage));
    world.add(&jobs("b", 0).replace("j0", "k0"));
    for at in 0..4 {
        world.add(&format!("job b/new{at}\n  task t gpu=1"));
    }
    run(&mut world, 1_000, 1_610);
    world.add(&jobs("a", 1));
    // Without the usage of the earlier process the gap would be reached 10 s later.
    assert_eq!(run(&mut world, 1_610, 1_620), [(1_610, "b", 1)]);
}
