//! One attempt at a job with sub-groups. Without HyperNodes every choice between domains has one
//! member, the whole cluster, so that of the two-level dry run the levels remain. Specification:
//! actions.md 4.5.

use vc_framework::{Session, Statement};
use vc_model::{JobId, NodeId};

use super::place::{Outcome, settle, task_loop};
use crate::worksheet::{SubSheet, take_first};

/// Places sub-job after sub-job until the job is ready. One that finds no place is out of the
/// worksheet.
pub(super) fn attempt(
    session: &mut Session<'_>,
    job: JobId,
    sheets: &mut Vec<SubSheet>,
    nodes: &[NodeId],
) -> Outcome {
    for task in sheets.iter().flat_map(|sheet| &sheet.tasks) {
        session.clear_fit_errors(*task);
    }
    let mut statement = session.statement();
    while let Some(mut sheet) = take_first(&statement, job, sheets) {
        if !place(&mut statement, job, &mut sheet, nodes) {
            continue;
        }
        if !sheet.tasks.is_empty() {
            sheets.push(sheet);
        }
        if statement.hooks().job_ready(statement.ask(), job) {
            break;
        }
    }
    settle(statement, job)
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
