//! The plugin numa-aware in cycles of both evaluators, which `World` compares. Specification:
//! plugins-nodes.md 14, 17.

use vc_engine::EvaluatorPaths;
use vc_model::{ClusterEvent, CpuSet, NumaTopology, fixture};

use crate::support::*;

fn world(text: &str) -> World {
    World::new(&conf("allocate, preempt", "priority gang | predicates nodeorder numa-aware"), text)
}

/// Sends the Numatopologies of the text.
fn send_numa(world: &mut World, text: &str) {
    fixture::events_of(text).into_iter().for_each(|event| world.send(event));
}

const NUMA: &str = "numa n1 policy=single-numa-node cpus=8 nodes=2";

#[test]
fn nodes_119_pods_go_where_the_kubelet_admits_them() {
    let mut world = world(
        "node n1 cpu=8
         node n2 cpu=8
         job j min=0
           task a x5 cpu=3 guaranteed",
    );
    send_numa(&mut world, NUMA);
    send_numa(&mut world, "numa n2 policy=single-numa-node cpus=8 nodes=2 free=0-5");
    let binds = world.cycle().only(&["bind"]);
    assert_eq!(binds.lines().filter(|line| line.ends_with("n1")).count(), 2, "{binds}");
    assert_eq!(binds.lines().filter(|line| line.ends_with("n2")).count(), 1, "{binds}");
    let EvaluatorPaths { plain, .. } = world.engine.paths().expect("the fast evaluator");
    assert_eq!(plain, 0, "results are kept until the node changes");
    // The kubelets report what they chose. Nothing is free that was not before.
    world.kubelets();
    send_numa(
        &mut world,
        "numa n1 policy=single-numa-node cpus=8 nodes=2 free=3,7 \
        pod.default/j-a-0=0-2 pod.default/j-a-1=4-6 pod.default/j-a-2=4-6",
    );
    assert_eq!(world.cycle().only(&["bind"]), "");
}

#[test]
fn nodes_120_who_waits_reads_why() {
    let mut world = world(
        "node n1 cpu=8
         job j
           task a cpu=5 guaranteed annotation.volcano.sh/numa-topology-policy=single-numa-node",
    );
    send_numa(&mut world, NUMA);
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["bind"]), "");
    assert!(cycle.all().contains("1 container main cannot be assigned by numa"), "{}", cycle.all());
}

#[test]
fn nodes_123_the_cpus_of_a_failed_bind_are_free_again() {
    let mut world = world(
        "node n1 cpu=8
         job j min=0
           task a x2 cpu=4 guaranteed",
    );
    send_numa(&mut world, "numa n1 policy=single-numa-node cpus=8 nodes=2 free=0-3");
    let binds = world.cycle_refusing(1).only(&["bind"]);
    assert_eq!(binds, "bind j-a-0 n1");
    let binds = world.cycle().only(&["bind"]);
    assert_eq!(binds, "bind j-a-0 n1", "there are no other CPUs");
}

/// An object that changes, goes or was there before its node is followed.
#[test]
fn nodes_120_numa_objects_are_followed() {
    let mut world = world(
        "node n0 cpu=1
         job j min=0
           task a x2 cpu=4 guaranteed annotation.volcano.sh/numa-topology-policy=single-numa-node",
    );
    send_numa(&mut world, NUMA);
    assert_eq!(world.cycle().only(&["bind"]), "");
    world.add("node n1 cpu=8");
    assert_eq!(world.cycle().only(&["bind"]), "bind j-a-0 n1\nbind j-a-1 n1");
    world.send(ClusterEvent::NumaTopologyDeleted { name: "n1".into() });
    world.add(
        "job k min=0
           task a cpu=1 guaranteed annotation.volcano.sh/numa-topology-policy=restricted
         node n1 cpu=16",
    );
    let cycle = world.cycle();
    assert!(cycle.all().contains("numa info is empty"), "{}", cycle.all());
    let unknown = NumaTopology { name: "nobody".into(), ..NumaTopology::default() };
    let unknown = NumaTopology { free: Some(CpuSet::new()), ..unknown };
    world.send(ClusterEvent::NumaTopologyApplied(Box::new(unknown)));
    assert_eq!(world.cycle().only(&["bind"]), "", "of a node that nobody has");
}
