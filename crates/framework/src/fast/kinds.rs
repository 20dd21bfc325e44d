//! Nodes of one kind: those with the same amounts, for which a rule that reads amounts alone is asked
//! once. In a cluster of many equal machines most are of few kinds. Exact because a node is of a kind
//! only while its row equals that of the kind, number by number; tested here against the rows, and by
//! the engine's `columns.rs` against the plain evaluator. Specification: actions.md 12.2 S1, S2.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::columns::{NodeColumns, Shard};

/// Of a node that was not looked at yet.
const NO_KIND: u32 = u32::MAX;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// The amounts, a row for each kind; of one that no node is of any more what they were.
    pub(super) columns: NodeColumns,
    /// Kind of each node, by position.
    of: Vec<u32>,
    n_nodes: Vec<u32>,
    hashes: Vec<u64>,
    by_hash: FxHashMap<u64, u32>,
    /// Kinds that no node is of any more.
    free: Vec<u32>,
}

impl Kinds {
    pub(super) fn new(n_dims: usize, n_nodes: usize) -> Self {
        let columns = NodeColumns::new(n_dims, 0);
        Self { columns, of: vec![NO_KIND; n_nodes], ..Self::default() }
    }

    /// Numbers of kinds are below this one.
    pub(super) fn len(&self) -> usize {
        self.n_nodes.len()
    }

    /// Kind of each node, by position.
    pub(super) fn of(&self) -> &[u32] {
        &self.of
    }

    /// Where the amounts of a node are in the columns. It was entered.
    pub(super) fn row(&self, at: usize) -> Range<usize> {
        let kind = self.of[at] as usize;
        kind..kind + 1
    }

    /// How the node stood to the shard when it was entered last.
    pub(super) fn shard(&self, at: usize) -> Shard {
        self.columns.shards.get(self.of[at] as usize).copied().unwrap_or_default()
    }

    /// Finds the kind of a node whose amounts are those of the only row now.
    pub(super) fn enter(&mut self, at: usize, row: &NodeColumns) {
        let before = self.of[at];
        if self.is_like(before, row) {
            return;
        }
        self.leave(before);
        // Machines that were ordered together have names and amounts alike.
        let neighbour = at.checked_sub(1).map(|at| self.of[at]);
        let kind = match neighbour.filter(|&kind| self.is_like(kind, row)) {
            Some(kind) => kind,
            None => self.find(row),
        };
        self.of[at] = kind;
        self.n_nodes[kind as usize] += 1;
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

    /// Two kinds may have the same amounts where hashes are equal by chance.
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
            changes in prop::collection::vec((0..20_usize, 0..4_i64, 0..3_i64), 0..80),
        ) {
            let row = |(n_pods, held): (i64, i64)| {
                let mut row = NodeColumns::new(2, 1);
                (row.n_pods[0], row.held_cpu_milli[0]) = (n_pods, held);
                row
            };
            let mut rows = vec![(0, 0); n_nodes];
            let mut kinds = Kinds::new(2, n_nodes);
            (0..n_nodes).for_each(|at| kinds.enter(at, &row(rows[at])));
            for (at, n_pods, held) in changes {
                let at = at % n_nodes;
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
