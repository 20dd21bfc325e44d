//! Limits of queues and cohorts with their amounts, for messages of waiting pods.
//! Specification: cohort.md B.8, actions.md 10.2 (A48).

use vc_cohort::{ExceededLimit, Forest, LimitSource, QuotaAmount, QuotaDemand, QuotaNode, Slot};
use vc_framework::{LimitOwner, LimitedAmount, QueueLimit, SessionView};
use vc_model::{JobId, QueueId, TaskId};

use super::enqueue;
use super::quota_ledger::QuotaLedger;

/// Returns the limit that the tasks exceed together. Returns `None` if their queue has room, or
/// takes no tasks.
pub(super) fn of_tasks(
    quota_ledger: &mut QuotaLedger,
    view: SessionView<'_>,
    queue: QueueId,
    tasks: &[TaskId],
) -> Option<QueueLimit> {
    quota_ledger.leave_ledger();
    let node = quota_ledger.leaf(queue)?;
    let demand = quota_ledger.demand_of(view.cluster, tasks);
    let limit = |quota_ledger: &mut QuotaLedger| exceeded(quota_ledger.forest(), node, &demand);
    let job = tasks.first().and_then(|&task| view.cluster.tasks[task].job);
    quota_ledger.without_reservation(node, |quota_ledger| match job {
        Some(job) => quota_ledger.without_claim(job, node, limit),
        None => limit(quota_ledger),
    })
}

/// Returns the limit that the job would exceed if it were admitted. Returns `None` if there is
/// room.
pub(super) fn of_admission(
    quota_ledger: &mut QuotaLedger,
    view: SessionView<'_>,
    job: JobId,
) -> Option<QueueLimit> {
    quota_ledger.enter_ledger(view);
    let row = &view.cluster.jobs[job];
    let node = quota_ledger.leaf(row.queue)?;
    let demand = enqueue::demand(quota_ledger, row);
    quota_ledger
        .without_reservation(node, |quota_ledger| exceeded(quota_ledger.forest(), node, &demand))
}

/// Returns the limit of the nearest node that lacks something, with all amounts that it lacks.
fn exceeded(forest: &Forest, queue: QuotaNode, demand: &QuotaDemand) -> Option<QueueLimit> {
    let of_slot = |(slot, amount)| Some((slot, forest.exceeded_limit(queue, slot, amount)?));
    let all: Vec<(Slot, ExceededLimit)> = demand.iter().filter_map(of_slot).collect();
    let node = forest.path(queue).find(|&node| all.iter().any(|(_, it)| it.node == node))?;
    let name = forest.name(node).clone();
    let owner = match forest.is_queue(node) {
        true => LimitOwner::Queue(name),
        false => LimitOwner::Cohort(name),
    };
    let of_node = all.iter().filter(|(_, it)| it.node == node);
    let amounts = of_node.map(|(slot, it)| amount(forest, *slot, it)).collect();
    Some(QueueLimit { owner, amounts })
}

fn amount(forest: &Forest, slot: Slot, it: &ExceededLimit) -> LimitedAmount {
    LimitedAmount {
        dim: forest.slots().dim(slot),
        limit: narrow(it.limit),
        set_by: set_by(forest, slot, it),
        used: narrow(it.used),
        asked: narrow(it.asked),
    }
}

fn set_by(forest: &Forest, slot: Slot, it: &ExceededLimit) -> &'static str {
    let keeps = |&child: &QuotaNode| 0 < forest.local(child, slot);
    let is_kept = forest.children(it.node).iter().any(keeps);
    match (it.source, forest.is_queue(it.node), is_kept) {
        (LimitSource::Nominal, true, _) => "nominal quota",
        (LimitSource::Borrowing, true, _) => "spec.capability: nominal quota and borrowing limit",
        (LimitSource::Nominal, false, false) => "nominal quota of all its queues",
        (LimitSource::Nominal, false, true) => "nominal quota that its queues lend",
        (LimitSource::Borrowing, false, false) => {
            "spec.capability: nominal quota of all its queues and borrowing limit"
        }
        (LimitSource::Borrowing, false, true) => {
            "spec.capability: nominal quota that its queues lend and borrowing limit"
        }
    }
}

fn narrow(amount: QuotaAmount) -> i64 {
    let bounded = amount.clamp(i64::MIN.into(), i64::MAX.into());
    i64::try_from(bounded).unwrap_or(i64::MAX)
}
