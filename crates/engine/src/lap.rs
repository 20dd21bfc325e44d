//! Times of the parts of a cycle, by the clock that the edge lends; without one they are not taken.
//! Specification: core.md 9.1.

use vc_framework::Stopwatch;

/// Measures from one part to the next.
pub(crate) struct Lap {
    stopwatch: Option<Stopwatch>,
    start: u64,
    last: u64,
}

impl Lap {
    /// The first part begins.
    pub(crate) fn start(stopwatch: Option<Stopwatch>) -> Self {
        let start = stopwatch.map_or(0, |stopwatch| stopwatch());
        Self { stopwatch, start, last: start }
    }

    /// Nanoseconds since the last part ended; 0 without a clock.
    pub(crate) fn split(&mut self) -> u64 {
        let now = self.stopwatch.map_or(0, |stopwatch| stopwatch());
        now.saturating_sub(std::mem::replace(&mut self.last, now))
    }

    /// Nanoseconds of all parts; `None`: there is no clock.
    pub(crate) fn total(&self) -> Option<u64> {
        self.stopwatch.map(|_| self.last.saturating_sub(self.start))
    }
}
