//! The pass for eviction holds (`claimFirst`): jobs for which room was made get the first turn, on
//! their planned nodes only.
//! Specification: actions.md 4.1 (A16), 2.11, 10.3 (A45).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{EvictionHold, Filter, Session, SessionState, WaitCause, klog, sort_stably};
use vc_model::{Gates, JobId, NodeId, TaskId, TaskStatus};

use super::pending_tasks::PendingTasksByJob;
use super::place::{self, PlacementOutcome};
use crate::job_queue::JobQueue;

/// Tries every job with an eviction hold. Jobs that are not served here take part in the regular
/// pass.
pub(super) fn pass(session: &mut Session<'_>, pending: &mut PendingTasksByJob) {
    let mut unserved = holders(session, pending);
    let holders: Vec<JobId> = unserved.iter().copied().collect();
    let mut job_queue = JobQueue::new(session, &holders);
    while let Some((_, job)) = super::next(session, &mut job_queue, |_, _| {}) {
        let plan = plan(session, job, pending);
        let leaving = session.eviction_holds.of(session, job).map(|hold| victims(session, hold));
        let leaving = leaving.unwrap_or_default();
        let outcome = place::attempt_planned(session, job, &plan, &leaving);
        klog!(4; "Claim of Job <{}>: {outcome:?}", session.jobs[job].key);
        match outcome {
            PlacementOutcome::Ready => pending.strike_placed(session, job),
            PlacementOutcome::Pipelined => {
                note_victims(session, job);
                pending.strike(job);
            }
            PlacementOutcome::Neither => continue,
        }
        unserved.remove(&job);
    }
    let in_order: Vec<JobId> = session.info().jobs.to_vec();
    for job in in_order.into_iter().filter(|job| unserved.contains(job)) {
        place_best_effort(session, job);
        session.end_eviction_hold(job);
    }
}

/// Places the best-effort tasks of a job that was not served on their planned nodes, if they can be
/// bound. As in backfill, the queue is not asked. Backfill itself would serve another job first.
fn place_best_effort(session: &mut Session<'_>, job: JobId) {
    let plan = planned_nodes(session, job, best_effort(session, job));
    if plan.is_empty() {
        return;
    }
    let mut statement = session.evicting_statement();
    for (task, node) in plan {
        let passes = statement.plugins().pre_predicate(statement.view(), task).is_ok()
            && !statement.filter(task, &[node], Filter::BestEffort).feasible.is_empty();
        if passes && statement.allocate(task, node).is_ok() {
            statement.note_placed(task);
        }
    }
    match !statement.is_empty() && statement.plugins().job_ready(statement.view(), job) {
        true => _ = statement.commit(),
        false => statement.discard(),
    }
}

/// Returns the jobs with an eviction hold that take part. Jobs whose waiting tasks are all
/// best-effort take part, too: otherwise other jobs would take their pod slots.
fn holders(session: &SessionState<'_>, pending: &PendingTasksByJob) -> BTreeSet<JobId> {
    if session.eviction_holds.is_empty() {
        return BTreeSet::new();
    }
    let listed: BTreeSet<JobId> = pending.jobs().into_iter().collect();
    let takes_part = |job: &JobId| {
        listed.contains(job)
            || (!session.jobs[*job].is_pending()
                && !best_effort(session, *job).is_empty()
                && session.plugins().job_valid(session.view(), *job).is_ok())
    };
    let holds = |job: &JobId| session.eviction_holds.of(session, *job).is_some();
    let jobs = session.info().jobs.iter().copied();
    jobs.filter(|job| holds(job) && takes_part(job)).collect()
}

/// Returns the Pending best-effort tasks, which are not among the pending tasks of allocate.
fn best_effort(session: &SessionState<'_>, job: JobId) -> Vec<TaskId> {
    let wanted = |&task: &TaskId| {
        let row = &session.tasks[task];
        let free = row.gates == Gates::None && row.can_be_placed();
        row.status == TaskStatus::Pending && row.best_effort && free
    };
    session.jobs[job].tasks.iter().copied().filter(wanted).collect()
}

/// Returns the waiting tasks with their planned nodes, in task order.
fn plan(
    session: &SessionState<'_>,
    job: JobId,
    pending: &PendingTasksByJob,
) -> Vec<(TaskId, NodeId)> {
    let mut tasks: Vec<TaskId> = pending.get(job).collect();
    tasks.extend(best_effort(session, job));
    planned_nodes(session, job, tasks)
}

/// Returns these tasks of the job with their planned nodes, in task order. Tasks without one are
/// left out.
fn planned_nodes(
    session: &SessionState<'_>,
    job: JobId,
    mut tasks: Vec<TaskId>,
) -> Vec<(TaskId, NodeId)> {
    let Some(hold) = session.eviction_holds.of(session, job) else { return Vec::new() };
    let node_of = |task: TaskId| {
        let node = session.node(hold.planned.get(&session.tasks[task].uid)?)?;
        session.nodes[node].present.then_some((task, node))
    };
    sort_stably(&mut tasks, |&l, &r| session.plugins().task_order(session.view(), l, r));
    tasks.into_iter().filter_map(node_of).collect()
}

/// A45: records how many victims are still terminating, and on which nodes.
fn note_victims(session: &mut Session<'_>, job: JobId) {
    let Some(hold) = session.eviction_holds.of(session, job) else { return };
    let mut by_node: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    for task in victims(session, hold) {
        if let Some(node) = session.tasks[task].node {
            *by_node.entry(session.nodes[node].name.clone()).or_default() += 1;
        }
    }
    if by_node.is_empty() {
        return;
    }
    let entry = |(node, count): (&Arc<str>, &u32)| format!("{count} on {node}");
    let entries: Vec<String> = by_node.iter().map(entry).collect();
    let text = format!("waiting for terminating victims: {}", entries.join(", "));
    session.note_job_fit(job, WaitCause::AwaitsVictims, text);
}

/// Returns the victims of the hold. After a restart they are unknown; then all terminating pods of
/// the planned nodes count.
fn victims(session: &SessionState<'_>, hold: &EvictionHold) -> Vec<TaskId> {
    if !hold.victims.is_empty() {
        return hold.victims.iter().filter_map(|uid| session.task(uid)).collect();
    }
    let nodes: BTreeSet<NodeId> =
        hold.planned.values().filter_map(|name| session.node(name)).collect();
    let tasks = nodes.into_iter().flat_map(|node| session.nodes[node].tasks.iter().copied());
    tasks.filter(|&task| session.tasks[task].status == TaskStatus::Releasing).collect()
}
