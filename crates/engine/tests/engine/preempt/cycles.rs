//! actions.md "Across cycles", as far as it needs preempt.

use super::*;

/// A victim that takes its time, and what waits for its room.
const SLOW_VICTIM: &str = "node n1 cpu=2
    node n2 cpu=2
    job low priority=10 min=0
      task a cpu=2 @n1 running
      task b cpu=2 @n2 running
    job high priority=100
      task p cpu=2";

fn whole() -> Config {
    conf(
        "enqueue, allocate, preempt, reclaim, backfill",
        "priority gang conformance | predicates nodeorder",
    )
}

#[test]
fn cycle__no_second_eviction() {
    let mut world = World::new(&whole(), SLOW_VICTIM);
    assert_eq!(world.cycle().decisions(), "evict low-a preempt\npipeline high-p n1");
    for _ in 0..5 {
        world.tick(1);
        assert_eq!(world.cycle().decisions(), "pipeline high-p n1");
        assert_eq!(world.pod("high-p").nominated_node.as_deref(), Some("n1"));
    }
    world.kubelets();
    assert_eq!(world.cycle().decisions(), "bind high-p n1");
}

#[test]
fn cycle__restart_while_a_victim_terminates() {
    let mut world = World::new(&whole(), SLOW_VICTIM);
    world.cycle();
    // More urgent, but the room is not for it.
    world.add("job later priority=100 created=9\n task p cpu=2");
    world.restart(&whole());
    let cycle = world.cycle();
    assert_eq!(victims(&cycle), "low-b", "{}", cycle.all());
    assert!(cycle.decisions().contains("pipeline high-p n1"), "{}", cycle.all());
    assert!(cycle.decisions().contains("pipeline later-p n2"), "{}", cycle.all());
}

#[test]
fn cycle__node_lost_while_a_victim_terminates() {
    let mut world = World::new(&whole(), SLOW_VICTIM);
    world.cycle();
    world.delete_pod("low-a");
    world.delete_node("n1");
    // 6.5 row 3: not in the cycle that finds the node gone.
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    assert!(cycle.only(&["pod"]).ends_with("nominated=-"), "{}", cycle.all());
    assert_eq!(world.cycle().decisions(), "evict low-b preempt\npipeline high-p n2");
    assert_eq!(world.pod("high-p").nominated_node.as_deref(), Some("n2"));
}

#[test]
fn cycle__claim_beyond_the_minimum() {
    // The preemptor is ready all the time; what the room was made for comes first all the same.
    let text = "node n1 cpu=2
        job low priority=1 min=0
          task v cpu=1 @n1 running
        job high priority=100 min=1
          task a cpu=1 @n1 running
          task b cpu=1
        job other priority=1
          task p cpu=1";
    let tiers = "gang{preemptable jobPipelined jobReady jobOrder} \
        priority{taskOrder jobOrder preemptable jobStarving} predicates";
    let mut world = World::new(&conf("allocate, preempt", tiers), text);
    assert_eq!(world.cycle().decisions(), "evict low-v preempt\npipeline high-b n1");
    assert_eq!(world.cycle().decisions(), "pipeline high-b n1");
    world.kubelets_and_controllers();
    assert_eq!(world.cycle().decisions(), "bind high-b n1");
    assert_eq!(victims(&world.cycle()), "");
}

#[test]
fn cycle__dummy_succeeded() {
    let text = "node n1 cpu=3
        job low priority=10 min=2
          task a cpu=1 @n1 running
          task b cpu=1 @n1 running
          task c cpu=1 @n1 succeeded deleting evicted
        job high priority=100 min=1
          task p cpu=2";
    assert_eq!(evicted(&tp(), text), "");
    // One that really is done counts for its gang.
    assert_eq!(evicted(&tp(), &text.replace(" deleting evicted", "")), "low-b");
}

#[test]
fn cycle__no_second_eviction_where_filters_see_the_victim() {
    // The slot of the victim is taken until it is gone, so that the claim cannot be served before.
    let text = "node n1 cpu=9 pods=1
        node n2 cpu=9 pods=1
        queue q1
        queue q2
        job low queue=q1 priority=10 min=0
          task a cpu=1 @n1 running
          task b cpu=1 @n2 running
        job high queue=q1 priority=100
          task p cpu=1";
    for (text, reason) in
        [(text.to_owned(), "preempt"), (text.replace("high queue=q1", "high queue=q2"), "reclaim")]
    {
        let mut world = World::new(&whole(), &text);
        let first = world.cycle().only(&["evict"]);
        assert!(first.ends_with(reason) && first.lines().count() == 1, "{first}");
        for _ in 0..5 {
            world.tick(1);
            assert_eq!(world.cycle().only(&["evict"]), "");
        }
        world.kubelets();
        let bound = world.cycle().decisions();
        assert!(bound.starts_with("bind high-p n"), "{bound}");
    }
}

#[test]
fn cycle__claim_of_a_best_effort_pod() {
    // The slot goes to the pod that it was made for, not to the one that lost it.
    let text = "node n1 cpu=9 pods=1
        job low priority=10 min=0
          task v @n1 running
        job high priority=100
          task p";
    let mut world = World::new(&whole(), text);
    assert_eq!(world.cycle().decisions(), "evict low-v preempt\npipeline high-p n1");
    world.kubelets_and_controllers();
    assert_eq!(world.cycle().decisions(), "bind high-p n1");
}

#[test]
fn cycle__claim_behind_what_filters_still_see() {
    // Filters refuse the preemptor as long as they see the victim: its slot, its port, its term.
    let cases = ["", "port=80", "label.app=web away=zone:web"];
    for words in cases {
        let pods = if words.is_empty() { 1 } else { 9 };
        let text = format!(
            "node n1 cpu=9 pods={pods} zone=a
            job low priority=10 min=0
              task v cpu=1 {words} @n1 running
            job high priority=100
              task p cpu=1 {words}"
        );
        let mut world = World::new(&whole(), &text);
        let first = world.cycle().decisions();
        assert_eq!(first, "evict low-v preempt\npipeline high-p n1", "{words}");
        world.add(&format!("job later priority=100 created=9\n task p cpu=1 {words}"));
        for _ in 0..3 {
            world.tick(1);
            assert_eq!(world.cycle().decisions(), "pipeline high-p n1", "{words}");
        }
        world.kubelets_and_controllers();
        assert_eq!(world.cycle().decisions(), "bind high-p n1", "{words}");
    }
}

/// A budget that comes while an eviction is in progress has not been charged for it: the eviction was
/// sent before. The check of certificates sees it so, too (fuzz-fast 1060099).
#[test]
fn a_budget_is_not_charged_for_evictions_before_it() {
    let text = "node n1 cpu=4
        job low min=0
          task a cpu=2 label.app=covered @n1 running
          task b cpu=2 label.app=covered @n1 running
        job one priority=9\n  task p cpu=2";
    let mut world = World::new(&conf("allocate, preempt", "priority gang pdb predicates"), text);
    assert_eq!(world.cycle_unanswered().only(&["evict"]), "evict low-b preempt");
    world.add("budget late allowed=1 healthy=1 label.app=covered");
    world.add("job two priority=9\n  task p cpu=2");
    assert_eq!(world.cycle_unanswered().only(&["evict"]), "evict low-a preempt");
}
