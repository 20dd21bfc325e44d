//! What gangpreempt and gangreclaim share: a starving gang gets room from whole units of other
//! jobs. HyperNodes are not built yet: the only domain is the whole cluster. Specification:
//! actions.md 9.

mod bound;
mod bundles;
mod give_back;
mod order;
mod select;
mod simulate;
mod trials;

use vc_conf::GangSettings;
use vc_framework::{About, Cause, Claimed, Effect, EvictReason, GangEviction, Session, Unit, klog};
use vc_model::{Gates, JobId, NodeId, QueueId, Reason, Task, TaskId, TaskStatus};
use vc_resource::Resource;

use crate::preempt::{has_topology, pending, waits};
use crate::quota_pass;
use crate::topology;
use crate::turns::Turns;
use crate::victims::awaits_victims;
use crate::worksheet::{SubSheet, take_first, worksheet};
use select::{Broken, Domain};

/// One starving job and what it needs (9.2).
struct Attempt {
    kind: GangEviction,
    job: JobId,
    queue: QueueId,
    /// The job was ready at the start: one sub-job is enough.
    was_ready: bool,
    sheets: Vec<SubSheet>,
    /// Σ requests of the tasks.
    need: Resource,
}

impl Attempt {
    /// `None`: nothing of the job waits for room that evictions could make.
    fn of(session: &Session<'_>, kind: GangEviction, job: JobId) -> Option<Self> {
        let wanted = |task: &Task| task.gates == Gates::None && !task.never_preempts;
        let mut rest = worksheet(session, job, wanted);
        let mut sheets = Vec::new();
        while let Some(first) = take_first(session, job, &mut rest) {
            sheets.push(first);
        }
        let was_ready = session.hooks().job_ready(session.ask(), job);
        if was_ready {
            sheets.truncate(1);
        }
        let mut need = Resource::default();
        for task in sheets.iter().flat_map(|sheet| &sheet.tasks) {
            need.add(session.request(*task));
        }
        let queue = session.jobs[job].queue;
        (!sheets.is_empty()).then_some(Self { kind, job, queue, was_ready, sheets, need })
    }

    fn tasks(&self) -> Vec<TaskId> {
        self.sheets.iter().flat_map(|sheet| sheet.tasks.iter().copied()).collect()
    }

    fn settings<'s>(&self, session: &Session<'s>) -> &'s GangSettings {
        match self.kind {
            GangEviction::Preempt => &session.settings.gang_preempt,
            GangEviction::Reclaim => &session.settings.gang_reclaim,
        }
    }

    fn reason(&self) -> EvictReason {
        reason(self.kind)
    }

    /// Whether the pod is a candidate (the table of 9.1).
    fn may_lose(&self, session: &Session<'_>, victim: TaskId) -> bool {
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

/// A gang below its minimum for which room is made. Whoever takes what it has makes that vain.
fn awaits_room(session: &Session<'_>, job: JobId) -> bool {
    let (row, min) = (&session.jobs[job], i64::from(session.jobs[job].min_available));
    let ready = i64::from(row.counts.ready());
    let complete_soon = min <= ready + i64::from(row.counts.waiting());
    ready < min && (complete_soon || session.claims.of(session, job).is_some())
}

/// Queues in queue order, their starving jobs in job order (9.1).
pub(crate) fn run(session: &mut Session<'_>, kind: GangEviction) {
    let (starving, queues) = match quota_pass::run(session, reason(kind)) {
        true => Default::default(),
        false => collect(session, kind),
    };
    let mut turns = Turns::new(session, &starving);
    queues.into_iter().for_each(|queue| turns.serve(queue));
    while let Some(queue) = turns.next_queue(session) {
        let name = session.queues[queue].name.clone();
        let overused = || session.hooks().overused(session.ask(), queue);
        if kind == GangEviction::Reclaim && overused() {
            klog!(3; "Queue <{name}> is overused, ignore it.");
            for job in turns.drop_queue(queue) {
                if waits(session, job) {
                    session.causes.note_job(job, reason(kind).as_str(), Cause::QueueFull(queue));
                }
            }
            continue;
        }
        while let Some(job) = turns.next_job_now(session, queue) {
            serve(session, kind, job);
        }
        klog!(4; "No preemptors in Queue <{name}>, break.");
        turns.drop_queue(queue);
    }
    let settings = match kind {
        GangEviction::Preempt => &session.settings.gang_preempt,
        GangEviction::Reclaim => &session.settings.gang_reclaim,
    };
    if !settings.explain {
        session.causes.forget(reason(kind).as_str());
    }
}

/// The starving jobs, and the queues of all jobs that could be (7.1).
fn collect(session: &mut Session<'_>, kind: GangEviction) -> (Vec<JobId>, Vec<QueueId>) {
    let what = match kind {
        GangEviction::Preempt => "preemption",
        GangEviction::Reclaim => "reclaim",
    };
    let settled_queues = session.facts().roster.settled_queues();
    let (mut starving, mut queues) = (Vec::new(), settled_queues.collect::<Vec<QueueId>>());
    let mut with_topology = Vec::new();
    for &job in &session.facts().jobs {
        let row = &session.jobs[job];
        if row.is_pending() {
            continue;
        }
        if let Err(invalid) = session.hooks().job_valid(session.ask(), job) {
            let queue = &session.queues[row.queue].name;
            klog!(4; "Job <{}> Queue <{queue}> skip {what}, reason: {}, message {}",
                row.key, invalid.reason, invalid.message);
            continue;
        }
        queues.push(row.queue);
        if !session.hooks().job_starving(session.ask(), job) {
            continue;
        }
        // As long as allocate does not place a job with a topology, nobody is evicted for it.
        match has_topology(session, job) {
            true => with_topology.extend(waits(session, job).then_some(job)),
            false => starving.push(job),
        }
    }
    let why = topology::why_not_placed(&session.hyper_nodes);
    for job in with_topology {
        let cause = Cause::Filter(Reason::Text(why));
        session.causes.note_job(job, reason(kind).as_str(), cause);
    }
    (starving, queues)
}

/// Either the whole need of the job is placed, or nobody is evicted for it.
fn serve(session: &mut Session<'_>, kind: GangEviction, job: JobId) {
    let Some(attempt) = Attempt::of(session, kind, job) else {
        klog!(3; "No preemptor task in job <{}>.", session.jobs[job].key);
        return note_no_need(session, kind, job);
    };
    let tasks = attempt.tasks();
    let action = attempt.reason().as_str();
    if let Some(node) = tasks.iter().find_map(|&task| awaits_victims(session, task)) {
        return session.causes.note_job(job, action, Cause::AwaitsVictims(node));
    }
    if !may_take(session, &attempt, &tasks) {
        return session.causes.note_job(job, action, Cause::QueueFull(attempt.queue));
    }
    let domain = Domain::of(session, root(session));
    let mut statement = session.evicting_statement();
    let choice = select::select(&mut statement, &attempt, &domain);
    let Some(choice) = choice.filter(|choice| choice.apply(&mut statement, &attempt)) else {
        for cause in select::why_none(&mut statement, &attempt, &domain) {
            statement.causes.note_job(job, action, cause);
        }
        return statement.discard();
    };
    // What idle nodes can hold without evictions is allocate's business (A29).
    if !statement.evicts() && statement.fits_idle_nodes() {
        return statement.discard();
    }
    statement.causes.served(job);
    let minimal = attempt.settings(&statement).trim_boundary_bundle.then_some(Unit::Bundle);
    let bundles = choice.units.clone();
    if statement.commit_as(&Claimed { job: Some(job), minimal, bundles }) {
        choice.broken.iter().for_each(|gang| tell_broken(session, gang));
    }
}

/// Tasks wait, but none of them may have others evicted.
fn note_no_need(session: &mut Session<'_>, kind: GangEviction, job: JobId) {
    let waiting = pending(session, job);
    let refused = waiting.iter().filter(|&&task| session.tasks[task].never_preempts).count();
    for _ in 0..refused {
        session.causes.note_job(job, reason(kind).as_str(), Cause::PolicyNever);
    }
}

/// A queue that reclaims must be allowed to take all that the job needs at once.
fn may_take(session: &Session<'_>, attempt: &Attempt, tasks: &[TaskId]) -> bool {
    if attempt.kind == GangEviction::Preempt {
        return true;
    }
    let may = session.hooks().preemptive(session.ask(), attempt.queue, tasks);
    if let (false, Some(&first)) = (may, tasks.first()) {
        let (queue, task) = (&session.queues[attempt.queue].name, &session.tasks[first].key);
        klog!(3; "Queue <{queue}> cannot reclaim for task <{task}>, skip");
    }
    may
}

/// The nodes of the virtual root (9.3), but for those that a hard shard forbids: nobody goes there.
fn root(session: &Session<'_>) -> Vec<NodeId> {
    let nodes = session.facts().nodes.iter().copied();
    nodes.filter(|&node| !session.is_outside_shard(node)).collect()
}

/// A42: members that are not candidates run on without their gang's minimum.
fn tell_broken(session: &mut Session<'_>, gang: &Broken) {
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
    session.out.effects.push(Effect::Event {
        about,
        warning: true,
        reason,
        message: message.into(),
    });
}
