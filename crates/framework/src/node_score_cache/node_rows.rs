//! The nodes of the session by position in name order: their kinds with their amounts, and which
//! nodes changed.
//!
//! Exact because:
//! - a row is read again whenever the change log names its node;
//! - the engine's laws compare with the plain evaluator.
//!
//! Specification: actions.md 12.2 S2.

use vc_model::{ChangeReader, Id, NodeId, Revision};
use vc_resource::Resource;

use super::columns::{NodeColumns, Shard};
use super::node_kinds::NodeKinds;
use crate::session::SessionState;

/// The rows of all nodes of the session.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeRows {
    pub(super) kinds: NodeKinds,
    /// Buffer of one row for the node that is being read. Amounts of all nodes in columns would
    /// spread one node over many places in memory.
    read: NodeColumns,
    /// Number of nodes outside of the own shard, refused or not.
    pub(super) n_foreign: usize,
    /// Per node: true if it has releasing or pipelined tasks.
    is_moving: Vec<bool>,
    pub(super) n_moving: usize,
    changed_nodes: ChangeReader<NodeId>,
    node_set: Option<Revision>,
    by_node: Vec<u32>,
}

impl NodeRows {
    pub(super) fn len(&self) -> usize {
        self.kinds.of().len()
    }

    /// Reads the rows that changed since the last call.
    pub(super) fn follow(&mut self, session: &SessionState<'_>) {
        let same = self.node_set == Some(session.node_set_revision())
            && self.len() == session.info().nodes.len()
            && self.read.n_dims() == session.dims.len();
        match self.changed_nodes.read(session.node_changes()).filter(|_| same) {
            Some(changed) => {
                for node in changed {
                    if let Some(at) = self.position(node) {
                        self.read(session, node, at);
                    }
                }
            }
            None => self.read_all(session),
        }
    }

    fn read_all(&mut self, session: &SessionState<'_>) {
        let nodes = &session.info().nodes;
        let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        *self = Self {
            kinds: NodeKinds::new(session.dims.len(), nodes.len()),
            read: NodeColumns::new(session.dims.len(), 1),
            is_moving: vec![false; nodes.len()],
            changed_nodes: self.changed_nodes,
            node_set: Some(session.node_set_revision()),
            by_node: vec![u32::MAX; n_ids],
            ..Self::default()
        };
        for (at, &node) in nodes.iter().enumerate() {
            self.by_node[node.index()] = at as u32;
            self.read(session, node, at);
        }
    }

    fn read(&mut self, session: &SessionState<'_>, id: NodeId, at: usize) {
        let shard = self.kinds.shard(at);
        self.read.read(session, id);
        self.kinds.enter(at, &self.read);
        self.n_foreign += usize::from(self.kinds.shard(at) != Shard::Own);
        self.n_foreign -= usize::from(shard != Shard::Own);
        let node = &session.nodes[id];
        let is_moving = !is_nothing(&node.releasing) || !is_nothing(&node.pipelined);
        self.n_moving += usize::from(is_moving);
        self.n_moving -= usize::from(std::mem::replace(&mut self.is_moving[at], is_moving));
    }

    /// Returns the position of a node in name order. Returns `None` if it is not in the session.
    pub(super) fn position(&self, node: NodeId) -> Option<usize> {
        let at = *self.by_node.get(node.index())?;
        (at != u32::MAX).then_some(at as usize)
    }
}

fn is_nothing(amounts: &Resource) -> bool {
    amounts.dims().all(|dim| amounts.get(dim) == 0)
}
