//! Admits PodGroups: Pending becomes Inqueue where the plugins see room. Specification: actions.md
//! 3, 12.3.

use vc_framework::{Action, Cause, Refusal, Session, WaitCause, klog};
use vc_model::{JobId, QueueId};

use crate::turns::{Turns, note_behind};

pub(crate) struct Enqueue;

impl Action for Enqueue {
    fn name(&self) -> &'static str {
        "enqueue"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Enqueue ...");
        let jobs = session.facts().jobs.iter().copied();
        let mut pending: Vec<JobId> = jobs.filter(|&job| session.jobs[job].is_pending()).collect();
        let mut standing = session.take_refused_again(&mut pending);
        session.sort_by_turn(&mut pending);
        let mut turns = Turns::new(session, &pending);
        let mut any_admitted = false;
        while let Some(queue) = turns.next_queue(session) {
            let Some(job) = turns.next_job(queue) else {
                turns.drop_queue(queue);
                continue;
            };
            if let Err(refusal) = ask(session, job) {
                refuse(session, job, refusal);
                // Where queues are served by quota a fifo queue waits for its head (cohort.md B.9).
                if waits_for_head(session, queue) {
                    let behind = turns.drop_queue(queue);
                    note_behind(session, job, &behind);
                }
                continue;
            }
            if !std::mem::replace(&mut any_admitted, true) {
                let behind = take_behind(session, &mut standing, job);
                session.ask_again(&behind);
                turns.add(session, behind);
            }
            session.enqueue(job);
        }
        session.note_refused_again(&standing);
        klog!(5; "Leaving Enqueue ...");
    }
}

fn waits_for_head(session: &Session<'_>, queue: QueueId) -> bool {
    session.hooks().has_next_queue() && session.queues[queue].fifo
}

/// Whether the job may be admitted now.
fn ask(session: &Session<'_>, job: JobId) -> Result<(), Refusal> {
    let group = session.jobs[job].pod_group.as_ref();
    let asks_for_room = group.is_some_and(|group| group.min_resources.is_some());
    match asks_for_room {
        true => session.hooks().job_enqueueable(session.ask(), job),
        false => Ok(()),
    }
}

/// A refused job is not looked at again in this cycle and does not stop later ones (3.1).
fn refuse(session: &mut Session<'_>, job: JobId, refusal: Refusal) {
    klog!(4; "Job {} is not enqueued", session.jobs[job].key);
    session.causes.note_job(job, "enqueue", Cause::NotAdmitted(refusal.by));
    let is_news = session.note_refusal(job, &refusal);
    session.note_job_fit(job, WaitCause::NotAdmitted, refusal.text());
    if let Some(message) = refusal.message.filter(|_| is_news) {
        session.pod_group_event(job, message);
    }
}

/// Takes out those whose turn would come after that of the first job that is admitted: until then
/// nothing has changed, the order of the queues included.
fn take_behind(session: &Session<'_>, standing: &mut Vec<JobId>, first: JobId) -> Vec<JobId> {
    let (hooks, ask, queue) = (session.hooks(), session.ask(), session.jobs[first].queue);
    let is_behind = |job: &mut JobId| match session.jobs[*job].queue {
        own if own == queue => hooks.job_order(ask, first, *job).is_lt(),
        other => hooks.queue_order(ask, queue, other).is_lt(),
    };
    let mut behind: Vec<JobId> = standing.extract_if(.., is_behind).collect();
    session.sort_by_turn(&mut behind);
    behind
}
