//! How much of what could be lent to it a queue or cohort borrows, by weight. Specification:
//! cohort.md A.9.1, T.4.

use std::cmp::Ordering;

use crate::amount::{QuotaAmount, QuotaDemand, Slot, is_unlimited};
use crate::forest::Forest;
use crate::node::QuotaNode;

/// The share of a node as fair sharing compares it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Largest part of what its cohort could have that it borrows, in thousandths.
    ratio: f64,
    weight: f64,
}

impl Share {
    fn new(ratio: f64, weight: f64) -> Self {
        Self { ratio, weight }
    }

    /// It borrows, and has weight 0: any finite share is smaller.
    pub fn is_infinite(&self) -> bool {
        self.weight == 0.0 && self.ratio != 0.0
    }

    /// In thousandths, divided by the weight.
    pub fn value(&self) -> f64 {
        if self.is_infinite() {
            f64::INFINITY
        } else if self.ratio == 0.0 {
            0.0
        } else {
            self.ratio / self.weight
        }
    }

    /// Rounded up; the largest number for an infinite share.
    pub fn published(&self) -> i64 {
        if self.is_infinite() { i64::MAX } else { self.value().ceil() as i64 }
    }

    /// Compares as the share does.
    pub(crate) fn key(&self) -> (bool, u64) {
        let is_infinite = self.is_infinite();
        let number = if is_infinite { self.ratio } else { self.value() };
        // Of numbers from 0 on the bits are in the order of the numbers.
        (is_infinite, number.to_bits())
    }

    /// Two infinite ones compare without weights.
    pub fn compare(&self, other: &Share) -> Ordering {
        match (self.is_infinite(), other.is_infinite()) {
            (true, true) => self.ratio.total_cmp(&other.ratio),
            _ => self.value().total_cmp(&other.value()),
        }
    }
}

impl Forest {
    /// How much more than its quota the node uses. Of what nobody has a quota of, nobody uses too
    /// much: a capability alone is a ceiling and no more (B.2).
    pub(crate) fn over(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        let over = self.usage(node, slot) - self.subtree(node, slot);
        if 0 < over && !self.is_free(node, slot) { over } else { 0 }
    }

    /// Share of a node; that of a top is 0.
    pub fn share(&self, node: QuotaNode) -> Share {
        let weight = self.node(node).weight;
        let Some(parent) = self.parent(node) else {
            return Share::new(0.0, weight);
        };
        let mut ratio = 0.0_f64;
        for slots in self.slots.by_resource() {
            let over: QuotaAmount = slots.iter().map(|&slot| self.over(node, slot)).sum();
            let lent: QuotaAmount = slots.iter().map(|&slot| self.potential(parent, slot)).sum();
            if 0 < over && 0 < lent && !is_unlimited(lent) {
                ratio = ratio.max(over as f64 * 1000.0 / lent as f64);
            }
        }
        Share::new(ratio, weight)
    }

    /// Whether the node uses more than its quota of anything; a top does not borrow.
    pub fn borrows(&self, node: QuotaNode) -> bool {
        let is_over = |slot| 0 < self.over(node, slot);
        self.parent(node).is_some() && self.slots.iter().any(is_over)
    }

    /// Whether it does in something of this.
    pub(crate) fn borrows_of(&self, node: QuotaNode, demand: &QuotaDemand) -> bool {
        self.parent(node).is_some() && demand.slots().any(|slot| 0 < self.over(node, slot))
    }
}
