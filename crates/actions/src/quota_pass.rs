//! The quota pass: one decision for preempt and reclaim if a plugin has quotas. It serves jobs in
//! the order of their queues, each with whole groups as victims and with its nodes.
//! Specification: cohort.md B.5.4, B.6, B.7.

mod trial;

use std::collections::BTreeSet;

use vc_framework::{
    Cause, CertificateTerms, EvictReason, Notice, PreemptionRequest, Session, Unit, klog,
    preempt_targets,
};
use vc_model::{JobId, TaskId};

use crate::demand::needed;
use crate::eligible::awaits_victims;
use crate::job_queue::JobQueue;
use crate::starving::{has_topology, waits};
use crate::topology::USE_GANGPREEMPT;
use trial::QuotaPassTrial;

/// Serves every starving job that can be served, in the first evicting action of a cycle. Later
/// actions have nothing left to do. Returns true if a plugin decides on targets, so that the other
/// rules do not run.
pub(crate) fn run(session: &mut Session<'_>, reason: EvictReason) -> bool {
    if !session.plugins().has_targets() {
        return false;
    }
    if !std::mem::replace(&mut session.outcome.targets_decided, true) {
        let starving = collect(session, reason.as_str());
        let mut job_queue = JobQueue::new(session, &starving);
        let mut evicted = BTreeSet::new();
        while let Some(queue) = job_queue.next_queue(session) {
            let Some(job) = job_queue.next_job_now(session, queue) else {
                job_queue.drop_queue(session, queue);
                continue;
            };
            let served = !evicted.contains(&job) && serve(session, job, reason, &mut evicted);
            // A fifo queue waits for its first job (B.9).
            if !served && session.queues[queue].fifo {
                job_queue.drop_queue(session, queue);
            }
        }
    }
    true
}

/// Returns the jobs that are admitted, valid and starving.
fn collect(session: &mut Session<'_>, action: &'static str) -> Vec<JobId> {
    let (mut starving, mut with_topology) = (Vec::new(), Vec::new());
    for &job in &session.info().jobs {
        let takes_part = !session.jobs[job].is_pending()
            && waits(session, job)
            && session.plugins().job_valid(session.view(), job).is_ok()
            && session.plugins().job_starving(session.view(), job);
        match takes_part {
            true if has_topology(session, job) => with_topology.push(job),
            true => starving.push(job),
            false => {}
        }
    }
    for job in with_topology {
        session.outcome.causes.note_job(job, action, Cause::Topology(USE_GANGPREEMPT.into()));
    }
    starving
}

/// Serves one job: either it is pipelined as a whole, or nothing is evicted for it. Returns true if
/// it is pipelined.
fn serve(
    session: &mut Session<'_>,
    job: JobId,
    reason: EvictReason,
    evicted: &mut BTreeSet<JobId>,
) -> bool {
    let tasks = needed(session, job);
    let sides = session.info().sides;
    let Some(&first) = tasks.first() else { return false };
    let cause = match () {
        () if tasks.iter().any(|&task| session.tasks[task].never_preempts) => {
            Some(Cause::PolicyNever)
        }
        () => awaits_victims(session, first).map(Cause::AwaitsVictims),
    };
    if let Some(cause) = cause {
        if cause == Cause::PolicyNever {
            // Its quota may be reserved all the same (cohort.md B.5.4).
            session.tell(&Notice::MayNotPreempt { job, tasks: &tasks });
        }
        session.outcome.causes.note_job(job, reason.as_str(), cause);
        return false;
    }
    let mut trial = QuotaPassTrial::new(session.evicting_statement(), job, &tasks, reason);
    let wanted = PreemptionRequest { job, tasks: &tasks, sides };
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
            if !statement.commit_as(&CertificateTerms { job: Some(job), minimal, bundles }) {
                return false;
            }
            session.outcome.causes.served(job);
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
            session.outcome.causes.note_job(job, reason.as_str(), Cause::Quota(text.into()));
            false
        }
        None => false,
    }
}
