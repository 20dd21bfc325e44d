//! Which queue is served next, by the rule itself: by borrowing level, or by a tournament of shares.
//! Specification: cohort.md A.11 step 2, B.5.2.

use std::cmp::{Ordering, Reverse};

use crate::amount::QuotaDemand;
use crate::forest::Forest;
use crate::node::QuotaNode;
use crate::share::Share;

/// The first group that waits in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueHead {
    /// Its queue; no two heads have the same.
    pub queue: QuotaNode,
    /// Of the group.
    pub priority: i32,
    /// Its age, in microseconds since 1970.
    pub created_micros: i64,
    /// What it asks for.
    pub demand: QuotaDemand,
}

/// Place of the head whose demand is nearest to its queue's own quota.
pub(crate) fn by_level(forest: &Forest, heads: &[QueueHead]) -> Option<usize> {
    let level = |head: &QueueHead| forest.level(head.queue, &head.demand);
    let compare = |&l: &usize, &r: &usize| {
        let (l, r) = (&heads[l], &heads[r]);
        let by_level = || level(l).cmp(&level(r));
        by_queue(forest, l, r).then_with(by_level).then_with(|| by_age(forest, l, r))
    };
    (0..heads.len()).min_by(compare)
}

/// Place of the head that wins the tournament: at each cohort, from below, the winners of its
/// children compete; then the winners of all tops, which have no shares.
pub(crate) fn by_shares(forest: &mut Forest, heads: &[QueueHead]) -> Option<usize> {
    let tops: Vec<QuotaNode> = forest.nodes().filter(|&top| forest.parent(top).is_none()).collect();
    let winners: Vec<usize> =
        tops.into_iter().filter_map(|top| winner(forest, heads, top)).collect();
    winners.into_iter().min_by(|&l, &r| {
        let (l, r) = (&heads[l], &heads[r]);
        by_queue(forest, l, r).then_with(|| by_age(forest, l, r))
    })
}

/// Of the heads at and below a node.
fn winner(forest: &mut Forest, heads: &[QueueHead], node: QuotaNode) -> Option<usize> {
    if forest.is_queue(node) {
        return heads.iter().position(|head| head.queue == node);
    }
    let mut best: Option<(usize, (bool, Share))> = None;
    for child in forest.node(node).children.clone() {
        let Some(at) = winner(forest, heads, child) else { continue };
        let standing = forest.standing(child, &heads[at]);
        let is_better = |&(other, before): &(usize, (bool, Share))| {
            let (l, r) = (&heads[at], &heads[other]);
            let by_share = || standing.0.cmp(&before.0).then_with(|| standing.1.compare(&before.1));
            by_queue(forest, l, r).then_with(by_share).then_with(|| by_age(forest, l, r)).is_lt()
        };
        if best.as_ref().is_none_or(is_better) {
            best = Some((at, standing));
        }
    }
    best.map(|(at, _)| at)
}

/// Higher `spec.priority` first.
fn by_queue(forest: &Forest, l: &QueueHead, r: &QueueHead) -> Ordering {
    let priority = |head: &QueueHead| Reverse(forest.node(head.queue).queue_priority);
    priority(l).cmp(&priority(r))
}

fn by_age(forest: &Forest, l: &QueueHead, r: &QueueHead) -> Ordering {
    let key = |head: &QueueHead| (Reverse(head.priority), head.created_micros);
    key(l).cmp(&key(r)).then_with(|| forest.name(l.queue).cmp(forest.name(r.queue)))
}

impl Forest {
    /// With the head admitted: whether the node borrows something of what it asks for, and the
    /// node's share.
    pub(crate) fn standing(&mut self, node: QuotaNode, head: &QueueHead) -> (bool, Share) {
        self.with(head.queue, &head.demand, |forest| {
            (forest.borrows_of(node, &head.demand), forest.share(node))
        })
    }
}
