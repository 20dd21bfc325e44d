//! Quotas of device classes in `spec.capability`: `deviceclass/<class>` limits the devices that the
//! pods of a queue claim, `<dim>.deviceclass/<class>` the capacity that they consume.
//! Specification: plugins-jobs-queues.md 6.10, D18.

mod demand;
mod ledger;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use vc_conf::{Argument, Arguments, Warning};
use vc_framework::{LimitedAmount, Outbox, SessionView};
use vc_model::reads::{self, Read};
use vc_model::{Cluster, JobId, ObjectKey, PodGroupPhase, QueueId, TaskId};
use vc_resource::Dim;

use super::queue_tree::QueueTree;
use demand::DeviceAmounts;
use ledger::{DeviceLedger, DeviceShortage};

pub(super) const DEVICES: Argument<bool> =
    Argument::new("capacity.DynamicResourceAllocationEnable", true, "enforce quotas of devices")
        .shown_as("the feature gate");
pub(super) const CAPACITY: Argument<bool> = Argument::new(
    "capacity.DRAConsumableCapacityEnable",
    false,
    "also enforce their capacity dimensions",
)
.shown_as("the feature gate");

/// What a queue refuses an admission with when its quota of devices is used up, in place of the
/// names of resources (section 6.6).
pub(super) const EXCEEDED: &str =
    "queue resource quota insufficient: insufficient dra-resource-exceeded";

/// The quotas of device classes of all queues, and what is charged to them.
#[derive(Default)]
pub(super) struct DeviceQuotas {
    /// Values of the two arguments. `None` if not given: the feature gates decide.
    enforce: Option<bool>,
    enforce_capacity: Option<bool>,
    /// True if consumed capacity counts in this session.
    counts_capacity: bool,
    /// The queues with such a quota. Empty if the quotas are not enforced.
    ledgers: BTreeMap<QueueId, DeviceLedger>,
    /// Version of what claims ask for when they were charged.
    claims: Option<u64>,
    /// Warnings that were made, and those that were not emitted yet.
    reported: BTreeSet<String>,
    warnings: Vec<String>,
}

impl DeviceQuotas {
    pub(super) fn new(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Self {
        let mut read = |argument: &Argument<bool>| {
            let is_given = arguments.get(argument.key).is_some();
            let value = argument.read(arguments, warnings);
            is_given.then_some(value)
        };
        let (enforce, enforce_capacity) = (read(&DEVICES), read(&CAPACITY));
        Self { enforce, enforce_capacity, ..Self::default() }
    }

    /// False if the configuration switches these quotas off.
    pub(super) fn may_be_enforced(&self) -> bool {
        self.enforce != Some(false)
    }

    /// Reads the quotas of all queues anew, without charges. Called when a queue has changed.
    pub(super) fn begin(&mut self, view: SessionView<'_>) {
        self.ledgers.clear();
        self.claims = None;
        let settings = &view.cluster.settings;
        self.counts_capacity = self.enforce_capacity.unwrap_or(settings.consumable_capacity);
        if !self.may_be_enforced() {
            return;
        }
        for &id in &view.info.queues {
            let queue = &view.cluster.queues[id];
            let Some(ledger) = DeviceLedger::of_queue(queue, &view.cluster.dims) else { continue };
            if settings.dynamic_resources {
                self.warn_zero(&queue.name, &ledger);
                self.ledgers.insert(id, ledger);
            } else {
                let names: Vec<&str> = ledger.names(&view.cluster.dims).collect();
                self.warn(format!(
                    "queue {}: spec.capability {} limits nobody: the feature gate \
                     DynamicResourceAllocation is off",
                    queue.name,
                    names.join(", ")
                ));
            }
        }
    }

    fn warn_zero(&mut self, queue: &str, ledger: &DeviceLedger) {
        let zero: Vec<String> =
            ledger.zero_counts().map(|class| format!("deviceclass/{class}")).collect();
        if !zero.is_empty() {
            self.warn(format!(
                "queue {queue}: spec.capability {} is 0, which limits nobody; remove it, or give \
                 at least 1",
                zero.join(", ")
            ));
        }
    }

    fn warn(&mut self, text: String) {
        if self.reported.insert(text.clone()) {
            self.warnings.push(text);
        }
    }

    /// Emits the warnings that are new since the last call.
    pub(super) fn tell(&mut self, out: &mut Outbox) {
        out.warnings.append(&mut self.warnings);
    }

    /// Charges the claims of running pods, and the devices that admitted jobs wait for, to the
    /// queues that may have changed. `changed` are queues whose jobs changed, `moved` those that
    /// the last session has changed. `None` means all queues.
    pub(super) fn renew(
        &mut self,
        view: SessionView<'_>,
        queue_tree: &QueueTree,
        changed: Option<&[QueueId]>,
        moved: &[QueueId],
    ) {
        if self.ledgers.is_empty() {
            return;
        }
        let version = Some(view.cluster.devices.request_version());
        let changed = changed.filter(|_| self.claims == version);
        self.claims = version;
        let outdated: BTreeSet<QueueId> = match changed {
            None => self.ledgers.keys().copied().collect(),
            Some(changed) => {
                let above = changed.iter().flat_map(|&queue| queue_tree.path(queue));
                let outdated = above.chain(moved).copied();
                outdated.filter(|queue| self.ledgers.contains_key(queue)).collect()
            }
        };
        self.charge_all(view, queue_tree, &outdated);
        self.check(view, queue_tree);
    }

    fn charge_all(
        &mut self,
        view: SessionView<'_>,
        queue_tree: &QueueTree,
        queues: &BTreeSet<QueueId>,
    ) {
        if queues.is_empty() {
            return;
        }
        for queue in queues {
            self.ledgers.entry(*queue).and_modify(DeviceLedger::clear);
        }
        for job in view.all_jobs() {
            let path = queue_tree.path(view.cluster.jobs[job].queue);
            let path: Vec<QueueId> =
                path.iter().copied().filter(|queue| queues.contains(queue)).collect();
            if !path.is_empty() {
                self.charge_job(view.cluster, job, &path);
            }
        }
    }

    fn charge_job(&mut self, cluster: &Cluster, job: JobId, path: &[QueueId]) {
        let row = &cluster.jobs[job];
        for &task in &row.tasks {
            if cluster.tasks[task].status.is_allocated() {
                self.charge(cluster, path, task);
            }
        }
        if row.phase() == PodGroupPhase::Inqueue {
            let reserved = DeviceAmounts::reserved(cluster, job, self.counts_capacity);
            self.each(path, |ledger| ledger.inqueue.add(&reserved, 1));
        }
    }

    /// Compares the kept charges with charges anew, in debug builds with few queues.
    fn check(&mut self, view: SessionView<'_>, queue_tree: &QueueTree) {
        if cfg!(debug_assertions) && self.ledgers.len() < 64 {
            let kept = self.ledgers.clone();
            let all = self.ledgers.keys().copied().collect();
            self.charge_all(view, queue_tree, &all);
            debug_assert_eq!(kept, self.ledgers, "devices that a queue holds");
        }
    }

    fn each(&mut self, path: &[QueueId], mut change: impl FnMut(&mut DeviceLedger)) {
        for queue in path {
            self.ledgers.get_mut(queue).into_iter().for_each(&mut change);
        }
    }

    /// Charges the claims of a pod to the queues of the path.
    pub(super) fn charge(&mut self, cluster: &Cluster, path: &[QueueId], task: TaskId) {
        if self.ledgers.is_empty() {
            return;
        }
        for claim in cluster.resource_claims(task) {
            let amounts = self.amounts(cluster, [&claim]);
            self.each(path, |ledger| ledger.charge(&claim, &amounts));
        }
    }

    /// Reverses [`Self::charge`].
    pub(super) fn release(&mut self, cluster: &Cluster, path: &[QueueId], task: TaskId) {
        if self.ledgers.is_empty() {
            return;
        }
        for claim in cluster.resource_claims(task) {
            self.each(path, |ledger| ledger.release(&claim));
        }
    }

    /// Adds the devices that a job waits for from now on. Without `minResources` nothing counts
    /// unless the queue itself has a quota (section 6.6).
    pub(super) fn enqueued(&mut self, cluster: &Cluster, path: &[QueueId], job: JobId) {
        let row = &cluster.jobs[job];
        let has_minimum = row.pod_group.as_ref().is_some_and(|group| group.min_resources.is_some());
        if !self.concern(path) || !(has_minimum || self.ledgers.contains_key(&row.queue)) {
            return;
        }
        let minimum = DeviceAmounts::minimum(cluster, row, self.counts_capacity);
        self.each(path, |ledger| ledger.inqueue.add(&minimum, 1));
    }

    /// True if a queue of the path has a quota of devices.
    pub(super) fn concern(&self, path: &[QueueId]) -> bool {
        path.iter().any(|queue| self.ledgers.contains_key(queue))
    }

    fn amounts<'a>(
        &self,
        cluster: &Cluster,
        claims: impl IntoIterator<Item = &'a ObjectKey>,
    ) -> DeviceAmounts {
        DeviceAmounts::of_claims(cluster, claims, self.counts_capacity)
    }

    fn ledger(&self, queue: QueueId) -> Option<&DeviceLedger> {
        let ledger = self.ledgers.get(&queue)?;
        reads::note(Read::QueueUsage(queue));
        Some(ledger)
    }

    /// Returns the limits of one queue that the claims of these pods together exceed. Claims that
    /// are charged to the queue already are left out.
    fn shortages(
        &self,
        cluster: &Cluster,
        queue: QueueId,
        tasks: &[TaskId],
    ) -> Vec<DeviceShortage> {
        let Some(ledger) = self.ledger(queue) else { return Vec::new() };
        let claims: BTreeSet<ObjectKey> =
            tasks.iter().flat_map(|&task| cluster.resource_claims(task)).collect();
        let new = claims.iter().filter(|claim| !ledger.has(claim));
        ledger.shortages(&self.amounts(cluster, new), false)
    }

    fn shortages_at_admission(
        &self,
        cluster: &Cluster,
        queue: QueueId,
        job: JobId,
    ) -> Vec<DeviceShortage> {
        let Some(ledger) = self.ledger(queue) else { return Vec::new() };
        let minimum = DeviceAmounts::minimum(cluster, &cluster.jobs[job], self.counts_capacity);
        ledger.shortages(&minimum, true)
    }

    /// Returns the dimensions in which a pod would exceed the quota of one queue.
    pub(super) fn lacks_for_task(
        &self,
        cluster: &Cluster,
        queue: QueueId,
        task: TaskId,
    ) -> Vec<Dim> {
        let mut dims: Vec<Dim> = Vec::new();
        for shortage in self.shortages(cluster, queue, &[task]) {
            if !dims.contains(&shortage.dim()) {
                dims.push(shortage.dim());
            }
        }
        dims
    }

    /// Returns the amounts of the limits of one queue that the pods together would exceed.
    pub(super) fn amounts_for_tasks(
        &self,
        cluster: &Cluster,
        queue: QueueId,
        tasks: &[TaskId],
    ) -> Vec<LimitedAmount> {
        self.shortages(cluster, queue, tasks).iter().map(DeviceShortage::amount).collect()
    }

    /// Returns the amounts of the limits of one queue that the job would exceed at admission.
    pub(super) fn amounts_for_admission(
        &self,
        cluster: &Cluster,
        queue: QueueId,
        job: JobId,
    ) -> Vec<LimitedAmount> {
        let shortages = self.shortages_at_admission(cluster, queue, job);
        shortages.iter().map(DeviceShortage::amount).collect()
    }
}

/// True if pods of the job have ResourceClaims.
pub(super) fn has_claims(cluster: &Cluster, job: JobId) -> bool {
    let has = |&task: &TaskId| !cluster.class(task).resource_claims.is_empty();
    cluster.jobs[job].tasks.iter().any(has)
}
