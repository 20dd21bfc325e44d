//! Inside one queue a starving job may have less important pods evicted: between jobs, then inside
//! a job. Specification: actions.md 6.

mod dry_run;
mod eligible;
mod lineup;
mod normal;
mod vain;

use std::collections::BTreeMap;

use vc_framework::{
    Action, Asker, Cause, EvictReason, Filter, Keep, Room, Session, Statement, Walks, klog,
    sort_stably,
};
use vc_model::{Cluster, Gates, JobId, NodeId, Reason, ShardingMode, TaskId, TaskStatus};

use crate::alike::Alike;
use crate::failures::{Failures, Outcome};
use crate::quota_pass;
use crate::settle::{Terms, Trim, settle};
use crate::turns::Turns;
use crate::victims::fits;
use eligible::Eligibility;
use lineup::Lineups;

const NAME: &str = "preempt";

pub(crate) struct Preempt;

impl Action for Preempt {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Preempt ...");
        let by_quota = quota_pass::run(session, EvictReason::Preempt);
        let starving = collect(session);
        let mut turns = Turns::new(session, &starving);
        let (mut known, mut alike) = (Known::default(), Alike::default());
        while let Some(queue) = turns.next_queue(session) {
            let mut under_served = Vec::new();
            while let Some(job) = turns.next_job_now(session, queue) {
                under_served.push(job);
                if !by_quota {
                    alike.or_attempt(session, job, (NAME, "between jobs"), |session| {
                        between_jobs(session, job, &mut known);
                    });
                }
            }
            let name = &session.queues[queue].name;
            klog!(4; "No preemptors in Queue <{name}>, break.");
            for job in under_served {
                alike.or_attempt(session, job, (NAME, "inside a job"), |session| {
                    inside_job(session, job, &mut known);
                });
            }
            turns.drop_queue(queue);
        }
        if !session.settings.preempt.explain {
            session.causes.forget(NAME);
        }
        klog!(5; "Leaving Preempt ...");
    }
}

/// The starving jobs (6.1).
fn collect(session: &mut Session<'_>) -> Vec<JobId> {
    let mut with_topology = Vec::new();
    let mut takes_part = |&job: &JobId| {
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
            with_topology.extend(waits(session, job).then_some(job));
            return false;
        }
        true
    };
    let starving = session.facts().jobs.iter().copied().filter(|job| takes_part(job)).collect();
    for job in with_topology {
        session.causes.note_job(job, NAME, Cause::Topology);
    }
    starving
}

/// Whether a task of the job is Pending. One that has lost pods in this session is starving, too, but
/// for nobody: whether it got something is no question (10.6).
pub(crate) fn waits(session: &Session<'_>, job: JobId) -> bool {
    session.jobs[job].counts.of(TaskStatus::Pending) != 0
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
        row.status == TaskStatus::Pending && row.gates == Gates::None && row.can_be_placed()
    };
    // They came in that order as a rule, and what is in order need not be sorted.
    let newest_first = session.jobs[job].tasks.iter().rev();
    let mut tasks: Vec<TaskId> = newest_first.copied().filter(wanted).collect();
    sort_stably(&mut tasks, |&l, &r| session.hooks().task_order(session.ask(), r, l));
    tasks
}

/// What is remembered from task to task.
#[derive(Default)]
struct Known {
    failures: Failures<Phase>,
    /// Of tasks whose queue is full whoever goes.
    in_vain: Failures<()>,
    walks: BTreeMap<Phase, Walks>,
    lineups: Lineups,
}

/// Which pods may be victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
        if !theirs.status.is_preemptable() || !theirs.can_be_evicted() {
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
fn between_jobs(session: &mut Session<'_>, job: JobId, known: &mut Known) {
    let settings = &session.settings.preempt;
    let trim = Trim::of(settings.trim_victims, settings.trim_statement);
    let mut tasks = pending(session, job);
    let mut statement = session.evicting_statement();
    while statement.hooks().job_starving(statement.ask(), job) {
        let Some(task) = tasks.pop() else {
            klog!(3; "No preemptor task in job <{}>.", statement.jobs[job].key);
            break;
        };
        match preempt(&mut statement, task, Phase::BetweenJobs, known) {
            true => statement.causes.drop_task(),
            false => statement.causes.end_task(job, NAME),
        }
    }
    let pipelined = |session: &Session<'_>| session.hooks().job_pipelined(session.ask(), job);
    settle(statement, &terms(job, &pipelined, trim));
}

fn terms<'f>(job: JobId, is_enough: &'f dyn Fn(&Session<'_>) -> bool, trim: Trim) -> Terms<'f> {
    Terms { job, action: NAME, is_enough, trim }
}

/// Phase 2: a more important member replaces a less important one, whether or not the gang is
/// complete (6.3).
fn inside_job(session: &mut Session<'_>, job: JobId, known: &mut Known) {
    let settings = &session.settings.preempt;
    let trim = Trim::of(settings.trim_victims, settings.trim_statement);
    let mut tasks = pending(session, job);
    while let Some(task) = tasks.pop() {
        let mut statement = session.evicting_statement();
        let assigned = preempt(&mut statement, task, Phase::InsideJob, known);
        // Phase 1 has said why there is nothing.
        statement.causes.drop_task();
        settle(statement, &terms(job, &|_| assigned, trim));
        if !assigned {
            return;
        }
    }
}

/// One task (6.4). Whether it was assigned a node.
fn preempt(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    phase: Phase,
    known: &mut Known,
) -> bool {
    place(statement, task, phase, known).unwrap_or_else(|error| {
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
    known: &mut Known,
) -> Outcome {
    match eligible::eligibility(statement, task) {
        Eligibility::No(why, cause) => {
            statement.causes.add(cause);
            return Err(format!("not eligible: {why}").into());
        }
        Eligibility::PlaceAt(node) => {
            return Ok(statement.pipeline(task, node, Room::Releasing).is_ok());
        }
        Eligibility::Yes => {}
    }
    // A dry run draws a number, also where it fails.
    if statement.settings.preempt.topology_aware {
        return search(statement, task, phase);
    }
    let Known { failures, in_vain, walks, lineups } = known;
    if statement.is_fast() && phase == Phase::InsideJob && stays_full(statement, task) {
        return match statement.hooks().pre_predicate(statement.ask(), task) {
            Ok(()) => {
                let alike = |asker: Asker| asker.for_filters().unwrap_or(asker);
                in_vain.or_search_alike(statement, task, ((), alike), |statement| {
                    count_in_vain(statement, task)
                })
            }
            Err(_) => count_in_vain(statement, task),
        };
    }
    failures.or_search(statement, task, phase, |statement| {
        if let Some(failed) = vain::search(statement, task, phase, Keep::No) {
            return failed;
        }
        let n_attempts = statement.out.n_preemption_attempts;
        if normal::resume(statement, task, phase, walks.entry(phase).or_default(), lineups) {
            statement.hits.n_resumed += 1;
            return Ok(true);
        }
        // It says the causes, and counts the attempts.
        statement.causes.drop_task();
        statement.out.n_preemption_attempts = n_attempts;
        vain::search(statement, task, phase, Keep::Yes)
            .unwrap_or_else(|| search(statement, task, phase))
    })
}

/// Nobody of the task's own job may go, so its queue has no room for it whatever is tried.
fn stays_full(session: &Session<'_>, task: TaskId) -> bool {
    let Some(job) = session.tasks[task].job else { return false };
    let row = &session.jobs[job];
    let may_go = [TaskStatus::Running, TaskStatus::Bound].map(|status| row.counts.of(status));
    may_go == [0, 0] && session.hooks().allocatable(session.ask(), row.queue, task).is_err()
}

/// What [`search`] counts inside a job of which nobody may go and whose queue is full: every node is
/// looked at, and none is of use (6.6 step 5).
fn count_in_vain(statement: &mut Statement<'_, '_>, task: TaskId) -> Outcome {
    let nodes = nodes_to_try(statement, task)?;
    if nodes.is_empty() {
        return Err("no candidates that fit the pod".into());
    }
    normal::note_victims(statement, 0);
    let has_room = |&&node: &&NodeId| statement.fits_future_idle(task, node);
    let n_attempts = nodes.iter().filter(has_room).count();
    statement.out.n_preemption_attempts += u32::try_from(n_attempts).unwrap_or(u32::MAX);
    Ok(false)
}

/// Looks for a node and places the task there.
fn search(statement: &mut Statement<'_, '_>, task: TaskId, phase: Phase) -> Outcome {
    let nodes = nodes_to_try(statement, task)?;
    let dry_run = statement.settings.preempt.topology_aware;
    if nodes.is_empty() {
        return Err("no candidates that fit the pod".into());
    }
    // Allocate has not looked for a free place for it, and backfill comes later.
    if statement.tasks[task].best_effort
        && let Some(&node) = nodes.iter().find(|&&node| fits(statement, task, node))
    {
        return Ok(statement.pipeline(task, node, Room::Releasing).is_ok());
    }
    let assigned = shard_groups(statement, nodes).iter().any(|group| match dry_run {
        true => dry_run::preempt(statement, task, group, phase),
        false => normal::preempt(statement, task, group, phase),
    });
    if !assigned {
        normal::note_victims(statement, 0);
    }
    Ok(assigned)
}

/// Nodes that evictions may help (6.4 steps 2 and 3). What rules out the others is noted.
///
/// # Errors
/// Why the task fits on no node.
pub(crate) fn nodes_to_try(session: &mut Session<'_>, task: TaskId) -> Result<Vec<NodeId>, String> {
    if let Err(error) = session.hooks().pre_predicate(session.ask(), task) {
        session.causes.add(Cause::Filter(Reason::Owned(error.as_str().into())));
        return Err(error);
    }
    let worth = session.nodes_worth_evicting(task);
    let hopeless = worth.is_empty();
    // Where allocate has ruled out every node, it is worked out again why.
    let looked_at = if hopeless { session.facts().nodes.clone() } else { worth.into() };
    let scan = session.filter(task, &looked_at, Filter::Preempt);
    for (reason, count) in scan.errors.reasons {
        session.causes.add_times(Cause::Filter(reason), count);
    }
    Ok(if hopeless { Vec::new() } else { scan.feasible })
}

/// The nodes in the groups in which they are tried: with soft sharding those of the own shard
/// first.
pub(crate) fn shard_groups(session: &Session<'_>, nodes: Vec<NodeId>) -> Vec<Vec<NodeId>> {
    session.by_shard(&nodes).map_or_else(|| vec![nodes], Vec::from)
}

/// The same groups as a question: own nodes, then others; `None`: all at once.
pub(crate) fn shards(session: &Session<'_>) -> Vec<Option<bool>> {
    let cluster: &Cluster = session;
    match cluster.settings.sharding.mode == ShardingMode::Soft {
        true => vec![Some(true), Some(false)],
        false => vec![None],
    }
}

/// Whether a node is of this group, and evictions may help the task there (2.8).
pub(crate) fn is_tried(
    session: &Session<'_>,
    task: TaskId,
    node: NodeId,
    shard: Option<bool>,
) -> bool {
    let errors = session.records.fit_errors.get(&task);
    shard.is_none_or(|own| session.nodes[node].in_shard == own)
        && !errors.is_some_and(|errors| errors.is_unresolvable(node))
}
