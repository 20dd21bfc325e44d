//! Quota that is reserved for tasks whose queue allocation gate was lifted, until they are placed.
//! Specification: plugins-jobs-queues.md 6.9, D17.

use std::collections::BTreeSet;

use vc_framework::SessionView;
use vc_model::reads::{self, Read};
use vc_model::{Gates, TaskId, TaskStatus};

use crate::rules::session_job;

/// The tasks for which quota is reserved.
#[derive(Debug, Default)]
pub(super) struct Reservations(BTreeSet<TaskId>);

impl Reservations {
    /// Restores the reservations of earlier sessions from the tasks. A gate whose removal was
    /// requested and that still exists counts as lifted.
    pub(super) fn of_session(view: SessionView<'_>) -> Self {
        let mut found = BTreeSet::new();
        if !view.cluster.settings.queue_gate_admission {
            return Self(found);
        }
        for &job in &view.info.jobs {
            let row = &view.cluster.jobs[job];
            if 0 < row.counts.of(TaskStatus::Pending) {
                found.extend(row.tasks.iter().copied().filter(|&task| waits(view, task)));
            }
        }
        Self(found)
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.0.iter().copied()
    }

    pub(super) fn has(&self, task: TaskId) -> bool {
        reads::note(Read::OwnState);
        self.0.contains(&task)
    }

    /// Reserves quota for the task. Returns true if it was not reserved before. D17: an evicted
    /// task gets no reservation, or it would hold what it was evicted for.
    pub(super) fn begin(&mut self, view: SessionView<'_>, task: TaskId) -> bool {
        let enabled = view.cluster.settings.queue_gate_admission;
        enabled
            && waits(view, task)
            && session_job(view.cluster, task).is_some()
            && self.0.insert(task)
    }

    /// Ends the reservation of the task. Returns true if there was one.
    pub(super) fn end(&mut self, task: TaskId) -> bool {
        self.0.remove(&task)
    }
}

/// True if the task is Pending, its queue gate is managed by this scheduler, and the gate is
/// removed or being removed.
fn waits(view: SessionView<'_>, task: TaskId) -> bool {
    let row = &view.cluster.tasks[task];
    let is_free = row.gates == Gates::None || row.ungating;
    row.status == TaskStatus::Pending && row.manages_queue_gate && is_free
}
