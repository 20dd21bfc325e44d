//! The workload as it goes on: what is applied when, what has been seen, and whether it has ended.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::Options;
use super::manifests::{Plan, Step};
use super::state::{State, Tone};
use super::summary::Summary;
use super::watch::{Seen, Watch};
use crate::field::{text, title_of};
use crate::serve::{Kind, Store};

/// For how long nothing may have changed at the end: some of the scheduler's periods, at any speed
/// of the workload.
const QUIET: Duration = Duration::from_secs(2);

pub(super) struct Stage {
    pub(super) state: State,
    pub(super) watch: Watch,
    store: Arc<Store>,
    start: Instant,
    /// What is not applied yet, the next one first.
    steps: std::vec::IntoIter<Step>,
    refused: Vec<String>,
    timeout: Duration,
}

impl Stage {
    /// Starts the clock of the workload.
    pub(super) fn new(plan: Plan, store: &Arc<Store>, options: &Options) -> Stage {
        let mut stage = Stage {
            state: State::default(),
            watch: Watch::start(store),
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

    pub(super) fn observe(&mut self, seen: &Seen) {
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
        let kind = Kind::of(version, kind).ok_or_else(unknown)?;
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

    pub(super) fn summary(&self, settled: bool) -> Summary {
        Summary::of(&self.state, self.now(), settled, self.refused.clone())
    }
}
