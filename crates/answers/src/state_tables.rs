//! What is the same for all questions about one state: which jobs hold nodes or run, and which nodes
//! are alike.
//! Each table is worked out when a question first needs it. Specification: answers.md 10 (ANS-66).
//!
//! Exact because:
//! - trials place and lift waiting pods of one job only, and restore them. Pods that hold nodes, and amounts,
//!   labels and taints of node objects stay as they are;
//! - `ans_29_what_is_kept_changes_no_answer` compares with a state that was asked nothing before.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use vc_framework::{Session, SessionState};
use vc_model::{JobId, QueueId};

use crate::comparisons::RunningJobs;
use crate::ended_jobs::jobs_on_nodes;
use crate::new_nodes::NodeContents;

/// The tables of one state.
#[derive(Default)]
pub(crate) struct StateTables {
    on_nodes: OnceLock<Vec<JobId>>,
    contents: OnceLock<NodeContents>,
    running: OnceLock<BTreeMap<QueueId, RunningJobs>>,
}

impl StateTables {
    /// Returns the jobs that hold nodes, by the number of their pods there, then by name.
    pub(crate) fn jobs_on_nodes(&self, session: &Session<'_>) -> &[JobId] {
        self.on_nodes.get_or_init(|| jobs_on_nodes(session))
    }

    /// Returns which nodes differ in their name alone.
    pub(crate) fn node_contents(&self, session: &Session<'_>) -> &NodeContents {
        self.contents.get_or_init(|| NodeContents::of(session))
    }

    /// Returns the jobs with pods that run, by queue.
    pub(crate) fn running_jobs(
        &self,
        session: &SessionState<'_>,
    ) -> &BTreeMap<QueueId, RunningJobs> {
        self.running.get_or_init(|| RunningJobs::by_queue(session))
    }
}
