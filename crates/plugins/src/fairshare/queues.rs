//! Usage of queues, with that of the queues below them, and their order.
//! Specification: fair-share.md 2 (FS-17), 5.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_framework::SessionView;
use vc_model::{Cluster, QueueId};

use super::compare_usage;
use super::ledger::{Ledger, Usage};

/// Usage of the queues of a session. It follows the operations of the session.
#[derive(Debug, Default)]
pub(super) struct QueueUsages {
    /// Usage by queue, with that of all queues below. The map is only looked up, never iterated.
    usages: FxHashMap<QueueId, Usage>,
    /// The queue, its parent and so on. The map is only looked up, never iterated.
    paths: FxHashMap<QueueId, Vec<QueueId>>,
}

impl QueueUsages {
    /// Adds up the usage of accounts. Costs a pass over queues and accounts.
    pub(super) fn of_session(view: SessionView<'_>, ledger: &Ledger) -> Self {
        let mut queue_usages = Self::default();
        let mut own: BTreeMap<&Arc<str>, Usage> = BTreeMap::new();
        for account in ledger.accounts() {
            own.entry(&account.queue).or_default().add(account.usage);
        }
        for &queue in &view.info.queues {
            let path = path(view.cluster, queue);
            if let Some(usage) = own.get(&view.cluster.queues[queue].name) {
                for &above in &path {
                    queue_usages.usages.entry(above).or_default().add(*usage);
                }
            }
            queue_usages.paths.insert(queue, path);
        }
        queue_usages
    }

    /// Returns the queues with queues below them.
    pub(super) fn inner_queues(&self) -> impl Iterator<Item = QueueId> + '_ {
        self.paths.values().flat_map(|path| path.iter().skip(1).copied())
    }

    /// Follows a change of the usage of an account of the queue.
    pub(super) fn change(&mut self, queue: QueueId, by: Usage) {
        for above in self.paths.get(&queue).into_iter().flatten() {
            self.usages.entry(*above).or_default().add(by);
        }
    }

    /// FS-40 to FS-43: compares two queues by usage, at the time with this weight. With a tree the
    /// ancestors below the lowest common one are compared.
    pub(super) fn compare(
        &self,
        cluster: &Cluster,
        (l, r): (QueueId, QueueId),
        is_tree: bool,
        weight: i128,
    ) -> Ordering {
        let by_priority = cluster.queues[r].priority.cmp(&cluster.queues[l].priority);
        by_priority.then_with(|| {
            let fork = if is_tree { self.fork(l, r) } else { (l != r).then_some((l, r)) };
            let Some((l, r)) = fork else { return Ordering::Equal };
            let usage = |queue| self.usages.get(&queue).copied().unwrap_or_default();
            let weight_of = |queue| i64::from(cluster.queues[queue].weight.max(0));
            match (weight_of(l), weight_of(r)) {
                (0, 0) => Ordering::Equal,
                (0, _) => Ordering::Greater,
                (_, 0) => Ordering::Less,
                (of_l, of_r) => compare_usage((usage(l), of_l), (usage(r), of_r), weight),
            }
        })
    }

    /// Returns the two ancestors, or the queues themselves, below the lowest common ancestor.
    /// Returns `None` if one queue is above the other.
    fn fork(&self, l: QueueId, r: QueueId) -> Option<(QueueId, QueueId)> {
        let down = |queue| self.paths.get(&queue).into_iter().flatten().rev().copied();
        down(l).zip(down(r)).find(|(l, r)| l != r)
    }
}

/// Returns the queue, its parent and so on, up to a queue without a parent in the session.
fn path(cluster: &Cluster, queue: QueueId) -> Vec<QueueId> {
    let mut path = vec![queue];
    let mut at = queue;
    loop {
        let row = &cluster.queues[at];
        let parent = if row.parent.is_empty() { "root" } else { &*row.parent };
        let known = cluster.queue(parent).filter(|&above| cluster.queues[above].present);
        match known {
            Some(above) if !path.contains(&above) => path.push(above),
            _ => return path,
        }
        at = path[path.len() - 1];
    }
}
