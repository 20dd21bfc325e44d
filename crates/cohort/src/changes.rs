//! Which nodes of the trees are to be looked at again, so that a change costs what depends on it.
//! Specification: cohort.md B.11.

use crate::node::QuotaNode;

/// Nodes whose use may have changed since somebody asked, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedQuotaNodes {
    nodes: Vec<QuotaNode>,
    /// By node.
    is_in: Vec<bool>,
}

impl ChangedQuotaNodes {
    pub(crate) fn none(n_nodes: usize) -> Self {
        Self { nodes: Vec::new(), is_in: vec![false; n_nodes] }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn note(&mut self, node: QuotaNode) {
        if !std::mem::replace(&mut self.is_in[node.index()], true) {
            self.nodes.push(node);
        }
    }

    /// Forgets all but the first ones.
    pub(crate) fn keep_first(&mut self, n_nodes: usize) -> Vec<QuotaNode> {
        let forgotten = self.nodes.split_off(n_nodes);
        forgotten.iter().for_each(|node| self.is_in[node.index()] = false);
        forgotten
    }
}
