//! Limits of queues and cohorts with their amounts, for messages of waiting pods. Specification:
//! cohort.md B.8, actions.md 10.2 (A48).

use vc_cohort::{Amount, Demand, ExceededLimit, Forest, LimitSource, QuotaNode, Slot};
use vc_framework::{Ask, LimitOwner, LimitedAmount, QueueLimit};
use vc_model::{JobId, QueueId, TaskId};

use super::book::Book;
use super::enqueue;

/// Returns the limit that the tasks exceed together. `None`: their queue has room, or takes no tasks.
pub(super) fn of_tasks(
    book: &mut Book,
    ask: Ask<'_>,
    queue: QueueId,
    tasks: &[TaskId],
) -> Option<QueueLimit> {
    book.leave_ledger();
    let node = book.leaf(queue)?;
    let demand = book.demand_of(ask.cluster, tasks);
    let limit = |book: &mut Book| exceeded(book.forest(), node, &demand);
    let job = tasks.first().and_then(|&task| ask.cluster.tasks[task].job);
    book.without_reservation(node, |book| match job {
        Some(job) => book.without_claim(job, node, limit),
        None => limit(book),
    })
}

/// Returns the limit that the job would exceed if it was admitted. `None`: there is room.
pub(super) fn of_admission(book: &mut Book, ask: Ask<'_>, job: JobId) -> Option<QueueLimit> {
    book.enter_ledger(ask);
    let row = &ask.cluster.jobs[job];
    let node = book.leaf(row.queue)?;
    let demand = enqueue::demand(book, row);
    book.without_reservation(node, |book| exceeded(book.forest(), node, &demand))
}

/// The limit of the nearest node in which something is short, with all that is short there.
fn exceeded(forest: &Forest, queue: QuotaNode, demand: &Demand) -> Option<QueueLimit> {
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

fn narrow(amount: Amount) -> i64 {
    let bounded = amount.clamp(i64::MIN.into(), i64::MAX.into());
    i64::try_from(bounded).unwrap_or(i64::MAX)
}
