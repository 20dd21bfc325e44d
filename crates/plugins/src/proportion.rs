//! Divides the cluster between queues by weight, bounded by request, capability and guarantee;
//! keeps queues inside their deserved amount and lets queues below it reclaim. Specification:
//! plugins-jobs-queues.md 5, D5, D11-D13.

mod deserved;
mod gauges;
mod surplus;

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering as Memory};

use vc_framework::{
    Admission, Ask, Clock, GangEviction, JobSums, Latest, LimitOwner, LimitedAmount, Marked,
    Outbox, Plugin, PluginEntry, Points, QueueLimit, QueueShare, Records, Stake, Verdict,
};
use vc_model::{Column, JobId, Queue, QueueId, TaskId};
use vc_resource::{Absent, Dim, EPS, Fractional, Resource};

use crate::guarantee::{self, CutGuarantees};
use crate::rules::{
    capability, dominant_share, min_resources, quota_insufficient, session_job, set_by,
    tell_clamped,
};
use deserved::{Claim, Division, divide, divide_changed};

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
    /// Number of the session, from 1.
    session: u64,
    /// Every queue of the session, those without jobs too (D13).
    queues: Column<QueueId, Attributes>,
    /// By name.
    listed: Vec<QueueId>,
    /// Version of the queues and Σ allocatable, on which all bounds and weights rest; `None`: there
    /// was no session.
    basis: Option<(u64, Fractional)>,
    /// Of the queues with jobs, by name, so that sums of fractions do not depend on the order of
    /// arrival.
    claims: Vec<Claim>,
    division: Division,
    /// Queues that hold something else than when the session began, or did.
    moved: Vec<QueueId>,
    /// Subtractions that would have gone below zero (D5); of functions that may only look.
    n_clamped: AtomicU32,
    /// Guarantees that exceed the cluster.
    cut_guarantees: CutGuarantees,
    /// What was handed out for metrics.
    told: Latest<QueueId, gauges::Gauges>,
}

#[derive(Default)]
struct Attributes {
    /// When the session began.
    at_open: JobSums,
    /// Between nothing and what the cluster has.
    guarantee: Resource,
    /// The cluster without the guarantees of others, at most the capability.
    real_capability: Fractional,
    deserved: Fractional,
    /// Allocated and, within the session, Pipelined tasks.
    allocated: Resource,
    /// What admitted jobs hold back.
    inqueue: Resource,
    share: f64,
    /// Place of its claim; `None`: it has no jobs.
    claim: Option<usize>,
    /// The last answer of Overused: twice the number of the session, and 1 for yes.
    overused: AtomicU64,
    /// It is in the list of those that moved.
    has_moved: bool,
    /// Metrics may show something else than before.
    is_news: bool,
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

    fn votes_by_queue(&self, _ask: Ask<'_>) -> bool {
        true
    }

    fn stake(&self, _ask: Ask<'_>, queue: QueueId) -> Option<Stake> {
        Some(self.queues.get(queue).map_or(Stake::Within, Attributes::stake))
    }

    fn votes_for_any_class(&self, _ask: Ask<'_>) -> bool {
        true
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    /// What queues hold is kept from session to session: only those whose jobs changed are new, unless
    /// a queue or the cluster is another one. The engine's `histories.rs` compares with all made anew.
    fn open(&mut self, ask: Ask<'_>) {
        self.session += 1;
        let basis = Some((ask.cluster.queue_version(), ask.facts.total.clone()));
        let is_same = self.basis == basis;
        self.basis = basis;
        match ask.facts.roster.changed_queues().filter(|_| is_same) {
            Some(changed) => self.renew(ask, changed),
            None => self.begin(ask),
        }
    }

    fn close(&mut self, ask: Ask<'_>, _records: &Records, out: &mut Outbox) {
        tell_clamped("proportion", std::mem::take(self.n_clamped.get_mut()), out);
        self.cut_guarantees.report(ask, out);
        self.tell(ask, out);
    }

    fn on_allocate(&mut self, ask: Ask<'_>, task: TaskId) {
        self.change(ask, task, Resource::add);
    }

    fn on_deallocate(&mut self, ask: Ask<'_>, task: TaskId) {
        self.change(ask, task, Resource::sub);
    }

    fn queue_order(&self, ask: Ask<'_>, l: QueueId, r: QueueId) -> Ordering {
        let queues = &ask.cluster.queues;
        let share = |queue| self.queues.get(queue).map_or(0.0, |queue| queue.share);
        let by_priority = queues[r].priority.cmp(&queues[l].priority);
        by_priority.then_with(|| share(l).total_cmp(&share(r)))
    }

    fn stands_alone(&self, _ask: Ask<'_>, _queue: QueueId) -> bool {
        true
    }

    fn overused(&self, _ask: Ask<'_>, queue: QueueId) -> bool {
        self.queues.get(queue).is_some_and(|queue| queue.is_overused(self.session))
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

    fn queue_limit(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> Option<QueueLimit> {
        let lacking = self.beyond_deserved(ask, queue, tasks);
        let attributes = self.queues.get(queue).filter(|_| !lacking.is_empty())?;
        let mut request = Resource::default();
        tasks.iter().for_each(|&task| request.add(ask.cluster.request(task)));
        let amount = |dim| LimitedAmount {
            dim,
            limit: whole(attributes.deserved.get(dim)),
            set_by: "deserved",
            used: attributes.allocated.get(dim),
            asked: request.get(dim),
        };
        let amounts = lacking.into_iter().map(amount).collect();
        let owner = LimitOwner::Queue(ask.cluster.queues[queue].name.clone());
        Some(QueueLimit { owner, amounts })
    }

    fn admission_limit(&self, ask: Ask<'_>, job: JobId) -> Option<QueueLimit> {
        let (job, dims) = (&ask.cluster.jobs[job], &ask.cluster.dims);
        let (queue, asked) = self.queues.get(job.queue).zip(min_resources(job))?;
        let (wanted, _) = use_after_admission(queue, asked);
        let lacking = wanted.less_equal_dim(&queue.real_capability, &asked.to_fractional(), dims);
        let capability = capability(&ask.cluster.queues[job.queue]);
        let amount = |dim| {
            let (limit, asked) = (whole(queue.real_capability.get(dim)), asked.get(dim));
            let set_by = set_by(capability.as_ref(), dim, limit);
            let used = whole(wanted.get(dim)).saturating_sub(asked).max(0);
            LimitedAmount { dim, limit, set_by, used, asked }
        };
        let amounts = lacking.err()?.into_iter().map(amount).collect();
        let owner = LimitOwner::Queue(ask.cluster.queues[job.queue].name.clone());
        Some(QueueLimit { owner, amounts })
    }

    fn preemptive(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.stays_inside(ask, queue, tasks) && self.deserves_slots(queue, tasks.len())
    }

    fn reclaimable(&self, ask: Ask<'_>, _reclaimer: TaskId, candidates: &[TaskId]) -> Verdict {
        self.surplus(ask, candidates)
    }

    fn is_share_filter(&self) -> bool {
        true
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
        let Some(queue) = self.queues.get(job.queue) else {
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
        let asked = self.queues.get(job.queue).zip(min_resources(job));
        let clamps = asked.is_some_and(|(queue, asked)| use_after_admission(queue, asked).1);
        (!clamps).then(Marked::default)
    }

    fn job_enqueued(&mut self, ask: Ask<'_>, job: JobId) {
        let job = &ask.cluster.jobs[job];
        if let (Some(queue), Some(asked)) = (self.moving(job.queue), min_resources(job)) {
            queue.inqueue.add(&job.minus_gated(asked));
        }
    }

    fn queue_share(&self, _ask: Ask<'_>, queue: QueueId) -> Option<QueueShare> {
        let queue = self.queues.get(queue)?;
        Some(QueueShare { deserved: queue.deserved.clone(), share: queue.share })
    }
}

impl Proportion {
    /// All queues.
    fn begin(&mut self, ask: Ask<'_>) {
        let mut queues = Column::default();
        for &id in &ask.facts.queues {
            let at_open = ask.facts.roster.sums(id).clone();
            *queues.place(id) = Some(Attributes { is_news: true, ..Attributes::of(at_open) });
        }
        self.queues = queues;
        self.moved.clear();
        for id in std::mem::take(&mut self.listed) {
            if self.queues.get(id).is_none() {
                self.told.forget(id);
            }
        }
        self.listed.clone_from(&ask.facts.queues);
        self.bound(ask);
        self.divide(ask);
    }

    /// Those whose jobs changed, and those that were moved in the session before.
    fn renew(&mut self, ask: Ask<'_>, changed: &[QueueId]) {
        let mut asking = Vec::new();
        let mut gains_or_loses_a_claim = false;
        let moved = std::mem::take(&mut self.moved);
        for &id in changed.iter().chain(&moved) {
            let Some(queue) = self.queues.get_mut(id) else { continue };
            let at_open = ask.facts.roster.sums(id);
            gains_or_loses_a_claim |= queue.claim.is_some() != (0 < at_open.n_jobs);
            if let Some(place) = queue.claim.filter(|_| queue.at_open.request != at_open.request) {
                self.claims[place].request = at_open.request.to_fractional();
                asking.push(place);
            }
            queue.begin(at_open.clone());
        }
        let Some((_, total)) = &self.basis else { return };
        if gains_or_loses_a_claim {
            return self.divide(ask);
        }
        match divide_changed(self.division, total, &mut self.claims, &asking) {
            true => {
                for &id in changed.iter().chain(&moved) {
                    let Some(queue) = self.queues.get_mut(id) else { continue };
                    queue.deserve(queue.claim.map(|place| &self.claims[place]));
                }
            }
            false => {
                self.division = divide(total, &mut self.claims);
                self.hand_out();
            }
        }
        self.check_division(ask);
    }

    /// Sets how much each queue could have at most (5.1).
    fn bound(&mut self, ask: Ask<'_>) {
        let total = ask.cluster.total_amounts();
        self.cut_guarantees.renew(ask, &total);
        let mut guaranteed = Fractional::default();
        for &id in &ask.facts.queues {
            let guarantee = guarantee::counted(&ask.cluster.queues[id], &total);
            guaranteed.add(&guarantee.to_fractional());
            if let Some(attributes) = self.queues.get_mut(id) {
                attributes.guarantee = guarantee;
            }
        }
        let free = ask.facts.total.excess(&guaranteed);
        for &id in &ask.facts.queues {
            let Some(attributes) = self.queues.get_mut(id) else { continue };
            let queue = &ask.cluster.queues[id];
            let mut bound = free.clone();
            bound.add(&attributes.guarantee.to_fractional());
            if let Some(capability) = capability(queue) {
                bound = bound.min_dim(&capability.to_fractional(), Absent::Infinity);
            }
            attributes.real_capability = bound;
        }
    }

    /// Sets what the queues with jobs deserve; the others deserve nothing and take no part (D13).
    fn divide(&mut self, ask: Ask<'_>) {
        self.claims.clear();
        for &id in &self.listed {
            let Some(attributes) = self.queues.get_mut(id) else { continue };
            attributes.claim = None;
            if 0 < attributes.at_open.n_jobs {
                attributes.claim = Some(self.claims.len());
                self.claims.push(attributes.claim(&ask.cluster.queues[id]));
            }
        }
        self.division = divide(&ask.facts.total, &mut self.claims);
        self.hand_out();
    }

    fn hand_out(&mut self) {
        for &id in &self.listed {
            if let Some(queue) = self.queues.get_mut(id) {
                queue.deserve(queue.claim.map(|place| &self.claims[place]));
            }
        }
    }

    /// The plain way, where it costs nothing: in every story of the tests.
    fn check_division(&self, ask: Ask<'_>) {
        if cfg!(debug_assertions) && self.listed.len() < 64 {
            let mut anew = Self { listed: self.listed.clone(), ..Self::default() };
            anew.begin(ask);
            for &id in &self.listed {
                let (kept, fresh) = (self.queues.get(id), anew.queues.get(id));
                let (kept, fresh) = (kept.map(Attributes::part), fresh.map(Attributes::part));
                debug_assert_eq!(kept, fresh, "what a queue deserves");
            }
        }
    }

    fn tell(&mut self, ask: Ask<'_>, out: &mut Outbox) {
        for &id in &self.listed {
            let Some(attributes) = self.queues.get_mut(id) else { continue };
            if attributes.is_to_tell(self.session) {
                let queue = &ask.cluster.queues[id];
                gauges::tell(ask, (id, queue), attributes, self.session, &mut self.told, out);
            }
        }
    }

    /// The queue, which holds something else from now on.
    fn moving(&mut self, id: QueueId) -> Option<&mut Attributes> {
        let queue = self.queues.get_mut(id)?;
        if !std::mem::replace(&mut queue.has_moved, true) {
            self.moved.push(id);
        }
        queue.is_news = true;
        Some(queue)
    }

    fn change(&mut self, ask: Ask<'_>, task: TaskId, change: fn(&mut Resource, &Resource)) {
        let Some((_, job)) = session_job(ask.cluster, task) else {
            return;
        };
        if let Some(queue) = self.moving(job.queue) {
            change(&mut queue.allocated, ask.cluster.request(task));
            queue.refresh_share();
        }
    }

    fn stays_inside(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        ask.cluster.queues[queue].is_open()
            && self.queues.get(queue).is_some()
            && self.beyond_deserved(ask, queue, tasks).is_empty()
    }

    /// Requested dimensions in which the queue would leave its deserved amount. The tolerance is
    /// D11: deserved is approached from below.
    fn beyond_deserved(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> Vec<Dim> {
        let Some(queue) = self.queues.get(queue) else {
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
        self.queues.get(queue).is_some_and(|queue| {
            let after = queue.allocated.to_f64(Dim::PODS) + n_tasks as f64;
            after <= queue.deserved.get(Dim::PODS) + EPS
        })
    }
}

/// Whole units of an amount, for people; what leaves 64 bits is cut.
fn whole(amount: f64) -> i64 {
    amount as i64
}

/// What the queue would hold, and whether that went below zero. Elastic amounts are those of the start
/// of the session: evictions since then may have made `allocated` smaller (D5).
fn use_after_admission(queue: &Attributes, asked: &Resource) -> (Fractional, bool) {
    let mut wanted = asked.clone();
    wanted.add(&queue.allocated);
    wanted.add(&queue.inqueue);
    let clamped = wanted.sub_clamped(&queue.at_open.elastic);
    (wanted.to_fractional(), clamped)
}

impl Attributes {
    fn of(at_open: JobSums) -> Self {
        let mut queue = Self::default();
        queue.begin(at_open);
        queue
    }

    /// A session begins, in which its jobs hold so much.
    fn begin(&mut self, at_open: JobSums) {
        self.allocated.clone_from(&at_open.allocated);
        self.inqueue.clone_from(&at_open.inqueue);
        self.at_open = at_open;
        (self.has_moved, self.is_news) = (false, true);
    }

    fn deserve(&mut self, claim: Option<&Claim>) {
        let Some(claim) = claim else {
            (self.deserved, self.share) = (Fractional::default(), 0.0);
            return;
        };
        self.is_news |= self.deserved != claim.deserved;
        self.deserved.clone_from(&claim.deserved);
        self.refresh_share();
    }

    /// What a session decides about the queue when it begins.
    fn part(&self) -> (&JobSums, &Fractional, &Fractional, &Resource, &Resource, f64) {
        let bounds = (&self.real_capability, &self.deserved);
        (&self.at_open, bounds.0, bounds.1, &self.allocated, &self.inqueue, self.share)
    }

    /// Whether metrics may show something else: what it has, or the last answer of Overused.
    fn is_to_tell(&mut self, session: u64) -> bool {
        let asked = *self.overused.get_mut() / 2;
        std::mem::take(&mut self.is_news) || session <= asked + 1
    }

    /// The last answer of Overused in this session.
    fn overused_in(&mut self, session: u64) -> Option<bool> {
        let last = *self.overused.get_mut();
        (last / 2 == session).then_some(last % 2 == 1)
    }

    fn claim(&self, queue: &Queue) -> Claim {
        Claim {
            weight: f64::from(queue.weight.max(0)),
            bound: self.real_capability.clone(),
            request: self.at_open.request.to_fractional(),
            guarantee: self.guarantee.to_fractional(),
            ..Claim::default()
        }
    }

    fn is_overused(&self, session: u64) -> bool {
        let held = self.allocated.to_fractional();
        let overused = self.deserved.less_equal(&held, Absent::Zero);
        self.overused.store(2 * session + u64::from(overused), Memory::Relaxed);
        overused
    }

    fn refresh_share(&mut self) {
        self.share = dominant_share(&self.allocated, &self.deserved);
    }
}
