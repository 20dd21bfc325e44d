//! The action `backfill`: places best-effort tasks after everything else. The only gang rule it
//! reads is JobReady.
//! Specification: actions.md 5.

use std::borrow::Cow;
use std::collections::BTreeMap;

use vc_framework::{
    Action, Filter, NodeSearch, Op, Session, SessionState, WaitCause, klog, sort_stably,
};
use vc_model::{
    Code, Counts, Finding, FitErrors, Gates, JobId, NodeId, Reason, TaskId, TaskStatus,
};

use crate::job_queue::JobQueue;
use crate::topology;

/// Why a best-effort member of a job with a network topology fits nowhere.
const TOO_FAR: &str =
    "network topology: no node is in a HyperNode of an allowed tier with its other pods";

pub(crate) struct Backfill;

impl Action for Backfill {
    fn name(&self) -> &'static str {
        "backfill"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Backfill ...");
        for tasks in collect(session) {
            backfill_job(session, tasks);
        }
        klog!(5; "Leaving Backfill ...");
    }
}

/// A Pipelined task that was taken off its node, to be tried again (step 1). Until its turn it
/// keeps its room, which evictions may have freed for it.
struct BackfillPromise {
    task: TaskId,
    op: Op,
}

impl BackfillPromise {
    fn take_back(session: &mut Session<'_>, task: TaskId) -> Option<Self> {
        if session.tasks[task].status != TaskStatus::Pipelined {
            return None;
        }
        let (_, op) = session.unpipeline(task)?;
        Some(Self { task, op })
    }

    /// A26: a task that fits nowhere now is pipelined again, as if nothing had been tried. Returns
    /// `None` then.
    fn keep_if_unplaced(self, session: &mut Session<'_>) -> Option<Self> {
        if session.tasks[self.task].status != TaskStatus::Pending {
            return Some(self);
        }
        session.repipeline(self.op);
        session.clear_fit_errors(self.task);
        None
    }

    /// A26: a task whose new place is not bound in this cycle keeps its former one. Otherwise the
    /// room that evictions made for it would be free for others.
    fn keep_if_unbound(self, session: &mut Session<'_>) {
        if session.tasks[self.task].status == TaskStatus::Allocated {
            session.unallocate(self.task);
            session.repipeline(self.op);
        }
    }
}

/// Places the best-effort tasks of one job, in their order.
fn backfill_job(session: &mut Session<'_>, tasks: Vec<TaskId>) {
    let mut promises = Vec::new();
    for task in tasks {
        let promise = BackfillPromise::take_back(session, task);
        backfill(session, task);
        promises.extend(promise.and_then(|promise| promise.keep_if_unplaced(session)));
    }
    promises.into_iter().for_each(|promise| promise.keep_if_unbound(session));
}

/// Returns the best-effort tasks of a job that find a node, as backfill places them, and the first
/// one that finds none. Everything is undone.
pub fn try_best_effort(
    session: &mut Session<'_>,
    job: JobId,
) -> (Vec<(TaskId, NodeId)>, Option<TaskId>) {
    let mut tasks = waiting_best_effort(session, job);
    sort_stably(&mut tasks, |&l, &r| session.plugins().task_order(session.view(), l, r));
    let nodes = session.info().nodes.clone();
    let (mut placed, mut failed) = (Vec::new(), None);
    let mut statement = session.statement();
    for task in tasks {
        let near = near_enough(&statement, task, &nodes);
        let is_refused = statement.plugins().pre_predicate(statement.view(), task).is_err();
        let found = scan(&statement, task, near.as_deref().unwrap_or(&nodes));
        match found {
            NodeSearch::Node(node) if !is_refused && statement.allocate(task, node).is_ok() => {
                placed.push((task, node));
            }
            _ => failed = failed.or(Some(task)),
        }
    }
    statement.discard();
    (placed, failed)
}

/// Returns the best-effort tasks of each job by queue, job and task order, including Pipelined ones
/// (steps 1, 2).
fn collect(session: &mut Session<'_>) -> Vec<Vec<TaskId>> {
    let mut by_job: BTreeMap<JobId, Vec<TaskId>> = BTreeMap::new();
    for job in session.info().jobs.clone() {
        // Such a job has best-effort tasks only if some were pipelined before the failure in
        // allocate.
        if session.was_unschedulable(job) && !may_hold_best_effort(&session.jobs[job].counts) {
            continue;
        }
        if let Err(reason) = takes_part(session, job) {
            let row = &session.jobs[job];
            let queue = &session.queues[row.queue].name;
            klog!(4; "Job <{}> Queue <{queue}> skip backfill, reason: {reason}", row.key);
            continue;
        }
        let mut tasks = waiting_best_effort(session, job);
        sort_stably(&mut tasks, |&l, &r| session.plugins().task_order(session.view(), l, r));
        if !tasks.is_empty() {
            by_job.insert(job, tasks);
        }
    }
    let jobs: Vec<JobId> = by_job.keys().copied().collect();
    let mut job_queue = JobQueue::new(session, &jobs);
    let mut in_order = Vec::new();
    while let Some(queue) = job_queue.next_queue(session) {
        while let Some(job) = job_queue.next_job(session, queue) {
            in_order.extend(by_job.remove(&job));
        }
        job_queue.drop_queue(session, queue);
    }
    in_order
}

fn takes_part(session: &mut Session<'_>, job: JobId) -> Result<(), Cow<'static, str>> {
    if session.jobs[job].is_pending() {
        return Err("job status is pending".into());
    }
    if let Err(invalid) = session.plugins().job_valid(session.view(), job) {
        return Err(format!("{}: {}", invalid.reason, invalid.message).into());
    }
    // As in allocate (4.2, row 4).
    if may_hold_best_effort(&session.jobs[job].counts)
        && let Some(text) = topology::message(session, job)
    {
        session.note_job_fit(job, WaitCause::Topology, text.as_str());
        return Err(text.into());
    }
    Ok(())
}

fn waiting_best_effort(session: &SessionState<'_>, job: JobId) -> Vec<TaskId> {
    if !may_hold_best_effort(&session.jobs[job].counts) {
        return Vec::new();
    }
    let mut tasks = Vec::new();
    for &task in &session.jobs[job].tasks {
        let row = &session.tasks[task];
        let free = row.best_effort && row.gates == Gates::None && row.can_be_placed();
        if free && matches!(row.status, TaskStatus::Pending | TaskStatus::Pipelined) {
            tasks.push(task);
        }
    }
    tasks
}

/// True if the job may have tasks to backfill. Most jobs have none, so that their tasks are not
/// visited.
fn may_hold_best_effort(counts: &Counts) -> bool {
    0 < counts.pending_best_effort || 0 < counts.waiting()
}

/// Places one task on the best node that passes the filters (steps 3, 4).
fn backfill(session: &mut Session<'_>, task: TaskId) {
    let nodes = session.info().nodes.clone();
    if let Err(error) = session.plugins().pre_predicate(session.view(), task) {
        let finding = Finding { code: Code::Error, reason: Reason::Owned(error.into()) };
        let errors = FitErrors::everywhere(&nodes, &finding);
        session.note_fit_errors(task, errors.into());
        return;
    }
    let found = match near_enough(session, task, &nodes) {
        Some(near) if near.is_empty() => NodeSearch::Nowhere(FitErrors::fixed(TOO_FAR.to_owned())),
        Some(near) => scan(session, task, &near),
        None => session
            .find_cached(task, Filter::BestEffort)
            .unwrap_or_else(|| scan(session, task, &nodes)),
    };
    match found {
        NodeSearch::Node(node) => place(session, task, node),
        NodeSearch::Nowhere(errors) => {
            session.note_fit_errors(task, errors.into());
        }
    }
}

/// Returns the nodes that the network topology of the job allows the task. Returns `None` if it has
/// none. A best-effort member elsewhere would leave no HyperNode for the others.
fn near_enough(session: &SessionState<'_>, task: TaskId, nodes: &[NodeId]) -> Option<Vec<NodeId>> {
    let view = session.view();
    session.tasks[task].job.filter(|&job| view.is_in_hyper_nodes(job))?;
    Some(nodes.iter().copied().filter(|&node| view.is_near_enough(task, node)).collect())
}

/// Searches all nodes as the plain evaluator does.
fn scan(session: &SessionState<'_>, task: TaskId, nodes: &[NodeId]) -> NodeSearch {
    let scan = session.filter(task, nodes, Filter::BestEffort);
    match session.choose_by_shard(task, &scan.feasible) {
        Some(node) => NodeSearch::Node(node),
        None => NodeSearch::Nowhere(scan.errors),
    }
}

/// Places a task in a statement of one operation. A25: a refused operation leaves nothing behind.
fn place(session: &mut Session<'_>, task: TaskId, node: NodeId) {
    let Some(job) = session.tasks[task].job else { return };
    let mut statement = session.statement();
    if let Err(refused) = statement.allocate(task, node) {
        statement.discard();
        let reason = Reason::Owned(refused.to_string().into());
        let finding = Finding { code: Code::Error, reason };
        let errors = FitErrors::everywhere(&[node], &finding);
        session.note_fit_errors(task, errors.into());
        return;
    }
    statement.keep();
    session.note_placed(task);
    session.clear_fit_errors(task);
    if is_ready(session, job) {
        session.dispatch_allocated(job);
    }
}

/// True if the job is ready when Pipelined best-effort members count as taken back (step 1). If no
/// task is pipelined, the counters decide, and the tasks are not visited (12.2 S10).
fn is_ready(session: &mut Session<'_>, job: JobId) -> bool {
    if session.jobs[job].counts.waiting() == 0 {
        return session.plugins().job_ready(session.view(), job);
    }
    let waiting = waiting_best_effort(session, job);
    let promises: Vec<BackfillPromise> =
        waiting.into_iter().filter_map(|task| BackfillPromise::take_back(session, task)).collect();
    let ready = session.plugins().job_ready(session.view(), job);
    for promise in promises {
        promise.keep_if_unplaced(session);
    }
    ready
}
