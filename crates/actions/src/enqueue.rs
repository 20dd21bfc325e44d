//! The action `enqueue`: admits PodGroups, from Pending to Inqueue, if the plugins see room.
//! Specification: actions.md 3, 12.3.

use vc_framework::{Action, Cause, EnqueueRefusal, Session, SessionState, klog};
use vc_model::{JobId, QueueId};

use crate::job_queue::{JobQueue, note_behind};

pub(crate) struct Enqueue;

impl Action for Enqueue {
    fn name(&self) -> &'static str {
        "enqueue"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Enqueue ...");
        let jobs = session.info().jobs.iter().copied();
        let mut pending: Vec<JobId> = jobs.filter(|&job| session.jobs[job].is_pending()).collect();
        let mut repeated = session.take_refused_again(&mut pending);
        session.sort_by_turn(&mut pending);
        let mut job_queue = JobQueue::new(session, &pending);
        let mut any_admitted = false;
        while let Some(queue) = job_queue.next_queue(session) {
            let Some(job) = job_queue.next_job(session, queue) else {
                job_queue.drop_queue(session, queue);
                continue;
            };
            if let Err(refusal) = query(session, job) {
                refuse(session, job, refusal);
                // With a plugin that names the next queue, a fifo queue waits for its first job
                // (cohort.md B.9).
                if waits_for_head(session, queue) {
                    let behind = job_queue.drop_queue(session, queue);
                    note_behind(session, job, &behind);
                }
                continue;
            }
            if !std::mem::replace(&mut any_admitted, true) {
                let behind = take_behind(session, &mut repeated, job);
                session.restore_refused(&behind);
                job_queue.add(session, behind);
            }
            session.enqueue(job);
        }
        session.note_refused_again(&repeated);
        klog!(5; "Leaving Enqueue ...");
    }
}

fn waits_for_head(session: &SessionState<'_>, queue: QueueId) -> bool {
    session.plugins().has_next_queue() && session.queues[queue].fifo
}

/// Returns `Ok` if the job may be admitted now.
fn query(session: &SessionState<'_>, job: JobId) -> Result<(), EnqueueRefusal> {
    let group = session.jobs[job].pod_group.as_ref();
    let asks_for_room = group.is_some_and(|group| group.min_resources.is_some());
    match asks_for_room {
        true => session.plugins().job_enqueueable(session.view(), job),
        false => Ok(()),
    }
}

/// Records a refusal. The job is not tried again in this cycle and does not stop later ones
/// (actions.md 3.1).
fn refuse(session: &mut Session<'_>, job: JobId, refusal: EnqueueRefusal) {
    klog!(4; "Job {} is not enqueued", session.jobs[job].key);
    session.outcome.causes.note_job(job, "enqueue", Cause::NotAdmitted(refusal.by));
    let record_if_new = session.note_refusal(job, &refusal);
    if let Some(message) = refusal.message.filter(|_| record_if_new) {
        session.pod_group_event(job, message);
    }
}

/// Removes the jobs from `repeated` whose turn comes after the first admitted job, and returns
/// them. Until then nothing has changed, including the order of the queues.
fn take_behind(session: &Session<'_>, repeated: &mut Vec<JobId>, first: JobId) -> Vec<JobId> {
    let (plugins, view, queue) = (session.plugins(), session.view(), session.jobs[first].queue);
    let is_behind = |job: &mut JobId| match session.jobs[*job].queue {
        own if own == queue => plugins.job_order(view, first, *job).is_lt(),
        other => plugins.queue_order(view, queue, other).is_lt(),
    };
    let mut behind: Vec<JobId> = repeated.extract_if(.., is_behind).collect();
    session.sort_by_turn(&mut behind);
    behind
}
