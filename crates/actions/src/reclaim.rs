//! A starving job takes back what other queues use beyond their share. Specification: actions.md 7.

use vc_framework::{Action, Cause, EvictReason, Question, Room, Session, Statement, klog};
use vc_model::{JobId, NodeId, QueueId, TaskId, TaskStatus};

use crate::preempt::{has_topology, nodes_to_try, pending, shard_groups};
use crate::settle::{Terms, Trim, settle};
use crate::turns::Turns;
use crate::victims::{
    Try, awaits_victims, candidates, fits, in_eviction_order, log_too_few, note_too_few,
    planned_node,
};

const NAME: &str = "reclaim";

pub(crate) struct Reclaim;

impl Action for Reclaim {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Reclaim ...");
        let (starving, queues) = collect(session);
        let mut turns = Turns::new(session, &starving);
        queues.into_iter().for_each(|queue| turns.serve(queue));
        while let Some(queue) = turns.next_queue(session) {
            let name = session.queues[queue].name.clone();
            if session.hooks().overused(session.ask(), queue) {
                klog!(3; "Queue <{name}> is overused, ignore it.");
                for job in turns.drop_queue(queue) {
                    session.causes.note_job(job, NAME, Cause::QueueFull(queue));
                }
                continue;
            }
            match turns.next_job_now(session, queue) {
                // The queue stays: overuse and order are asked again between two jobs (A35).
                Some(job) => reclaim_for_job(session, queue, job),
                None => {
                    klog!(4; "No preemptors in Queue <{name}>, break.");
                    turns.drop_queue(queue);
                }
            }
        }
        if !session.settings.reclaim.explain {
            session.causes.forget(NAME);
        }
        klog!(5; "Leaving Reclaim ...");
    }
}

/// The starving jobs, and the queues of all jobs that could (7.1).
fn collect(session: &Session<'_>) -> (Vec<JobId>, Vec<QueueId>) {
    let (mut starving, mut queues) = (Vec::new(), Vec::new());
    for &job in &session.facts().jobs {
        let row = &session.jobs[job];
        if row.is_pending() {
            continue;
        }
        if let Err(invalid) = session.hooks().job_valid(session.ask(), job) {
            let queue = &session.queues[row.queue].name;
            klog!(4; "Job <{}> Queue <{queue}> skip reclaim, reason: {}: {}",
                row.key, invalid.reason, invalid.message);
            continue;
        }
        queues.push(row.queue);
        // The domains of a topology come with HyperNodes (A39); until allocate places such a job,
        // nobody is evicted for it.
        if !has_topology(session, job) && session.hooks().job_starving(session.ask(), job) {
            starving.push(job);
        }
    }
    (starving, queues)
}

/// Either the job becomes pipelined as a whole, or nobody is evicted for it (7.2).
fn reclaim_for_job(session: &mut Session<'_>, queue: QueueId, job: JobId) {
    let settings = &session.settings.reclaim;
    let trim = Trim::of(settings.trim_victims, settings.trim_statement);
    let mut tasks = pending(session, job);
    let mut statement = session.statement();
    while statement.hooks().job_starving(statement.ask(), job) {
        let Some(task) = tasks.pop() else { break };
        match reclaim_for_task(&mut statement, queue, task) {
            true => statement.causes.drop_task(),
            false => statement.causes.end_task(job, NAME),
        }
    }
    let is_enough = |session: &Session<'_>| session.hooks().job_pipelined(session.ask(), job);
    settle(statement, &Terms { job, action: NAME, is_enough: &is_enough, trim });
}

/// Why pods of other queues must stay, whatever the task needs.
fn refusal(session: &Session<'_>, queue: QueueId, task: TaskId) -> Option<Cause> {
    if session.tasks[task].never_preempts {
        return Some(Cause::PolicyNever);
    }
    if !session.hooks().preemptive(session.ask(), queue, &[task]) {
        let (name, key) = (&session.queues[queue].name, &session.tasks[task].key);
        klog!(3; "Queue <{name}> cannot reclaim for task <{key}>, skip");
        return Some(Cause::QueueFull(queue));
    }
    None
}

/// Nodes that this statement freed, then free nodes without anybody to evict, then the rest (7.3,
/// A36).
fn reclaim_for_task(statement: &mut Statement<'_, '_>, queue: QueueId, task: TaskId) -> bool {
    if let Some(cause) = refusal(statement, queue, task) {
        statement.causes.add(cause);
        return false;
    }
    // What was made for the task before comes first (11.2).
    let planned = planned_node(statement, task);
    if let Some(node) = planned.filter(|&node| fits(statement, task, node)) {
        return statement.pipeline(task, node, Room::Releasing).is_ok();
    }
    if let Some(node) = awaits_victims(statement, task) {
        statement.causes.add(Cause::AwaitsVictims(node));
        return false;
    }
    let Ok(nodes) = nodes_to_try(statement, task) else { return false };
    shard_groups(statement, nodes).into_iter().any(|group| {
        let freed: Vec<NodeId> = statement.evicted_nodes();
        let is_freed = |node: &NodeId| freed.contains(node);
        // Allocate has looked for free places already, but not for a best-effort pod.
        let best_effort = statement.tasks[task].best_effort;
        let free = |node: &NodeId| best_effort || reclaimees(statement, task, *node).is_empty();
        let first: Vec<NodeId> = group.iter().copied().filter(is_freed).collect();
        let second: Vec<NodeId> = group.iter().copied().filter(free).collect();
        let without = first.into_iter().chain(second).find(|&node| fits(statement, task, node));
        if let Some(node) = without {
            return statement.pipeline(task, node, room_of(&freed, node)).is_ok();
        }
        group.iter().any(|&node| on_node(statement, task, node))
    })
}

/// Room that an earlier task's victims left over is room made by eviction, too.
fn room_of(freed: &[NodeId], node: NodeId) -> Room {
    match freed.contains(&node) {
        true => Room::Evicted,
        false => Room::Releasing,
    }
}

/// Pods of other reclaimable queues that may go, in eviction order (7.3 step 2, 7.4).
fn reclaimees(session: &Session<'_>, task: TaskId, node: NodeId) -> Vec<TaskId> {
    let own = session.tasks[task].job.map(|job| session.jobs[job].queue);
    let with_bound = session.settings.reclaim.reclaim_bound_tasks;
    candidates(session, task, node, |victim| {
        let row = &session.tasks[victim];
        let status =
            row.status == TaskStatus::Running || (with_bound && row.status == TaskStatus::Bound);
        let Some(job) = row.job.filter(|&job| session.jobs[job].pod_group.is_some()) else {
            return false;
        };
        let queue = session.jobs[job].queue;
        let row_of_queue = &session.queues[queue];
        let may_give = row_of_queue.present && row_of_queue.reclaimable;
        status && row.preemptable && Some(queue) != own && may_give
    })
}

fn on_node(statement: &mut Statement<'_, '_>, task: TaskId, node: NodeId) -> bool {
    let found = reclaimees(statement, task, node);
    let ruling = statement.ruling(Question::Reclaim(task), &found);
    if found.is_empty() || !statement.victims_suffice(task, node, &ruling.victims) {
        if !found.is_empty() {
            log_too_few(statement, task, node);
        }
        note_too_few(statement, task, node, &found, &ruling);
        return false;
    }
    let mut victims = ruling.victims.clone();
    in_eviction_order(statement, task, &mut victims);
    let attempt = Try {
        task,
        node,
        reason: EvictReason::Reclaim,
        trim: statement.settings.reclaim.trim_victims,
    };
    let Err(cause) = attempt.run(statement, &victims) else { return true };
    match victims.is_empty() {
        true => note_too_few(statement, task, node, &found, &ruling),
        false => statement.causes.add(cause),
    }
    false
}
