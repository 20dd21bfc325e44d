//! Times of the parts of a session, by a clock that the edge lends: core code has no clock of its
//! own. Without a clock nothing is measured. Specification: core.md 9.1.

use std::sync::Mutex;

use crate::report::{PluginTime, Timings};

/// A monotonic clock in nanoseconds with an arbitrary origin.
pub type Stopwatch = fn() -> u64;

/// Collects times while a session runs.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) stopwatch: Option<Stopwatch>,
    pub(crate) plugins: Vec<PluginTime>,
    pub(crate) quota_search: u64,
    /// Nanoseconds per filtering. Locked because filters and scores run through shared references.
    predicates: Mutex<Vec<u64>>,
    scorings: Mutex<Vec<u64>>,
}

/// A part of finding a node for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Predicate,
    Scoring,
}

impl Meter {
    /// Returns the current time. Returns `None` without a clock.
    pub(crate) fn now(&self) -> Option<u64> {
        self.stopwatch.map(|stopwatch| stopwatch())
    }

    /// Records the time of a stage that began at `start` and ends now.
    pub(crate) fn ends(&self, stage: Stage, start: Option<u64>) {
        let Some((start, end)) = start.zip(self.now()) else { return };
        let times = match stage {
            Stage::Predicate => &self.predicates,
            Stage::Scoring => &self.scorings,
        };
        // If the lock is poisoned, the session has failed and its times are lost with it.
        if let Ok(mut times) = times.lock() {
            times.push(end.saturating_sub(start));
        }
    }

    /// Returns the times of the session and resets them.
    pub(crate) fn take(&mut self) -> Timings {
        Timings {
            plugins: std::mem::take(&mut self.plugins),
            predicates: drained(&mut self.predicates),
            scorings: drained(&mut self.scorings),
            quota_search: std::mem::take(&mut self.quota_search),
            ..Timings::default()
        }
    }
}

fn drained(times: &mut Mutex<Vec<u64>>) -> Vec<u64> {
    times.get_mut().map(std::mem::take).unwrap_or_default()
}
