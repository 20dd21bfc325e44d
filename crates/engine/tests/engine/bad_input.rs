//! Input that cannot work, and what is said about it; `args/*` where they concern the engine.

use vc_engine::KNOWN;

use crate::support::*;

fn config() -> vc_conf::Config {
    conf("enqueue, allocate", "priority gang | drf predicates proportion nodeorder")
}

/// What the pod is told in the first cycle.
fn reported(text: &str) -> String {
    World::new(&config(), text).cycle().only(&["pod"])
}

#[test]
fn bad_input__pod_larger_than_any_node() {
    let text = "node n1 cpu=4
        node n2 cpu=8
        job j
          task a cpu=9";
    assert_eq!(
        reported(text),
        "pod j-a Unschedulable \"0/2 nodes are unavailable: 2 Insufficient cpu. It fits on no node \
         even when empty: requests 9 cpu, largest node 8.\""
    );
}

#[test]
fn bad_input__zero_weight() {
    let text = "node n1 cpu=4
        queue q weight=0
        job j queue=q
          task a cpu=1
        job k
          task a cpu=1";
    assert_eq!(
        reported(text),
        "pod j-a Unschedulable \"queue q is overused. Limit of queue q: 0 cpu (deserved), used 0, \
         asked 1.\""
    );
}

#[test]
fn bad_input__five_hundred_resource_names() {
    let mut text = String::from(
        "job j min=2
          task early cpu=1 example.com/d7=1
          task late cpu=1 example.com/d499=1
        job k
          task none cpu=1 example.com/d499=2\n",
    );
    for index in 0..500 {
        text.push_str(&format!("node n{index:03} cpu=4 example.com/d{index}=1\n"));
    }
    let config = conf("allocate", "priority gang | drf predicates nodeorder binpack");
    let cycle = World::new(&config, &text).cycle();
    assert_eq!(cycle.decisions(), "bind j-early n007\nbind j-late n499");
    let reported = "pod k-none Unschedulable \"0/500 nodes are unavailable: 500 Insufficient \
        example.com/d499. It fits on no node even when empty: requests 2 example.com/d499, largest \
        node 1.\"";
    assert_eq!(cycle.only(&["pod"]), reported);
}

#[test]
fn bad_input__ten_thousand_labels() {
    let labels: String = (0..10_000).map(|index| format!(" label{index}=x")).collect();
    let text =
        |label: &str| format!("node n1 cpu=1 {labels}\njob j\ntask a cpu=1 selector.{label}=x");
    assert_eq!(decide(&config(), &text("label9999")), "bind j-a n1");
    assert_eq!(
        reported(&text("label10000")),
        "pod j-a Unschedulable \"0/1 nodes are unavailable: 1 node(s) didn't match Pod's node \
         affinity/selector.\""
    );
}

#[test]
fn bad_input__names_of_253_characters() {
    let (node, job) = ("n".repeat(253), "j".repeat(251));
    let text = format!("node {node} cpu=1\njob {job}\ntask a cpu=1\ntask b cpu=1");
    assert_eq!(decide(&config(), &text), format!("bind {job}-a {node}"));
}

/// The decisions and what is told of preempt and reclaim.
fn evicting(text: &str) -> (String, String) {
    let tiers = "priority gang conformance | drf predicates proportion nodeorder";
    let config = conf("allocate, preempt, reclaim, gangpreempt, gangreclaim, backfill", tiers);
    let cycle = World::new(&config, text).cycle();
    (cycle.decisions(), cycle.only(&["event"]))
}

#[test]
fn bad_input__preemptor_larger_than_any_node() {
    let (decisions, reported) = evicting(
        "node n1 cpu=4
        job low priority=1 min=0
          task v cpu=4 @n1 running
        job high priority=9
          task p cpu=5",
    );
    assert_eq!(decisions, "");
    assert!(reported.contains("not enough even with all victims: insufficient cpu"), "{reported}");
}

#[test]
fn bad_input__priorities_at_the_ends() {
    let text = |low: i32, high: i32| {
        format!(
            "node n1 cpu=1
            job low priority={low} min=0
              task v cpu=1 priority={low} @n1 running
            job high priority={high}
              task p cpu=1 priority={high}"
        )
    };
    let (least, most) = (i32::MIN, i32::MAX);
    let (decisions, _) = evicting(&text(least, most));
    assert_eq!(decisions, "evict low-v preempt\npipeline high-p n1");
    for (low, high) in [(most, least), (most, most), (least, least)] {
        let (decisions, reported) = evicting(&text(low, high));
        assert_eq!(decisions, "");
        assert!(reported.contains("preempt: 1 victims refused by priority"), "{reported}");
    }
    // The sums of the dry run (6.7.4, level 2) do not leave 64 bits either.
    let dry = with_arguments(
        conf("preempt", "priority gang predicates"),
        "preempt",
        "{enableTopologyAwarePreemption: true, minCandidateNodesAbsolute: 10}",
    );
    let ends = "node n1 cpu=2
        node n2 cpu=2
        job a priority=-2147483648 min=0
          task x cpu=1 x2 priority=2147483647 @n1 running
        job b priority=-2147483648 min=0
          task x cpu=1 x2 priority=-2147483648 @n2 running
        job high priority=2147483647
          task p cpu=2 priority=2147483647";
    let decided = "evict b-x-1 preempt\nevict b-x-0 preempt\npipeline high-p n2";
    let mut lines: Vec<String> = decide(&dry, ends).lines().map(str::to_owned).collect();
    lines.sort_unstable();
    let mut expected: Vec<&str> = decided.lines().collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn bad_input__only_best_effort_members() {
    let text = |slots: u32| {
        format!(
            "node n1 cpu=1 pods={slots}
            job low priority=1 min=0
              task v cpu=1 @n1 running
            job high priority=9 min=2
              task p x2"
        )
    };
    // They need nothing but slots, and a pod with a request is no victim for them.
    assert_eq!(evicting(&text(3)).0, "bind high-p-0 n1\nbind high-p-1 n1");
    assert_eq!(evicting(&text(1)).0, "");
}

#[test]
fn bad_input__victims_without_a_pod_group() {
    let (decisions, reported) = evicting(
        "node n1 cpu=1
        job high priority=9
          task p cpu=1
        pod lost cpu=1 @n1 running",
    );
    assert_eq!(decisions, "");
    assert!(reported.contains("preempt: 1 no pod passed the victim filter"), "{reported}");
}

#[test]
fn args__unknown_action() {
    let parse =
        |actions: &str| vc_conf::parse("test.conf", &format!("actions: {actions:?}"), &KNOWN);
    let refused = parse("enqueue, foo").expect_err("foo is no action").to_string();
    assert!(refused.contains("foo"), "{refused}");
    // The engine was given nothing, so what it had is in force.
    let mut world = World::new(&config(), "node n1 cpu=1\njob j\ntask a cpu=1");
    assert_eq!(world.cycle().decisions(), "bind j-a n1");
    assert_eq!(
        parse("Enqueue, ALLOCATE").map(|ok| ok.config.actions),
        Ok(vec!["enqueue".to_owned(), "allocate".to_owned()])
    );
}

#[test]
fn bad_input__names_that_are_in_no_order() {
    // low-b0-0 is before low-b1-1 by index, that before low-a by age, and low-a before low-b0-0.
    let mut text = String::from("node n1 cpu=60 pods=200\njob low min=0\n");
    for number in 0..20 {
        let created = number * 7 % 20;
        text.push_str(&format!("  task a{number} cpu=1 created={created} @n1 running\n"));
        text.push_str(&format!("  task b{number} cpu=1 created={created} x2 @n1 running\n"));
    }
    text.push_str("job high priority=9 min=30\n  task p cpu=1 x30\n");
    let decisions = evicting(&text).0;
    let evictions = decisions.lines().filter(|line| line.starts_with("evict "));
    assert_eq!(evictions.count(), 30, "{decisions}");
}

#[test]
fn a_budget_that_cannot_be_read_is_told_until_it_is_mended() {
    let text = "node n1 cpu=4
        job a min=0 running annotation.volcano.sh/jdb-min-available=most
          task w cpu=1 @n1 running
        job b min=0 running annotation.volcano.sh/jdb-max-unavailable=1.5
          task w cpu=1 @n1 running";
    let mut world = World::new(&conf("allocate", "gang tdm predicates"), text);
    let mut reported = |change: fn(&mut World)| {
        change(&mut world);
        world.add("job nudge min=1");
        let warnings = world.cycle().report.warnings;
        world.delete_group("nudge");
        let name = |text: &String| text.split(':').next().unwrap_or_default().to_owned();
        warnings.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let both = "podgroup default/a, podgroup default/b";
    assert_eq!(reported(|_| {}), both);
    assert_eq!(reported(|_| {}), both);
    assert_eq!(reported(|world| world.add("job a min=0 running")), "podgroup default/b");
    assert_eq!(reported(|world| world.delete_group("b")), "");
}
