//! Kinds of nodes: nodes of one kind have equal amounts. A rule that reads only amounts runs once
//! per kind. Large clusters usually have few kinds.
//!
//! Exact because:
//! - a node belongs to a kind only while its row equals the row of the kind in every number;
//! - the tests below compare with the rows, and the engine's `columns.rs` with the plain evaluator.
//!
//! Specification: actions.md 12.2 S1, S2.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::columns::{NodeColumns, Shard};

/// Kind of a node that was not read yet.
const NO_KIND: u32 = u32::MAX;

/// The kinds, with the kind of each node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeKinds {
    /// One row of amounts per kind. The row of an unused kind is stale.
    pub(super) columns: NodeColumns,
    /// Kind of each node, by position.
    of: Vec<u32>,
    n_nodes: Vec<u32>,
    hashes: Vec<u64>,
    by_hash: FxHashMap<u64, u32>,
    /// Unused kinds, which are free for reuse.
    free: Vec<u32>,
}

impl NodeKinds {
    pub(super) fn new(n_dims: usize, n_nodes: usize) -> Self {
        let columns = NodeColumns::new(n_dims, 0);
        Self { columns, of: vec![NO_KIND; n_nodes], ..Self::default() }
    }

    /// Returns the number of rows. Every kind is a smaller number.
    pub(super) fn len(&self) -> usize {
        self.n_nodes.len()
    }

    /// Returns the kind of each node, by position.
    pub(super) fn of(&self) -> &[u32] {
        &self.of
    }

    /// Returns the row of a node's kind, as a range. The node must have been entered.
    pub(super) fn row(&self, at: usize) -> Range<usize> {
        let kind = self.of[at] as usize;
        kind..kind + 1
    }

    /// Returns the shard of a node as of its last entry.
    pub(super) fn shard(&self, at: usize) -> Shard {
        self.columns.shards.get(self.of[at] as usize).copied().unwrap_or_default()
    }

    /// Assigns a node to the kind with its amounts; `row` holds them as its only row.
    pub(super) fn enter(&mut self, at: usize, row: &NodeColumns) {
        let before = self.of[at];
        if self.is_like(before, row) {
            return;
        }
        self.leave(before);
        // Machines of one delivery have neighbouring names and equal amounts.
        let neighbour = at.checked_sub(1).map(|at| self.of[at]);
        let kind = match neighbour.filter(|&kind| self.is_like(kind, row)) {
            Some(kind) => kind,
            None => self.find(row),
        };
        self.of[at] = kind;
        self.n_nodes[kind as usize] += 1;
    }

    /// Takes a node out of its kind, because it is gone.
    pub(super) fn leave_at(&mut self, at: usize) {
        let kind = std::mem::replace(&mut self.of[at], NO_KIND);
        self.leave(kind);
    }

    /// Gives each position the kind of an earlier one. A position beyond the earlier ones has none yet.
    pub(super) fn move_nodes(&mut self, earlier: &[u32]) {
        let kind = |&at: &u32| self.of.get(at as usize).copied().unwrap_or(NO_KIND);
        self.of = earlier.iter().map(kind).collect();
    }

    fn is_like(&self, kind: u32, row: &NodeColumns) -> bool {
        kind != NO_KIND && self.columns.is_like(kind as usize, row)
    }

    fn leave(&mut self, kind: u32) {
        let Some(n_nodes) = self.n_nodes.get_mut(kind as usize) else { return };
        *n_nodes -= 1;
        if *n_nodes != 0 {
            return;
        }
        let hash = self.hashes[kind as usize];
        if self.by_hash.get(&hash) == Some(&kind) {
            self.by_hash.remove(&hash);
        }
        self.free.push(kind);
    }

    /// Returns the kind with the amounts of `row`, new if there is none. After a hash collision two
    /// kinds may have the same amounts.
    fn find(&mut self, row: &NodeColumns) -> u32 {
        let hash = row.hash();
        if let Some(&kind) = self.by_hash.get(&hash)
            && self.is_like(kind, row)
        {
            return kind;
        }
        let kind = self.free.pop().unwrap_or_else(|| {
            self.columns.push();
            self.n_nodes.push(0);
            self.hashes.push(0);
            self.n_nodes.len() as u32 - 1
        });
        self.columns.copy(kind as usize, row);
        self.hashes[kind as usize] = hash;
        self.by_hash.insert(hash, kind);
        kind
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nodes_of_a_kind_have_equal_rows(
            n_nodes in 1..20_usize,
            changes in prop::collection::vec((0..20_usize, 0..4_i64, 0..3_i64, 0..4_u8), 0..80),
        ) {
            let row = |(n_pods, held): (i64, i64)| {
                let mut row = NodeColumns::new(2, 1);
                (row.n_pods[0], row.held_cpu_milli[0]) = (n_pods, held);
                row
            };
            let mut rows = vec![(0, 0); n_nodes];
            let mut kinds = NodeKinds::new(2, n_nodes);
            (0..n_nodes).for_each(|at| kinds.enter(at, &row(rows[at])));
            for (at, n_pods, held, comes) in changes {
                let mut at = at % n_nodes;
                if comes == 0 {
                    // Another node goes, and this one comes behind all others.
                    kinds.leave_at(at);
                    let stay = (0..n_nodes as u32).filter(|&it| it as usize != at);
                    kinds.move_nodes(&stay.chain([u32::MAX]).collect::<Vec<u32>>());
                    rows.remove(at);
                    rows.push((n_pods, held));
                    at = n_nodes - 1;
                }
                rows[at] = (n_pods, held);
                kinds.enter(at, &row(rows[at]));
                let amounts: BTreeSet<(i64, i64)> = rows.iter().copied().collect();
                let used: BTreeSet<u32> = kinds.of().iter().copied().collect();
                prop_assert_eq!(used.len(), amounts.len(), "no kind more than needed");
                for (at, &amounts) in rows.iter().enumerate() {
                    prop_assert!(kinds.columns.is_like(kinds.row(at).start, &row(amounts)));
                }
                for kind in 0..kinds.len() {
                    let n_nodes = kinds.of().iter().filter(|&&of| of as usize == kind).count();
                    prop_assert_eq!(kinds.n_nodes[kind] as usize, n_nodes);
                    prop_assert_eq!(n_nodes == 0, kinds.free.contains(&(kind as u32)));
                }
                prop_assert!(kinds.len() <= n_nodes + 1, "numbers are used again");
            }
        }
    }
}
