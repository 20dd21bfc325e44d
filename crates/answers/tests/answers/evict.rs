//! Why nobody was evicted. Specification: answers.md 20, case 46.

use vc_answers::EvictionAnswer;
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
    assert_eq!(cause.counted_in.as_str(), "nodes");
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

/// Returns why nobody was evicted for the job `high`.
fn refused(actions: &str, tiers: &str, text: &str) -> EvictionAnswer {
    *Asked::new(&conf(actions, tiers), text).why("high").evict.unwrap()
}

/// Returns a node of four cpu that pods of the job `low` fill, and the job `high`, which could only
/// get their room.
fn full_node(tasks: &str, asked_cpu: u32) -> String {
    format!(
        "node n1 cpu=4\njob low min=1 priority=1 running\n{tasks}
         job high priority=9\n task a cpu={asked_cpu}"
    )
}

#[test]
fn ans_43_budgets_are_named_with_the_pods_that_they_hold_back() {
    let tiers = "priority gang pdb | predicates";
    let web = "task a cpu=2 @n1 running x2 label.app=web";
    let none = "budget web app=web allowed=0\n".to_owned() + &full_node(web, 2);
    let evict = refused("allocate, preempt", tiers, &none);
    assert_eq!(evict.compared, ["pdb: 2 pods of budget default/web may not go"], "{evict:?}");
    // One of the two pods may go, and both are needed.
    let one = "budget web app=web allowed=1\n".to_owned() + &full_node(web, 4);
    let evict = refused("allocate, preempt", tiers, &one);
    assert_eq!(evict.compared, ["pdb: 1 pod of budget default/web may not go"], "{evict:?}");
}

#[test]
fn ans_43_three_budgets_are_named_and_others_counted() {
    let pod = |at: usize| format!("task t{at} cpu=500m @n1 running label.app=a{at}\n");
    let two = "task two cpu=500m @n1 running x2 label.app=a4\n";
    let tasks = (0..6).map(pod).collect::<String>() + two;
    let budgets = (0..6).map(|at| format!("budget b{at} app=a{at} allowed=0\n"));
    let text = budgets.collect::<String>() + &full_node(&tasks, 2);
    let evict = refused("allocate, preempt", "priority gang pdb | predicates", &text);
    let [first, others] = ["3 pods of budget default/b4", "pods of 3 more budgets"];
    let named = "1 pod of budget default/b0, 1 pod of budget default/b1";
    let expected = format!("pdb: {first}, {named}, {others} may not go");
    assert_eq!(evict.compared, [expected], "{evict:?}");
}

#[test]
fn ans_43_the_budget_that_allows_least_holds_a_pod_back() {
    let budgets = "budget a app=web allowed=2\nbudget b app=web allowed=0\n";
    let text = budgets.to_owned() + &full_node("task a cpu=2 @n1 running x2 label.app=web", 2);
    let evict = refused("allocate, preempt", "priority gang pdb | predicates", &text);
    assert_eq!(evict.compared, ["pdb: 2 pods of budget default/b may not go"], "{evict:?}");
}

#[test]
fn ans_43_pods_in_their_cooldown_are_counted() {
    let cooling = |time: &str| format!("scheduled=5000 annotation.volcano.sh/cooldown-time={time}");
    let tiers = "priority gang cdp | predicates";
    let alike = format!("task a cpu=2 @n1 running x2 {}", cooling("10m"));
    let evict = refused("allocate, preempt", tiers, &full_node(&alike, 2));
    let expected = "cdp: 2 candidate pods are younger than their cooldown of 10m";
    assert_eq!(evict.compared, [expected], "{evict:?}");
    let tasks = format!(
        "task a cpu=2 @n1 running {}\ntask b cpu=2 @n1 running {}",
        cooling("450s"),
        cooling("2h")
    );
    let evict = refused("allocate, preempt", tiers, &full_node(&tasks, 2));
    let expected = "cdp: 2 candidate pods are younger than their cooldown of up to 2h";
    assert_eq!(evict.compared, [expected], "{evict:?}");
    let alone = format!("task a cpu=4 @n1 running {}", cooling("450s"));
    let evict = refused("allocate, preempt", tiers, &full_node(&alone, 2));
    let expected = "cdp: 1 candidate pod is younger than its cooldown of 450s";
    assert_eq!(evict.compared, [expected], "{evict:?}");
}

#[test]
fn ans_43_shares_of_jobs_are_compared() {
    let text = full_node("task a cpu=2 @n1 running x2", 3);
    let evict = refused("allocate, preempt", "drf gang | predicates", &text);
    let expected = "drf: its share would be 0.75, the highest candidate would have 0.50";
    assert_eq!(evict.compared, [expected], "{evict:?}");
}

#[test]
fn ans_43_shares_that_are_close_have_more_digits() {
    let text = "node n1 cpu=4
        job low min=1 priority=1 running\n task a cpu=2 @n1 running x2
        job high priority=9\n task a cpu=2004m";
    let evict = refused("allocate, preempt", "drf gang | predicates", text);
    let expected = "drf: its share would be 0.501, the highest candidate would have 0.500";
    assert_eq!(evict.compared, [expected], "{evict:?}");
}

/// Two queues that hold what they deserve, and a third one whose job fits on neither node.
const WITHIN_SHARES: &str = "node n1 cpu=2\nnode n2 cpu=2
    queue root reclaimable=false\nqueue a deserved.cpu=1\nqueue b deserved.cpu=1
    queue c deserved.cpu=2
    job one queue=a min=1 running\n task a cpu=1 @n1 running
    job two queue=b min=1 running\n task a cpu=1 @n2 running
    job high queue=c\n task a cpu=2";

#[test]
fn ans_43_queues_within_their_quota_are_counted() {
    let within = WITHIN_SHARES.replace("queue root reclaimable=false\n", "");
    let evict = refused("allocate, reclaim", "capacity gang | predicates", &within);
    let expected = "capacity: 2 queues of candidates hold no more than they deserve";
    assert_eq!(evict.compared, [expected], "{evict:?}");
    // A queue that is not reclaimable has no candidates.
    let one = within.replace("queue b", "queue b reclaimable=false");
    let evict = refused("allocate, reclaim", "capacity gang | predicates", &one);
    let expected = "capacity: 1 queue of candidates holds no more than it deserves";
    assert_eq!(evict.compared, [expected], "{evict:?}");
}

#[test]
fn ans_43_queues_within_their_division_are_counted() {
    let within = WITHIN_SHARES.replace("queue root reclaimable=false\n", "");
    let evict = refused("allocate, reclaim", "proportion gang | predicates", &within);
    let expected = "proportion: 2 queues of candidates hold no more than they deserve";
    assert_eq!(evict.compared, [expected], "{evict:?}");
}

/// The refusal of `cohort` says itself what it compared.
#[test]
fn ans_43_a_refusal_for_quota_is_not_repeated() {
    let tiers = "priority gang | cohort{reclaimWithinCohort=Any} predicates";
    let evict = refused("allocate, reclaim", tiers, WITHIN_SHARES);
    let cause = &evict.actions[0].causes[0].text;
    assert!(cause.starts_with("no queue is over its quota in cpu"), "{evict:?}");
    assert!(evict.compared.is_empty(), "{evict:?}");
}

#[test]
fn ans_43_a_plugin_that_does_not_admit_compares_no_candidates() {
    let text = "node n1 cpu=4
        queue a cap.cpu=2\nqueue b
        job one queue=b min=1 running\n task a cpu=2 @n1 running
        job high queue=a pending minres.cpu=3\n task a cpu=3";
    let evict = refused("enqueue, allocate, reclaim", "gang capacity | predicates", text);
    assert_eq!(evict.compared, [""; 0], "{evict:?}");
}
