//! A cycle in which nothing has changed since one that decided nothing. Exact: a cycle is a function
//! of the state, of what the engine remembers and of the time. The cycle before left what decisions
//! are made of as it was, no event has touched it since, and nothing that reads the clock is due: this
//! one would decide and report the same, and find its texts written. `quiet.rs` and `histories.rs` of
//! the tests show it. Specification: actions.md 12.2, core.md 11.

use vc_framework::{Clock, Report, Sample};

/// What a cycle that decided nothing has found.
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
    /// After a cycle that left no trace. `None`: the next one may be another all the same.
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
        let kinds = || report.samples.iter().map(kind);
        if kinds().any(|kind| kind == Kind::Else) || !report.warnings.is_empty() {
            return None;
        }
        let again = report.samples.iter().zip(kinds()).filter(|(_, kind)| *kind == Kind::Again);
        let until_micros = plugins_due_micros.into_iter().chain(throttle_due_micros).min();
        let report = Report {
            n_nodes: report.n_nodes,
            n_jobs: report.n_jobs,
            pipelined: report.pipelined.clone(),
            waiting: report.waiting.clone(),
            skipped: report.skipped.clone(),
            queues: report.queues.clone(),
            quotas: report.quotas.clone(),
            samples: again.map(|(sample, _)| sample.clone()).collect(),
            ..Report::default()
        };
        Some(Self { version, since_micros: now_micros, until_micros, report })
    }

    /// The report of a cycle at this time on this state, if it is known without running it; `seen`
    /// hands out what is told of events.
    pub(crate) fn report(
        &self,
        version: u64,
        now_micros: i64,
        seen: impl FnOnce() -> Vec<Sample>,
    ) -> Option<Report> {
        let in_time = self.since_micros <= now_micros
            && self.until_micros.is_none_or(|until_micros| now_micros < until_micros);
        if self.version != version || !in_time {
            return None;
        }
        let mut report = self.report.clone();
        report.samples.iter_mut().for_each(|sample| self.put_off(sample, now_micros));
        let is_placed = |sample: &Sample| matches!(sample, Sample::JobPlaced { .. });
        let place = report.samples.iter().position(is_placed).unwrap_or(report.samples.len());
        report.samples.splice(place..place, seen());
        Some(report)
    }

    /// The same sample at a later time.
    fn put_off(&self, sample: &mut Sample, to_micros: i64) {
        if let Sample::JobPlaced { waited_micros, now_micros, .. } = sample {
            *waited_micros += to_micros - self.since_micros;
            *now_micros = to_micros;
        }
    }
}

/// When a sample of a cycle that decided nothing is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Once.
    News,
    /// In every cycle: it tells how things stand, or counts what is tried in each.
    Again,
    /// Nobody knows.
    Else,
}

fn kind(sample: &Sample) -> Kind {
    match sample {
        Sample::Queue(_)
        | Sample::QueueGone(_)
        | Sample::JobSeen { .. }
        | Sample::JobShare { .. }
        | Sample::JobGang { .. }
        | Sample::JobGone(_)
        | Sample::PendingPods(_)
        | Sample::UnreadyJobs(0) => Kind::News,
        Sample::UnreadyJobs(_)
        | Sample::JobPlaced { .. }
        | Sample::PreemptionVictims(_)
        | Sample::PreemptionAttempts(_) => Kind::Again,
        _ => Kind::Else,
    }
}
