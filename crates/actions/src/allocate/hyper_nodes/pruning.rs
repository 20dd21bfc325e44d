//! HyperNodes in which a trial must fail, because fewer tasks find room there than the job or the
//! sub-job needs. The plain evaluator tries them as well.
//!
//! Exact because:
//! - places are counted in a state from which the present one goes on, and placements only take room
//!   away;
//! - nothing counts as ready or pipelined below its minimum (`PluginSet::require_minimum`);
//! - a failed trial leaves only records that the next trial overwrites
//!   (`SessionState::may_skip_trial_of`), and what the pods are told is that of the closest
//!   HyperNode, which is tried in any case.
//!
//! Specification: actions.md 12.2 S12.

use std::collections::BTreeSet;

use vc_framework::{SessionState, StateMark, Statement};
use vc_model::{HyperNodeId, JobId, TaskId};

use super::failed_sub_jobs::FailedSubJobs;
use crate::places::{CountByShape, HyperNodePlaces, count_by_shape};
use crate::sub_job_tasks::SubJobTasks;

/// What an attempt knows of trials that must fail.
#[derive(Default)]
pub(super) struct Pruning {
    pub(super) failed: FailedSubJobs,
    /// True once a trial of the job has failed. Places for its tasks are counted then.
    has_failed: bool,
    counted: Option<(HyperNodePlaces, CountByShape)>,
    /// Places for sub-groups of which a trial has failed, and the state in which the last of them were
    /// counted. Other sub-groups may be placed in it.
    of_sub_groups: Option<(StateMark, HyperNodePlaces)>,
}

/// Places that the tasks of a sub-job need in one HyperNode.
pub(super) struct NeededPlaces {
    pods: CountByShape,
    at_least: i64,
}

impl NeededPlaces {
    pub(super) fn of(session: &SessionState<'_>, job: JobId, entry: &SubJobTasks) -> Self {
        let row = &session.jobs[job];
        let sub_job = &row.sub_jobs[entry.sub_job];
        let lacks = match row.policies().is_empty() {
            true => row.counts.lacks(row.min_available),
            false => sub_job.counts.lacks(sub_job.min_available),
        };
        Self { pods: count_by_shape(session, entry.tasks.iter()), at_least: lacks.max(1) }
    }

    fn exceed(&self, places: &HyperNodePlaces, id: HyperNodeId) -> bool {
        places.most_in(id, &self.pods) < self.at_least
    }
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
        if let Some(of_each_class) = countable(statement, tasks) {
            let places = HyperNodePlaces::count(statement, of_each_class.iter());
            self.counted = Some((places, count_by_shape(statement, tasks())));
        }
    }

    /// Counts the places for a sub-group of which a trial has failed, if trials may be skipped at all.
    /// The trial must have been undone.
    pub(super) fn note_failure_of_sub_group(
        &mut self,
        statement: &mut Statement<'_, '_>,
        job: JobId,
        entry: &SubJobTasks,
        needed: &NeededPlaces,
    ) {
        let known = self.of_sub_groups.take().filter(|(state, _)| statement.goes_on_from(*state));
        let is_counted = known.as_ref().is_some_and(|(_, places)| places.has(&needed.pods));
        if is_counted || statement.jobs[job].policies().is_empty() {
            self.of_sub_groups = known;
        } else if let Some(of_each_class) = countable(statement, || entry.tasks.iter()) {
            let mut places = known.map(|(_, places)| places).unwrap_or_default();
            places.add(statement, of_each_class.iter());
            self.of_sub_groups = Some((statement.state_mark(), places));
        }
    }

    /// True if the sub-group cannot become ready or pipelined in the HyperNode.
    pub(super) fn excludes_sub_group(
        &self,
        statement: &Statement<'_, '_>,
        needed: &NeededPlaces,
        id: HyperNodeId,
    ) -> bool {
        self.of_sub_groups.as_ref().is_some_and(|(state, places)| {
            statement.goes_on_from(*state) && needed.exceed(places, id)
        })
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
        needed: &NeededPlaces,
        mut group: Vec<HyperNodeId>,
    ) -> Vec<HyperNodeId> {
        if let Some((places, _)) = &self.counted {
            group.retain(|&id| !needed.exceed(places, id));
        }
        group
    }
}

/// Returns one of these tasks of each class. Returns `None` if trials of them must be run, wherever
/// they fail.
fn countable<'a, T: Iterator<Item = &'a TaskId>>(
    statement: &Statement<'_, '_>,
    tasks: impl Fn() -> T,
) -> Option<Vec<TaskId>> {
    let mut classes = BTreeSet::new();
    let is_new_class = |task: &TaskId| classes.insert(statement.tasks[*task].class);
    let of_each_class: Vec<TaskId> = tasks().copied().filter(is_new_class).collect();
    let may_skip = statement.plugins().require_minimum()
        && of_each_class.iter().all(|&task| statement.may_skip_trial_of(task))
        && tasks().all(|&task| statement.is_plain(task));
    may_skip.then_some(of_each_class)
}
