//! The plugin task-topology in cycles of both evaluators, which `World` compares. Specification:
//! plugins-nodes.md 13, 17.

use vc_engine::EvaluatorPaths;

use crate::support::*;

const JOB: &str = "min=4 annotation.volcano.sh/task-topology-affinity=ps,worker \
    annotation.volcano.sh/task-topology-anti-affinity=ps";

fn world(actions: &str, text: &str) -> World {
    let plugins = "priority gang | predicates nodeorder task-topology{* task-topology.weight=10}";
    World::new(&conf(actions, plugins), text)
}

#[test]
fn nodes_115_each_bucket_gets_a_node() {
    let text = format!(
        "node n1 cpu=4
         node n2 cpu=4
         job j {JOB}
           task p x2 cpu=1 role=ps
           task w x2 cpu=1 role=worker"
    );
    let binds = world("allocate", &text).cycle().only(&["bind"]);
    assert_eq!(binds, "bind j-p-0 n1\nbind j-w-0 n1\nbind j-p-1 n2\nbind j-w-1 n2");
}

/// Jobs without a task topology are served from the cache, also beside one that has buckets.
#[test]
fn nodes_115_only_jobs_with_buckets_are_scored_anew() {
    let text = format!(
        "node n1 cpu=16 pods=30
         node n2 cpu=16 pods=30
         job j {JOB}
           task p x2 cpu=1 role=ps
           task w x2 cpu=1 role=worker
         job k min=4
           task a x4 cpu=1"
    );
    let mut world = world("allocate", &text);
    let binds = world.cycle().only(&["bind"]);
    assert_eq!(binds.lines().count(), 8, "{binds}");
    let EvaluatorPaths { remembered, asked, plain, .. } =
        world.engine.paths().expect("the fast evaluator");
    assert_eq!((remembered, asked, plain), (4, 4, 0));
}

/// The first gang does not fit and is given up. Its second attempt sees the same buckets.
#[test]
fn nodes_116_the_next_attempt_sees_the_same_buckets() {
    let text = format!(
        "node n1 cpu=2
         node n2 cpu=1
         job j {JOB}
           task p x2 cpu=1 role=ps
           task w x2 cpu=1 role=worker"
    );
    let mut world = world("allocate", &text);
    assert_eq!(world.cycle().only(&["bind"]), "");
    world.add("node n2 cpu=4");
    let binds = world.cycle().only(&["bind"]);
    assert_eq!(binds, "bind j-p-0 n2\nbind j-w-0 n2\nbind j-p-1 n1\nbind j-w-1 n1");
}

/// Two gangs of one shape, of which only the topology differs: each is tried by itself.
#[test]
fn nodes_115_a_gang_with_buckets_fails_for_itself_alone() {
    let gang = "task p x2 cpu=1 role=ps\n task q cpu=4 role=worker";
    let text = format!(
        "node n1 cpu=4
         node n2 cpu=2
         job a min=3 annotation.volcano.sh/task-topology-anti-affinity=ps
           {gang}
         job b min=3 annotation.volcano.sh/task-topology-affinity=ps;worker \
           annotation.volcano.sh/task-topology-task-order=worker,ps
           {gang}"
    );
    let cycle = world("allocate", &text).cycle();
    let binds = cycle.only(&["bind"]);
    assert_eq!(binds, "bind b-q n1\nbind b-p-0 n2\nbind b-p-1 n2", "{}", cycle.all());
}
