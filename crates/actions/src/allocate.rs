//! The action `allocate`: places Pending tasks with a request, gang by gang, and binds complete
//! gangs.
//! Specification: actions.md 4.

mod eviction_holds;
mod grouped;
mod hyper_nodes;
mod pending_tasks;
mod place;
mod starvation;
mod trial;

use std::sync::Arc;

use vc_framework::{Action, Notice, RepeatedFailure, Session, WaitCause, klog};
use vc_model::{JobId, QueueId};

use crate::demand::needed;
use crate::job_queue::{JobQueue, note_behind};
use pending_tasks::PendingTasksByJob;
use place::PlacementOutcome;
pub(crate) use place::find_node;
pub use trial::{JobTrial, JobTrialOutcome, first_tasks, try_job};

pub(crate) struct Allocate;

impl Action for Allocate {
    fn name(&self) -> &'static str {
        "allocate"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Allocate ...");
        let mut pending = PendingTasksByJob::select(session);
        if session.settings.allocate.claim_first {
            eviction_holds::pass(session, &mut pending);
        }
        if session.settings.allocate.gang_repair_first {
            starvation::repair_pass(session, &mut pending);
        }
        regular_pass(session, &mut pending);
        session.tell(&Notice::AllocateEnds);
        klog!(5; "Leaving Allocate ...");
    }
}

fn regular_pass(session: &mut Session<'_>, pending: &mut PendingTasksByJob) {
    let mut job_queue = JobQueue::new(session, &pending.jobs());
    while let Some((queue, job)) = next(session, &mut job_queue, Session::stays_out) {
        let outcome = take_turn(session, job, pending);
        if outcome == PlacementOutcome::Neither && session.plugins().has_targets() {
            let tasks = needed(session, job);
            session.tell(&Notice::NotPlaced { job, tasks: &tasks });
        }
        match outcome {
            PlacementOutcome::Ready if !pending.of(job).sub_jobs.is_empty() => {
                job_queue.put_back(session, job)
            }
            // D38: a fifo queue waits for its first job.
            PlacementOutcome::Neither if session.queues[queue].fifo => {
                let behind = job_queue.drop_queue(session, queue);
                note_behind(session, job, &behind);
            }
            PlacementOutcome::Neither if starvation::blocks_queue(session, queue, job) => {
                let behind = job_queue.drop_queue(session, queue);
                note_behind(session, job, &behind);
            }
            _ => {}
        }
    }
}

/// Gives a job its turn. A job whose cached failure still holds is not tried (12.2 S7).
fn take_turn(
    session: &mut Session<'_>,
    job: JobId,
    pending: &mut PendingTasksByJob,
) -> PlacementOutcome {
    // Without nodes no task is tried, and the queue is not asked.
    if session.info().nodes.is_empty() {
        return place::attempt(session, job, pending.made(session, job));
    }
    match session.revalidate(job, place::look) {
        Some(RepeatedFailure::Fails) => return PlacementOutcome::Neither,
        Some(RepeatedFailure::Surplus) => {
            pending.strike(job);
            return PlacementOutcome::Ready;
        }
        None => {}
    }
    let rest = pending.made(session, job);
    let before = session.before_attempt(job, rest.tasks());
    if before.as_ref().is_some_and(|before| session.fails_as_another(job, before)) {
        return PlacementOutcome::Neither;
    }
    let outcome = place::attempt(session, job, rest);
    match (before, outcome) {
        (Some(before), PlacementOutcome::Neither) => {
            session.note_failure(job, before, rest.tasks().count());
        }
        (Some(before), PlacementOutcome::Ready) if rest.sub_jobs.is_empty() => {
            session.note_surplus(job, &before);
        }
        _ => {}
    }
    outcome
}

/// Returns the next job and its queue. A queue that is overused or has no job left is out for the
/// pass (actions.md 4.1). `stays_out` gets the jobs that waited in an overused queue.
fn next<'c>(
    session: &mut Session<'c>,
    job_queue: &mut JobQueue,
    stays_out: impl Fn(&mut Session<'c>, JobId),
) -> Option<(QueueId, JobId)> {
    loop {
        let queue = job_queue.next_queue(session)?;
        if session.plugins().overused(session.view(), queue) {
            let name = session.queues[queue].name.clone();
            klog!(3; "Queue <{name}> is overused, ignore it.");
            let text: Arc<str> = format!("queue {name} is overused").into();
            for job in job_queue.drop_queue(session, queue) {
                stays_out(session, job);
                session.note_job_fit(job, WaitCause::QueueOverused, text.clone());
            }
            continue;
        }
        match job_queue.next_job(session, queue) {
            Some(job) => {
                session.outcome.note_turn(job);
                return Some((queue, job));
            }
            None => {
                job_queue.drop_queue(session, queue);
            }
        }
    }
}
