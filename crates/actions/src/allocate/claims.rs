//! The claim pass: jobs for which room was made get the first turn, on their planned nodes only.
//! Specification: actions.md 4.1 (A16), 2.11, 10.3 (A45).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{Claim, Session, WaitCause, klog, sort_stably};
use vc_model::{Gates, JobId, NodeId, TaskId, TaskStatus};

use super::place::{self, Outcome};
use super::sheet::Sheets;
use crate::turns::Turns;

/// Tries every job that holds a claim; those that are not served here take part in the regular
/// pass.
pub(super) fn pass(session: &mut Session<'_>, sheets: &mut Sheets) {
    let mut unserved = holders(session, sheets);
    let holders: Vec<JobId> = unserved.iter().copied().collect();
    let mut turns = Turns::new(session, &holders);
    while let Some((_, job)) = super::next(session, &mut turns, |_, _| {}) {
        let plan = plan(session, job, sheets);
        let leaving = session.claims.of(session, job).map(|claim| victims(session, claim));
        let leaving = leaving.unwrap_or_default();
        let outcome = place::attempt_planned(session, job, &plan, &leaving);
        klog!(4; "Claim of Job <{}>: {outcome:?}", session.jobs[job].key);
        match outcome {
            Outcome::Ready => sheets.strike_placed(session, job),
            Outcome::Pipelined => {
                note_victims(session, job);
                sheets.strike(job);
            }
            Outcome::Neither => continue,
        }
        unserved.remove(&job);
    }
    unserved.into_iter().for_each(|job| session.end_claim(job));
}

/// Jobs with a claim that take part, also those whose waiting tasks are all best-effort: without a
/// turn here the slots that were made for them would go to others.
fn holders(session: &Session<'_>, sheets: &Sheets) -> BTreeSet<JobId> {
    if session.claims.is_empty() {
        return BTreeSet::new();
    }
    let listed: BTreeSet<JobId> = sheets.jobs().into_iter().collect();
    let takes_part = |job: &JobId| {
        listed.contains(job)
            || (!session.jobs[*job].is_pending()
                && !best_effort(session, *job).is_empty()
                && session.hooks().job_valid(session.ask(), *job).is_ok())
    };
    let holds = |job: &JobId| session.claims.of(session, *job).is_some();
    let jobs = session.facts().jobs.iter().copied();
    jobs.filter(|job| holds(job) && takes_part(job)).collect()
}

/// Tasks that the worksheet leaves to backfill.
fn best_effort(session: &Session<'_>, job: JobId) -> Vec<TaskId> {
    let wanted = |&task: &TaskId| {
        let row = &session.tasks[task];
        let free = row.gates == Gates::None && row.can_be_placed();
        row.status == TaskStatus::Pending && row.best_effort && free
    };
    session.jobs[job].tasks.iter().copied().filter(wanted).collect()
}

/// The waiting tasks that have a planned node, in task order.
fn plan(session: &Session<'_>, job: JobId, sheets: &Sheets) -> Vec<(TaskId, NodeId)> {
    let Some(claim) = session.claims.of(session, job) else { return Vec::new() };
    let node_of = |task: TaskId| {
        let node = session.node(claim.planned.get(&session.tasks[task].uid)?)?;
        session.nodes[node].present.then_some((task, node))
    };
    let mut tasks: Vec<TaskId> = sheets.get(job).collect();
    tasks.extend(best_effort(session, job));
    sort_stably(&mut tasks, |&l, &r| session.hooks().task_order(session.ask(), l, r));
    tasks.into_iter().filter_map(node_of).collect()
}

/// A45: how many pods have yet to go, and where.
fn note_victims(session: &mut Session<'_>, job: JobId) {
    let Some(claim) = session.claims.of(session, job) else { return };
    let mut by_node: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    for task in victims(session, claim) {
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

/// Those that were evicted for the claim. After a restart nobody knows them: then all that leave
/// the nodes.
fn victims(session: &Session<'_>, claim: &Claim) -> Vec<TaskId> {
    if !claim.victims.is_empty() {
        return claim.victims.iter().filter_map(|uid| session.task(uid)).collect();
    }
    let nodes: BTreeSet<NodeId> =
        claim.planned.values().filter_map(|name| session.node(name)).collect();
    let tasks = nodes.into_iter().flat_map(|node| session.nodes[node].tasks.iter().copied());
    tasks.filter(|&task| session.tasks[task].status == TaskStatus::Releasing).collect()
}
