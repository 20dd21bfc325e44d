//! Numbers of the queues for metrics, and why nobody went for a job. Only queues whose use, or whose
//! jobs, changed are worked out again. Specification: cohort.md B.8, B.11, core.md 9.2.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_cohort::{Amount, Forest, QuotaNode, Slot, is_unlimited};
use vc_framework::{
    Amounts, Ask, JobSums, Latest, Outbox, QueueAmount, QueueGauges, QueueShare, Sample,
};
use vc_model::QueueId;
use vc_resource::{Fractional, Resource, share};

use super::arguments::Settings;
use super::book::Book;

/// What was told, and what is to be told.
#[derive(Default)]
pub(super) struct Gauges {
    told: Latest<QueueId, Shown>,
    sums: Latest<QueueId, JobSums>,
    /// [`vc_model::Cluster::queue_version`] of what was told.
    version: Option<u64>,
    /// By node, then slot: what was in use; empty: nothing is known of the nodes.
    used: Vec<Amount>,
    shares: BTreeMap<Arc<str>, f64>,
    refused: BTreeMap<(Arc<str>, &'static str), u64>,
}

#[derive(Clone, PartialEq)]
struct Shown {
    amounts: Vec<(QueueAmount, Fractional)>,
    share: f64,
    borrows: bool,
}

impl Gauges {
    /// Nobody goes for a job of the queue.
    pub(super) fn refused(&mut self, queue: &Arc<str>, cause: &'static str) {
        *self.refused.entry((queue.clone(), cause)).or_default() += 1;
    }

    pub(super) fn tell(
        &mut self,
        ask: Ask<'_>,
        book: &Book,
        settings: &Settings,
        out: &mut Outbox,
    ) {
        for ((queue, cause), count) in std::mem::take(&mut self.refused) {
            out.samples.push(Sample::QuotaRefused { queue, cause, count });
        }
        let version = ask.cluster.queue_version();
        if self.version.replace(version) != Some(version) {
            self.forget_nodes();
            for (queue, row) in ask.cluster.queues.iter().filter(|(_, row)| !row.present) {
                self.told.forget(queue);
                self.sums.forget(queue);
                self.shares.remove(&row.name);
            }
        }
        let stale = self.stale(book.forest());
        self.tell_queues(ask, book, &stale, out);
        if settings.is_fair() {
            self.tell_shares(book.forest(), &stale, out);
        }
    }

    /// The nodes are other ones from now on.
    pub(super) fn forget_nodes(&mut self) {
        self.used.clear();
    }

    /// By node: whether something else than before is in use there or below.
    fn stale(&mut self, forest: &Forest) -> Vec<bool> {
        let slots = || forest.slots().iter();
        let of_node = |node| slots().map(move |slot| forest.usage(node, slot));
        let used: Vec<Amount> = forest.nodes().flat_map(of_node).collect();
        let before = std::mem::replace(&mut self.used, used);
        let n_slots = forest.slots().len();
        let mut stale = vec![before.len() != self.used.len(); forest.len()];
        for node in forest.nodes().filter(|_| before.len() == self.used.len()) {
            let row = node.index() * n_slots..(node.index() + 1) * n_slots;
            if before[row.clone()] != self.used[row] {
                forest.path(node).for_each(|node| stale[node.index()] = true);
            }
        }
        stale
    }

    fn tell_queues(&mut self, ask: Ask<'_>, book: &Book, stale: &[bool], out: &mut Outbox) {
        let mut changed = ask.facts.roster.sums_with(ask.cluster, &ask.facts.to_close);
        for &queue in &ask.facts.queues {
            let Some(node) = book.standing(queue).node() else { continue };
            let at_open = || ask.facts.roster.sums(queue).clone();
            let sums = changed.remove(&queue).unwrap_or_else(at_open);
            let has_news = self.sums.is_news(queue, sums.clone());
            if !has_news && !stale[node.index()] {
                continue;
            }
            let row = &ask.cluster.queues[queue];
            let shown = shown(book.forest(), node, &sums, &row.capability);
            if self.told.is_news(queue, shown.clone()) {
                let amounts = shown.amounts.iter();
                let of_kind =
                    |(kind, amount): &(_, _)| (*kind, Amounts::of(amount, &ask.cluster.dims));
                out.samples.push(Sample::Queue(Box::new(QueueGauges {
                    queue: row.name.clone(),
                    amounts: amounts.map(of_kind).collect(),
                    weight: None,
                    share: Some(shown.share),
                    overused: Some(shown.borrows),
                })));
            }
        }
    }

    fn tell_shares(&mut self, forest: &Forest, stale: &[bool], out: &mut Outbox) {
        for node in forest.nodes().filter(|node| stale[node.index()]) {
            let (name, value) = (forest.name(node), forest.share(node).value());
            if self.shares.insert(name.clone(), value) != Some(value) {
                let parent = forest.parent(node).map(|parent| forest.name(parent).clone());
                let parent = parent.unwrap_or_default();
                out.samples.push(Sample::WeightedShare { queue: name.clone(), parent, value });
            }
        }
    }
}

/// What the queue deserves with all below it, and the largest part of it that is in use (B.8).
pub(super) fn queue_share(forest: &Forest, node: QuotaNode) -> QueueShare {
    let used = |slot: Slot| {
        let (used, total) = (forest.used(node, slot) as f64, forest.total(node, slot) as f64);
        share(used, total)
    };
    let mut deserved = Fractional::new();
    for slot in accounted(forest, node) {
        deserved.set(forest.slots().dim(slot), forest.total(node, slot) as f64);
    }
    QueueShare { deserved, share: accounted(forest, node).map(used).fold(0.0, f64::max) }
}

/// What there is a quota for.
fn accounted(forest: &Forest, node: QuotaNode) -> impl Iterator<Item = Slot> + '_ {
    forest.slots().iter().filter(move |&slot| !is_unlimited(forest.nominal(node, slot)))
}

fn shown(forest: &Forest, node: QuotaNode, sums: &JobSums, capability: &Resource) -> Shown {
    let of = |amount: &dyn Fn(Slot) -> Amount| {
        let mut all = Fractional::new();
        for slot in accounted(forest, node) {
            let amount = amount(slot);
            let value = if is_unlimited(amount) { f64::MAX } else { amount as f64 };
            all.set(forest.slots().dim(slot), value);
        }
        all
    };
    let (request, inqueue) = match sums.n_jobs {
        0 => Default::default(),
        _ => (sums.request.to_fractional(), sums.inqueue.to_fractional()),
    };
    let amounts = vec![
        (QueueAmount::Allocated, of(&|slot| forest.used(node, slot))),
        (QueueAmount::Request, request),
        (QueueAmount::Inqueue, inqueue),
        (QueueAmount::Deserved, of(&|slot| forest.total(node, slot))),
        (QueueAmount::RealCapability, of(&|slot| forest.potential(node, slot))),
        (QueueAmount::Capability, capability.to_fractional()),
    ];
    let share = queue_share(forest, node).share;
    Shown { amounts, share, borrows: forest.borrows(node) }
}
