//! Plugin `proportion`: divides the cluster between queues by weight, bounded by request,
//! capability and guarantee. It keeps queues within their deserved amount, and lets queues below it
//! reclaim.
//! Specification: plugins-jobs-queues.md 5, D5, D11-D13.

mod deserved;
mod gauges;
mod surplus;
mod weights;

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU32, Ordering as Memory};

use vc_conf::{EnqueueVote, QueueRule};
use vc_framework::{
    Admission, AdmissionKey, CacheKeys, Depends, EarlierMemory, GangEviction, Inputs, JobSums,
    LimitOwner, LimitedAmount, Outbox, Plugin, PluginEntry, PluginMemory, Points, QueueLimit,
    QueueUsageStamp, QuotaPlugin, Records, ReportLog, SessionView, VictimFilter, VictimVote,
};
use vc_model::{Column, JobId, Queue, QueueId, TaskId};
use vc_resource::{Absent, Dim, EPS, Fractional, Resource};

use crate::guarantee::{self, CutGuarantees};
use crate::rules::{
    capability, dominant_share, min_resources, quota_insufficient, session_job, set_by,
    tell_clamped,
};
use deserved::{DivisionClaim, LastDivision, divide, divide_changed};
use weights::DivisionByUsage;

pub(crate) const ENTRY: PluginEntry =
    PluginEntry::new("proportion", |_, _| Box::new(Proportion::default()))
        .enqueue_vote(EnqueueVote::IgnoresEvictions)
        .queue_rule(QueueRule::Quota);

/// The extension points. D3: UnifiedEvictable protects shares. Volcano has a PrePredicate too,
/// which copies the state for simulations. The journal makes that copy unnecessary.
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
    /// All queues of the session. D13: queues without jobs are included.
    queues: Column<QueueId, QueueAttributes>,
    /// The queues of the session, sorted by name.
    listed: Vec<QueueId>,
    /// Version of the queue objects and the sum of allocatable, on which all bounds and weights
    /// depend. `None` before the first session.
    basis: Option<(u64, Fractional)>,
    /// Claims of the queues with jobs, sorted by queue name. The fixed order makes sums of
    /// fractions independent of the order of arrival.
    claims: Vec<DivisionClaim>,
    division: LastDivision,
    by_usage: DivisionByUsage,
    /// Queues whose usage was changed in this session, even if it has its old value again.
    moved: Vec<QueueId>,
    /// Number of subtractions whose result was clamped to zero (D5: amounts do not go below zero).
    /// It is atomic because methods with `&self` count too.
    n_clamped: AtomicU32,
    /// Reports guarantees that exceed the cluster.
    cut_guarantees: CutGuarantees,
    /// The values that were last written to metrics.
    reported: ReportLog<QueueId, gauges::ProportionGauges>,
}

#[derive(Clone, Default)]
struct QueueAttributes {
    /// Sums over the jobs of the queue when the session began.
    at_open: JobSums,
    /// The effective guarantee: at least 0 and at most what the cluster has.
    guarantee: Resource,
    /// The cluster without the guarantees of other queues, at most the capability.
    real_capability: Fractional,
    deserved: Fractional,
    /// Sum of the allocated tasks and, within the session, the pipelined ones.
    allocated: Resource,
    /// Amounts held back for admitted jobs without pods.
    inqueue: Resource,
    share: f64,
    /// Index of the queue in `Proportion::claims`. `None` if it has no jobs.
    claim: Option<usize>,
    /// True if the queue is in `Proportion::moved`.
    has_moved: bool,
    /// True if the metrics of the queue may have changed.
    record_if_new: bool,
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (Points::QUEUE_ORDER, OWN),
    (Points::RECLAIMABLE, VICTIMS),
    (Points::UNIFIED_EVICTABLE, VICTIMS),
    (Points::PREEMPTIVE, OWN.and(Inputs::POD_SHAPE)),
    (Points::OVERUSED, OWN),
    (Points::ALLOCATABLE, OWN.and(Inputs::POD_SHAPE)),
    (Points::JOB_ENQUEUEABLE, OWN.and(Inputs::JOB_REQUEST)),
    (Points::EVENT_HANDLERS, Inputs::NONE),
];

/// Deserved amounts follow from the cluster and from all queues as they are when the session
/// begins.
const DIVISION: Inputs = Inputs::QUEUE_OBJECT.and(Inputs::CLUSTER_TOTAL);
const OWN: Inputs = DIVISION.and(Inputs::OWN_QUEUE_USAGE);
const VICTIMS: Inputs = DIVISION.and(Inputs::CANDIDATE_ROW).and(Inputs::CANDIDATE_QUEUE_USAGE);

impl Plugin for Proportion {
    fn points(&self) -> Points {
        POINTS
    }

    fn depends(&self) -> Depends {
        Depends::of(READS).eased_by_evictions(Points::OVERUSED.and(Points::ALLOCATABLE))
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    fn as_victim_filter(&self) -> Option<&dyn VictimFilter> {
        Some(self)
    }

    fn as_quota(&self) -> Option<&dyn QuotaPlugin> {
        Some(self)
    }

    fn as_quota_mut(&mut self) -> Option<&mut dyn QuotaPlugin> {
        Some(self)
    }

    /// Returns what is reported, so that nothing is reported again.
    fn memory(&self) -> Option<Box<dyn PluginMemory>> {
        Some(Box::new(self.cut_guarantees.known.clone()))
    }

    fn take_over(&mut self, memory: EarlierMemory) {
        self.cut_guarantees.known = memory.read().unwrap_or_default();
    }

    /// Keeps usage and deserved amounts across sessions. Only queues whose jobs changed are
    /// recomputed, unless a queue object or the cluster has changed. The engine's `histories.rs`
    /// compares the result with a full recomputation.
    fn open(&mut self, view: SessionView<'_>) {
        let basis = Some((view.cluster.queue_version(), view.total().clone()));
        let was_by_usage = self.by_usage.ends();
        let is_same = self.basis == basis && !was_by_usage;
        self.basis = basis;
        match view.info.active_jobs.changed_queues().filter(|_| is_same) {
            Some(changed) => self.renew(view, changed),
            None => self.begin(view),
        }
    }

    fn close(&mut self, view: SessionView<'_>, _records: &Records, out: &mut Outbox) {
        tell_clamped("proportion", std::mem::take(self.n_clamped.get_mut()), out);
        self.cut_guarantees.report(view, out);
        self.tell(view, out);
    }

    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.change(view, task, Resource::add);
    }

    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.change(view, task, Resource::sub);
    }

    fn queue_order(&self, view: SessionView<'_>, l: QueueId, r: QueueId) -> Ordering {
        let queues = &view.cluster.queues;
        let share = |queue| self.queues.get(queue).map_or(0.0, |queue| queue.share);
        let by_priority = queues[r].priority.cmp(&queues[l].priority);
        by_priority.then_with(|| share(l).total_cmp(&share(r)))
    }

    fn overused(&self, _view: SessionView<'_>, queue: QueueId) -> bool {
        self.queues.get(queue).is_some_and(QueueAttributes::is_overused)
    }

    fn allocatable(&self, view: SessionView<'_>, queue: QueueId, task: TaskId) -> bool {
        self.stays_inside(view, queue, &[task])
    }

    fn allocatable_lacks(&self, view: SessionView<'_>, queue: QueueId, task: TaskId) -> Vec<Dim> {
        match view.cluster.queues[queue].is_open() {
            true => self.beyond_deserved(view, queue, &[task]),
            false => Vec::new(),
        }
    }

    fn queue_limit(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        tasks: &[TaskId],
    ) -> Option<QueueLimit> {
        let lacking = self.beyond_deserved(view, queue, tasks);
        let attributes = self.queues.get(queue).filter(|_| !lacking.is_empty())?;
        let mut request = Resource::default();
        tasks.iter().for_each(|&task| request.add(view.cluster.request(task)));
        let amount = |dim| LimitedAmount {
            dim,
            // What the comparison within EPS admits, so that `short` is what the vote turns on.
            limit: whole(attributes.deserved.get(dim) + EPS),
            set_by: "deserved",
            used: attributes.allocated.get(dim),
            asked: request.get(dim),
        };
        let amounts = lacking.into_iter().map(amount).collect();
        let owner = LimitOwner::Queue(view.cluster.queues[queue].name.clone());
        Some(QueueLimit { owner, amounts })
    }

    fn admission_limit(&self, view: SessionView<'_>, job: JobId) -> Option<QueueLimit> {
        let (job, dims) = (&view.cluster.jobs[job], &view.cluster.dims);
        let (queue, asked) = self.queues.get(job.queue).zip(min_resources(job))?;
        let wanted = use_after_admission(queue, asked).0.to_fractional();
        let lacking = wanted.less_equal_dim(&queue.real_capability, &asked.to_fractional(), dims);
        let capability = capability(&view.cluster.queues[job.queue]);
        let amount = |dim| {
            let (limit, asked) = (whole(queue.real_capability.get(dim)), asked.get(dim));
            let set_by = set_by(capability.as_ref(), dim, limit);
            let used = whole(wanted.get(dim)).saturating_sub(asked).max(0);
            LimitedAmount { dim, limit, set_by, used, asked }
        };
        let amounts = lacking.err()?.into_iter().map(amount).collect();
        let owner = LimitOwner::Queue(view.cluster.queues[job.queue].name.clone());
        Some(QueueLimit { owner, amounts })
    }

    fn preemptive(&self, view: SessionView<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.stays_inside(view, queue, tasks) && self.deserves_slots(queue, tasks.len())
    }

    fn reclaimable(
        &self,
        view: SessionView<'_>,
        _reclaimer: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        self.surplus(view, candidates)
    }

    fn unified_evictable(
        &self,
        view: SessionView<'_>,
        _initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> VictimVote {
        match kind {
            GangEviction::Preempt => VictimVote::Victims(candidates.to_vec()),
            GangEviction::Reclaim => self.surplus(view, candidates),
        }
    }

    fn job_enqueueable(&self, view: SessionView<'_>, job: JobId) -> Admission {
        let job = &view.cluster.jobs[job];
        let Some(queue) = self.queues.get(job.queue) else {
            return Admission::Reject(None);
        };
        if !view.cluster.queues[job.queue].is_open() {
            return Admission::Reject(None);
        }
        let Some(asked) = min_resources(job) else {
            return Admission::Permit;
        };
        let (wanted, clamped) = use_after_admission(queue, asked);
        self.n_clamped.fetch_add(u32::from(clamped), Memory::Relaxed);
        let (asked, dims) = (asked.to_fractional(), &view.cluster.dims);
        let Err(lacking) =
            wanted.to_fractional().less_equal_dim(&queue.real_capability, &asked, dims)
        else {
            return Admission::Permit;
        };
        Admission::Reject(Some(quota_insufficient(&lacking, dims)))
    }

    fn job_enqueued(&mut self, view: SessionView<'_>, job: JobId) {
        let job = &view.cluster.jobs[job];
        if let (Some(queue), Some(asked)) = (self.moving(job.queue), min_resources(job)) {
            queue.inqueue.add(&job.minus_gated(asked));
        }
    }
}

impl CacheKeys for Proportion {
    /// Returns a number that grows when weights by usage have changed what queues deserve.
    fn revision(&self) -> Option<u64> {
        Some(self.by_usage.n_changes())
    }

    fn queue_usage(&self, _view: SessionView<'_>, queue: QueueId) -> Option<QueueUsageStamp> {
        Some(self.queues.get(queue).map_or(QueueUsageStamp::Within, QueueAttributes::queue_usage))
    }

    /// Returns `AdmissionKey::None` where an amount is clamped. The clamp is counted once per
    /// asking job, so its answer cannot be shared.
    fn admission_mark(&self, view: SessionView<'_>, job: JobId) -> AdmissionKey {
        let job = &view.cluster.jobs[job];
        let asked = self.queues.get(job.queue).zip(min_resources(job));
        let clamps = asked.is_some_and(|(queue, asked)| use_after_admission(queue, asked).1);
        if clamps { AdmissionKey::None } else { AdmissionKey::AsDeclared }
    }
}

impl VictimFilter for Proportion {
    fn is_share_filter(&self) -> bool {
        true
    }
}

impl Proportion {
    /// Computes all queues anew.
    fn begin(&mut self, view: SessionView<'_>) {
        let mut queues = Column::default();
        for &id in &view.info.queues {
            let at_open = view.info.active_jobs.sums(id).clone();
            *queues.place(id) =
                Some(QueueAttributes { record_if_new: true, ..QueueAttributes::of(at_open) });
        }
        self.queues = queues;
        self.moved.clear();
        for id in std::mem::take(&mut self.listed) {
            if self.queues.get(id).is_none() {
                self.reported.forget(id);
            }
        }
        self.listed.clone_from(&view.info.queues);
        self.bound(view);
        self.divide(view);
    }

    /// Updates the queues whose jobs changed, and those that the previous session moved. The
    /// division is repeated only if it may have changed.
    fn renew(&mut self, view: SessionView<'_>, changed: &[QueueId]) {
        let mut asking = Vec::new();
        let mut gains_or_loses_a_claim = false;
        let moved = std::mem::take(&mut self.moved);
        for &id in changed.iter().chain(&moved) {
            let Some(queue) = self.queues.get_mut(id) else { continue };
            let at_open = view.info.active_jobs.sums(id);
            gains_or_loses_a_claim |= queue.claim.is_some() != (0 < at_open.n_jobs);
            if let Some(place) = queue.claim.filter(|_| queue.at_open.request != at_open.request) {
                self.claims[place].request = at_open.request.to_fractional();
                asking.push(place);
            }
            queue.begin(at_open.clone());
        }
        let Some((_, total)) = &self.basis else { return };
        if gains_or_loses_a_claim {
            return self.divide(view);
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
        self.check_division(view);
    }

    /// Sets guarantee and upper bound of each queue (section 5.1).
    fn bound(&mut self, view: SessionView<'_>) {
        let total = view.cluster.total_amounts();
        self.cut_guarantees.renew(view, &total);
        let mut guaranteed = Fractional::default();
        for &id in &view.info.queues {
            let guarantee = guarantee::counted(&view.cluster.queues[id], &total);
            guaranteed.add(&guarantee.to_fractional());
            if let Some(attributes) = self.queues.get_mut(id) {
                attributes.guarantee = guarantee;
            }
        }
        let free = view.total().excess(&guaranteed);
        for &id in &view.info.queues {
            let Some(attributes) = self.queues.get_mut(id) else { continue };
            let queue = &view.cluster.queues[id];
            let mut bound = free.clone();
            bound.add(&attributes.guarantee.to_fractional());
            if let Some(capability) = capability(queue) {
                bound = bound.min_dim(&capability.to_fractional(), Absent::Infinity);
            }
            attributes.real_capability = bound;
        }
    }

    /// Sets the deserved amounts of the queues with jobs. D13: queues without jobs deserve nothing
    /// and do not take part.
    fn divide(&mut self, view: SessionView<'_>) {
        self.claims.clear();
        for &id in &self.listed {
            let Some(attributes) = self.queues.get_mut(id) else { continue };
            attributes.claim = None;
            if 0 < attributes.at_open.n_jobs {
                attributes.claim = Some(self.claims.len());
                self.claims.push(attributes.claim(&view.cluster.queues[id]));
            }
        }
        self.division = divide(view.total(), &mut self.claims);
        self.hand_out();
    }

    fn hand_out(&mut self) {
        for &id in &self.listed {
            if let Some(queue) = self.queues.get_mut(id) {
                queue.deserve(queue.claim.map(|place| &self.claims[place]));
            }
        }
    }

    /// Compares the kept values with a full recomputation, in debug builds with few queues. All
    /// tests run it.
    fn check_division(&self, view: SessionView<'_>) {
        if cfg!(debug_assertions) && self.listed.len() < 64 {
            let mut anew = Self { listed: self.listed.clone(), ..Self::default() };
            anew.begin(view);
            for &id in &self.listed {
                let (kept, fresh) = (self.queues.get(id), anew.queues.get(id));
                let (kept, fresh) =
                    (kept.map(QueueAttributes::part), fresh.map(QueueAttributes::part));
                debug_assert_eq!(kept, fresh, "what a queue deserves");
            }
        }
    }

    fn tell(&mut self, view: SessionView<'_>, out: &mut Outbox) {
        for &id in &self.listed {
            let Some(attributes) = self.queues.get_mut(id) else { continue };
            if std::mem::take(&mut attributes.record_if_new) {
                let queue = &view.cluster.queues[id];
                gauges::tell(view, (id, queue), attributes, &mut self.reported, out);
            }
        }
    }

    /// Returns the queue for a change of its usage, and marks it as moved.
    fn moving(&mut self, id: QueueId) -> Option<&mut QueueAttributes> {
        let queue = self.queues.get_mut(id)?;
        if !std::mem::replace(&mut queue.has_moved, true) {
            self.moved.push(id);
        }
        queue.record_if_new = true;
        Some(queue)
    }

    fn change(
        &mut self,
        view: SessionView<'_>,
        task: TaskId,
        change: fn(&mut Resource, &Resource),
    ) {
        let Some((_, job)) = session_job(view.cluster, task) else {
            return;
        };
        if let Some(queue) = self.moving(job.queue) {
            change(&mut queue.allocated, view.cluster.request(task));
            queue.refresh_share();
        }
    }

    fn stays_inside(&self, view: SessionView<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        view.cluster.queues[queue].is_open()
            && self.queues.get(queue).is_some()
            && self.beyond_deserved(view, queue, tasks).is_empty()
    }

    /// Returns the requested dimensions in which the queue would exceed its deserved amount. D11: a
    /// tolerance lets usage approach the deserved amount from below.
    fn beyond_deserved(&self, view: SessionView<'_>, queue: QueueId, tasks: &[TaskId]) -> Vec<Dim> {
        let Some(queue) = self.queues.get(queue) else {
            return Vec::new();
        };
        let mut request = Resource::default();
        tasks.iter().for_each(|&task| request.add(view.cluster.request(task)));
        let mut after = queue.allocated.clone();
        after.add(&request);
        let (after, request) = (after.to_fractional(), request.to_fractional());
        let dims = &view.cluster.dims;
        let inside = after.less_equal_dim_within(&queue.deserved, &request, EPS, dims);
        inside.err().unwrap_or_default()
    }

    /// True if the queue deserves `n_tasks` more pod slots. Section 5.3 lacks this check.
    /// Reclaimable counts slots, so without it two queues could reclaim from each other forever.
    fn deserves_slots(&self, queue: QueueId, n_tasks: usize) -> bool {
        self.queues.get(queue).is_some_and(|queue| {
            let after = queue.allocated.to_f64(Dim::PODS) + n_tasks as f64;
            after <= queue.deserved.get(Dim::PODS) + EPS
        })
    }
}

/// Returns an amount in whole units for messages. A value beyond 64 bits saturates.
fn whole(amount: f64) -> i64 {
    amount as i64
}

/// Returns the use of the queue after the job is admitted, and true if it was clamped to zero.
/// The elastic amounts are of the session's start. Evictions since then may have made `allocated`
/// smaller (D5: amounts do not go below zero).
fn use_after_admission(queue: &QueueAttributes, asked: &Resource) -> (Resource, bool) {
    let mut wanted = asked.clone();
    wanted.add(&queue.allocated);
    wanted.add(&queue.inqueue);
    let clamped = wanted.sub_clamped(&queue.at_open.elastic);
    (wanted, clamped)
}

impl QueueAttributes {
    fn of(at_open: JobSums) -> Self {
        let mut queue = Self::default();
        queue.begin(at_open);
        queue
    }

    /// Starts a session in which the jobs of the queue hold `at_open`.
    fn begin(&mut self, at_open: JobSums) {
        self.allocated.clone_from(&at_open.allocated);
        self.inqueue.clone_from(&at_open.inqueue);
        self.at_open = at_open;
        (self.has_moved, self.record_if_new) = (false, true);
    }

    fn deserve(&mut self, claim: Option<&DivisionClaim>) {
        let Some(claim) = claim else {
            (self.deserved, self.share) = (Fractional::default(), 0.0);
            return;
        };
        self.record_if_new |= self.deserved != claim.deserved;
        self.deserved.clone_from(&claim.deserved);
        self.refresh_share();
    }

    /// Returns the values that the start of a session sets, for comparison.
    fn part(&self) -> (&JobSums, &Fractional, &Fractional, &Resource, &Resource, f64) {
        let bounds = (&self.real_capability, &self.deserved);
        (&self.at_open, bounds.0, bounds.1, &self.allocated, &self.inqueue, self.share)
    }

    fn claim(&self, queue: &Queue) -> DivisionClaim {
        DivisionClaim {
            weight: f64::from(queue.weight.max(0)),
            bound: self.real_capability.clone(),
            request: self.at_open.request.to_fractional(),
            guarantee: self.guarantee.to_fractional(),
            ..DivisionClaim::default()
        }
    }

    /// True if the jobs of the queue hold all that it deserves, in every dimension.
    fn is_overused(&self) -> bool {
        self.deserved.less_equal(&self.allocated.to_fractional(), Absent::Zero)
    }

    fn refresh_share(&mut self) {
        self.share = dominant_share(&self.allocated, &self.deserved);
    }
}
