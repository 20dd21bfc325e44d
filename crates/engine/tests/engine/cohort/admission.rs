//! Enqueue and allocate under quota: who is admitted, who is served first, what is kept.
//! Specification: cohort.md B.5.1-B.5.3, T.5.

use super::notation::*;
use crate::support::*;

/// The phase of the incoming group after one cycle, and what it is told.
fn admitted(queues: &str, running: &str, minres: &str) -> (String, String) {
    let text = case(queues, running, "(a 0 1 pending)");
    let text = match minres {
        "" => text,
        minres => text.replace(" pending", &format!(" pending minres.cpu={minres}")),
    };
    let mut world = World::new(&quota(), &text);
    let cycle = world.cycle();
    let (events, binds) = (cycle.only(&["event"]), cycle.only(&["bind"]));
    let phase = world.group("in").status.phase.as_str();
    let phase = if binds.is_empty() { phase } else { "bound" };
    let reported = events.lines().find(|line| line.contains("insufficient")).unwrap_or_default();
    (phase.to_owned(), reported.split('"').nth(1).unwrap_or_default().to_owned())
}

#[test]
fn t6_enqueue_fit_preempt_nofit() {
    let queues = "a 4 in:L; b 0";
    let phase = |running: &str, minres: &str| admitted(queues, running, minres).0;
    assert_eq!(phase("", "4"), "bound", "it fits");
    assert_eq!(phase("low(a -1 4)", "4"), "Inqueue");
    let reported =
        "insufficient unused quota for cpu in queue a: 4 more needed. Limit of cohort root: \
        4 cpu (nominal quota of all its queues), used 4, asked 4."
            .to_owned();
    assert_eq!(admitted(queues, "same(a 0 4)", "4"), ("Pending".to_owned(), reported));
    let reported =
        "insufficient quota for cpu in queue a: request 5 > maximum capacity 4. Limit of \
        cohort root: 4 cpu (nominal quota of all its queues), used 0, asked 5."
            .to_owned();
    assert_eq!(admitted(queues, "", "5"), ("Pending".to_owned(), reported));
    assert_eq!(phase("same(a 0 4)", ""), "Inqueue");
}

/// Whoever may not go makes no room here either (B.4).
#[test]
fn enqueue_asks_who_is_protected() {
    let queues = "a 4 in:L; b 0";
    let admitted = |low: &str| admitted(queues, &format!("low(a -1 4 {low})"), "4");
    assert_eq!(admitted("").0, "Inqueue");
    let reported =
        "insufficient unused quota for cpu in queue a: 4 more needed. Limit of cohort root: \
        4 cpu (nominal quota of all its queues), used 4, asked 4."
            .to_owned();
    let refused = ("Pending".to_owned(), reported);
    assert_eq!(admitted("class=system-cluster-critical"), refused);
    assert_eq!(admitted("pre=false"), refused);
}

#[test]
fn enqueue_counts_what_was_admitted_before() {
    let incoming = "one(a 0 3 pending made=1) two(a 0 3 pending made=2)";
    let text = case("a 4", "", incoming).replace(" pending", " pending minres.cpu=3");
    let mut world = World::new(&quota(), &text);
    assert_eq!(world.cycle().decisions(), "bind one-p n1");
    assert_eq!(world.group("two").status.phase.as_str(), "Pending");
}

/// Amounts of the own queue, and of the cohort where the queue itself has room.
#[test]
fn a_pod_without_quota_is_told_the_limit_with_its_amounts() {
    let says = |queues: &str, running: &str, incoming: &str| {
        let cycle = World::new(&quota(), &case(queues, running, incoming)).cycle();
        let mut waiting = cycle.report.waiting.iter();
        let found = waiting.find(|task| task.message.contains("has no room"));
        let message = found.map_or_else(|| cycle.all(), |task| task.message.clone());
        message.split(" Nothing evicted").next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        says("a 4/6; b 4", "r(a 0 4)", "g(a 0 3)"),
        "queue a has no room: insufficient cpu. Limit of queue a: 6 cpu (spec.capability: nominal \
         quota and borrowing limit), used 4, asked 3."
    );
    assert_eq!(
        says("a 4; b 4 guarantee.cpu=2", "r(a 0 4) s(b 0 3)", "g(a 0 3)"),
        "queue a has no room: insufficient cpu. Limit of cohort root: 6 cpu (nominal quota that its \
         queues lend), used 5, asked 3."
    );
    assert!(
        says("a 4", "", "g(a 0 1 x5 min=5)").contains("used 0, asked 5 for 5 members."),
        "members that were placed and given up count"
    );
}

#[test]
fn t6_elastic() {
    let cycle = World::new(&quota(), &case("a 4", "", "g(a 0 1 x5 min=2)")).cycle();
    assert_eq!(cycle.only(&["bind"]).lines().count(), 4, "{}", cycle.decisions());
    let waits = cycle.report.waiting.iter().filter(|task| task.message.contains("has no room"));
    assert_eq!(waits.count(), 1);
}

#[test]
fn t5_reserve_lower_and_any() {
    let incoming = "ga(a 0 2 made=1) gb(b 0 1 made=2)";
    let pending = incoming.replace(')', " pending)");
    let decided = |policy: &str, actions: &str, incoming: &str| {
        let text = case(&format!("a 2 re:{policy}; b 0"), "r(a 0 1)", incoming);
        let text = text.replace("created=1 pending", "created=1 pending minres.cpu=2");
        let text = text.replace("created=2 pending", "created=2 pending minres.cpu=1");
        let mut world = World::new(&conf(actions, TIERS), &text);
        let cycles = [(); 3].map(|()| {
            let decisions = world.cycle().decisions();
            world.deliver();
            decisions
        });
        cycles.join("")
    };
    for actions in ["enqueue, allocate", "enqueue, allocate, preempt, reclaim"] {
        for incoming in [incoming, &pending] {
            let decided = |policy: &str| decided(policy, actions, incoming);
            assert_eq!(decided("L"), "", "the head of a reserves what is free: {actions}");
            assert_eq!(decided("A"), "bind gb-p n1", "{actions}: {incoming}");
        }
    }
}

#[test]
fn t5_reserve_targets() {
    let incoming = "ga(a 0 2 made=1 pending) gb(b 0 1 made=2)";
    let text = case("a 2 re:A; b 0", "old(b 0 1)", incoming);
    let text = text.replace(" pending", " pending minres.cpu=2");
    // The younger borrower would be bound, and evicted in the next cycle.
    assert_eq!(decide(&quota(), &text), "evict old-p preempt\npipeline ga-p n1");
}

/// What others may use of their own is not kept from them, however much the head asks for.
#[test]
fn t5_reserve_own_idle() {
    let incoming = "ga(a 0 3 made=1 pending) gc(c 0 1 made=2) gd(c 0 1 made=3)";
    let text = case("a 3 re:L; c 4; b 0", "ra(a 0 2) rb(b 0 3)", incoming);
    let text = text.replace(" pending", " pending minres.cpu=3");
    assert_eq!(decide(&quota(), &text), "bind gc-p n1");
}

/// Groups behind the head may use what is kept for it; with fifo they wait.
#[test]
fn a_reservation_does_not_concern_its_own_queue() {
    let incoming = "ga(a 0 2 made=1 pending) small(a 0 1 made=2)";
    let text = case("a 2 re:L; b 0", "r(a 0 1)", incoming);
    let text = text.replace(" pending", " pending minres.cpu=2");
    assert_eq!(decide(&quota(), &text), "bind small-p n1");
}

/// A.3 (c): a group larger than the quota of its queue may evict there if it may borrow.
#[test]
fn a_policy_for_borrowing_counts_without_one_for_reclaiming() {
    let goes = |policy: &str| {
        let queues = format!("a 2 in:L borrowWithinCohort.policy:{policy}; c 2");
        go(&queues, "low(a -1 3)", "(a 0 3)")
    };
    assert_eq!(goes("LowerPriority"), "low OWN");
    assert_eq!(goes("Never"), "");
}

#[test]
fn t5_two_reclaimers() {
    let text = case("a 3 re:A; c 1 re:A; b 0", "big(b 0 4)", "ga(a 0 3) gc(c 0 1)");
    let decisions = decide(&quota(), &text);
    let expected = "evict big-p preempt\npipeline ga-p n1\npipeline gc-p n1";
    assert_eq!(decisions, expected);
}

#[test]
fn t5_borrow_level() {
    let queues = "p 4; g 0 @p; e 0";
    let text = case(queues, "", "gg(g 0 4) ge(e 3 4)");
    assert_eq!(decide(&quota(), &text), "bind gg-p n1");
}

#[test]
fn t5_capability_is_a_plain_ceiling() {
    let queues = "x cap.cpu=4; y";
    let text = case(queues, "", "gx(x 0 4) hx(x 0 1) gy(y 0 50)").replace("deserved.cpu=y", "");
    let decisions = decide(&quota(), &text);
    assert_eq!(decisions, "bind gx-p n1\nbind gy-p n1");
}

#[test]
fn a_closed_queue_serves_nobody_and_lends() {
    let queues = "x 4 state=Closed; y 0";
    let text = case(queues, "", "gx(x 0 1) gy(y 0 4)");
    assert_eq!(decide(&quota(), &text), "bind gy-p n1");
}

#[test]
fn a_fifo_queue_admits_nobody_before_its_head() {
    let incoming = "big(a +1 6 pending made=1) small(a 0 1 pending made=2)";
    let text = case("a 4", "", incoming).replace(" pending", " pending minres.cpu=1");
    let text = text.replacen("minres.cpu=1", "minres.cpu=6", 1);
    assert_eq!(decide(&quota(), &text), "bind small-p n1");
    assert_eq!(decide(&quota(), &text.replace("queue a", "queue a fifo")), "");
}
