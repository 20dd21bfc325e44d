//! The tournament of shares. What a node's winner is like there depends on what is in use at and
//! below the node; so a change is followed up to the top, and nowhere else. Specification: cohort.md
//! A.11 step 2, B.5.2.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Age, age, queue_key};
use crate::forest::Forest;
use crate::node::QuotaNode;
use crate::order::QueueHead;

/// A node's winner as it is judged at that node: whether it borrows, the share. The smallest wins.
type ShareKey = (Reverse<i32>, bool, (bool, u64), Age);

/// Who has won where.
#[derive(Clone, Debug)]
pub(super) struct ShareTournament {
    /// By node: who has won there.
    winners: Vec<Option<ShareKey>>,
    /// By cohort: the winners of its children.
    fields: Vec<BTreeSet<ShareKey>>,
    /// The winners of the tops.
    tops: BTreeSet<ShareKey>,
}

impl ShareTournament {
    pub(super) fn new(n_nodes: usize) -> Self {
        let (winners, fields) = (vec![None; n_nodes], vec![BTreeSet::new(); n_nodes]);
        Self { winners, fields, tops: BTreeSet::new() }
    }

    pub(super) fn first(&self) -> Option<QuotaNode> {
        self.tops.first().map(queue_of)
    }

    /// `changed`: nodes of other use; `renewed`: queues with another head.
    pub(super) fn update(
        &mut self,
        forest: &mut Forest,
        heads: &[Option<QueueHead>],
        changed: Vec<QuotaNode>,
        renewed: Vec<QuotaNode>,
    ) {
        // Children before their parents.
        let place = |forest: &Forest, node| (Reverse(forest.depth(node)), node);
        let stale = changed.into_iter().chain(renewed);
        let mut open: BTreeSet<_> = stale.map(|node| place(forest, node)).collect();
        while let Some((_, node)) = open.pop_first() {
            self.judge(forest, heads, node);
            open.extend(forest.parent(node).map(|parent| place(forest, parent)));
        }
    }

    /// Who has won at the node, and what that means one step above.
    fn judge(&mut self, forest: &mut Forest, heads: &[Option<QueueHead>], node: QuotaNode) {
        let winner = match forest.is_queue(node) {
            true => Some(node),
            false => self.fields[node.index()].first().map(queue_of),
        };
        let head = winner.and_then(|queue| heads[queue.index()].as_ref());
        let key = head.map(|head| {
            let (borrows, share) = forest.standing(node, head);
            (queue_key(forest, head.queue), borrows, share.key(), age(forest, head))
        });
        let before = std::mem::replace(&mut self.winners[node.index()], key);
        if before == key {
            return;
        }
        let field = match forest.parent(node) {
            Some(parent) => &mut self.fields[parent.index()],
            None => &mut self.tops,
        };
        before.iter().for_each(|before| {
            field.remove(before);
        });
        field.extend(key);
    }
}

fn queue_of(key: &ShareKey) -> QuotaNode {
    let (.., (.., queue)) = key;
    *queue
}
