//! The remedy `raiseQuota`: a queue may hold more, by its capability, its weight or its guarantee, or by the quota that
//! a tree gives it (`tree_quota.rs`). Each change is tried as a what-if makes it, at most 20 of them: each opens a
//! session in which the cluster is divided anew. Specification: answers.md 5 (cases 32, 33).

use vc_framework::{LimitOwner, QueueLimit};
use vc_model::{Cluster, Queue, QueueId, QueueRecord};
use vc_resource::{Dim, Dims};

use crate::amounts::quantity_of;
use crate::changed_copy::ChangedCopy;
use crate::explanation::{Remedy, RemedyKind, Responsible};
use crate::known_trials::{KnownTrials, SupposedChange};
use crate::remedy_change::{RaisedQuota, RemedyChange};
use crate::tree_quota::{LackingTreeQuota, raise_tree_quota};
use crate::trials::BudgetSpent;
use crate::unblock::ClusterQuestion;
use crate::what_if::changes::changed_queue;

/// The largest weight that a queue may have.
const MOST_WEIGHT: i32 = 65_535;
/// Source of a limit that is a field of the queue.
pub(crate) const CAPABILITY: &str = "spec.capability";
/// Source of a limit that follows from the weights of all queues.
pub(crate) const DESERVED: &str = "deserved";

/// What a queue lacks so that the job has room in it.
pub(crate) enum LackingQuota {
    /// Amounts of its capability and of its share by weight.
    Share(LackingShare),
    /// Amounts of its quota in a tree.
    Tree(LackingTreeQuota),
}

impl LackingQuota {
    /// Returns what would have to be raised. `own` is the queue of the job, and `limits` are those that the job
    /// exceeds, in the order in which it meets them. Returns `None` if the first one is no field of a queue.
    pub(crate) fn of(cluster: &Cluster, own: QueueId, limits: &[QueueLimit]) -> Option<Self> {
        let in_tree = || LackingTreeQuota::of(cluster, own, limits).map(Self::Tree);
        LackingShare::of(cluster, limits).map(Self::Share).or_else(in_tree)
    }
}

/// What a queue lacks of its capability and of its share by weight.
pub(crate) struct LackingShare {
    queue: QueueId,
    /// Capabilities that are too low, with the amounts that would do.
    capability: Vec<(Dim, i64)>,
    /// Amounts that the queue would have to deserve. Empty if its share by weight is not exceeded.
    deserved: Vec<(Dim, i64)>,
    /// What the queue deserves now of the same resources.
    present: Vec<i64>,
}

impl LackingShare {
    /// Returns what would have to be raised. `limits` are those that the job exceeds, in the order in which it meets
    /// them. Returns `None` if the queue of the first one has another limit than its capability and its share.
    fn of(cluster: &Cluster, limits: &[QueueLimit]) -> Option<Self> {
        let owner = &limits.first()?.owner;
        let LimitOwner::Queue(name) = owner else { return None };
        let queue = cluster.queue(name)?;
        let (capability, deserved, present) = (Vec::new(), Vec::new(), Vec::new());
        let mut lacking = Self { queue, capability, deserved, present };
        for limit in limits.iter().filter(|limit| limit.owner == *owner) {
            let is_set_by = |source: &str| limit.amounts.iter().all(|it| it.set_by == source);
            let wanted = limit.amounts.iter().map(|it| (it.dim, it.used.saturating_add(it.asked)));
            if is_set_by(CAPABILITY) {
                wanted.for_each(|amount| lacking.raise_capability(amount));
            } else if is_set_by(DESERVED) {
                lacking.deserved = wanted.collect();
                lacking.present = limit.amounts.iter().map(|it| it.limit).collect();
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

    /// Returns the smallest weight that would do if each other queue with jobs wanted more than it gets, and nothing
    /// but weights bounded what it gets. So it is a guess. Returns `None` if no weight would do then.
    fn guess_weight(&self, cluster: &Cluster, present: i32) -> Option<i32> {
        let total = cluster.total_amounts();
        let amounts = self.deserved.iter().zip(&self.present);
        let weights = amounts.map(|(&(dim, wanted), &deserved)| {
            weight_for((wanted.into(), deserved.into(), total.exact(dim)), present)
        });
        weights.collect::<Option<Vec<i32>>>()?.into_iter().max()
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
pub(crate) fn is_capped(row: &Queue, (dim, amount): (Dim, i64)) -> bool {
    let given = row.capability.get(dim);
    let is_given = match dim {
        Dim::CPU | Dim::MEMORY => 0 < given,
        _ => row.capability.has(dim),
    };
    is_given && given < amount
}

/// Returns names and quantities of these amounts.
pub(crate) fn texts(amounts: &[(Dim, i64)], dims: &Dims) -> Vec<(String, String)> {
    let text = |&(dim, amount): &(Dim, i64)| {
        (dims.name(dim).to_owned(), quantity_of(amount.into(), dim, dims))
    };
    amounts.iter().map(text).collect()
}

/// Returns the weight with which a queue deserves a wanted part of the total, where it deserves another part with its
/// present weight, and the weights of all others stay. Returns `None` if it deserves nothing now, or everything is
/// wanted.
fn weight_for((wanted, deserved, total): (i128, i128, i128), present: i32) -> Option<i32> {
    if deserved <= 0 || total <= deserved || total <= wanted {
        return None;
    }
    // deserved = total · present ÷ (present + others), and wanted likewise.
    let parts = wanted.checked_mul(total - deserved)?.checked_mul(present.into())?;
    let whole = deserved.checked_mul(total - wanted)?;
    let rounded_up = parts.checked_add(whole - 1)? / whole;
    i32::try_from(rounded_up).ok().filter(|weight| *weight <= MOST_WEIGHT)
}

/// Returns the remedy, if the job is placed once the queue may hold more.
///
/// # Errors
/// The budget does not suffice to find out.
pub(crate) fn raise_quota(
    copy: &mut ChangedCopy,
    question: &ClusterQuestion,
    known: &mut KnownTrials,
) -> Result<Option<Remedy>, BudgetSpent> {
    let (queue, raised) = match &question.lacking {
        None => return Ok(None),
        Some(LackingQuota::Share(it)) => (it.queue, raise_limits(copy, (question, it), known)?),
        Some(LackingQuota::Tree(it)) => {
            (it.queue(), raise_tree_quota(copy, (question, it), known)?)
        }
    };
    let record = copy.cluster().queue_record(queue);
    Ok(raised.map(|raised| remedy(&record, raised)))
}

/// Returns the smallest change with which the capability of the queue and its share suffice.
fn raise_limits(
    copy: &mut ChangedCopy,
    (question, lacking): (&ClusterQuestion, &LackingShare),
    known: &mut KnownTrials,
) -> Result<Option<RaisedQuota>, BudgetSpent> {
    let cluster = copy.cluster();
    let record = cluster.queue_record(lacking.queue);
    let guess = lacking.guess_weight(cluster, record.weight);
    let guarantee = lacking.guarantee(cluster);
    let capability = texts(&lacking.capability, &cluster.dims);
    let mut budget = question.budget;
    let mut suffices = |raised: &RaisedQuota| -> Result<bool, BudgetSpent> {
        budget.charge()?;
        let change = SupposedChange::RaisedQuota(lacking.queue, raised.clone());
        Ok(known.is_placed(question.shape, change, || {
            let record = changed_queue(record.clone(), &raised.as_change());
            copy.is_placed_with_queue((lacking.queue, record), question)
        }))
    };
    let capability = RaisedQuota { capability, ..RaisedQuota::default() };
    match lacking.deserved.is_empty() {
        true => Ok(suffices(&capability)?.then_some(capability)),
        false => {
            let share = PresentShare { weight: record.weight, guess, guarantee };
            raise_share(capability, share, &mut suffices)
        }
    }
}

/// What is known of a queue whose share by weight is to be raised.
struct PresentShare {
    weight: i32,
    /// A weight that probably suffices. `None` if there is no guess.
    guess: Option<i32>,
    /// Guarantees that would do. `None` if the cluster does not have them.
    guarantee: Option<Vec<(String, String)>>,
}

/// Returns the smallest change after which the share of the queue suffices: its capability alone, else with the
/// smallest weight, else with a guarantee.
fn raise_share(
    capability: RaisedQuota,
    present: PresentShare,
    suffices: &mut dyn FnMut(&RaisedQuota) -> Result<bool, BudgetSpent>,
) -> Result<Option<RaisedQuota>, BudgetSpent> {
    if !capability.capability.is_empty() && suffices(&capability)? {
        return Ok(Some(capability));
    }
    let PresentShare { weight, guess, guarantee } = present;
    let with_weight = |weight: i32| RaisedQuota { weight: Some(weight), ..capability.clone() };
    if let Some(least) = least_weight(weight, guess, |weight| suffices(&with_weight(weight)))? {
        return Ok(Some(with_weight(least)));
    }
    let Some(guarantee) = guarantee else { return Ok(None) };
    let raised = RaisedQuota { guarantee, ..capability };
    Ok(suffices(&raised)?.then_some(raised))
}

/// Returns the smallest weight above the present one that suffices: the guess, if it does and one less does not, else
/// by bisection. It takes at most 19 trials.
fn least_weight(
    present: i32,
    guess: Option<i32>,
    mut suffices: impl FnMut(i32) -> Result<bool, BudgetSpent>,
) -> Result<Option<i32>, BudgetSpent> {
    let mut low = present.max(0).saturating_add(1);
    if MOST_WEIGHT < low {
        return Ok(None);
    }
    let guess = guess.map(|weight| weight.clamp(low, MOST_WEIGHT));
    let double = guess.map(|weight| weight.saturating_mul(2).min(MOST_WEIGHT));
    let mut found = None;
    // Mostly no weight will do if the largest does not.
    for weight in [guess, double, Some(MOST_WEIGHT)].into_iter().flatten() {
        if low <= weight && found.is_none() {
            match suffices(weight)? {
                true => found = Some(weight),
                false => low = weight + 1,
            }
        }
    }
    let Some(mut high) = found else { return Ok(None) };
    if guess == Some(high) && low < high {
        match suffices(high - 1)? {
            true => high -= 1,
            false => low = high,
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        match suffices(middle)? {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok(Some(high))
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
        ("spec.deserved", to(&raised.deserved)),
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
    fn found(present: i32, guess: Option<i32>, least: i32) -> (Option<i32>, usize) {
        let mut n_trials = 0;
        let weight = least_weight(present, guess, |weight| {
            n_trials += 1;
            Ok(least <= weight)
        });
        (weight.unwrap(), n_trials)
    }

    #[test]
    fn ans_33_the_smallest_weight_is_found() {
        for present in [-1, 0, 1, 2, 3, 7, 100, 40_000, 65_534] {
            for least in [1, 2, 3, 4, 5, 9, 101, 199, 201, 40_001, 65_534, 65_535] {
                let expected = least.max(present + 1).max(1);
                for guess in [None, Some(-3), Some(1), Some(150), Some(65_535), Some(i32::MAX)] {
                    let (weight, n_trials) = found(present, guess, least);
                    assert_eq!(weight, Some(expected), "{present} {guess:?} {least}");
                    // With one for the capability there are 20.
                    assert!(n_trials <= 19, "{present} {guess:?} {least}: {n_trials}");
                }
                let (weight, n_trials) = found(present, Some(expected), least);
                assert_eq!(weight, Some(expected), "{present} {least}");
                assert!(n_trials <= 2, "a good guess: {present} {least}: {n_trials}");
            }
        }
        assert_eq!(found(1, None, 65_536), (None, 1));
        assert_eq!(found(1, Some(5), 65_536), (None, 3));
        assert_eq!(found(65_535, None, 1), (None, 0));
        assert_eq!(found(i32::MAX, Some(1), 1), (None, 0));
    }

    #[test]
    fn ans_33_a_weight_is_guessed_by_the_division_of_two_queues() {
        for (wanted, deserved, total, present, expected) in [
            // 8 of 16 with weight 1 against 1: 10 of 16 need 2 against 1, 12 need 3 and 13 need 5.
            (10, 8, 16, 1, Some(2)),
            (12, 8, 16, 1, Some(3)),
            (13, 8, 16, 1, Some(5)),
            // 4 of 16 with weight 2 against 6: 8 of 16 need 6.
            (8, 4, 16, 2, Some(6)),
            (16, 8, 16, 1, None),
            (10, 0, 16, 1, None),
            (15_999_999, 1, 16_000_000, 1, None),
            (i128::MAX / 2, 1, i128::MAX, 1, None),
        ] {
            let found = weight_for((wanted, deserved, total), present);
            assert_eq!(found, expected, "{wanted} instead of {deserved} of {total}");
        }
    }

    #[test]
    fn ans_31_a_search_for_a_weight_ends_with_the_budget() {
        let mut left = 3;
        let found = least_weight(1, None, |weight| {
            left -= 1;
            if left == 0 { Err(BudgetSpent) } else { Ok(40 <= weight) }
        });
        assert!(found.is_err());
    }
}
