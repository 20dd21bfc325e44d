//! A cycle in which nothing has changed since one that left no trace. Exact: a cycle is a function of
//! the state, of what the engine remembers and of the time. The cycle before left the first two as
//! they were, no event has touched them since, and nothing that reads the clock is due, so that this
//! cycle would decide, say and report the same once more. `tests/engine/quiet.rs` shows it.
//! Specification: actions.md 12.2, core.md 11.

use vc_framework::{Clock, Report, Sample};

/// What a cycle without trace has found.
#[derive(Clone, Debug)]
pub(crate) struct Quiet {
    /// Of the state.
    version: u64,
    /// Microseconds since 1970: from when on this holds, and until when; `None`: for ever.
    since_micros: i64,
    until_micros: Option<i64>,
    report: Report,
}

impl Quiet {
    /// After a cycle without trace. `None`: it may end otherwise the next time all the same.
    pub(crate) fn after(
        report: &Report,
        version: u64,
        now_micros: i64,
        clock: Clock,
        throttle_due_micros: Option<i64>,
    ) -> Option<Self> {
        let plugins_due_micros = match clock {
            Clock::Reads => return None,
            Clock::Until(due_micros) => Some(due_micros),
            Clock::Ignores => None,
        };
        // All others are news, or count what was tried at this time.
        let repeats = |sample: &Sample| matches!(sample, Sample::UnreadyJobs(_));
        if !report.samples.iter().all(repeats) || !report.warnings.is_empty() {
            return None;
        }
        let until_micros = plugins_due_micros.into_iter().chain(throttle_due_micros).min();
        let report = Report { timings: None, ..report.clone() };
        Some(Self { version, since_micros: now_micros, until_micros, report })
    }

    /// The report of a cycle at this time on this state, if it is known without running it.
    pub(crate) fn report(&self, version: u64, now_micros: i64) -> Option<Report> {
        let in_time = self.since_micros <= now_micros
            && self.until_micros.is_none_or(|until_micros| now_micros < until_micros);
        (self.version == version && in_time).then(|| self.report.clone())
    }
}
