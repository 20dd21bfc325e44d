//! What the plugin cohort tells about queues: events on those that do not mean what they seem to,
//! the weighted share as an annotation (cohort.md B.3, B.8, B.9).

use vc_framework::{About, Effect, Session};
use vc_model::fixture;

use crate::support::Cycles;

const NODE: &str = "node n cpu=64 memory=64Gi\n";

fn effects(session: &mut Session<'_>) -> Vec<Effect> {
    session.close_plugins();
    std::mem::take(&mut session.outcome.out.effects)
}

/// Events on queues.
fn events(effects: Vec<Effect>) -> Vec<String> {
    let event = |effect| match effect {
        Effect::Event { about: About::Queue { name, .. }, warning: true, reason, message } => {
            Some(format!("{name} {reason} {message}"))
        }
        _ => None,
    };
    effects.into_iter().filter_map(event).collect()
}

/// Those of a first session on these queues.
fn reported(plugin: &str, queues: &str) -> Vec<String> {
    let mut cycles = Cycles::new(&format!("{NODE}{queues}"), plugin);
    events(cycles.session(0, effects))
}

#[test]
fn t6_annotations_that_cannot_be_read_are_named() {
    let cases = [
        (
            "annotation.cohort.volcano.sh/withinClusterQueue=lower",
            "withinClusterQueue: lower: is not one of Never, LowerPriority, \
             LowerOrNewerEqualPriority",
        ),
        (
            "annotation.cohort.volcano.sh/reclaimWithinCohort=any",
            "reclaimWithinCohort: any: is not one of Never, LowerPriority, Any",
        ),
        (
            "annotation.cohort.volcano.sh/borrowWithinCohort.policy=Any",
            "borrowWithinCohort.policy: Any: is not one of Never, LowerPriority",
        ),
        (
            "annotation.cohort.volcano.sh/borrowWithinCohort.maxPriorityThreshold=3000000000",
            "borrowWithinCohort.maxPriorityThreshold: 3000000000: is not a 32 bit integer",
        ),
        (
            "annotation.cohort.volcano.sh/fairSharing.weight=-1",
            "fairSharing.weight: -1: is not 0 and not a number above 1e-9",
        ),
        (
            "annotation.cohort.volcano.sh/fairSharing.weight=1Gi",
            "fairSharing.weight: 1Gi: is not 0 and not a number above 1e-9",
        ),
    ];
    for (queue, expected) in cases {
        let text = format!("queue bad deserved.cpu=2 {queue}\nqueue good deserved.cpu=2");
        let expected = format!("bad InvalidCohortPolicy cohort.volcano.sh/{expected}");
        assert_eq!(reported("cohort", &text), [expected], "{queue}");
    }
    assert_eq!(
        reported("cohort", "queue q annotation.cohort.volcano.sh/fairSharing.weight=0"),
        [""; 0]
    );
    // A.3 (c): it has an effect, though reclaimWithinCohort is Never.
    let borrows = "queue q annotation.cohort.volcano.sh/borrowWithinCohort.policy=LowerPriority";
    assert_eq!(reported("cohort", borrows), [""; 0]);
}

#[test]
fn t6_amounts_and_parents_that_contradict_are_named() {
    let cases = [
        ("queue x deserved.cpu=-1", "x spec.deserved.cpu: -1: is below zero: counts as 0"),
        (
            "queue x deserved.cpu=2 guarantee.cpu=3",
            "x spec.guarantee.resource.cpu: 3: is above deserved: counts as deserved, too",
        ),
        (
            "queue x deserved.cpu=4 cap.cpu=3",
            "x spec.capability.cpu: 3: is below deserved or guarantee: no more can be used",
        ),
        (
            "queue x deserved.cpu=2 parent=nope",
            "x spec.parent: nope: does not exist: there is nobody to borrow from",
        ),
        (
            "queue x deserved.cpu=2 deserved.deviceclass/gpu=4",
            "x spec.deserved.deviceclass/gpu: quotas of device classes do not count",
        ),
    ];
    for (queue, expected) in cases {
        let expected = expected.replacen(' ', " InvalidCohortQuota ", 1);
        assert_eq!(reported("cohort", &format!("{queue}\nqueue y deserved.cpu=1")), [expected]);
    }
    let cycle = "queue x parent=y\nqueue y parent=x\nqueue z parent=y\nqueue fine";
    let what = "the parents form a cycle: nothing is admitted to the queue";
    let line = |name: &str, parent: &str| {
        format!("{name} InvalidCohortQuota spec.parent: {parent}: {what}")
    };
    assert_eq!(reported("cohort", cycle), [line("x", "y"), line("y", "x"), line("z", "y")]);
}

#[test]
fn t6_what_is_wrong_with_a_queue_is_reported_once() {
    let key = "annotation.cohort.volcano.sh/withinClusterQueue";
    let mut cycles = Cycles::new(&format!("{NODE}queue q {key}=lower"), "cohort");
    let mut next = |change: &str| {
        fixture::apply(&mut cycles.cluster, change);
        events(cycles.session(0, effects)).len()
    };
    assert_eq!(next(""), 1);
    assert_eq!(next(""), 0);
    assert_eq!(next(&format!("queue q {key}=lowest")), 1, "another value");
    assert_eq!(next(&format!("queue q {key}=Never")), 0);
    assert_eq!(next(&format!("queue q {key}=lowest")), 1, "wrong again");
}

const SHARE: &str = "cohort.volcano.sh/weightedShare";

/// `a` borrows 2 of the 8 cpu that its cohort could lend.
fn borrower(weight: &str) -> String {
    format!("queue a weight={weight} annotation.{SHARE}=250")
}

#[test]
fn t6_the_weighted_share_is_written_once_in_a_period() {
    let text = format!(
        "{NODE} queue pool deserved.cpu=8\n queue a weight=1\n job j queue=a\n task t cpu=2 @n running"
    );
    let written = |effects: Vec<Effect>| -> Vec<String> {
        let annotation = |effect| match effect {
            Effect::QueueAnnotation { queue, key: SHARE, value } => {
                Some(format!("{queue} {value}"))
            }
            _ => None,
        };
        effects.into_iter().filter_map(annotation).collect()
    };
    let fair = "cohort fairSharing.enable=true";
    let mut cycles = Cycles::new(&text, fair);
    let mut next = |seconds, change: &str| {
        fixture::apply(&mut cycles.cluster, change);
        written(cycles.session(seconds, effects))
    };
    assert_eq!(next(0, ""), ["a 250"]);
    assert_eq!(next(29, ""), [""; 0], "not seen yet, and too early");
    assert_eq!(next(30, ""), ["a 250"], "not seen still");
    assert_eq!(next(90, &borrower("1")), [""; 0], "the queue says so");
    assert_eq!(next(91, &borrower("2")), ["a 125"]);
    assert_eq!(next(92, &borrower("4")), [""; 0]);
    assert_eq!(next(121, ""), ["a 63"]);
    assert_eq!(next(200, &borrower("0")), [format!("a {}", i64::MAX)]);
    for other in ["cohort", "cohort fairSharing.enable=true weightedSharePeriod=0s"] {
        assert_eq!(written(Cycles::new(&text, other).session(0, effects)), [""; 0], "{other}");
    }
}
