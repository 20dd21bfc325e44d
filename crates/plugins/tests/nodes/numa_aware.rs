//! Cases 119, 120 and 122 of plugins-nodes.md, and deviations of section 14: the plugin
//! `numa-aware`.

use std::sync::Arc;

use vc_framework::{Outbox, Plugin, Records, SessionInfo, SessionView};
use vc_model::{Cluster, Code, TaskStatus, fixture, parse_cpu_list};

use crate::bed::plugin;

const POLICY: &str = "annotation.volcano.sh/numa-topology-policy";
/// A node of the cases: CPUs 0-3 on NUMA node 0, 4-7 on 1.
const CPUS: &str = "cpus=8 nodes=2";

/// A cluster, with the plugin over it.
struct World {
    cluster: Cluster,
    info: SessionInfo,
    plugin: Box<dyn Plugin>,
}

impl World {
    /// The text, where `policy=` stands for the annotation of a pod.
    fn new(text: &str) -> Self {
        let text = text.replace("pod-policy", POLICY);
        let cluster = fixture::cluster(&text);
        let info = SessionInfo { nodes: cluster.nodes_by_name().into(), ..SessionInfo::default() };
        Self { cluster, info, plugin: plugin("numa-aware", &[]) }
    }

    fn view(&self) -> SessionView<'_> {
        SessionView { cluster: &self.cluster, info: &self.info }
    }

    /// Why the task may not run on the node; empty if it may.
    fn refusal(&self, task: &str, node: &str) -> String {
        let (task, node) = (fixture::task(&self.cluster, task), fixture::node(&self.cluster, node));
        let mut findings = Vec::new();
        self.plugin.predicate(self.view(), task, node, &mut findings);
        let text = |finding: &vc_model::Finding| {
            assert_eq!(finding.code, Code::Unresolvable);
            finding.reason.text(&self.cluster.dims)
        };
        findings.iter().map(text).collect()
    }

    /// The CPUs that the task would get on the node; empty for none.
    fn reserved(&self, task: &str, node: &str) -> String {
        let (task, node) = (fixture::task(&self.cluster, task), fixture::node(&self.cluster, node));
        let reserved = self.plugin.reserve(self.view(), task, node, TaskStatus::Allocated);
        let cpus = reserved.expect("it may run there").and_then(|reservation| reservation.cpus);
        let cpus: Vec<String> =
            cpus.iter().flat_map(|cpus| cpus.iter().map(u32::to_string)).collect();
        cpus.join(" ")
    }

    /// Places the task on the node with the CPUs of its reservation.
    fn place(&mut self, task: &str, node: &str) {
        let (task, node) = (fixture::task(&self.cluster, task), fixture::node(&self.cluster, node));
        let reserved = self.plugin.reserve(self.view(), task, node, TaskStatus::Allocated);
        let reservation = reserved.expect("it may run there").unwrap_or_default();
        self.cluster.set_task(task, TaskStatus::Allocated, Some(node));
        self.cluster.reserve(task, reservation);
    }

    fn take_back(&mut self, task: &str) {
        let task = fixture::task(&self.cluster, task);
        self.cluster.set_task(task, TaskStatus::Pending, None);
    }

    fn scores(&self, task: &str) -> Vec<f64> {
        let task = fixture::task(&self.cluster, task);
        let mut scores = vec![0.0; self.info.nodes.len()];
        let answer = self.plugin.batch_node_order(self.view(), task, &self.info.nodes, &mut scores);
        assert_eq!(answer, Ok(()));
        scores
    }
}

/// One node, and one Guaranteed pod.
fn one(numa: &str, pod: &str) -> World {
    World::new(&format!("node n1 cpu=8\n{numa}\njob j min=0\n task a {pod}"))
}

#[test]
fn nodes_119_policies_of_the_node_admit_or_refuse() {
    let cannot = "container main cannot be assigned by numa";
    for (policy, free, n_cpus, refusal, reserved) in [
        ("single-numa-node", "0-7", 5, cannot, ""),
        ("single-numa-node", "0-7", 4, "", "0 1 2 3"),
        ("restricted", "2-5", 4, cannot, ""),
        ("restricted", "1-7", 4, "", "4 5 6 7"),
        ("best-effort", "2-5", 4, "", "2 3 4 5"),
        ("best-effort", "2-5", 5, "", ""),
    ] {
        for annotated in [format!("pod-policy={policy}"), String::new()] {
            let numa = format!("numa n1 policy={policy} {CPUS} free={free}");
            let world = one(&numa, &format!("cpu={n_cpus} guaranteed {annotated}"));
            assert_eq!(world.refusal("j/a", "n1"), refusal, "{policy} {free} {n_cpus}");
            if refusal.is_empty() {
                assert_eq!(world.reserved("j/a", "n1"), reserved, "{policy} {free} {n_cpus}");
            }
        }
    }
}

#[test]
fn nodes_119_reserved_cpus_are_never_assigned() {
    let world = one(&format!("numa n1 policy=restricted {CPUS} reserved=1"), "cpu=4 guaranteed");
    assert_eq!(world.reserved("j/a", "n1"), "4 5 6 7");
    let world = one(&format!("numa n1 policy=restricted {CPUS} reserved=5"), "cpu=4 guaranteed");
    assert_eq!(world.refusal("j/a", "n1"), "container main cannot be assigned by numa");
}

#[test]
fn nodes_120_who_is_judged() {
    let full = format!("numa n1 policy=single-numa-node {CPUS} free=0");
    for (numa, pod, refusal) in [
        (&*full, "cpu=4 pod-policy=single-numa-node", ""),
        (&full, "cpu=4 guaranteed", "container main cannot be assigned by numa"),
        (&full, "cpu=500m guaranteed", ""),
        (&full, "cpu=500m guaranteed pod-policy=single-numa-node", ""),
        ("", "cpu=4 guaranteed", ""),
        ("", "cpu=4 guaranteed pod-policy=none", ""),
        ("", "cpu=4 guaranteed pod-policy=restricted", "numa info is empty"),
        (
            "numa n1 policy=restricted cpus=8 manager=none",
            "cpu=4 guaranteed pod-policy=restricted",
            "cpu manager policy isn't static",
        ),
        ("numa n1 policy=restricted cpus=8 manager=none free=0", "cpu=4 guaranteed", ""),
        ("numa n1 policy=none cpus=8 free=0", "cpu=4 guaranteed", ""),
        (
            "numa n1 policy=best-effort cpus=8",
            "cpu=4 guaranteed pod-policy=restricted",
            "task topology policy[restricted] is different with node[best-effort]",
        ),
        (
            "numa n1 policy=restricted",
            "cpu=4 guaranteed pod-policy=restricted",
            "no topo information",
        ),
        ("numa n1 policy=restricted", "cpu=4 guaranteed", ""),
        (
            "numa n1 policy=restricted cpus=8 free=",
            "cpu=4 guaranteed pod-policy=restricted",
            "cpu allocatable map is empty",
        ),
    ] {
        assert_eq!(one(numa, pod).refusal("j/a", "n1"), refusal, "{numa} {pod}");
    }
}

/// What is placed in a session counts at once; what is taken back is free again.
#[test]
fn nodes_119_placements_take_cpus_and_give_them_back() {
    let mut world = World::new(&format!(
        "node n1 cpu=8
         numa n1 policy=single-numa-node {CPUS}
         job j min=0
           task a x3 cpu=4 guaranteed"
    ));
    world.place("j/a-0", "n1");
    assert_eq!(world.reserved("j/a-1", "n1"), "4 5 6 7");
    world.place("j/a-1", "n1");
    assert_ne!(world.refusal("j/a-2", "n1"), "");
    world.take_back("j/a-0");
    assert_eq!(world.reserved("j/a-2", "n1"), "0 1 2 3");
    world.cluster.check().expect("the tables agree");
}

/// 14.2: a decision counts until the kubelet reports its pod, and no longer.
#[test]
fn nodes_121_a_decision_counts_until_it_is_reported() {
    let mut world = World::new(&format!(
        "node n1 cpu=8
         numa n1 policy=best-effort {CPUS}
         job j min=0
           task a x4 cpu=2 guaranteed"
    ));
    world.place("j/a-0", "n1");
    world.place("j/a-1", "n1");
    assert_eq!(world.reserved("j/a-2", "n1"), "4 5");
    // The kubelet has chosen as we have; only the other pod is still expected.
    let reported = |cpus: &str, free: &str| {
        format!("numa n1 policy=best-effort {CPUS} free={free} pod.j-a-0={cpus}")
    };
    fixture::apply(&mut world.cluster, &reported("0-1", "2-7"));
    assert_eq!(world.reserved("j/a-2", "n1"), "4 5");
    // It has given the CPUs of the other pod to this one, so the other one will get others.
    fixture::apply(&mut world.cluster, &reported("2-3", "0-1,4-7"));
    assert_eq!(world.reserved("j/a-2", "n1"), "4 5");
    world.place("j/a-2", "n1");
    assert_eq!(world.reserved("j/a-3", "n1"), "6 7");
    // Pods of other names count by what the kubelet says.
    let others = format!("numa n1 policy=best-effort {CPUS} free=7 pod.other/x=0-6");
    fixture::apply(&mut world.cluster, &others);
    assert_eq!(world.reserved("j/a-3", "n1"), "");
}

#[test]
fn nodes_122_few_numa_nodes_score_higher() {
    let world = World::new(&format!(
        "node n1 cpu=8
         node n2 cpu=8
         numa n1 policy=best-effort {CPUS}
         numa n2 policy=best-effort {CPUS} free=2-5
         job j min=0
           task a cpu=4 guaranteed pod-policy=best-effort
           task b cpu=4 guaranteed
           task c cpu=500m guaranteed pod-policy=best-effort"
    ));
    assert_eq!(world.scores("j/a"), [50.0, 0.0]);
    assert_eq!(world.scores("j/b"), [0.0, 0.0], "it has no policy");
    assert_eq!(world.scores("j/c"), [0.0, 0.0], "no CPUs are its own");
}

/// A Numatopology with more CPUs than its node is named once; other nodes are as before.
#[test]
fn nodes_120_a_contradiction_is_reported_once() {
    let mut world = World::new(&format!(
        "node n1 cpu=4
         node n2 cpu=8
         numa n1 policy=restricted {CPUS}
         numa n2 policy=restricted {CPUS}"
    ));
    let mut reported = || {
        let mut out = Outbox::default();
        let view = SessionView { cluster: &world.cluster, info: &world.info };
        world.plugin.close(view, &Records::default(), &mut out);
        out.warnings
    };
    let text = "node n1: its Numatopology has 8 CPUs, but the node has 4. The Numatopology decides. \
        Restart the exporter of the node, or delete the Numatopology";
    assert_eq!(reported(), [text]);
    assert_eq!(reported(), [""; 0]);
}

/// The tables keep the CPUs of a task as long as it has its node.
#[test]
fn nodes_121_cpus_are_of_tasks_with_a_node() {
    let mut world = one(&format!("numa n1 policy=restricted {CPUS}"), "cpu=4 guaranteed");
    world.place("j/a", "n1");
    let task = fixture::task(&world.cluster, "j/a");
    let cpus = parse_cpu_list("0-3").map(Arc::new).ok();
    assert_eq!(world.cluster.tasks[task].cpus, cpus);
    let shown = "job j min=0\n task a cpu=4 guaranteed @n1 running";
    fixture::apply(&mut world.cluster, shown);
    assert_eq!(world.cluster.tasks[task].cpus, cpus, "the watch shows the pod there");
    world.take_back("j/a");
    assert_eq!(world.cluster.tasks[task].cpus, None);
}
