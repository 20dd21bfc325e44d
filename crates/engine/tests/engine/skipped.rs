//! Why nothing was evicted (actions.md 10.6): every row of the table of causes, the event, the
//! report, and silence while nothing changes.

use vc_conf::Config;

use crate::support::*;

const PREEMPT: &str = "conformance gang{preemptable jobPipelined jobStarving} \
    priority{taskOrder jobOrder preemptable jobPipelined jobStarving} \
    proportion{allocatable queueOrder} predicates";
const RECLAIM: &str = "gang{reclaimable jobStarving jobPipelined} \
    proportion{reclaimable queueOrder overused} predicates";

fn preempt() -> Config {
    conf("preempt", PREEMPT)
}

/// The texts of the events, by PodGroup.
fn reported(cycle: &Cycle) -> Vec<String> {
    let events = cycle.only(&["event"]);
    let skipped = events.lines().filter_map(|line| {
        let (about, text) = line.split_once(" Normal PreemptionSkipped ")?;
        Some(format!("{}: {}", about.trim_start_matches("event PodGroup "), text.trim_matches('"')))
    });
    skipped.collect()
}

fn first_told(config: &Config, text: &str) -> Vec<String> {
    reported(&World::new(config, text).cycle())
}

/// One low job and what waits for its room.
fn one_node(victim: &str, preemptor: &str) -> String {
    format!(
        "node n1 cpu=2
        queue q1 cap.cpu=3
        queue q2
        job low priority=10 {victim}
        job high priority=100 {preemptor}"
    )
}

#[test]
fn record__causes() {
    let two = "min=1\ntask v cpu=1 x2 @n1 running";
    let whole = &two.replace("min=1", "min=2")[..];
    let cases = [
        (two, "min=1\ntask p cpu=1 never", "1 policy Never"),
        (two, "queue=q2\ntask p cpu=1", "1 no pod passed the victim filter"),
        (whole, "\ntask p cpu=1", "1 victims refused by gang"),
        (
            "min=0\ntask v cpu=1 x2 @n1 running class=system-node-critical",
            "\ntask p cpu=1",
            "1 victims refused by conformance",
        ),
        (two, "\ntask p cpu=9", "1 not enough even with all victims: insufficient cpu"),
        (
            two,
            "min=2\ntask p cpu=1 x2",
            "1 job would not reach minAvailable (1/2), 1 victims refused by gang",
        ),
        (two, "topology=hard\ntask p cpu=1", "1 network topology: use gangpreempt"),
        (
            two,
            "\ntask p cpu=1 selector.none=none",
            "1 filters: node(s) didn't match Pod's node affinity/selector",
        ),
    ];
    for (victim, preemptor, cause) in cases {
        let reported = first_told(&preempt(), &one_node(victim, preemptor));
        assert_eq!(reported, [format!("high: preempt: {cause}")], "{preemptor}");
    }
}

/// What idle nodes can hold is left to allocate (A29), and nobody is evicted for the other task: the
/// job has got nothing, and is told why.
#[test]
fn record__causes_of_a_job_that_idle_nodes_could_hold_in_part() {
    let text =
        one_node("min=0\ntask v cpu=1 @n1 running pre=false", "min=1\ntask a cpu=2\ntask b cpu=1");
    assert_eq!(first_told(&preempt(), &text), ["high: preempt: 1 no pod passed the victim filter"]);
}

#[test]
fn record__causes_of_a_full_queue() {
    let text = "node n1 cpu=10
        queue q1 cap.cpu=3
        job low queue=q1 priority=10 min=0
          task e cpu=1 x2 @n1 running
        job high queue=q1 priority=100
          task p cpu=4";
    assert_eq!(first_told(&preempt(), text), ["high: preempt: 1 queue q1 has no room"]);
}

#[test]
fn record__causes_of_a_nominated_pod() {
    let text = "node n1 cpu=2
        job low priority=10 min=0
          task gone cpu=1 @n1 running deleting evicted
          task v cpu=1 @n1 running
        job high priority=100
          task p cpu=2 priority=100 nominated=n1";
    let cause = "high: preempt: 1 waiting for terminating victims on n1";
    assert_eq!(first_told(&preempt(), text), [cause]);
}

#[test]
fn record__causes_of_reclaim() {
    let text = "node n1 cpu=4 pods=4
        queue q1
        queue q2
        job j1 queue=q1 min=0
          task v cpu=1 x2 @n1 running
        job r queue=q2 min=0
          task v cpu=1 x2 @n1 running
        job j2 queue=q2
          task p cpu=1";
    assert_eq!(
        first_told(&conf("reclaim", RECLAIM), text),
        ["j2: reclaim: 1 queue q2 has no room"]
    );
    let protected = text.replace("queue q1", "queue q1 reclaimable=false");
    let off = RECLAIM.replace(" overused", "");
    assert_eq!(
        first_told(&conf("reclaim", &off), &protected),
        ["j2: reclaim: 1 no pod passed the victim filter"]
    );
    assert_eq!(
        first_told(&conf("reclaim", &off), text),
        ["j2: reclaim: 1 victims refused by proportion"]
    );
}

#[test]
fn record__causes_of_both_actions_are_one_event() {
    let text = one_node("queue=q1 min=2\ntask v cpu=1 x2 @n1 running", "queue=q2\ntask p cpu=1");
    let tiers = "gang{preemptable reclaimable jobStarving jobPipelined} predicates";
    let expected = "high: preempt: 1 no pod passed the victim filter; \
        reclaim: 1 victims refused by gang";
    assert_eq!(first_told(&conf("preempt, reclaim", tiers), &text), [expected]);
    // Somebody else makes the room.
    let text = text.replace("min=2", "min=1");
    assert_eq!(first_told(&conf("preempt, reclaim", tiers), &text), [""; 0]);
}

#[test]
fn record__causes_of_a_job_that_is_not_admitted() {
    let text = "node n1 cpu=1
        job high priority=100 pending minres.cpu=9";
    let tiers = "gang | overcommit predicates";
    let reported = first_told(&conf("enqueue, allocate, preempt", tiers), text);
    assert_eq!(reported, ["high: not admitted to the queue: overcommit"]);
    assert_eq!(first_told(&conf("enqueue, allocate", tiers), text), [""; 0]);
}

#[test]
fn record__causes_are_told_once_while_they_stay() {
    let text = one_node("min=2\ntask v cpu=1 x2 @n1 running", "\ntask p cpu=1");
    let mut world = World::new(&preempt(), &text);
    assert_eq!(reported(&world.cycle()).len(), 1);
    for _ in 0..5 {
        world.tick(50);
        assert_eq!(world.cycle().only(&["event"]), "");
    }
    world.tick(51);
    assert_eq!(reported(&world.cycle()).len(), 1);
    world.add("job more priority=100\n task p cpu=9");
    assert_eq!(reported(&world.cycle()), ["more: preempt: 1 victims refused by gang"]);
}

#[test]
fn record__causes_are_in_the_report_with_a_remedy() {
    let text = one_node("min=2\ntask v cpu=1 x2 @n1 running", "\ntask p cpu=1");
    let cycle = World::new(&preempt(), &text).cycle();
    let [skipped] = &cycle.report.skipped[..] else { panic!("{:#?}", cycle.report.skipped) };
    assert_eq!(skipped.pod_group, key("high"));
    assert_eq!(skipped.message, "preempt: 1 victims refused by gang");
    assert!(skipped.remedy.contains("gangpreempt"), "{}", skipped.remedy);
}

#[test]
fn record__causes_without_explain() {
    let text = one_node("min=2\ntask v cpu=1 x2 @n1 running", "\ntask p cpu=1");
    let off = with_arguments(preempt(), "preempt", "{explain: false}");
    let cycle = World::new(&off, &text).cycle();
    assert_eq!((reported(&cycle), cycle.report.skipped), (Vec::new(), Vec::new()));
}

#[test]
fn record__causes_without_gang() {
    // Nobody votes JobPipelined, so an empty statement would pass for enough.
    let text = one_node("min=1\ntask v cpu=1 x2 @n1 running", "\ntask p cpu=1");
    let equal = text.replace("priority=100", "priority=10");
    let preempt = conf("preempt", "priority{preemptable jobStarving} predicates");
    assert_eq!(first_told(&preempt, &equal), ["high: preempt: 1 victims refused by priority"]);
    let reclaim = conf("reclaim", "priority{jobStarving} conformance predicates");
    let same_queue = "high: reclaim: 1 no pod passed the victim filter";
    assert_eq!(first_told(&reclaim, &text), [same_queue]);
    // With the victims there is nothing to tell.
    assert_eq!(first_told(&preempt, &text), [""; 0]);
}

#[test]
fn record__causes_of_a_node_whose_victims_are_held_back_in_part() {
    let text = |need: u32| {
        let budget = "budget b label.app=a allowed=1\n";
        let two = "min=0\ntask v cpu=1 x2 @n1 running label.app=a";
        budget.to_owned() + &one_node(two, &format!("\ntask p cpu={need}"))
    };
    let tiers = format!("{PREEMPT} pdb");
    let too_few = "not enough even with all victims: insufficient cpu";
    for action in ["preempt", "gangpreempt"] {
        let config = conf(action, &tiers);
        let both = format!("high: {action}: 1 {too_few}, 1 victims refused by pdb");
        assert_eq!(first_told(&config, &text(2)), [both]);
        // Without the budget it would be too few as well.
        assert_eq!(first_told(&config, &text(3)), [format!("high: {action}: 1 {too_few}")]);
    }
    let dry =
        with_arguments(conf("preempt", &tiers), "preempt", "{enableTopologyAwarePreemption: true}");
    let both = format!("high: preempt: 1 {too_few}, 1 victims refused by pdb");
    assert_eq!(first_told(&dry, &text(2)), [both]);
    let whole = "min=2\ntask v cpu=1 x2 @n1 running label.app=a";
    let gang = "budget b label.app=a allowed=1\n".to_owned() + &one_node(whole, "\ntask p cpu=1");
    let refused = "high: gangpreempt: 1 victims refused by pdb";
    assert_eq!(first_told(&conf("gangpreempt", &tiers), &gang), [refused]);
}

#[test]
fn record__causes_name_the_filter_that_took_the_last_candidate() {
    let text = "budget b label.app=a allowed=0\n".to_owned()
        + &one_node(
            "min=0\ntask v cpu=1 @n1 running class=system-node-critical
            task w cpu=1 @n1 running label.app=a",
            "\ntask p cpu=1",
        );
    let config = conf("preempt", &format!("{PREEMPT} pdb"));
    assert_eq!(first_told(&config, &text), ["high: preempt: 1 victims refused by pdb"]);
}
