//! `status.allocated` of queues (core.md 7.7).

use vc_model::ClusterEvent;

use crate::support::*;

fn config() -> vc_conf::Config {
    conf("enqueue, allocate, backfill", "gang predicates")
}

#[test]
fn core_88_amounts_of_a_queue_and_its_ancestors() {
    let text = "node n1 cpu=4
        queue root
        queue a
        queue b parent=a
        queue lost parent=none
        job j queue=b running
          task a cpu=2 @n1 running
        job k queue=lost running
          task a cpu=1 @n1 running
        job r queue=root running
          task a cpu=1 @n1 running";
    let mut world = World::new(&config(), text);
    let cycle = world.cycle();
    assert_eq!(
        cycle.only(&["queue"]),
        "queue a cpu=2 memory=0 pods=1\n\
         queue b cpu=2 memory=0 pods=1\n\
         queue default cpu=0 memory=0\n\
         queue lost cpu=1 memory=0 pods=1\n\
         queue root cpu=3 memory=0 pods=2"
    );
    assert_eq!(cycle.report.warnings, ["queue lost: parent queue none does not exist"]);
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["queue"]), "");
    assert!(cycle.report.warnings.is_empty(), "{:?}", cycle.report.warnings);
}

#[test]
fn core_88_a_cycle_of_parents_ends() {
    let text = "node n1 cpu=4
        queue root
        queue a parent=b
        queue b parent=a
        job j queue=b running
          task a cpu=2 @n1 running";
    let cycle = World::new(&config(), text).cycle();
    assert_eq!(
        cycle.only(&["queue"]),
        "queue a cpu=2 memory=0 pods=1\n\
         queue b cpu=2 memory=0 pods=1\n\
         queue default cpu=0 memory=0\n\
         queue root cpu=0 memory=0"
    );
    assert_eq!(cycle.report.warnings, ["queue a: its parents form a cycle through queue b"]);
}

#[test]
fn core_88_status_that_could_not_be_written_is_sent_again() {
    let text = "node n1 cpu=4
        job j running
          task a cpu=2 @n1 running";
    let mut world = World::new(&config(), text);
    let first = world.cycle_unanswered().only(&["queue"]);
    assert_eq!(first, "queue default cpu=2 memory=0 pods=1");
    assert_eq!(world.cycle_unanswered().only(&["queue"]), "");
    world.send(ClusterEvent::QueueFailed { name: "default".into() });
    assert_eq!(world.cycle_unanswered().only(&["queue"]), first);
}
