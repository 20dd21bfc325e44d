//! What processes find wrong in themselves, and who leads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use vc_daemon::meter::Meter;
use vc_engine::{CycleTime, Engine, Report};
use vc_kube::{EngineMessage, KindRefusal, Observer};

use super::config_file::MountedConfig;
use super::eviction_turns::EvictionTurns;

/// Faults that the processes of a story have found in themselves.
#[derive(Default)]
pub(super) struct Findings {
    texts: Mutex<Vec<String>>,
    /// The inbox of the engine that led last. `None`: none has led.
    leader: Mutex<Option<mpsc::Sender<EngineMessage>>>,
    turns: Mutex<EvictionTurns>,
    pub(super) n_cycles: AtomicU64,
}

impl Findings {
    /// Returns the texts so far, and forgets them.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.texts())
    }

    /// Returns the inbox of the engine that led last. `None`: none has led.
    pub(super) fn leader(&self) -> Option<mpsc::Sender<EngineMessage>> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn leads(&self, inbox: &mpsc::Sender<EngineMessage>) {
        *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = Some(inbox.clone());
    }

    pub(super) fn add(&self, text: String) {
        self.texts().push(text);
    }

    pub(super) fn extend(&self, texts: impl IntoIterator<Item = String>) {
        self.texts().extend(texts);
    }

    /// Something has changed: evictions may follow in any direction.
    pub(super) fn forget_eviction_turns(&self) {
        self.turns().forget();
    }

    /// I4: takes note of the evictions that a process has decided.
    fn note_evictions(&self, process: &str, report: &Report) {
        let mut turns = self.turns();
        for certificate in &report.certificates {
            let Some(evictor) = &certificate.pod_group else { continue };
            let victims = certificate.victims.iter().map(|victim| &victim.pod_group);
            self.extend(victims.filter_map(|victim| turns.note(process, evictor, victim)));
        }
    }

    fn turns(&self) -> MutexGuard<'_, EvictionTurns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn texts(&self) -> MutexGuard<'_, Vec<String>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects what must not happen inside a process, and counts as the process does.
pub(super) struct ProcessObserver {
    findings: Arc<Findings>,
    name: String,
    meter: Arc<Meter>,
    config: MountedConfig,
    has_failed: AtomicBool,
}

impl ProcessObserver {
    pub(super) fn new(
        findings: &Arc<Findings>,
        name: &str,
        meter: &Arc<Meter>,
        config: &MountedConfig,
    ) -> Self {
        let (findings, name, has_failed) =
            (findings.clone(), name.to_owned(), AtomicBool::new(false));
        Self { findings, name, meter: meter.clone(), config: config.clone(), has_failed }
    }
}

impl Observer for ProcessObserver {
    fn cycle(&self, report: &Report) {
        self.meter.cycle(report);
        self.findings.n_cycles.fetch_add(1, Ordering::Relaxed);
        let broken = report.broken_invariants.iter();
        self.findings.extend(broken.map(|it| format!("{}: {}: {}", it.name, self.name, it.text)));
    }

    /// I3: every certificate of an eviction holds on the state before it. I4: no jobs evict by
    /// turns. I9: the configuration in force.
    fn decided(&self, engine: &Engine, report: &Report, now: CycleTime) {
        let faults = engine.verify(report, now);
        self.findings.extend(faults.iter().map(|fault| format!("I3: {}: {fault}", self.name)));
        self.findings.note_evictions(&self.name, report);
        self.findings.extend(self.config.fault(engine.config()));
    }

    fn synced(&self) {
        self.meter.synced();
    }

    fn api_write(&self, verb: &str, resource: &str, code: u16) {
        self.meter.api_write(verb, resource, code);
    }

    fn request(&self, method: &str, host: &str, code: u16, took: Duration) {
        self.meter.request(method, host, code, took);
    }

    fn watch_restart(&self, kind: &'static str) {
        self.meter.watch_restart(kind);
    }

    fn kind_refused(&self, refusal: &KindRefusal) {
        self.meter.kind_refused(refusal);
    }

    fn kind_readable(&self, resource: &'static str) {
        self.meter.kind_readable(resource);
    }

    fn objects(&self, kind: &'static str, n_objects: usize) {
        self.meter.objects(kind, n_objects);
    }

    fn watched(&self, scheduler: &str, since_creation: Duration) {
        self.meter.watched(scheduler, since_creation);
    }

    fn task_stage(&self, stage: &'static str, since_creation: Duration) {
        self.meter.task_stage(stage, since_creation);
    }

    fn stage(&self, stage: &'static str, took: Duration) {
        self.meter.stage(stage, took);
    }

    fn loads_read(&self, source: &'static str, n_read: usize, n_missing: usize) {
        self.meter.loads_read(source, n_read, n_missing);
    }

    fn loads_failed(&self, source: &'static str, cause: &'static str) {
        self.meter.loads_failed(source, cause);
    }

    fn loads_stopped(&self) {
        self.meter.loads_stopped();
    }

    fn malformed(&self, kind: &'static str) {
        self.meter.malformed(kind);
    }

    fn usage_saved(&self, result: &'static str) {
        self.meter.usage_saved(result);
    }

    fn table_size(&self, table: &'static str, size: usize) {
        self.meter.table_size(table, size);
    }

    fn foreign_bind(&self) {
        self.meter.foreign_bind();
    }

    fn clock_skew(&self, seconds: i64) {
        self.meter.clock_skew(seconds);
    }

    fn internal_error(&self, kind: &'static str) {
        self.meter.internal_error(kind);
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            self.findings.add(format!("I5: {}: internal error: {kind}", self.name));
        }
    }
}
