//! The order in which the nodes of a walk are tried for a task: by group, score and name. Only nodes
//! that changed are ranked again, and nobody sorts: the first one mostly is the place. Exact, because
//! groups and scores are those of the class memo, which the engine's tests compare with the plain
//! evaluator; and the candidates among whom they are normalised (S4) are the open nodes of the walk,
//! the same to the end, so that only the score of a node that changed is another one. Specification:
//! actions.md 6.6 step 1, 12.2 S4, S5.

use std::cmp::Ordering;

use crate::fast::blocks::{Blocks, NONE};

/// One in so many nodes at most is taken out one by one; then the rest is sorted.
const MOST_TAKEN: usize = 16;

/// The nodes that are worth a try.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    blocks: Blocks,
    /// Places that changed since.
    outdated: Vec<usize>,
    /// Taken out, to be put back.
    taken: Vec<Place>,
    /// What is left after many were taken, the first one last; `None`: they are taken one by one.
    rest: Option<Vec<Place>>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    at: usize,
    group: u8,
    score: f64,
}

impl Place {
    fn order(&self, other: &Self) -> Ordering {
        let by_score = other.score.partial_cmp(&self.score).unwrap_or(Ordering::Equal);
        self.group.cmp(&other.group).then(by_score).then(self.at.cmp(&other.at))
    }
}

impl Ranking {
    /// Something about a place is another.
    pub(super) fn outdate(&mut self, place: usize) {
        self.outdated.push(place);
    }

    /// Takes over groups and scores as they are now.
    pub(super) fn follow(&mut self, n_nodes: usize, result: impl Fn(usize) -> (u8, f64)) {
        self.put_back();
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

    /// All are to be tried again.
    fn put_back(&mut self) {
        self.rest = None;
        for Place { at, group, score } in std::mem::take(&mut self.taken) {
            self.blocks.set(at, group, score);
        }
    }

    /// The best of those that were not taken yet.
    pub(super) fn take_best(&mut self) -> Option<usize> {
        if self.rest.is_none() && self.blocks.groups().len() < MOST_TAKEN * self.taken.len() {
            self.rest = Some(self.sorted());
        }
        if let Some(rest) = &mut self.rest {
            return rest.pop().map(|place| place.at);
        }
        let at = self.blocks.best()?;
        self.taken.push(self.place(at));
        self.blocks.set(at, NONE, 0.0);
        Some(at)
    }

    /// Whether there is an order.
    pub(super) fn is_known(&self) -> bool {
        !self.blocks.groups().is_empty()
    }

    /// The place that was taken last is not put back before it is outdated.
    pub(super) fn drop_taken(&mut self, place: usize) {
        self.taken.pop_if(|taken| taken.at == place);
        self.blocks.set(place, NONE, 0.0);
    }

    /// About.
    pub(super) fn n_bytes(&self) -> usize {
        let n_places = self.taken.capacity() + self.rest.as_ref().map_or(0, Vec::capacity);
        self.blocks.n_bytes()
            + self.outdated.capacity() * size_of::<usize>()
            + n_places * size_of::<Place>()
    }

    fn place(&self, at: usize) -> Place {
        Place { at, group: self.blocks.group(at), score: self.blocks.score(at) }
    }

    fn sorted(&self) -> Vec<Place> {
        let groups = self.blocks.groups();
        let left = (0..groups.len()).filter(|&at| groups[at] != NONE);
        let mut left: Vec<Place> = left.map(|at| self.place(at)).collect();
        left.sort_unstable_by(|l, r| r.order(l));
        left
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
                let place = |at: usize| Place { at, group: now[at].0, score: now[at].1 };
                let mut all: Vec<Place> = (0..now.len()).map(place).collect();
                all.retain(|place| place.group != NONE);
                all.sort_by(Place::order);
                let expected: Vec<usize> = all.iter().take(n_taken).map(|it| it.at).collect();
                let taken: Vec<usize> = (0..n_taken).map_while(|_| ranking.take_best()).collect();
                prop_assert_eq!(taken, expected);
            }
        }
    }
}
