//! How many binds wait for a place among the writes in flight: while there are many, a new decision
//! would only wait behind them. Specification: core.md 11 (when a cycle starts is free).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A counter that engine and writer share.
#[derive(Clone, Debug, Default)]
pub struct Backlog(Arc<AtomicUsize>);

impl Backlog {
    /// So many were decided.
    pub(crate) fn add(&self, n_binds: usize) {
        self.0.fetch_add(n_binds, Ordering::Relaxed);
    }

    /// One has its place.
    pub(crate) fn started(&self) {
        // One that nobody has added, as in a test, must not count as very many.
        let less = |n_waiting: usize| n_waiting.checked_sub(1);
        let _none = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub(crate) fn n_waiting(&self) -> usize {
        self.0.load(Ordering::Relaxed)
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
}
