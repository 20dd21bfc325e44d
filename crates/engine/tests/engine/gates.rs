//! Scheduling gates for queue admission (core.md 7.8, actions.md 4.6).

use vc_model::{ClusterEvent, QUEUE_GATE, Settings};

use crate::support::*;

fn world(queue_gate_admission: bool, text: &str) -> World {
    let options = Settings { queue_gate_admission, ..Settings::default() };
    let config = conf("enqueue, allocate, backfill", "gang predicates proportion");
    let mut all = objects("queue default");
    all.extend(objects(text));
    let mut world = World::with(options, &config, all);
    for name in ["j-a", "j-both"] {
        world.edit(name, |pod| {
            pod.annotations.insert(QUEUE_GATE.into(), "true".into());
        });
    }
    world
}

fn text(queue: &str) -> String {
    format!(
        "node n1 cpu=4
         queue q {queue}
         job j queue=q min=1
           task a cpu=1 gate={QUEUE_GATE}
           task both cpu=1 gate={QUEUE_GATE} gate=other
           task unmanaged cpu=1 gate={QUEUE_GATE}"
    )
}

#[test]
fn core_90_allocate__queue_gate() {
    let mut world = world(true, &text(""));
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["ungate", "bind", "pod"]), "ungate j-a");
    let hint = format!("hint: annotate it with {QUEUE_GATE}: \"true\"");
    let warning =
        format!("pod default/j-unmanaged: gate is not ours to lift: {QUEUE_GATE}\n{hint}");
    assert_eq!(cycle.report.warnings, [warning]);
    assert_eq!(world.cycle().only(&["ungate", "bind", "pod"]), "bind j-a n1");
    assert_eq!(world.cycle().only(&["ungate", "bind", "pod"]), "");
}

#[test]
fn core_90_without_the_feature_gates_stay() {
    let cycle = world(false, &text("")).cycle();
    assert_eq!(cycle.only(&["ungate", "bind", "pod"]), "");
    assert!(cycle.report.warnings.is_empty(), "{:?}", cycle.report.warnings);
}

#[test]
fn core_90_allocate__queue_gate_of_a_full_queue() {
    let mut world = world(true, &text("cap.cpu=1"));
    world.add(
        "job r queue=q running
           task a cpu=1 @n1 running",
    );
    assert_eq!(world.cycle().only(&["ungate"]), "");
    world.delete_pod("r-a");
    assert_eq!(world.cycle().only(&["ungate"]), "ungate j-a");
}

#[test]
fn a22_a_removal_is_asked_for_once_until_the_pod_changes_or_it_fails() {
    let mut world = world(true, &text(""));
    let mut ungated = |event: Option<ClusterEvent>| {
        event.into_iter().for_each(|event| world.send(event));
        world.cycle_unanswered().only(&["ungate"])
    };
    assert_eq!(ungated(None), "ungate j-a");
    assert_eq!(ungated(None), "");
    let uid = "uid-default-j-a".into();
    assert_eq!(ungated(Some(ClusterEvent::PodStatusFailed { uid })), "ungate j-a");
    assert_eq!(ungated(None), "");
}

/// The second pod is held back by what is kept for the first, also while that finds no node.
#[test]
fn jobs_77_capacity_keeps_the_quota_of_a_lifted_gate() {
    let text = format!(
        "node n1 cpu=4
         queue q cap.cpu=1
         job j queue=q min=0
           task a cpu=1 gate={QUEUE_GATE}
           task b cpu=1 gate={QUEUE_GATE}"
    );
    let options = Settings { queue_gate_admission: true, ..Settings::default() };
    let config = conf("enqueue, allocate, backfill", "gang predicates capacity");
    let mut all = objects("queue default");
    all.extend(objects(&text));
    let mut world = World::with(options, &config, all);
    for name in ["j-a", "j-b"] {
        world.edit(name, |pod| {
            pod.annotations.insert(QUEUE_GATE.into(), "true".into());
            pod.node_selector.get_or_insert_default().insert("disk".into(), "ssd".into());
        });
    }
    assert_eq!(world.cycle().only(&["ungate", "bind"]), "ungate j-a");
    world.add("job k queue=q\n  task c cpu=1");
    assert_eq!(world.cycle().only(&["ungate", "bind"]), "");
    world.edit("j-a", |pod| pod.node_selector = None);
    assert_eq!(world.cycle().only(&["ungate", "bind"]), "bind j-a n1");
    world.delete_pod("j-a");
    assert_eq!(world.cycle().only(&["ungate", "bind"]), "bind k-c n1");
}

/// A gate is handled once, however many HyperNodes are tried.
#[test]
fn a_gate_is_handled_before_hyper_nodes_are_tried() {
    let text = format!(
        "queue default\nnode n1 cpu=8\nnode n2 cpu=8\njob j min=0 topology=hard
           task a cpu=1 gate={QUEUE_GATE}\n task unmanaged cpu=1 gate={QUEUE_GATE}\n task w cpu=1 x2"
    );
    let options = Settings { queue_gate_admission: true, ..Settings::default() };
    let config = conf("allocate", "gang predicates proportion network-topology-aware");
    let mut world = World::with(options, &config, objects(&text));
    world.edit("j-a", |pod| {
        pod.annotations.insert(QUEUE_GATE.into(), "true".into());
    });
    let racks = "hypernode rack-a node=n1\nhypernode rack-b node=n2";
    vc_model::fixture::events_of(racks).into_iter().for_each(|event| world.send(event));
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["ungate", "bind"]), "ungate j-a\nbind j-w-0 n1\nbind j-w-1 n1");
    assert_eq!(cycle.report.warnings.len(), 1, "{:?}", cycle.report.warnings);
}
