//! Quota that is kept for tasks whose queue allocation gate was lifted, until they have a place.
//! Specification: plugins-jobs-queues.md 6.9, D17.

use std::collections::BTreeSet;

use vc_framework::Ask;
use vc_model::{Gates, TaskId, TaskStatus};

use crate::rules::session_job;

/// The tasks for which quota is kept.
#[derive(Debug, Default)]
pub(super) struct Reservations(BTreeSet<TaskId>);

impl Reservations {
    /// Those of earlier sessions, read off the tasks. A gate that was asked to go and is still
    /// there keeps its place.
    pub(super) fn of_session(ask: Ask<'_>) -> Self {
        let mut found = BTreeSet::new();
        if !ask.cluster.settings.queue_gate_admission {
            return Self(found);
        }
        for &job in &ask.facts.jobs {
            let row = &ask.cluster.jobs[job];
            if 0 < row.counts.of(TaskStatus::Pending) {
                found.extend(row.tasks.iter().copied().filter(|&task| waits(ask, task)));
            }
        }
        Self(found)
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.0.iter().copied()
    }

    pub(super) fn has(&self, task: TaskId) -> bool {
        self.0.contains(&task)
    }

    /// Whether quota is kept for the task from now on, and was not before. An evicted task does not
    /// wait: it must not hold what it was evicted for (D17 b).
    pub(super) fn begin(&mut self, ask: Ask<'_>, task: TaskId) -> bool {
        let enabled = ask.cluster.settings.queue_gate_admission;
        enabled
            && waits(ask, task)
            && session_job(ask.cluster, task).is_some()
            && self.0.insert(task)
    }

    /// Whether quota was kept for the task; no longer.
    pub(super) fn end(&mut self, task: TaskId) -> bool {
        self.0.remove(&task)
    }
}

/// Pending, handed to us by annotation, and its gate is gone or going.
fn waits(ask: Ask<'_>, task: TaskId) -> bool {
    let row = &ask.cluster.tasks[task];
    let is_free = row.gates == Gates::None || row.ungating;
    row.status == TaskStatus::Pending && row.manages_queue_gate && is_free
}
