//! The remedy `raiseQuota`: a queue may hold more, by its capability, its weight or its guarantee. Each change is
//! tried as a what-if makes it. Specification: answers.md 5 (cases 32, 33).

use vc_framework::{LimitOwner, QueueLimit};
use vc_model::{Cluster, Queue, QueueId, QueueRecord};
use vc_resource::{Dim, Dims};

use crate::amounts::quantity_of;
use crate::changed_copy::ChangedCopy;
use crate::explanation::{Remedy, RemedyKind, Responsible};
use crate::known_trials::{KnownTrials, SupposedChange};
use crate::remedy_change::{RaisedQuota, RemedyChange};
use crate::unblock::ClusterQuestion;
use crate::what_if::changes::changed_queue;

/// The largest weight that a queue may have.
const MOST_WEIGHT: i32 = 65_535;
/// Source of a limit that is a field of the queue.
const CAPABILITY: &str = "spec.capability";
/// Source of a limit that follows from the weights of all queues.
const DESERVED: &str = "deserved";

/// What a queue lacks so that the job has room in it.
pub(crate) struct LackingQuota {
    queue: QueueId,
    /// Capabilities that are too low, with the amounts that would do.
    capability: Vec<(Dim, i64)>,
    /// Amounts that the queue would have to deserve. Empty if its share by weight is not exceeded.
    deserved: Vec<(Dim, i64)>,
}

impl LackingQuota {
    /// Returns what would have to be raised. `limits` are those that the job exceeds, in the order in which it meets
    /// them. Returns `None` if the queue of the first one has another limit than its capability and its share.
    pub(crate) fn of(cluster: &Cluster, limits: &[QueueLimit]) -> Option<Self> {
        let owner = &limits.first()?.owner;
        let LimitOwner::Queue(name) = owner else { return None };
        let queue = cluster.queue(name)?;
        let mut lacking = Self { queue, capability: Vec::new(), deserved: Vec::new() };
        for limit in limits.iter().filter(|limit| limit.owner == *owner) {
            let is_set_by = |source: &str| limit.amounts.iter().all(|it| it.set_by == source);
            let wanted = limit.amounts.iter().map(|it| (it.dim, it.used.saturating_add(it.asked)));
            if is_set_by(CAPABILITY) {
                wanted.for_each(|amount| lacking.raise_capability(amount));
            } else if is_set_by(DESERVED) {
                lacking.deserved = wanted.collect();
            } else {
                return None;
            }
        }
        for amount in lacking.deserved.clone() {
            if is_capped(&cluster.queues[queue], amount) {
                lacking.raise_capability(amount);
            }
        }
        let is_empty = lacking.capability.is_empty() && lacking.deserved.is_empty();
        (!is_empty).then_some(lacking)
    }

    fn raise_capability(&mut self, (dim, amount): (Dim, i64)) {
        match self.capability.iter_mut().find(|(other, _)| *other == dim) {
            Some((_, known)) => *known = amount.max(*known),
            None => self.capability.push((dim, amount)),
        }
    }

    /// Returns the guarantees that would do, if the cluster has them beside those of all other queues.
    fn guarantee(&self, cluster: &Cluster) -> Option<Vec<(String, String)>> {
        let total = cluster.total_amounts();
        let is_there = |&(dim, amount): &(Dim, i64)| {
            let others = cluster.queues_by_name().filter(|queue| *queue != self.queue);
            let rows = others.map(|queue| &cluster.queues[queue]).filter(|row| row.present);
            let guaranteed: i128 = rows.map(|row| row.guarantee.exact(dim).max(0)).sum();
            guaranteed + i128::from(amount) <= total.exact(dim)
        };
        self.deserved.iter().all(is_there).then(|| texts(&self.deserved, &cluster.dims))
    }
}

/// True if the capability of the queue is below this amount. cpu and memory without a positive one are unlimited.
fn is_capped(row: &Queue, (dim, amount): (Dim, i64)) -> bool {
    let given = row.capability.get(dim);
    let is_given = match dim {
        Dim::CPU | Dim::MEMORY => 0 < given,
        _ => row.capability.has(dim),
    };
    is_given && given < amount
}

fn texts(amounts: &[(Dim, i64)], dims: &Dims) -> Vec<(String, String)> {
    let text = |&(dim, amount): &(Dim, i64)| {
        (dims.name(dim).to_owned(), quantity_of(amount.into(), dim, dims))
    };
    amounts.iter().map(text).collect()
}

/// Returns the remedy, if the job is placed once the queue may hold more.
pub(crate) fn raise_quota(
    copy: &mut ChangedCopy,
    question: &ClusterQuestion,
    known: &mut KnownTrials,
) -> Option<Remedy> {
    let lacking = question.lacking.as_ref()?;
    let cluster = copy.cluster();
    let record = cluster.queue_record(lacking.queue);
    let guarantee = lacking.guarantee(cluster);
    let capability = texts(&lacking.capability, &cluster.dims);
    let mut suffices = |raised: &RaisedQuota| {
        let change = SupposedChange::RaisedQuota(lacking.queue, raised.clone());
        known.is_placed(question.shape, change, || {
            let record = changed_queue(record.clone(), &raised.as_change());
            copy.is_placed_with_queue((lacking.queue, record), question)
        })
    };
    let capability = RaisedQuota { capability, ..RaisedQuota::default() };
    let raised = match lacking.deserved.is_empty() {
        true => suffices(&capability).then_some(capability),
        false => raise_share(capability, (record.weight, guarantee), &mut suffices),
    };
    raised.map(|raised| remedy(&record, raised))
}

/// Returns the smallest change after which the share of the queue suffices: its capability alone, else with the
/// smallest weight, else with a guarantee. `weight` is the present one.
fn raise_share(
    capability: RaisedQuota,
    (weight, guarantee): (i32, Option<Vec<(String, String)>>),
    suffices: &mut dyn FnMut(&RaisedQuota) -> bool,
) -> Option<RaisedQuota> {
    if !capability.capability.is_empty() && suffices(&capability) {
        return Some(capability);
    }
    let with_weight = |weight: i32| RaisedQuota { weight: Some(weight), ..capability.clone() };
    if let Some(least) = least_weight(weight, |weight| suffices(&with_weight(weight))) {
        return Some(with_weight(least));
    }
    let raised = RaisedQuota { guarantee: guarantee?, ..capability };
    suffices(&raised).then_some(raised)
}

/// Returns the smallest weight above the present one that suffices, by doubling and bisection.
fn least_weight(present: i32, mut suffices: impl FnMut(i32) -> bool) -> Option<i32> {
    let mut low = present.max(0).saturating_add(1);
    // Mostly no weight will do if the largest does not.
    if MOST_WEIGHT < low || !suffices(MOST_WEIGHT) {
        return None;
    }
    let mut high = (2 * present.max(1)).min(MOST_WEIGHT);
    while high < MOST_WEIGHT && !suffices(high) {
        (low, high) = (high + 1, (2 * high).min(MOST_WEIGHT));
    }
    while low < high {
        let middle = low + (high - low) / 2;
        match suffices(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Some(high)
}

fn remedy(record: &QueueRecord, raised: RaisedQuota) -> Remedy {
    let to = |amounts: &[(String, String)]| {
        let texts: Vec<String> =
            amounts.iter().map(|(name, amount)| format!("{amount} {name}")).collect();
        (!texts.is_empty()).then(|| format!("to {}", texts.join(", ")))
    };
    let weight = raised.weight.map(|weight| format!("from {} to {weight}", record.weight));
    let fields = [
        ("spec.capability", to(&raised.capability)),
        ("spec.weight", weight),
        ("spec.guarantee.resource", to(&raised.guarantee)),
    ];
    let changed = fields.into_iter().filter_map(|(field, change)| Some((field, change?)));
    let text = |(at, (field, change)): (usize, (&str, String))| match at {
        0 => format!("raise {field} of Queue {} {change}", record.name),
        _ => format!("{field} {change}"),
    };
    let texts: Vec<String> = changed.enumerate().map(text).collect();
    Remedy {
        kind: RemedyKind::RaiseQuota,
        who: Responsible::Admin,
        text: texts.join(" and "),
        nodes: Vec::new(),
        at_micros: None,
        change: Some(RemedyChange::Quota { queue: record.name.clone(), raised }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the weight that is found if `least` and all larger ones suffice, and the number of trials.
    fn found(present: i32, least: i32) -> (Option<i32>, usize) {
        let mut n_trials = 0;
        let weight = least_weight(present, |weight| {
            n_trials += 1;
            least <= weight
        });
        (weight, n_trials)
    }

    #[test]
    fn ans_33_the_smallest_weight_is_found() {
        for present in [-1, 0, 1, 2, 3, 7, 100, 40_000, 65_534] {
            for least in [1, 2, 3, 4, 5, 9, 101, 199, 201, 40_001, 65_534, 65_535] {
                let (weight, n_trials) = found(present, least);
                assert_eq!(weight, Some(least.max(present + 1).max(1)), "{present} {least}");
                assert!(n_trials <= 33, "{present} {least}: {n_trials}");
            }
        }
        assert_eq!(found(1, 65_536), (None, 1));
        assert_eq!(found(65_535, 1), (None, 0));
        assert_eq!(found(i32::MAX, 1), (None, 0));
    }
}
