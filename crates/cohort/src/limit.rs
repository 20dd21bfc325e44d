//! The limit that a demand exceeds, with its amounts, for messages. Specification: cohort.md A.2,
//! B.8.

use crate::amount::{QuotaAmount, Slot};
use crate::forest::Forest;
use crate::node::QuotaNode;

/// A limit of a node that is exceeded in one slot: `limit < used + asked`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceededLimit {
    /// The queue itself, or a cohort above it.
    pub node: QuotaNode,
    /// Where the limit comes from.
    pub source: LimitSource,
    /// What the node and all below it may use, without what its children keep for themselves.
    pub limit: QuotaAmount,
    /// What is in use of that.
    pub used: QuotaAmount,
    /// The part of the demand that comes on top of what the nodes below keep unused.
    pub asked: QuotaAmount,
}

/// Where the limit of a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSource {
    /// The quota that the node and its children own: it is the top of its tree.
    Nominal,
    /// The quota that it owns and the most that it may borrow.
    Borrowing,
}

impl Forest {
    /// Returns the limit that the queue exceeds with this amount more, the nearest one to the queue.
    /// `None`: the amount is available.
    pub fn exceeded_limit(
        &self,
        queue: QuotaNode,
        slot: Slot,
        amount: QuotaAmount,
    ) -> Option<ExceededLimit> {
        if amount <= self.available(queue, slot) {
            return None;
        }
        let mut asked = amount;
        self.path(queue).find_map(|node| {
            let borrowing = self.borrowing(node, slot);
            let (source, beyond) = match self.parent(node) {
                None if 0 <= borrowing => (LimitSource::Nominal, 0),
                _ => (LimitSource::Borrowing, borrowing),
            };
            let (limit, used) = (self.subtree(node, slot) + beyond, self.usage(node, slot));
            let exceeded = ExceededLimit { node, source, limit, used, asked };
            asked = (asked - self.local_available(node, slot)).max(0);
            (limit < used + exceeded.asked).then_some(exceeded)
        })
    }
}
