//! A tournament tree: a complete binary tree that keeps the winner of every match. After some of
//! its entries changed, it finds the first entry again with few comparisons. Specification:
//! actions.md 12.2 (S5: best node without sorting, S17: order of queues).

/// `set_all` plays every match again if more than one leaf in [`MANY`] changes.
const MANY: usize = 8;

/// Entries at leaves that are numbered from 0, and the winner of every match between them. The
/// default of `T` stands for a leaf without an entry; it must lose against every entry.
///
/// Exact because
/// - the callers' `is_before` is a total order,
/// - a match is played again whenever one of its two entries changes.
#[derive(Clone, Debug)]
pub struct TournamentTree<T> {
    /// Winners by match. The winners of matches `2 * at` and `2 * at + 1` play match `at`; the
    /// final is match 1. The second half of the list holds the leaves.
    winners: Vec<T>,
}

impl<T: Copy + Default> Default for TournamentTree<T> {
    fn default() -> Self {
        Self::new(1)
    }
}

impl<T: Copy + Default> TournamentTree<T> {
    /// Returns a tree without entries that has at least `n_leaves` leaves.
    pub fn new(n_leaves: usize) -> Self {
        Self { winners: vec![T::default(); 2 * n_leaves.next_power_of_two()] }
    }

    /// Returns the entry of the leaf, or the default if the leaf has none.
    pub fn entry(&self, leaf: usize) -> T {
        self.winners.get(self.n_leaves() + leaf).copied().unwrap_or_default()
    }

    /// Returns the first entry by the order of `is_before`, or the default if there is no entry.
    pub fn first(&self) -> T {
        self.winners.get(1).copied().unwrap_or_default()
    }

    /// Returns the memory of the matches in bytes.
    pub fn n_bytes(&self) -> usize {
        size_of_val(&*self.winners)
    }

    /// Sets the entry of the leaf, with one match per level of the tree. The tree is enlarged if it
    /// has no such leaf. `is_before(later, earlier)` is true if the entry of the later leaf
    /// precedes the entry of the earlier leaf.
    pub fn set(&mut self, leaf: usize, entry: T, is_before: impl Fn(T, T) -> bool) {
        if self.n_leaves() <= leaf {
            self.enlarge(leaf + 1, &is_before);
        }
        let mut at = self.n_leaves() + leaf;
        self.winners[at] = entry;
        while 1 < at {
            at /= 2;
            self.play(at, &is_before);
        }
    }

    /// Sets the entries of several leaves, all of which must exist. If more than one leaf
    /// in `MANY` changes, every match is played once.
    pub fn set_all(
        &mut self,
        entries: impl ExactSizeIterator<Item = (usize, T)>,
        is_before: impl Fn(T, T) -> bool,
    ) {
        let n_leaves = self.n_leaves();
        if MANY * entries.len() <= n_leaves {
            entries.for_each(|(leaf, entry)| self.set(leaf, entry, &is_before));
            return;
        }
        entries.for_each(|(leaf, entry)| self.winners[n_leaves + leaf] = entry);
        (1..n_leaves).rev().for_each(|at| self.play(at, &is_before));
    }

    fn n_leaves(&self) -> usize {
        self.winners.len() / 2
    }

    /// Enlarges the tree to the next power of two, and plays every match again. The number of
    /// leaves at least doubles, so the amortized cost per added leaf is constant.
    fn enlarge(&mut self, n_leaves: usize, is_before: &impl Fn(T, T) -> bool) {
        let entries = self.winners.split_off(self.n_leaves());
        *self = Self::new(n_leaves);
        let n_leaves = self.n_leaves();
        self.winners[n_leaves..][..entries.len()].copy_from_slice(&entries);
        (1..n_leaves).rev().for_each(|at| self.play(at, is_before));
    }

    fn play(&mut self, at: usize, is_before: &impl Fn(T, T) -> bool) {
        let (earlier, later) = (self.winners[2 * at], self.winners[2 * at + 1]);
        self.winners[at] = if is_before(later, earlier) { later } else { earlier };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The smallest key is first. Of equal keys the one of the lowest leaf is first.
    fn is_before(later: Option<u8>, earlier: Option<u8>) -> bool {
        later.is_some_and(|later| earlier.is_none_or(|earlier| later < earlier))
    }

    #[test]
    fn a_tree_without_entries_has_no_first() {
        assert_eq!(TournamentTree::<Option<u8>>::default().first(), None);
        assert_eq!(TournamentTree::<Option<u8>>::new(0).entry(7), None);
    }

    proptest! {
        #[test]
        fn allocate_turns_the_winner_is_the_first_of_all(
            rounds in prop::collection::vec(
                prop::collection::vec((0..70_usize, prop::option::of(0..5_u8)), 0..20),
                0..20,
            ),
        ) {
            let (mut one_by_one, mut at_once) = (TournamentTree::default(), TournamentTree::new(70));
            let mut plain = [None; 70];
            for round in rounds {
                at_once.set_all(round.iter().copied(), is_before);
                for (leaf, entry) in round {
                    one_by_one.set(leaf, entry, is_before);
                    plain[leaf] = entry;
                }
                let first = plain.iter().flatten().min().copied();
                prop_assert_eq!((one_by_one.first(), at_once.first()), (first, first));
                prop_assert!((0..70).all(|leaf| one_by_one.entry(leaf) == plain[leaf]));
            }
        }
    }
}
