//! One attempt at a job: the task loop and its outcome. Specification: actions.md 4.4, 4.6-4.9.

use std::collections::BTreeSet;

use vc_framework::{
    Filter, NodeScoreCache, NodeSearch, Op, OperationRefused, Room, Scan, Session, SessionState,
    Statement, klog,
};
use vc_model::{
    Code, Counts, Finding, FitErrors, Gates, JobId, NodeId, QueueId, Reason, TaskId, TaskStatus,
};
use vc_resource::Dim;

use super::pending_tasks::PendingTasks;
use super::{grouped, hyper_nodes};
use crate::sub_job_tasks::SubJobTasks;
use crate::victims::is_evicted;

/// Outcome of an attempt (actions.md 4.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlacementOutcome {
    Ready,
    Pipelined,
    Neither,
}

/// Tries to place the job until it is ready. A ready job gets its next tasks.
pub(super) fn attempt(
    session: &mut Session<'_>,
    job: JobId,
    rest: &mut PendingTasks,
) -> PlacementOutcome {
    let nodes = session.info().nodes.clone();
    if nodes.is_empty() {
        note_no_nodes(session, rest);
        return PlacementOutcome::Neither;
    }
    if session.view().is_in_hyper_nodes(job) {
        return hyper_nodes::attempt(session, job, rest);
    }
    match session.jobs[job].policies().is_empty() {
        true => flat(session, job, &mut rest.sub_jobs, &nodes),
        false => grouped::attempt(session, job, rest, &nodes),
    }
}

/// Places a job without policies, which has one sub-job (actions.md 4.4).
fn flat(
    session: &mut Session<'_>,
    job: JobId,
    sub_jobs: &mut Vec<SubJobTasks>,
    nodes: &[NodeId],
) -> PlacementOutcome {
    let mut statement = session.statement();
    for entry in sub_jobs.iter_mut() {
        task_loop(&mut statement, job, entry, nodes);
    }
    sub_jobs.retain(|entry| !entry.tasks.is_empty());
    commit_or_discard(statement, job)
}

/// Tries the tasks of a sub-job until it is ready. Returns the number of placed tasks (actions.md
/// 4.6).
pub(super) fn task_loop(
    statement: &mut Statement<'_, '_>,
    job: JobId,
    entry: &mut SubJobTasks,
    nodes: &[NodeId],
) -> u32 {
    let mut n_placed = 0;
    while let Some(task) = entry.tasks.pop_front() {
        let next = visit(statement, job, task, nodes);
        n_placed += u32::from(next == NextStep::Placed);
        let enough = match next {
            NextStep::Placed => {
                statement.plugins().sub_job_ready(statement.view(), job, entry.sub_job)
            }
            NextStep::Skipped => false,
            NextStep::Failed => !goes_on(statement, job, entry.sub_job),
        };
        if enough {
            break;
        }
    }
    n_placed
}

/// Places a job with an eviction hold: each task on its planned node only (A16). On failure nothing
/// is changed. If filters refuse a task because of `victims`, pods that terminate for this job, it
/// is pipelined there.
pub(super) fn attempt_planned(
    session: &mut Session<'_>,
    job: JobId,
    plan: &[(TaskId, NodeId)],
    victims: &[TaskId],
) -> PlacementOutcome {
    let mut statement = session.statement();
    let mut any_placed = false;
    for &(task, node) in plan {
        any_placed |= match visit(&mut statement, job, task, &[node]) {
            NextStep::Placed => true,
            NextStep::Failed => wait(&mut statement, task, node, victims),
            NextStep::Skipped => false,
        };
    }
    // Without a placement nothing is kept. If a plugin calls the job pipelined anyway, the regular
    // pass tries it on all nodes. HyperNodes may have changed since the nodes were planned.
    let placed = statement.ops().iter().map(Op::task);
    let outcome = match any_placed && !statement.view().breaks_topology(job, placed) {
        true => commit_or_discard(statement, job),
        false => {
            statement.discard();
            PlacementOutcome::Neither
        }
    };
    if outcome == PlacementOutcome::Neither {
        for (task, _) in plan {
            session.clear_fit_errors(*task);
            session.forget_transaction(*task);
        }
    }
    outcome
}

/// Pipelines the task if it fits without the victims and without pods that were evicted there for
/// other jobs. The node was planned without all of them.
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

/// Commits, keeps or discards the statement (actions.md 4.9).
pub(super) fn commit_or_discard(statement: Statement<'_, '_>, job: JobId) -> PlacementOutcome {
    let view = statement.view();
    if statement.plugins().job_ready(view, job) {
        // Without a placement there is nothing to commit, and the state is unchanged.
        if !statement.is_empty() {
            statement.commit();
        }
        return PlacementOutcome::Ready;
    }
    if statement.plugins().job_pipelined(view, job) {
        statement.keep();
        return PlacementOutcome::Pipelined;
    }
    statement.discard();
    PlacementOutcome::Neither
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextStep {
    Placed,
    /// The task was not tried; the loop continues.
    Skipped,
    /// The task fits nowhere; the continue rule decides.
    Failed,
}

/// Runs steps 1 to 10 of the task loop for one task (actions.md 4.6).
fn visit(
    statement: &mut Statement<'_, '_>,
    job: JobId,
    task: TaskId,
    nodes: &[NodeId],
) -> NextStep {
    if !may_try(statement, job, task) {
        return NextStep::Skipped;
    }
    if let Err(error) = statement.plugins().pre_predicate(statement.view(), task) {
        let finding = Finding { code: Code::Error, reason: Reason::Owned(error.into()) };
        let errors = FitErrors::everywhere(nodes, &finding);
        statement.note_fit_errors(task, errors.into());
        return NextStep::Failed;
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

/// True if the queue has room for the task and the task has no gate. If only the gate is in the way,
/// it is removed; the pod is placed once the removal is observed (steps 1 to 3).
pub(super) fn may_try(statement: &mut Statement<'_, '_>, job: JobId, task: TaskId) -> bool {
    let queue = statement.jobs[job].queue;
    if let Err(dims) = statement.plugins().allocatable(statement.view(), queue, task) {
        let name = statement.queues[queue].name.clone();
        let pod = &statement.tasks[task].key.name;
        klog!(3; "Queue <{name}> is overused when considering task <{pod}>, ignore it.");
        let errors = no_room(statement, queue, &dims);
        statement.note_fit_errors(task, errors.into());
        return false;
    }
    if statement.tasks[task].gates != Gates::None {
        statement.remove_gate(task);
        return false;
    }
    true
}

/// Returns the fit errors that [`visit`] would record, without placing the task. Returns `None` if
/// it may find a node, or if cached results cannot decide.
pub(super) fn look(
    session: &SessionState<'_>,
    score_cache: &mut NodeScoreCache,
    task: TaskId,
) -> Option<FitErrors> {
    let queue = session.job_of(task)?.queue;
    if let Err(dims) = session.plugins().allocatable(session.view(), queue, task) {
        return Some(no_room(session, queue, &dims));
    }
    session.plugins().pre_predicate(session.view(), task).ok()?;
    match score_cache.search(session, task, Filter::Allocate)? {
        NodeSearch::Node(_) => None,
        NodeSearch::Nowhere(errors) => Some(errors),
    }
}

/// Returns the node that allocate would choose for the task, whether or not its queue has room.
/// `nodes` are all nodes of the session.
///
/// # Errors
/// Why the task fits on none of them.
pub(crate) fn find_node(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    nodes: &[NodeId],
) -> Result<NodeId, FitErrors> {
    if let Err(error) = statement.plugins().pre_predicate(statement.view(), task) {
        let finding = Finding { code: Code::Error, reason: Reason::Owned(error.into()) };
        return Err(FitErrors::everywhere(nodes, &finding));
    }
    if statement.tasks[task].nominated_node.is_none()
        && let Some(found) = statement.find_cached(task, Filter::Allocate)
    {
        return match found {
            NodeSearch::Node(node) => Ok(node),
            NodeSearch::Nowhere(errors) => Err(errors),
        };
    }
    let Scan { feasible, errors } = scan(statement, task, nodes);
    statement.choose_by_group(task, &feasible).ok_or(errors)
}

/// Places a task without a nomination by the fast evaluator. Returns `None` if the plain evaluator
/// has to do it.
fn remembered(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    nodes: &[NodeId],
) -> Option<(NextStep, Option<FitErrors>)> {
    let all = nodes.len() == statement.info().nodes.len();
    if !all || statement.tasks[task].nominated_node.is_some() {
        return None;
    }
    match statement.find_cached(task, Filter::Allocate)? {
        NodeSearch::Node(node) => {
            // A21: the plain loop handles a node that refuses.
            put(statement, task, node).ok()?;
            statement.note_placed(task);
            Some((NextStep::Placed, None))
        }
        NodeSearch::Nowhere(errors) => Some((NextStep::Failed, Some(errors))),
    }
}

/// Filters the nominated node alone if the task fits there, else all nodes (step 6).
fn scan(session: &SessionState<'_>, task: TaskId, nodes: &[NodeId]) -> Scan {
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

/// Chooses a node and places the task (steps 7, 9 and 10). A21: a node that refuses counts as
/// unfit, and the choice is repeated. If idle nodes refuse because pods that leave still hold what
/// the task needs, and no other node is left, it waits there. The errors are `Some` only if the task
/// fits nowhere.
fn place(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    scan: Scan,
) -> (NextStep, Option<FitErrors>) {
    let Scan { feasible: mut nodes, mut errors } = scan;
    let mut held_by_leaving = Vec::new();
    while let Some(node) = statement.choose_by_group(task, &nodes) {
        let Err(refused) = put(statement, task, node) else {
            statement.note_placed(task);
            return (NextStep::Placed, None);
        };
        if refused == OperationRefused::NotReserved {
            held_by_leaving.push(node);
        }
        let reason = Reason::Owned(refused.to_string().into());
        errors.add(node, &[Finding { code: Code::Error, reason }]);
        nodes.retain(|&other| other != node);
    }
    let mut waits = held_by_leaving.into_iter();
    if waits.any(|node| statement.pipeline(task, node, Room::Releasing).is_ok()) {
        statement.note_placed(task);
        return (NextStep::Placed, None);
    }
    match nodes.is_empty() {
        true => (NextStep::Failed, Some(errors)),
        false => (NextStep::Skipped, None),
    }
}

fn put(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    node: NodeId,
) -> Result<(), OperationRefused> {
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

/// A20: returns the error that names the dimensions of which the queue is short. C-33: a queue that
/// is not open has room for no task.
fn no_room(session: &SessionState<'_>, queue: QueueId, dims: &[Dim]) -> FitErrors {
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

fn note_no_nodes(session: &mut Session<'_>, rest: &mut PendingTasks) {
    rest.is_clear = false;
    for task in rest.tasks() {
        session.note_fit_errors(task, FitErrors::default().into());
    }
}

/// True if the task loop may continue after a task found no node. This requires that not all tasks
/// are needed (actions.md 4.6).
fn goes_on(statement: &mut Statement<'_, '_>, job: JobId, sub_job: usize) -> bool {
    let row = &statement.jobs[job];
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
    statement.know_failed_roles(job);
    let (row, failed) = (&statement.jobs[job], statement.records.failed_roles(job));
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
