//! What a session remembers for messages: fit errors and last transactions. Specification: core.md
//! 3.10, 6.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_model::{FitErrors, JobId, NodeId, TaskId, TaskStatus};

use crate::refusals::Refusals;
use crate::session::Session;
use crate::wait_cause::{JobFit, WaitCause};

/// What a task was when a statement was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LastTransaction {
    /// Just before it was undone.
    pub status: TaskStatus,
    /// Likewise; `None`: it was on none.
    pub node: Option<NodeId>,
}

/// Roles with tasks that fit on no node, and how many. None is listed with 0.
pub type FailedRoles = BTreeMap<Arc<str>, u32>;

/// Messages of a session, by task and job. Looked up by id only, never walked.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Why a task fits nowhere. Changed by [`Session::note_fit_errors`] and
    /// [`Session::clear_fit_errors`] only.
    pub fit_errors: FxHashMap<TaskId, Arc<FitErrors>>,
    /// Of jobs that were asked for them: how many of a role's tasks fit on no node.
    pub(crate) failed_roles: FxHashMap<JobId, FailedRoles>,
    /// What a task was in the last statement of allocate or backfill that was discarded; none once a
    /// statement with it stands.
    pub last_transaction: FxHashMap<TaskId, LastTransaction>,
    /// The job fit message (A45). Noted by [`Session::note_job_fit`] only.
    pub(crate) job_fit: FxHashMap<JobId, JobFit>,
    /// Groups that enqueue refuses as before; their job fit messages are there.
    pub(crate) refusals: Refusals,
}

impl Records {
    /// The job fit message of a job, if it has one.
    pub(crate) fn fit_of(&self, job: JobId) -> Option<&Arc<str>> {
        let noted = self.job_fit.get(&job).map(|fit| &fit.text);
        noted.or_else(|| self.refusals.text(job))
    }

    /// Why all pods of a job wait. `None`: that is a matter of single pods.
    pub fn job_cause(&self, job: JobId) -> Option<WaitCause> {
        let noted = self.job_fit.get(&job).map(|fit| fit.cause);
        noted.or_else(|| self.refusals.text(job).map(|_| WaitCause::NotAdmitted))
    }

    /// As [`Session::know_failed_roles`] has counted them.
    pub fn failed_roles(&self, job: JobId) -> &FailedRoles {
        static NONE: FailedRoles = FailedRoles::new();
        self.failed_roles.get(&job).unwrap_or(&NONE)
    }
}

impl Session<'_> {
    /// The task fits nowhere, for these reasons.
    pub fn note_fit_errors(&mut self, task: TaskId, errors: Arc<FitErrors>) {
        let fails = is_of_nodes(&errors);
        let before = self.records.fit_errors.insert(task, errors);
        self.count_failed(task, before.is_some_and(|before| is_of_nodes(&before)), fails);
    }

    /// Nothing is known any more that keeps the task out.
    pub fn clear_fit_errors(&mut self, task: TaskId) {
        if let Some(before) = self.records.fit_errors.remove(&task) {
            self.count_failed(task, is_of_nodes(&before), false);
        }
    }

    /// Counts the roles of the job's tasks that fit on no node, for [`Records::failed_roles`]. They are
    /// walked once and kept from then on: a job of many tasks asks after each that fails (12.2 S10).
    pub fn know_failed_roles(&mut self, job: JobId) {
        if !self.records.failed_roles.contains_key(&job) {
            let walked = self.walk_failed_roles(job);
            self.records.failed_roles.insert(job, walked);
        }
        // The plain way, where it costs nothing: in every story of the tests.
        debug_assert!(
            64 < self.jobs[job].tasks.len()
                || self.records.failed_roles[&job] == self.walk_failed_roles(job),
            "failed roles of {} are not as counted",
            self.jobs[job].key
        );
    }

    fn walk_failed_roles(&self, job: JobId) -> FailedRoles {
        let mut roles = FailedRoles::new();
        for &task in &self.jobs[job].tasks {
            if self.records.fit_errors.get(&task).is_some_and(|errors| is_of_nodes(errors)) {
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

/// A queue without room is no failure of the role (A20 only adds a text).
fn is_of_nodes(errors: &FitErrors) -> bool {
    0 < errors.n_nodes
}
