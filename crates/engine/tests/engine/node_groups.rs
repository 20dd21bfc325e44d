//! The plugin nodegroup in cycles of both evaluators, which `World` compares. Specification:
//! plugins-nodes.md 11, 17.

use vc_engine::EvaluatorPaths;

use crate::support::*;

const NODES: &str = "node n0 cpu=8 group=g0
    node n1 cpu=8 group=g1
    node n2 cpu=8 group=g2
    ";

fn world(actions: &str, plugins: &str, text: &str) -> World {
    let plugins = format!("priority gang | predicates {plugins}");
    World::new(&conf(actions, &plugins), &format!("{NODES}{text}"))
}

/// Pods of one shape in two queues: each queue has its own nodes, and nothing is left to the plain
/// evaluator.
#[test]
fn nodes_100_results_about_nodes_are_kept_by_queue() {
    let text = "queue q0 groups.required=g0
        queue q1 groups.required=g1 groups.preferred=g2
        job j0 queue=q0
          task a cpu=1 x2
        job j1 queue=q1
          task a cpu=1 x2";
    let mut world = world("allocate", "nodegroup nodeorder", text);
    let expected = "bind j0-a-0 n0\nbind j0-a-1 n0\nbind j1-a-0 n1\nbind j1-a-1 n1";
    assert_eq!(world.cycle().only(&["bind"]), expected);
    let EvaluatorPaths { filled, plain, .. } = world.engine.paths().expect("the fast evaluator");
    assert_eq!((filled, plain), (2, 0), "once for each queue");
    // Another affinity counts at the next cycle.
    world.add("queue q0 groups.required=g2\n job j2 queue=q0\n  task a cpu=1");
    assert_eq!(world.cycle().only(&["bind"]), "bind j2-a n2");
    // So does another label.
    world.add("node n2 cpu=8 group=g1\n node n1 cpu=8 group=g2\n job j3 queue=q0\n  task a cpu=1");
    assert_eq!(world.cycle().only(&["bind"]), "bind j3-a n1");
}

/// The limit holds over several nodes of the group, and counts what is placed in the same cycle.
#[test]
fn nodes_105_a_limit_holds_over_the_nodes_of_a_group() {
    let text = "node n3 cpu=8 group=g0
        queue q groups.required=g0 limit.g0.cpu=3
        job j queue=q min=0
          task a cpu=1 x5";
    let mut world = world("allocate", "nodegroup", text);
    let binds = world.cycle().only(&["bind"]);
    assert_eq!(binds.lines().count(), 3, "{binds}");
    assert_eq!(world.cycle().only(&["bind"]), "");
    world.add("queue q groups.required=g0 limit.g0.cpu=4");
    let binds = world.cycle().only(&["bind"]);
    assert_eq!(binds.lines().count(), 1, "{binds}");
}

/// The limit is reached on nodes with room. The gang of high priority gets what it needs, and no
/// more goes.
#[test]
fn nodes_105_a_gang_preempts_at_the_limit() {
    let text = "queue q groups.required=g0 limit.g0.cpu=4
        job low queue=q min=0 priority=1 running
          task a cpu=1 x4 @n0 running
        job high queue=q min=2 priority=9
          task b cpu=1 x2";
    let mut world = world("allocate, preempt", "nodegroup", text);
    let evictions = world.cycle().only(&["evict"]);
    assert_eq!(evictions.lines().count(), 2, "{evictions}");
    world.kubelets();
    let cycle = world.cycle();
    let all = "bind high-b-0 n0\nbind high-b-1 n0";
    assert_eq!(cycle.only(&["bind", "evict"]), all);
}
