//! One decision for preempt and reclaim where a plugin has quotas: jobs in the order of their
//! queues, each with the whole groups that go for it and the places that it gets. Specification:
//! cohort.md B.5.4, B.6, B.7.

mod trial;

use std::collections::BTreeSet;

use vc_framework::{
    Cause, Claimed, EvictReason, Notice, Session, Unit, Wanted, klog, preempt_targets,
};
use vc_model::{JobId, TaskId};

use crate::demand::needed;
use crate::preempt::has_topology;
use crate::turns::Turns;
use crate::victims::awaits_victims;
use trial::Trial;

/// Serves every starving job that can be served, in the first action of a cycle that may evict; in
/// later ones there is nothing left to do. Whether a plugin decides, so that nobody else does.
pub(crate) fn run(session: &mut Session<'_>, reason: EvictReason) -> bool {
    if !session.hooks().has_targets() {
        return false;
    }
    if !std::mem::replace(&mut session.targets_decided, true) {
        let starving = collect(session, reason.as_str());
        let mut turns = Turns::new(session, &starving);
        let mut evicted = BTreeSet::new();
        while let Some(queue) = turns.next_queue(session) {
            let Some(job) = turns.next_job_now(session, queue) else {
                turns.drop_queue(queue);
                continue;
            };
            let served = !evicted.contains(&job) && serve(session, job, reason, &mut evicted);
            // A fifo queue waits for its head (B.9).
            if !served && session.queues[queue].fifo {
                turns.drop_queue(queue);
            }
        }
    }
    true
}

/// Jobs that are admitted, valid and starve.
fn collect(session: &mut Session<'_>, action: &'static str) -> Vec<JobId> {
    let (mut starving, mut with_topology) = (Vec::new(), Vec::new());
    for &job in &session.facts().jobs {
        let takes_part = !session.jobs[job].is_pending()
            && session.hooks().job_valid(session.ask(), job).is_ok()
            && session.hooks().job_starving(session.ask(), job);
        match takes_part {
            true if has_topology(session, job) => with_topology.push(job),
            true => starving.push(job),
            false => {}
        }
    }
    for job in with_topology {
        session.causes.note_job(job, action, Cause::Topology);
    }
    starving
}

/// Either the job is pipelined as a whole, or nobody goes for it. Whether it is.
fn serve(
    session: &mut Session<'_>,
    job: JobId,
    reason: EvictReason,
    evicted: &mut BTreeSet<JobId>,
) -> bool {
    let tasks = needed(session, job);
    let sides = session.facts().sides;
    let Some(&first) = tasks.first() else { return false };
    let cause = match () {
        () if tasks.iter().any(|&task| session.tasks[task].never_preempts) => {
            Some(Cause::PolicyNever)
        }
        () => awaits_victims(session, first).map(Cause::AwaitsVictims),
    };
    if let Some(cause) = cause {
        if cause == Cause::PolicyNever {
            // Its quota may be kept all the same (B.5.4).
            session.tell(&Notice::MayNotPreempt { job, tasks: &tasks });
        }
        session.causes.note_job(job, reason.as_str(), cause);
        return false;
    }
    let mut trial = Trial::new(session.evicting_statement(), job, &tasks, reason);
    let wanted = Wanted { job, tasks: &tasks, sides };
    match preempt_targets(&mut trial, &wanted) {
        Some(Ok(targets)) => {
            let groups = targets.groups;
            let minimal = trial.is_minimal(&groups).then_some(Unit::Group);
            let bundles: Vec<Vec<TaskId>> =
                groups.iter().map(|group| trial.members(group.job)).collect();
            if !trial.apply(&groups) {
                return false;
            }
            let statement = trial.into_statement();
            if !statement.commit_as(&Claimed { job: Some(job), minimal, bundles }) {
                return false;
            }
            session.causes.served(job);
            evicted.extend(groups.iter().map(|group| group.job));
            session.tell(&Notice::Preempted { job, groups: &groups });
            true
        }
        Some(Err(refusal)) => {
            let text = match trial.fit_text() {
                Some(fit) if refusal.cause == "unplaceable" => format!("{}: {fit}", refusal.text),
                _ => refusal.text,
            };
            drop(trial);
            klog!(4; "Nobody goes for Job <{}>: {text}", session.jobs[job].key);
            session.causes.note_job(job, reason.as_str(), Cause::Quota(text.into()));
            false
        }
        None => false,
    }
}
