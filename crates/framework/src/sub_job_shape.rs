//! Sub-job shapes: all that a trial placement of a sub-job reads of it besides its job. Sub-jobs of a
//! job with one shape end alike in the same state.
//! Specification: actions.md 12.2 S14.

use vc_model::{Counts, JobId, TaskId, TaskStatus};

use crate::gang_shape::{GangMember, members};
use crate::session::SessionState;

/// The shape of a sub-job that holds nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SubJobShape {
    /// Tasks to be placed in their order.
    members: Vec<GangMember>,
    policy: Option<usize>,
    min_available: i32,
    /// Pending best-effort tasks, and all tasks.
    counts: (u32, u32),
}

impl SessionState<'_> {
    /// Returns what a trial to place these tasks of the sub-job reads of it.
    ///
    /// Returns `None` in four cases:
    /// - the plain evaluator is selected;
    /// - the sub-job holds something;
    /// - more is read of a task or sub-job than the shape covers;
    /// - a failed trial would leave more behind than records that the next one overwrites.
    pub fn sub_job_shape(
        &self,
        (job, sub_job): (JobId, usize),
        tasks: impl Iterator<Item = TaskId>,
    ) -> Option<SubJobShape> {
        let row = &self.jobs[job].sub_jobs[sub_job];
        if !self.is_fast || !holds_nothing(&row.counts) || !self.plugins().reads_sub_job_rows_only()
        {
            return None;
        }
        let of_any_sub_job = |task| {
            let signature = self.signature_of(task, |_| self.class_signature(task));
            Some(signature.filter(|_| self.may_skip_trial_of(task))?.of_any_sub_job())
        };
        let members = members(self, tasks, of_any_sub_job)?;
        Some(SubJobShape {
            members,
            policy: row.policy,
            min_available: row.min_available,
            counts: (row.counts.pending_best_effort, row.counts.total()),
        })
    }
}

/// True if every task is Pending.
fn holds_nothing(counts: &Counts) -> bool {
    counts.total() == counts.of(TaskStatus::Pending)
}
