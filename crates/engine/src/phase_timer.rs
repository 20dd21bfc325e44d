//! Durations of the parts of a cycle, by the clock that the edge lends. Without a clock nothing is
//! measured. Specification: core.md 9.1.

use vc_framework::Stopwatch;

/// Measures the time from one part of a cycle to the next.
pub(crate) struct PhaseTimer {
    stopwatch: Option<Stopwatch>,
    start: u64,
    last: u64,
}

impl PhaseTimer {
    /// Starts the first part.
    pub(crate) fn start(stopwatch: Option<Stopwatch>) -> Self {
        let start = stopwatch.map_or(0, |stopwatch| stopwatch());
        Self { stopwatch, start, last: start }
    }

    /// Returns the nanoseconds since the last part ended, or 0 without a clock.
    pub(crate) fn split(&mut self) -> u64 {
        let now = self.stopwatch.map_or(0, |stopwatch| stopwatch());
        now.saturating_sub(std::mem::replace(&mut self.last, now))
    }

    /// Returns the nanoseconds of all parts. Returns `None` without a clock.
    pub(crate) fn total(&self) -> Option<u64> {
        self.stopwatch.map(|_| self.last.saturating_sub(self.start))
    }
}
