//! What of a job is still to be placed: its sub-jobs in the order in which they are tried, each
//! with its tasks. Specification: actions.md 4.3.

use std::collections::{BTreeMap, VecDeque};

use vc_framework::Session;
use vc_model::{JobId, Task, TaskId, TaskStatus};

/// A sub-job with tasks to place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubSheet {
    /// Index into the job's sub-jobs.
    pub(crate) sub_job: usize,
    /// In task order.
    pub(crate) tasks: VecDeque<TaskId>,
}

/// The sub-jobs of a job that have Pending tasks with a request that pass `wanted`: those that the
/// minima of the policies require first, then by sub-job order.
pub(crate) fn worksheet(
    session: &Session<'_>,
    job: JobId,
    wanted: impl Fn(&Task) -> bool,
) -> Vec<SubSheet> {
    let mut by_sub_job: BTreeMap<usize, Vec<TaskId>> = BTreeMap::new();
    for &task in &session.jobs[job].tasks {
        let row = &session.tasks[task];
        let open = row.status == TaskStatus::Pending && !row.best_effort && row.invalid.is_none();
        if open && wanted(row) {
            by_sub_job.entry(row.sub_job).or_default().push(task);
        }
    }
    let ranks = ranks(session, job);
    let mut sheets: Vec<SubSheet> = Vec::new();
    for (sub_job, mut tasks) in by_sub_job {
        tasks.sort_by(|&l, &r| session.hooks().task_order(session.ask(), l, r));
        sheets.push(SubSheet { sub_job, tasks: tasks.into() });
    }
    sheets.sort_by_key(|sheet| ranks.get(&sheet.sub_job).copied());
    sheets
}

/// Where each sub-job stands: required ones first.
fn ranks(session: &Session<'_>, job: JobId) -> BTreeMap<usize, usize> {
    let row = &session.jobs[job];
    let ready = |&index: &usize| session.hooks().sub_job_ready(session.ask(), job, index);
    let existing = (0..row.sub_jobs.len()).filter(|&index| !row.sub_jobs[index].tasks.is_empty());
    let (done, mut open): (Vec<usize>, Vec<usize>) = existing.partition(ready);
    open.sort_by(|&l, &r| session.hooks().sub_job_order(session.ask(), job, l, r));
    let mut counted: BTreeMap<usize, i32> = BTreeMap::new();
    for policy in done.iter().filter_map(|&index| row.sub_jobs[index].policy) {
        *counted.entry(policy).or_default() += 1;
    }
    let mut is_required = |&index: &usize| {
        let Some(policy) = row.sub_jobs[index].policy else { return false };
        let counted = counted.entry(policy).or_default();
        let required = *counted < row.policies()[policy].min_sub_groups;
        *counted += i32::from(required);
        required
    };
    let (required, mut others): (Vec<usize>, Vec<usize>) =
        open.into_iter().partition(|index| is_required(index));
    others.extend(done);
    others.sort_by(|&l, &r| session.hooks().sub_job_order(session.ask(), job, l, r));
    required.into_iter().chain(others).enumerate().map(|(rank, index)| (index, rank)).collect()
}
