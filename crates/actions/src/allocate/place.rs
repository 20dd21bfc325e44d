//! One attempt at a job: the task loop and its outcome. Specification: actions.md 4.4, 4.6-4.9.

use std::collections::BTreeSet;

use vc_framework::{Filter, Found, Refused, Room, Scan, Session, Statement, klog};
use vc_model::{
    Code, Counts, Finding, FitErrors, Gates, JobId, NodeId, QueueId, Reason, TaskId, TaskStatus,
};
use vc_resource::Dim;

use super::grouped;
use super::sheet::Rest;
use crate::victims::is_evicted;
use crate::worksheet::SubSheet;

/// How an attempt ended (4.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Ready,
    Pipelined,
    Neither,
}

/// Tries to fill the job up to readiness, or to give a ready one its next tasks.
pub(super) fn attempt(session: &mut Session<'_>, job: JobId, rest: &mut Rest) -> Outcome {
    let nodes = session.facts().nodes.clone();
    if nodes.is_empty() {
        note_no_nodes(session, rest);
        return Outcome::Neither;
    }
    match session.jobs[job].policies().is_empty() {
        true => flat(session, job, &mut rest.sheets, &nodes),
        false => grouped::attempt(session, job, rest, &nodes),
    }
}

/// A job without policies has one sub-job (4.4).
fn flat(
    session: &mut Session<'_>,
    job: JobId,
    sheets: &mut Vec<SubSheet>,
    nodes: &[NodeId],
) -> Outcome {
    let mut statement = session.statement();
    for sheet in sheets.iter_mut() {
        task_loop(&mut statement, job, sheet, nodes);
    }
    sheets.retain(|sheet| !sheet.tasks.is_empty());
    settle(statement, job)
}

/// Tries the tasks of a sub-job until it is ready; how many were placed (4.6).
pub(super) fn task_loop(
    statement: &mut Statement<'_, '_>,
    job: JobId,
    sheet: &mut SubSheet,
    nodes: &[NodeId],
) -> u32 {
    let mut n_placed = 0;
    while let Some(task) = sheet.tasks.pop_front() {
        let next = visit(statement, job, task, nodes);
        n_placed += u32::from(next == Next::Placed);
        let enough = match next {
            Next::Placed => statement.hooks().sub_job_ready(statement.ask(), job, sheet.sub_job),
            Next::Skipped => false,
            Next::Failed => !goes_on(statement, job, sheet.sub_job),
        };
        if enough {
            break;
        }
    }
    n_placed
}

/// The claim pass: each task of the plan, on its node only (A16). Where filters refuse it because
/// they see `victims`, pods that leave for this job, it waits there. On failure all is as before.
pub(super) fn attempt_planned(
    session: &mut Session<'_>,
    job: JobId,
    plan: &[(TaskId, NodeId)],
    victims: &[TaskId],
) -> Outcome {
    let mut statement = session.statement();
    let mut any_placed = false;
    for &(task, node) in plan {
        any_placed |= match visit(&mut statement, job, task, &[node]) {
            Next::Placed => true,
            Next::Failed => wait(&mut statement, task, node, victims),
            Next::Skipped => false,
        };
    }
    // Without a placement nothing is kept: a job that a plugin calls pipelined all the same is
    // tried on all nodes by the regular pass.
    let outcome = match any_placed {
        true => settle(statement, job),
        false => {
            statement.discard();
            Outcome::Neither
        }
    };
    if outcome == Outcome::Neither {
        for (task, _) in plan {
            session.clear_fit_errors(*task);
            session.records.last_transaction.remove(task);
        }
    }
    outcome
}

/// Pipelines the task if it fits once the victims, and the pods that were evicted there for other jobs,
/// are gone: the place was planned without all of them.
fn wait(statement: &mut Statement<'_, '_>, task: TaskId, node: NodeId, victims: &[TaskId]) -> bool {
    let on_node = statement.nodes[node].tasks.iter().copied();
    let evicted = on_node.filter(|&other| is_evicted(&statement.tasks[other]));
    let leaving: BTreeSet<TaskId> = evicted.chain(victims.iter().copied()).collect();
    let leaving: Vec<TaskId> = leaving.into_iter().collect();
    let passes = statement.without(&leaving, |session| {
        !session.filter(task, &[node], Filter::Allocate).feasible.is_empty()
    });
    if !passes || statement.pipeline(task, node, Room::Releasing).is_err() {
        return false;
    }
    statement.clear_fit_errors(task);
    statement.note_placed(task);
    true
}

/// Commit, keep or discard (4.9).
pub(super) fn settle(statement: Statement<'_, '_>, job: JobId) -> Outcome {
    let ask = statement.ask();
    if statement.hooks().job_ready(ask, job) {
        // Without a placement there is nothing to say, and the state is what it was.
        if !statement.is_empty() {
            statement.commit();
        }
        return Outcome::Ready;
    }
    if statement.hooks().job_pipelined(ask, job) {
        statement.keep();
        return Outcome::Pipelined;
    }
    statement.discard();
    Outcome::Neither
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Placed,
    /// Not tried; the next task is.
    Skipped,
    /// Fits nowhere; the continue rule decides.
    Failed,
}

/// Steps 1 to 10 of the task loop for one task.
fn visit(statement: &mut Statement<'_, '_>, job: JobId, task: TaskId, nodes: &[NodeId]) -> Next {
    let queue = statement.jobs[job].queue;
    if let Err(dims) = statement.hooks().allocatable(statement.ask(), queue, task) {
        let name = statement.queues[queue].name.clone();
        let pod = &statement.tasks[task].key.name;
        klog!(3; "Queue <{name}> is overused when considering task <{pod}>, ignore it.");
        let errors = no_room(statement, queue, &dims);
        statement.note_fit_errors(task, errors.into());
        return Next::Skipped;
    }
    // The queue has room: its gate goes, and the pod is placed once that is seen (steps 2, 3).
    if statement.tasks[task].gates != Gates::None {
        statement.remove_gate(task);
        return Next::Skipped;
    }
    if let Err(error) = statement.hooks().pre_predicate(statement.ask(), task) {
        let finding = Finding { code: Code::Error, reason: Reason::Owned(error.into()) };
        let errors = FitErrors::everywhere(nodes, &finding);
        statement.note_fit_errors(task, errors.into());
        return Next::Failed;
    }
    let (next, errors) = match remembered(statement, task, nodes) {
        Some(answer) => answer,
        None => {
            let scan = scan(statement, task, nodes);
            place(statement, task, scan)
        }
    };
    match errors {
        Some(errors) => statement.note_fit_errors(task, errors.into()),
        None => statement.clear_fit_errors(task),
    };
    next
}

/// What [`visit`] would record of a task without trying it on a node. `None`: it may find one, or
/// that cannot be said.
pub(super) fn look(session: &mut Session<'_>, task: TaskId) -> Option<FitErrors> {
    let queue = session.job_of(task)?.queue;
    if let Err(dims) = session.hooks().allocatable(session.ask(), queue, task) {
        return Some(no_room(session, queue, &dims));
    }
    session.hooks().pre_predicate(session.ask(), task).ok()?;
    match session.find_remembered(task, Filter::Allocate)? {
        Found::Node(_) => None,
        Found::Nowhere(errors) => Some(errors),
    }
}

/// The node that allocate would choose for the task, whether or not its queue has room.
///
/// # Errors
/// Why it fits on none of `nodes`, which are all.
pub(crate) fn find_node(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    nodes: &[NodeId],
) -> Result<NodeId, FitErrors> {
    if let Err(error) = statement.hooks().pre_predicate(statement.ask(), task) {
        let finding = Finding { code: Code::Error, reason: Reason::Owned(error.into()) };
        return Err(FitErrors::everywhere(nodes, &finding));
    }
    if statement.tasks[task].nominated_node.is_none()
        && let Some(found) = statement.find_remembered(task, Filter::Allocate)
    {
        return match found {
            Found::Node(node) => Ok(node),
            Found::Nowhere(errors) => Err(errors),
        };
    }
    let Scan { feasible, errors } = scan(statement, task, nodes);
    statement.choose_by_group(task, &feasible).ok_or(errors)
}

/// What the fast evaluator says for a task without nomination. `None`: the plain one has to.
fn remembered(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    nodes: &[NodeId],
) -> Option<(Next, Option<FitErrors>)> {
    let all = nodes.len() == statement.facts().nodes.len();
    if !all || statement.tasks[task].nominated_node.is_some() {
        return None;
    }
    match statement.find_remembered(task, Filter::Allocate)? {
        Found::Node(node) => {
            // A node that refuses is a matter of the plain loop (A21).
            put(statement, task, node).ok()?;
            statement.note_placed(task);
            Some((Next::Placed, None))
        }
        Found::Nowhere(errors) => Some((Next::Failed, Some(errors))),
    }
}

/// The nominated node alone if the task fits there, else all nodes (step 6).
fn scan(session: &Session<'_>, task: TaskId, nodes: &[NodeId]) -> Scan {
    let nominated = session.tasks[task].nominated_node.as_ref();
    let nominated = nominated.and_then(|name| session.node(name));
    if let Some(node) = nominated.filter(|node| nodes.contains(node))
        && session.fits_future_idle(task, node)
    {
        let scan = session.filter(task, &[node], Filter::Allocate);
        if !scan.feasible.is_empty() {
            return scan;
        }
    }
    session.filter(task, nodes, Filter::Allocate)
}

/// Steps 7, 9 and 10: choose and place. A node that refuses counts as one that does not fit, and
/// the choice is repeated (A21). The errors are those of a task that fits nowhere.
fn place(statement: &mut Statement<'_, '_>, task: TaskId, scan: Scan) -> (Next, Option<FitErrors>) {
    let Scan { feasible: mut nodes, mut errors } = scan;
    while let Some(node) = statement.choose_by_group(task, &nodes) {
        let Err(refused) = put(statement, task, node) else {
            statement.note_placed(task);
            return (Next::Placed, None);
        };
        let reason = Reason::Owned(refused.to_string().into());
        errors.add(node, &[Finding { code: Code::Error, reason }]);
        nodes.retain(|&other| other != node);
    }
    match nodes.is_empty() {
        true => (Next::Failed, Some(errors)),
        false => (Next::Skipped, None),
    }
}

fn put(statement: &mut Statement<'_, '_>, task: TaskId, node: NodeId) -> Result<(), Refused> {
    if statement.fits_idle(task, node) {
        return statement.allocate(task, node);
    }
    let done = statement.pipeline(task, node, Room::Releasing);
    if let Err(refused) = &done {
        let (task, node) = (&statement.tasks[task].key, &statement.nodes[node].name);
        tracing::error!("Failed to pipeline Task <{task}> on Node <{node}>: {refused}");
    }
    done
}

/// A20: which dimensions of the queue are short. A queue that is not open has room for nobody
/// (C-33).
fn no_room(session: &Session<'_>, queue: QueueId, dims: &[Dim]) -> FitErrors {
    let row = &session.queues[queue];
    let mut names: Vec<&str> = dims.iter().map(|&dim| session.dims.name(dim)).collect();
    names.sort_unstable();
    let text = match (row.is_open(), names.is_empty()) {
        (false, _) => format!("queue {} is {}", row.name, row.state.as_str()),
        (true, true) => format!("queue {} has no room", row.name),
        (true, false) => {
            format!("queue {} has no room: insufficient {}", row.name, names.join(", "))
        }
    };
    FitErrors::fixed(text)
}

fn note_no_nodes(session: &mut Session<'_>, rest: &mut Rest) {
    rest.is_clear = false;
    for task in rest.tasks() {
        session.note_fit_errors(task, FitErrors::default().into());
    }
}

/// May the loop go on after a task found no node: only if not all tasks are required (4.6).
fn goes_on(session: &mut Session<'_>, job: JobId, sub_job: usize) -> bool {
    let row = &session.jobs[job];
    let count = |tasks: &[TaskId]| i64::try_from(tasks.len()).unwrap_or(i64::MAX);
    let sub = &row.sub_jobs[sub_job];
    if i64::from(row.min_available) == count(&row.tasks)
        || count(&sub.tasks) <= i64::from(sub.min_available)
    {
        return false;
    }
    if !row.policies().is_empty() {
        return true;
    }
    session.know_failed_roles(job);
    let (row, failed) = (&session.jobs[job], session.records.failed_roles(job));
    if i64::from(row.min_available) < row.task_min_available_total {
        let open = row.roles.iter().filter(|(role, _)| !failed.contains_key(*role));
        let pending: u32 = open.map(|(_, counts)| counts.of(TaskStatus::Pending)).sum();
        return i64::from(row.min_available) <= i64::from(row.counts.ready() + pending);
    }
    let none = Counts::default();
    !failed.keys().any(|role| {
        let minimum = row.task_min_available.get(role).copied().unwrap_or(0);
        let counts = row.roles.get(role).unwrap_or(&none);
        let placed = counts.ready() + counts.pending_best_effort;
        0 < minimum && i64::from(placed) < i64::from(minimum)
    })
}
