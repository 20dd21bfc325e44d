//! Which groups go: whole, with a place for the preemptor, and nobody who is protected.
//! Specification: cohort.md B.4-B.6.

use super::notation::*;
use crate::support::*;

const TWO_NODES: &str = "node n1 cpu=4 at=one\nnode n2 cpu=2 at=two\n";

#[test]
fn t6_gang_whole_group() {
    assert_eq!(go("a 4 in:L", "v(a -1 1 x3 min=2) w(a 0 1)", "(a +1 1)"), "v OWN");
    let text = case("a 4 in:L", "v(a -1 1 x3 min=2) w(a 0 1)", "(a +1 1)");
    let cycle = World::new(&quota(), &text).cycle();
    let expected =
        "evict v-p-0 preempt\nevict v-p-1 preempt\nevict v-p-2 preempt\npipeline in-p n1";
    assert_eq!(cycle.decisions(), expected);
    let certificate = &cycle.report.certificates[0];
    assert_eq!(certificate.minimal, Some(vc_engine::Unit::Group));
    let rule = certificate.victims[0].rule.as_ref().map(ToString::to_string);
    assert_eq!(rule.as_deref(), Some("cohort: InClusterQueue; not protected by conformance"));
}

#[test]
fn t6_placement_picks_victim() {
    let groups = objects_of("a 4 in:L", "low(a -1 2) mid(a 0 2 @n2)", "(a +1 2 selector.at=two)");
    assert_eq!(decided(&quota(), &format!("{TWO_NODES}{groups}")), "mid OWN");
}

#[test]
fn t6_unplaceable_no_eviction() {
    let running = "low(a -1 4) bw(b -5 2 @n2)";
    let groups = objects_of("a 4 in:L re:A; b 2", running, "(a +1 2 selector.at=two)");
    let mut world = World::new(&quota(), &format!("{TWO_NODES}{groups}"));
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    let samples = format!("{:?}", cycle.report.samples);
    assert!(samples.contains("QuotaRefused { queue: \"a\", cause: \"unplaceable\""), "{samples}");
    let skipped = &cycle.report.skipped[0].message;
    assert!(skipped.contains("quota would do, but no placement: "), "{skipped}");
}

#[test]
fn t6_nodes_short_quota_free() {
    let groups = objects_of("a 8 in:L", "low(a -1 4)", "(a +1 4)");
    assert_eq!(decided(&quota(), &format!("node n1 cpu=4\n{groups}")), "low OWN");
}

#[test]
fn t6_nodes_short_other_queue() {
    let groups = objects_of("a 8 re:A; b 4", "bw(b -1 4)", "(a +1 4)");
    assert_eq!(decided(&quota(), &format!("node n1 cpu=4\n{groups}")), "");
}

#[test]
fn t6_protected_pod() {
    let groups = |low: &str| format!("low(sa -1 2 {low}) mid(sa 0 2) high(sa +1 2)");
    let with = |low: &str| go("sa 6 in:L", &groups(low), "(sa +1 2)");
    assert_eq!(with(""), "low OWN");
    assert_eq!(with("class=system-cluster-critical"), "mid OWN");
    assert_eq!(with("pre=false"), "mid OWN");
}

#[test]
fn t6_protected_queue() {
    let queues = "c1 6/12 in:L re:L; c2 6/12 re:A";
    let running = "c1-low(c1 -1 3) c2-mid(c2 0 3) c2-high(c2 +1 6)";
    assert_eq!(go(queues, running, "(c1 +1 3)"), "c2-mid REC");
    let closed = format!("{queues} reclaimable=false");
    assert_eq!(go(&closed, running, "(c1 +1 3)"), "c1-low OWN");
}

#[test]
fn t6_pdb_cumulative() {
    let tiers = "priority gang conformance pdb | cohort predicates nodeorder";
    let config = conf("enqueue, allocate, preempt, reclaim", tiers);
    let running = "v1(a -1 2 label.app=x) v2(a -1 2 label.app=x)";
    let text = |allowed: u32| {
        let budget = format!("budget b label.app=x allowed={allowed}\n");
        budget + &case("a 4 in:L", running, "(a 0 4)")
    };
    assert_eq!(decided(&config, &text(2)), "v1 OWN, v2 OWN");
    assert_eq!(decided(&config, &text(1)), "");
}

#[test]
fn t6_in_flight() {
    // b is bound in this cycle, before the room is looked for.
    let queues = "a 4 in:L; b 4";
    let running = "x(a -2 2)";
    let text = case(queues, running, "young(a -1 2 made=0) in(a 0 4 made=5)");
    let cycle = World::new(&quota(), &text).cycle();
    assert_eq!(cycle.only(&["evict"]), "", "{}", cycle.decisions());
}

#[test]
fn t6_never_pod() {
    assert_eq!(go("a 4 in:L", "low(a -1 4)", "(a +1 4)"), "low OWN");
    assert_eq!(go("a 4 in:L", "low(a -1 4)", "(a +1 4 never)"), "");
}

#[test]
fn t6_policy_argument() {
    let tiers = "priority gang conformance | cohort{* withinClusterQueue=LowerPriority} predicates";
    let config = conf("enqueue, allocate, preempt, reclaim", tiers);
    let with = |policy: &str| {
        let queues = format!("sa 6 {policy}");
        case(&queues, "low(sa -1 2) mid(sa 0 2) high(sa +1 2)", "(sa +1 2)")
    };
    assert_eq!(decided(&config, &with("")), "low OWN");
    assert_eq!(decided(&config, &with("in:Never")), "");
    let cycle = World::new(&config, &with("in:lower")).cycle();
    assert_eq!(cycle.only(&["evict"]), "");
    let events = cycle.only(&["event"]);
    let expected = "event Queue sa Warning InvalidCohortPolicy \
        \"cohort.volcano.sh/withinClusterQueue: lower: is not one of";
    assert!(events.contains(expected), "{events}");
}

#[test]
fn t6_determinism() {
    let queues = "c1 6/12 in:L re:L; c2 6/12 re:A";
    let running = "b2(c2 0 3) b1(c2 0 3) b3(c2 0 3) low(c1 -1 3)";
    let text = case(queues, running, "(c1 +1 3)");
    let first = decided(&quota(), &text);
    let mut all = objects("queue default");
    all.extend(objects(&text));
    all.reverse();
    let mut world = World::of(&quota(), all);
    let cycle = world.cycle();
    assert_eq!(targets(&world, &cycle), first);
    assert_eq!(first, "b1 REC");
}
