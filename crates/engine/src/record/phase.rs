//! The phase of a PodGroup at session close. Specification: core.md 7.5, C-28.

use vc_model::{Job, PodGroupPhase, TaskStatus};

/// Returns the phase by the first row that applies in the table of core.md 7.5. `unschedulable` is
/// true if a condition of this session says so.
pub(super) fn phase(job: &Job, unschedulable: bool) -> PodGroupPhase {
    let counts = &job.counts;
    if 0 < counts.of(TaskStatus::Running) && unschedulable {
        return PodGroupPhase::Unknown;
    }
    let scheduled = counts.scheduled() + counts.releasing_on_node;
    let completed = counts.of(TaskStatus::Succeeded) + counts.of(TaskStatus::Failed);
    if job.min_available <= i32::try_from(scheduled).unwrap_or(i32::MAX) {
        // C-28: a group with an unfinished pod, or without pods, is not complete.
        let all_done = 0 < completed && completed == counts.total();
        return match (all_done, counts.total()) {
            (true, _) => PodGroupPhase::Completed,
            (false, 0) => waiting(job.phase()),
            (false, _) => PodGroupPhase::Running,
        };
    }
    waiting(job.phase())
}

fn waiting(current: PodGroupPhase) -> PodGroupPhase {
    match current {
        PodGroupPhase::Inqueue => PodGroupPhase::Inqueue,
        _ => PodGroupPhase::Pending,
    }
}
