//! The tasks of a job that are still to be placed, by sub-job.
//! Specification: actions.md 4.3, 2.5.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vc_framework::{SessionState, sort_stably};
use vc_model::{JobId, Task, TaskId, TaskStatus};

/// A sub-job with tasks to place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubJobTasks {
    /// Index into the job's sub-jobs.
    pub(crate) sub_job: usize,
    /// True if a minimum of its policy needs the sub-job. Such sub-jobs come first.
    pub(crate) required: bool,
    /// In task order.
    pub(crate) tasks: VecDeque<TaskId>,
}

/// Returns the sub-jobs that have Pending tasks with a request that pass `wanted`. The first one is
/// last in the list.
pub(crate) fn tasks_by_sub_job(
    session: &SessionState<'_>,
    job: JobId,
    wanted: impl Fn(&Task) -> bool,
) -> Vec<SubJobTasks> {
    let tasks = &session.jobs[job].tasks;
    let mut open: Vec<(usize, TaskId)> = Vec::with_capacity(tasks.len());
    for &task in tasks {
        let row = &session.tasks[task];
        if is_open(row) && wanted(row) {
            open.push((row.sub_job, task));
        }
    }
    open.sort_by_key(|&(sub_job, _)| sub_job);
    let required = required(session, job);
    let entry = |of_one: &[(usize, TaskId)]| {
        let sub_job = of_one[0].0;
        let mut tasks: Vec<TaskId> = of_one.iter().map(|&(_, task)| task).collect();
        sort_stably(&mut tasks, |&l, &r| session.plugins().task_order(session.view(), l, r));
        SubJobTasks { sub_job, required: required.contains(&sub_job), tasks: tasks.into() }
    };
    let mut sub_jobs: Vec<SubJobTasks> =
        open.chunk_by(|(l, _), (r, _)| l == r).map(entry).collect();
    sort(session, job, &mut sub_jobs);
    sub_jobs
}

/// True if the task is Pending, has a request, and may be placed.
pub(crate) fn is_open(task: &Task) -> bool {
    task.status == TaskStatus::Pending && !task.best_effort && task.can_be_placed()
}

/// Takes out the sub-job that is first in the current order (A9). Only the sub-job that is taken
/// out changes its own keys, so the others stay sorted.
pub(crate) fn take_first(
    session: &SessionState<'_>,
    job: JobId,
    sub_jobs: &mut Vec<SubJobTasks>,
) -> Option<SubJobTasks> {
    debug_assert!(sub_jobs.is_sorted_by(|l, r| order(session, job, r, l).is_le()));
    sub_jobs.pop()
}

/// Inserts a sub-job at its current position in the order.
pub(crate) fn put_back(
    session: &SessionState<'_>,
    job: JobId,
    sub_jobs: &mut Vec<SubJobTasks>,
    entry: SubJobTasks,
) {
    let place = sub_jobs.partition_point(|other| order(session, job, other, &entry).is_gt());
    sub_jobs.insert(place, entry);
}

/// Sorts the sub-jobs, the first one last. This is needed after placements changed outside of their
/// turns.
pub(crate) fn sort(session: &SessionState<'_>, job: JobId, sub_jobs: &mut [SubJobTasks]) {
    sub_jobs.sort_by(|l, r| order(session, job, r, l));
}

fn order(session: &SessionState<'_>, job: JobId, l: &SubJobTasks, r: &SubJobTasks) -> Ordering {
    let by_sub_job = || session.plugins().sub_job_order(session.view(), job, l.sub_job, r.sub_job);
    r.required.cmp(&l.required).then_with(by_sub_job)
}

/// Returns the required sub-jobs of the job. A policy that lacks k ready sub-jobs for its minimum
/// requires its first k others in sub-job order.
fn required(session: &SessionState<'_>, job: JobId) -> BTreeSet<usize> {
    let row = &session.jobs[job];
    if row.policies().iter().all(|policy| policy.min_sub_groups <= 0) {
        return BTreeSet::new();
    }
    let ready = |&index: &usize| session.plugins().sub_job_ready(session.view(), job, index);
    let existing = (0..row.sub_jobs.len()).filter(|&index| !row.sub_jobs[index].tasks.is_empty());
    let (ready, mut others): (Vec<usize>, Vec<usize>) = existing.partition(ready);
    others.sort_by(|&l, &r| session.plugins().sub_job_order(session.view(), job, l, r));
    let mut counted: BTreeMap<usize, i32> = BTreeMap::new();
    for policy in ready.iter().filter_map(|&index| row.sub_jobs[index].policy) {
        *counted.entry(policy).or_default() += 1;
    }
    let mut is_required = |&index: &usize| {
        let Some(policy) = row.sub_jobs[index].policy else { return false };
        let counted = counted.entry(policy).or_default();
        let required = *counted < row.policies()[policy].min_sub_groups;
        *counted += i32::from(required);
        required
    };
    others.into_iter().filter(|index| is_required(index)).collect()
}
