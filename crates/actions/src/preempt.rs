//! Inside one queue a starving job may have less important pods evicted: between jobs, then inside
//! a job. Specification: actions.md 6.

mod dry_run;
mod eligible;
mod normal;

use std::borrow::Cow;

use vc_framework::{Action, Filter, Room, Session, Statement, klog};
use vc_model::{Gates, JobId, NodeId, QueueId, TaskId, TaskStatus};

use crate::turns::Turns;
use crate::victims::settle;
use eligible::Eligibility;

pub(crate) struct Preempt;

impl Action for Preempt {
    fn name(&self) -> &'static str {
        "preempt"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Preempt ...");
        let starving = collect(session);
        let mut turns = Turns::new(session, &starving);
        while let Some(queue) = turns.next_queue(session) {
            let mut under_served = Vec::new();
            while let Some(job) = turns.next_job_now(session, queue) {
                under_served.push(job);
                between_jobs(session, job);
            }
            let name = &session.queues[queue].name;
            klog!(4; "No preemptors in Queue <{name}>, break.");
            under_served.into_iter().for_each(|job| inside_job(session, job));
            turns.drop_queue(queue);
        }
        klog!(5; "Leaving Preempt ...");
    }
}

/// The starving jobs (6.1).
fn collect(session: &Session<'_>) -> Vec<JobId> {
    let takes_part = |&job: &JobId| {
        let row = &session.jobs[job];
        let queue = &session.queues[row.queue].name;
        if row.is_pending() {
            return false;
        }
        if let Err(invalid) = session.hooks().job_valid(session.ask(), job) {
            klog!(4; "Job <{}> Queue <{queue}> skip preemption, reason: {}, message {}",
                row.key, invalid.reason, invalid.message);
            return false;
        }
        if !session.hooks().job_starving(session.ask(), job) {
            return false;
        }
        if has_topology(session, job) {
            klog!(3; "Job <{}> Queue <{queue}> skip preemption, reason: jobs containing \
                networkTopology do not support preemption", row.key);
            return false;
        }
        true
    };
    session.facts().jobs.iter().copied().filter(takes_part).collect()
}

pub(crate) fn has_topology(session: &Session<'_>, job: JobId) -> bool {
    session.jobs[job].pod_group.as_ref().is_some_and(|group| {
        let of_policy = group.policies.iter().any(|policy| policy.network_topology.is_some());
        of_policy || group.network_topology.is_some()
    })
}

/// Pending tasks without gates, first in task order last.
pub(crate) fn pending(session: &Session<'_>, job: JobId) -> Vec<TaskId> {
    let wanted = |&task: &TaskId| {
        let row = &session.tasks[task];
        row.status == TaskStatus::Pending && row.gates == Gates::None && row.invalid.is_none()
    };
    let mut tasks: Vec<TaskId> = session.jobs[job].tasks.iter().copied().filter(wanted).collect();
    tasks.sort_by(|&l, &r| session.hooks().task_order(session.ask(), r, l));
    tasks
}

/// Which pods may be victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Of other jobs of the same queue.
    BetweenJobs,
    /// Of the preemptor's own job.
    InsideJob,
}

impl Phase {
    /// The filters of 6.2 and 6.3.
    fn admits(self, session: &Session<'_>, preemptor: TaskId, victim: TaskId) -> bool {
        let (mine, theirs) = (&session.tasks[preemptor], &session.tasks[victim]);
        if !theirs.status.is_preemptable() || !theirs.preemptable {
            return false;
        }
        if mine.best_effort && !theirs.best_effort {
            return false;
        }
        let (Some(own), Some(other)) = (mine.job, theirs.job) else { return false };
        let known = session.jobs[other].pod_group.is_some();
        match self {
            Self::InsideJob => own == other,
            Self::BetweenJobs => {
                known && own != other && session.jobs[own].queue == session.jobs[other].queue
            }
        }
    }
}

/// Phase 1: either the job as a whole becomes pipelined, or none of its evictions happens (6.2).
fn between_jobs(session: &mut Session<'_>, job: JobId) {
    let mut tasks = pending(session, job);
    let mut statement = session.statement();
    while statement.hooks().job_starving(statement.ask(), job) {
        let Some(task) = tasks.pop() else {
            klog!(3; "No preemptor task in job <{}>.", statement.jobs[job].key);
            break;
        };
        preempt(&mut statement, task, Phase::BetweenJobs);
    }
    let pipelined = statement.hooks().job_pipelined(statement.ask(), job);
    settle(statement, pipelined);
}

/// Phase 2: a more important member replaces a less important one, whether or not the gang is
/// complete (6.3).
fn inside_job(session: &mut Session<'_>, job: JobId) {
    let mut tasks = pending(session, job);
    while let Some(task) = tasks.pop() {
        let mut statement = session.statement();
        let assigned = preempt(&mut statement, task, Phase::InsideJob);
        settle(statement, assigned);
        if !assigned {
            return;
        }
    }
}

/// One task (6.4). Whether it was assigned a node.
fn preempt(statement: &mut Statement<'_, '_>, task: TaskId, phase: Phase) -> bool {
    place(statement, task, phase).unwrap_or_else(|error| {
        let key = &statement.tasks[task].key;
        klog!(3; "Preemptor <{key}> failed to preempt Task , err: {error}");
        false
    })
}

/// The error says why no node was looked at.
fn place(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    phase: Phase,
) -> Result<bool, Cow<'static, str>> {
    match eligible::eligibility(statement, task) {
        Eligibility::No(why) => return Err(format!("not eligible: {why}").into()),
        Eligibility::PlaceAt(node) => {
            return Ok(statement.pipeline(task, node, Room::Releasing).is_ok());
        }
        Eligibility::Yes => {}
    }
    statement.hooks().pre_predicate(statement.ask(), task)?;
    let nodes = statement.nodes_worth_evicting(task);
    let nodes = statement.filter(task, &nodes, Filter::Preempt).feasible;
    let dry_run = statement.settings.preempt.topology_aware;
    if nodes.is_empty() {
        return Err("no candidates that fit the pod".into());
    }
    Ok(shard_groups(statement, nodes).iter().any(|group| match dry_run {
        true => dry_run::preempt(statement, task, group, phase),
        false => normal::preempt(statement, task, group, phase),
    }))
}

/// The nodes in the groups in which they are tried: with soft sharding those of the own shard
/// first.
pub(crate) fn shard_groups(session: &Session<'_>, nodes: Vec<NodeId>) -> Vec<Vec<NodeId>> {
    session.by_shard(&nodes).map_or_else(|| vec![nodes], Vec::from)
}

/// The queue and the node have room and no filter objects (6.6 step 5).
fn fits(session: &Session<'_>, task: TaskId, node: NodeId) -> bool {
    let allocatable =
        |queue: QueueId| session.hooks().allocatable(session.ask(), queue, task).is_ok();
    session.tasks[task].job.is_some_and(|job| allocatable(session.jobs[job].queue))
        && session.fits_future_idle(task, node)
        && passes_filters(session, task, node)
}

/// No plugin has a finding about the node.
pub(crate) fn passes_filters(session: &Session<'_>, task: TaskId, node: NodeId) -> bool {
    let mut findings = Vec::new();
    session.hooks().predicate(session.ask(), task, node, &mut findings);
    findings.is_empty()
}
