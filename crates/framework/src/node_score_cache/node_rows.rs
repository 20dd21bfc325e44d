//! The nodes of the session by position in name order: their kinds with their amounts, and which
//! nodes changed.
//!
//! Exact because:
//! - a row is read again whenever the change log names its node;
//! - a node that stays keeps its row when others come or go, and a node that comes is read;
//! - the engine's laws compare with the plain evaluator, and the tests of `node_kinds.rs` move nodes.
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
    /// The last change of positions. `None` if all rows were read since.
    moves: Option<PositionMoves>,
}

/// Position of a node that had none before.
pub(super) const NO_POSITION: u32 = u32::MAX;

/// The positions of the nodes before and after the set of nodes changed.
#[derive(Clone, Debug)]
pub(super) struct PositionMoves {
    /// Revisions of the set of nodes before and after.
    pub(super) between: (Revision, Revision),
    /// Per position the earlier one, or [`NO_POSITION`].
    pub(super) earlier: Vec<u32>,
}

impl NodeRows {
    pub(super) fn len(&self) -> usize {
        self.kinds.of().len()
    }

    /// Reads the rows that changed since the last call.
    pub(super) fn follow(&mut self, session: &SessionState<'_>) {
        let has_dims = self.read.n_dims() == session.dims.len();
        let before = self.node_set.filter(|_| has_dims);
        let changed = self.changed_nodes.read(session.node_changes());
        let (Some(before), Some(changed)) = (before, changed) else {
            return self.read_all(session);
        };
        let now = session.node_set_revision();
        if before != now || self.len() != session.info().nodes.len() {
            self.move_rows(session, (before, now));
            // A kind stands for nodes: there are no more of them.
            if self.len() < self.kinds.len() {
                return self.read_all(session);
            }
        }
        for node in changed {
            if let Some(at) = self.position(node) {
                self.read(session, node, at);
            }
        }
    }

    /// Moves the rows of the nodes that stay to their new positions, and reads those that come.
    fn move_rows(&mut self, session: &SessionState<'_>, between: (Revision, Revision)) {
        let nodes = &session.info().nodes;
        let by_node = positions_of(nodes);
        let stays = |index: usize| by_node.get(index).is_some_and(|&at| at != NO_POSITION);
        for (index, &at) in self.by_node.iter().enumerate() {
            if at != NO_POSITION && !stays(index) {
                let at = at as usize;
                self.n_foreign -= usize::from(self.kinds.shard(at) != Shard::Own);
                self.n_moving -= usize::from(self.is_moving[at]);
                self.kinds.leave_at(at);
            }
        }
        let position = |node: &NodeId| self.by_node.get(node.index()).copied();
        let earlier = nodes.iter().map(|node| position(node).unwrap_or(NO_POSITION));
        let earlier: Vec<u32> = earlier.collect();
        self.kinds.move_nodes(&earlier);
        let was_moving = |&at: &u32| self.is_moving.get(at as usize).copied().unwrap_or(false);
        self.is_moving = earlier.iter().map(was_moving).collect();
        (self.by_node, self.node_set) = (by_node, Some(between.1));
        for (at, &node) in nodes.iter().enumerate() {
            if earlier[at] == NO_POSITION {
                self.read(session, node, at);
            }
        }
        self.moves = Some(PositionMoves { between, earlier });
    }

    /// Returns how positions changed between these revisions of the set of nodes. Returns `None` if that is
    /// not known.
    pub(super) fn moves_between(&self, before: Revision, now: Revision) -> Option<&[u32]> {
        let moves = self.moves.as_ref().filter(|moves| moves.between == (before, now))?;
        Some(&moves.earlier)
    }

    fn read_all(&mut self, session: &SessionState<'_>) {
        let nodes = &session.info().nodes;
        *self = Self {
            kinds: NodeKinds::new(session.dims.len(), nodes.len()),
            read: NodeColumns::new(session.dims.len(), 1),
            is_moving: vec![false; nodes.len()],
            changed_nodes: self.changed_nodes,
            node_set: Some(session.node_set_revision()),
            by_node: positions_of(nodes),
            ..Self::default()
        };
        for (at, &node) in nodes.iter().enumerate() {
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
        (at != NO_POSITION).then_some(at as usize)
    }
}

/// Returns the position of each node by its id.
fn positions_of(nodes: &[NodeId]) -> Vec<u32> {
    let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
    let mut by_node = vec![NO_POSITION; n_ids];
    for (at, &node) in nodes.iter().enumerate() {
        by_node[node.index()] = at as u32;
    }
    by_node
}

fn is_nothing(amounts: &Resource) -> bool {
    amounts.dims().all(|dim| amounts.get(dim) == 0)
}
