//! What the process counts, and how a scrape is answered. Any thread may call any method; none
//! waits for a scrape. Specification: core.md 9.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::SystemTime;

use prometheus::{Registry, TextEncoder};
use vc_engine::{HyperNodeProblemCount, PluginStage, Report, Sample, Timings};

use crate::devices::DeviceSeries;
use crate::families::Families;
use crate::jobs::JobSeriesTable;
use crate::queues::QueueSeriesTable;
use crate::quotas::QuotaSeries;
use crate::usages::UsageSeries;

const NANOS_PER_MILLI: f64 = 1e6;
const NANOS_PER_SECOND: f64 = 1e9;
const MICROS_PER_MILLI: f64 = 1e3;

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    families: Families,
    series: Mutex<MetricSeries>,
    /// What came in while a scrape was holding `series`.
    late: Mutex<Vec<Sample>>,
}

#[derive(Default)]
struct MetricSeries {
    jobs: JobSeriesTable,
    queues: QueueSeriesTable,
    quotas: QuotaSeries,
    devices: DeviceSeries,
    usages: UsageSeries,
}

impl Metrics {
    /// Everything at 0, `process_*` included.
    pub fn new() -> Arc<Self> {
        let registry = Registry::new();
        let families = Families::register(&registry);
        for code in ["200", "500", "503"] {
            families.scrapes.with_label_values(&[code]);
        }
        #[cfg(target_os = "linux")]
        crate::process::ProcessMetrics::new()
            .and_then(|process| registry.register(Box::new(process)))
            .expect("its names are its own");
        let (series, late) = Default::default();
        Arc::new(Self { registry, families, series, late })
    }

    /// A cycle has ended.
    pub fn observe_cycle(&self, report: &Report) {
        if let Some(timings) = &report.timings {
            self.observe_timings(timings);
        }
        report.samples.iter().for_each(|sample| self.count(sample));
        self.take(&report.samples);
    }

    fn observe_timings(&self, timings: &Timings) {
        let families = &self.families;
        families.cycle.observe(millis(timings.cycle));
        families.open.observe(millis(timings.open));
        for &(action, nanos) in &timings.actions {
            families.actions.with_label_values(&[action]).observe(millis(nanos));
        }
        for time in &timings.plugins {
            let stage = match time.stage {
                PluginStage::Open => "OnSessionOpen",
                PluginStage::Close => "OnSessionClose",
            };
            families.plugins.with_label_values(&[time.plugin, stage]).observe(millis(time.nanos));
        }
        for (stage, times) in [("Predicate", &timings.predicates), ("Scoring", &timings.scorings)] {
            // Without an observation the series does not exist.
            if !times.is_empty() {
                let stage = families.stages.with_label_values(&[stage]);
                times.iter().for_each(|&nanos| stage.observe(millis(nanos)));
            }
        }
        let actions = timings.actions.iter().map(|(_, nanos)| nanos).sum();
        let phases = [
            ("apply", timings.apply),
            ("open", timings.open),
            ("actions", actions),
            ("close", timings.close),
        ];
        for (phase, nanos) in phases {
            let seconds = nanos as f64 / NANOS_PER_SECOND;
            families.phases.with_label_values(&[phase]).observe(seconds);
        }
    }

    /// The numbers that have no series per object.
    fn count(&self, sample: &Sample) {
        let families = &self.families;
        match *sample {
            Sample::JobPlaced { n_tasks, waited_micros, .. } => {
                let waited = waited_micros as f64 / MICROS_PER_MILLI;
                (0..n_tasks).for_each(|_| families.job.observe(waited));
            }
            Sample::Assumed { waited_micros, n_tasks } => {
                let waited = waited_micros as f64 / MICROS_PER_MILLI;
                (0..n_tasks).for_each(|_| self.task_stage("Assumed", waited));
            }
            Sample::EvictionTransaction(reason) => {
                families.eviction_transactions.with_label_values(&[reason.as_str()]).inc();
            }
            Sample::FairshareEvictions { ref queue, n_pods } => {
                let evictions = families.usage_evictions.with_label_values(&[&**queue]);
                evictions.inc_by(u64::from(n_pods));
            }
            Sample::PreemptionVictims(n_victims) => {
                families.preemption_victims.set(f64::from(n_victims));
            }
            Sample::PreemptionAttempts(n_attempts) => {
                families.preemption_attempts.inc_by(u64::from(n_attempts));
            }
            Sample::UnreadyJobs(n_jobs) => {
                families.unready_jobs.set(i64::try_from(n_jobs).unwrap_or(i64::MAX));
            }
            Sample::ConditionsOverwritten { kind, n_conditions } => {
                let overwritten = families.overwritten_conditions.with_label_values(&[kind]);
                overwritten.inc_by(u64::from(n_conditions));
            }
            Sample::HyperNodeProblems(ref counts) => {
                families.hyper_node_problems.reset();
                for HyperNodeProblemCount { hyper_node, field, n_problems } in counts {
                    let labels: [&str; 2] = [hyper_node, field];
                    let problems = families.hyper_node_problems.with_label_values(&labels);
                    problems.set(i64::from(*n_problems));
                }
            }
            Sample::NetworkTopologyProblems(ref fields) => {
                families.topology_problems.reset();
                for (group, field) in fields {
                    let labels: [&str; 3] = [&group.namespace, &group.name, field];
                    families.topology_problems.with_label_values(&labels).set(1);
                }
            }
            Sample::InternalErrors { kind, n_errors } => {
                let errors = families.internal_errors.with_label_values(&[kind]);
                errors.inc_by(u64::from(n_errors));
            }
            _ => {}
        }
    }

    /// Brings the series of objects up to date. A scrape that is writing them is not waited for.
    fn take(&self, samples: &[Sample]) {
        let series = match self.series.try_lock() {
            Ok(series) => series,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                lock(&self.late).extend(samples.iter().cloned());
                return;
            }
        };
        self.catch_up(series).take(samples);
    }

    fn catch_up<'a>(
        &self,
        mut series: MutexGuard<'a, MetricSeries>,
    ) -> MutexGuard<'a, MetricSeries> {
        let late = std::mem::take(&mut *lock(&self.late));
        series.take(&late);
        series
    }

    /// The answer to a scrape, in the text format.
    pub fn encode(&self) -> String {
        let families = &self.families;
        families.scrapes_in_flight.inc();
        let mut text = String::new();
        let encoded = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text);
        let series = self.catch_up(lock(&self.series));
        series.jobs.write(&mut text);
        series.queues.write(&mut text);
        series.quotas.write(&mut text);
        series.devices.write(&mut text);
        series.usages.write(&mut text, SystemTime::now());
        drop(series);
        families.scrapes_in_flight.dec();
        let code = if encoded.is_ok() { "200" } else { "500" };
        families.scrapes.with_label_values(&[code]).inc();
        text
    }

    /// A request that changes something was answered; code 0: it was not.
    pub fn api_write(&self, verb: &str, resource: &str, code: u16) {
        let labels = [verb, resource, &code.to_string()];
        self.families.api_writes.with_label_values(&labels).inc();
    }

    /// A question was answered with this HTTP status.
    pub fn answer(&self, route: &str, code: u16, seconds: f64) {
        self.families.answers.with_label_values(&[route, &code.to_string()]).inc();
        self.families.answer_durations.with_label_values(&[route]).observe(seconds);
    }

    /// So many changes wait for the copy of the state that answers questions.
    pub fn answers_backlog(&self, n_events: usize) {
        self.families.answers_backlog.set(i64::try_from(n_events).unwrap_or(i64::MAX));
    }

    /// So old are the oldest changes that the copy of the state that answers questions has not seen; 0
    /// without any.
    pub fn answers_behind(&self, seconds: f64) {
        self.families.answers_behind.set(seconds);
    }

    /// Questions are no longer answered: `backlog`, `divergence`, `panic`, `services`.
    pub fn answers_given_up(&self, cause: &str) {
        self.families.answers_given_up.with_label_values(&[cause]).inc();
        if cause == "divergence" {
            self.families.answers_divergences.inc();
        }
    }

    /// An answer left something out because the budget of its question was spent.
    pub fn answer_incomplete(&self, route: &str) {
        self.families.answers_incomplete.with_label_values(&[route]).inc();
    }

    /// Adds trials that answers needed. `shortcut` names what told their results; `none`: they were run.
    pub fn answers_trials(&self, shortcut: &str, n_trials: u64) {
        self.families.answers_trials.with_label_values(&[shortcut]).inc_by(n_trials);
    }

    /// So many jobs wait, by queue and code.
    pub fn waiting_jobs<'a>(&self, counts: impl Iterator<Item = ((&'a str, &'a str), usize)>) {
        self.families.waiting_jobs.reset();
        for ((queue, code), jobs) in counts {
            let gauge = self.families.waiting_jobs.with_label_values(&[queue, code]);
            gauge.set(i64::try_from(jobs).unwrap_or(i64::MAX));
        }
    }

    /// A job has started whose start was told. `covered` if it started when it was told, and how late
    /// it was, as part of the wait that was told.
    pub fn start_prediction(&self, covered: bool, error_ratio: Option<f64>) {
        let covered = if covered { "true" } else { "false" };
        self.families.start_predictions.with_label_values(&[covered]).inc();
        if let Some(ratio) = error_ratio {
            self.families.start_prediction_errors.observe(ratio);
        }
    }

    /// A watch was interrupted and begun again.
    pub fn watch_restart(&self, kind: &str) {
        self.families.watch_restarts.with_label_values(&[kind]).inc();
    }

    /// A kind cannot be read (`is_so`), or can be read again. Without a required one nothing is decided.
    pub fn unreadable_kind(&self, kind: &str, verb: &str, code: u16, required: bool, is_so: bool) {
        let (code, required) = (code.to_string(), required.to_string());
        let (labels, gauges) = ([kind, verb, &code, &required], &self.families.unreadable_kinds);
        match is_so {
            true => gauges.with_label_values(&labels).set(1),
            // A series that was never set needs no removal.
            false => drop(gauges.remove_label_values(&labels)),
        }
    }

    /// So many objects of the kind are known.
    pub fn objects(&self, kind: &str, n: i64) {
        self.families.objects.with_label_values(&[kind]).set(n);
    }

    /// A pod has reached the stage so many milliseconds after its creation: `Watched`, `PreBound`,
    /// `Bound`; the engine tells `Assumed`.
    pub fn task_stage(&self, stage: &str, millis: f64) {
        self.families.task_stages.with_label_values(&[stage]).observe(millis);
    }

    /// A stage took so many milliseconds: `PreBind`, `Bind`; the engine tells the others.
    pub fn stage_duration(&self, stage: &str, millis: f64) {
        self.families.stages.with_label_values(&[stage]).observe(millis);
    }

    /// The configuration in force has so many warnings.
    pub fn config_warnings(&self, n: i64) {
        self.families.config_warnings.set(n);
    }

    /// The configuration in force names these plugins, and nobody knows them.
    pub fn unknown_plugins<'a>(&self, names: impl Iterator<Item = &'a str>) {
        self.families.unknown_plugins.reset();
        names.for_each(|name| self.families.unknown_plugins.with_label_values(&[name]).set(1));
    }

    /// A configuration could not be used.
    pub fn reload_failure(&self) {
        self.families.reload_failures.inc();
    }

    /// A load source gave the loads of so many nodes and none of so many others, at this second since
    /// 1970.
    pub fn loads_read(&self, source: &str, n_read: i64, n_missing: i64, at_seconds: i64) {
        let Families { load_reads, loaded_nodes, .. } = &self.families;
        load_reads.with_label_values(&[source]).set(at_seconds);
        loaded_nodes.with_label_values(&[source, "read"]).set(n_read);
        loaded_nodes.with_label_values(&[source, "missing"]).set(n_missing);
    }

    /// A round of a load source gave nothing.
    pub fn loads_failed(&self, source: &str, cause: &str) {
        self.families.load_failures.with_label_values(&[source, cause]).inc();
    }

    /// The load source is no longer read.
    pub fn loads_stopped(&self) {
        self.families.load_reads.reset();
        self.families.loaded_nodes.reset();
    }

    /// Something in an object of the kind could not be read.
    pub fn malformed_object(&self, kind: &str) {
        self.families.malformed_objects.with_label_values(&[kind]).inc();
    }

    /// A pod that we were about to bind is bound already.
    pub fn foreign_bind(&self) {
        self.families.foreign_binds.inc();
    }

    /// The usage of `fairshare` was written, or not.
    pub fn usage_saved(&self, result: &str) {
        self.families.usage_writes.with_label_values(&[result]).inc();
    }

    /// The API server's clock is so many seconds ahead of ours.
    pub fn clock_skew(&self, seconds: i64) {
        self.families.clock_skew.set(seconds);
    }

    /// Whether this process schedules.
    pub fn leads(&self, leads: bool) {
        self.families.leader.set(i64::from(leads));
    }

    /// Whether the built-in configuration stands in for a file that could not be used.
    pub fn default_in_force(&self, is_it: bool) {
        self.families.default_in_force.set(i64::from(is_it));
    }

    /// Whether claims for devices are taken into account.
    pub fn dynamic_resources(&self, are_they: bool) {
        self.families.dynamic_resources.set(i64::from(are_they));
    }

    /// Something that cannot happen has happened.
    pub fn internal_error(&self, kind: &str) {
        self.families.internal_errors.with_label_values(&[kind]).inc();
    }

    /// The API server has answered a request. `method` as in HTTP, `code` as text, `<error>` if
    /// there was no answer.
    pub fn client_request(&self, method: &str, host: &str, code: &str, seconds: f64) {
        let families = &self.families;
        families.requests.with_label_values(&[code, method, host]).inc();
        families.request_durations.with_label_values(&[method, host]).observe(seconds);
    }
}

impl MetricSeries {
    fn take(&mut self, samples: &[Sample]) {
        for sample in samples {
            self.jobs.take(sample);
            self.queues.take(sample);
            self.quotas.take(sample);
            self.devices.take(sample);
            self.usages.take(sample);
        }
    }
}

/// What a thread that has panicked left is still what was counted.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / NANOS_PER_MILLI
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_during_a_scrape_is_shown_by_the_next_one() {
        let metrics = Metrics::new();
        let gone = |queue: &str| Sample::QueueGone(queue.into());
        let scrape = lock(&metrics.series);
        metrics.take(&[gone("a"), gone("b")]);
        metrics.take(&[gone("c")]);
        assert_eq!(lock(&metrics.late).len(), 3);
        drop(scrape);
        metrics.encode();
        assert_eq!(lock(&metrics.late).len(), 0);
    }
}
