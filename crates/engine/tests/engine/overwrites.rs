//! Conditions that somebody else overwrites are noticed, and written again once a minute. Every
//! cycle is compared with one of the plain evaluator. Specification: core.md 7.6 (C-52).

use vc_conf::Config;
use vc_engine::Sample;
use vc_model::{PodCondition, PodGroupCondition};

use crate::support::*;

fn config() -> Config {
    conf("enqueue, allocate, backfill", "priority gang | predicates nodeorder")
}

/// A pod that fits nowhere, and its group.
const WAITS: &str = "node n1 cpu=1
    job j
      task a cpu=2";

fn reported(message: &str) -> PodCondition {
    let (status, reason) = ("False".into(), "Unschedulable".into());
    PodCondition { status, reason, message: message.into() }
}

/// Somebody else writes this as the reason of the pod.
fn overwrite(world: &mut World, message: &str) {
    world.edit("j-a", |pod| pod.scheduled_condition = Some(reported(message)));
}

/// Somebody else writes a condition of the group, in the place of the one of its type.
fn overwrite_group(world: &mut World, kind: &str, message: &str) {
    world.edit_group("j", |group| {
        let mut conditions: Vec<PodGroupCondition> = group.status.conditions.to_vec();
        let mut condition = conditions[0].clone();
        (condition.kind, condition.message) = (kind.into(), message.into());
        conditions.retain(|other| other.kind != condition.kind);
        conditions.push(condition);
        group.status.conditions = conditions.into();
    });
}

/// Overwritten conditions that the cycle reports, as in `Pod 1`.
fn overwritten(cycle: &Cycle) -> Vec<String> {
    let text = |sample: &Sample| match sample {
        Sample::ConditionsOverwritten { kind, n_conditions } => {
            Some(format!("{kind} {n_conditions}"))
        }
        _ => None,
    };
    cycle.report.samples.iter().filter_map(text).collect()
}

/// The pod and its group have told why they wait, and the watch has shown it.
fn settled() -> World {
    let mut world = World::new(&config(), WAITS);
    for _ in 0..4 {
        world.cycle();
    }
    assert_eq!(world.cycle().only(&["pod", "group"]), "");
    world
}

#[test]
fn a_condition_that_somebody_overwrites_is_written_again_once_a_minute() {
    let mut world = settled();
    let mut writes = Vec::new();
    for second in 0..240 {
        // The other scheduler answers each of our writes, and every now and then by itself.
        if second % 7 == 0 {
            overwrite(&mut world, "0/9 nodes are available");
        }
        let cycle = world.cycle();
        writes.extend((!cycle.only(&["pod"]).is_empty()).then_some(second));
        world.tick(1);
    }
    assert_eq!(writes, [60, 120, 180]);
}

#[test]
fn overwritten_conditions_are_counted_and_the_second_one_is_a_warning() {
    let mut world = settled();
    let (mut n_counted, mut warnings) = (0, Vec::new());
    for _ in 0..4 {
        overwrite(&mut world, "0/9 nodes are available");
        for _ in 0..2 {
            let cycle = world.cycle();
            n_counted += overwritten(&cycle).len();
            warnings.extend(cycle.report.warnings);
        }
        world.tick(60);
        world.cycle();
    }
    assert_eq!(n_counted, 4);
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    let wanted = "pod default/j-a: somebody else overwrites its condition: \"Unschedulable: 0/9 nodes \
        are available\" instead of \"Unschedulable: 0/1 nodes are unavailable: 1 Insufficient cpu.";
    assert!(warning.starts_with(wanted), "{warning}");
    assert!(warning.contains("\nhint: does another scheduler serve the same schedulerName?"));
}

#[test]
fn echoes_of_our_own_writes_are_nobody_elses() {
    let mut world = World::new(&config(), WAITS);
    let first = world.cycle_unanswered();
    let before = world.pod("j-a").clone();
    // What the pod was before our write comes late, and then our write.
    world.edit("j-a", |pod| pod.scheduled_condition = Some(reported("of an earlier process")));
    assert_eq!(overwritten(&world.cycle_unanswered()), [""; 0]);
    first.effects.iter().for_each(|effect| world.store(effect));
    assert_eq!(overwritten(&world.cycle()), [""; 0]);
    let ours = world.pod("j-a").scheduled_condition.clone().unwrap();
    // Another reason of ours, and the echo of the first one again.
    world.add("node n2 cpu=1");
    let cycle = world.cycle();
    assert!(!cycle.only(&["pod"]).is_empty(), "{}", cycle.all());
    assert_eq!(overwritten(&cycle), [""; 0]);
    assert_eq!(overwritten(&world.cycle()), [""; 0]);
    overwrite(&mut world, &ours.message);
    assert_eq!(overwritten(&world.cycle()), [""; 0], "it was ours");
    // A bound pod, and one that is new, have conditions of their own.
    world.edit("j-a", |pod| {
        pod.scheduled_condition = Some(PodCondition { status: "True".into(), ..reported("") });
        pod.node_name = Some("n1".into());
    });
    assert_eq!(overwritten(&world.cycle()), [""; 0]);
    assert!(before.node_name.is_none());
}

#[test]
fn of_a_group_only_conditions_of_ours_count() {
    let mut world = settled();
    overwrite_group(&mut world, "Validated", "of a controller");
    assert_eq!(overwritten(&world.cycle()), [""; 0]);
    world.edit_group("j", |group| group.status.conditions = Vec::new().into());
    let cycle = world.cycle();
    assert_eq!(overwritten(&cycle), [""; 0], "missing is not overwritten");
    assert!(cycle.only(&["group"]).contains("Unschedulable"), "it is written at once");
    world.cycle();
    overwrite_group(&mut world, "Unschedulable", "3/3 tasks in gang unschedulable");
    let cycle = world.cycle();
    assert_eq!(overwritten(&cycle), ["PodGroup 1"]);
    assert_eq!(cycle.only(&["group"]), "");
    world.tick(59);
    assert_eq!(world.cycle().only(&["group"]), "");
    assert_eq!(world.engine.due_micros(), Some(world.now_micros() + 1_000_000));
    world.tick(1);
    assert!(world.cycle().only(&["group"]).contains("1/1 tasks in gang unschedulable"));
}

#[test]
fn another_condition_of_ours_is_written_at_once() {
    let mut world = settled();
    overwrite(&mut world, "0/9 nodes are available");
    assert_eq!(overwritten(&world.cycle()), ["Pod 1"]);
    world.add("node n2 cpu=1");
    assert!(!world.cycle().only(&["pod"]).is_empty());
    world.add("node n2 cpu=4");
    assert_eq!(world.cycle().decisions(), "bind j-a n2");
}
