//! Writes that the API server has refused: each is repeated after 1 s, doubling to 1 min, and at
//! once when something else is to be written. Specification: core.md 7.2.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// First and longest pause.
pub(crate) const FIRST: Duration = Duration::from_secs(1);
pub(crate) const LONGEST: Duration = Duration::from_secs(60);
/// Rows at which those whose pause is long over are removed.
const MANY: usize = 1024;

/// The pause after the next refusal in a row.
pub(crate) fn next(pause: Duration) -> Duration {
    (pause * 2).clamp(FIRST, LONGEST)
}

/// The refused writes by what they change. `D` says what was decided: a write that decides
/// something else does not pause.
#[derive(Debug)]
pub(crate) struct Pauses<K, D> {
    rows: BTreeMap<K, WritePause<D>>,
    /// Rows at which the next sweep is due.
    limit: usize,
}

#[derive(Debug)]
struct WritePause<D> {
    decision: D,
    pause: Duration,
    until: Instant,
}

impl<K, D> Default for Pauses<K, D> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), limit: MANY }
    }
}

impl<K: Ord, D: PartialEq> Pauses<K, D> {
    /// A write was refused.
    pub(crate) fn refused(&mut self, key: K, decision: D, now: Instant) {
        let before = self.rows.remove(&key).filter(|row| row.decision == decision);
        let pause = before.map_or(FIRST, |row| next(row.pause));
        self.rows.insert(key, WritePause { decision, pause, until: now + pause });
        if self.limit <= self.rows.len() {
            self.rows.retain(|_, row| now < row.until + LONGEST);
            self.limit = MANY.max(2 * self.rows.len());
        }
    }

    /// A write has succeeded.
    pub(crate) fn accepted(&mut self, key: &K) {
        if !self.rows.is_empty() {
            self.rows.remove(key);
        }
    }

    /// The object has changed: what was refused may be accepted now.
    pub(crate) fn forget(&mut self, key: &K) {
        self.rows.remove(key);
    }

    /// Until when such a write pauses; `None`: it may be sent.
    pub(crate) fn until(&self, key: &K, decision: &D, now: Instant) -> Option<Instant> {
        let row = self.rows.get(key).filter(|row| row.decision == *decision)?;
        (now < row.until).then_some(row.until)
    }

    /// Returns the number of writes that were refused lately.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// True: no write was refused lately.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_a_minute_and_begin_anew() {
        let (mut pauses, start) = (Pauses::default(), Instant::now());
        let mut seconds = |decision: &'static str| {
            pauses.refused("a", decision, start);
            assert_eq!(pauses.until(&"a", &"other", start), None, "another decision");
            assert_eq!(pauses.until(&"b", &decision, start), None, "another object");
            let until = pauses.until(&"a", &decision, start).unwrap();
            assert_eq!(pauses.until(&"a", &decision, until), None, "it is over");
            (until - start).as_secs()
        };
        let doubled: Vec<u64> = (0..8).map(|_| seconds("x")).collect();
        assert_eq!(doubled, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!([seconds("y"), seconds("y"), seconds("x")], [1, 2, 1]);
        pauses.accepted(&"a");
        assert!(pauses.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_long_over_is_forgotten() {
        let (mut pauses, start) = (Pauses::default(), Instant::now());
        for number in 0..10_000_u64 {
            pauses.refused(number, (), start + Duration::from_secs(number));
        }
        assert!(pauses.rows.len() <= MANY, "{}", pauses.rows.len());
    }
}
