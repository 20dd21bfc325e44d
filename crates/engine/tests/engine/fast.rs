//! The shortcuts by the names of actions.md: what they must not change, seen from outside. `World`
//! runs the plain evaluator beside the fast one in each of them and compares every cycle. Stories are
//! in `differential`. Specification: actions.md 12.2 S6, S16, test cases `fast/...`.

use crate::support::*;

/// No task of the gang gets a place that the others cannot have too. Volcano names the node of each
/// that could have been placed, so that the places are looked for all the same.
#[test]
fn fast__bound_a_gang_that_is_one_too_many_is_told_the_same_words() {
    let mut text = String::from("job j min=1000\n task a cpu=1 x1000\n");
    for index in 0..9 {
        text.push_str(&format!("node n{index} cpu=111 pods=200\n"));
    }
    let mut world = World::new(&conf("allocate", "priority gang | predicates nodeorder"), &text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    let told = cycle.only(&["pod"]);
    let count = |words: &str| told.lines().filter(|line| line.contains(words)).count();
    assert_eq!(count("can possibly be assigned to n"), 999, "{told}");
    assert_eq!(count("0/9 nodes are unavailable: 9 Insufficient cpu."), 1, "{told}");
    let group = cycle.only(&["group"]);
    assert!(group.contains("Pending: 1 Unschedulable, 999 Schedulable"), "{group}");
    world.add("node n9 cpu=1 pods=200");
    assert_eq!(world.cycle().decisions().lines().count(), 1000);
}

/// Decisions, messages and reports are those of one thread, however many work at the same time.
#[test]
fn fast__parallel_1_to_16_threads_have_the_same_outcome() {
    let alone = outcome();
    assert!(alone.contains("Evict {") && alone.contains("Bind {"), "{alone}");
    for n_threads in [2, 4, 16] {
        let threads: Vec<_> = (0..n_threads).map(|_| std::thread::spawn(outcome)).collect();
        for thread in threads {
            assert_eq!(thread.join().expect("it ends"), alone);
        }
    }
}

fn outcome() -> String {
    let tiers = "priority gang conformance | drf predicates proportion nodeorder binpack";
    let config = conf("enqueue, allocate, preempt, reclaim, backfill", tiers);
    let config = with_arguments(config, "preempt", "{enableTopologyAwarePreemption: true}");
    let mut world = World::new(&config, CLUSTER);
    let mut seen = String::new();
    for _ in 0..4 {
        let cycle = world.cycle();
        seen.push_str(&format!("{:#?}\n{:#?}\n", cycle.effects, cycle.report));
        world.kubelets();
        world.tick(1);
    }
    seen
}

const CLUSTER: &str = "node n1 cpu=4 zone=a
    node n2 cpu=4 zone=a
    node n3 cpu=4 zone=b
    node n4 cpu=2 zone=b
    queue q weight=2
    job low min=1 priority=1 running
      task w cpu=2 x2 @n1 running
      task x cpu=2 x2 @n2 running
    job high min=3 priority=9
      task w cpu=2 x3
    job wide queue=q min=2
      task w cpu=1 x2 spread=zone:1:a label.app=a
    job none min=2
      task w cpu=9 x2";
