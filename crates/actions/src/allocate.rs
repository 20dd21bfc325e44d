//! Places Pending tasks with a request on nodes, gang by gang; binds what is complete.
//! Specification: actions.md 4 (HyperNodes are not built yet).

mod claims;
mod grouped;
mod place;
mod sheet;
mod starvation;

use std::sync::Arc;

use vc_framework::{Action, Again, Notice, Session, WaitCause, klog};
use vc_model::{JobId, QueueId};

use crate::demand::needed;
use crate::turns::{Turns, note_behind};
use place::Outcome;
pub(crate) use place::find_node;
use sheet::Sheets;

pub(crate) struct Allocate;

impl Action for Allocate {
    fn name(&self) -> &'static str {
        "allocate"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Allocate ...");
        let mut sheets = Sheets::select(session);
        if session.settings.allocate.claim_first {
            claims::pass(session, &mut sheets);
        }
        if session.settings.allocate.gang_repair_first {
            starvation::repair_pass(session, &mut sheets);
        }
        regular_pass(session, &mut sheets);
        session.tell(&Notice::AllocateEnds);
        klog!(5; "Leaving Allocate ...");
    }
}

fn regular_pass(session: &mut Session<'_>, sheets: &mut Sheets) {
    let mut turns = Turns::new(session, &sheets.jobs());
    while let Some((queue, job)) = next(session, &mut turns, Session::stays_out) {
        let outcome = take_turn(session, job, sheets);
        if outcome == Outcome::Neither && session.hooks().has_targets() {
            let tasks = needed(session, job);
            session.tell(&Notice::NotPlaced { job, tasks: &tasks });
        }
        match outcome {
            Outcome::Ready if !sheets.of(job).sheets.is_empty() => turns.put_back(session, job),
            // A fifo queue waits for its head (D38).
            Outcome::Neither if session.queues[queue].fifo => {
                let behind = turns.drop_queue(queue);
                note_behind(session, job, &behind);
            }
            Outcome::Neither if starvation::blocks_queue(session, queue, job) => {
                let behind = turns.drop_queue(queue);
                note_behind(session, job, &behind);
            }
            _ => {}
        }
    }
}

/// A job that would end as it did in the session before is not tried (12.2 S7).
fn take_turn(session: &mut Session<'_>, job: JobId, sheets: &mut Sheets) -> Outcome {
    // Without a node no task is looked at, and its queue is not asked.
    if session.facts().nodes.is_empty() {
        return place::attempt(session, job, sheets.made(session, job));
    }
    match session.stands(job, place::look) {
        Some(Again::Fails) => return Outcome::Neither,
        Some(Again::Surplus) => {
            sheets.strike(job);
            return Outcome::Ready;
        }
        None => {}
    }
    let rest = sheets.made(session, job);
    let before = session.before_attempt(job, rest.tasks());
    let outcome = place::attempt(session, job, rest);
    match (before, outcome) {
        (Some(before), Outcome::Neither) => {
            session.note_failure(job, before, rest.tasks().count());
        }
        (Some(before), Outcome::Ready) if rest.sheets.is_empty() => {
            session.note_surplus(job, &before);
        }
        _ => {}
    }
    outcome
}

/// The job whose turn it is. A queue that is overused or has no job left is out for the pass (4.1);
/// `stays_out` hears of the jobs that waited in it.
fn next<'c>(
    session: &mut Session<'c>,
    turns: &mut Turns,
    stays_out: impl Fn(&mut Session<'c>, JobId),
) -> Option<(QueueId, JobId)> {
    loop {
        let queue = turns.next_queue(session)?;
        if session.hooks().overused(session.ask(), queue) {
            let name = session.queues[queue].name.clone();
            klog!(3; "Queue <{name}> is overused, ignore it.");
            let text: Arc<str> = format!("queue {name} is overused").into();
            for job in turns.drop_queue(queue) {
                stays_out(session, job);
                session.note_job_fit(job, WaitCause::QueueOverused, text.clone());
            }
            continue;
        }
        match turns.next_job(queue) {
            Some(job) => return Some((queue, job)),
            None => {
                turns.drop_queue(queue);
            }
        }
    }
}
