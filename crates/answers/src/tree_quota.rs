//! The remedy `raiseQuota` where a tree of quotas limits a queue, with the plugin `cohort`: what the queue deserves and
//! its capability are raised by what it lacks of the nearest limit, one limit after the other, until the job is placed.
//! Specification: answers.md 5 (cases 32, 33), cohort.md B.2.
//!
//! A smaller change of the same fields does not suffice, because:
//! - a queue holds no more than its capability, so what is used and asked has to fit into it;
//! - the nominal quota of a queue is the larger one of deserved and guarantee, and at most its capability;
//! - one unit more of it is at most one unit more for each cohort above, so all that a cohort lacks has to be added.
//!
//! There is one exception: a cohort in which more is used than it has lacks less than its limit says for a queue whose
//! guarantee has room for the job.

use vc_framework::{LimitOwner, QueueLimit};
use vc_model::{Cluster, Queue, QueueId};
use vc_resource::{Dim, Dims};

use crate::changed_copy::ChangedCopy;
use crate::known_trials::{KnownTrials, SupposedChange};
use crate::raised_quota::{CAPABILITY, is_capped, texts};
use crate::remedy_change::RaisedQuota;
use crate::trials::BudgetSpent;
use crate::unblock::ClusterQuestion;
use crate::what_if::changes::changed_queue;

/// Upper bound of the limits that are raised one after the other. Each takes one trial.
const MOST_LIMITS: usize = 8;
/// What the sources of all limits of a tree name.
const NOMINAL: &str = "nominal quota";

/// What a queue of a tree lacks so that the job has room in it.
pub(crate) struct LackingTreeQuota {
    /// The queue whose fields are raised.
    queue: QueueId,
    /// True if it is the queue of the job, false if it is a cohort above it.
    is_own: bool,
    /// The limit that the job meets first.
    limit: QueueLimit,
}

impl LackingTreeQuota {
    /// Returns what would have to be raised. `own` is the queue of the job, and `limits` are those that the job
    /// exceeds, in the order in which it meets them. Returns `None` if the first one is no limit of a tree.
    pub(crate) fn of(cluster: &Cluster, own: QueueId, limits: &[QueueLimit]) -> Option<Self> {
        let limit = limits.first().filter(|limit| !limit.amounts.is_empty())?;
        let is_capability = limit.amounts.iter().all(|it| it.set_by.starts_with(CAPABILITY));
        let queue = match &limit.owner {
            // The capability of a cohort is a field of its Queue.
            LimitOwner::Cohort(name) if is_capability => cluster.queue(name)?,
            LimitOwner::Queue(_) | LimitOwner::Cohort(_) => own,
            LimitOwner::Cluster => return None,
        };
        let is_of_tree = limit.amounts.iter().all(|it| it.set_by.contains(NOMINAL));
        is_of_tree.then(|| Self { queue, is_own: queue == own, limit: limit.clone() })
    }

    /// Returns the queue whose fields are raised.
    pub(crate) fn queue(&self) -> QueueId {
        self.queue
    }
}

/// Fields of a queue with the amounts to which they are raised.
#[derive(Default)]
struct RaisedFields {
    capability: Vec<(Dim, i64)>,
    deserved: Vec<(Dim, i64)>,
}

impl RaisedFields {
    /// Raises the fields by what the queue lacks of a limit. `row` is the queue with all that was raised before.
    /// Returns false if no field of the queue is the limit.
    fn raise(&mut self, (row, is_own): (&Queue, bool), limit: &QueueLimit) -> bool {
        for it in &limit.amounts {
            let is_capability = it.set_by.starts_with(CAPABILITY);
            let wanted = it.used.saturating_add(it.asked);
            let short = wanted.saturating_sub(it.limit);
            match &limit.owner {
                _ if !it.set_by.contains(NOMINAL) => return false,
                LimitOwner::Queue(name) if *name == row.name => {
                    let is_capped = is_capped(row, (it.dim, wanted));
                    let field = if is_capped { &mut self.capability } else { &mut self.deserved };
                    set(field, (it.dim, wanted));
                }
                LimitOwner::Cohort(name) if *name == row.name && is_capability => {
                    let raised = row.capability.get(it.dim).saturating_add(short);
                    set(&mut self.capability, (it.dim, raised));
                }
                LimitOwner::Cohort(_) if is_own && !is_capability => {
                    self.raise_nominal(row, (it.dim, short));
                }
                _ => return false,
            }
        }
        true
    }

    /// Raises the nominal quota of a queue without children.
    fn raise_nominal(&mut self, row: &Queue, (dim, short): (Dim, i64)) {
        let given = row.deserved.get(dim).max(row.guarantee.get(dim)).max(0);
        let nominal = match is_capped(row, (dim, given)) {
            true => row.capability.get(dim).max(0),
            false => given,
        };
        let raised = nominal.saturating_add(short);
        if given < raised {
            set(&mut self.deserved, (dim, raised));
        }
        if is_capped(row, (dim, raised)) {
            set(&mut self.capability, (dim, raised));
        }
    }

    fn as_quota(&self, dims: &Dims) -> RaisedQuota {
        RaisedQuota {
            capability: texts(&self.capability, dims),
            deserved: texts(&self.deserved, dims),
            ..RaisedQuota::default()
        }
    }
}

/// Sets the amount of a dimension.
fn set(amounts: &mut Vec<(Dim, i64)>, (dim, amount): (Dim, i64)) {
    match amounts.iter_mut().find(|(other, _)| *other == dim) {
        Some((_, known)) => *known = amount,
        None => amounts.push((dim, amount)),
    }
}

/// Returns the smallest change of the queue with which the job is placed. Returns `None` if fields of other queues
/// would have to be raised, too, or too many limits follow.
pub(crate) fn raise_tree_quota(
    copy: &mut ChangedCopy,
    (question, lacking): (&ClusterQuestion, &LackingTreeQuota),
    known: &mut KnownTrials,
) -> Result<Option<RaisedQuota>, BudgetSpent> {
    let queue = lacking.queue;
    let record = copy.cluster().queue_record(queue);
    let (mut budget, mut fields) = (question.budget, RaisedFields::default());
    let mut row = copy.cluster().queues[queue].clone();
    let mut limit = lacking.limit.clone();
    for _ in 0..MOST_LIMITS {
        if !fields.raise((&row, lacking.is_own), &limit) {
            return Ok(None);
        }
        budget.charge()?;
        let raised = fields.as_quota(&copy.cluster().dims);
        let record = changed_queue(record.clone(), &raised.as_change());
        let mut limits_then = None;
        let change = SupposedChange::RaisedQuota(queue, raised.clone());
        let is_placed = known.is_placed(question.shape, change, || {
            limits_then = copy.limits_with_queue((queue, record.clone()), question);
            limits_then.is_none()
        });
        if is_placed {
            return Ok(Some(raised));
        }
        // A result that was known already tells no limits.
        let then = limits_then.or_else(|| copy.limits_with_queue((queue, record), question));
        let Some((row_then, limits)) = then else { return Ok(None) };
        let Some(next) = limits.into_iter().next() else { return Ok(None) };
        (row, limit) = (row_then, next);
    }
    Ok(None)
}
