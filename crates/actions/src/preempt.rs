//! The action `preempt`: a starving job evicts less important pods of its own queue, first those of
//! other jobs, then its own.
//! Specification: actions.md 6.
//!
//! 1. Starving jobs take turns ([`starving_jobs`], [`JobQueue`]).
//! 2. A task of the job is eligible, has a nominated node with room already, or has to wait
//!    ([`eligibility`]).
//! 3. Its candidate nodes are searched for victims ([`SearchCaches::search`]). The task is placed
//!    on the first node that works.
//! 4. The evictions are committed if the placement is enough ([`commit`]).

use vc_framework::{
    Action, Cause, EvictReason, PreemptionKind, Room, Session, SessionState, Statement, klog,
};
use vc_model::{JobId, TaskId};

use crate::commit_or_discard::{CommitTerms, VictimMinimization, commit_or_discard};
use crate::eligible::{Eligibility, eligibility};
use crate::gang_attempt_cache::GangAttemptCache;
use crate::job_queue::JobQueue;
use crate::quota_pass;
use crate::search::{FreedNodes, Preemptor, SearchCaches};
use crate::starving::{collect, pending};
use crate::topology::USE_GANGPREEMPT;

const NAME: &str = "preempt";

pub(crate) struct Preempt;

impl Action for Preempt {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Preempt ...");
        let by_quota = quota_pass::run(session, EvictReason::Preempt);
        let starving = starving_jobs(session);
        let mut job_queue = JobQueue::new(session, &starving);
        let (mut caches, mut attempts) = (SearchCaches::default(), GangAttemptCache::default());
        while let Some(queue) = job_queue.next_queue(session) {
            let mut under_served = Vec::new();
            while let Some(job) = job_queue.next_job_now(session, queue) {
                under_served.push(job);
                if !by_quota {
                    attempts.get_or_attempt(session, job, (NAME, "between jobs"), |session| {
                        between_jobs(session, job, &mut caches);
                    });
                }
            }
            let name = &session.queues[queue].name;
            klog!(4; "No preemptors in Queue <{name}>, break.");
            for job in under_served {
                attempts.get_or_attempt(session, job, (NAME, "inside a job"), |session| {
                    inside_job(session, job, &mut caches);
                });
            }
            job_queue.drop_queue(session, queue);
        }
        if !session.settings.preempt.explain {
            session.outcome.causes.forget(NAME);
        }
        klog!(5; "Leaving Preempt ...");
    }
}

/// Returns the starving jobs that take part (actions.md 6.1).
fn starving_jobs(session: &mut Session<'_>) -> Vec<JobId> {
    let starving = collect(session, EvictReason::Preempt);
    for job in starving.with_topology {
        let row = &session.jobs[job];
        let queue = &session.queues[row.queue].name;
        klog!(3; "Job <{}> Queue <{queue}> skip preemption, reason: jobs containing \
            networkTopology do not support preemption", row.key);
        session.outcome.causes.note_job(job, NAME, Cause::Topology(USE_GANGPREEMPT.into()));
    }
    starving.jobs
}

/// Runs phase 1 for a job: either the job becomes pipelined as a whole, or nothing is evicted for
/// it (actions.md 6.2).
fn between_jobs(session: &mut Session<'_>, job: JobId, caches: &mut SearchCaches) {
    let mut tasks = pending(session, job);
    let mut statement = session.evicting_statement();
    while statement.plugins().job_starving(statement.view(), job) {
        let Some(task) = tasks.pop() else {
            klog!(3; "No preemptor task in job <{}>.", statement.jobs[job].key);
            break;
        };
        match place(&mut statement, task, PreemptionKind::BetweenJobs, caches) {
            true => statement.outcome().causes.drop_task(),
            false => statement.outcome().causes.end_task(job, NAME),
        }
    }
    let is_pipelined =
        |session: &SessionState<'_>| session.plugins().job_pipelined(session.view(), job);
    commit(statement, job, &is_pipelined);
}

/// Runs phase 2 for a job: a more important member replaces a less important one, whether or not
/// the gang is complete (actions.md 6.3).
fn inside_job(session: &mut Session<'_>, job: JobId, caches: &mut SearchCaches) {
    let mut tasks = pending(session, job);
    while let Some(task) = tasks.pop() {
        let mut statement = session.evicting_statement();
        let assigned = place(&mut statement, task, PreemptionKind::InsideJob, caches);
        // Phase 1 has noted the causes already.
        statement.outcome().causes.drop_task();
        commit(statement, job, &|_| assigned);
        if !assigned {
            return;
        }
    }
}

/// Finds a node for one task, with victims if it may have some (actions.md 6.4). Returns true if
/// the task was placed.
fn place(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    kind: PreemptionKind,
    caches: &mut SearchCaches,
) -> bool {
    let outcome = match eligibility(statement, task) {
        Eligibility::Yes => {
            let freed = FreedNodes::default();
            caches.search(statement, &Preemptor { task, kind, freed: &freed, domain: None })
        }
        Eligibility::PlaceAt(node) => {
            return statement.pipeline(task, node, Room::Releasing).is_ok();
        }
        Eligibility::No(why, cause) => {
            statement.outcome().causes.add(cause);
            Err(format!("not eligible: {why}").into())
        }
    };
    outcome.unwrap_or_else(|error| {
        let key = &statement.tasks[task].key;
        klog!(3; "Preemptor <{key}> failed to preempt Task , err: {error}");
        false
    })
}

/// Commits the statement if its placements are enough and still hold, else discards it.
fn commit(statement: Statement<'_, '_>, job: JobId, is_enough: &dyn Fn(&SessionState<'_>) -> bool) {
    let settings = &statement.settings.preempt;
    let minimization = VictimMinimization::of(settings.trim_victims, settings.trim_statement);
    commit_or_discard(statement, &CommitTerms { job, action: NAME, is_enough, minimization });
}
