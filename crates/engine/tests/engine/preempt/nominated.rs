//! actions.md 6.5: the nominated node, and 2.11: what is nominated.

use super::*;

#[test]
fn preempt__nominated_missing() {
    let text = "node n1 cpu=1
        job low priority=10 min=0
          task v cpu=1 @n1 running
        job high priority=100
          task p cpu=1 nominated=n9";
    let mut world = World::new(&tp(), text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    assert!(cycle.only(&["pod"]).ends_with("nominated=-"), "{}", cycle.all());
    assert_eq!(world.cycle().decisions(), "evict low-v preempt\npipeline high-p n1");
}

#[test]
fn preempt__nominated_fits() {
    let text = "node n1 cpu=1
        node n2 cpu=1
        job low priority=10 min=0
          task v cpu=1 @n2 running
        job high priority=100 min=2
          task a cpu=1 nominated=n1
          task b cpu=1";
    let decided = "evict low-v preempt\npipeline high-a n1\npipeline high-b n2";
    assert_eq!(decide(&tp(), text), decided);
}

const VICTIM_LEAVES: &str = "node n1 cpu=2
    job low priority=10 min=0
      task gone cpu=1 @n1 running deleting evicted
      task v cpu=1 @n1 running
    job high priority=100
      task p cpu=2 priority=100 nominated=n1";

#[test]
fn preempt__nominated_wait() {
    assert_eq!(evicted(&tp(), VICTIM_LEAVES), "");
    // It goes for a reason of its own.
    assert_eq!(evicted(&tp(), &VICTIM_LEAVES.replace(" evicted", "")), "low-v");
}

#[test]
fn preempt__nominated_unresolvable() {
    let text = "node n1 cpu=1 taint=x:NoSchedule
        node n2 cpu=1
        job low priority=10 min=0
          task v cpu=1 @n2 running
        job high priority=100
          task p cpu=1 nominated=n1";
    let config = conf("preempt", &format!("{TP} predicates"));
    assert_eq!(decide(&config, text), "evict low-v preempt\npipeline high-p n2");
}

#[test]
fn preempt__discard_no_nomination() {
    let text = "node n1 cpu=2
        job low priority=10 min=1
          task v cpu=1 x2 @n1 running
        job high priority=100 min=2
          task p cpu=1 x2";
    let cycle = World::new(&tp(), text).cycle();
    assert_eq!(cycle.decisions(), "");
    assert!(!cycle.all().contains("nominated="), "{}", cycle.all());
}

#[test]
fn preempt__nomination_of_a_committed_eviction() {
    let text = "node n1 cpu=1
        job low priority=10 min=0
          task v cpu=1 @n1 running
        job high priority=100
          task p cpu=1";
    let cycle = World::new(&tp(), text).cycle();
    assert!(cycle.only(&["pod"]).ends_with("nominated=n1"), "{}", cycle.all());
}
