//! The order in which the nodes of a walk are tried for a task: by group, score and name. Only nodes
//! that changed are ranked again, and nobody sorts: the first one mostly is the place. Exact, because
//! groups and scores are those of the class memo, which the engine's tests compare with the plain
//! evaluator; and the candidates among whom they are normalised (S4) are the open nodes of the walk,
//! the same to the end, so that only the score of a node that changed is another one. Specification:
//! actions.md 6.6 step 1, 12.2 S4, S5.

use crate::fast::blocks::{Blocks, Dropped};

/// The nodes that are worth a try.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    blocks: Blocks,
    /// Places that changed since.
    outdated: Vec<usize>,
    /// Taken out, to be put back.
    taken: Vec<Dropped>,
}

impl Ranking {
    /// Something about a place is another.
    pub(super) fn outdate(&mut self, place: usize) {
        self.outdated.push(place);
    }

    /// Takes over groups and scores as they are now.
    pub(super) fn follow(&mut self, n_nodes: usize, result: impl Fn(usize) -> (u8, f64)) {
        self.taken.drain(..).for_each(|taken| self.blocks.put_back(taken));
        let outdated = std::mem::take(&mut self.outdated);
        if self.is_known() {
            outdated.into_iter().for_each(|at| self.set(at, result(at)));
            return;
        }
        self.blocks = Blocks::new(n_nodes);
        (0..n_nodes).for_each(|at| self.set(at, result(at)));
    }

    fn set(&mut self, at: usize, (group, score): (u8, f64)) {
        self.blocks.set(at, group, score);
    }

    /// The best of those that were not taken yet.
    pub(super) fn take_best(&mut self) -> Option<usize> {
        let at = self.blocks.best()?;
        self.taken.push(self.blocks.take_out(at));
        Some(at)
    }

    /// Whether there is an order.
    pub(super) fn is_known(&self) -> bool {
        !self.blocks.groups().is_empty()
    }

    /// The place that was taken last is not put back before it is outdated.
    pub(super) fn drop_taken(&mut self, place: usize) {
        self.taken.pop_if(|taken| taken.position() == place);
        self.blocks.take_out(place);
    }

    /// About.
    pub(super) fn n_bytes(&self) -> usize {
        self.blocks.n_bytes()
            + self.outdated.capacity() * size_of::<usize>()
            + self.taken.capacity() * size_of::<Dropped>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fast::blocks::NONE;

    proptest! {
        #[test]
        fn places_are_taken_in_order_each_time(
            scores in prop::collection::vec((0..3_u8, 0..9_i8), 1..90),
            walks in prop::collection::vec((0..90_usize, (0..3_u8, 0..9_i8), 0..90_usize), 1..9),
        ) {
            let known = |(group, score): (u8, i8)| match group {
                2 => (NONE, 0.0),
                _ => (group, f64::from(score)),
            };
            let mut now: Vec<(u8, f64)> = scores.into_iter().map(known).collect();
            let mut ranking = Ranking::default();
            for (changed, result, n_taken) in walks {
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
