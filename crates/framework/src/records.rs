//! Records of a session for messages: fit errors and last transactions. Specification: core.md
//! 3.10, 6.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_model::{Column, FitErrors, JobId, NodeId, TaskId, TaskStatus};

use crate::session::SessionState;
use crate::wait_cause::{JobFit, WaitCause};

/// Status and node of a task when a statement was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LastTransaction {
    /// Status just before the undo.
    pub status: TaskStatus,
    /// Node just before the undo. `None` if the task was on no node.
    pub node: Option<NodeId>,
}

/// Number of tasks that fit on no node, by role. Roles with 0 are absent.
pub type FailedRoles = BTreeMap<Arc<str>, u32>;

/// Records by task and job.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Fit errors of tasks that fit on no node. Changed by [`crate::Session::note_fit_errors`] and
    /// [`crate::Session::clear_fit_errors`] only.
    pub fit_errors: Column<TaskId, Arc<FitErrors>>,
    /// Number of tasks that fit on no node, by role, for jobs counted by
    /// [`crate::Session::know_failed_roles`].
    pub(crate) failed_roles: FxHashMap<JobId, FailedRoles>,
    /// Last transaction of a task: its state in the last discarded statement of allocate or
    /// backfill. Removed once a statement with the task is committed or kept.
    pub last_transaction: Column<TaskId, LastTransaction>,
    /// Fields of the PodGroup that cannot mean what was wanted, each with what is wrong, by job. Set
    /// by [`crate::Session::note_field_problems`] only.
    pub(crate) field_problems: FxHashMap<JobId, Arc<str>>,
    /// Job fit messages (A45: why all pods of a job wait). Set by [`crate::Session::note_job_fit`] only.
    pub(crate) job_fit: FxHashMap<JobId, JobFit>,
}

impl Records {
    /// True if something is recorded about the task.
    pub fn has(&self, task: TaskId) -> bool {
        self.fit_errors.get(task).is_some() || self.last_transaction.get(task).is_some()
    }

    /// Returns the job fit message of a job, if it has one.
    pub(crate) fn fit_of(&self, job: JobId) -> Option<&Arc<str>> {
        self.job_fit.get(&job).map(|fit| &fit.text)
    }

    /// Returns why all pods of a job wait. Returns `None` if the cause differs between pods.
    pub fn job_cause(&self, job: JobId) -> Option<WaitCause> {
        self.job_fit.get(&job).map(|fit| fit.cause)
    }

    /// Returns the failed roles that [`crate::Session::know_failed_roles`] has counted.
    pub fn failed_roles(&self, job: JobId) -> &FailedRoles {
        static NONE: FailedRoles = FailedRoles::new();
        self.failed_roles.get(&job).unwrap_or(&NONE)
    }
}

impl SessionState<'_> {
    /// Records the fit errors of a task that fits on no node.
    pub(crate) fn note_fit_errors(&mut self, task: TaskId, errors: Arc<FitErrors>) {
        let fails = is_of_nodes(&errors);
        let before = self.records.fit_errors.place(task).replace(errors);
        self.count_failed(task, before.is_some_and(|before| is_of_nodes(&before)), fails);
    }

    /// Removes the fit errors of a task.
    #[inline]
    pub(crate) fn clear_fit_errors(&mut self, task: TaskId) {
        if let Some(before) = self.records.fit_errors.take(task) {
            self.count_failed(task, is_of_nodes(&before), false);
        }
    }

    /// Counts the tasks that fit on no node by role, for [`Records::failed_roles`]. The tasks are
    /// iterated once; later changes update the counts, because large jobs read them after every
    /// failed task (12.2 S10: counters instead of scans).
    pub(crate) fn know_failed_roles(&mut self, job: JobId) {
        if !self.records.failed_roles.contains_key(&job) {
            let counted = self.count_failed_roles(job);
            self.records.failed_roles.insert(job, counted);
        }
        // Compares with a plain count for small jobs, which all tests have.
        debug_assert!(
            64 < self.jobs[job].tasks.len()
                || self.records.failed_roles[&job] == self.count_failed_roles(job),
            "failed roles of {} are not as counted",
            self.jobs[job].key
        );
    }

    fn count_failed_roles(&self, job: JobId) -> FailedRoles {
        let mut roles = FailedRoles::new();
        for &task in &self.jobs[job].tasks {
            if self.records.fit_errors.get(task).is_some_and(|errors| is_of_nodes(errors)) {
                *roles.entry(self.tasks[task].role.clone()).or_default() += 1;
            }
        }
        roles
    }

    fn count_failed(&mut self, task: TaskId, before: bool, now: bool) {
        if before == now || self.records.failed_roles.is_empty() {
            return;
        }
        let row = &self.cluster.tasks[task];
        let roles = row.job.and_then(|job| self.records.failed_roles.get_mut(&job));
        let Some(roles) = roles else { return };
        let count = roles.entry(row.role.clone()).or_default();
        *count = if now { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            roles.remove(&row.role);
        }
    }
}

/// True if the errors are about nodes. A queue without room is no failure of the role (A20: it only
/// adds a message).
fn is_of_nodes(errors: &FitErrors) -> bool {
    0 < errors.n_nodes
}
