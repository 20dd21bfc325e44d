//! Options against starvation: broken gangs are placed first, and small jobs do not overtake a big
//! one.
//! Specification: actions.md 4.11.

use std::collections::BTreeMap;

use vc_conf::HeadOfLine;
use vc_framework::{Filter, Session, SessionState};
use vc_model::{ClassId, JobId, NodeId, QueueId, Reason, TaskId, TaskStatus};
use vc_resource::{Dims, Resource};

use super::pending_tasks::PendingTasksByJob;
use super::place::{PlacementOutcome, attempt};
use super::{JobQueue, next};

/// `gangRepairFirst`: fills up gangs that lost members before fresh jobs get a turn. A job that
/// fails here is not tried again in this cycle.
pub(super) fn repair_pass(session: &mut Session<'_>, pending: &mut PendingTasksByJob) {
    let broken = |&job: &JobId| {
        let row = &session.jobs[job];
        let placed = i64::from(row.counts.ready() + row.counts.waiting());
        let holds = [TaskStatus::Bound, TaskStatus::Running].map(|status| row.counts.of(status));
        0 < holds.iter().sum::<u32>() && placed < i64::from(row.min_available)
    };
    let jobs: Vec<JobId> = pending.jobs().into_iter().filter(broken).collect();
    let mut job_queue = JobQueue::new(session, &jobs);
    while let Some((_, job)) = next(session, &mut job_queue, |_, _| {}) {
        match attempt(session, job, pending.of(job)) {
            PlacementOutcome::Ready => pending.strike_placed(session, job),
            PlacementOutcome::Pipelined | PlacementOutcome::Neither => pending.strike(job),
        }
    }
}

/// `headOfLine: queue`: true if the jobs behind this unplaced job have to wait for it. Only a job
/// that could run at all blocks its queue.
pub(super) fn blocks_queue(session: &SessionState<'_>, queue: QueueId, job: JobId) -> bool {
    session.settings.allocate.head_of_line == HeadOfLine::Queue
        && lacks_room(session, job)
        && within_capability(session, queue, job)
        && could_run(session, job)
}

/// True if a task of the job found no room on the nodes or in its queue.
fn lacks_room(session: &SessionState<'_>, job: JobId) -> bool {
    session.jobs[job].tasks.iter().any(|task| {
        session.records.fit_errors.get(*task).is_some_and(|errors| {
            let short = |reason: &Reason| matches!(reason, Reason::Insufficient(_));
            // A20: an error without nodes is that of the queue.
            errors.n_nodes == 0 || errors.reasons.keys().any(short)
        })
    })
}

fn pending(session: &SessionState<'_>, job: JobId) -> impl Iterator<Item = TaskId> {
    let tasks = session.jobs[job].tasks.iter().copied();
    tasks.filter(|&task| session.tasks[task].status == TaskStatus::Pending)
}

fn within_capability(session: &SessionState<'_>, queue: QueueId, job: JobId) -> bool {
    let capability = &session.queues[queue].capability;
    let within = |task: TaskId| {
        let request = session.request(task);
        request
            .dims()
            .all(|dim| capability.get(dim) <= 0 || request.get(dim) <= capability.get(dim))
    };
    pending(session, job).all(within)
}

/// True if the gang feasibility bound (S6) holds with every node's allocatable in place of its
/// future idle room.
fn could_run(session: &SessionState<'_>, job: JobId) -> bool {
    let mut classes: BTreeMap<ClassId, (TaskId, u64)> = BTreeMap::new();
    for task in pending(session, job).filter(|&task| !session.tasks[task].best_effort) {
        classes.entry(session.tasks[task].class).or_insert((task, 0)).1 += 1;
    }
    let row = &session.jobs[job];
    let placed = row.counts.ready() + row.counts.waiting() + row.counts.pending_best_effort;
    let placeable: u64 =
        classes.values().map(|&(task, n_tasks)| room_for(session, task).min(n_tasks)).sum();
    i128::from(row.min_available) <= i128::from(placed) + i128::from(placeable)
}

/// Returns how many tasks like this one all nodes could hold if they were empty.
fn room_for(session: &SessionState<'_>, task: TaskId) -> u64 {
    let nodes = session.filter(task, &session.info().nodes, Filter::Preempt).feasible;
    let request = session.request(task);
    let fits = |&node: &NodeId| times(request, &session.nodes[node].allocatable, &session.dims);
    nodes.iter().map(fits).fold(0, u64::saturating_add)
}

/// Returns the largest k with k · request ≤ room.
fn times(request: &Resource, room: &Resource, dims: &Dims) -> u64 {
    let asked = dims.in_report_order().iter().filter(|&&dim| 0 < request.get(dim));
    let counts = asked.map(|&dim| (room.get(dim) / request.get(dim)).max(0).unsigned_abs());
    counts.min().unwrap_or(u64::MAX)
}
