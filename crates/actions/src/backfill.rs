//! Places best-effort tasks after everything else; knows no gang but JobReady. Specification:
//! actions.md 5.

use std::borrow::Cow;
use std::collections::BTreeMap;

use vc_framework::{Action, Filter, Found, Op, Session, klog, sort_stably};
use vc_model::{
    Code, Counts, Finding, FitErrors, Gates, JobId, NodeId, Reason, TaskId, TaskStatus,
};

use crate::turns::Turns;

pub(crate) struct Backfill;

impl Action for Backfill {
    fn name(&self) -> &'static str {
        "backfill"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Backfill ...");
        for task in collect(session) {
            let promise = Promise::take_back(session, task);
            backfill(session, task);
            promise.into_iter().for_each(|promise| promise.keep(session));
        }
        klog!(5; "Leaving Backfill ...");
    }
}

/// A Pipelined task that was taken off its node for another chance (step 1). Until its turn it
/// holds the place, which may have been freed for it; others do not get that.
struct Promise {
    task: TaskId,
    op: Op,
}

impl Promise {
    fn take_back(session: &mut Session<'_>, task: TaskId) -> Option<Self> {
        if session.tasks[task].status != TaskStatus::Pipelined {
            return None;
        }
        let (_, op) = session.unpipeline(task)?;
        Some(Self { task, op })
    }

    /// A task that fits nowhere now is pipelined again, as if nothing had been tried (A26).
    fn keep(self, session: &mut Session<'_>) {
        if session.tasks[self.task].status != TaskStatus::Pending {
            return;
        }
        session.repipeline(self.op);
        session.clear_fit_errors(self.task);
    }
}

/// Best-effort tasks by queue, job and task order, Pipelined ones among them (steps 1, 2).
fn collect(session: &mut Session<'_>) -> Vec<TaskId> {
    let mut by_job: BTreeMap<JobId, Vec<TaskId>> = BTreeMap::new();
    for job in session.facts().jobs.clone() {
        // Nothing of it is best-effort, unless that was pipelined before allocate failed with the rest.
        if session.may_stand(job) && !may_hold_best_effort(&session.jobs[job].counts) {
            continue;
        }
        if let Err(reason) = takes_part(session, job) {
            let row = &session.jobs[job];
            let queue = &session.queues[row.queue].name;
            klog!(4; "Job <{}> Queue <{queue}> skip backfill, reason: {reason}", row.key);
            continue;
        }
        let mut tasks = waiting_best_effort(session, job);
        sort_stably(&mut tasks, |&l, &r| session.hooks().task_order(session.ask(), l, r));
        if !tasks.is_empty() {
            by_job.insert(job, tasks);
        }
    }
    let jobs: Vec<JobId> = by_job.keys().copied().collect();
    let mut turns = Turns::new(session, &jobs);
    let mut flat = Vec::new();
    while let Some(queue) = turns.next_queue(session) {
        while let Some(job) = turns.next_job(queue) {
            flat.extend(by_job.remove(&job).unwrap_or_default());
        }
        turns.drop_queue(queue);
    }
    flat
}

fn takes_part(session: &Session<'_>, job: JobId) -> Result<(), Cow<'static, str>> {
    if session.jobs[job].is_pending() {
        return Err("job status is pending".into());
    }
    let valid = session.hooks().job_valid(session.ask(), job);
    valid.map_err(|invalid| format!("{}: {}", invalid.reason, invalid.message).into())
}

fn waiting_best_effort(session: &Session<'_>, job: JobId) -> Vec<TaskId> {
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

/// Most jobs have nothing to backfill; their tasks are not walked.
fn may_hold_best_effort(counts: &Counts) -> bool {
    0 < counts.pending_best_effort || 0 < counts.waiting()
}

/// One task: the nodes that pass the plugins, the best of them, and at once there (step 3, 4).
fn backfill(session: &mut Session<'_>, task: TaskId) {
    let nodes = session.facts().nodes.clone();
    if let Err(error) = session.hooks().pre_predicate(session.ask(), task) {
        let finding = Finding { code: Code::Error, reason: Reason::Owned(error.into()) };
        let errors = FitErrors::everywhere(&nodes, &finding);
        session.note_fit_errors(task, errors.into());
        return;
    }
    let found = session.find_remembered(task, Filter::BestEffort);
    match found.unwrap_or_else(|| scan(session, task, &nodes)) {
        Found::Node(node) => place(session, task, node),
        Found::Nowhere(errors) => {
            session.note_fit_errors(task, errors.into());
        }
    }
}

/// The plain way.
fn scan(session: &Session<'_>, task: TaskId, nodes: &[NodeId]) -> Found {
    let scan = session.filter(task, nodes, Filter::BestEffort);
    match session.choose_by_shard(task, &scan.feasible) {
        Some(node) => Found::Node(node),
        None => Found::Nowhere(scan.errors),
    }
}

/// A statement with one operation, so that a refusal leaves nothing behind (A25).
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

/// A best-effort member that waits for room counts like one that was taken back (step 1). Mostly the
/// counters tell that nobody waits for room; then the tasks, which may be many, are not walked
/// (12.2 S10).
fn is_ready(session: &mut Session<'_>, job: JobId) -> bool {
    if session.jobs[job].counts.waiting() == 0 {
        return session.hooks().job_ready(session.ask(), job);
    }
    let waiting = waiting_best_effort(session, job);
    let promises: Vec<Promise> =
        waiting.into_iter().filter_map(|task| Promise::take_back(session, task)).collect();
    let ready = session.hooks().job_ready(session.ask(), job);
    promises.into_iter().for_each(|promise| promise.keep(session));
    ready
}
