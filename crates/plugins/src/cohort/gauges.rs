//! Metrics of the queues, and counters of refused searches. Only queues whose usage or jobs changed
//! are recomputed.
//! Specification: cohort.md B.8, B.11, core.md 9.2.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_cohort::{Forest, QuotaAmount, QuotaNode, Slot, is_unlimited};
use vc_framework::{
    Amounts, JobSums, Outbox, QueueAmount, QueueGauges, QueueShare, ReportLog, Sample, SessionView,
};
use vc_model::QueueId;
use vc_resource::{Fractional, Resource, share};

use super::arguments::CohortArguments;
use super::quota_ledger::QuotaLedger;

/// The metrics that were last emitted, with the state from which they were computed.
#[derive(Default)]
pub(super) struct CohortGauges {
    reported: ReportLog<QueueId, QueueGauge>,
    sums: ReportLog<QueueId, JobSums>,
    /// [`vc_model::Cluster::queue_version`] of the last emission.
    version: Option<u64>,
    /// Usage at the last emission, by node, then slot. It is empty if the nodes are new.
    used: Vec<QuotaAmount>,
    shares: BTreeMap<Arc<str>, f64>,
    refused: BTreeMap<(Arc<str>, &'static str), u64>,
}

#[derive(Clone, PartialEq)]
struct QueueGauge {
    amounts: Vec<(QueueAmount, Fractional)>,
    share: f64,
    borrows: bool,
}

impl CohortGauges {
    /// Counts a search that found no targets for a job of the queue.
    pub(super) fn refused(&mut self, queue: &Arc<str>, cause: &'static str) {
        *self.refused.entry((queue.clone(), cause)).or_default() += 1;
    }

    pub(super) fn tell(
        &mut self,
        view: SessionView<'_>,
        quota_ledger: &QuotaLedger,
        settings: &CohortArguments,
        out: &mut Outbox,
    ) {
        for ((queue, cause), count) in std::mem::take(&mut self.refused) {
            out.samples.push(Sample::QuotaRefused { queue, cause, count });
        }
        let version = view.cluster.queue_version();
        if self.version.replace(version) != Some(version) {
            self.forget_nodes();
            for (queue, row) in view.cluster.queues.iter().filter(|(_, row)| !row.present) {
                self.reported.forget(queue);
                self.sums.forget(queue);
                self.shares.remove(&row.name);
            }
        }
        let stale = self.stale(quota_ledger.forest());
        self.tell_queues(view, quota_ledger, &stale, out);
        if settings.is_fair() {
            self.tell_shares(quota_ledger.forest(), &stale, out);
        }
    }

    /// Forgets the usage, because the trees were rebuilt.
    pub(super) fn forget_nodes(&mut self) {
        self.used.clear();
    }

    /// Returns, by node, whether the usage at or below the node has changed.
    fn stale(&mut self, forest: &Forest) -> Vec<bool> {
        let slots = || forest.slots().iter();
        let of_node = |node| slots().map(move |slot| forest.usage(node, slot));
        let used: Vec<QuotaAmount> = forest.nodes().flat_map(of_node).collect();
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

    fn tell_queues(
        &mut self,
        view: SessionView<'_>,
        quota_ledger: &QuotaLedger,
        stale: &[bool],
        out: &mut Outbox,
    ) {
        let mut changed = view.info.active_jobs.sums_with(view.cluster, &view.info.to_close);
        for &queue in &view.info.queues {
            let Some(node) = quota_ledger.role(queue).node() else { continue };
            let at_open = || view.info.active_jobs.sums(queue).clone();
            let sums = changed.remove(&queue).unwrap_or_else(at_open);
            let has_news = self.sums.record_if_new(queue, sums.clone());
            if !has_news && !stale[node.index()] {
                continue;
            }
            let row = &view.cluster.queues[queue];
            let shown = shown(quota_ledger.forest(), node, &sums, &row.capability);
            if self.reported.record_if_new(queue, shown.clone()) {
                let amounts = shown.amounts.iter();
                let of_kind =
                    |(kind, amount): &(_, _)| (*kind, Amounts::of(amount, &view.cluster.dims));
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

/// Returns what the queue and all nodes below it deserve, and the largest part of it in use
/// (section B.8).
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

/// Returns the slots for which the node has a limited quota.
fn accounted(forest: &Forest, node: QuotaNode) -> impl Iterator<Item = Slot> + '_ {
    forest.slots().iter().filter(move |&slot| !is_unlimited(forest.nominal(node, slot)))
}

fn shown(forest: &Forest, node: QuotaNode, sums: &JobSums, capability: &Resource) -> QueueGauge {
    let of = |amount: &dyn Fn(Slot) -> QuotaAmount| {
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
    QueueGauge { amounts, share, borrows: forest.borrows(node) }
}
