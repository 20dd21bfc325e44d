//! Queues that cannot mean what they say: an event names the field, the rest of the queue counts, and
//! everybody else goes on. Specification: cohort.md B.3, B.9.

use super::notation::*;
use crate::support::*;

/// A queue with a fault beside one without: what the first one is told, and who is bound. In each a
/// group of 1 cpu waits.
fn with_bad(bad: &str) -> (String, String) {
    let text = case(&format!("bad {bad}; good 2"), "", "gb(bad 0 1) gg(good 0 1)");
    let cycle = World::new(&quota(), &text).cycle();
    let reported = cycle.only(&["event"]);
    let about_bad = reported.lines().filter(|line| line.starts_with("event Queue bad Warning"));
    let bound = cycle.only(&["bind"]);
    let mut bound: Vec<&str> = bound.lines().collect();
    bound.sort_unstable();
    (about_bad.collect::<Vec<_>>().join("\n"), bound.join("\n"))
}

const BOTH: &str = "bind gb-p n1\nbind gg-p n1";

/// The event is about the field, and who is bound is as expected.
fn check(bad: &str, field: &str, bound: &str) {
    let (reported, found) = with_bad(bad);
    assert!(reported.contains(field), "{bad}: {reported}");
    assert_eq!(found, bound, "{bad}");
}

#[test]
fn bad_input__cycle_in_cohorts() {
    let field = "InvalidCohortQuota \"spec.parent: bad: the parents form a cycle";
    check("2 @bad", field, "bind gg-p n1");
}

#[test]
fn bad_input__parent_that_does_not_exist() {
    check("2 @nowhere", "InvalidCohortQuota \"spec.parent: nowhere: does not exist", BOTH);
}

/// Below zero counts as nothing: the queue borrows.
#[test]
fn bad_input__limits_below_zero() {
    check("-3", "InvalidCohortQuota \"spec.deserved.cpu: -3: is below zero", BOTH);
    check("2 guarantee.cpu=-1", "\"spec.guarantee.resource.cpu: -1: is below zero", BOTH);
    check("2 cap.cpu=-1", "\"spec.capability.cpu: -1: is below zero", BOTH);
}

#[test]
fn bad_input__limits_above_their_meaning() {
    check("1 guarantee.cpu=2", "\"spec.guarantee.resource.cpu: 2: is above deserved", BOTH);
    check("4/1", "\"spec.capability.cpu: 1: is below deserved or guarantee", BOTH);
}

/// A Queue names one parent, so the later object is in force: the queue is in one cohort at a time.
#[test]
fn bad_input__a_queue_in_two_cohorts() {
    let tiers = "priority gang conformance | cohort{* rootCohort=false} predicates nodeorder";
    let config = conf("enqueue, allocate, preempt, reclaim", tiers);
    let mut world = World::new(&config, &case("p 3; q 5; x 0 @p", "", ""));
    world.add("queue x deserved.cpu=0 parent=q\njob big queue=x\n  task p cpu=4");
    assert_eq!(world.cycle().only(&["bind"]), "bind big-p n1", "it borrows of q");
    world.add("queue x deserved.cpu=0 parent=p\njob more queue=x\n  task p cpu=1");
    assert_eq!(world.cycle().only(&["bind"]), "", "what runs counts where the queue is now");
}

/// 0 is a weight: everything that is borrowed is given back first. Below zero is none.
#[test]
fn bad_input__weights_of_zero() {
    let key = "annotation.fairSharing.weight";
    let (reported, bound) = with_bad(&format!("2 {key}=0"));
    assert_eq!((&*reported, &*bound), ("", BOTH));
    let (reported, bound) = with_bad("2 weight=0");
    assert_eq!((&*reported, &*bound), ("", BOTH));
    let field = "InvalidCohortPolicy \"cohort.volcano.sh/fairSharing.weight: -2: is not 0";
    check(&format!("2 {key}=-2"), field, BOTH);
}

#[test]
fn bad_input__annotations_that_are_no_quantities() {
    let key = "annotation.";
    for (name, value) in [
        ("fairSharing.weight", "4Qi"),
        ("fairSharing.weight", "NaN"),
        ("borrowWithinCohort.maxPriorityThreshold", "high"),
        ("withinClusterQueue", "1"),
    ] {
        let field = format!("InvalidCohortPolicy \"cohort.volcano.sh/{name}: {value}: ");
        check(&format!("2 {key}{name}={value}"), &field, BOTH);
    }
}

/// As soon as the object is right, so is the queue.
#[test]
fn bad_input__a_queue_that_is_put_right() {
    let text = case("x 2 @y; y 2 @x; good 2", "old(x 0 1)", "gx(x 0 1) gg(good 0 1)");
    let mut world = World::new(&quota(), &text);
    assert_eq!(world.cycle().only(&["bind", "evict"]), "bind gg-p n1", "what runs goes on");
    world.add("queue y deserved.cpu=2");
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["bind"]), "bind gx-p n1");
    assert!(!cycle.only(&["event"]).contains("InvalidCohort"));
}

/// cohort.md B.2: 0 of cpu that is written down is a quota, whoever else has none.
#[test]
fn a_quota_of_zero_is_one() {
    let bound = |queue: &str| decide(&quota(), &case(&format!("x {queue}"), "", "gx(x 0 1)"));
    assert_eq!(bound("deserved.cpu=0"), "");
    assert_eq!(bound("guarantee.cpu=0"), "");
    assert_eq!(bound("cap.cpu=0"), "bind gx-p n1", "no limit");
    assert_eq!(bound(""), "bind gx-p n1", "nobody says anything of cpu");
}
