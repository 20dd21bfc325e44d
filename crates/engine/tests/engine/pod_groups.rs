//! What PodGroups say: their first phase, the numbers of their conditions and events, and what is
//! taken back. Specification: core.md 7.5, 7.6 (C-41, C-42).

use vc_conf::Config;
use vc_model::{PodGroupCondition, PodGroupPhase};

use crate::support::*;

fn config() -> Config {
    conf("enqueue, allocate, backfill", "priority gang | overcommit drf predicates proportion")
}

/// The PodGroup has no status yet, as users create it.
fn without_phase(world: &mut World, name: &str) {
    world.edit_group(name, |group| {
        group.status.phase = PodGroupPhase::Pending;
        group.status.is_phase_empty = true;
    });
}

#[test]
fn the_first_phase_is_written_also_if_it_is_pending() {
    let texts = [
        ("job j minres.cpu=9", "Pending"),
        ("job j minres.cpu=9\n task a cpu=9", "Pending"),
        ("job j minres.cpu=1", "Inqueue"),
        ("job j min=0", "Inqueue"),
        ("job j queue=gone", "Pending"),
    ];
    for (text, phase) in texts {
        let mut world = World::new(&config(), &format!("node n1 cpu=4\n {text}"));
        without_phase(&mut world, "j");
        let first = world.cycle();
        let written = first.only(&["group"]);
        assert!(written.starts_with(&format!("group j {phase}")), "{text}: {written}");
        assert!(!world.group("j").status.is_phase_empty, "{text}");
        for _ in 0..3 {
            world.cycle();
        }
        assert_eq!(world.cycle().all(), "", "{text}: nothing is written in a steady state");
    }
}

#[test]
fn a_first_phase_that_was_not_stored_is_written_again() {
    let mut world = World::new(&config(), "node n1 cpu=4\n job j minres.cpu=9");
    without_phase(&mut world, "j");
    let reported = world.cycle_unanswered().only(&["group"]);
    assert_eq!(reported, "group j Pending");
    assert_eq!(world.cycle_unanswered().only(&["group"]), "", "it is on its way");
    world.refuse_group_status("j");
    assert_eq!(world.cycle().only(&["group"]), reported);
}

#[test]
fn core_84_an_empty_group_without_minimum_is_never_running() {
    let text = "node n1 cpu=4\n job a min=0\n job b min=0 pending minres.cpu=9";
    let mut world = World::new(&config(), text);
    for _ in 0..3 {
        world.cycle();
        let phase = |name| world.group(name).status.phase.as_str();
        assert_eq!(["a", "b"].map(phase), ["Inqueue", "Pending"]);
    }
}

fn condition<'w>(world: &'w World, kind: &str) -> Option<&'w PodGroupCondition> {
    let mut conditions = world.group("j").status.conditions.iter();
    conditions.find(|condition| &*condition.kind == kind)
}

#[test]
fn unschedulable_is_taken_back_when_the_group_is_placed() {
    let text = "node n1 cpu=1\n job j min=2\n task a cpu=1 x2";
    let mut world = World::new(&config(), text);
    world.cycle();
    assert_eq!(&*condition(&world, "Unschedulable").unwrap().status, "True");
    world.add("node n2 cpu=1");
    world.cycle();
    let found = condition(&world, "Unschedulable").unwrap();
    assert_eq!(
        [&*found.status, &*found.reason, &*found.message],
        ["False", "Scheduled", "pod group is ready"]
    );
    assert_eq!(&*condition(&world, "Scheduled").unwrap().status, "True");
    for _ in 0..4 {
        world.kubelets();
        world.cycle();
    }
    assert_eq!(world.cycle().only(&["group"]), "", "it is said once");
    world.delete_pod("j-a-0");
    world.cycle();
    assert_eq!(&*condition(&world, "Unschedulable").unwrap().status, "True", "it waits again");
}

#[test]
fn a_missing_queue_that_comes_is_taken_back_without_the_gang_plugin() {
    let text = "node n1 cpu=1\n job j queue=q\n task a cpu=9";
    let mut world = World::new(&conf("enqueue, allocate", "predicates"), text);
    world.cycle();
    let found = condition(&world, "Unschedulable").unwrap();
    assert_eq!([&*found.status, &*found.message], ["True", "queue q does not exist"]);
    world.add("queue q");
    world.cycle();
    let found = condition(&world, "Unschedulable").unwrap();
    assert_eq!([&*found.status, &*found.message], ["False", "queue q exists"]);
}

#[test]
fn numbers_of_condition_and_event_agree() {
    let jobs = [
        "job j min=3\n task a cpu=1 x2",
        "job j min=3\n task a cpu=1 x2\n task b cpu=1 failed @n1",
        "job j min=2\n task a cpu=9 x5",
        "job j min=2\n task a cpu=1\n task b cpu=9",
        "job j min=3 role.ps=1 role.worker=2\n task a cpu=1 role=worker x3",
        "job j min=1 policy.workers=1x2\n task a cpu=1 label.workers=0",
        "job j min=3\n task a cpu=1 @n1 running\n task b cpu=9 x2",
    ];
    let missing = [
        "1 pod is missing: 2 of 3 exist",
        "1 pod is missing: 2 of 3 exist, 1 failed or terminating",
        "",
        "",
        "1 pod of role ps is missing: 0 of 1 exist",
        "1 sub-group of policy workers is missing: 1 of 2 exist",
        "",
    ];
    for (job, missing) in jobs.iter().zip(missing) {
        let mut world = World::new(&config(), &format!("node n1 cpu=4\n {job}"));
        let cycle = world.cycle();
        let message = condition(&world, "Unschedulable").unwrap().message.to_string();
        let event = format!("event PodGroup j Warning Unschedulable {message:?}");
        assert_eq!(cycle.only(&["event"]), event, "{job}");
        let (n_lacking, rest) = message.split_once('/').unwrap();
        let (n_members, _) = rest.split_once(' ').unwrap();
        let number = |text: &str| text.parse::<usize>().unwrap();
        assert!((1..=number(n_members)).contains(&number(n_lacking)), "{message}");
        let all = ["is missing", "are missing"];
        assert_eq!(all.iter().any(|word| message.contains(word)), !missing.is_empty(), "{message}");
        assert!(message.ends_with(missing), "{message}");
    }
}
