//! What processes find wrong in themselves, and who leads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use vc_engine::{CycleTime, Engine, Report};
use vc_kube::{EngineMessage, Observer};

/// Faults that the processes of a story have found in themselves.
#[derive(Default)]
pub(super) struct Findings {
    texts: Mutex<Vec<String>>,
    /// The inbox of the engine that led last. `None`: none has led.
    leader: Mutex<Option<mpsc::Sender<EngineMessage>>>,
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

    fn texts(&self) -> MutexGuard<'_, Vec<String>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects what must not happen inside a process.
pub(super) struct ProcessObserver {
    findings: Arc<Findings>,
    name: String,
    has_failed: AtomicBool,
}

impl ProcessObserver {
    pub(super) fn new(findings: &Arc<Findings>, name: &str) -> Self {
        let (findings, name) = (findings.clone(), name.to_owned());
        Self { findings, name, has_failed: AtomicBool::new(false) }
    }
}

impl Observer for ProcessObserver {
    fn cycle(&self, report: &Report) {
        self.findings.n_cycles.fetch_add(1, Ordering::Relaxed);
        let broken = report.broken_invariants.iter();
        self.findings.extend(broken.map(|it| format!("{}: {}: {}", it.name, self.name, it.text)));
    }

    /// I3: every certificate of an eviction holds on the state before it.
    fn decided(&self, engine: &Engine, report: &Report, now: CycleTime) {
        let faults = engine.verify(report, now);
        self.findings.extend(faults.iter().map(|fault| format!("I3: {}: {fault}", self.name)));
    }

    fn internal_error(&self, kind: &'static str) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            self.findings.add(format!("I5: {}: internal error: {kind}", self.name));
        }
    }
}
