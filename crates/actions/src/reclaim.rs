//! The action `reclaim`: a starving job takes back what other queues use beyond their share.
//! Specification: actions.md 7.
//!
//! 1. Queues take turns, and within a queue its starving jobs. An overused queue gets no turn
//!    ([`JobQueue`]).
//! 2. A task may reclaim, has a planned node already, or has to wait ([`refusal`],
//!    [`planned_node`], [`awaits_victims`]).
//! 3. Its candidate nodes are searched for free room and for victims ([`SearchCaches::search`]). A job
//!    that must stay in a HyperNode is tried in one after the other ([`hyper_nodes`]).
//! 4. The evictions are committed if the job becomes pipelined ([`commit_or_discard`]).

mod hyper_nodes;

use std::collections::BTreeSet;

use vc_framework::{
    Action, Cause, EvictReason, PreemptionKind, Room, Session, SessionState, Statement, klog,
};
use vc_model::{JobId, NodeId, QueueId, TaskId};

use crate::commit_or_discard::{CommitTerms, VictimMinimization, commit_or_discard};
use crate::eligible::{awaits_victims, planned_node};
use crate::gang_attempt_cache::GangAttemptCache;
use crate::job_queue::JobQueue;
use crate::quota_pass;
use crate::search::{FreedNodes, Preemptor, SearchCaches};
use crate::starving::{Starving, collect, pending};
use crate::topology;
use crate::victims::fits;

const NAME: &str = "reclaim";

pub(crate) struct Reclaim;

impl Action for Reclaim {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Reclaim ...");
        let starving = match quota_pass::run(session, EvictReason::Reclaim) {
            true => Starving::default(),
            false => collect(session, EvictReason::Reclaim),
        };
        let Starving { mut jobs, with_topology, queues } = starving;
        for job in with_topology {
            match topology::cause(session, job) {
                Some(cause) => session.outcome.causes.note_job(job, NAME, cause),
                None => jobs.push(job),
            }
        }
        let mut job_queue = JobQueue::new(session, &jobs);
        queues.into_iter().for_each(|queue| job_queue.serve(session, queue));
        let (mut caches, mut attempts) = (SearchCaches::default(), GangAttemptCache::default());
        while let Some(queue) = job_queue.next_queue(session) {
            let name = session.queues[queue].name.clone();
            if session.plugins().overused(session.view(), queue) {
                klog!(3; "Queue <{name}> is overused, ignore it.");
                for job in job_queue.drop_queue(session, queue) {
                    session.outcome.causes.note_job(job, NAME, Cause::QueueFull(queue));
                }
                continue;
            }
            match job_queue.next_job_now(session, queue) {
                // A35: the queue stays, and overuse and order are asked again between two jobs.
                Some(job) => {
                    attempts.get_or_attempt(session, job, (NAME, "between queues"), |session| {
                        reclaim_for_job(session, queue, job, &mut caches);
                    })
                }
                None => {
                    klog!(4; "No preemptors in Queue <{name}>, break.");
                    job_queue.drop_queue(session, queue);
                }
            }
        }
        if !session.settings.reclaim.explain {
            session.outcome.causes.forget(NAME);
        }
        klog!(5; "Leaving Reclaim ...");
    }
}

/// Reclaims for one job: either the job becomes pipelined as a whole, or nothing is evicted for it
/// (actions.md 7.2).
fn reclaim_for_job(
    session: &mut Session<'_>,
    queue: QueueId,
    job: JobId,
    caches: &mut SearchCaches,
) {
    if hyper_nodes::is_bound(session, job) {
        return hyper_nodes::reclaim(session, queue, job, caches);
    }
    let mut tasks = pending(session, job);
    let mut statement = session.evicting_statement();
    let mut freed = FreedNodes::default();
    while statement.plugins().job_starving(statement.view(), job) {
        let Some(task) = tasks.pop() else { break };
        match place(&mut statement, (queue, task), &mut freed, None, caches) {
            true => statement.outcome().causes.drop_task(),
            false => statement.outcome().causes.end_task(job, NAME),
        }
    }
    commit(statement, job);
}

/// Commits the statement if the job is pipelined by it, else discards it. Returns true if it was
/// committed.
fn commit(statement: Statement<'_, '_>, job: JobId) -> bool {
    let settings = &statement.settings.reclaim;
    let minimization = VictimMinimization::of(settings.trim_victims, settings.trim_statement);
    let is_enough =
        |session: &SessionState<'_>| session.plugins().job_pipelined(session.view(), job);
    let terms = CommitTerms { job, action: NAME, is_enough: &is_enough, minimization };
    commit_or_discard(statement, &terms)
}

/// Returns why the task may not reclaim at all. Returns `None` if it may.
fn refusal(session: &SessionState<'_>, queue: QueueId, task: TaskId) -> Option<Cause> {
    if session.tasks[task].never_preempts {
        return Some(Cause::PolicyNever);
    }
    if !session.plugins().preemptive(session.view(), queue, &[task]) {
        let (name, key) = (&session.queues[queue].name, &session.tasks[task].key);
        klog!(3; "Queue <{name}> cannot reclaim for task <{key}>, skip");
        return Some(Cause::QueueFull(queue));
    }
    None
}

/// Finds a node for one task, with victims if it may have some (actions.md 7.3). Only the nodes of
/// `domain` are used, if there is one. Returns true if the task was placed.
fn place(
    statement: &mut Statement<'_, '_>,
    (queue, task): (QueueId, TaskId),
    freed: &mut FreedNodes,
    domain: Option<&BTreeSet<NodeId>>,
    caches: &mut SearchCaches,
) -> bool {
    if let Some(cause) = refusal(statement, queue, task) {
        statement.outcome().causes.add(cause);
        return false;
    }
    // Room that was made for the task before comes first (actions.md 11.2).
    let is_in = |node: &NodeId| domain.is_none_or(|domain| domain.contains(node));
    let planned = planned_node(statement, task).filter(is_in);
    if let Some(node) = planned.filter(|&node| fits(statement, task, node)) {
        return statement.pipeline(task, node, Room::Releasing).is_ok();
    }
    if let Some(node) = awaits_victims(statement, task) {
        statement.outcome().causes.add(Cause::AwaitsVictims(node));
        return false;
    }
    freed.catch_up(statement);
    let outcome =
        caches.search(statement, &Preemptor { task, kind: PreemptionKind::Reclaim, freed, domain });
    outcome.is_ok_and(|assigned| assigned)
}
