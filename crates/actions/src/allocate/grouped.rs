//! One attempt at a job with sub-groups. Without HyperNodes every choice between domains has one
//! member, the whole cluster, so that of the two-level dry run the levels remain. Specification:
//! actions.md 4.5.

use vc_framework::{Session, Statement};
use vc_model::{JobId, NodeId};

use super::place::{Outcome, settle, task_loop};
use super::sheet::Rest;
use crate::worksheet::{SubSheet, put_back, sort, take_first};

/// Places sub-job after sub-job until the job is ready. One that finds no place is out of the
/// worksheet.
pub(super) fn attempt(
    session: &mut Session<'_>,
    job: JobId,
    rest: &mut Rest,
    nodes: &[NodeId],
) -> Outcome {
    if !rest.is_clear {
        rest.tasks().for_each(|task| session.clear_fit_errors(task));
        rest.is_clear = true;
    }
    let sheets = &mut rest.sheets;
    let mut statement = session.statement();
    while let Some(mut sheet) = take_first(&statement, job, sheets) {
        if !place(&mut statement, job, &mut sheet, nodes) {
            continue;
        }
        if !sheet.tasks.is_empty() {
            put_back(&statement, job, sheets, sheet);
        }
        if statement.hooks().job_ready(statement.ask(), job) {
            break;
        }
    }
    let n_ready = statement.jobs[job].counts.ready();
    let outcome = settle(statement, job);
    // What was given up, or refused by the binder (A7), was placed when its sub-job was put back.
    if session.jobs[job].counts.ready() != n_ready {
        sort(session, job, sheets);
    }
    outcome
}

/// Whether something of the sub-job was placed and it is ready or pipelined; else nothing is left
/// of the try.
fn place(
    statement: &mut Statement<'_, '_>,
    job: JobId,
    sheet: &mut SubSheet,
    nodes: &[NodeId],
) -> bool {
    let mark = statement.mark();
    let n_placed = task_loop(statement, job, sheet, nodes);
    let (ask, hooks) = (statement.ask(), statement.hooks());
    let complete = hooks.sub_job_ready(ask, job, sheet.sub_job)
        || hooks.sub_job_pipelined(ask, job, sheet.sub_job);
    if !complete {
        statement.roll_back(mark);
    }
    complete && 0 < n_placed
}
