//! Queue usage that victim votes read, and the queues whose usage changed.
//! Specification: actions.md 12.2 S7.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;
use vc_model::{ChangeReader, QueueId};
use vc_resource::{Fractional, Resource};

use crate::session::SessionState;

/// The usage of a queue as far as it decides victim votes. Stamps are only compared for equality.
/// No amount in them is NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum QueueUsageStamp {
    /// The queue uses at most its share, so none of its pods may be evicted.
    #[default]
    Within,
    /// The queue uses more than its share; the amount does not matter.
    Beyond,
    /// The votes depend on the amounts.
    Amounts {
        /// Amounts that the queue's pods hold.
        allocated: Resource,
        /// Amounts that the queue deserves.
        deserved: Fractional,
    },
    /// The votes depend on state of the plugin, which these numbers stand for: equal numbers, equal
    /// state.
    Numbers(Box<[u64]>),
}

impl Eq for QueueUsageStamp {}

impl Hash for QueueUsageStamp {
    fn hash<H: Hasher>(&self, into: &mut H) {
        match self {
            Self::Within => 0_u8.hash(into),
            Self::Beyond => 1_u8.hash(into),
            // What the queue deserves is left out: fractions have no hash.
            Self::Amounts { allocated, .. } => allocated.hash(into),
            Self::Numbers(numbers) => numbers.hash(into),
        }
    }
}

/// The last usage stamps of the queues.
#[derive(Debug, Default)]
pub(super) struct QueueUsageStamps {
    /// Per queue: the stamp of each plugin that votes by usage. The map is only looked up, never
    /// iterated.
    of_queue: FxHashMap<QueueId, Vec<Option<QueueUsageStamp>>>,
    moved_queues: ChangeReader<QueueId>,
    /// Σ allocatable of all nodes, by which plugins measure shares.
    total: Fractional,
}

impl QueueUsageStamps {
    /// Returns the queues whose stamps changed since the last call. Within a session only queues
    /// with moved pods are checked, and those whose usage changes with theirs.
    pub(super) fn changed(&mut self, session: &SessionState<'_>) -> Vec<QueueId> {
        let (info, plugins) = (session.info(), session.plugins());
        if let Some(moved) = self.moved_queues.read(plugins.moved_queues()) {
            let mut known: BTreeSet<QueueId> = BTreeSet::new();
            for queue in moved {
                // Queues that move together name each other.
                if known.insert(queue) {
                    known.extend(plugins.queues_that_move_with(queue));
                }
            }
            return known.into_iter().filter(|&queue| self.is_new(session, queue)).collect();
        }
        if self.total != info.total {
            self.total.clone_from(&info.total);
            self.of_queue.clear();
        }
        info.queues.iter().copied().filter(|&queue| self.is_new(session, queue)).collect()
    }

    fn is_new(&mut self, session: &SessionState<'_>, queue: QueueId) -> bool {
        let mut now = session.plugins().queue_usages(session.view(), queue);
        let known = self.of_queue.get(&queue).map_or(&[][..], Vec::as_slice);
        if known.iter().all(|known| now.next().as_ref() == Some(known)) && now.next().is_none() {
            return false;
        }
        let now = session.plugins().queue_usages(session.view(), queue).collect();
        self.of_queue.insert(queue, now);
        true
    }
}
