//! Which action may take from whom, and what is written about it. Specification: cohort.md B.5.4,
//! B.8, B.9.

use std::sync::Arc;

use vc_engine::{EngineOptions, ExtenderClient};
use vc_framework::{ExtenderAnswer, ExtenderError, ExtenderRequest};

use super::notation::*;
use crate::support::*;

const RECLAIM: (&str, &str) =
    ("c1 6/12 in:L re:L; c2 6/12 re:A", "c1-low(c1 -1 3) c2-mid(c2 0 3) c2-high(c2 +1 6)");

#[test]
fn t6_only_preempt_and_only_reclaim() {
    // One victim is needed on each side.
    let text = case("a 4 in:L re:A; b 2", "low(a -1 3) bw(b 0 3)", "(a +1 4)");
    let with = |actions: &str| decided(&conf(actions, TIERS), &text);
    assert_eq!(with("enqueue, allocate, preempt, reclaim"), "bw REC, low OWN");
    assert_eq!(with("enqueue, allocate, preempt"), "");
    assert_eq!(with("enqueue, allocate, reclaim"), "");
    assert_eq!(with("enqueue, allocate, gangreclaim, gangpreempt"), "bw REC, low OWN");
}

#[test]
fn t6_own_only() {
    let text =
        case("c1 6/12 in:L; c2 6/12", "c1-low(c1 -1 4) c1-x(c1 0 4) c2-y(c2 0 4)", "(c1 +1 4)");
    assert_eq!(decided(&conf("enqueue, allocate, preempt", TIERS), &text), "c1-low OWN");
}

/// A service that calls every queue overused.
#[derive(Debug)]
struct AllOverused;

impl ExtenderClient for AllOverused {
    fn exchange(&self, _request: &ExtenderRequest<'_>) -> Result<ExtenderAnswer, ExtenderError> {
        Ok(ExtenderAnswer { is_true: true, ..ExtenderAnswer::default() })
    }
}

/// Allocate places nothing for a queue that is overused even with the victims gone, so nobody is
/// evicted for it.
#[test]
fn nobody_goes_for_a_queue_that_stays_overused() {
    let text = case("a 4 in:L", "low(a -1 4)", "(a +1 4)");
    let with = |verbs: &str| {
        let tiers = format!("{TIERS} extender{{* extender.urlPrefix=http://e {verbs}}}");
        let extender: Arc<dyn ExtenderClient> = Arc::new(AllOverused);
        let options = EngineOptions { extender: Some(extender), ..EngineOptions::default() };
        let mut all = objects("queue default");
        all.extend(objects(&text));
        let mut world = World::with(options, &conf("allocate, preempt", &tiers), all);
        let cycle = world.cycle();
        targets(&world, &cycle)
    };
    assert_eq!(with(""), "low OWN");
    assert_eq!(with("extender.queueOverusedVerb=o"), "");
}

#[test]
fn the_pass_runs_once_and_counts_for_the_first_action() {
    let text = case(RECLAIM.0, RECLAIM.1, "(c1 +1 3)");
    for (actions, name) in [
        ("allocate, reclaim, preempt", "Reclaim"),
        ("allocate, gangpreempt, reclaim", "GangPreempt"),
    ] {
        let cycle = World::new(&conf(actions, TIERS), &text).cycle();
        let samples = format!("{:?}", cycle.report.samples);
        let counted = format!("EvictionTransaction({name})");
        assert_eq!(samples.matches("EvictionTransaction").count(), 1, "{actions}");
        assert!(samples.contains(&counted), "{actions}: {samples}");
        assert_eq!(cycle.report.certificates.len(), 1);
    }
}

#[test]
fn t6_conditions() {
    let mut world = World::new(&quota(), &case(RECLAIM.0, RECLAIM.1, "(c1 +1 3)"));
    let cycle = world.cycle();
    let message = "Preempted to accommodate a workload (UID: pg-default-in, JobUID: UNKNOWN) due to \
        reclamation within the cohort; preemptor path: /root/c1; preemptee path: /root/c2";
    let conditions = |world: &World| {
        let status = &world.group("c2-mid").status;
        let ours =
            status.conditions.iter().filter(|it| matches!(&*it.kind, "Evicted" | "Preempted"));
        let text = |it: &vc_model::PodGroupCondition| {
            format!("{}={} {}: {}", it.kind, it.status, it.reason, it.message)
        };
        ours.map(text).collect::<Vec<_>>()
    };
    let standing = [
        format!("Evicted=True Preempted: {message}"),
        format!("Preempted=True InCohortReclamation: {message}"),
    ];
    assert_eq!(conditions(&world), standing);
    let events = cycle.only(&["event"]);
    for expected in [
        format!(
            "PodGroup c2-mid Normal Preempted \"{message}; preemptor priority: 1; preemptee priority: 0\""
        ),
        "PodGroup in Normal PreemptedWorkload \"Preempted workload default/c2-mid (UID: \
            pg-default-c2-mid) in queue c2; preemptor priority: 1; preemptee priority: 0\""
            .to_owned(),
    ] {
        assert!(events.contains(&expected), "{expected} in\n{events}");
    }
    assert!(cycle.all().contains("nominated=n1"), "{}", cycle.all());
    world.kubelets_and_controllers();
    world.cycle();
    world.kubelets();
    // c1-low ends, which leaves quota for c2-mid.
    world.delete_pod("c2-high-p");
    world.cycle();
    world.kubelets();
    world.cycle();
    let resolved = [
        format!("Evicted=False QuotaReserved: Previously: {message}"),
        format!("Preempted=False QuotaReserved: Previously: {message}"),
    ];
    assert_eq!(conditions(&world), resolved);
}

#[test]
fn t6_metrics() {
    let mut world = World::new(&quota(), &case(RECLAIM.0, RECLAIM.1, "(c1 +1 3)"));
    let samples = format!("{:?}", world.cycle().report.samples);
    let preempted = "QuotaPreempted { preempting: \"c1\", preempted: \"c2\", \
        reason: \"InCohortReclamation\" }";
    assert_eq!(samples.matches(preempted).count(), 1, "{samples}");
    let overused = |world: &mut World| {
        let report = world.cycle().report;
        report.samples.iter().find_map(|sample| match sample {
            vc_engine::Sample::Queue(gauges) if &*gauges.queue == "c2" => gauges.overused,
            _ => None,
        })
    };
    let mut before = World::new(&quota(), &case(RECLAIM.0, RECLAIM.1, ""));
    assert_eq!(overused(&mut before), Some(true));
    world.kubelets();
    assert_eq!(overused(&mut world), None, "it was told when the victim went");
}

#[test]
fn t6_parent_cycle() {
    let queues = "x 2 @y; y 2 @x; z 2";
    let text = case(queues, "", "gx(x 0 1) gz(z 0 1)");
    assert_eq!(decide(&quota(), &text), "bind gz-p n1");
}

#[test]
fn t6_missing_parent() {
    let text = case("x 2 @nope; y 8", "", "g1(x 0 2) g2(x 0 1 made=9)");
    let cycle = World::new(&quota(), &text).cycle();
    assert_eq!(cycle.decisions(), "bind g1-p n1");
    let events = cycle.only(&["event"]);
    assert!(events.contains("event Queue x Warning InvalidCohortQuota"), "{events}");
}

#[test]
fn a_fifo_queue_waits_for_its_head() {
    let incoming = "big(a +1 6 made=1) small(a 0 1 made=2)";
    let traverse = case("a 4", "", incoming);
    assert_eq!(decide(&quota(), &traverse), "bind small-p n1");
    assert_eq!(decide(&quota(), &traverse.replace("queue a", "queue a fifo")), "");
}
