//! The order in which the nodes of a victim index are tried for a task: by group, score and name.
//! Only changed nodes are ranked again. Nothing is sorted, since the first node mostly succeeds.
//!
//! Exact because:
//! - groups and scores are those of the node score cache, which the engine's tests compare with the
//!   plain evaluator;
//! - scores are normalised among the open nodes of the index (S4), which stay the same, so that
//!   only changed nodes get new scores.
//!
//! Specification: actions.md 6.6 step 1, 12.2 S4, S5.

use crate::node_score_cache::node_tournament::{DroppedCandidate, NodeTournament};

/// The nodes that are worth trying, as a tournament.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    tournament: NodeTournament,
    /// Positions that changed since the last ranking.
    outdated: Vec<usize>,
    /// Nodes that were taken out since the last ranking.
    taken: Vec<DroppedCandidate>,
}

impl Ranking {
    /// Marks a position as changed.
    pub(super) fn outdate(&mut self, place: usize) {
        self.outdated.push(place);
    }

    /// Puts taken nodes back and takes over current groups and scores; `result` gives those of a
    /// position.
    pub(super) fn follow(&mut self, n_nodes: usize, result: impl Fn(usize) -> (u8, f64)) {
        self.taken.drain(..).for_each(|taken| self.tournament.put_back(taken));
        let outdated = std::mem::take(&mut self.outdated);
        if self.is_known() {
            outdated.into_iter().for_each(|at| self.set(at, result(at)));
            return;
        }
        self.tournament = NodeTournament::new(n_nodes);
        (0..n_nodes).for_each(|at| self.set(at, result(at)));
    }

    fn set(&mut self, at: usize, (group, score): (u8, f64)) {
        self.tournament.set(at, group, score);
    }

    /// Takes out the best node that is left and returns its position. Returns `None` if none is
    /// left.
    pub(super) fn take_best(&mut self) -> Option<usize> {
        let at = self.tournament.best()?;
        self.taken.push(self.tournament.take_out(at));
        Some(at)
    }

    /// True if the nodes were ranked before.
    fn is_known(&self) -> bool {
        !self.tournament.groups().is_empty()
    }

    /// Returns roughly the bytes in memory.
    pub(super) fn n_bytes(&self) -> usize {
        self.tournament.n_bytes()
            + self.outdated.capacity() * size_of::<usize>()
            + self.taken.capacity() * size_of::<DroppedCandidate>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::node_score_cache::node_tournament::NONE;

    proptest! {
        #[test]
        fn places_are_taken_in_order_each_time(
            scores in prop::collection::vec((0..3_u8, 0..9_i8), 1..90),
            victim_indexes in prop::collection::vec((0..90_usize, (0..3_u8, 0..9_i8), 0..90_usize), 1..9),
        ) {
            let known = |(group, score): (u8, i8)| match group {
                2 => (NONE, 0.0),
                _ => (group, f64::from(score)),
            };
            let mut now: Vec<(u8, f64)> = scores.into_iter().map(known).collect();
            let mut ranking = Ranking::default();
            for (changed, result, n_taken) in victim_indexes {
                let changed = changed % now.len();
                now[changed] = known(result);
                ranking.outdate(changed);
                ranking.follow(now.len(), |at| now[at]);
                let mut all: Vec<usize> = (0..now.len()).filter(|&at| now[at].0 != NONE).collect();
                all.sort_by(|&l, &r| {
                    now[l].0.cmp(&now[r].0).then(now[r].1.total_cmp(&now[l].1)).then(l.cmp(&r))
                });
                all.truncate(n_taken);
                let taken: Vec<usize> = (0..n_taken).map_while(|_| ranking.take_best()).collect();
                prop_assert_eq!(taken, all);
            }
        }
    }
}
