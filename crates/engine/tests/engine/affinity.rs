//! Pod affinity, spread and ports through whole cycles. Every world finds nodes with both evaluators
//! and compares them. Specification: plugins-nodes.md, test cases 1, 3, 22, 40.

use crate::support::*;

#[test]
fn nodes_01_a_gang_that_is_given_up_leaves_its_node_to_others() {
    let away = "label.app=w away=host:w";
    let text = format!(
        "node n1 cpu=14 host=n1 kind=worker
         node n2 cpu=3 host=n2
         job pg1 min=2 priority=100
           task w1 cpu=3 selector.kind=worker {away}
           task w2 cpu=5 {away}
         job pg2 min=1
           task w3 cpu=4 {away}"
    );
    let config = conf("allocate", "priority gang | predicates");
    assert_eq!(decide(&config, &text), "bind pg2-w3 n1");
}

/// A node with two slots: a pod that repels and one that does not, of a lower job.
const REPELLED: &str = "node n1 cpu=12 pods=2 host=n1
     job low min=0 priority=10
       task w1 cpu=3 priority=100000 label.role=w @n1 running label.app=w away=host:w
       task w2 cpu=3 priority=10 @n1 running
     job high min=1 priority=100000
       task w3 cpu=3 priority=100000 label.app=w away=host:w";

#[test]
fn nodes_03_a_removal_that_nobody_may_simulate_cures_nothing() {
    let plugins = "predicates{predicate} priority{preemptable jobStarving}";
    let dry_run = |plugins: &str| {
        let config = conf("allocate, preempt", plugins);
        let config = with_arguments(config, "preempt", "{enableTopologyAwarePreemption: true}");
        decide(&config, REPELLED)
    };
    assert_eq!(dry_run(plugins), "");
    let simulating = plugins.replace("{predicate}", "{predicate preemptable}");
    assert_eq!(dry_run(&simulating), "evict low-w1 preempt\npipeline high-w3 n1");
}

#[test]
fn nodes_22_only_the_holder_of_the_port_goes() {
    let text = "node n1 cpu=4
         job low min=0
           task holder cpu=1 port=8080 @n1 running
           task other cpu=1 @n1 running
         job high min=1 priority=100
           task p cpu=1 port=8080";
    for arguments in
        ["{enableTopologyAwarePreemption: true}", "{enableTopologyAwarePreemption: false}"]
    {
        let config = conf("allocate, preempt", "priority gang predicates");
        let config = with_arguments(config, "preempt", arguments);
        let expected = "evict low-holder preempt\npipeline high-p n1";
        assert_eq!(decide(&config, text), expected, "{arguments}");
    }
}

#[test]
fn nodes_40_mutually_exclusive_pods_of_one_cycle_get_different_nodes() {
    let text = "node n1 cpu=4 host=n1
         node n2 cpu=4 host=n2
         job a
           task b cpu=1 label.app=b away=host:a
         job b created=1
           task a x2 cpu=1 label.app=a";
    let config = conf("allocate", "gang | predicates nodeorder");
    assert_eq!(decide(&config, text), "bind a-b n1\nbind b-a-0 n2\nbind b-a-1 n2");
}

#[test]
fn a_gang_spreads_over_zones() {
    let text = "node n1 cpu=4 zone=a
         node n2 cpu=4 zone=b
         job j min=4
           task t x4 cpu=1 label.app=w spread=zone:1:w";
    let config = conf("allocate", "gang | predicates binpack");
    assert_eq!(decide(&config, text), "bind j-t-0 n1\nbind j-t-1 n2\nbind j-t-2 n1\nbind j-t-3 n2");
}

#[test]
fn a_gang_that_cannot_keep_its_pods_apart_waits_with_the_reason() {
    let text = "node n1 cpu=4 zone=a
         node n2 cpu=4 zone=b
         job j min=3
           task t x3 cpu=1 label.app=w away=zone:w";
    let mut world = World::new(&conf("allocate", "gang | predicates nodeorder"), text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    let reason = "0/2 nodes are unavailable: 2 node(s) didn't match pod anti-affinity rules.";
    assert!(cycle.all().contains(reason), "{}", cycle.all());
}

/// A12: the second member fits where it had failed before, once the first one is there.
#[test]
fn allocate__self_affinity() {
    let near = "near=zone:w label.app=w role=w";
    let text = format!(
        "node n1 cpu=4 zone=a
        job j min=2
          task a cpu=1 label.app=w role=w
          task b cpu=1 {near}
          task c cpu=9 {near}
          task d cpu=1 {near}"
    );
    assert_eq!(decide(&ta(), &text), "bind j-a n1\nbind j-b n1\nbind j-d n1");
    // A pod that asks for its own kind is the first one itself.
    let alone = text.replace("task a cpu=1 label.app=w role=w", "");
    assert_eq!(decide(&ta(), &alone), "bind j-b n1\nbind j-d n1");
}
