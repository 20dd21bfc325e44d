//! The tournament of the nodes: the best one in no time, another score in log N. Exact, because
//! the order (group, score, name) is total: a node's position is that of its name. Specification:
//! actions.md 12.2 S5.

/// Group of a node that is no candidate.
pub(super) const NONE: u8 = u8::MAX;

/// The candidates by position. The first group that has one wins, then the highest score, then the
/// lowest position.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    groups: Vec<u8>,
    scores: Vec<f64>,
    /// Winner of each match, the final at 1; a power of two of leaves, missing ones lose.
    winners: Vec<u32>,
    n_leaves: usize,
}

impl Tree {
    /// Of so many nodes, none of which is a candidate.
    pub(super) fn new(n_nodes: usize) -> Self {
        let n_leaves = n_nodes.next_power_of_two();
        let mut tree = Self {
            groups: vec![NONE; n_nodes],
            scores: vec![0.0; n_nodes],
            winners: vec![0; 2 * n_leaves],
            n_leaves,
        };
        tree.play_all();
        tree
    }

    pub(super) fn group(&self, position: usize) -> u8 {
        self.groups[position]
    }

    pub(super) fn score(&self, position: usize) -> f64 {
        self.scores[position]
    }

    /// Enters a result without playing; [`Tree::play_all`] follows.
    pub(super) fn seed(&mut self, position: usize, group: u8, score: f64) {
        self.groups[position] = group;
        self.scores[position] = score;
    }

    /// Plays every match again.
    pub(super) fn play_all(&mut self) {
        for leaf in 0..self.n_leaves {
            self.winners[self.n_leaves + leaf] = leaf as u32;
        }
        for at in (1..self.n_leaves).rev() {
            self.winners[at] = self.winner(at);
        }
    }

    /// Another result for one node.
    pub(super) fn set(&mut self, position: usize, group: u8, score: f64) {
        self.seed(position, group, score);
        let mut at = (self.n_leaves + position) / 2;
        while 0 < at {
            self.winners[at] = self.winner(at);
            at /= 2;
        }
    }

    /// Position of the best candidate.
    pub(super) fn best(&self) -> Option<usize> {
        let first = *self.winners.get(1)? as usize;
        self.groups.get(first).is_some_and(|&group| group != NONE).then_some(first)
    }

    /// Of a match, the left player wherever the right one is not better.
    fn winner(&self, at: usize) -> u32 {
        let (left, right) = (self.winners[2 * at], self.winners[2 * at + 1]);
        match self.is_better(right as usize, left as usize) {
            true => right,
            false => left,
        }
    }

    fn is_better(&self, l: usize, r: usize) -> bool {
        let Some(&of_l) = self.groups.get(l) else { return false };
        let Some(&of_r) = self.groups.get(r) else { return true };
        of_l < of_r || (of_l == of_r && self.scores[r] < self.scores[l])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_tree_has_no_best() {
        assert_eq!(Tree::new(0).best(), None);
        assert_eq!(Tree::new(3).best(), None);
    }

    proptest! {
        #[test]
        fn the_best_is_that_of_a_scan(
            n_nodes in 1..40usize,
            results in prop::collection::vec((0..40usize, 0..4u8, 0..5i8), 0..60),
        ) {
            let mut tree = Tree::new(n_nodes);
            let mut plain = vec![(NONE, 0.0); n_nodes];
            for (position, group, score) in results {
                let (position, score) = (position % n_nodes, f64::from(score));
                let group = if group == 3 { NONE } else { group };
                tree.set(position, group, score);
                plain[position] = (group, score);
                let candidates = (0..n_nodes).filter(|&at| plain[at].0 != NONE);
                let best = candidates.reduce(|best, next| {
                    let (l, r) = (plain[best], plain[next]);
                    if r.0 < l.0 || (r.0 == l.0 && l.1 < r.1) { next } else { best }
                });
                prop_assert_eq!(tree.best(), best);
            }
        }
    }
}
