//! Where the pods of jobs with a network topology are among the HyperNodes.

use std::collections::BTreeSet;

use serde::Serialize;
use vc_model::{Cluster, HyperNodeId, HyperNodeTree, Job, NetworkTopology, NodeId};

/// Names of nodes that a line of the drawing has at most.
const MOST_NODES: usize = 8;

/// The places of a job with a network topology after the last cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyOutput {
    pub pod_group: String,
    /// What the PodGroup asks for, and then its sub-group policies.
    pub asks: Vec<String>,
    /// Members with a node.
    pub placed: usize,
    /// The HyperNodes with pods of the job, each before those below it. The first one has all.
    pub hyper_nodes: Vec<DomainOutput>,
}

/// A HyperNode with pods of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainOutput {
    pub hyper_node: String,
    pub tier: i32,
    /// Number of HyperNodes of the job above it.
    pub depth: usize,
    /// Pods of the job in it.
    pub pods: usize,
    /// Nodes of these pods that are in no HyperNode below it.
    pub nodes: Vec<String>,
}

/// Returns the jobs with a network topology, by name.
pub(super) fn topologies(cluster: &Cluster) -> Vec<TopologyOutput> {
    let jobs: Vec<(&Job, Vec<String>)> = cluster
        .jobs_by_key()
        .map(|job| (&cluster.jobs[job], asks(&cluster.jobs[job])))
        .filter(|(_, asks)| !asks.is_empty())
        .collect();
    if jobs.is_empty() {
        return Vec::new();
    }
    let tree = cluster.built_hyper_node_tree();
    let output = |(job, asks): (&Job, Vec<String>)| {
        let nodes: Vec<NodeId> =
            job.tasks.iter().filter_map(|&task| cluster.tasks[task].node).collect();
        let mut drawing = Drawing { cluster, tree: &tree, nodes: &nodes, rows: Vec::new() };
        if let Some(top) = tree.around(nodes.iter().copied()) {
            drawing.add(top, 0);
        }
        let hyper_nodes = drawing.rows;
        TopologyOutput { pod_group: job.key.to_string(), asks, placed: nodes.len(), hyper_nodes }
    };
    jobs.into_iter().map(output).collect()
}

/// Returns what the job and its sub-groups ask for.
fn asks(job: &Job) -> Vec<String> {
    let Some(group) = &job.pod_group else { return Vec::new() };
    let own = group.network_topology.iter().map(|topology| text(topology));
    let of_policies = group.policies.iter().filter_map(|policy| {
        let topology = policy.network_topology.as_ref()?;
        Some(format!("sub-groups {}: {}", policy.name, text(topology)))
    });
    own.chain(of_policies).collect()
}

fn text(topology: &NetworkTopology) -> String {
    let limit = match (topology.highest_tier_allowed, &*topology.highest_tier_name) {
        _ if topology.soft => return "soft".to_owned(),
        (Some(tier), _) => tier.to_string(),
        (None, name) => name.to_owned(),
    };
    format!("hard, tier {limit} at most")
}

/// The rows of one job.
struct Drawing<'a> {
    cluster: &'a Cluster,
    tree: &'a HyperNodeTree,
    /// The node of each pod.
    nodes: &'a [NodeId],
    rows: Vec<DomainOutput>,
}

impl Drawing<'_> {
    fn add(&mut self, id: HyperNodeId, depth: usize) {
        let is_here = |node: &&NodeId| self.tree.contains(id, **node);
        let pods = self.nodes.iter().filter(is_here).count();
        if pods == 0 {
            return;
        }
        let row = &self.tree[id];
        let is_below =
            |node: NodeId| row.children.iter().any(|&child| self.tree.contains(child, node));
        let own = self.nodes.iter().filter(is_here).filter(|node| !is_below(**node));
        let names: BTreeSet<String> =
            own.map(|&node| self.cluster.nodes[node].name.to_string()).collect();
        let hyper_node = match id {
            HyperNodeTree::ROOT => "all nodes".to_owned(),
            _ => row.name.to_string(),
        };
        let nodes = names.into_iter().collect();
        self.rows.push(DomainOutput { hyper_node, tier: row.tier, depth, pods, nodes });
        for &child in &row.children {
            self.add(child, depth + 1);
        }
    }
}

impl TopologyOutput {
    /// Returns the lines of the drawing. The first one is about the job.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines =
            vec![format!("{}: {}; {} placed", self.pod_group, self.asks.join("; "), self.placed)];
        for (place, row) in self.hyper_nodes.iter().enumerate() {
            let pods = if row.pods == 1 { "pod" } else { "pods" };
            let at = match row.nodes.len() {
                0 => String::new(),
                n_nodes if MOST_NODES < n_nodes => format!(" on {n_nodes} nodes"),
                _ => format!(" on {}", row.nodes.join(", ")),
            };
            let branch = self.branch(place);
            lines.push(format!(
                "  {branch}{}, tier {}: {} {pods}{at}",
                row.hyper_node, row.tier, row.pods
            ));
        }
        lines
    }

    /// Returns the branch before a row: a bar for each HyperNode above it that has further rows.
    fn branch(&self, place: usize) -> String {
        let rows = &self.hyper_nodes;
        let depth = rows[place].depth;
        let has_more = |depth: usize| {
            let mut later = rows[place + 1..].iter().take_while(|row| depth <= row.depth);
            later.any(|row| row.depth == depth)
        };
        let mut branch = String::new();
        for above in 1..depth {
            branch.push_str(if has_more(above) { "│  " } else { "   " });
        }
        if depth != 0 {
            branch.push_str(if has_more(depth) { "├─ " } else { "└─ " });
        }
        branch
    }
}
