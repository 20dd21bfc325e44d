//! Where facts about the process meet: readiness, and what the metrics are told. Specification:
//! core.md 1.2 (C-03), 1.8, 9.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use vc_conf::LoadedConfig;
use vc_engine::{Report, Sample};
use vc_kube::{KindRefusal, Observer, wall_micros};
use vc_telemetry::Metrics;

/// Exit code of a failed assertion that is to end the process: that of a Go panic.
const PANIC: i32 = 2;

/// How far the process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Starting,
    /// Not the leader.
    Standby {
        /// The last attempt to get the Lease was answered.
        connected: bool,
    },
    /// The leader, or alone.
    Leading {
        /// Everything is listed, cycles run.
        synced: bool,
    },
}

impl State {
    /// Leader and synced, or standby and connected.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Standby { connected: true } | Self::Leading { synced: true })
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Starting => "starting",
            Self::Standby { connected: true } => "standby",
            Self::Standby { connected: false } => "standby, not connected",
            Self::Leading { synced: true } => "leading",
            Self::Leading { synced: false } => "leading, not synced",
        })
    }
}

/// The facts.
pub struct Meter {
    /// How far the process is; may be waited for.
    pub state: watch::Sender<State>,
    pub metrics: Arc<Metrics>,
    fatal_assertions: bool,
    /// Whose pods we place.
    scheduler_names: Vec<String>,
    /// Unknown plugins of the configuration in force, with their places.
    unknown_plugins: Mutex<Vec<String>>,
    /// Kinds that cannot be read, by their plural names.
    refused: Mutex<BTreeMap<&'static str, KindRefusal>>,
}

impl Default for Meter {
    fn default() -> Self {
        Self::new(false, Vec::new())
    }
}

impl Meter {
    /// With `PANIC_ON_ERROR=true` the first internal error ends the process.
    pub fn new(fatal_assertions: bool, scheduler_names: Vec<String>) -> Self {
        let (state, metrics) = (watch::Sender::default(), Metrics::new());
        let (unknown_plugins, refused) = (Mutex::default(), Mutex::default());
        Self { state, metrics, fatal_assertions, scheduler_names, unknown_plugins, refused }
    }

    /// Kinds without which nothing can be decided and that cannot be read, by name.
    pub fn missing_kinds(&self) -> Vec<KindRefusal> {
        self.refused().values().filter(|refusal| refusal.is_required).cloned().collect()
    }

    fn refused(&self) -> MutexGuard<'_, BTreeMap<&'static str, KindRefusal>> {
        // Each change is one insertion or removal: nothing is half done after a panic.
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn export(&self, of: &KindRefusal, is_so: bool) {
        self.metrics.unreadable_kind(of.resource, of.verb, of.code, of.is_required, is_so);
    }

    /// The process is as far as that.
    pub fn reached(&self, state: State) {
        self.metrics.leads(matches!(state, State::Leading { .. }));
        self.state.send_replace(state);
    }

    /// With `PANIC_ON_ERROR=true` the process ends here.
    fn assertion_failed(&self, kind: &'static str) {
        if self.fatal_assertions {
            tracing::error!(kind, "internal error: the process ends (PANIC_ON_ERROR=true)");
            std::process::exit(PANIC);
        }
    }

    /// Whether claims for devices are taken into account.
    pub fn devices(&self, on: bool) {
        self.metrics.dynamic_resources(on);
    }

    /// The configuration is in force; the engine has so many warnings about it besides.
    pub fn configuration(&self, loaded: &LoadedConfig, n_of_engine: usize) {
        let n_warnings = loaded.warnings.len() + n_of_engine;
        self.metrics.config_warnings(i64::try_from(n_warnings).unwrap_or(i64::MAX));
        self.metrics.unknown_plugins(loaded.missing.iter().map(|entry| entry.name.as_str()));
        let place = |line: usize| format!("line {line}: ");
        let row = |entry: &vc_conf::MissingEntry| {
            format!("{}{}", entry.line.map_or(String::new(), place), entry.problem)
        };
        let rows = loaded.missing.iter().map(row).collect();
        *self.unknown_plugins.lock().unwrap_or_else(PoisonError::into_inner) = rows;
    }

    /// What does not keep the process from working and somebody should look at, one line each.
    pub fn remarks(&self) -> Vec<String> {
        let unknown = self.unknown_plugins.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = self.refused();
        let optional = refused.values().filter(|refusal| !refusal.is_required);
        let optional = optional.map(|refusal| format!("{refusal}: {}", refusal.remedy()));
        unknown.iter().map(|row| format!("configuration: {row}")).chain(optional).collect()
    }
}

impl Observer for Meter {
    fn cycle(&self, report: &Report) {
        self.metrics.observe_cycle(report);
        failed_assertions(report).for_each(|kind| self.assertion_failed(kind));
    }

    fn synced(&self) {
        self.reached(State::Leading { synced: true });
    }

    fn api_write(&self, verb: &str, resource: &str, code: u16) {
        self.metrics.api_write(verb, resource, code);
    }

    fn request(&self, method: &str, host: &str, code: u16, took: Duration) {
        let code = if code == 0 { "<error>".to_owned() } else { code.to_string() };
        self.metrics.client_request(method, host, &code, took.as_secs_f64());
    }

    fn watch_restart(&self, kind: &'static str) {
        self.metrics.watch_restart(kind);
    }

    fn kind_refused(&self, refusal: &KindRefusal) {
        self.kind_readable(refusal.resource);
        self.export(refusal, true);
        self.refused().insert(refusal.resource, refusal.clone());
    }

    fn kind_readable(&self, resource: &'static str) {
        let before = self.refused().remove(resource);
        before.iter().for_each(|before| self.export(before, false));
    }

    fn objects(&self, kind: &'static str, n_objects: usize) {
        self.metrics.objects(kind, i64::try_from(n_objects).unwrap_or(i64::MAX));
    }

    fn watched(&self, scheduler: &str, since_creation: Duration) {
        if self.scheduler_names.iter().any(|name| name == scheduler) {
            self.task_stage("Watched", since_creation);
        }
    }

    fn task_stage(&self, stage: &'static str, since_creation: Duration) {
        self.metrics.task_stage(stage, since_creation.as_secs_f64() * 1e3);
    }

    fn stage(&self, stage: &'static str, took: Duration) {
        self.metrics.stage_duration(stage, took.as_secs_f64() * 1e3);
    }

    fn loads_read(&self, source: &'static str, n_read: usize, n_missing: usize) {
        let [n_read, n_missing] =
            [n_read, n_missing].map(|number| i64::try_from(number).unwrap_or(i64::MAX));
        self.metrics.loads_read(source, n_read, n_missing, wall_micros() / 1_000_000);
    }

    fn loads_failed(&self, source: &'static str, cause: &'static str) {
        self.metrics.loads_failed(source, cause);
    }

    fn loads_stopped(&self) {
        self.metrics.loads_stopped();
    }

    fn malformed(&self, kind: &'static str) {
        self.metrics.malformed_object(kind);
    }

    fn foreign_bind(&self) {
        self.metrics.foreign_bind();
    }

    fn usage_saved(&self, result: &'static str) {
        self.metrics.usage_saved(result);
    }

    fn clock_skew(&self, seconds: i64) {
        self.metrics.clock_skew(seconds);
    }

    fn internal_error(&self, kind: &'static str) {
        self.metrics.internal_error(kind);
        self.assertion_failed(kind);
    }
}

/// Those of a cycle; the metrics have counted them (C-03).
fn failed_assertions(report: &Report) -> impl Iterator<Item = &'static str> {
    report.samples.iter().filter_map(|sample| match sample {
        Sample::InternalErrors { kind, .. } => Some(*kind),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c03_an_amount_that_was_clamped_is_a_failed_assertion() {
        let clamped = Sample::InternalErrors { kind: "amount_below_zero", n_errors: 2 };
        let samples = vec![Sample::PreemptionVictims(1), clamped];
        let report = Report { samples, ..Report::default() };
        assert_eq!(failed_assertions(&report).collect::<Vec<_>>(), ["amount_below_zero"]);
        // It is counted; without PANIC_ON_ERROR the process goes on.
        let meter = Meter::default();
        meter.cycle(&report);
        let line = "volcano_internal_errors_total{kind=\"amount_below_zero\"} 2";
        assert!(meter.metrics.encode().contains(line));
    }
}
