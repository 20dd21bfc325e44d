//! Conditions of pods that are not part of the session: they name no PodGroup, or the PodGroup or
//! its queue does not exist. Specification: core.md 4.2, 4.6 (C-21, C-43).

use vc_framework::{Nomination, Session, SessionState, WaitCause};
use vc_model::{Gates, JobId, TaskId, TaskStatus};

use super::pods;
use crate::engine::EngineMemory;
use crate::wait_cause::{outside_cause, outside_text};

/// Wait without a condition. A PodGroup, or the annotation that names it, may arrive after its pod.
const GRACE_MICROS: i64 = 2_000_000;

/// Writes a condition to each such pod that says why it waits.
pub(super) fn record(session: &mut Session<'_>, memory: &mut EngineMemory) {
    let mut due_micros = None;
    let mut last = None;
    for task in waiting(session) {
        let row = &session.tasks[task];
        let Some(cause) = outside_cause(session, row) else { continue };
        let since_micros = match cause {
            WaitCause::QueueMissing => i64::MIN,
            _ => row.created_micros.saturating_add(GRACE_MICROS),
        };
        if session.info().now_micros < since_micros {
            due_micros = Some(due_micros.unwrap_or(i64::MAX).min(since_micros));
            continue;
        }
        let text = outside_text(session, cause, row);
        pods::report_condition(
            session,
            task,
            ("Unschedulable", &text),
            Nomination::Keep,
            &mut last,
        );
    }
    memory.outside_due_micros = due_micros;
}

/// Returns the waiting pods without gates, by key. For gated pods the API server writes the
/// condition.
fn waiting(session: &SessionState<'_>) -> Vec<TaskId> {
    let of_job = |&job: &JobId| {
        let row = &session.jobs[job];
        let waits = 0 < row.counts.of(TaskStatus::Pending);
        row.tasks.iter().copied().filter(move |_| waits)
    };
    let in_jobs = session.info().active_jobs.outside().iter().flat_map(of_job);
    let is_reported_here = |task: &TaskId| {
        let row = &session.tasks[*task];
        row.status == TaskStatus::Pending && row.gates == Gates::None
    };
    let mut tasks: Vec<TaskId> =
        in_jobs.chain(session.ungrouped()).filter(is_reported_here).collect();
    tasks.sort_by_key(|&task| &session.tasks[task].key);
    tasks
}
