//! A cycle without any change since one that decided nothing. It is skipped, and its report is
//! derived from the earlier one.
//!
//! Exact because:
//! - a cycle is a function of the state, the engine's memory and the time,
//! - the earlier cycle left the inputs of decisions unchanged, and no event has changed them since,
//! - nothing that reads the clock is due,
//! - the tests `idle_cycle.rs` and `histories.rs` compare it with a cycle that is run.
//!
//! Specification: actions.md 12.2, core.md 11.

use vc_framework::{Clock, Report, Sample};

/// The result of a cycle that decided nothing.
#[derive(Clone, Debug)]
pub(crate) struct IdleCycle {
    /// Version of the state at the end of the cycle.
    version: u64,
    /// Time from which the report holds, and its end, in microseconds since 1970. `None` if it has
    /// no end.
    since_micros: i64,
    until_micros: Option<i64>,
    report: Report,
}

impl IdleCycle {
    /// Returns the idle cycle that follows a cycle without a trace. Returns `None` if the next
    /// cycle may differ all the same.
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
        if kinds().any(|kind| kind == SampleRepetition::Else) || !report.warnings.is_empty() {
            return None;
        }
        let again =
            report.samples.iter().zip(kinds()).filter(|(_, kind)| *kind == SampleRepetition::Again);
        let until_micros = plugins_due_micros.into_iter().chain(throttle_due_micros).min();
        let report = Report {
            n_nodes: report.n_nodes,
            n_jobs: report.n_jobs,
            pipelined: report.pipelined.clone(),
            waiting: report.waiting.clone(),
            turns: report.turns.clone(),
            skipped: report.skipped.clone(),
            queues: report.queues.clone(),
            quotas: report.quotas.clone(),
            usages: report.usages.clone(),
            samples: again.map(|(sample, _)| sample.clone()).collect(),
            ..Report::default()
        };
        Some(Self { version, since_micros: now_micros, until_micros, report })
    }

    /// Returns the report of a cycle at this time on this state. Returns `None` if the cycle must
    /// be run. `seen` returns the samples that follow from events.
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

    /// Moves a sample to a later time.
    fn put_off(&self, sample: &mut Sample, to_micros: i64) {
        if let Sample::JobPlaced { waited_micros, now_micros, .. } = sample {
            *waited_micros += to_micros - self.since_micros;
            *now_micros = to_micros;
        }
    }
}

/// How a sample of a cycle that decided nothing is reported in idle cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleRepetition {
    /// Not reported again.
    News,
    /// Reported in every cycle: it describes the state, or counts attempts that each cycle repeats.
    Again,
    /// Unknown; the cycle is then not skipped.
    Else,
}

fn kind(sample: &Sample) -> SampleRepetition {
    match sample {
        Sample::Queue(_)
        | Sample::QueueGone(_)
        | Sample::JobSeen { .. }
        | Sample::JobShare { .. }
        | Sample::JobGang { .. }
        | Sample::JobGone(_)
        | Sample::PendingPods(_)
        | Sample::NodeDevices(_)
        | Sample::FairshareUsage(_)
        | Sample::FairshareShare { .. }
        | Sample::FairshareQueue { .. }
        | Sample::FairshareGone { .. }
        | Sample::UnreadyJobs(0) => SampleRepetition::News,
        Sample::UnreadyJobs(_)
        | Sample::JobPlaced { .. }
        | Sample::PreemptionVictims(_)
        | Sample::PreemptionAttempts(_) => SampleRepetition::Again,
        _ => SampleRepetition::Else,
    }
}
