//! Admits PodGroups: Pending becomes Inqueue where the plugins see room. Specification: actions.md
//! 3.

use vc_framework::{Action, Cause, Session, klog};
use vc_model::{JobId, QueueId};

use crate::turns::Turns;

pub(crate) struct Enqueue;

impl Action for Enqueue {
    fn name(&self) -> &'static str {
        "enqueue"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Enqueue ...");
        let jobs = session.facts().jobs.iter().copied();
        let mut pending: Vec<JobId> = jobs.filter(|&job| session.jobs[job].is_pending()).collect();
        session.sort_by_turn(&mut pending);
        let mut turns = Turns::new(session, &pending);
        while let Some(queue) = turns.next_queue(session) {
            match turns.next_job(queue) {
                // Where queues are served by quota a fifo queue waits for its head (cohort.md B.9).
                Some(job) if !consider(session, job) && waits_for_head(session, queue) => {
                    turns.drop_queue(queue);
                }
                Some(_) => {}
                None => {
                    turns.drop_queue(queue);
                }
            }
        }
        klog!(5; "Leaving Enqueue ...");
    }
}

fn waits_for_head(session: &Session<'_>, queue: QueueId) -> bool {
    session.hooks().has_next_queue() && session.queues[queue].fifo
}

/// A refused job is not looked at again in this cycle and does not stop later ones (3.1). Whether it
/// is admitted.
fn consider(session: &mut Session<'_>, job: JobId) -> bool {
    let group = session.jobs[job].pod_group.as_ref();
    let asks_for_room = group.is_some_and(|group| group.min_resources.is_some());
    let answer = match asks_for_room {
        true => session.hooks().job_enqueueable(session.ask(), job),
        false => Ok(()),
    };
    let Err(refusal) = answer else {
        session.enqueue(job);
        return true;
    };
    klog!(4; "Job {} is not enqueued", session.jobs[job].key);
    session.causes.note_job(job, "enqueue", Cause::NotAdmitted(refusal.by));
    let is_news = session.note_refusal(job, &refusal);
    if let Some(message) = refusal.message {
        session.records.job_fit.insert(job, message.as_str().into());
        if is_news {
            session.pod_group_event(job, message);
        }
    }
    false
}
