//! What of a job is still to be placed: its sub-jobs, each with its tasks. Specification: actions.md
//! 4.3, 2.5.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vc_framework::{Session, sort_stably};
use vc_model::{JobId, Task, TaskId, TaskStatus};

/// A sub-job with tasks to place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubSheet {
    /// Index into the job's sub-jobs.
    pub(crate) sub_job: usize,
    /// A minimum of its policy needs it; such sub-jobs come first.
    pub(crate) required: bool,
    /// In task order.
    pub(crate) tasks: VecDeque<TaskId>,
}

/// The sub-jobs of a job that have Pending tasks with a request that pass `wanted`, the first one
/// last.
pub(crate) fn worksheet(
    session: &Session<'_>,
    job: JobId,
    wanted: impl Fn(&Task) -> bool,
) -> Vec<SubSheet> {
    let mut by_sub_job: BTreeMap<usize, Vec<TaskId>> = BTreeMap::new();
    for &task in &session.jobs[job].tasks {
        let row = &session.tasks[task];
        if is_open(row) && wanted(row) {
            by_sub_job.entry(row.sub_job).or_default().push(task);
        }
    }
    let required = required(session, job);
    let sheet = |(sub_job, mut tasks): (usize, Vec<TaskId>)| {
        sort_stably(&mut tasks, |&l, &r| session.hooks().task_order(session.ask(), l, r));
        SubSheet { sub_job, required: required.contains(&sub_job), tasks: tasks.into() }
    };
    let mut sheets: Vec<SubSheet> = by_sub_job.into_iter().map(sheet).collect();
    sort(session, job, &mut sheets);
    sheets
}

/// It is Pending, has a request, and may be placed.
pub(crate) fn is_open(task: &Task) -> bool {
    task.status == TaskStatus::Pending && !task.best_effort && task.can_be_placed()
}

/// Takes out the sub-job that is first under the current order (A9). Only the sub-job that is taken
/// out changes its own keys, so the order of the others stays true while they wait; the engine's
/// tests compare it with looking at all.
pub(crate) fn take_first(
    session: &Session<'_>,
    job: JobId,
    sheets: &mut Vec<SubSheet>,
) -> Option<SubSheet> {
    if session.is_fast() {
        return sheets.pop();
    }
    let order = |&l: &usize, &r: &usize| order(session, job, &sheets[l], &sheets[r]);
    let first = (0..sheets.len()).min_by(order)?;
    Some(sheets.remove(first))
}

/// Puts a sub-job back where it belongs now.
pub(crate) fn put_back(
    session: &Session<'_>,
    job: JobId,
    sheets: &mut Vec<SubSheet>,
    sheet: SubSheet,
) {
    let place = sheets.partition_point(|other| order(session, job, other, &sheet).is_gt());
    sheets.insert(place, sheet);
}

/// The first one last: after tasks of the job were placed or given up otherwise.
pub(crate) fn sort(session: &Session<'_>, job: JobId, sheets: &mut [SubSheet]) {
    sheets.sort_by(|l, r| order(session, job, r, l));
}

fn order(session: &Session<'_>, job: JobId, l: &SubSheet, r: &SubSheet) -> Ordering {
    let by_sub_job = || session.hooks().sub_job_order(session.ask(), job, l.sub_job, r.sub_job);
    r.required.cmp(&l.required).then_with(by_sub_job)
}

/// As many sub-jobs per policy, in sub-job order, as its minimum lacks ready ones.
fn required(session: &Session<'_>, job: JobId) -> BTreeSet<usize> {
    let row = &session.jobs[job];
    if row.policies().iter().all(|policy| policy.min_sub_groups <= 0) {
        return BTreeSet::new();
    }
    let ready = |&index: &usize| session.hooks().sub_job_ready(session.ask(), job, index);
    let existing = (0..row.sub_jobs.len()).filter(|&index| !row.sub_jobs[index].tasks.is_empty());
    let (ready, mut others): (Vec<usize>, Vec<usize>) = existing.partition(ready);
    others.sort_by(|&l, &r| session.hooks().sub_job_order(session.ask(), job, l, r));
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
