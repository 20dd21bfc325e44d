//! The common part of gangpreempt and gangreclaim: a starving gang gets room from whole bundles of
//! other jobs, for a job with a network topology in the HyperNode where that costs least.
//! Specification: actions.md 9.

mod bound;
mod bundles;
mod cost;
mod domains;
mod give_back;
mod order;
mod select;
mod simulate;
mod victim_trials;

use vc_conf::GangSettings;
use vc_framework::{
    About, Cause, CertificateTerms, Effect, EvictReason, GangEviction, Session, SessionState,
    Statement, Unit, klog,
};
use vc_model::{Gates, JobId, QueueId, Task, TaskId, TaskStatus};
use vc_resource::Resource;

use crate::eligible::awaits_victims;
use crate::job_queue::JobQueue;
use crate::kept_room::find_taken;
use crate::quota_pass;
use crate::starving::{Starving, collect, pending};
use crate::sub_job_tasks::{SubJobTasks, take_first, tasks_by_sub_job};
use crate::topology;
use cost::EvictionCost;
use domains::{EvictionDomain, domains};
use select::{BrokenGang, VictimChoice};

/// One starving job with its need (actions.md 9.2).
struct GangEvictionAttempt {
    kind: GangEviction,
    job: JobId,
    queue: QueueId,
    /// True if the job was ready at the start. One sub-job is then enough.
    was_ready: bool,
    sub_jobs: Vec<SubJobTasks>,
    /// Σ requests of the tasks.
    need: Resource,
}

impl GangEvictionAttempt {
    /// Returns the attempt for a job. Returns `None` if no task of the job waits for room that
    /// evictions could make.
    fn of(session: &SessionState<'_>, kind: GangEviction, job: JobId) -> Option<Self> {
        let wanted = |task: &Task| task.gates == Gates::None && !task.never_preempts;
        let mut rest = tasks_by_sub_job(session, job, wanted);
        let mut sub_jobs = Vec::new();
        while let Some(first) = take_first(session, job, &mut rest) {
            sub_jobs.push(first);
        }
        let was_ready = session.plugins().job_ready(session.view(), job);
        if was_ready {
            sub_jobs.truncate(1);
        }
        let mut need = Resource::default();
        for task in sub_jobs.iter().flat_map(|entry| &entry.tasks) {
            need.add(session.request(*task));
        }
        let queue = session.jobs[job].queue;
        (!sub_jobs.is_empty()).then_some(Self { kind, job, queue, was_ready, sub_jobs, need })
    }

    fn tasks(&self) -> Vec<TaskId> {
        self.sub_jobs.iter().flat_map(|entry| entry.tasks.iter().copied()).collect()
    }

    fn settings<'s>(&self, session: &SessionState<'s>) -> &'s GangSettings {
        match self.kind {
            GangEviction::Preempt => &session.settings.gang_preempt,
            GangEviction::Reclaim => &session.settings.gang_reclaim,
        }
    }

    fn reason(&self) -> EvictReason {
        reason(self.kind)
    }

    /// True if the pod is a candidate (the table of actions.md 9.1).
    fn may_lose(&self, session: &SessionState<'_>, victim: TaskId) -> bool {
        let row = &session.tasks[victim];
        let Some(job) = row.job.filter(|&job| job != self.job) else { return false };
        let theirs = &session.jobs[job];
        let protected = theirs.pod_group.as_ref().is_none_or(|group| group.not_preemptable);
        let queue = &session.queues[theirs.queue];
        if protected || !row.can_be_evicted() || !queue.present || awaits_room(session, job) {
            return false;
        }
        match self.kind {
            GangEviction::Preempt => {
                let lower = theirs.priority < session.jobs[self.job].priority;
                row.status.is_preemptable() && theirs.queue == self.queue && lower
            }
            GangEviction::Reclaim => {
                let running = row.status == TaskStatus::Running;
                running && theirs.queue != self.queue && queue.reclaimable
            }
        }
    }
}

fn reason(kind: GangEviction) -> EvictReason {
    match kind {
        GangEviction::Preempt => EvictReason::GangPreempt,
        GangEviction::Reclaim => EvictReason::GangReclaim,
    }
}

/// True if room is being made for a gang below its minimum. Evicting its pods would make those
/// evictions useless.
fn awaits_room(session: &SessionState<'_>, job: JobId) -> bool {
    let (row, min) = (&session.jobs[job], i64::from(session.jobs[job].min_available));
    let ready = i64::from(row.counts.ready());
    let complete_soon = min <= ready + i64::from(row.counts.waiting());
    ready < min && (complete_soon || session.eviction_holds.of(session, job).is_some())
}

/// Serves the queues in queue order and their starving jobs in job order (actions.md 9.1).
pub(crate) fn run(session: &mut Session<'_>, kind: GangEviction) {
    let starving = match quota_pass::run(session, reason(kind)) {
        true => Starving::default(),
        false => collect(session, reason(kind)),
    };
    let Starving { mut jobs, with_topology, queues } = starving;
    for job in with_topology {
        match topology::cause(session, job) {
            Some(cause) => session.outcome.causes.note_job(job, reason(kind).as_str(), cause),
            None => jobs.push(job),
        }
    }
    let mut job_queue = JobQueue::new(session, &jobs);
    queues.into_iter().for_each(|queue| job_queue.serve(session, queue));
    while let Some(queue) = job_queue.next_queue(session) {
        let name = session.queues[queue].name.clone();
        let overused = || session.plugins().overused(session.view(), queue);
        if kind == GangEviction::Reclaim && overused() {
            klog!(3; "Queue <{name}> is overused, ignore it.");
            for job in job_queue.drop_queue(session, queue) {
                let action = reason(kind).as_str();
                session.outcome.causes.note_job(job, action, Cause::QueueFull(queue));
            }
            continue;
        }
        while let Some(job) = job_queue.next_job_now(session, queue) {
            serve(session, kind, job);
        }
        klog!(4; "No preemptors in Queue <{name}>, break.");
        job_queue.drop_queue(session, queue);
    }
    let settings = match kind {
        GangEviction::Preempt => &session.settings.gang_preempt,
        GangEviction::Reclaim => &session.settings.gang_reclaim,
    };
    if !settings.explain {
        session.outcome.causes.forget(reason(kind).as_str());
    }
}

/// Serves one job: either its whole need is placed, or nothing is evicted for it.
fn serve(session: &mut Session<'_>, kind: GangEviction, job: JobId) {
    let Some(attempt) = GangEvictionAttempt::of(session, kind, job) else {
        klog!(3; "No preemptor task in job <{}>.", session.jobs[job].key);
        return note_no_need(session, kind, job);
    };
    let tasks = attempt.tasks();
    let action = attempt.reason().as_str();
    if let Some(node) = tasks.iter().find_map(|&task| awaits_victims(session, task)) {
        return session.outcome.causes.note_job(job, action, Cause::AwaitsVictims(node));
    }
    if !may_take(session, &attempt, &tasks) {
        return session.outcome.causes.note_job(job, action, Cause::QueueFull(attempt.queue));
    }
    let domains = match domains(session, &attempt) {
        Ok(domains) => domains,
        Err(why) => {
            return session.outcome.causes.note_job(job, action, Cause::Topology(why.into()));
        }
    };
    let mut statement = session.evicting_statement();
    let choice = cheapest(&mut statement, &attempt, &domains);
    let Some(choice) = choice.filter(|choice| choice.apply(&mut statement, &attempt)) else {
        // The widest domain comes closest.
        let causes =
            domains.first().map(|domain| select::why_none(&mut statement, &attempt, domain));
        for cause in causes.unwrap_or_default() {
            statement.outcome().causes.note_job(job, action, cause);
        }
        return statement.discard();
    };
    // A29: placements that idle nodes can hold without evictions are left to allocate.
    if !statement.evicts() && statement.fits_idle_nodes() {
        return statement.discard();
    }
    if let Some(node) = find_taken(&statement, job).filter(|_| statement.evicts()) {
        statement.outcome().causes.note_job(job, action, Cause::RoomKept(node));
        return statement.discard();
    }
    statement.outcome().causes.served(job);
    let minimal = attempt.settings(&statement).trim_boundary_bundle.then_some(Unit::Bundle);
    let bundles = choice.units.clone();
    if statement.commit_as(&CertificateTerms { job: Some(job), minimal, bundles }) {
        choice.broken.iter().for_each(|gang| report_broken_gang(session, gang));
    }
}

/// Present with the fast evaluator, which skips domains that cannot be cheaper (12.2 S12).
#[derive(Default)]
struct SkippedDomains;

/// Returns the cheapest choice of victims in one of the domains. `None` if no domain suffices.
fn cheapest(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    domains: &[EvictionDomain],
) -> Option<VictimChoice> {
    let mut best: Option<(EvictionCost, VictimChoice)> = None;
    let skips = statement.cache::<SkippedDomains>().is_some();
    for domain in domains {
        let is_skipped = |(least, _): &(EvictionCost, VictimChoice)| {
            EvictionCost::at_least(statement, attempt, domain).is_some_and(|bound| *least <= bound)
        };
        if skips && best.as_ref().is_some_and(is_skipped) {
            continue;
        }
        let Some(choice) = select::select(statement, attempt, domain) else { continue };
        let cost = EvictionCost::of(statement, attempt, domain, &choice);
        debug_assert!(
            EvictionCost::at_least(statement, attempt, domain).is_none_or(|bound| bound <= cost),
            "the lower bound of the cost holds in every domain"
        );
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, choice));
        }
    }
    best.map(|(_, choice)| choice)
}

/// Notes the cause for Pending tasks whose policy forbids preemption.
fn note_no_need(session: &mut Session<'_>, kind: GangEviction, job: JobId) {
    let waiting = pending(session, job);
    let refused = waiting.iter().filter(|&&task| session.tasks[task].never_preempts).count();
    for _ in 0..refused {
        session.outcome.causes.note_job(job, reason(kind).as_str(), Cause::PolicyNever);
    }
}

/// True if the queue may reclaim all that the job needs at once. Always true for gangpreempt.
fn may_take(session: &SessionState<'_>, attempt: &GangEvictionAttempt, tasks: &[TaskId]) -> bool {
    if attempt.kind == GangEviction::Preempt {
        return true;
    }
    let may = session.plugins().preemptive(session.view(), attempt.queue, tasks);
    if let (false, Some(&first)) = (may, tasks.first()) {
        let (queue, task) = (&session.queues[attempt.queue].name, &session.tasks[first].key);
        klog!(3; "Queue <{queue}> cannot reclaim for task <{task}>, skip");
    }
    may
}

/// A42: reports a gang whose remaining members run on below the gang's minimum.
fn report_broken_gang(session: &mut Session<'_>, gang: &BrokenGang) {
    let row = &session.jobs[gang.job];
    let Some(group) = row.pod_group.as_ref().filter(|_| !row.bare) else { return };
    let about = About::PodGroup { key: row.key.clone(), uid: group.uid.clone() };
    let message = format!(
        "gang is broken by eviction: {} of its pods are evicted, {} stay, minMember is {}",
        gang.n_victims,
        row.counts.allocated(),
        row.min_available
    );
    let reason = "GangBroken";
    session.outcome.out.effects.push(Effect::Event {
        about,
        warning: true,
        reason,
        message: message.into(),
    });
}
