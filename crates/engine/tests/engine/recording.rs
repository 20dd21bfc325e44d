//! actions.md "Recording", and what of 10.1-10.3 those cases leave out.

use vc_conf::Config;
use vc_model::PodCondition;

use crate::support::*;

fn config() -> Config {
    conf("enqueue, allocate, backfill", "priority gang conformance | drf predicates nodeorder")
}

#[test]
fn record__discarded_allocated() {
    let text = "node n1 cpu=2
        job j min=2
          task a cpu=1
          task b cpu=5";
    let cycle = World::new(&config(), text).cycle();
    let why = "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Schedulable, 1 \
        Unschedulable. Origin reason is j-b: 0/1 nodes are unavailable: 1 Insufficient cpu.";
    assert_eq!(
        cycle.only(&["group", "event", "pod"]),
        format!(
            "group j Inqueue Unschedulable \"1/2 tasks in gang unschedulable: {why}\"\n\
             event PodGroup j Warning Unschedulable \"1/2 tasks in gang unschedulable: {why}\"\n\
             pod j-a Schedulable \"Pod default/j-a can possibly be assigned to n1, once \
             minAvailable is satisfied. 1 of 2 members have room.\"\n\
             pod j-b Unschedulable \"0/1 nodes are unavailable: 1 Insufficient cpu. It fits on no \
             node even when empty: requests 5 cpu, largest node 2. 1 of 2 members have room.\""
        )
    );
}

#[test]
fn record__pipelined() {
    let text = "node n1 cpu=1
        job gone
          task v cpu=1 @n1 running deleting
        job j
          task a cpu=1";
    let cycle = World::new(&config(), text).cycle();
    assert_eq!(
        cycle.only(&["pod"]),
        "pod j-a Unschedulable \"Pod default/j-a can possibly be assigned to n1, once resource is \
         released and minAvailable is satisfied\""
    );
    let group = cycle.only(&["group"]);
    let why = "pod group is not ready, 1 Pipelined, 1 minAvailable";
    let reported = format!("Unschedulable \"1/1 tasks in gang unschedulable: {why}\"");
    assert!(group.contains(&reported), "{group}");
}

#[test]
fn record__no_change() {
    let text = "node n1 cpu=2
        queue q cap.cpu=1
        job gone
          task v cpu=1 @n1 running deleting
        job kept min=2
          task a cpu=1 x2
        job big min=2
          task a cpu=1
          task b cpu=5
        job refused queue=q minres.cpu=4 pending
          task a cpu=4
        job few min=3
          task a cpu=1
        job elastic min=1
          task a cpu=1 @n1 bound
          task b cpu=9";
    let mut world = World::new(&Config { ..config() }, text);
    world.cycle();
    // The queue's amounts and the phases settle with the second cycle.
    world.cycle();
    for _ in 0..3 {
        world.tick(1);
        assert_eq!(world.cycle().only(&["bind", "pod", "group", "event", "queue"]), "");
    }
}

#[test]
fn record__percent() {
    let text = "node n1 cpu=1
        job j
          task a cpu=1";
    let mut world = World::new(&config(), text);
    world.edit("j-a", |pod| pod.invalid = Some("cannot read 100%d of it".into()));
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    assert_eq!(cycle.only(&["pod"]), "pod j-a Unschedulable \"cannot read 100%d of it\"");
}

#[test]
fn record__gated() {
    let text = "node n1 cpu=1
        job j
          task a cpu=1 gate=example.com/later";
    assert_eq!(World::new(&config(), text).cycle().only(&["pod"]), "");
}

#[test]
fn record__origin() {
    let text = "node n1 cpu=1
        job j min=4
          task d cpu=3
          task c cpu=4
          task b cpu=5
          task a cpu=6";
    let text_of = || World::new(&config(), text).cycle().only(&["group"]);
    let first = text_of();
    // The first task of the order is tried first, and a gang of all needs no second failure.
    assert!(first.contains("Origin reason is j-a: 0/1 nodes"), "{first}");
    for _ in 0..100 {
        assert_eq!(text_of(), first);
    }
}

#[test]
fn record__ready_elastic() {
    let text = "node n1 cpu=1
        job j min=1
          task a cpu=1 x8";
    let mut world = World::new(&config(), text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind j-a-0 n1");
    // A group that is ready is not told that it waits (C-30); its pods are.
    assert_eq!(cycle.only(&["event"]), "");
    assert_eq!(cycle.only(&["group"]), "group j Inqueue Scheduled \"\"");
    let explained = &cycle.report.waiting;
    assert_eq!(explained.len(), 7);
    let reported = cycle.only(&["pod"]);
    let rest = reported.lines().last().expect("seven pods wait");
    assert!(
        rest.starts_with("pod j-a-7 Unschedulable \"")
            && rest.contains("0/1 nodes are unavailable: 1 Insufficient cpu."),
        "{reported}"
    );
}

#[test]
fn record__ready_elastic_text_of_tasks_that_were_not_tried() {
    let text = "node n1 cpu=1
        job j min=1
          task a cpu=1 @n1 running
          task b cpu=1 x2";
    let mut world = World::new(&conf("backfill", "gang predicates"), text);
    let why = "pod group is ready, 1 Running, 1 minAvailable, 2 Pending; Pending: 2 Unschedulable. \
        no action has tried the pod: allocate places pods with a request, backfill those without";
    assert_eq!(
        world.cycle().only(&["pod"]),
        format!("pod j-b-0 Unschedulable {why:?}\npod j-b-1 Unschedulable {why:?}")
    );
}

#[test]
fn record__waits_for_its_own_terminating_members() {
    let text = "node n1 cpu=2
        job j min=2 running
          task a cpu=1 @n1 running
          task b cpu=1 @n1 running deleting";
    let cycle = World::new(&config(), text).cycle();
    assert_eq!(cycle.only(&["group"]), "group j Running running=1");
}

#[test]
fn record__group_that_lost_members_is_queued_again() {
    let text = "node n1 cpu=2
        job j min=2 running
          task a cpu=1 x2 @n1 running";
    let mut world = World::new(&config(), text);
    world.cycle();
    world.delete_pod("j-a-1");
    let phases: Vec<String> = (0..3)
        .map(|_| {
            world.cycle();
            world.group("j").status.phase.as_str().to_owned()
        })
        .collect();
    // A member runs and the gang is short: Unknown (core.md 7.5).
    assert_eq!(phases, ["Unknown"; 3]);
}

#[test]
fn record__condition_of_another_writer_is_corrected() {
    let text = "node n1 cpu=1
        job j
          task a cpu=2";
    let mut world = World::new(&config(), text);
    let reported = world.cycle().only(&["pod"]);
    assert_eq!(world.cycle().only(&["pod"]), "");
    world.edit("j-a", |pod| {
        pod.scheduled_condition = Some(PodCondition {
            status: "False".into(),
            reason: "SchedulingGated".into(),
            message: "".into(),
        });
    });
    // But the other one may write it again, so that it waits (C-52).
    assert_eq!(world.cycle().only(&["pod"]), "");
    world.tick(60);
    assert_eq!(world.cycle().only(&["pod"]), reported);
}

#[test]
fn record__what_waits_is_explained() {
    let text = "node n1 cpu=1
        queue q cap.cpu=1
        job few min=3
          task a cpu=1
        job gated
          task a cpu=1 gate=example.com/later
        job lost queue=none
          task a cpu=1
        job refused queue=q minres.cpu=4 pending
          task a cpu=4
        pod single cpu=1";
    let config = conf("enqueue, allocate", "gang proportion predicates");
    let report = World::new(&config, text).cycle().report;
    let lines: Vec<String> = report
        .waiting
        .iter()
        .map(|task| format!("{} {}: {}", task.pod.name, task.queue, task.message))
        .collect();
    assert_eq!(
        lines,
        [
            "few-a default: Not enough valid tasks for gang-scheduling, valid: 1, min: 3",
            "gated-a default: the pod has scheduling gate example.com/later",
            "lost-a none: queue none does not exist",
            "refused-a q: queue resource quota insufficient: insufficient cpu. Limit of queue q: 1 cpu \
             (spec.capability), used 0, asked 4.",
            "single : the pod belongs to no PodGroup: annotation scheduling.k8s.io/group-name is \
             missing. Volcano's controllers add it; with --bare-pods=schedule it is not needed",
        ]
    );
    let queues: Vec<&str> = report.queues.iter().map(|used| &*used.queue).collect();
    assert_eq!(queues, ["default", "q"]);
}
