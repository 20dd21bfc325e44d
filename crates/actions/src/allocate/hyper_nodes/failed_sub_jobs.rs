//! HyperNodes in which a trial of a sub-job failed. An equal sub-job of the job fails there in the
//! same state, and is not tried. The plain evaluator tries it.
//!
//! Exact because:
//! - all that a trial reads of a sub-job is in its shape ([`SubJobShape`]), and the rest is the state;
//! - a state has a version of its own, which a rollback restores;
//! - a failed trial leaves only records that the next trial overwrites, and what the pods are told is
//!   that of the closest HyperNode, which is tried in any case.
//!
//! Specification: actions.md 12.2 S14.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use vc_framework::{SessionState, Statement, SubJobShape};
use vc_model::{HyperNodeId, JobId};

use crate::sub_job_tasks::SubJobTasks;

/// The failed trials of one attempt at a job.
#[derive(Default)]
pub(super) struct FailedSubJobs {
    /// By the version of the state and the shape of the sub-job.
    hyper_nodes: FxHashMap<(u64, SubJobShape), BTreeSet<HyperNodeId>>,
}

impl FailedSubJobs {
    /// Removes HyperNodes in which an equal sub-job has failed in this state.
    pub(super) fn exclude(
        &self,
        statement: &mut Statement<'_, '_>,
        job: JobId,
        entry: &SubJobTasks,
        group: &mut Vec<HyperNodeId>,
    ) {
        if self.hyper_nodes.is_empty() {
            return;
        }
        let key = key(statement, job, entry);
        if let Some(failed) = key.and_then(|key| self.hyper_nodes.get(&key)) {
            let n_candidates = group.len();
            group.retain(|id| !failed.contains(id));
            statement.stats().n_equal_sub_jobs += (n_candidates - group.len()) as u64;
        }
    }

    /// Adds failed trials of a sub-job. They must have been undone.
    pub(super) fn add(
        &mut self,
        session: &SessionState<'_>,
        job: JobId,
        entry: &SubJobTasks,
        failed: Vec<HyperNodeId>,
    ) {
        if failed.is_empty() {
            return;
        }
        if let Some(key) = key(session, job, entry) {
            self.hyper_nodes.entry(key).or_default().extend(failed);
        }
    }
}

fn key(session: &SessionState<'_>, job: JobId, entry: &SubJobTasks) -> Option<(u64, SubJobShape)> {
    let shape = session.sub_job_shape((job, entry.sub_job), entry.tasks.iter().copied())?;
    Some((session.version(), shape))
}
