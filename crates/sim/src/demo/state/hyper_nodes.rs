//! HyperNodes as the demo shows them: which nodes each has, cpu in use, and the gangs in it.

use std::collections::BTreeMap;

use serde_json::Value;
use vc_model::{Cluster, HyperNodeId, HyperNodeTree};
use vc_wire::Kind;

use super::DemoState;
use crate::serve::{Change, NODES, ServedKind};

/// Nodes and HyperNodes that were seen.
#[derive(Debug, Default)]
pub(super) struct HyperNodesSeen {
    cluster: Cluster,
}

/// The use of a HyperNode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperNodeLoad {
    /// Its name.
    pub name: String,
    /// `spec.tier`.
    pub tier: i32,
    /// Number of HyperNodes above it.
    pub depth: usize,
    /// Cpu of the pods on its nodes, in thousandths.
    pub used: i64,
    /// Allocatable cpu of its nodes, in thousandths.
    pub total: i64,
    /// Gangs with pods in it, by title, with the number of these pods.
    pub gangs: BTreeMap<String, usize>,
}

impl HyperNodesSeen {
    /// Takes in an event about a node or a HyperNode. What cannot be decoded is left out; the
    /// scheduler reports it.
    pub(super) fn observe(&mut self, kind: &ServedKind, change: Change, object: &Value) {
        let kind = if *kind == NODES { Kind::Node } else { Kind::HyperNode };
        let event = match change {
            Change::Deleted => vc_wire::decode_deleted(kind, object),
            Change::Added | Change::Modified => {
                vc_wire::decode(kind, object).map(|decoded| decoded.event)
            }
        };
        if let Ok(event) = event {
            self.cluster.apply(event);
        }
    }
}

impl DemoState {
    /// Returns the HyperNodes, each before those below it.
    pub fn hyper_nodes(&self) -> Vec<HyperNodeLoad> {
        let cluster = &self.hyper_nodes.cluster;
        let tree = cluster.built_hyper_node_tree();
        let mut loads = Vec::new();
        let tops = tree[HyperNodeTree::ROOT].children.iter();
        tops.for_each(|&id| self.add_load(&tree, id, 0, &mut loads));
        loads
    }

    fn add_load(
        &self,
        tree: &HyperNodeTree,
        id: HyperNodeId,
        depth: usize,
        loads: &mut Vec<HyperNodeLoad>,
    ) {
        let row = &tree[id];
        let contains = |name: &str| {
            let node = self.hyper_nodes.cluster.node(name);
            node.is_some_and(|node| tree.contains(id, node))
        };
        let mut load = HyperNodeLoad {
            name: row.name.to_string(),
            tier: row.tier,
            depth,
            used: 0,
            total: 0,
            gangs: BTreeMap::new(),
        };
        for node in self.nodes().into_iter().filter(|node| contains(&node.name)) {
            load.used += node.used;
            load.total += node.total;
        }
        for pod in self.pods.values().filter(|pod| pod.holds_node() && contains(&pod.node)) {
            if let Some(gang) = pod.gang.as_ref().and_then(|key| self.gangs.get(key)) {
                *load.gangs.entry(gang.title.clone()).or_default() += 1;
            }
        }
        loads.push(load);
        row.children.iter().for_each(|&child| self.add_load(tree, child, depth + 1, loads));
    }
}
