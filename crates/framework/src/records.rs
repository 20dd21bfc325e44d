//! What a session remembers for messages: fit errors and last transactions. Specification: core.md 3.10, 6.

use rustc_hash::FxHashMap;
use vc_model::{FitErrors, JobId, NodeId, TaskId, TaskStatus};

/// What a task was when a statement was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastTransaction {
    pub status: TaskStatus,
    pub node: Option<NodeId>,
    pub evicted: bool,
}

/// Messages of a session, by task and job. Looked up by id only, never walked.
#[derive(Clone, Debug, Default)]
pub struct Records {
    pub fit_errors: FxHashMap<TaskId, FitErrors>,
    pub last_transaction: FxHashMap<TaskId, LastTransaction>,
    /// The job fit message (A45).
    pub job_fit: FxHashMap<JobId, String>,
    /// Tasks that are Pipelined on room that was made for them by an eviction.
    pub evicted_for: FxHashMap<TaskId, NodeId>,
}
