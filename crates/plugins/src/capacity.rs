//! Quotas of queues per dimension: a guarantee that is protected, a deserved amount that is lent
//! out and taken back, a capability that is never passed; flat, or as a tree of queues with
//! `enableHierarchy`. Specification: plugins-jobs-queues.md 6, D3, D5, D13-D17.

mod device_quotas;
mod gauges;
mod limits;
mod quota;
mod reclaim;
mod renewal;
mod reservations;
mod shape;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering as Memory};

use vc_conf::{PluginOption, Switch, Warning};
use vc_framework::{
    About, Admission, Ask, Clock, Effect, GangEviction, Latest, LimitOwner, LimitedAmount, Marked,
    Outbox, Plugin, PluginEntry, Points, QueueLimit, QueueShare, Records, Stake, Verdict,
};
use vc_model::{JobId, QueueId, TaskId};
use vc_resource::{Dim, Resource};

use crate::guarantee::CutGuarantees;
use crate::rules::{min_resources, quota_insufficient, session_job, tell_clamped};
use device_quotas::DeviceQuotas;
use quota::{Quota, Quotas};
use reservations::Reservations;
use shape::{Shape, Standing};

pub(crate) const ENTRY: PluginEntry = PluginEntry {
    name: "capacity",
    build: |option, warnings| Box::new(capacity(option, warnings)),
};

/// Volcano's PrePredicate copies the state for trials, which the journal makes unneeded.
const FLAT: Points = Points::QUEUE_ORDER
    .and(Points::RECLAIMABLE)
    .and(Points::UNIFIED_EVICTABLE)
    .and(Points::PREEMPTIVE)
    .and(Points::ALLOCATABLE)
    .and(Points::JOB_ENQUEUEABLE)
    .and(Points::JOB_ENQUEUED)
    .and(Points::EVENT_HANDLERS);
const TREE: Points = FLAT.and(Points::VICTIM_QUEUE_ORDER);

/// Ancestors that are looked at in reclaim, an integer of at least 0 (6.1).
const LEVEL: &str = "ancestorReclaimLevel";
const DRA: &str = "capacity.DynamicResourceAllocationEnable";
const CONSUMABLE: &str = "capacity.DRAConsumableCapacityEnable";

#[derive(Default)]
struct Capacity {
    /// `enableHierarchy`.
    hierarchy: bool,
    /// `ancestorReclaimLevel`; 0 without hierarchy.
    level: usize,
    shape: Shape,
    /// Every queue of the session, those without jobs too (D13).
    quotas: Quotas,
    /// By name.
    listed: Vec<QueueId>,
    /// Version of the queues and Σ allocatable, on which shape and limits rest; `None`: there was no
    /// session.
    basis: Option<(u64, Resource)>,
    /// Queues that hold something else than when the session began, or did.
    moved: Vec<QueueId>,
    reservations: Reservations,
    /// Subtractions that would have gone below zero (D5); of functions that may only look.
    n_clamped: AtomicU32,
    /// Guarantees that exceed the cluster.
    cut_guarantees: CutGuarantees,
    /// What was handed out for metrics.
    told: Latest<QueueId, gauges::Gauges>,
    /// Jobs of queues with children, about which users were told (D14).
    misplaced: BTreeSet<JobId>,
    device_quotas: DeviceQuotas,
}

fn capacity(option: &PluginOption, warnings: &mut Vec<Warning>) -> Capacity {
    let arguments = &option.arguments;
    let level = arguments.int(LEVEL, 0, warnings);
    if level < 0 {
        let remedy = "write an integer of at least 0; until then 0 is in force";
        warnings.push(arguments.warning(LEVEL, &format!("{level} is less than 0"), remedy));
    }
    // `vc_conf` refuses a file in which one of the two is true: neither is built.
    let device_quotas = DeviceQuotas::new(!arguments.bool(DRA, true, warnings));
    arguments.bool(CONSUMABLE, false, warnings);
    let hierarchy = option.switches.on(Switch::Hierarchy);
    let level = if hierarchy { usize::try_from(level).unwrap_or(0) } else { 0 };
    Capacity { hierarchy, level, device_quotas, ..Capacity::default() }
}

impl Plugin for Capacity {
    fn points(&self) -> Points {
        if self.hierarchy { TREE } else { FLAT }
    }

    fn eases_by_evictions(&self) -> bool {
        true
    }

    fn clock(&self, _ask: Ask<'_>) -> Clock {
        Clock::Ignores
    }

    fn knows_askers(&self, _ask: Ask<'_>, task: TaskId) -> bool {
        !self.reservations.has(task)
    }

    /// Ancestors hold what queues elsewhere hold.
    fn votes_by_queue(&self, _ask: Ask<'_>) -> bool {
        self.level == 0
    }

    fn stake(&self, _ask: Ask<'_>, queue: QueueId) -> Option<Stake> {
        self.stake_of(queue)
    }

    fn own_stake(&self, ask: Ask<'_>, task: TaskId) -> Stake {
        self.stake_in(ask, task)
    }

    fn open(&mut self, ask: Ask<'_>) {
        self.renew(ask);
        self.reservations = Reservations::of_session(ask);
        for task in self.reservations.tasks().collect::<Vec<TaskId>>() {
            self.reserve(ask, task, Resource::add);
        }
    }

    fn close(&mut self, ask: Ask<'_>, _records: &Records, out: &mut Outbox) {
        tell_clamped("capacity", std::mem::take(self.n_clamped.get_mut()), out);
        self.cut_guarantees.report(ask, out);
        if self.hierarchy {
            self.tell_misplaced(ask, out);
        }
        self.device_quotas.tell(out);
        gauges::tell(ask, self.hierarchy, &mut self.quotas, &mut self.told, out);
    }

    fn on_allocate(&mut self, ask: Ask<'_>, task: TaskId) {
        self.change(ask, task, Resource::add);
        if self.reservations.end(task) {
            self.reserve(ask, task, Resource::sub);
        }
    }

    fn on_deallocate(&mut self, ask: Ask<'_>, task: TaskId) {
        self.change(ask, task, Resource::sub);
        self.on_gate_lifted(ask, task);
    }

    fn on_gate_lifted(&mut self, ask: Ask<'_>, task: TaskId) {
        if self.reservations.begin(ask, task) {
            self.reserve(ask, task, Resource::add);
        }
    }

    fn queue_order(&self, ask: Ask<'_>, l: QueueId, r: QueueId) -> Ordering {
        let queues = &ask.cluster.queues;
        let by_priority = queues[r].priority.cmp(&queues[l].priority);
        by_priority.then_with(|| self.by_use(l, r))
    }

    /// Deeper in a tree ways part above the queues, and the order of two can change for a third one. A
    /// queue without a quota is equal to all, which is no order among three.
    fn stands_alone(&self, _ask: Ask<'_>, queue: QueueId) -> bool {
        self.shape.is_top_leaf(queue) && self.quotas.get(queue).is_some()
    }

    fn victim_queue_order(&self, _: Ask<'_>, l: QueueId, r: QueueId, own: QueueId) -> Ordering {
        self.shape.n_common(r, own).cmp(&self.shape.n_common(l, own))
    }

    fn allocatable(&self, ask: Ask<'_>, queue: QueueId, task: TaskId) -> bool {
        self.serves(ask, queue) && self.beyond_limit(ask, queue, task).is_empty()
    }

    fn allocatable_lacks(&self, ask: Ask<'_>, queue: QueueId, task: TaskId) -> Vec<Dim> {
        match self.serves(ask, queue) {
            true => self.beyond_limit(ask, queue, task),
            false => Vec::new(),
        }
    }

    fn queue_limit(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> Option<QueueLimit> {
        let (mut request, mut reserved) = (Resource::default(), Resource::default());
        for &task in tasks {
            request.add(ask.cluster.request(task));
            if self.reservations.has(task) {
                reserved.add(ask.cluster.request(task));
            }
        }
        let dims = &ask.cluster.dims;
        self.limit_in_chain(ask, queue, |quota| {
            quota.amounts_for_tasks((&request, &reserved), dims)
        })
    }

    fn admission_limit(&self, ask: Ask<'_>, job: JobId) -> Option<QueueLimit> {
        let (job, dims) = (&ask.cluster.jobs[job], &ask.cluster.dims);
        let asked = min_resources(job)?;
        self.limit_in_chain(ask, job.queue, |quota| quota.amounts_for_admission(asked, dims))
    }

    fn preemptive(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.serves(ask, queue) && self.may_take(ask, queue, tasks)
    }

    fn reclaimable(&self, ask: Ask<'_>, reclaimer: TaskId, candidates: &[TaskId]) -> Verdict {
        Verdict::Victims(self.reclaimable_for(ask, reclaimer, candidates))
    }

    fn is_share_filter(&self) -> bool {
        true
    }

    fn unified_evictable(
        &self,
        ask: Ask<'_>,
        initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> Verdict {
        Verdict::Victims(match kind {
            GangEviction::Preempt => candidates.to_vec(),
            GangEviction::Reclaim => self.reclaimable_by_gang(ask, initiator, candidates),
        })
    }

    fn job_enqueueable(&self, ask: Ask<'_>, job: JobId) -> Admission {
        let job = &ask.cluster.jobs[job];
        if !self.serves(ask, job.queue) {
            return Admission::Reject(None);
        }
        let Some(asked) = min_resources(job) else {
            return Admission::Permit;
        };
        let dims = &ask.cluster.dims;
        for quota in self.chain(job.queue) {
            let (lacking, clamped) = quota.lacks_for_admission(asked, dims);
            self.n_clamped.fetch_add(u32::from(clamped), Memory::Relaxed);
            if !lacking.is_empty() {
                return Admission::Reject(Some(quota_insufficient(&lacking, dims)));
            }
        }
        Admission::Permit
    }

    /// What is clamped is counted for every job that asks.
    fn admits_alike(&self, ask: Ask<'_>, job: JobId) -> Option<Marked> {
        let row = &ask.cluster.jobs[job];
        let clamps = |quota: &Quota| {
            min_resources(row)
                .is_some_and(|asked| quota.lacks_for_admission(asked, &ask.cluster.dims).1)
        };
        (!self.chain(row.queue).any(clamps)).then(Marked::default)
    }

    fn job_enqueued(&mut self, ask: Ask<'_>, job: JobId) {
        let job = &ask.cluster.jobs[job];
        if let Some(asked) = min_resources(job) {
            let asked = job.minus_gated(asked);
            self.each_in_chain(job.queue, |quota| quota.inqueue.add(&asked));
        }
    }

    fn queue_share(&self, _ask: Ask<'_>, queue: QueueId) -> Option<QueueShare> {
        let quota = self.quotas.get(queue)?;
        Some(QueueShare { deserved: quota.limits.deserved.to_fractional(), share: quota.share })
    }
}

impl Capacity {
    /// The queue and its ancestors, root last.
    fn chain(&self, queue: QueueId) -> impl Iterator<Item = &Quota> {
        self.shape.path(queue).iter().filter_map(|&id| self.quotas.get(id))
    }

    /// The limit of the first queue of the chain in which something is short.
    fn limit_in_chain(
        &self,
        ask: Ask<'_>,
        queue: QueueId,
        amounts: impl Fn(&Quota) -> Vec<LimitedAmount>,
    ) -> Option<QueueLimit> {
        self.shape.path(queue).iter().find_map(|&id| {
            let amounts = amounts(self.quotas.get(id)?);
            let owner = LimitOwner::Queue(ask.cluster.queues[id].name.clone());
            (!amounts.is_empty()).then_some(QueueLimit { owner, amounts })
        })
    }

    fn each_in_chain(&mut self, queue: QueueId, mut change: impl FnMut(&mut Quota)) {
        for &id in self.shape.path(queue) {
            let Some(quota) = self.quotas.get_mut(id) else { continue };
            change(quota);
            if !std::mem::replace(&mut quota.has_moved, true) {
                self.moved.push(id);
            }
        }
    }

    /// Whether jobs of the queue are served at all: it is open, and a leaf whose ancestors reach
    /// root.
    fn serves(&self, ask: Ask<'_>, queue: QueueId) -> bool {
        ask.cluster.queues[queue].is_open() && self.shape.standing(queue) == Standing::Leaf
    }

    /// Amounts and shares of the queue and, at once, of its ancestors (D16).
    fn change(&mut self, ask: Ask<'_>, task: TaskId, change: fn(&mut Resource, &Resource)) {
        let Some((_, job)) = session_job(ask.cluster, task) else {
            return;
        };
        let request = ask.cluster.request(task);
        self.each_in_chain(job.queue, |quota| {
            change(&mut quota.allocated, request);
            quota.refresh_share();
        });
    }

    /// Ancestors count it too (D17 a).
    fn reserve(&mut self, ask: Ask<'_>, task: TaskId, change: fn(&mut Resource, &Resource)) {
        let Some((_, job)) = session_job(ask.cluster, task) else {
            return;
        };
        let request = ask.cluster.request(task);
        self.each_in_chain(job.queue, |quota| change(&mut quota.reserved, request));
    }

    /// The dimensions in which the task would take the queue, or the first ancestor, above its
    /// limit (6.5).
    fn beyond_limit(&self, ask: Ask<'_>, queue: QueueId, task: TaskId) -> Vec<Dim> {
        let request = ask.cluster.request(task);
        let is_reserved = self.reservations.has(task);
        let dims = &ask.cluster.dims;
        let lacking =
            self.chain(queue).map(|quota| quota.lacks_for_task(request, is_reserved, dims));
        lacking.into_iter().find(|lacking| !lacking.is_empty()).unwrap_or_default()
    }

    /// Order of queues of one priority (6.4).
    fn by_use(&self, l: QueueId, r: QueueId) -> Ordering {
        let is_leaf = |queue| self.shape.standing(queue) == Standing::Leaf;
        match (is_leaf(l), is_leaf(r)) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.quotas.by_share(l, r),
            (true, true) => {
                let (l, r) = self.shape.fork(l, r);
                self.quotas.by_share(l, r)
            }
        }
    }

    /// One Warning event per PodGroup that waits in a queue with children (D14).
    fn tell_misplaced(&mut self, ask: Ask<'_>, out: &mut Outbox) {
        let is_misplaced = |&job: &JobId| {
            let queue = ask.cluster.jobs[job].queue;
            self.shape.standing(queue) == Standing::Inner
        };
        let has_jobs = |&queue: &QueueId| 0 < ask.facts.roster.sums(queue).n_jobs;
        let is_inner = |&queue: &QueueId| self.shape.standing(queue) == Standing::Inner;
        let some = ask.facts.queues.iter().filter(|queue| is_inner(queue)).any(has_jobs);
        let jobs = ask.all_jobs().take(if some { usize::MAX } else { 0 });
        // By key: numbers of jobs depend on which were there before.
        let misplaced: Vec<JobId> = jobs.filter(is_misplaced).collect();
        for &job in misplaced.iter().filter(|job| !self.misplaced.contains(job)) {
            let row = &ask.cluster.jobs[job];
            let Some(group) = row.pod_group.as_ref().filter(|_| !row.bare) else { continue };
            let queue = &ask.cluster.queues[row.queue].name;
            let text = "has child queues, jobs are scheduled in queues without children only";
            out.effects.push(Effect::Event {
                about: About::PodGroup { key: row.key.clone(), uid: group.uid.clone() },
                warning: true,
                reason: "Unschedulable",
                message: format!("queue {queue} {text}").into(),
            });
        }
        self.misplaced = misplaced.into_iter().collect();
    }
}
