//! Places best-effort tasks after everything else; knows no gang but JobReady. Specification: actions.md 5.

use vc_framework::{Action, Filter, Op, Session, klog};
use vc_model::{Code, Finding, FitErrors, Gates, JobId, NodeId, Reason, TaskId, TaskStatus};

use crate::turns::Turns;

pub(crate) struct Backfill;

impl Action for Backfill {
    fn name(&self) -> &'static str {
        "backfill"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Backfill ...");
        let (tasks, taken_back) = collect(session);
        for task in tasks {
            backfill(session, task);
        }
        // What preempt had pipelined and what fits nowhere now keeps its promise (A26).
        for (task, op) in taken_back {
            if session.tasks[task].status == TaskStatus::Pending {
                session.repipeline(op);
            }
        }
        klog!(5; "Leaving Backfill ...");
    }
}

/// Best-effort tasks by queue, job and task order; Pipelined ones are taken back first.
fn collect(session: &mut Session<'_>) -> (Vec<TaskId>, Vec<(TaskId, Op)>) {
    let mut by_job: Vec<(JobId, Vec<TaskId>)> = Vec::new();
    let mut taken_back = Vec::new();
    for job in session.facts().jobs.clone() {
        if let Err(reason) = takes_part(session, job) {
            let row = &session.jobs[job];
            let queue = &session.queues[row.queue].name;
            klog!(4; "Job <{}> Queue <{queue}> skip backfill, reason: {reason}", row.key);
            continue;
        }
        let mut tasks = pending_best_effort(session, job, &mut taken_back);
        tasks.sort_by(|&l, &r| session.hooks().task_order(session.ask(), l, r));
        if !tasks.is_empty() {
            by_job.push((job, tasks));
        }
    }
    let jobs: Vec<JobId> = by_job.iter().map(|(job, _)| *job).collect();
    let mut turns = Turns::new(session, &jobs);
    let mut flat = Vec::new();
    while let Some(queue) = turns.next_queue(session) {
        while let Some(job) = turns.next_job(queue) {
            let tasks = by_job.iter().find(|(other, _)| *other == job);
            flat.extend(tasks.into_iter().flat_map(|(_, tasks)| tasks.iter().copied()));
        }
        turns.drop_queue(queue);
    }
    (flat, taken_back)
}

fn takes_part(session: &Session<'_>, job: JobId) -> Result<(), String> {
    if session.jobs[job].is_pending() {
        return Err("job status is pending".to_owned());
    }
    let valid = session.hooks().job_valid(session.ask(), job);
    valid.map_err(|invalid| format!("{}: {}", invalid.reason, invalid.message))
}

fn pending_best_effort(
    session: &mut Session<'_>,
    job: JobId,
    taken_back: &mut Vec<(TaskId, Op)>,
) -> Vec<TaskId> {
    let mut tasks = Vec::new();
    for task in session.jobs[job].tasks.clone() {
        let row = &session.tasks[task];
        if !row.best_effort || row.gates != Gates::None || row.invalid.is_some() {
            continue;
        }
        match row.status {
            TaskStatus::Pending => tasks.push(task),
            TaskStatus::Pipelined => {
                if let Some((_, op)) = session.unpipeline(task) {
                    taken_back.push((task, op));
                    tasks.push(task);
                }
            }
            _ => {}
        }
    }
    tasks
}

/// One task: the nodes that pass the plugins, the best of them, and at once there (step 3, 4).
fn backfill(session: &mut Session<'_>, task: TaskId) {
    let nodes = session.facts().nodes.clone();
    if let Err(error) = session.hooks().pre_predicate(session.ask(), task) {
        let finding = Finding { code: Code::Error, reason: Reason::Owned(error.into()) };
        session.records.fit_errors.insert(task, FitErrors::everywhere(&nodes, &finding));
        return;
    }
    let scan = session.filter(task, &nodes, Filter::BestEffort);
    let Some(node) = session.choose(task, &scan.feasible) else {
        session.records.fit_errors.insert(task, scan.errors);
        return;
    };
    place(session, task, node);
}

fn place(session: &mut Session<'_>, task: TaskId, node: NodeId) {
    let Some(job) = session.tasks[task].job else { return };
    let mut statement = session.statement();
    if let Err(refused) = statement.allocate(task, node) {
        statement.discard();
        let reason = Reason::Owned(refused.to_string().into());
        let finding = Finding { code: Code::Error, reason };
        session.records.fit_errors.insert(task, FitErrors::everywhere(&[node], &finding));
        return;
    }
    statement.keep();
    session.records.fit_errors.remove(&task);
    if session.hooks().job_ready(session.ask(), job) {
        session.dispatch_allocated(job);
    }
}
