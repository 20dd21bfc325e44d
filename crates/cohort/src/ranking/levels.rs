//! Heads by borrowing level. A level depends on the cohorts that were asked for it, from the queue up
//! to the one that holds the demand: by whether what is left of the demand there fits what is free of
//! the cohort's quota. So heads wait at each cohort in the order of what is left of them, and a change
//! of use concerns those between what was free and what is. Never the top: nobody is above it.
//! Specification: cohort.md A.3, B.5.2, B.11.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Age, age, queue_key};
use crate::amount::{QuotaAmount, Slot};
use crate::forest::Forest;
use crate::node::QuotaNode;
use crate::order::QueueHead;

/// The smallest is first.
type LevelKey = (Reverse<i32>, u32, Age);

/// What is left of a head's demand at a cohort.
type RemainingDemand = (Slot, QuotaAmount, QuotaNode);

/// Heads in order.
#[derive(Clone, Debug)]
pub(super) struct BorrowingLevels {
    order: BTreeSet<LevelKey>,
    /// By queue: as it is in the order.
    keys: Vec<Option<LevelKey>>,
    /// By queue: where it waits.
    asked: Vec<Vec<(QuotaNode, RemainingDemand)>>,
    /// By cohort: the heads whose level depends on it.
    waiting: Vec<BTreeSet<RemainingDemand>>,
    /// By cohort, then slot: what was free of its quota, and what only the subtree could use, when
    /// the heads were ranked.
    free: Vec<Vec<(QuotaAmount, QuotaAmount)>>,
}

impl BorrowingLevels {
    pub(super) fn new(forest: &Forest) -> Self {
        let n_nodes = forest.len();
        Self {
            order: BTreeSet::new(),
            keys: vec![None; n_nodes],
            asked: vec![Vec::new(); n_nodes],
            waiting: vec![BTreeSet::new(); n_nodes],
            free: forest.nodes().map(|node| free(forest, node)).collect(),
        }
    }

    pub(super) fn first(&self) -> Option<QuotaNode> {
        self.order.first().map(|(.., (.., queue))| *queue)
    }

    /// `changed`: nodes of other use; `renewed`: queues with another head.
    pub(super) fn update(
        &mut self,
        forest: &Forest,
        heads: &[Option<QueueHead>],
        changed: Vec<QuotaNode>,
        renewed: Vec<QuotaNode>,
    ) {
        let mut stale: BTreeSet<QuotaNode> = renewed.into_iter().collect();
        for node in changed {
            match forest.is_queue(node) {
                true => stale.extend(self.keys[node.index()].map(|_| node)),
                false => self.note_concerned(forest, node, &mut stale),
            }
        }
        for queue in stale {
            self.rank(forest, queue, heads[queue.index()].as_ref());
        }
    }

    /// The heads that the change of a cohort concerns.
    fn note_concerned(
        &mut self,
        forest: &Forest,
        node: QuotaNode,
        stale: &mut BTreeSet<QuotaNode>,
    ) {
        let now = free(forest, node);
        let before = std::mem::replace(&mut self.free[node.index()], now);
        let waiting = &self.waiting[node.index()];
        for (slot, before) in forest.slots().iter().zip(before) {
            let now = self.free[node.index()][slot.index()];
            let (least, most) = match before.1 == now.1 {
                // Less than the smaller one is held as before, more than the larger one is not.
                true => (before.0.min(now.0), before.0.max(now.0)),
                // Another rest goes on to the next cohort.
                false => (QuotaAmount::MIN, QuotaAmount::MAX),
            };
            let first = QuotaNode::new(0);
            let concerned = waiting
                .range((slot, least, first)..)
                .take_while(|&&(other, rest, _)| other == slot && rest <= most);
            stale.extend(concerned.map(|&(.., queue)| queue));
        }
    }

    fn rank(&mut self, forest: &Forest, queue: QuotaNode, head: Option<&QueueHead>) {
        for (node, rest) in std::mem::take(&mut self.asked[queue.index()]) {
            self.waiting[node.index()].remove(&rest);
        }
        let key = head.map(|head| {
            let mut level = 0;
            for (slot, amount) in head.demand.iter() {
                level = level.max(self.ask(forest, queue, slot, amount));
            }
            (queue_key(forest, queue), level, age(forest, head))
        });
        let before = std::mem::replace(&mut self.keys[queue.index()], key);
        if before != key {
            before.iter().for_each(|before| {
                self.order.remove(before);
            });
            self.order.extend(key);
        }
    }

    /// Level of one amount; the head waits at the cohorts that have a say in it.
    fn ask(&mut self, forest: &Forest, queue: QuotaNode, slot: Slot, amount: QuotaAmount) -> u32 {
        let holder = forest.holder(queue, slot, amount, |node, rest| {
            if node != queue && forest.parent(node).is_some() {
                let rest = (slot, rest, queue);
                self.waiting[node.index()].insert(rest);
                self.asked[queue.index()].push((node, rest));
            }
        });
        holder.0
    }
}

/// By slot: what is free of the node's quota, and what nobody else can use of that.
fn free(forest: &Forest, node: QuotaNode) -> Vec<(QuotaAmount, QuotaAmount)> {
    let of_slot = |slot| {
        let free = forest.subtree(node, slot) - forest.usage(node, slot);
        (free, forest.local_available(node, slot))
    };
    forest.slots().iter().map(of_slot).collect()
}
