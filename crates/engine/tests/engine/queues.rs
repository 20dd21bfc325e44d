//! `status.allocated` of queues (core.md 7.7), turns of many of them (actions.md 4.1), and what is said
//! of jobs that nobody tried.

use vc_engine::QueueUse;
use vc_model::{ClusterEvent, QueueRecord};

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
    // Answers show the same.
    let cpu = |amounts: &[(String, String)]| amounts.iter().find(|it| it.0 == "cpu").cloned();
    let shown = |it: &QueueUse| Some(format!("{} {}", it.queue, cpu(&it.allocated)?.1));
    let shown: Vec<String> = cycle.report.queues.iter().filter_map(shown).collect();
    assert_eq!(shown, ["a 2", "b 2", "default 0", "lost 1", "root 3"]);
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["queue"]), "");
    assert!(cycle.report.warnings.is_empty(), "{:?}", cycle.report.warnings);
}

/// Only queues whose jobs hold something else are looked at, and those above them.
#[test]
fn core_88_amounts_follow_pods_that_come_and_go() {
    let text = "node n1 cpu=9
        queue root
        queue a
        queue b parent=a
        queue c parent=a
        queue lone parent=none
        job j queue=b running
          task a cpu=2 @n1 running
        job k queue=c running
          task a cpu=1 @n1 running";
    let mut world = World::new(&config(), text);
    world.cycle();
    world.add("job m queue=b min=1\n task a cpu=3");
    assert_eq!(
        world.cycle().only(&["queue"]),
        "queue a cpu=6 memory=0 pods=3\n\
         queue b cpu=5 memory=0 pods=2\n\
         queue root cpu=6 memory=0 pods=3"
    );
    world.delete_pod("k-a");
    world.delete_group("k");
    assert_eq!(
        world.cycle().only(&["queue"]),
        "queue a cpu=5 memory=0 pods=2\n\
         queue c cpu=0 memory=0\n\
         queue root cpu=5 memory=0 pods=2"
    );
    world.add("job o queue=lone min=1\n task a cpu=1");
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["queue"]), "queue lone cpu=1 memory=0 pods=1");
    assert_eq!(cycle.report.warnings, ["queue lone: parent queue none does not exist"]);
    // Another tree.
    world.add("queue b");
    assert_eq!(
        world.cycle().only(&["queue"]),
        "queue a cpu=0 memory=0\nqueue b cpu=5 memory=0 pods=2"
    );
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

/// As somebody else wrote its status.
fn default_queue(allocated: &[(&str, &str)]) -> ClusterEvent {
    let Some(Object::Queue(queue)) = objects("queue default").pop() else {
        panic!("it is a queue");
    };
    let entry = |&(name, text): &(&str, &str)| (name.into(), text.parse().expect("a quantity"));
    let status_allocated = allocated.iter().map(entry).collect();
    ClusterEvent::QueueApplied(Box::new(QueueRecord { status_allocated, ..queue }))
}

#[test]
fn core_88_what_somebody_else_wrote_is_corrected() {
    let text = "node n1 cpu=4
        job j running
          task a cpu=2 @n1 running";
    let mut world = World::new(&config(), text);
    let first = world.cycle().only(&["queue"]);
    assert_eq!(first, "queue default cpu=2 memory=0 pods=1");
    world.send(default_queue(&[("cpu", "7"), ("memory", "0")]));
    assert_eq!(world.cycle_unanswered().only(&["queue"]), first);
    // The same in other words is left as it is.
    world.send(default_queue(&[("pods", "1"), ("cpu", "2000m"), ("memory", "0Mi")]));
    assert_eq!(world.cycle_unanswered().only(&["queue"]), "");
}

#[test]
fn core_88_amounts_that_come_back_are_written_again() {
    let text = "node n1 cpu=4
        job j running
          task a cpu=2 @n1 running";
    let mut world = World::new(&config(), text);
    assert_eq!(world.cycle().only(&["queue"]), "queue default cpu=2 memory=0 pods=1");
    world.add("job k running\n task a cpu=1 @n1 running");
    assert_eq!(world.cycle().only(&["queue"]), "queue default cpu=3 memory=0 pods=2");
    world.delete_pod("k-a");
    assert_eq!(world.cycle().only(&["queue"]), "queue default cpu=2 memory=0 pods=1");
}

/// The plain evaluator compares all queues for each turn; whatever is bound, is bound in turn.
#[test]
fn allocate_41_turns_of_many_queues_are_those_of_all_pairs() {
    let mut text = String::from("node n1 cpu=60 pods=100\n queue root\n queue top\n");
    for place in 0..9 {
        let (weight, parent) = (1 + place % 4, if place == 8 { "top" } else { "root" });
        text += &format!("queue q{place} weight={weight} deserved.cpu={weight} parent={parent}\n");
        for job in 0..5 {
            text += &format!("job j{place}{job} queue=q{place}\n task t x2 cpu={}\n", 1 + job % 2);
        }
    }
    let shallow = text.replace("parent=top", "parent=root");
    let deep = "gang | predicates capacity{* hierarchy}";
    for tiers in ["gang | predicates proportion", "gang | predicates capacity", deep] {
        for text in [&text, &shallow] {
            let config = conf("allocate", tiers);
            let lines = World::new(&config, text).cycle().only(&["bind"]);
            assert!(8 < lines.lines().count(), "{tiers}: {lines}");
        }
    }
}

#[test]
fn core_310_each_job_that_nobody_tried_has_its_own_text() {
    let text = "node n1 cpu=1
        job a
          task t x3 cpu=1
        job b
          task t x2 cpu=1";
    let cycle = World::new(&conf("backfill", "gang predicates"), text).cycle();
    let reported = cycle.report.waiting.iter().map(|task| (&*task.pod.name, &*task.message));
    let of = |n: u32| {
        format!("pod group is not ready, 1 minAvailable, {n} Pending; Pending: {n} Unschedulable")
    };
    let (a, b) = (of(3), of(2));
    let expected = [("a-t-0", &*a), ("a-t-1", &*a), ("a-t-2", &*a), ("b-t-0", &*b), ("b-t-1", &*b)];
    assert_eq!(reported.collect::<Vec<_>>(), expected);
}
