//! HyperNodes in which a trial must fail, because fewer tasks find room there than the job or the
//! sub-job needs. The plain evaluator tries them as well.
//!
//! Exact because:
//! - places are counted while nothing of the job is placed, and placements only take room away;
//! - nothing counts as ready or pipelined below its minimum (`PluginSet::require_minimum`);
//! - a failed trial leaves only records that the next trial overwrites
//!   (`SessionState::may_skip_trial_of`), and what the pods are told is that of the closest
//!   HyperNode, which is tried in any case.
//!
//! Specification: actions.md 12.2 S12.

use std::collections::BTreeSet;

use vc_framework::{SessionState, Statement};
use vc_model::{HyperNodeId, JobId};

use crate::places::{CountByShape, HyperNodePlaces, count_by_shape};
use crate::sub_job_tasks::SubJobTasks;

/// Places for the tasks of a job, counted once a trial has failed.
#[derive(Default)]
pub(super) struct Pruning {
    has_failed: bool,
    counted: Option<(HyperNodePlaces, CountByShape)>,
}

impl Pruning {
    /// Counts the places, if trials may be skipped at all. Nothing of the job may be placed by the
    /// statement.
    pub(super) fn note_failure(
        &mut self,
        statement: &mut Statement<'_, '_>,
        pending: &[SubJobTasks],
    ) {
        if self.has_failed {
            return;
        }
        self.has_failed = true;
        let tasks = || pending.iter().flat_map(|entry| &entry.tasks);
        let mut classes = BTreeSet::new();
        let is_new_class = |task: &&_| classes.insert(statement.tasks[**task].class);
        let of_each_class: Vec<_> = tasks().filter(is_new_class).collect();
        let may_skip = statement.plugins().require_minimum()
            && of_each_class.iter().all(|&&task| statement.may_skip_trial_of(task))
            && tasks().all(|&task| statement.is_plain(task));
        if may_skip {
            let places = HyperNodePlaces::count(statement, of_each_class.into_iter());
            self.counted = Some((places, count_by_shape(statement, tasks())));
        }
    }

    /// Returns the HyperNode that comes closest to holding the job, if places are counted.
    pub(super) fn closest(&self, candidates: &[HyperNodeId]) -> Option<HyperNodeId> {
        let (places, pods) = self.counted.as_ref()?;
        places.closest(candidates, pods)
    }

    /// True if the job cannot become ready or pipelined in the HyperNode.
    pub(super) fn excludes_job(
        &self,
        session: &SessionState<'_>,
        job: JobId,
        id: HyperNodeId,
    ) -> bool {
        let Some((places, pods)) = &self.counted else { return false };
        let row = &session.jobs[job];
        places.most_in(id, pods) < row.counts.lacks(row.min_available).max(1)
    }

    /// Returns the HyperNodes of the list in which the sub-job may become ready or pipelined.
    pub(super) fn remaining(
        &self,
        session: &SessionState<'_>,
        job: JobId,
        entry: &SubJobTasks,
        mut group: Vec<HyperNodeId>,
    ) -> Vec<HyperNodeId> {
        let Some((places, _)) = &self.counted else { return group };
        let row = &session.jobs[job];
        let sub_job = &row.sub_jobs[entry.sub_job];
        let lacks = match row.policies().is_empty() {
            true => row.counts.lacks(row.min_available),
            false => sub_job.counts.lacks(sub_job.min_available),
        };
        let pods = count_by_shape(session, entry.tasks.iter());
        group.retain(|&id| lacks.max(1) <= places.most_in(id, &pods));
        group
    }
}
