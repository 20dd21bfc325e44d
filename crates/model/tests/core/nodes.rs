//! Nodes, their amounts and which of them are in the snapshot: core.md 3.8, 4.3.

use vc_model::{
    Cluster, ClusterEvent, Node, NodeRecord, ObjectKey, OtherScheduler, PodPhase, PodRecord,
    Settings,
};
use vc_resource::{Dim, Resource};

use super::support::{
    apply, apply_node, apply_pod, id, labels, node, pod, requesting, row, running,
};

const GB: i64 = 1_000_000_000;

fn at<'c>(cluster: &'c Cluster, name: &str) -> &'c Node {
    &cluster.nodes[cluster.node(name).expect("the node has a row")]
}

/// Cpu in millicores, memory in bytes, pods.
fn amounts(of: &Resource) -> (i64, i64, i64) {
    (of.get(Dim::CPU), of.get(Dim::MEMORY), of.get(Dim::PODS))
}

fn delete_node(cluster: &mut Cluster, name: &str) {
    apply(cluster, ClusterEvent::NodeDeleted { name: name.into() });
}

fn delete_pod(cluster: &mut Cluster, name: &str) {
    let key = ObjectKey::new("ns", name);
    apply(cluster, ClusterEvent::PodDeleted { key, uid: name.into() });
}

fn three_running(cluster: &mut Cluster) {
    for name in ["a", "b", "c"] {
        apply_pod(cluster, running(requesting(pod(name), "cpu=3 memory=3G"), "n"));
    }
}

#[test]
fn core_51_an_overcommitted_node_stays_and_recovers() {
    let mut cluster = Cluster::new(Settings::default());
    apply_node(&mut cluster, node("n", "cpu=10 memory=10G pods=15"));
    three_running(&mut cluster);
    apply_node(&mut cluster, node("n", "cpu=8 memory=8G pods=10"));
    assert_eq!(amounts(&at(&cluster, "n").idle), (-1_000, -GB, 7));
    assert_eq!(cluster.nodes_by_name().len(), 1);
    apply_node(&mut cluster, node("n", "cpu=10 memory=10G pods=15"));
    assert_eq!(amounts(&at(&cluster, "n").idle), (1_000, GB, 12));
}

#[test]
fn core_51_a_dimension_that_is_not_requested_does_not_matter() {
    // C-15: a resource that a task does not request disqualifies no node.
    let mut cluster = Cluster::new(Settings::default());
    apply_node(&mut cluster, node("n", "cpu=8 memory=100G pods=15"));
    three_running(&mut cluster);
    apply_pod(&mut cluster, requesting(pod("memory"), "memory=1G"));
    apply_pod(&mut cluster, requesting(pod("cpu"), "cpu=1m"));
    let fits = |name| cluster.request(id(&cluster, name)).fits(&at(&cluster, "n").idle);
    assert!(fits("memory"));
    assert!(!fits("cpu"));
}

#[test]
fn core_52_pods_may_be_seen_before_their_node() {
    let mut cluster = Cluster::new(Settings::default());
    three_running(&mut cluster);
    assert_eq!(cluster.nodes_by_name(), []);
    assert!(!at(&cluster, "n").present);
    apply_node(&mut cluster, node("n", "cpu=10 memory=10G pods=15"));
    assert_eq!(cluster.nodes_by_name().len(), 1);
    assert_eq!(amounts(&at(&cluster, "n").idle), (1_000, GB, 12));
}

#[test]
fn core_54_pods_of_a_node_that_comes_back_count_at_once() {
    // C-19: a node that is created again counts the pods that are still bound to it.
    let mut cluster = Cluster::new(Settings::default());
    apply_node(&mut cluster, node("n", "cpu=10 memory=10G pods=15"));
    three_running(&mut cluster);
    delete_node(&mut cluster, "n");
    assert_eq!(cluster.nodes_by_name(), []);
    assert_eq!(cluster.total_allocatable(), Default::default());
    apply_node(&mut cluster, node("n", "cpu=10 memory=10G pods=15"));
    assert_eq!(amounts(&at(&cluster, "n").used), (9_000, 9 * GB, 3));
    assert_eq!(at(&cluster, "n").view.n_pods, 3);
}

#[test]
fn a_deleted_node_leaves_nothing_behind_but_its_pods() {
    let mut cluster = Cluster::new(Settings::default());
    let zone = labels("volcano.sh/revocable-zone=rz1");
    let cordoned = NodeRecord { labels: zone, unschedulable: true, ..node("n", "cpu=10 x/y=1") };
    apply_node(&mut cluster, cordoned);
    apply_pod(&mut cluster, running(requesting(pod("a"), "cpu=1"), "n"));
    delete_node(&mut cluster, "n");
    let placeholder = at(&cluster, "n");
    assert_eq!((&*placeholder.revocable_zone, placeholder.unschedulable), ("", false));
    assert_eq!(amounts(&placeholder.idle), (-1_000, 0, -1));
    delete_pod(&mut cluster, "a");
    assert_eq!(cluster.node("n"), None);
}

#[test]
fn a_pod_that_has_ended_may_outlive_its_node() {
    let mut cluster = Cluster::new(Settings::default());
    apply_node(&mut cluster, node("n", "cpu=10"));
    let ended = PodRecord { phase: PodPhase::Succeeded, ..running(pod("a"), "n") };
    apply_pod(&mut cluster, ended.clone());
    delete_node(&mut cluster, "n");
    let named = row(&cluster, "a").node.expect("the node it ran on");
    assert_eq!(&*cluster.nodes[named].name, "n");
    apply_pod(&mut cluster, ended);
    delete_pod(&mut cluster, "a");
    assert_eq!(cluster.node("n"), None);
}

fn selecting() -> Cluster {
    let node_selector = vec![("a".into(), "b".into()), ("c".into(), "d".into())];
    Cluster::new(Settings { node_selector, ..Settings::default() })
}

#[test]
fn core_55_only_nodes_with_one_of_the_labels_are_in_the_snapshot() {
    // C-18: a node whose labels stop matching is absent.
    let mut cluster = selecting();
    let with = |text: &str| NodeRecord { labels: labels(text), ..node("n", "cpu=10") };
    apply_node(&mut cluster, with("a=x"));
    assert_eq!(cluster.nodes_by_name(), []);
    delete_node(&mut cluster, "n");
    apply_node(&mut cluster, with("c=d"));
    assert_eq!(cluster.nodes_by_name().len(), 1);
    apply_pod(&mut cluster, running(requesting(pod("p"), "cpu=3"), "n"));
    apply_node(&mut cluster, with("c=e"));
    assert_eq!(cluster.nodes_by_name(), []);
    assert_eq!(at(&cluster, "n").used.get(Dim::CPU), 3_000, "its tasks remain accounted");
    apply_node(&mut cluster, with("a=b"));
    assert_eq!(at(&cluster, "n").idle.get(Dim::CPU), 7_000);
}

#[test]
fn core_57_oversubscription_counts_without_its_label() {
    let mut cluster = Cluster::new(Settings::default());
    let annotations =
        labels("volcano.sh/oversubscription-cpu=1000.7 volcano.sh/oversubscription-memory=1e9");
    let with_label = labels("volcano.sh/oversubscription=false");
    let plain = node("n", "cpu=10 memory=10G");
    let record = NodeRecord { annotations, labels: with_label, ..plain.clone() };
    apply_node(&mut cluster, record);
    assert_eq!(amounts(&at(&cluster, "n").allocatable), (11_000, 11 * GB, 0));
    assert_eq!(at(&cluster, "n").capacity, at(&cluster, "n").allocatable);
    let unreadable = labels("volcano.sh/oversubscription-cpu=many");
    apply_node(&mut cluster, NodeRecord { annotations: unreadable, ..plain });
    assert_eq!(amounts(&at(&cluster, "n").idle), (10_000, 10 * GB, 0), "C-17");
}

#[test]
fn core_58_a_cordoned_node_is_in_the_snapshot_and_in_the_total() {
    let mut cluster = Cluster::new(Settings::default());
    apply_node(&mut cluster, node("b", "cpu=10"));
    apply_node(&mut cluster, NodeRecord { unschedulable: true, ..node("a", "cpu=1 x/y=0") });
    let names: Vec<&str> =
        cluster.nodes_by_name().iter().map(|&id| &*cluster.nodes[id].name).collect();
    assert_eq!(names, ["a", "b"]);
    let total = cluster.total_allocatable();
    let gone = cluster.dims.get("x/y").unwrap();
    assert_eq!((total.get(Dim::CPU), total.has(gone)), (11_000.0, true));
    delete_node(&mut cluster, "a");
    assert!(!cluster.total_allocatable().has(gone));
}

#[test]
fn core_3_pods_of_every_given_scheduler_name_are_ours() {
    let scheduler_names = vec!["a".into(), "b".into()];
    let mut cluster = Cluster::new(Settings { scheduler_names, ..Settings::default() });
    for (name, ours) in [("a", true), ("b", true), ("volcano", false)] {
        apply_pod(&mut cluster, PodRecord { scheduler_name: name.into(), ..pod(name) });
        assert_eq!(cluster.task(name).is_some(), ours, "{name}");
    }
}

#[test]
fn core_59_a_pod_of_another_scheduler_occupies_its_node() {
    let mut cluster = Cluster::new(Settings::default());
    apply_node(&mut cluster, node("n", "cpu=10"));
    let foreign = |name| PodRecord {
        scheduler_name: "default-scheduler".into(),
        ..requesting(pod(name), "cpu=4")
    };
    apply_pod(&mut cluster, foreign("p"));
    assert_eq!(cluster.task("p"), None);
    apply_pod(&mut cluster, running(foreign("p"), "n"));
    assert_eq!(row(&cluster, "p").job, None);
    assert_eq!(at(&cluster, "n").idle.get(Dim::CPU), 6_000);
}

#[test]
fn core_59_the_scheduler_of_a_pod_on_a_node_is_known() {
    let mut cluster = Cluster::new(Settings::default());
    let placed = |name: &str, scheduler: &str| PodRecord {
        scheduler_name: scheduler.into(),
        ..running(pod(name), "n")
    };
    for (name, scheduler) in [("a", "first"), ("b", "second"), ("c", "second"), ("o", "volcano")] {
        apply_pod(&mut cluster, placed(name, scheduler));
    }
    let deciding =
        |cluster: &Cluster, name: &str| cluster.other_scheduler(id(cluster, name)).cloned();
    let named = |name: &str| Some(OtherScheduler::ByName(name.into()));
    let found = ["a", "b", "c", "o"].map(|name| deciding(&cluster, name));
    assert_eq!(found, [named("first"), named("second"), named("second"), None]);
    // No pod has the first name any more, and the third name comes.
    delete_pod(&mut cluster, "a");
    apply_pod(&mut cluster, placed("d", "third"));
    apply_pod(&mut cluster, PodRecord { priority: Some(7), ..placed("b", "second") });
    let found = ["b", "c", "d"].map(|name| deciding(&cluster, name));
    assert_eq!(found, [named("second"), named("second"), named("third")]);
    // A copy knows them, too.
    assert_eq!(deciding(&cluster.clone(), "d"), named("third"));
}

#[test]
fn core_59_names_of_schedulers_are_bounded() {
    let mut cluster = Cluster::new(Settings::default());
    let placed = |number: usize| PodRecord {
        scheduler_name: format!("s-{number}").into(),
        ..running(pod(&format!("p-{number}")), "n")
    };
    (0..256).for_each(|number| apply_pod(&mut cluster, placed(number)));
    let is_unnamed = |cluster: &Cluster, number: usize| {
        let task = id(cluster, &format!("p-{number}"));
        cluster.other_scheduler(task) == Some(&OtherScheduler::Unnamed)
    };
    let unnamed: Vec<usize> = (0..256).filter(|&number| is_unnamed(&cluster, number)).collect();
    assert_eq!(unnamed, [254, 255]);
    delete_pod(&mut cluster, "p-0");
    apply_pod(&mut cluster, placed(255));
    assert!(!is_unnamed(&cluster, 255));
}

#[test]
fn what_has_ended_does_not_hold_its_node() {
    let mut cluster = Cluster::new(Settings::default());
    apply_node(&mut cluster, node("n", "cpu=10"));
    let runs = running(requesting(pod("p"), "cpu=4"), "n");
    apply_pod(&mut cluster, runs.clone());
    apply_pod(&mut cluster, PodRecord { phase: PodPhase::Failed, ..runs });
    let n = at(&cluster, "n");
    assert_eq!((n.idle.get(Dim::CPU), n.tasks.len(), n.n_terminated), (10_000, 0, 1));
}

#[test]
fn sums_do_not_remember_what_is_gone() {
    let mut cluster = Cluster::new(Settings::default());
    apply_node(&mut cluster, node("n", "cpu=10"));
    let before = at(&cluster, "n").clone();
    apply_pod(&mut cluster, running(requesting(pod("p"), "cpu=4 nvidia.com/gpu=1"), "n"));
    delete_pod(&mut cluster, "p");
    assert_eq!(at(&cluster, "n"), &before, "a gpu that nobody asks for is not 0, it is absent");
}
