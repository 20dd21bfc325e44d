//! The best node of each block of nodes: a node that changes costs its block, the best of all costs
//! as many comparisons as there are blocks, and nothing is built that a class of few tasks would not
//! pay for. Exact, because the order (group, score, name) is total: a node's position is that of its
//! name. Tested here against a scan. Specification: actions.md 12.2 S5.

use std::ops::Range;

/// Group of a node that is no candidate.
pub(crate) const NONE: u8 = u8::MAX;

/// Nodes of a block.
pub(crate) const BLOCK: usize = 128;

/// The candidates by position. The first group that has one wins, then the highest score, then the
/// lowest position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    groups: Vec<u8>,
    scores: Vec<f64>,
    /// Of each block; any node where there is none.
    winners: Vec<u32>,
    is_outdated: Vec<bool>,
}

/// A candidate that is none for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropped {
    position: u32,
    group: u8,
    score: f64,
}

impl Blocks {
    /// Of so many nodes, none of which is a candidate.
    pub(crate) fn new(n_nodes: usize) -> Self {
        let n_blocks = n_nodes.div_ceil(BLOCK);
        Self {
            groups: vec![NONE; n_nodes],
            scores: vec![0.0; n_nodes],
            winners: vec![0; n_blocks],
            is_outdated: vec![true; n_blocks],
        }
    }

    /// The ranges of positions that are blocks.
    pub(crate) fn ranges(n_nodes: usize) -> impl Iterator<Item = Range<usize>> {
        (0..n_nodes).step_by(BLOCK).map(move |start| start..n_nodes.min(start + BLOCK))
    }

    pub(crate) fn group(&self, position: usize) -> u8 {
        self.groups[position]
    }

    pub(crate) fn groups(&self) -> &[u8] {
        &self.groups
    }

    /// Groups and scores of all positions, for results that are others throughout.
    pub(crate) fn all_mut(&mut self) -> (&mut [u8], &mut [f64]) {
        self.is_outdated.fill(true);
        (&mut self.groups, &mut self.scores)
    }

    pub(crate) fn score(&self, position: usize) -> f64 {
        self.scores[position]
    }

    /// Another result for one node.
    pub(crate) fn set(&mut self, position: usize, group: u8, score: f64) {
        self.groups[position] = group;
        self.scores[position] = score;
        self.is_outdated[position / BLOCK] = true;
    }

    /// Takes a candidate out that is the best; for [`Blocks::put_back`].
    pub(crate) fn drop_best(&mut self, position: usize) -> Dropped {
        let (group, score) = (self.groups[position], self.scores[position]);
        self.set(position, NONE, 0.0);
        Dropped { position: position as u32, group, score }
    }

    /// Takes [`Blocks::drop_best`] back, of those that were dropped since the last change the last
    /// one first: each was the winner of its block.
    pub(crate) fn put_back(&mut self, dropped: Dropped) {
        let position = dropped.position as usize;
        (self.groups[position], self.scores[position]) = (dropped.group, dropped.score);
        self.winners[position / BLOCK] = dropped.position;
        self.is_outdated[position / BLOCK] = false;
    }

    /// Position of the best candidate.
    pub(crate) fn best(&mut self) -> Option<usize> {
        let mut best: Option<usize> = None;
        for block in 0..self.winners.len() {
            if std::mem::take(&mut self.is_outdated[block]) {
                self.winners[block] = self.winner(block) as u32;
            }
            let winner = self.winners[block] as usize;
            if self.groups[winner] != NONE && best.is_none_or(|best| self.is_better(winner, best)) {
                best = Some(winner);
            }
        }
        best
    }

    fn winner(&self, block: usize) -> usize {
        let start = block * BLOCK;
        let range = start..self.groups.len().min(start + BLOCK);
        let groups = &self.groups[range.clone()];
        let scores = &self.scores[range][..groups.len()];
        let first = groups.iter().fold(NONE, |first, &group| first.min(group));
        let mut best = groups.iter().position(|&group| group == first).unwrap_or(0);
        let mut highest = scores[best];
        for at in best + 1..groups.len() {
            if groups[at] == first && highest < scores[at] {
                (best, highest) = (at, scores[at]);
            }
        }
        start + best
    }

    fn is_better(&self, l: usize, r: usize) -> bool {
        let (of_l, of_r) = (self.groups[l], self.groups[r]);
        of_l < of_r || (of_l == of_r && self.scores[r] < self.scores[l])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_candidates_there_is_no_best() {
        assert_eq!(Blocks::new(0).best(), None);
        assert_eq!(Blocks::new(300).best(), None);
    }

    proptest! {
        #[test]
        fn the_best_is_that_of_a_scan(
            n_nodes in 1..400usize,
            results in prop::collection::vec((0..400usize, 0..4u8, 0..5i8), 0..60),
        ) {
            let mut blocks = Blocks::new(n_nodes);
            let mut plain = vec![(NONE, 0.0); n_nodes];
            for (position, group, score) in results {
                let (position, score) = (position % n_nodes, f64::from(score));
                let group = if group == 3 { NONE } else { group };
                blocks.set(position, group, score);
                plain[position] = (group, score);
                let candidates = (0..n_nodes).filter(|&at| plain[at].0 != NONE);
                let best = candidates.reduce(|best, next| {
                    let (l, r) = (plain[best], plain[next]);
                    if r.0 < l.0 || (r.0 == l.0 && l.1 < r.1) { next } else { best }
                });
                prop_assert_eq!(blocks.best(), best);
                let mut dropped = Vec::new();
                while let Some(next) = blocks.best().filter(|_| dropped.len() < 5) {
                    dropped.push(blocks.drop_best(next));
                }
                dropped.into_iter().rev().for_each(|next| blocks.put_back(next));
                prop_assert_eq!(blocks.best(), best, "all are back");
            }
        }
    }
}
