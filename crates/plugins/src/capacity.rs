//! Plugin `capacity`: quotas of queues per dimension, flat or, with `enableHierarchy`, as a tree of
//! queues. A guarantee is protected. A deserved amount is lent out and reclaimed. A capability is
//! never exceeded.
//! Specification: plugins-jobs-queues.md 6, D3, D5, D13-D17.

mod device_quotas;
mod gauges;
mod limits;
mod queue_tree;
mod quota;
mod reclaim;
mod renewal;
mod reservations;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering as Memory};

use vc_conf::{Argument, EnqueueVote, PluginOption, QueueRule, Switch, Warning};
use vc_framework::{
    About, Admission, AdmissionKey, AdmissionMark, CacheKeys, Depends, EarlierMemory, Effect,
    GangEviction, Inputs, LimitOwner, LimitedAmount, Outbox, Plugin, PluginEntry, PluginMemory,
    Points, QueueLimit, QueueShare, QueueUsageStamp, QuotaPlugin, Records, ReportLog, SessionView,
    VictimFilter, VictimVote,
};
use vc_model::{JobId, QueueId, TaskId};
use vc_resource::{Dim, Resource};

use crate::guarantee::CutGuarantees;
use crate::rules::{min_resources, quota_insufficient, session_job, tell_clamped};
use device_quotas::DeviceQuotas;
use queue_tree::{QueueRole, QueueTree};
use quota::{CapacityQuota, CapacityQuotas};
use reservations::Reservations;

pub(crate) const ENTRY: PluginEntry =
    PluginEntry::new("capacity", |option, warnings| Box::new(capacity(option, warnings)))
        .arguments(&[&LEVEL, &device_quotas::DEVICES, &device_quotas::CAPACITY])
        .enqueue_vote(EnqueueVote::IgnoresEvictions)
        .queue_rule(QueueRule::Quota);

/// Extension points without `enableHierarchy`. Volcano has a PrePredicate too, which copies the
/// state for simulations. The journal makes that copy unnecessary.
const FLAT: Points = Points::QUEUE_ORDER
    .and(Points::RECLAIMABLE)
    .and(Points::UNIFIED_EVICTABLE)
    .and(Points::PREEMPTIVE)
    .and(Points::ALLOCATABLE)
    .and(Points::JOB_ENQUEUEABLE)
    .and(Points::JOB_ENQUEUED)
    .and(Points::EVENT_HANDLERS);
const TREE: Points = FLAT.and(Points::VICTIM_QUEUE_ORDER);

/// Section 6.1.
const LEVEL: Argument<i64> = Argument::new(
    "ancestorReclaimLevel",
    0,
    "ancestor levels consulted in reclaim, with `enableHierarchy`",
)
.at_least(0)
.with_remedy("write an integer of at least 0; until then 0 is in force");

#[derive(Default)]
struct Capacity {
    /// `enableHierarchy`.
    hierarchy: bool,
    /// Value of `ancestorReclaimLevel`; 0 without hierarchy.
    level: usize,
    queue_tree: QueueTree,
    /// The quotas of all queues of the session. D13: queues without jobs are included.
    quotas: CapacityQuotas,
    /// The queues of the session, sorted by name.
    listed: Vec<QueueId>,
    /// Version of the queue objects and the sum of allocatable, on which tree and limits depend.
    /// `None` before the first session.
    basis: Option<(u64, Resource)>,
    /// Queues whose usage was changed in this session, even if it has its old value again.
    moved: Vec<QueueId>,
    reservations: Reservations,
    /// Number of subtractions whose result was clamped to zero (D5: amounts do not go below zero).
    /// It is atomic because methods with `&self` count too.
    n_clamped: AtomicU32,
    /// Reports guarantees that exceed the cluster.
    cut_guarantees: CutGuarantees,
    /// The values that were last written to metrics.
    reported: ReportLog<QueueId, gauges::CapacityGauges>,
    /// Jobs in queues with children that were already reported (D14: such queues schedule no jobs).
    misplaced: BTreeSet<JobId>,
    device_quotas: DeviceQuotas,
}

fn capacity(option: &PluginOption, warnings: &mut Vec<Warning>) -> Capacity {
    let arguments = &option.arguments;
    let level = LEVEL.read(arguments, warnings);
    let device_quotas = DeviceQuotas::new(arguments, warnings);
    let hierarchy = option.switches.on(Switch::Hierarchy);
    let level = if hierarchy { usize::try_from(level).unwrap_or(0) } else { 0 };
    Capacity { hierarchy, level, device_quotas, ..Capacity::default() }
}

/// Limits and deserved amounts follow from the cluster and the objects of all queues.
const LIMITS: Inputs = Inputs::QUEUE_OBJECT.and(Inputs::CLUSTER_TOTAL);
const OWN: Inputs = LIMITS.and(Inputs::OWN_QUEUE_USAGE);
const VICTIMS: Inputs = OWN.and(Inputs::CANDIDATE_ROW).and(Inputs::CANDIDATE_QUEUE_USAGE);

impl Plugin for Capacity {
    fn points(&self) -> Points {
        if self.hierarchy { TREE } else { FLAT }
    }

    fn depends(&self) -> Depends {
        let above = |reads: Inputs, is_read: bool| match is_read {
            true => reads.and(Inputs::OTHER_QUEUE_USAGE),
            false => reads,
        };
        let own = above(OWN, self.hierarchy);
        let devices = |reads: Inputs| match self.device_quotas.may_be_enforced() {
            true => own.and(reads).and(Inputs::OTHER_OBJECTS),
            false => own,
        };
        let reads = [
            (Points::QUEUE_ORDER, own),
            (Points::VICTIM_QUEUE_ORDER, Inputs::QUEUE_OBJECT.and(Inputs::POD_ROW)),
            (Points::RECLAIMABLE, above(VICTIMS.and(Inputs::POD_SIGNATURE), 0 < self.level)),
            (Points::UNIFIED_EVICTABLE, above(VICTIMS.and(Inputs::JOB_COUNTS), 0 < self.level)),
            (Points::PREEMPTIVE, own.and(Inputs::POD_SHAPE)),
            (
                Points::ALLOCATABLE,
                devices(Inputs::NONE).and(Inputs::POD_SHAPE).and(Inputs::IDENTITY),
            ),
            (Points::JOB_ENQUEUEABLE, devices(Inputs::JOB_COUNTS).and(Inputs::JOB_REQUEST)),
            (Points::EVENT_HANDLERS, Inputs::NONE),
        ];
        // Not so for pods with claims: a claim that the last pod gives back is charged anew. Caches
        // treat such pods on their own.
        Depends::of(&reads).eased_by_evictions(Points::ALLOCATABLE)
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
        Some(Box::new((self.cut_guarantees.known.clone(), self.misplaced.clone())))
    }

    fn take_over(&mut self, memory: EarlierMemory) {
        (self.cut_guarantees.known, self.misplaced) = memory.read().unwrap_or_default();
    }

    fn open(&mut self, view: SessionView<'_>) {
        self.renew(view);
        self.reservations = Reservations::of_session(view);
        for task in self.reservations.tasks().collect::<Vec<TaskId>>() {
            self.reserve(view, task, Resource::add);
        }
    }

    fn close(&mut self, view: SessionView<'_>, _records: &Records, out: &mut Outbox) {
        tell_clamped("capacity", std::mem::take(self.n_clamped.get_mut()), out);
        self.cut_guarantees.report(view, out);
        if self.hierarchy {
            self.tell_misplaced(view, out);
        }
        self.device_quotas.tell(out);
        gauges::tell(view, self.hierarchy, &mut self.quotas, &mut self.reported, out);
    }

    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.change(view, task, Resource::add);
        let path = self.path_of(view, task);
        self.device_quotas.charge(view.cluster, &path, task);
        if self.reservations.end(task) {
            self.reserve(view, task, Resource::sub);
        }
    }

    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.change(view, task, Resource::sub);
        let path = self.path_of(view, task);
        self.device_quotas.release(view.cluster, &path, task);
        self.on_gate_lifted(view, task);
    }

    fn on_gate_lifted(&mut self, view: SessionView<'_>, task: TaskId) {
        if self.reservations.begin(view, task) {
            self.reserve(view, task, Resource::add);
        }
    }

    fn queue_order(&self, view: SessionView<'_>, l: QueueId, r: QueueId) -> Ordering {
        let queues = &view.cluster.queues;
        let by_priority = queues[r].priority.cmp(&queues[l].priority);
        by_priority.then_with(|| self.by_use(l, r))
    }

    fn victim_queue_order(
        &self,
        _: SessionView<'_>,
        l: QueueId,
        r: QueueId,
        own: QueueId,
    ) -> Ordering {
        self.queue_tree.n_common(r, own).cmp(&self.queue_tree.n_common(l, own))
    }

    fn allocatable(&self, view: SessionView<'_>, queue: QueueId, task: TaskId) -> bool {
        self.serves(view, queue) && self.beyond_limit(view, queue, task).is_empty()
    }

    fn allocatable_lacks(&self, view: SessionView<'_>, queue: QueueId, task: TaskId) -> Vec<Dim> {
        match self.serves(view, queue) {
            true => self.beyond_limit(view, queue, task),
            false => Vec::new(),
        }
    }

    fn queue_limit(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        tasks: &[TaskId],
    ) -> Option<QueueLimit> {
        let (mut request, mut reserved) = (Resource::default(), Resource::default());
        for &task in tasks {
            request.add(view.cluster.request(task));
            if self.reservations.has(task) {
                reserved.add(view.cluster.request(task));
            }
        }
        let dims = &view.cluster.dims;
        self.limit_in_chain(view, queue, |id, quota| {
            let devices = self.device_quotas.amounts_for_tasks(view.cluster, id, tasks);
            match devices.is_empty() {
                true => quota.amounts_for_tasks((&request, &reserved), dims),
                false => devices,
            }
        })
    }

    fn admission_limit(&self, view: SessionView<'_>, job: JobId) -> Option<QueueLimit> {
        let (row, dims) = (&view.cluster.jobs[job], &view.cluster.dims);
        self.limit_in_chain(view, row.queue, |id, quota| {
            let asked = min_resources(row);
            let amounts = asked.map(|asked| quota.amounts_for_admission(asked, dims));
            amounts
                .filter(|amounts| !amounts.is_empty())
                .unwrap_or_else(|| self.device_quotas.amounts_for_admission(view.cluster, id, job))
        })
    }

    fn preemptive(&self, view: SessionView<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.serves(view, queue) && self.may_take(view, queue, tasks)
    }

    fn reclaimable(
        &self,
        view: SessionView<'_>,
        reclaimer: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        VictimVote::Victims(self.reclaimable_for(view, reclaimer, candidates))
    }

    fn unified_evictable(
        &self,
        view: SessionView<'_>,
        initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> VictimVote {
        VictimVote::Victims(match kind {
            GangEviction::Preempt => candidates.to_vec(),
            GangEviction::Reclaim => self.reclaimable_by_gang(view, initiator, candidates),
        })
    }

    fn job_enqueueable(&self, view: SessionView<'_>, job: JobId) -> Admission {
        let row = &view.cluster.jobs[job];
        if !self.serves(view, row.queue) {
            return Admission::Reject(None);
        }
        let (asked, dims) = (min_resources(row), &view.cluster.dims);
        for &id in self.queue_tree.path(row.queue) {
            if let Some((asked, quota)) = asked.zip(self.quotas.get(id)) {
                let (lacking, clamped) = quota.lacks_for_admission(asked, dims);
                self.n_clamped.fetch_add(u32::from(clamped), Memory::Relaxed);
                if !lacking.is_empty() {
                    return Admission::Reject(Some(quota_insufficient(&lacking, dims)));
                }
            }
            if !self.device_quotas.amounts_for_admission(view.cluster, id, job).is_empty() {
                return Admission::Reject(Some(device_quotas::EXCEEDED.to_owned()));
            }
        }
        Admission::Permit
    }

    fn job_enqueued(&mut self, view: SessionView<'_>, job: JobId) {
        let row = &view.cluster.jobs[job];
        let path = self.queue_tree.path(row.queue);
        self.device_quotas.enqueued(view.cluster, path, job);
        let asked = min_resources(row).map(|asked| row.minus_gated(asked));
        if asked.is_some() || self.device_quotas.concern(path) {
            let asked = asked.unwrap_or_default();
            self.each_in_chain(row.queue, |quota| quota.inqueue.add(&asked));
        }
    }
}

impl CacheKeys for Capacity {
    fn queue_usage(&self, _view: SessionView<'_>, queue: QueueId) -> Option<QueueUsageStamp> {
        self.stake_of(queue)
    }

    fn own_queue_usage(&self, view: SessionView<'_>, task: TaskId) -> Option<QueueUsageStamp> {
        Some(self.stake_in(view, task))
    }

    /// Returns `AdmissionKey::None` where an answer cannot be shared:
    ///
    /// - An amount is clamped. The clamp is counted once per asking job.
    /// - Pods of the job have claims that a quota of devices counts.
    fn admission_mark(&self, view: SessionView<'_>, job: JobId) -> AdmissionKey {
        let row = &view.cluster.jobs[job];
        let clamps = |quota: &CapacityQuota| {
            min_resources(row)
                .is_some_and(|asked| quota.lacks_for_admission(asked, &view.cluster.dims).1)
        };
        let has_devices = self.device_quotas.concern(self.queue_tree.path(row.queue))
            && device_quotas::has_claims(view.cluster, job);
        match has_devices || self.chain(row.queue).any(clamps) {
            true => AdmissionKey::None,
            false => AdmissionKey::Marked(AdmissionMark::default()),
        }
    }

    /// True if quota is reserved for the task, or a quota of devices counts its claims.
    fn has_own_state(&self, view: SessionView<'_>, task: TaskId) -> bool {
        let has_claims = !view.cluster.class(task).resource_claims.is_empty();
        let is_counted = |queue| self.device_quotas.concern(self.queue_tree.path(queue));
        let job = session_job(view.cluster, task).filter(|_| has_claims);
        job.is_some_and(|(_, job)| is_counted(job.queue)) || self.reservations.has(task)
    }

    /// True if QueueOrder compares this queue by its own priority and share.
    ///
    /// - Deeper in a tree, the order of two queues depends on their ancestors.
    /// - A queue without a quota equals all others, which is no total order.
    fn has_total_order_key(&self, _view: SessionView<'_>, queue: QueueId) -> bool {
        self.queue_tree.is_top_leaf(queue) && self.quotas.get(queue).is_some()
    }
}

impl VictimFilter for Capacity {
    fn is_share_filter(&self) -> bool {
        true
    }
}

impl QuotaPlugin for Capacity {
    fn queue_share(&self, _view: SessionView<'_>, queue: QueueId) -> Option<QueueShare> {
        let quota = self.quotas.get(queue)?;
        Some(QueueShare { deserved: quota.limits.deserved.to_fractional(), share: quota.share })
    }
}

impl Capacity {
    /// Returns the quotas of the queue and its ancestors, root last.
    fn chain(&self, queue: QueueId) -> impl Iterator<Item = &CapacityQuota> {
        self.queue_tree.path(queue).iter().filter_map(|&id| self.quotas.get(id))
    }

    /// Returns the limit of the first queue on the path to root that lacks something. Returns
    /// `None` if no queue does.
    fn limit_in_chain(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        amounts: impl Fn(QueueId, &CapacityQuota) -> Vec<LimitedAmount>,
    ) -> Option<QueueLimit> {
        self.queue_tree.path(queue).iter().find_map(|&id| {
            let amounts = amounts(id, self.quotas.get(id)?);
            let owner = LimitOwner::Queue(view.cluster.queues[id].name.clone());
            (!amounts.is_empty()).then_some(QueueLimit { owner, amounts })
        })
    }

    fn each_in_chain(&mut self, queue: QueueId, mut change: impl FnMut(&mut CapacityQuota)) {
        for &id in self.queue_tree.path(queue) {
            let Some(quota) = self.quotas.get_mut(id) else { continue };
            change(quota);
            if !std::mem::replace(&mut quota.has_moved, true) {
                self.moved.push(id);
            }
        }
    }

    /// True if the queue may place jobs: it is open, and a leaf whose ancestors reach root.
    fn serves(&self, view: SessionView<'_>, queue: QueueId) -> bool {
        view.cluster.queues[queue].is_open() && self.queue_tree.role(queue) == QueueRole::Leaf
    }

    /// Changes the allocated amount and share of the queue. D16: its ancestors are changed with it.
    fn change(
        &mut self,
        view: SessionView<'_>,
        task: TaskId,
        change: fn(&mut Resource, &Resource),
    ) {
        let Some((_, job)) = session_job(view.cluster, task) else {
            return;
        };
        let request = view.cluster.request(task);
        self.each_in_chain(job.queue, |quota| {
            change(&mut quota.allocated, request);
            quota.refresh_share();
        });
    }

    /// Returns the queue of the task and its ancestors. Returns nothing for an orphan.
    fn path_of(&self, view: SessionView<'_>, task: TaskId) -> Vec<QueueId> {
        let job = session_job(view.cluster, task);
        job.map_or_else(Vec::new, |(_, job)| self.queue_tree.path(job.queue).to_vec())
    }

    /// Changes the reserved amount of the task's queue. D17: ancestors count it too.
    fn reserve(
        &mut self,
        view: SessionView<'_>,
        task: TaskId,
        change: fn(&mut Resource, &Resource),
    ) {
        let Some((_, job)) = session_job(view.cluster, task) else {
            return;
        };
        let request = view.cluster.request(task);
        self.each_in_chain(job.queue, |quota| change(&mut quota.reserved, request));
    }

    /// Returns the dimensions in which the task would exceed the limit of its queue, or of the
    /// first ancestor that has no room (section 6.5).
    fn beyond_limit(&self, view: SessionView<'_>, queue: QueueId, task: TaskId) -> Vec<Dim> {
        let request = view.cluster.request(task);
        let is_reserved = self.reservations.has(task);
        let dims = &view.cluster.dims;
        let lacking = self.queue_tree.path(queue).iter().map(|&id| {
            let devices = self.device_quotas.lacks_for_task(view.cluster, id, task);
            match self.quotas.get(id).filter(|_| devices.is_empty()) {
                Some(quota) => quota.lacks_for_task(request, is_reserved, dims),
                None => devices,
            }
        });
        lacking.into_iter().find(|lacking| !lacking.is_empty()).unwrap_or_default()
    }

    /// Compares two queues of equal priority (section 6.4).
    fn by_use(&self, l: QueueId, r: QueueId) -> Ordering {
        let is_leaf = |queue| self.queue_tree.role(queue) == QueueRole::Leaf;
        match (is_leaf(l), is_leaf(r)) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.quotas.by_share(l, r),
            (true, true) => {
                let (l, r) = self.queue_tree.fork(l, r);
                self.quotas.by_share(l, r)
            }
        }
    }

    /// Emits one Warning event per PodGroup that waits in a queue with children (D14: such queues
    /// schedule no jobs).
    fn tell_misplaced(&mut self, view: SessionView<'_>, out: &mut Outbox) {
        let is_misplaced = |&job: &JobId| {
            let queue = view.cluster.jobs[job].queue;
            self.queue_tree.role(queue) == QueueRole::Inner
        };
        let has_jobs = |&queue: &QueueId| 0 < view.info.active_jobs.sums(queue).n_jobs;
        let is_inner = |&queue: &QueueId| self.queue_tree.role(queue) == QueueRole::Inner;
        let some = view.info.queues.iter().filter(|queue| is_inner(queue)).any(has_jobs);
        let jobs = view.all_jobs().take(if some { usize::MAX } else { 0 });
        // `all_jobs` is sorted by key. The order of job ids would depend on earlier jobs.
        let misplaced: Vec<JobId> = jobs.filter(is_misplaced).collect();
        for &job in misplaced.iter().filter(|job| !self.misplaced.contains(job)) {
            let row = &view.cluster.jobs[job];
            let Some(group) = row.pod_group.as_ref().filter(|_| !row.bare) else { continue };
            let queue = &view.cluster.queues[row.queue].name;
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
