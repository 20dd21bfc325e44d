//! What a session remembers for messages: fit errors and last transactions. Specification: core.md
//! 3.10, 6.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_model::{FitErrors, JobId, NodeId, TaskId, TaskStatus};

use crate::refusals::Refusals;

/// What a task was when a statement was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastTransaction {
    /// Just before it was undone.
    pub status: TaskStatus,
    /// Likewise; `None`: it was on none.
    pub node: Option<NodeId>,
    /// It was Pipelined on room that an eviction was to make.
    pub evicted: bool,
}

/// Messages of a session, by task and job. Looked up by id only, never walked.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Why a task fits nowhere.
    pub fit_errors: FxHashMap<TaskId, Arc<FitErrors>>,
    /// What a task was in the last statement that was discarded; none once one with it stands.
    pub last_transaction: FxHashMap<TaskId, LastTransaction>,
    /// The job fit message (A45).
    pub job_fit: FxHashMap<JobId, Arc<str>>,
    /// Tasks that are Pipelined on room that was made for them by an eviction.
    pub evicted_for: FxHashMap<TaskId, NodeId>,
    /// Groups that enqueue refuses as before; their job fit messages are there.
    pub(crate) refusals: Refusals,
}

impl Records {
    /// The job fit message of a job, if it has one.
    pub(crate) fn fit_of(&self, job: JobId) -> Option<&Arc<str>> {
        self.job_fit.get(&job).or_else(|| self.refusals.text(job))
    }
}
