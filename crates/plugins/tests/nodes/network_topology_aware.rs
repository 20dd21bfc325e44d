//! Cases 124-134 and 137 of plugins-nodes.md: the plugin `network-topology-aware`.

use serde_json::{Value, json};
use vc_framework::{GradientPurpose, GradientQuery, Plugin, SessionInfo, SessionView};
use vc_model::{Cluster, HyperNodeId, HyperNodeTree, JobId, fixture};

use crate::bed::{built, plugin};

/// Two nodes in each of s3 to s6, s1 = {s3, s4}, s2 = {s5, s6}, s0 above both.
const TREE: &str = "hypernode s3 node=s3-n1 node=s3-n2
    hypernode s4 node=s4-n1 node=s4-n2
    hypernode s5 node=s5-n1 node=s5-n2
    hypernode s6 node=s6-n1 node=s6-n2
    hypernode s1 tier=2 member=s3 member=s4
    hypernode s2 tier=2 member=s5 member=s6
    hypernode s0 tier=3 member=s1 member=s2
    ";

struct World {
    cluster: Cluster,
    info: SessionInfo,
    plugin: Box<dyn Plugin>,
}

impl World {
    fn new(arguments: &[(&str, Value)], text: &str) -> Self {
        Self::with(plugin("network-topology-aware", arguments), text)
    }

    fn with(mut plugin: Box<dyn Plugin>, text: &str) -> Self {
        let mut cluster = fixture::cluster(text);
        let hyper_nodes = cluster.hyper_node_tree();
        let nodes = cluster.nodes_by_name().into();
        let info = SessionInfo { nodes, hyper_nodes, ..SessionInfo::default() };
        plugin.open(SessionView { cluster: &cluster, info: &info });
        Self { cluster, info, plugin }
    }

    fn view(&self) -> SessionView<'_> {
        SessionView { cluster: &self.cluster, info: &self.info }
    }

    fn job(&self) -> JobId {
        fixture::job(&self.cluster, "j")
    }

    /// The scores of these nodes for a task.
    fn scores(&self, task: &str, nodes: &[&str]) -> Vec<f64> {
        let nodes: Vec<_> = nodes.iter().map(|name| fixture::node(&self.cluster, name)).collect();
        let mut scores = vec![0.0; nodes.len()];
        let task = fixture::task(&self.cluster, task);
        let done = self.plugin.batch_node_order(self.view(), task, &nodes, &mut scores);
        assert_eq!(done, Ok(()));
        scores
    }

    fn named(&self, name: &str) -> HyperNodeId {
        let tree = &self.info.hyper_nodes;
        tree.real().find(|&id| &*tree[id].name == name).unwrap_or(HyperNodeTree::ROOT)
    }

    /// The gradient for allocate under the root, by names, or why there is none.
    fn gradient(&self, sub_job: Option<usize>) -> Result<Vec<Vec<String>>, String> {
        self.gradient_for(sub_job, GradientPurpose::Allocate)
    }

    /// The gradient for evictions in the HyperNodes whose names pass `may_suffice`.
    fn gradient_for_evictions(
        &self,
        may_suffice: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Vec<String>>, String> {
        let may_suffice = |id: HyperNodeId| may_suffice(&self.info.hyper_nodes[id].name);
        self.gradient_for(None, GradientPurpose::Evict { may_suffice: &may_suffice })
    }

    fn gradient_for(
        &self,
        sub_job: Option<usize>,
        purpose: GradientPurpose<'_>,
    ) -> Result<Vec<Vec<String>>, String> {
        let topology = self.plugin.as_topology().expect("it orders HyperNodes");
        let query = GradientQuery { job: self.job(), sub_job, under: HyperNodeTree::ROOT, purpose };
        let found = topology.gradient(self.view(), query);
        let name = |id: HyperNodeId| self.info.hyper_nodes[id].name.to_string();
        let names = |group: Vec<HyperNodeId>| group.into_iter().map(name).collect();
        match found.problem {
            Some(problem) => Err(problem.text),
            None => Ok(found.groups.into_iter().map(names).collect()),
        }
    }
}

fn near(found: &[f64], wanted: &[f64]) {
    let is_near = found.iter().zip(wanted).all(|(l, r)| (l - r).abs() < 0.1);
    assert!(found.len() == wanted.len() && is_near, "{found:?}, expected {wanted:?}");
}

/// Nodes of 4 cpu and 8Gi in all HyperNodes of [`TREE`].
fn nodes() -> String {
    let racks = ["s3", "s4", "s5", "s6"];
    let node =
        |rack: &str| format!("node {rack}-n1 cpu=4 memory=8Gi\nnode {rack}-n2 cpu=4 memory=8Gi\n");
    racks.map(node).concat()
}

const FIRST_NODES: [&str; 3] = ["s3-n1", "s4-n1", "s5-n1"];

#[test]
fn nodes_124_nothing_is_placed() {
    let text = format!("{TREE}{}job j topology=hard:3\n task a cpu=1 x2", nodes());
    near(&World::new(&[], &text).scores("j/a-0", &FIRST_NODES), &[0.0; 3]);
}

#[test]
fn nodes_125_closeness_by_tier() {
    let text =
        format!("{TREE}{}job j topology=hard:3\n task a cpu=1\n task r @s3-n1 running", nodes());
    // Half of the tasks are in s3, which is the best.
    near(&World::new(&[], &text).scores("j/a", &FIRST_NODES), &[150.0, 66.7, 33.3]);
    let weight = [("weight", json!(2))];
    near(&World::new(&weight, &text).scores("j/a", &FIRST_NODES), &[300.0, 133.3, 66.7]);
}

#[test]
fn nodes_126_127_no_common_ancestor_but_the_root() {
    let two =
        "hypernode s1 node=n1\nhypernode s2 node=n2\nhypernode s0 tier=2 member=s1 member=s2\n";
    let one = "hypernode s1 node=n1\nhypernode s2 node=n2\n";
    for (tree, other) in [(two, 50.0), (one, 0.0)] {
        let text = format!(
            "{tree}node n1 cpu=4\nnode n2 cpu=4\njob j topology=hard:2\n task a cpu=1\n \
             task r @n1 running"
        );
        near(&World::new(&[], &text).scores("j/a", &["n1", "n2"]), &[150.0, other]);
    }
}

#[test]
fn nodes_128_tasks_that_are_placed_decide_between_equal_nodes() {
    let text = format!(
        "{TREE}{}job j topology=hard:3\n task a cpu=1\n task r x2 @s3-n1 running\n \
         task s @s4-n1 running",
        nodes()
    );
    // Of four tasks two run in s3 and one in s4; s1 is the nearest HyperNode with all of them.
    near(&World::new(&[], &text).scores("j/a", &FIRST_NODES), &[116.7, 91.7, 33.3]);
}

const SIZES: &str = "node s3-n1 cpu=2 memory=4Gi\nnode s3-n2 cpu=2 memory=4Gi
    node s4-n1 cpu=4 memory=4Gi\nnode s4-n2 cpu=4 memory=4Gi
    node s5-n1 cpu=2 memory=8Gi\nnode s5-n2 cpu=2 memory=8Gi
    node s6-n1 cpu=4 memory=8Gi\nnode s6-n2 cpu=4 memory=8Gi
    ";

const ALL_FIRST: [&str; 4] = ["s3-n1", "s4-n1", "s5-n1", "s6-n1"];

#[test]
fn nodes_129_pods_without_a_topology_fill_hyper_nodes() {
    let text = format!("{TREE}{SIZES}job j\n task a cpu=2 memory=4Gi");
    near(&World::new(&[], &text).scores("j/a", &ALL_FIRST), &[25.8, 21.6, 19.9, 15.7]);
    let off = [("hypernode.binpack.normal-pod.enable", json!(false))];
    near(&World::new(&off, &text).scores("j/a", &ALL_FIRST), &[0.0; 4]);
}

#[test]
fn nodes_130_weights_of_resources() {
    let foo = |line: &str| {
        let amount = if line.contains("s3-") || line.contains("s4-") { 8 } else { 16 };
        format!("{line} gpu={amount}\n")
    };
    let sizes: String = SIZES.lines().filter(|line| !line.trim().is_empty()).map(foo).collect();
    let arguments = [
        ("weight", json!(10)),
        ("hypernode.binpack.cpu", json!(1)),
        ("hypernode.binpack.memory", json!(4)),
        ("hypernode.binpack.resources", json!("nvidia.com/gpu")),
        ("hypernode.binpack.resources.nvidia.com/gpu", json!(3)),
        ("hypernode.binpack.normal-pod.fading", json!(0)),
    ];
    let pod = "job j\n task a cpu=2 memory=4Gi gpu=8\n";
    let text = format!("{TREE}{sizes}{pod}");
    near(&World::new(&arguments, &text).scores("j/a", &ALL_FIRST), &[500.0, 468.75, 281.3, 250.0]);
    let full = "job k\n task r cpu=2 memory=4Gi gpu=8 @s3-n1 running\n \
        task s cpu=2 memory=4Gi gpu=8 @s3-n2 running";
    let text = format!("{TREE}{sizes}{pod}{full}");
    near(&World::new(&arguments, &text).scores("j/a", &ALL_FIRST), &[0.0, 468.8, 281.3, 250.0]);
}

#[test]
fn nodes_130_tiers_that_are_far_apart() {
    let text = "node n1 cpu=4\nnode n2 cpu=4\njob j\n task p cpu=1
        hypernode a tier=0 node=n1\nhypernode b tier=1000000000 member=a";
    for (fading, outside) in [(0.0, 100.0), (0.8, 100.0), (1.0, 100.0), (2.0, 0.0)] {
        let arguments = [("hypernode.binpack.normal-pod.fading", json!(fading))];
        let scores = World::new(&arguments, text).scores("j/p", &["n1", "n2"]);
        assert!(scores[0].is_finite() && scores[0] <= scores[1], "{fading}: {scores:?}");
        near(&scores[1..], &[outside]);
    }
}

#[test]
fn nodes_131_hyper_nodes_by_how_full_they_become() {
    let text = format!("{TREE}{SIZES}job j min=2 topology=hard:3\n task a cpu=4 memory=4Gi x2");
    let world = World::new(&[], &text);
    let names = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "root"];
    let ids = names.map(|name| world.named(name));
    let topology = world.plugin.as_topology().expect("it orders HyperNodes");
    let scores = topology.hyper_node_order(world.view(), world.job(), 0, &ids);
    let scores: Vec<f64> = scores.iter().map(|score| score.score).collect();
    near(&scores, &[25.0, 58.3, 45.8, 0.0, 100.0, 0.0, 75.0, 25.0]);
}

#[test]
fn nodes_133_hyper_nodes_with_too_little_room_are_left_out() {
    let job = "job j min=2 topology=hard:2\n task a cpu=4 memory=4Gi x2";
    let world = World::new(&[], &format!("{TREE}{SIZES}{job}"));
    let all = [vec!["s3", "s4", "s5", "s6"], vec!["s1", "s2"]];
    assert_eq!(world.gradient(None), Ok(all.map(|group| group.map_names()).to_vec()));
    let fitting = [vec!["s4", "s6"], vec!["s1", "s2"]];
    assert_eq!(world.gradient(Some(0)), Ok(fitting.map(|group| group.map_names()).to_vec()));
    let large = "job j min=2 topology=hard:1 minres.cpu=9\n task a cpu=4 x2";
    let world = World::new(&[], &format!("{TREE}{SIZES}{large}"));
    let none =
        "no HyperNode of tier 1 or lower has room for all pods: s3 of tier 1 has too little cpu";
    let remedy = "Allow a higher tier in spec.networkTopology, or ask for less";
    assert_eq!(world.gradient(None), Err(format!("{none} even when empty. {remedy}")));
    // Enough if it were empty.
    let busy = "job k\n task r cpu=1 @s4-n1 running\n task s cpu=1 @s6-n1 running";
    let eight = large.replace("cpu=9", "cpu=8");
    let world = World::new(&[], &format!("{TREE}{SIZES}{eight}\n{busy}"));
    assert_eq!(world.gradient(None), Err(none.to_owned()));
    // What terminates counts as free.
    let leaving = "job k\n task r cpu=4 @s4-n1 releasing\n task s cpu=4 @s4-n2 releasing";
    let world = World::new(&[], &format!("{TREE}{SIZES}{job}\n{leaving}"));
    assert_eq!(
        world.gradient(Some(0)).map(|groups| groups[0].clone()),
        Ok(vec!["s4", "s6"].map_names())
    );
}

#[test]
fn nodes_133_near_the_pods_that_run() {
    let text =
        format!("{TREE}{}job j topology=hard:2\n task a cpu=1\n task r @s3-n1 running", nodes());
    let below_s1 = [vec!["s3", "s4"], vec!["s1"]];
    let world = World::new(&[], &text);
    assert_eq!(world.gradient(None), Ok(below_s1.map(|group| group.map_names()).to_vec()));
    let apart = format!("{text}\n task s @s5-n1 running");
    let why = "its placed pods need HyperNode s0 of tier 3, and tier 2 is the highest allowed";
    assert_eq!(World::new(&[], &apart).gradient(None), Err(why.to_owned()));
}

#[test]
fn nodes_134_a_large_flat_tree() {
    let mut text = String::new();
    for rack in 0..100 {
        let cpu = if rack == 7 { 1 } else { 4 };
        text += &format!("node n{rack} cpu={cpu}\nhypernode h{rack} node=n{rack}\n");
    }
    text += "job j min=1 topology=hard:1 minres.cpu=2\n task a cpu=2";
    let groups = World::new(&[], &text).gradient(None).expect("there are others");
    assert_eq!((groups.len(), groups[0].len()), (1, 99));
    assert!(!groups[0].contains(&"h7".to_owned()));
}

#[test]
fn nodes_137_arguments_out_of_range() {
    let arguments = [
        ("weight", json!(-1)),
        ("hypernode.binpack.cpu", json!(-1)),
        ("hypernode.binpack.normal-pod.fading", json!(-1)),
        ("hypernode.binpack.memory", json!(-1)),
        ("hypernode.binpack.resources", json!("nvidia.com/gpu")),
        ("hypernode.binpack.resources.nvidia.com/gpu", json!(-1)),
        ("hypernode.gradient.evict.max-hypernodes", json!(0)),
    ];
    let world = |text: &str| {
        let (plugin, warnings) = built("network-topology-aware", &arguments);
        assert_eq!(warnings.len(), 6, "{warnings:?}");
        World::with(plugin, text)
    };
    // Each is the default: those of 129, and eight HyperNodes.
    let text = format!("{TREE}{SIZES}job j\n task a cpu=2 memory=4Gi");
    near(&world(&text).scores("j/a", &ALL_FIRST), &[25.8, 21.6, 19.9, 15.7]);
    let racks: String = (0..10)
        .map(|rack| format!("node n{rack} cpu=4\nhypernode h{rack} node=n{rack}\n"))
        .collect();
    let text = format!("{racks}job j min=1 topology=hard:1 minres.cpu=2\n task a cpu=2");
    let groups = world(&text).gradient_for_evictions(&|_| true).expect("all have room");
    assert_eq!(groups.concat().len(), 8);
}

/// Names as texts.
trait MapNames {
    fn map_names(self) -> Vec<String>;
}

impl MapNames for Vec<&str> {
    fn map_names(self) -> Vec<String> {
        self.into_iter().map(str::to_owned).collect()
    }
}

#[test]
fn nodes_132_gradients_for_evictions_begin_with_the_widest() {
    let tree = "hypernode a node=n1
        hypernode b node=n2
        hypernode c tier=2 member=a
        hypernode d tier=2 member=b
        node n1 cpu=4
        node n2 cpu=4
        job full min=0
          task r cpu=4 @n1 running
          task s cpu=3 @n2 running
        ";
    let job = "job j topology=hard:2 minres.cpu=2\n task a cpu=2";
    let names =
        |groups: &[&[&str]]| Ok(groups.iter().map(|group| group.to_vec().map_names()).collect());
    let most = |most: i64| [("hypernode.gradient.evict.max-hypernodes", json!(most))];
    let text = format!("{tree}{job}");
    let world = World::new(&most(3), &text);
    assert_eq!(world.gradient_for_evictions(&|_| true), names(&[&["c", "d"], &["b"]]));
    // One in which evictions are of no use does not count.
    let but_d = |name: &str| name != "d";
    assert_eq!(world.gradient_for_evictions(&but_d), names(&[&["c"], &["a", "b"]]));
    let nowhere = "evictions make room for all pods in no HyperNode of tier 2 or lower";
    assert_eq!(world.gradient_for_evictions(&|_| false), Err(nowhere.to_owned()));
    assert_eq!(World::new(&most(1), &text).gradient_for_evictions(&|_| true), names(&[&["d"]]));
    // What the nodes have decides, not what is idle.
    let larger = text.replace("minres.cpu=2", "minres.cpu=5");
    let short = "no HyperNode of tier 2 or lower has room for all pods: c of tier 2 has too little \
        cpu even when empty. Allow a higher tier in spec.networkTopology, or ask for less";
    assert_eq!(World::new(&[], &larger).gradient_for_evictions(&|_| true), Err(short.to_owned()));
}
