//! Divides the cluster between queues by weight, bounded by request, capability and guarantee;
//! keeps queues inside their deserved amount and lets queues below it reclaim. Specification:
//! plugins-jobs-queues.md 5, D5, D11-D13.

mod deserved;
mod gauges;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering as Memory};

use vc_framework::{
    Admission, Ask, Clock, GangEviction, JobSums, Marked, Outbox, Plugin, PluginEntry, Points,
    QueueShare, Records, Told, Verdict,
};
use vc_model::{JobId, Queue, QueueId, TaskId};
use vc_resource::{Absent, Dim, EPS, Fractional, Resource};

use crate::rules::{
    capability, dominant_share, min_resources, quota_insufficient, session_job, tell_clamped,
};
use deserved::{Claim, divide};

pub(crate) const ENTRY: PluginEntry =
    PluginEntry { name: "proportion", build: |_, _| Box::new(Proportion::default()) };

/// UnifiedEvictable is D3. Volcano's PrePredicate copies the state for trials, which the journal
/// makes unneeded.
const POINTS: Points = Points::QUEUE_ORDER
    .and(Points::RECLAIMABLE)
    .and(Points::UNIFIED_EVICTABLE)
    .and(Points::PREEMPTIVE)
    .and(Points::OVERUSED)
    .and(Points::ALLOCATABLE)
    .and(Points::JOB_ENQUEUEABLE)
    .and(Points::JOB_ENQUEUED)
    .and(Points::EVENT_HANDLERS);

#[derive(Default)]
struct Proportion {
    /// Every queue of the session, those without jobs too (D13).
    queues: BTreeMap<QueueId, Attributes>,
    /// Subtractions that would have gone below zero (D5); of functions that may only look.
    n_clamped: AtomicU32,
    /// What was handed out for metrics.
    told: Told<QueueId, gauges::Gauges>,
}

#[derive(Default)]
struct Attributes {
    /// When the session began.
    at_open: JobSums,
    /// The cluster without the guarantees of others, at most the capability.
    real_capability: Fractional,
    deserved: Fractional,
    /// Allocated and, within the session, Pipelined tasks.
    allocated: Resource,
    /// What admitted jobs hold back.
    inqueue: Resource,
    share: f64,
    /// The last answer of Overused: 0 none, 1 no, 2 yes.
    overused: AtomicU8,
}

impl Plugin for Proportion {
    fn points(&self) -> Points {
        POINTS
    }

    fn eases_by_evictions(&self) -> bool {
        true
    }

    fn clock(&self, _ask: Ask<'_>) -> Clock {
        Clock::Ignores
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    fn open(&mut self, ask: Ask<'_>) {
        let attributes = |id| {
            let at_open = ask.facts.roster.sums(id).clone();
            let (allocated, inqueue) = (at_open.allocated.clone(), at_open.inqueue.clone());
            Attributes { at_open, allocated, inqueue, ..Attributes::default() }
        };
        self.queues = ask.facts.queues.iter().map(|&id| (id, attributes(id))).collect();
        self.bound(ask);
        self.divide(ask);
    }

    fn close(&mut self, ask: Ask<'_>, _records: &Records, out: &mut Outbox) {
        tell_clamped("proportion", std::mem::take(self.n_clamped.get_mut()), out);
        gauges::tell(ask, &mut self.queues, &mut self.told, out);
    }

    fn on_allocate(&mut self, ask: Ask<'_>, task: TaskId) {
        self.change(ask, task, Resource::add);
    }

    fn on_deallocate(&mut self, ask: Ask<'_>, task: TaskId) {
        self.change(ask, task, Resource::sub);
    }

    fn queue_order(&self, ask: Ask<'_>, l: QueueId, r: QueueId) -> Ordering {
        let queues = &ask.cluster.queues;
        let share = |queue| self.queues.get(&queue).map_or(0.0, |queue| queue.share);
        let by_priority = queues[r].priority.cmp(&queues[l].priority);
        by_priority.then_with(|| share(l).total_cmp(&share(r)))
    }

    fn stands_alone(&self, _ask: Ask<'_>, _queue: QueueId) -> bool {
        true
    }

    fn overused(&self, _ask: Ask<'_>, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some_and(Attributes::is_overused)
    }

    fn allocatable(&self, ask: Ask<'_>, queue: QueueId, task: TaskId) -> bool {
        self.stays_inside(ask, queue, &[task])
    }

    fn allocatable_lacks(&self, ask: Ask<'_>, queue: QueueId, task: TaskId) -> Vec<Dim> {
        match ask.cluster.queues[queue].is_open() {
            true => self.beyond_deserved(ask, queue, &[task]),
            false => Vec::new(),
        }
    }

    fn preemptive(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.stays_inside(ask, queue, tasks) && self.deserves_slots(queue, tasks.len())
    }

    fn reclaimable(&self, ask: Ask<'_>, _reclaimer: TaskId, candidates: &[TaskId]) -> Verdict {
        self.surplus(ask, candidates)
    }

    fn unified_evictable(
        &self,
        ask: Ask<'_>,
        _initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> Verdict {
        match kind {
            GangEviction::Preempt => Verdict::Victims(candidates.to_vec()),
            GangEviction::Reclaim => self.surplus(ask, candidates),
        }
    }

    fn job_enqueueable(&self, ask: Ask<'_>, job: JobId) -> Admission {
        let job = &ask.cluster.jobs[job];
        let Some(queue) = self.queues.get(&job.queue) else {
            return Admission::Reject(None);
        };
        if !ask.cluster.queues[job.queue].is_open() {
            return Admission::Reject(None);
        }
        let Some(asked) = min_resources(job) else {
            return Admission::Permit;
        };
        let (wanted, clamped) = use_after_admission(queue, asked);
        self.n_clamped.fetch_add(u32::from(clamped), Memory::Relaxed);
        let (asked, dims) = (asked.to_fractional(), &ask.cluster.dims);
        let Err(lacking) = wanted.less_equal_dim(&queue.real_capability, &asked, dims) else {
            return Admission::Permit;
        };
        Admission::Reject(Some(quota_insufficient(&lacking, dims)))
    }

    /// What is clamped is counted for every job that asks.
    fn admits_alike(&self, ask: Ask<'_>, job: JobId) -> Option<Marked> {
        let job = &ask.cluster.jobs[job];
        let asked = self.queues.get(&job.queue).zip(min_resources(job));
        let clamps = asked.is_some_and(|(queue, asked)| use_after_admission(queue, asked).1);
        (!clamps).then(Marked::default)
    }

    fn job_enqueued(&mut self, ask: Ask<'_>, job: JobId) {
        let job = &ask.cluster.jobs[job];
        let queue = self.queues.get_mut(&job.queue);
        if let (Some(queue), Some(asked)) = (queue, min_resources(job)) {
            queue.inqueue.add(&job.minus_gated(asked));
        }
    }

    fn queue_share(&self, _ask: Ask<'_>, queue: QueueId) -> Option<QueueShare> {
        let queue = self.queues.get(&queue)?;
        Some(QueueShare { deserved: queue.deserved.clone(), share: queue.share })
    }
}

impl Proportion {
    /// Sets how much each queue could have at most (5.1).
    fn bound(&mut self, ask: Ask<'_>) {
        let mut guaranteed = Fractional::default();
        for &id in &ask.facts.queues {
            guaranteed.add(&ask.cluster.queues[id].guarantee.to_fractional());
        }
        let free = ask.facts.total.excess(&guaranteed);
        for (&id, attributes) in &mut self.queues {
            let queue = &ask.cluster.queues[id];
            let mut bound = free.clone();
            bound.add(&queue.guarantee.to_fractional());
            if let Some(capability) = capability(queue) {
                bound = bound.min_dim(&capability.to_fractional(), Absent::Infinity);
            }
            attributes.real_capability = bound;
        }
    }

    /// Sets what the queues with jobs deserve; the others deserve nothing and take no part (D13).
    fn divide(&mut self, ask: Ask<'_>) {
        // By name, so that sums of fractions do not depend on the order of arrival.
        let has_jobs =
            |id: &QueueId| self.queues.get(id).is_some_and(|queue| 0 < queue.at_open.n_jobs);
        let ids: Vec<QueueId> = ask.facts.queues.iter().copied().filter(has_jobs).collect();
        let claim = |id: &QueueId| self.queues[id].claim(&ask.cluster.queues[*id]);
        let mut claims: Vec<Claim> = ids.iter().map(claim).collect();
        divide(&ask.facts.total, &mut claims);
        for (id, claim) in ids.iter().zip(claims) {
            if let Some(queue) = self.queues.get_mut(id) {
                queue.deserved = claim.deserved;
                queue.refresh_share();
            }
        }
    }

    fn change(&mut self, ask: Ask<'_>, task: TaskId, change: fn(&mut Resource, &Resource)) {
        let Some((_, job)) = session_job(ask.cluster, task) else {
            return;
        };
        if let Some(queue) = self.queues.get_mut(&job.queue) {
            change(&mut queue.allocated, ask.cluster.request(task));
            queue.refresh_share();
        }
    }

    fn stays_inside(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        ask.cluster.queues[queue].is_open()
            && self.queues.contains_key(&queue)
            && self.beyond_deserved(ask, queue, tasks).is_empty()
    }

    /// Requested dimensions in which the queue would leave its deserved amount. The tolerance is
    /// D11: deserved is approached from below.
    fn beyond_deserved(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> Vec<Dim> {
        let Some(queue) = self.queues.get(&queue) else {
            return Vec::new();
        };
        let mut request = Resource::default();
        tasks.iter().for_each(|&task| request.add(ask.cluster.request(task)));
        let mut after = queue.allocated.clone();
        after.add(&request);
        let (after, request) = (after.to_fractional(), request.to_fractional());
        let dims = &ask.cluster.dims;
        let inside = after.less_equal_dim_within(&queue.deserved, &request, EPS, dims);
        inside.err().unwrap_or_default()
    }

    /// Whether the queue deserves so many pod slots more. Beyond 5.3, because Reclaimable counts
    /// slots: a queue that took one above its share would be the next to lose one, and two queues
    /// would take turns for ever.
    fn deserves_slots(&self, queue: QueueId, n_tasks: usize) -> bool {
        self.queues.get(&queue).is_some_and(|queue| {
            let after = queue.allocated.get(Dim::PODS) as f64 + n_tasks as f64;
            after <= queue.deserved.get(Dim::PODS) + EPS
        })
    }

    /// Tasks that hold some of what their queue has beyond its deserved amount, until it no longer
    /// has any. By 5.3 any dimension would do: then a queue below its share of what the task holds
    /// would lose it and not come nearer to its share, and could take it back at once. Nor does a
    /// large task go that holds what is guaranteed, too.
    fn surplus(&self, ask: Ask<'_>, candidates: &[TaskId]) -> Verdict {
        let mut left: BTreeMap<QueueId, Resource> = BTreeMap::new();
        let mut may_go = |&task: &TaskId| {
            let Some((_, job)) = session_job(ask.cluster, task) else {
                return false;
            };
            let Some(queue) = self.queues.get(&job.queue) else {
                return false;
            };
            let left = left.entry(job.queue).or_insert_with(|| queue.allocated.clone());
            let request = ask.cluster.request(task);
            let is_above = |dim| queue.deserved.get(dim) + EPS <= left.get(dim) as f64;
            let guarantee = &ask.cluster.queues[job.queue].guarantee;
            let keeps = |dim| guarantee.get(dim) <= left.get(dim).saturating_sub(request.get(dim));
            let may_go = request.names().any(is_above) && guarantee.names().all(keeps);
            if may_go {
                left.sub(request);
            }
            may_go
        };
        Verdict::Victims(candidates.iter().copied().filter(|task| may_go(task)).collect())
    }
}

/// What the queue would hold, and whether that went below zero. Elastic amounts are those of the start
/// of the session: evictions since then may have made `allocated` smaller (D5).
fn use_after_admission(queue: &Attributes, asked: &Resource) -> (Fractional, bool) {
    // As fractions: amounts that users write may leave 64 bits together.
    let mut wanted = asked.to_fractional();
    wanted.add(&queue.allocated.to_fractional());
    wanted.add(&queue.inqueue.to_fractional());
    let clamped = wanted.sub_clamped(&queue.at_open.elastic.to_fractional());
    (wanted, clamped)
}

impl Attributes {
    fn claim(&self, queue: &Queue) -> Claim {
        Claim {
            weight: f64::from(queue.weight.max(0)),
            bound: self.real_capability.clone(),
            request: self.at_open.request.to_fractional(),
            guarantee: queue.guarantee.to_fractional(),
            ..Claim::default()
        }
    }

    fn is_overused(&self) -> bool {
        let held = self.allocated.to_fractional();
        let overused = self.deserved.less_equal(&held, Absent::Zero);
        self.overused.store(1 + u8::from(overused), Memory::Relaxed);
        overused
    }

    fn refresh_share(&mut self) {
        self.share = dominant_share(&self.allocated, &self.deserved);
    }
}
