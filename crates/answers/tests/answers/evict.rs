//! Why nobody was evicted. Specification: answers.md 20, case 46.

use vc_engine::{CycleTime, Effect};
use vc_model::fixture::START_MICROS;

use crate::examples::two_ways_out;
use crate::support::{Asked, conf};

/// A gang at its minimum, and a job that could only get its room.
const AT_MINIMUM: &str = "node n1 cpu=4
    job low min=2 priority=1 running\n task a cpu=2 @n1 running x2
    job high priority=9\n task a cpu=2";

#[test]
fn ans_46_causes_are_those_of_the_event() {
    let config = conf("enqueue, allocate, preempt", "priority gang | predicates");
    let mut it = Asked::new(&config, AT_MINIMUM);
    let evict = it.why("high").evict.unwrap();
    assert_eq!(
        evict.text,
        "nobody: preempt: 1 victims refused by gang; reclaim is not among the actions"
    );
    assert_eq!(evict.compared, ["gang: 1 candidate job is at its minimum"]);
    assert_eq!(evict.not_configured, ["gangpreempt", "reclaim", "gangreclaim"]);
    let cause = &evict.actions[0].causes[0];
    assert_eq!((evict.actions[0].action, cause.count, cause.plugin), ("preempt", 1, Some("gang")));
    assert!(evict.remedy.unwrap().contains("lower their minMember"));
    // A new engine writes the event again.
    let now = CycleTime { unix_micros: START_MICROS + 6_000_000_000 };
    let (effects, _report) = it.engine.copy().cycle(Vec::new(), now);
    let skipped = effects.iter().find_map(|effect| match effect {
        Effect::Event { reason: "PreemptionSkipped", message, .. } => Some(message.clone()),
        _ => None,
    });
    let text = format!("nobody: {}; reclaim is not among the actions", skipped.unwrap());
    assert_eq!(evict.text, text);
    it.cycle(Vec::new());
    assert_eq!(it.why("high").evict.unwrap(), evict, "an idle cycle repeats what it knows");
}

#[test]
fn ans_46_priorities_are_compared() {
    let text = "node n1 cpu=4
        job low min=1 priority=9 running\n task a cpu=2 @n1 running x2
        job high priority=3\n task a cpu=2";
    let it = Asked::new(&conf("allocate, preempt", "priority gang | predicates"), text);
    let evict = it.why("high").evict.unwrap();
    let compared = "priority: the job has 3, the lowest candidate 9";
    assert!(evict.compared.iter().any(|text| text == compared), "{evict:?}");
}

#[test]
fn ans_43_actions_that_are_not_configured_are_named() {
    let evict = two_ways_out().why("ml/train").evict.unwrap();
    assert_eq!(evict.text, "nobody: neither preempt nor reclaim is among the actions");
    assert_eq!(evict.not_configured, ["preempt", "gangpreempt", "reclaim", "gangreclaim"]);
    assert_eq!((evict.actions.len(), evict.remedy), (0, None));
}

#[test]
fn ans_43_a_closed_queue_is_not_about_evictions() {
    let text = "node n1 cpu=1\nqueue q state=Closed\njob j queue=q\n task a cpu=2";
    let it = Asked::new(&conf("allocate, preempt", "gang predicates"), text);
    assert_eq!(it.why("j").evict, None);
}
