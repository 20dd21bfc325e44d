//! Converts Queue objects to the input of the quota trees: amounts, policies and weights. It also
//! collects problems with them.
//! Specification: cohort.md B.2, B.3, B.9.

use std::sync::Arc;

use vc_cohort::{BorrowWithin, Flavor, Policy, QueueSpec, QuotaForest, Slots, WithinQueue};
use vc_framework::SessionView;
use vc_model::{Cluster, Queue};
use vc_resource::{Dim, Dims, Resource};

use super::arguments::{self, CohortArguments};
use super::overview::amount_text;

const PREFIX: &str = "cohort.volcano.sh/";
const WEIGHT: &str = "fairSharing.weight";
const SMALLEST_WEIGHT: f64 = 1e-9;

/// Prefix of device quotas, which the trees do not support.
const DEVICE_CLASS: &str = "deviceclass/";

/// Reason of the event for an annotation that cannot be read or has no effect.
const POLICY: &str = "InvalidCohortPolicy";

/// Reason of the event for misleading amounts or a misleading parent of a queue.
const QUOTA: &str = "InvalidCohortQuota";

/// A problem of a queue that is reported to its author.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueSpecProblem {
    pub(super) queue: Arc<str>,
    /// Reason of the event.
    pub(super) reason: &'static str,
    /// The message: key or field, value, and what is wrong with it.
    pub(super) text: String,
}

/// Returns a slot for every resource that an object has or requests, except devices.
pub(super) fn slots(cluster: &Cluster) -> Slots {
    let mut slots = Slots::default();
    for &dim in cluster.dims.in_report_order() {
        if !cluster.dims.name(dim).starts_with(DEVICE_CLASS) {
            slots.intern(Flavor::default(), dim);
        }
    }
    slots
}

/// Returns the specs of the queues of the session, by name. Problems are appended to `unreadable`.
pub(super) fn specs(
    view: SessionView<'_>,
    slots: &Slots,
    settings: &CohortArguments,
    problems: &mut Vec<QueueSpecProblem>,
) -> Vec<QueueSpec> {
    let queues = view.info.queues.iter().map(|&queue| &view.cluster.queues[queue]);
    let of_queue = |queue| {
        problems.extend(device_quotas(&view.cluster.dims, queue));
        spec(queue, slots, settings, problems)
    };
    queues.map(of_queue).collect()
}

/// Returns a problem for each amount of devices, which the trees leave out (section B.2).
fn device_quotas(dims: &Dims, queue: &Queue) -> Vec<QueueSpecProblem> {
    let fields = [
        ("deserved", &queue.deserved),
        ("capability", &queue.capability),
        ("guarantee.resource", &queue.guarantee),
    ];
    let of_field = |(field, amounts): (&'static str, &Resource)| {
        let names: Vec<&str> = amounts.scalars().map(|dim| dims.name(dim)).collect();
        let devices = names.into_iter().filter(|name| name.starts_with(DEVICE_CLASS));
        let text = |name| format!("spec.{field}.{name}: quotas of device classes do not count");
        devices.map(text).collect::<Vec<_>>()
    };
    let texts = fields.into_iter().flat_map(of_field);
    texts.map(|text| QueueSpecProblem { queue: queue.name.clone(), reason: QUOTA, text }).collect()
}

fn spec(
    queue: &Queue,
    slots: &Slots,
    settings: &CohortArguments,
    problems: &mut Vec<QueueSpecProblem>,
) -> QueueSpec {
    let mut reader = QueueSpecReader { queue, problems };
    QueueSpec {
        name: queue.name.clone(),
        parent: queue.parent.clone(),
        deserved: deserved(slots, queue),
        capability: amounts(slots, &queue.capability),
        guarantee: amounts(slots, &queue.guarantee),
        weight: reader.weight(),
        priority: queue.priority,
        policy: reader.policy(settings),
    }
}

/// Returns the amounts by slot. For cpu and memory, 0 counts as not listed (section B.2).
fn amounts(slots: &Slots, of: &Resource) -> Vec<Option<i64>> {
    let is_native = |dim: Dim| dim == Dim::CPU || dim == Dim::MEMORY;
    let listed = |dim: Dim| of.has(dim) && (!is_native(dim) || of.get(dim) != 0);
    let amount = |slot| {
        let dim = slots.dim(slot);
        listed(dim).then(|| of.get(dim))
    };
    slots.iter().map(amount).collect()
}

/// Returns the deserved amounts by slot. An amount of 0 counts if it is listed.
fn deserved(slots: &Slots, queue: &Queue) -> Vec<Option<i64>> {
    let zero = |slot| queue.listed.contains(&slots.dim(slot)).then_some(0);
    let amounts = amounts(slots, &queue.deserved).into_iter().zip(slots.iter());
    amounts.map(|(amount, slot)| amount.or_else(|| zero(slot))).collect()
}

/// Returns the problems with parents and amounts (section B.9). The formulas of section B.2 apply
/// nevertheless.
pub(super) fn faults(
    dims: &Dims,
    slots: &Slots,
    specs: &[QueueSpec],
    built: &QuotaForest,
) -> Vec<QueueSpecProblem> {
    let mut found = Vec::new();
    for spec in specs {
        let texts = parent_fault(spec, built).into_iter().chain(amount_faults(dims, slots, spec));
        let problem = |text| QueueSpecProblem { queue: spec.name.clone(), reason: QUOTA, text };
        found.extend(texts.map(problem));
    }
    found
}

fn parent_fault(spec: &QueueSpec, built: &QuotaForest) -> Option<String> {
    let parent = &spec.parent;
    if built.inactive.contains(&spec.name) {
        let what = "the parents form a cycle: nothing is admitted to the queue";
        return Some(format!("spec.parent: {parent}: {what}"));
    }
    let is_missing = !parent.is_empty() && built.missing.contains(parent);
    is_missing
        .then(|| format!("spec.parent: {parent}: does not exist: there is nobody to borrow from"))
}

fn amount_faults(dims: &Dims, slots: &Slots, spec: &QueueSpec) -> Vec<String> {
    let mut found = Vec::new();
    for slot in slots.iter() {
        let dim = slots.dim(slot);
        let of = |list: &[Option<i64>]| list.get(slot.index()).copied().flatten();
        let text = |amount: i64| amount_text(amount.into(), dim, dims);
        let mut fault = |field: &str, amount: i64, what: &str| {
            let name = dims.name(dim);
            found.push(format!("spec.{field}.{name}: {}: {what}", text(amount)));
        };
        let (deserved, capability) = (of(&spec.deserved), of(&spec.capability));
        let guarantee = of(&spec.guarantee);
        let fields =
            [("deserved", deserved), ("capability", capability), ("guarantee.resource", guarantee)];
        for (field, amount) in fields {
            if let Some(amount) = amount.filter(|&amount| amount < 0) {
                fault(field, amount, "is below zero: counts as 0");
            }
        }
        if let (Some(deserved), Some(guarantee)) = (deserved, guarantee)
            && deserved < guarantee
        {
            fault("guarantee.resource", guarantee, "is above deserved: counts as deserved, too");
        }
        let least = deserved.max(guarantee).unwrap_or(0);
        if let Some(capability) = capability.filter(|&capability| 0 <= capability)
            && capability < least
        {
            fault("capability", capability, "is below deserved or guarantee: no more can be used");
        }
    }
    found
}

/// Returns the cluster's amounts by slot, for `rootQuota: Cluster`.
pub(super) fn of_cluster(view: SessionView<'_>, slots: &Slots) -> Vec<i64> {
    let total = view.total();
    slots.iter().map(|slot| total.get(slots.dim(slot)) as i64).collect()
}

/// Reads the annotations of one queue and records problems.
struct QueueSpecReader<'a> {
    queue: &'a Queue,
    problems: &'a mut Vec<QueueSpecProblem>,
}

impl QueueSpecReader<'_> {
    fn get(&self, key: &str) -> Option<Arc<str>> {
        self.queue.annotations.get(format!("{PREFIX}{key}").as_str()).cloned()
    }

    fn problem(&mut self, key: &str, value: &str, problem: &str) {
        let text = format!("{PREFIX}{key}: {value}: {problem}");
        let queue = self.queue.name.clone();
        self.problems.push(QueueSpecProblem { queue, reason: POLICY, text });
    }

    /// Returns the value of the annotation. Returns the default if it is absent, and `wrong` if it
    /// cannot be read.
    fn word<T>(
        &mut self,
        key: &str,
        (default, wrong): (T, T),
        read: fn(&str) -> Option<T>,
        words: &str,
    ) -> T {
        let Some(value) = self.get(key) else { return default };
        read(&value).unwrap_or_else(|| {
            self.problem(key, &value, &format!("is not one of {words}"));
            wrong
        })
    }

    fn policy(&mut self, settings: &CohortArguments) -> Policy {
        let default = settings.policy;
        let words = "Never, LowerPriority, LowerOrNewerEqualPriority";
        let never = WithinQueue::Never;
        let within_queue = self.word(
            arguments::WITHIN.key,
            (default.within_queue, never),
            arguments::within,
            words,
        );
        let reclaim_within = self.word(
            arguments::RECLAIM.key,
            (default.reclaim_within, vc_cohort::ReclaimWithin::Never),
            arguments::reclaim,
            "Never, LowerPriority, Any",
        );
        let borrow_within = self.borrow(default.borrow_within, settings.threshold);
        let policy = Policy { within_queue, reclaim_within, borrow_within };
        self.check_borrowing(&policy, settings);
        policy
    }

    fn borrow(&mut self, default: BorrowWithin, limit: Option<i32>) -> BorrowWithin {
        let is_on = default != BorrowWithin::Never;
        let is_on = self.word(
            arguments::BORROW.key,
            (is_on, false),
            |word| match word {
                "Never" => Some(false),
                "LowerPriority" => Some(true),
                _ => None,
            },
            "Never, LowerPriority",
        );
        let limit = match self.get(arguments::THRESHOLD.key) {
            None => limit,
            Some(value) => Some(value.trim().parse().unwrap_or_else(|_| {
                self.problem(arguments::THRESHOLD.key, &value, "is not a 32 bit integer");
                i32::MIN
            })),
        };
        arguments::borrow(is_on, limit)
    }

    fn check_borrowing(&mut self, policy: &Policy, settings: &CohortArguments) {
        let Some(value) = self.get(arguments::BORROW.key) else { return };
        if policy.borrow_within == BorrowWithin::Never {
            return;
        }
        if settings.is_fair() {
            self.problem(arguments::BORROW.key, &value, "has no effect under fair sharing");
        }
    }

    fn weight(&mut self) -> f64 {
        let of_spec = f64::from(self.queue.weight.max(0));
        let Some(value) = self.get(WEIGHT) else { return of_spec };
        let weight = value.trim().parse::<f64>().ok().filter(|weight| weight.is_finite());
        match weight {
            Some(weight) if weight == 0.0 || SMALLEST_WEIGHT < weight => weight,
            _ => {
                let problem = "is not 0 and not a number above 1e-9";
                self.problem(WEIGHT, &value, problem);
                of_spec
            }
        }
    }
}
