//! Gangs of one shape for which no room can be made end alike: one of them is tried in a state. Every
//! cycle is compared with one of the plain evaluator, which tries every gang, messages included.
//! Specification: actions.md 12.2 S1, S7, test list `fast/*`.

use crate::support::*;

const TIERS: &str = "priority{preemptable jobStarving taskOrder jobOrder} \
    gang{preemptable reclaimable jobStarving jobPipelined jobReady jobOrder} \
    conformance{preemptable reclaimable} predicates nodeorder";

/// Three of the five members of each gang find victims, and give the places up.
fn gangs(n_gangs: usize, members: &str) -> String {
    let mut text = String::from(
        "node n1 cpu=3
        queue mine
        queue other
        job cheap queue=other min=0 priority=1 running
          task w cpu=1 x3 @n1 running",
    );
    for gang in 0..n_gangs {
        text.push_str(&format!("\njob g{gang} {members}\n task w cpu=1 x5"));
    }
    text
}

/// Gangs that were not tried in a cycle after the first.
fn n_equal_gangs(actions: &str, text: &str) -> u64 {
    let mut world = World::new(&conf(actions, TIERS), text);
    let first = world.cycle();
    assert_eq!(first.only(&["evict"]), "");
    let n_first = world.engine.cache_stats().n_equal_gangs;
    world.add("job nudge min=1");
    world.cycle();
    assert_eq!(world.engine.cache_stats().n_equal_gangs, n_first, "in every cycle");
    n_first
}

#[test]
fn fast__alike_gangs_are_tried_once() {
    // Between jobs, and inside the job.
    let text = gangs(8, "queue=other min=5 priority=9");
    assert_eq!(n_equal_gangs("allocate, preempt", &text), 14);
    let text = gangs(8, "queue=mine min=5");
    assert_eq!(n_equal_gangs("allocate, reclaim", &text), 7);
}

#[test]
fn fast__alike_gangs_are_late_or_not() {
    let tiers = format!("sla{{jobPipelined sla-waiting-time=99h}} {TIERS}");
    let n_equal_gangs = |n_late: usize| {
        let mut text = gangs(8, "queue=other min=5 priority=9");
        for gang in 0..n_late {
            text = text.replace(&format!("job g{gang} "), &format!("job g{gang} sla=1s "));
        }
        let mut world = World::new(&conf("allocate, preempt", &tiers), &text);
        world.cycle();
        world.engine.cache_stats().n_equal_gangs
    };
    assert_eq!(n_equal_gangs(0), 14);
    assert!(n_equal_gangs(3) < 14, "who is late keeps what some members find");
}

#[test]
fn fast__alike_gangs_have_one_shape() {
    let mut text = gangs(2, "queue=other min=5 priority=9");
    text.push_str("\njob min queue=other min=4 priority=9\n task w cpu=1 x5");
    text.push_str("\njob higher queue=other min=5 priority=10\n task w cpu=1 x5");
    text.push_str("\njob more queue=other min=5 priority=9\n task w cpu=1 x6");
    text.push_str("\njob larger queue=other min=5 priority=9\n task w cpu=2 x5");
    text.push_str("\njob roles queue=other min=5 role.w=5 priority=9\n task w cpu=1 x5 role=w");
    assert_eq!(n_equal_gangs("allocate, preempt", &text), 2);
}

#[test]
fn fast__alike_gangs_are_tried_in_another_state() {
    // The first one is served, and what is left is too little for the others.
    let text = "node n1 cpu=8
        job cheap min=0 priority=1 running
          task w cpu=1 x8 @n1 running
        job g0 min=5 priority=9 created=1
          task w cpu=1 x5
        job g1 min=5 priority=9 created=2
          task w cpu=1 x5
        job g2 min=5 priority=9 created=3
          task w cpu=1 x5";
    let mut world = World::new(&conf("allocate, preempt", TIERS), text);
    assert_eq!(world.cycle().only(&["evict"]).lines().count(), 5);
    assert_eq!(
        world.engine.cache_stats().n_equal_gangs,
        2,
        "the third one, between jobs and inside"
    );
}

#[test]
fn fast__alike_gangs_draw_numbers_of_their_own() {
    let config =
        with_arguments(conf("preempt", TIERS), "preempt", "{enableTopologyAwarePreemption: true}");
    let mut world = World::new(&config, &gangs(4, "queue=other min=5 priority=9"));
    world.cycle();
    assert_eq!(world.engine.cache_stats().n_equal_gangs, 0);
}
