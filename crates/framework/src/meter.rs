//! How long the parts of a session take, by a clock that the edge lends: core code has none of its
//! own. Without one nothing is measured. Specification: core.md 9.1.

use std::sync::Mutex;

use crate::report::{PluginTime, Timings};

/// Nanoseconds of a clock that never goes back; where it starts means nothing.
pub type Stopwatch = fn() -> u64;

/// Takes times while a session runs.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) stopwatch: Option<Stopwatch>,
    pub(crate) plugins: Vec<PluginTime>,
    pub(crate) quota_search: u64,
    /// Behind locks because filters and scores are asked through shared references.
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
    /// The time now; `None`: there is no clock.
    pub(crate) fn now(&self) -> Option<u64> {
        self.stopwatch.map(|stopwatch| stopwatch())
    }

    /// A stage that began at `start` has ended.
    pub(crate) fn ends(&self, stage: Stage, start: Option<u64>) {
        let Some((start, end)) = start.zip(self.now()) else { return };
        let times = match stage {
            Stage::Predicate => &self.predicates,
            Stage::Scoring => &self.scorings,
        };
        // A poisoned lock: the session is lost anyway, its times with it.
        if let Ok(mut times) = times.lock() {
            times.push(end.saturating_sub(start));
        }
    }

    /// Hands out the times of the session and forgets them.
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
