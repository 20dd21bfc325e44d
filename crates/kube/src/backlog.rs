//! How much waits to be written, for those who would only add to it: while many binds wait, a new
//! decision would wait behind them, and while the server is asked as much as it may be, its answers
//! can be looked at together. Specification: core.md 11 (when a cycle starts is free).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the rate of answers is counted.
const WINDOW: Duration = Duration::from_millis(100);
/// Of the requests in flight, so many may be answered before somebody looks: the others keep the
/// server busy.
const PART: f64 = 0.5;
/// Shortest and longest time in which nobody looks.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(25);

/// Counters that the engine, the writers and their threads share.
#[derive(Clone, Debug, Default)]
pub struct Backlog(Arc<BacklogCounters>);

#[derive(Debug, Default)]
struct BacklogCounters {
    n_binds: AtomicUsize,
    n_in_flight: AtomicUsize,
    n_answered: AtomicUsize,
    /// Writers that have more to write than may be in flight.
    n_pressed: AtomicUsize,
    pace: Mutex<AnswerPace>,
}

/// How fast the server answers.
#[derive(Debug, Default)]
struct AnswerPace {
    /// When it was counted last, and how many answers there were.
    counted: Option<(Instant, usize)>,
    per_second: Option<f64>,
}

impl Backlog {
    /// So many binds were decided.
    pub(crate) fn add(&self, n_binds: usize) {
        self.0.n_binds.fetch_add(n_binds, Ordering::Relaxed);
    }

    /// One bind has its place among the writes in flight.
    pub(crate) fn started(&self) {
        // One that nobody has added, as in a test, must not count as very many.
        let less = |n_waiting: usize| n_waiting.checked_sub(1);
        let _none = self.0.n_binds.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Binds that wait for a place.
    pub(crate) fn n_waiting(&self) -> usize {
        self.0.n_binds.load(Ordering::Relaxed)
    }

    /// How long nothing is lost when nobody looks whether the server has answered; `None`: somebody
    /// may wait for that.
    pub fn rest(&self, now: Instant) -> Option<Duration> {
        let BacklogCounters { n_in_flight, n_answered, n_pressed, pace, .. } = &*self.0;
        let n_answered = n_answered.load(Ordering::Relaxed);
        let mut pace = pace.lock().unwrap_or_else(PoisonError::into_inner);
        if n_pressed.load(Ordering::Relaxed) == 0 {
            *pace = AnswerPace::default();
            return None;
        }
        let per_second = pace.count(n_answered, now);
        let part = PART * n_in_flight.load(Ordering::Relaxed) as f64;
        let until_then = per_second.map(|rate| Duration::try_from_secs_f64(part / rate));
        let until_then = until_then.map_or(SHORTEST, |time| time.unwrap_or(LONGEST));
        Some(until_then.clamp(SHORTEST, LONGEST))
    }
}

impl AnswerPace {
    /// `None`: it has just begun.
    fn count(&mut self, n_answered: usize, now: Instant) -> Option<f64> {
        let (since, before) = *self.counted.get_or_insert((now, n_answered));
        let span = now.saturating_duration_since(since);
        if WINDOW <= span {
            let n_answers = n_answered.saturating_sub(before) as f64;
            self.per_second = Some(n_answers / span.as_secs_f64());
            self.counted = Some((now, n_answered));
        }
        self.per_second
    }
}

/// The places of one writer for requests in flight.
#[derive(Debug)]
pub(crate) struct RequestSlots {
    backlog: Backlog,
    n_in_flight: usize,
    is_pressed: bool,
}

impl RequestSlots {
    pub(crate) fn of(backlog: Backlog) -> Self {
        Self { backlog, n_in_flight: 0, is_pressed: false }
    }

    /// So many are in flight now; whether more wait for a place.
    pub(crate) fn taken(&mut self, n_in_flight: usize, is_pressed: bool) {
        let BacklogCounters { n_in_flight: all, n_pressed, .. } = &*self.backlog.0;
        change(all, self.n_in_flight, n_in_flight);
        change(n_pressed, self.is_pressed.into(), is_pressed.into());
        (self.n_in_flight, self.is_pressed) = (n_in_flight, is_pressed);
    }

    /// One was answered.
    pub(crate) fn answered(&self) {
        self.backlog.0.n_answered.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for RequestSlots {
    fn drop(&mut self) {
        self.taken(0, false);
    }
}

/// A part of the sum has become another one.
fn change(sum: &AtomicUsize, before: usize, after: usize) {
    if before != after {
        sum.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_taken_away_again_and_no_more() {
        let backlog = Backlog::default();
        backlog.clone().add(2);
        for n_waiting in [1, 0, 0] {
            backlog.started();
            assert_eq!(backlog.n_waiting(), n_waiting);
        }
    }

    /// Milliseconds of rest in the second window, in which so many answers came.
    fn rest(n_in_flight: usize, n_answers: usize) -> Option<u128> {
        let backlog = Backlog::default();
        let (mut places, start) = (RequestSlots::of(backlog.clone()), Instant::now());
        places.taken(n_in_flight, true);
        assert_eq!(backlog.rest(start), Some(SHORTEST));
        (0..n_answers).for_each(|_| places.answered());
        backlog.rest(start + WINDOW).map(|time| time.as_millis())
    }

    #[test]
    fn half_of_what_is_in_flight_may_be_answered_meanwhile() {
        // In flight, answers in a tenth of a second, milliseconds.
        let cases =
            [(64, 320, 10), (64, 200, 16), (16, 100, 8), (64, 2000, 2), (64, 1, 25), (64, 0, 25)];
        for (n_in_flight, n_answers, millis) in cases {
            assert_eq!(rest(n_in_flight, n_answers), Some(millis), "{n_in_flight} {n_answers}");
        }
    }

    #[test]
    fn nobody_rests_while_there_are_free_places() {
        let (backlog, now) = (Backlog::default(), Instant::now());
        let (mut binds, mut events) =
            (RequestSlots::of(backlog.clone()), RequestSlots::of(backlog.clone()));
        assert_eq!(backlog.rest(now), None);
        binds.taken(10, false);
        assert_eq!(backlog.rest(now), None);
        binds.taken(64, true);
        events.taken(16, true);
        binds.taken(3, false);
        assert!(backlog.rest(now).is_some());
        drop(events);
        assert_eq!(backlog.rest(now), None);
        assert_eq!(backlog.0.n_in_flight.load(Ordering::Relaxed), 3);
    }
}
