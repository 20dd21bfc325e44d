//! Input that cannot work, and what is said about it; `args/*` where they concern the engine.

use vc_engine::KNOWN;

use crate::support::*;

fn config() -> vc_conf::Config {
    conf("enqueue, allocate", "priority gang | drf predicates proportion nodeorder")
}

/// What the pod is told in the first cycle.
fn told(text: &str) -> String {
    World::new(&config(), text).cycle().only(&["pod"])
}

#[test]
fn bad_input__pod_larger_than_any_node() {
    let text = "node n1 cpu=4
        node n2 cpu=8
        job j
          task a cpu=9";
    assert_eq!(
        told(text),
        "pod j-a Unschedulable \"0/2 nodes are unavailable: 2 Insufficient cpu.\""
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
    assert_eq!(told(text), "pod j-a Unschedulable \"queue q is overused\"");
}

#[test]
fn bad_input__ten_thousand_labels() {
    let labels: String = (0..10_000).map(|index| format!(" label{index}=x")).collect();
    let text =
        |label: &str| format!("node n1 cpu=1 {labels}\njob j\ntask a cpu=1 selector.{label}=x");
    assert_eq!(decide(&config(), &text("label9999")), "bind j-a n1");
    assert_eq!(
        told(&text("label10000")),
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
