//! Over several cycles: claims keep freed quota, nobody thrashes. Specification: cohort.md B.7.

use super::notation::*;
use crate::support::*;

const CLAIM: (&str, &str, &str) =
    ("a 4 re:A; b 4 priority=10", "b1(b +1 4) b2(b 0 4)", "in(a 0 4) b3(b +5 4)");

/// On a node without room beside what runs.
fn full(text: &str) -> String {
    text.replace("cpu=1000", "cpu=8")
}

#[test]
fn t6_claim_keeps_freed_quota() {
    let mut world = World::new(&quota(), &case(CLAIM.0, CLAIM.1, CLAIM.2));
    let cycle = world.cycle();
    assert_eq!(targets(&world, &cycle), "b2 REC");
    world.kubelets();
    world.tick(1);
    assert_eq!(world.cycle().decisions(), "bind in-p n1");
}

#[test]
fn t6_claim_partial() {
    let queues = "a 4 re:A; b 4 priority=10";
    let running = "b0(b +1 4) b1(b 0 2) b2(b 0 2)";
    let text = full(&case(queues, running, "in(a 0 4) b3(b +5 2)"));
    let mut world = World::new(&quota(), &text);
    let cycle = world.cycle();
    assert_eq!(targets(&world, &cycle), "b1 REC, b2 REC");
    // One goes at once, the other one takes its time.
    world.delete_pod("b1-p");
    for _ in 0..3 {
        world.tick(20);
        assert_eq!(world.cycle().only(&["bind", "evict"]), "", "quota is kept, nobody else goes");
    }
    world.delete_pod("b2-p");
    world.tick(1);
    assert_eq!(world.cycle().decisions(), "bind in-p n1");
}

#[test]
fn quota_is_kept_after_a_restart() {
    let mut world = World::new(&quota(), &full(&case(CLAIM.0, CLAIM.1, CLAIM.2)));
    world.cycle();
    world.restart(&quota());
    assert_eq!(world.cycle().only(&["bind", "evict"]), "");
    world.kubelets();
    assert_eq!(world.cycle().only(&["bind"]), "bind in-p n1");
}

#[test]
fn t6_backoff() {
    let queues = "a 4 in:L";
    let mut world = World::new(&quota(), &case(queues, "low(a -2 4)", "mid(a -1 4)"));
    let cycle = world.cycle();
    assert_eq!(targets(&world, &cycle), "low OWN");
    world.kubelets();
    world.cycle();
    world.kubelets();
    // It runs, and goes for somebody more important.
    world.add("job high queue=a priority=5\n  task p cpu=4");
    let cycle = world.cycle();
    assert_eq!(targets(&world, &cycle), "mid OWN");
    let events = cycle.only(&["event"]);
    assert!(events.contains("PodGroup mid Normal PreemptionBackoff"), "{events}");
    world.kubelets_and_controllers();
    world.cycle();
    world.kubelets();
    world.delete_pod("high-p");
    // Less important ones are there first. A reload changes nothing about it.
    world.configure(&quota());
    world.add("job young queue=a priority=-5 running\n  task p cpu=4 @n1 running");
    assert_eq!(world.cycle().only(&["evict"]), "", "it waits");
    world.tick(61);
    assert_eq!(world.cycle().only(&["evict"]), "evict young-p preempt");
}
