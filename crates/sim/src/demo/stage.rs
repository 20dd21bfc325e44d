//! The workload as it goes on: what is applied when, what has been seen, and whether it has ended.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::DemoOptions;
use super::manifests::{ManifestPlan, ManifestStep};
use super::state::{DemoState, Tone};
use super::summary::DemoSummary;
use super::watch::{ApiWatch, ObservedEvent};
use crate::serve::{ServedKind, Store};
use vc_objects::field::{text, title_of};

/// For how long nothing may have changed at the end: some of the scheduler's periods, at any speed
/// of the workload.
const QUIET: Duration = Duration::from_secs(2);

pub(super) struct DemoStage {
    pub(super) state: DemoState,
    pub(super) watch: ApiWatch,
    store: Arc<Store>,
    start: Instant,
    /// What is not applied yet, the next one first.
    steps: std::vec::IntoIter<ManifestStep>,
    refused: Vec<String>,
    timeout: Duration,
}

impl DemoStage {
    /// Starts the clock of the workload.
    pub(super) fn new(plan: ManifestPlan, store: &Arc<Store>, options: &DemoOptions) -> DemoStage {
        let mut stage = DemoStage {
            state: DemoState::default(),
            watch: ApiWatch::start(store),
            store: store.clone(),
            start: Instant::now(),
            steps: plan.steps.into_iter(),
            refused: Vec::new(),
            timeout: options.timeout,
        };
        plan.unreadable.iter().for_each(|it| stage.refuse(it.to_string()));
        stage
    }

    /// Since the start of the workload.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn observe(&mut self, seen: &ObservedEvent) {
        let at = seen.at.saturating_duration_since(self.start);
        self.state.observe(seen.kind, seen.change, &seen.object, at);
    }

    /// Applies the objects whose time has come.
    pub(super) fn apply_due(&mut self) {
        let now = self.now();
        while self.steps.as_slice().first().is_some_and(|step| step.at <= now) {
            let Some(step) = self.steps.next() else {
                return;
            };
            self.state.changed_at = now;
            if let Err(why) = self.apply(&step.object) {
                self.refuse(format!("{}: {why}", title_of(&step.object)));
            }
        }
    }

    fn apply(&self, object: &Value) -> Result<(), String> {
        let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
        let unknown = || format!("kind is not served: {kind} of {version}");
        let kind = ServedKind::of(version, kind).ok_or_else(unknown)?;
        self.store.create(kind, object).map(drop).map_err(|error| error.to_string())
    }

    fn refuse(&mut self, line: String) {
        self.state.note(self.now(), Tone::Bad, format!("not applied: {line}"));
        self.refused.push(line);
    }

    /// Whether the workload has settled, once it has or the time is up.
    pub(super) fn end(&self) -> Option<bool> {
        let now = self.now();
        if self.steps.as_slice().is_empty() && self.state.is_settled(now, QUIET) {
            return Some(true);
        }
        (self.timeout <= now).then_some(false)
    }

    pub(super) fn summary(&self, settled: bool) -> DemoSummary {
        DemoSummary::of(&self.state, self.now(), settled, self.refused.clone())
    }
}
