//! Whether a group fits, may preempt, or can never fit; its borrowing level; what a waiting head
//! keeps for itself. Specification: cohort.md A.3, A.11.

use crate::amount::{QuotaAmount, QuotaDemand, Slot};
use crate::forest::Forest;
use crate::node::QuotaNode;
use crate::policy::{BorrowWithin, ReclaimWithin};

/// How a group stands, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AssignmentMode {
    /// It cannot fit, or may not preempt to fit.
    NoFit,
    /// It fits if others go.
    Preempt,
    /// It fits.
    Fit,
}

/// A group's mode with what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupAssessment {
    /// The worst of its resources.
    pub mode: AssignmentMode,
    /// The resources in mode Preempt.
    pub need: Vec<Slot>,
    /// Height of the smallest subtree that holds it within its own quota, the largest of its
    /// resources.
    pub level: u32,
}

impl Forest {
    /// Mode of a demand in a queue.
    pub fn classify(
        &self,
        queue: QuotaNode,
        demand: &QuotaDemand,
        fair_sharing: bool,
    ) -> GroupAssessment {
        let mut class = GroupAssessment { mode: AssignmentMode::Fit, need: Vec::new(), level: 0 };
        for (slot, amount) in demand.iter() {
            let (level, is_subtree) = self.smallest_holder(queue, slot, amount);
            class.level = class.level.max(level);
            let may_preempt = amount <= self.nominal(queue, slot)
                || is_subtree
                || self.may_preempt_while_borrowing(queue, fair_sharing);
            let mode = match () {
                () if !self.declares(queue, slot) => AssignmentMode::NoFit,
                () if self.potential(queue, slot) < amount => AssignmentMode::NoFit,
                () if amount <= self.available(queue, slot) => AssignmentMode::Fit,
                () if may_preempt => AssignmentMode::Preempt,
                () => AssignmentMode::NoFit,
            };
            class.mode = class.mode.min(mode);
            if mode == AssignmentMode::Preempt {
                class.need.push(slot);
            }
        }
        class
    }

    fn may_preempt_while_borrowing(&self, queue: QuotaNode, fair_sharing: bool) -> bool {
        let policy = self.node(queue).policy;
        policy.borrow_within != BorrowWithin::Never
            || fair_sharing && policy.reclaim_within != ReclaimWithin::Never
    }

    /// Borrowing level of a demand.
    pub(crate) fn level(&self, queue: QuotaNode, demand: &QuotaDemand) -> u32 {
        let levels =
            demand.iter().map(|(slot, amount)| self.smallest_holder(queue, slot, amount).0);
        levels.max().unwrap_or(0)
    }

    /// Height of the first node on the way up that holds the amount within its own quota, and
    /// whether it is smaller than the whole tree. Nobody: height of the top.
    fn smallest_holder(&self, queue: QuotaNode, slot: Slot, amount: QuotaAmount) -> (u32, bool) {
        self.holder(queue, slot, amount, |_, _| {})
    }

    /// The same; each node that is asked, with what is left of the amount there.
    pub(crate) fn holder(
        &self,
        queue: QuotaNode,
        slot: Slot,
        amount: QuotaAmount,
        mut asks: impl FnMut(QuotaNode, QuotaAmount),
    ) -> (u32, bool) {
        let mut rest = amount;
        let mut height = 0;
        for node in self.path(queue) {
            asks(node, rest);
            height = self.node(node).height;
            if self.usage(node, slot) + rest <= self.subtree(node, slot) {
                return (height, self.parent(node).is_some());
            }
            rest = (rest - self.local_available(node, slot)).max(0);
        }
        (height, false)
    }

    /// What is kept for the first group of a queue that waits for others to end, so that idle quota
    /// is not lent out meanwhile. With `Any` nothing: the queue can always take it back.
    pub fn reservation(&self, queue: QuotaNode, demand: &QuotaDemand, level: u32) -> QuotaDemand {
        if self.node(queue).policy.reclaim_within == ReclaimWithin::Any {
            return QuotaDemand::default();
        }
        let kept = |(slot, amount): (Slot, QuotaAmount)| {
            let own = self.nominal(queue, slot) - self.usage(queue, slot);
            let limit = if level == 0 { own } else { own + self.borrowing(queue, slot) };
            (slot, amount.min(limit).max(0))
        };
        QuotaDemand::new(demand.iter().map(kept))
    }
}
