//! One attempt at a job with sub-groups. Without HyperNodes the only domain is the whole cluster,
//! so only the two levels of the dry run remain.
//! Specification: actions.md 4.5.

use vc_framework::{Session, Statement};
use vc_model::{JobId, NodeId};

use super::pending_tasks::PendingTasks;
use super::place::{PlacementOutcome, commit_or_discard, task_loop};
use crate::sub_job_tasks::{SubJobTasks, put_back, sort, take_first};

/// Places sub-jobs until the job is ready. A sub-job that finds no node is removed from the pending
/// tasks.
pub(super) fn attempt(
    session: &mut Session<'_>,
    job: JobId,
    rest: &mut PendingTasks,
    nodes: &[NodeId],
) -> PlacementOutcome {
    if !rest.is_clear {
        rest.tasks().for_each(|task| session.clear_fit_errors(task));
        rest.is_clear = true;
    }
    let sub_jobs = &mut rest.sub_jobs;
    let mut statement = session.statement();
    while let Some(mut entry) = take_first(&statement, job, sub_jobs) {
        if !place(&mut statement, job, &mut entry, nodes) {
            continue;
        }
        if !entry.tasks.is_empty() {
            put_back(&statement, job, sub_jobs, entry);
        }
        if statement.plugins().job_ready(statement.view(), job) {
            break;
        }
    }
    let n_ready = statement.jobs[job].counts.ready();
    let outcome = commit_or_discard(statement, job);
    // Sub-jobs were put back while tasks counted as placed that were given up, or refused by the
    // binder (A7).
    if session.jobs[job].counts.ready() != n_ready {
        sort(session, job, sub_jobs);
    }
    outcome
}

/// Places a sub-job. Returns true if a task was placed and the sub-job is ready or pipelined. A
/// sub-job that is neither is rolled back.
fn place(
    statement: &mut Statement<'_, '_>,
    job: JobId,
    entry: &mut SubJobTasks,
    nodes: &[NodeId],
) -> bool {
    let mark = statement.mark();
    let n_placed = task_loop(statement, job, entry, nodes);
    let (view, plugins) = (statement.view(), statement.plugins());
    let complete = plugins.sub_job_ready(view, job, entry.sub_job)
        || plugins.sub_job_pipelined(view, job, entry.sub_job);
    if !complete {
        statement.roll_back(mark);
    }
    complete && 0 < n_placed
}
