//! Queue objects as the quota trees need them: amounts, policies and weight, with what of it cannot
//! be read. Specification: cohort.md B.2, B.3, B.9.

use std::sync::Arc;

use vc_cohort::{BorrowWithin, Built, Flavor, Policy, QueueSpec, Slots, WithinQueue};
use vc_framework::Ask;
use vc_model::{Cluster, Queue};
use vc_resource::{Dim, Dims, Resource};

use super::arguments::{self, Settings};
use super::overview::amount_text;

const PREFIX: &str = "cohort.volcano.sh/";
const WEIGHT: &str = "fairSharing.weight";
const SMALLEST_WEIGHT: f64 = 1e-9;

/// Quotas of devices are not known to the trees.
const DEVICE_CLASS: &str = "deviceclass/";

/// Reason of the event: an annotation cannot be read, or has no effect.
const POLICY: &str = "InvalidCohortPolicy";

/// Likewise: the amounts or the parent of a queue do not mean what they seem to.
const QUOTA: &str = "InvalidCohortQuota";

/// What the author of a queue should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Problem {
    pub(super) queue: Arc<str>,
    /// Of the event.
    pub(super) reason: &'static str,
    /// Key or field, value and what is wrong with it.
    pub(super) text: String,
}

/// What quotas are given for: every resource that something has or asks for.
pub(super) fn slots(cluster: &Cluster) -> Slots {
    let mut slots = Slots::default();
    for &dim in cluster.dims.in_report_order() {
        if !cluster.dims.name(dim).starts_with(DEVICE_CLASS) {
            slots.intern(Flavor::default(), dim);
        }
    }
    slots
}

/// Queues of the session, by name.
pub(super) fn specs(
    ask: Ask<'_>,
    slots: &Slots,
    settings: &Settings,
    problems: &mut Vec<Problem>,
) -> Vec<QueueSpec> {
    let queues = ask.facts.queues.iter().map(|&queue| &ask.cluster.queues[queue]);
    let of_queue = |queue| {
        problems.extend(device_quotas(&ask.cluster.dims, queue));
        spec(queue, slots, settings, problems)
    };
    queues.map(of_queue).collect()
}

/// Amounts of devices, which the trees leave out (B.2).
fn device_quotas(dims: &Dims, queue: &Queue) -> Vec<Problem> {
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
    texts.map(|text| Problem { queue: queue.name.clone(), reason: QUOTA, text }).collect()
}

fn spec(
    queue: &Queue,
    slots: &Slots,
    settings: &Settings,
    problems: &mut Vec<Problem>,
) -> QueueSpec {
    let mut reader = Reader { queue, problems };
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

/// Of a capability of cpu or memory nothing and 0 are the same (B.2).
fn amounts(slots: &Slots, of: &Resource) -> Vec<Option<i64>> {
    let is_native = |dim: Dim| dim == Dim::CPU || dim == Dim::MEMORY;
    let listed = |dim: Dim| of.has(dim) && (!is_native(dim) || of.get(dim) != 0);
    let amount = |slot| {
        let dim = slots.dim(slot);
        listed(dim).then(|| of.get(dim))
    };
    slots.iter().map(amount).collect()
}

/// A quota of 0 is one, if it is written down.
fn deserved(slots: &Slots, queue: &Queue) -> Vec<Option<i64>> {
    let zero = |slot| queue.listed.contains(&slots.dim(slot)).then_some(0);
    let amounts = amounts(slots, &queue.deserved).into_iter().zip(slots.iter());
    amounts.map(|(amount, slot)| amount.or_else(|| zero(slot))).collect()
}

/// What is wrong with parents and amounts (B.9). The formulas of B.2 go on with all of it.
pub(super) fn faults(
    dims: &Dims,
    slots: &Slots,
    specs: &[QueueSpec],
    built: &Built,
) -> Vec<Problem> {
    let mut found = Vec::new();
    for spec in specs {
        let texts = parent_fault(spec, built).into_iter().chain(amount_faults(dims, slots, spec));
        let problem = |text| Problem { queue: spec.name.clone(), reason: QUOTA, text };
        found.extend(texts.map(problem));
    }
    found
}

fn parent_fault(spec: &QueueSpec, built: &Built) -> Option<String> {
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

/// What the nodes have, for `rootQuota: Cluster`.
pub(super) fn of_cluster(ask: Ask<'_>, slots: &Slots) -> Vec<i64> {
    let total = &ask.facts.total;
    slots.iter().map(|slot| total.get(slots.dim(slot)) as i64).collect()
}

/// Reads the annotations of one queue.
struct Reader<'a> {
    queue: &'a Queue,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn get(&self, key: &str) -> Option<Arc<str>> {
        self.queue.annotations.get(format!("{PREFIX}{key}").as_str()).cloned()
    }

    fn problem(&mut self, key: &str, value: &str, problem: &str) {
        let text = format!("{PREFIX}{key}: {value}: {problem}");
        let queue = self.queue.name.clone();
        self.problems.push(Problem { queue, reason: POLICY, text });
    }

    /// The value of the annotation, else `default`; `wrong` where it cannot be read.
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

    fn policy(&mut self, settings: &Settings) -> Policy {
        let default = settings.policy;
        let words = "Never, LowerPriority, LowerOrNewerEqualPriority";
        let never = WithinQueue::Never;
        let within_queue =
            self.word(arguments::WITHIN, (default.within_queue, never), arguments::within, words);
        let reclaim_within = self.word(
            arguments::RECLAIM,
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
            arguments::BORROW,
            (is_on, false),
            |word| match word {
                "Never" => Some(false),
                "LowerPriority" => Some(true),
                _ => None,
            },
            "Never, LowerPriority",
        );
        let limit = match self.get(arguments::THRESHOLD) {
            None => limit,
            Some(value) => Some(value.trim().parse().unwrap_or_else(|_| {
                self.problem(arguments::THRESHOLD, &value, "is not a 32 bit integer");
                i32::MIN
            })),
        };
        arguments::borrow(is_on, limit)
    }

    fn check_borrowing(&mut self, policy: &Policy, settings: &Settings) {
        let Some(value) = self.get(arguments::BORROW) else { return };
        if policy.borrow_within == BorrowWithin::Never {
            return;
        }
        if settings.is_fair() {
            self.problem(arguments::BORROW, &value, "has no effect under fair sharing");
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
