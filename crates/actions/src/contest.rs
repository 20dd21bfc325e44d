//! The first of many queues, found again with a few comparisons when some of them have changed.
//! Specification: actions.md 4.1, 12.2 S17.

use std::collections::BTreeMap;

use vc_model::QueueId;

/// A knockout: each queue has a seat, each match is won by the one that goes first, and only the
/// matches of a queue that changed are played again. Exact for an order that is total.
#[derive(Debug, Default)]
pub(crate) struct Contest {
    /// Seats stay with their queues, also while these do not take part.
    seats: BTreeMap<QueueId, usize>,
    /// The winner of match `at` between the winners of `2 * at` and `2 * at + 1`; the final is match
    /// 1, and the seats are the last half.
    winners: Vec<Option<QueueId>>,
}

impl Contest {
    /// Whether it has a seat.
    pub(crate) fn knows(&self, queue: QueueId) -> bool {
        self.seats.contains_key(&queue)
    }

    /// The queue stands elsewhere, joins or leaves.
    pub(crate) fn renew(
        &mut self,
        queue: QueueId,
        takes_part: bool,
        is_before: impl Fn(QueueId, QueueId) -> bool,
    ) {
        if !takes_part && !self.knows(queue) {
            return;
        }
        let n_seated = self.seats.len();
        let seat = *self.seats.entry(queue).or_insert(n_seated);
        if self.winners.len() < 2 * self.seats.len() {
            self.enlarge(&is_before);
        }
        let at = self.winners.len() / 2 + seat;
        self.winners[at] = takes_part.then_some(queue);
        self.play_up_from(at, &is_before);
    }

    pub(crate) fn first(&self) -> Option<QueueId> {
        self.winners.get(1).copied().flatten()
    }

    /// Twice the seats: playing all matches again is paid for by those who joined since.
    fn enlarge(&mut self, is_before: &impl Fn(QueueId, QueueId) -> bool) {
        let taken = self.winners.split_off(self.winners.len() / 2);
        let n_seats = (2 * taken.len()).max(1);
        self.winners = vec![None; n_seats];
        self.winners.extend(taken);
        self.winners.resize(2 * n_seats, None);
        (1..n_seats).rev().for_each(|at| self.play(at, is_before));
    }

    fn play_up_from(&mut self, seat: usize, is_before: &impl Fn(QueueId, QueueId) -> bool) {
        let mut at = seat / 2;
        while 0 < at {
            self.play(at, is_before);
            at /= 2;
        }
    }

    fn play(&mut self, at: usize, is_before: &impl Fn(QueueId, QueueId) -> bool) {
        self.winners[at] = match (self.winners[2 * at], self.winners[2 * at + 1]) {
            (Some(l), Some(r)) => Some(if is_before(r, l) { r } else { l }),
            (l, r) => l.or(r),
        };
    }
}

#[cfg(test)]
mod tests {
    use vc_model::Id;

    use super::*;

    /// Numbers that look random (splitmix64).
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
    }

    #[test]
    fn allocate_turns_the_winner_is_the_first_of_all() {
        let mut contest = Contest::default();
        assert_eq!(contest.first(), None);
        let mut keys: BTreeMap<QueueId, u64> = BTreeMap::new();
        let mut state = 1;
        for step in 0..5_000 {
            let queue = QueueId::new(u32::try_from(next(&mut state) % (1 + step / 20)).unwrap());
            let joins = !next(&mut state).is_multiple_of(4);
            match joins {
                // Few keys, so that many are equal and the queue itself decides.
                true => keys.insert(queue, next(&mut state) % 5),
                false => keys.remove(&queue),
            };
            contest.renew(queue, joins, |l, r| (keys[&l], l) < (keys[&r], r));
            let first = keys.iter().map(|(&queue, &key)| (key, queue)).min();
            assert_eq!(contest.first(), first.map(|(_, queue)| queue), "step {step}");
        }
    }
}
