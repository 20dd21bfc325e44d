//! The best node of a class, as a tournament between blocks of nodes. A changed node costs its
//! block and the rounds above it. A class with few tasks costs little more than one look at each
//! node.
//!
//! Exact because:
//! - the order (group, score, name) is total, and a node's position is that of its name;
//! - the tests below compare with a scan.
//!
//! Specification: actions.md 12.2 S5.

use std::ops::Range;

use vc_model::TournamentTree;

/// Group of a node that is not a candidate.
pub(crate) const NONE: u8 = u8::MAX;

/// Number of nodes in a block of batched computation.
pub(crate) const BLOCK: usize = 128;

/// Number of nodes in a block of the tournament.
const TEAM: usize = 16;

/// The candidates by position. The first group that has one wins, then the highest score, then the
/// lowest position.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeTournament {
    groups: Vec<u8>,
    scores: Vec<f64>,
    /// The winners of the blocks.
    winners: TournamentTree<BlockWinner>,
    is_outdated: Vec<bool>,
    /// The blocks for which `is_outdated` is true.
    outdated: Vec<u32>,
}

/// The best candidate of a block with its sort key. The group [`NONE`] means that the block has no
/// candidate.
#[derive(Clone, Copy, Debug)]
struct BlockWinner {
    position: u32,
    group: u8,
    score: f64,
}

/// A candidate that was taken out, for [`NodeTournament::put_back`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct DroppedCandidate(BlockWinner);

impl NodeTournament {
    /// Creates a tournament of `n_nodes` nodes without candidates.
    pub(crate) fn new(n_nodes: usize) -> Self {
        let n_blocks = n_nodes.div_ceil(TEAM);
        Self {
            groups: vec![NONE; n_nodes],
            scores: vec![0.0; n_nodes],
            winners: TournamentTree::new(n_blocks),
            is_outdated: vec![false; n_blocks],
            outdated: Vec::with_capacity(n_blocks),
        }
    }

    pub(crate) fn n_bytes(&self) -> usize {
        size_of_val(&*self.groups)
            + size_of_val(&*self.scores)
            + self.winners.n_bytes()
            + size_of_val(&*self.is_outdated)
            + self.outdated.capacity() * size_of::<u32>()
    }

    /// Returns the position ranges of the blocks of [`BLOCK`] nodes.
    pub(crate) fn ranges(n_nodes: usize) -> impl Iterator<Item = Range<usize>> {
        (0..n_nodes).step_by(BLOCK).map(move |start| start..n_nodes.min(start + BLOCK))
    }

    pub(crate) fn group(&self, position: usize) -> u8 {
        self.groups[position]
    }

    pub(crate) fn groups(&self) -> &[u8] {
        &self.groups
    }

    /// Returns groups and scores of all positions for writing, and marks every block as outdated.
    pub(crate) fn all_mut(&mut self) -> (&mut [u8], &mut [f64]) {
        self.is_outdated.fill(true);
        self.outdated.clear();
        self.outdated.extend(0..self.is_outdated.len() as u32);
        (&mut self.groups, &mut self.scores)
    }

    pub(crate) fn score(&self, position: usize) -> f64 {
        self.scores[position]
    }

    /// Replaces group and score of one node.
    pub(crate) fn set(&mut self, position: usize, group: u8, score: f64) {
        self.groups[position] = group;
        self.scores[position] = score;
        let block = position / TEAM;
        if !std::mem::replace(&mut self.is_outdated[block], true) {
            self.outdated.push(block as u32);
        }
    }

    /// Takes a candidate out. [`NodeTournament::put_back`] reverts it.
    pub(crate) fn take_out(&mut self, position: usize) -> DroppedCandidate {
        let (group, score) = (self.groups[position], self.scores[position]);
        self.set(position, NONE, 0.0);
        DroppedCandidate(BlockWinner { position: position as u32, group, score })
    }

    /// Puts a candidate back that [`NodeTournament::take_out`] returned.
    pub(crate) fn put_back(&mut self, DroppedCandidate(dropped): DroppedCandidate) {
        self.set(dropped.position as usize, dropped.group, dropped.score);
    }

    /// Returns the position of the best candidate. Returns `None` if there is no candidate.
    pub(crate) fn best(&mut self) -> Option<usize> {
        if !self.outdated.is_empty() {
            self.play();
        }
        let best = self.winners.first();
        (best.group != NONE).then_some(best.position as usize)
    }

    /// Returns the position of the best candidate that passes. Only candidates that are better than the best one so
    /// far are checked. Returns `None` if none passes.
    pub(crate) fn best_passing(&self, passes: impl Fn(usize) -> bool) -> Option<usize> {
        let mut best = BlockWinner::default();
        for (at, (&group, &score)) in self.groups.iter().zip(&self.scores).enumerate() {
            let next = BlockWinner { position: at as u32, group, score };
            if next.is_better(best) && passes(at) {
                best = next;
            }
        }
        (best.group != NONE).then_some(best.position as usize)
    }

    /// Computes the winners of the blocks that changed, and the rounds above them.
    fn play(&mut self) {
        let Self { groups, scores, winners, is_outdated, outdated } = self;
        let changed = outdated.drain(..).map(|block| {
            is_outdated[block as usize] = false;
            (block as usize, winner(groups, scores, block as usize))
        });
        winners.set_all(changed, BlockWinner::is_better);
    }
}

/// Returns the best candidate of a block.
fn winner(groups: &[u8], scores: &[f64], block: usize) -> BlockWinner {
    let start = block * TEAM;
    let range = start..groups.len().min(start + TEAM);
    let results = groups[range.clone()].iter().zip(&scores[range]);
    let mut winner = BlockWinner::default();
    for (position, (&group, &score)) in (start as u32..).zip(results) {
        let next = BlockWinner { position, group, score };
        if next.is_better(winner) {
            winner = next;
        }
    }
    winner
}

impl Default for BlockWinner {
    fn default() -> Self {
        Self { position: 0, group: NONE, score: f64::INFINITY }
    }
}

impl BlockWinner {
    /// True if `self` beats a winner at an earlier position.
    fn is_better(self, earlier: Self) -> bool {
        self.group < earlier.group || (self.group == earlier.group && earlier.score < self.score)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_candidates_there_is_no_best() {
        assert_eq!(NodeTournament::new(0).best(), None);
        assert_eq!(NodeTournament::new(300).best(), None);
    }

    proptest! {
        #[test]
        fn the_best_is_that_of_a_scan(
            n_nodes in 1..400usize,
            results in prop::collection::vec((0..400usize, 0..4u8, 0..5i8), 0..60),
        ) {
            let mut tournament = NodeTournament::new(n_nodes);
            let mut plain = vec![(NONE, 0.0); n_nodes];
            for (position, group, score) in results {
                let (position, score) = (position % n_nodes, f64::from(score));
                let group = if group == 3 { NONE } else { group };
                tournament.set(position, group, score);
                plain[position] = (group, score);
                let best_of = |passes: fn(usize) -> bool| {
                    let of_all = (0..n_nodes).filter(|&at| plain[at].0 != NONE && passes(at));
                    of_all.reduce(|best, next| {
                        let (l, r) = (plain[best], plain[next]);
                        if r.0 < l.0 || (r.0 == l.0 && l.1 < r.1) { next } else { best }
                    })
                };
                let best = best_of(|_| true);
                prop_assert_eq!(tournament.best(), best);
                let passes = |at: usize| at % 3 == 1;
                prop_assert_eq!(tournament.best_passing(passes), best_of(passes));
                let mut dropped = Vec::new();
                while let Some(next) = tournament.best().filter(|_| dropped.len() < 5) {
                    dropped.push(tournament.take_out(next));
                }
                dropped.into_iter().rev().for_each(|next| tournament.put_back(next));
                prop_assert_eq!(tournament.best(), best, "all are back");
            }
        }
    }
}
