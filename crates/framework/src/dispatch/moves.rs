//! Which queues had tasks placed or removed in a session, for whoever keeps them in order. Of each
//! queue the last move counts, so that many moves of few queues are few entries. Specification:
//! actions.md 12.2 S17.

use rustc_hash::FxHashSet;
use vc_model::QueueId;

/// Entries beyond two for each queue, so that few queues are not sifted often.
const SPARE: usize = 64;

/// The moves of a session by number, from 1.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// In order; of each queue the last one, and some before.
    kept: Vec<(u64, QueueId)>,
    n_moves: u64,
    /// With more entries they are sifted.
    n_most: usize,
}

impl Moves {
    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.n_moves = 0;
    }

    /// So many tasks were placed or removed.
    pub(super) fn n_moves(&self) -> u64 {
        self.n_moves
    }

    pub(super) fn note(&mut self, queue: QueueId) {
        self.n_moves += 1;
        match self.kept.last_mut() {
            Some((number, last)) if *last == queue => *number = self.n_moves,
            _ => self.kept.push((self.n_moves, queue)),
        }
        if self.n_most < self.kept.len() {
            self.sift();
        }
    }

    /// The queues of all moves after this one, each at least once.
    pub(super) fn since(&self, number: u64) -> impl Iterator<Item = QueueId> {
        let later = self.kept.iter().rev().take_while(move |(other, _)| number < *other);
        later.map(|&(_, queue)| queue)
    }

    /// Leaves the last entry of each queue. As many more must come before the next time.
    fn sift(&mut self) {
        let mut seen = FxHashSet::default();
        self.kept.reverse();
        self.kept.retain(|&(_, queue)| seen.insert(queue));
        self.kept.reverse();
        self.n_most = 2 * self.kept.len() + SPARE;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use vc_model::Id;

    use super::*;

    #[test]
    fn moves_tell_what_moved_since_any_time() {
        let mut moves = Moves::default();
        let mut all: Vec<QueueId> = Vec::new();
        for number in 0_u32..3_000 {
            // Long runs of one queue, and every queue again and again.
            let queue = QueueId::new(number / 7 % 40 * (number % 3).min(1));
            moves.note(queue);
            all.push(queue);
            let told = |since: usize| moves.since(since as u64).collect::<BTreeSet<_>>();
            let first = (number as usize * 31) % all.len();
            assert_eq!(told(first), all[first..].iter().copied().collect(), "{number}");
            assert_eq!(told(all.len() - 1), BTreeSet::from([queue]), "{number}");
            assert!(moves.kept.len() <= 2 * 40 + SPARE, "{} entries", moves.kept.len());
        }
        assert_eq!(moves.n_moves(), 3_000);
        moves.clear();
        assert_eq!((moves.n_moves(), moves.since(0).count()), (0, 0));
    }
}
