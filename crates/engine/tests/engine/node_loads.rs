//! The plugin usage in cycles of both evaluators, which `World` compares. Specification:
//! plugins-nodes.md 12.

use vc_engine::{CycleTime, EvaluatorPaths};
use vc_model::{ClusterEvent, NodeLoad};

use crate::support::*;

const NODES: &str = "node n1 cpu=10 memory=10Gi
    node n2 cpu=10 memory=10Gi
    ";

fn world(actions: &str, text: &str) -> World {
    World::new(&conf(actions, "priority gang | predicates usage"), &format!("{NODES}{text}"))
}

/// Monitoring says this of the nodes: percent of cpu, and of memory.
fn say(world: &mut World, loads: &[(&str, f64, f64)]) {
    let now = world.now_micros();
    let load = |&(name, cpu, memory): &(&str, f64, f64)| {
        (name.into(), NodeLoad::new(cpu, memory, now, 30_000_000).expect("percentages"))
    };
    world.send(ClusterEvent::NodeLoadsRead(loads.iter().map(load).collect()));
}

/// The first pod raises the load of its node, so that the second one goes to the other.
#[test]
fn nodes_110_equal_pods_spread_in_one_cycle() {
    let mut world = world("allocate", "job j min=2\n task a cpu=1 x4");
    say(&mut world, &[("n1", 10.0, 10.0), ("n2", 12.0, 10.0)]);
    let expected = "bind j-a-0 n1\nbind j-a-1 n2\nbind j-a-2 n1\nbind j-a-3 n2";
    assert_eq!(world.cycle().only(&["bind"]), expected);
    let EvaluatorPaths { plain, .. } = world.engine.paths().expect("the fast evaluator");
    assert_eq!(plain, 0, "nothing is left to the plain evaluator");
}

/// An attempt of a gang that does not fit leaves no trace in the load.
#[test]
fn nodes_110_a_gang_that_is_given_up_leaves_no_load() {
    let gang = "job big min=3 priority=9\n task a cpu=8 x3
        job small\n task b cpu=1";
    let mut world = world("allocate", gang);
    say(&mut world, &[("n1", 10.0, 10.0), ("n2", 15.0, 10.0)]);
    assert_eq!(world.cycle().only(&["bind"]), "bind small-b n1");
}

/// A full node becomes usable when monitoring says so, and when its load is too old.
#[test]
fn nodes_109_a_full_node_is_usable_again() {
    let mut world = world("allocate, preempt", "job j min=1\n task a cpu=1");
    say(&mut world, &[("n1", 81.0, 0.0), ("n2", 0.0, 99.0)]);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    let message = cycle.report.waiting[0].message.to_string();
    for text in ["the CPU load of the node exceeds", "the memory load of the node exceeds"] {
        assert!(message.contains(text), "{message}");
    }
    world.cycle();
    // The fast evaluator skips quiet cycles until the loads are too old.
    world.tick(300);
    assert_eq!(world.cycle().decisions(), "");
    world.tick(1);
    assert_eq!(world.cycle().decisions(), "bind j-a n1");
    world.add("job k min=1\n task a cpu=1");
    say(&mut world, &[("n1", 81.0, 0.0), ("n2", 0.0, 99.0)]);
    assert_eq!(world.cycle().decisions(), "");
    say(&mut world, &[("n2", 0.0, 80.0)]);
    assert_eq!(world.cycle().decisions(), "bind k-a n2");
}

/// Eviction frees nothing of a load that was measured: nobody is evicted on a full node.
#[test]
fn nodes_109_nobody_is_evicted_for_a_pod_on_a_loaded_node() {
    let text =
        "job low min=0 priority=1 running\n task a cpu=10 @n1 running\n task b cpu=10 @n2 running
        job high min=1 priority=9\n task c cpu=10";
    let mut world = world("allocate, preempt", text);
    say(&mut world, &[("n1", 90.0, 0.0), ("n2", 90.0, 0.0)]);
    assert_eq!(world.cycle().decisions(), "");
    say(&mut world, &[("n2", 10.0, 0.0)]);
    assert_eq!(world.cycle().only(&["evict"]), "evict low-b preempt");
}

/// The same loads again, and loads of nodes that nobody knows, change nothing.
#[test]
fn loads_without_news_start_no_work() {
    let mut world = world("allocate", "job j min=1\n task a cpu=99");
    say(&mut world, &[("n1", 10.0, 10.0)]);
    world.cycle();
    let before = world.engine.cluster().version();
    let now = CycleTime { unix_micros: world.now_micros() };
    say(&mut world, &[("n1", 10.0, 10.0), ("n9", 10.0, 10.0)]);
    let events = world.inbox();
    world.engine.cycle(events, now);
    assert_eq!(world.engine.cluster().version(), before);
}
