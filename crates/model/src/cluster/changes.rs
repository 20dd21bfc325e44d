//! The change logs of the cluster: which nodes and which jobs changed.
//!
//! Exact because
//! - every change of a row goes through the few functions that enter it in a log,
//! - the laws of this crate and the engine's random stories would reveal a missing entry.
//!
//! Specification: actions.md 12.2 (S2: versioned results), 12.3.

use std::sync::Arc;

use crate::change_log::{ChangeLog, Revision};
use crate::cluster::Cluster;
use crate::hyper_node::{HyperNodeTree, SelectableNode};
use crate::ids::{JobId, NodeId};
use crate::node::Node;

impl Cluster {
    /// Returns the log of nodes whose row changed: the object, the tasks there, or the shard.
    pub fn node_changes(&self) -> &ChangeLog<NodeId> {
        &self.node_changes
    }

    /// Returns the log of nodes whose object changed. Other row changes, mostly pods that come and
    /// go, are not in it. A new node also changes [`Cluster::node_set_revision`].
    pub fn object_changes(&self) -> &ChangeLog<NodeId> {
        &self.object_changes
    }

    /// Returns the revision of the set of known nodes.
    pub fn node_set_revision(&self) -> Revision {
        self.node_set_revision
    }

    /// Returns the tree of the HyperNodes over the known nodes. It is built again if they changed.
    pub fn hyper_node_tree(&mut self) -> Arc<HyperNodeTree> {
        let key = self.hyper_nodes.key(self.node_set_revision, self.object_changes.revision());
        if let Some(tree) = self.hyper_nodes.kept(key) {
            return tree;
        }
        let tree = Arc::new(self.built_hyper_node_tree());
        self.hyper_nodes.keep(key, tree.clone());
        tree
    }

    /// Returns the tree of the HyperNodes over the known nodes, which is built if it is not kept.
    pub fn shared_hyper_node_tree(&self) -> Arc<HyperNodeTree> {
        let key = self.hyper_nodes.key(self.node_set_revision, self.object_changes.revision());
        let kept = self.hyper_nodes.kept(key);
        kept.unwrap_or_else(|| Arc::new(self.built_hyper_node_tree()))
    }

    /// Builds the tree of the HyperNodes over the known nodes, without keeping it.
    pub fn built_hyper_node_tree(&self) -> HyperNodeTree {
        let node = |&id: &NodeId| {
            let Node { name, labels, .. } = &self.nodes[id];
            SelectableNode { id, name, labels }
        };
        let nodes: Vec<SelectableNode<'_>> = self.node_order.iter().map(node).collect();
        HyperNodeTree::of(self.hyper_nodes.records(), &nodes)
    }

    /// Returns the log of jobs whose row or tasks changed, including jobs that are gone.
    pub fn job_changes(&self) -> &ChangeLog<JobId> {
        &self.job_changes
    }

    /// Records that a node changed.
    pub fn touch_node(&mut self, node: NodeId) {
        self.node_changes.push(node);
    }

    /// Records that a job changed.
    pub fn touch_job(&mut self, job: JobId) {
        self.job_changes.push(job);
    }
}
