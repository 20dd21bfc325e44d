//! Whose turn it is under fair sharing: from the top down always the side with the largest share.
//! Specification: cohort.md A.9.3.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::forest::Forest;
use crate::group::{GroupId, Groups};
use crate::node::QuotaNode;
use crate::share::Share;

/// What is known of every node at the moment.
pub(super) struct NodeShares<'a> {
    pub(super) forest: &'a Forest,
    pub(super) shares: &'a [Share],
    /// It uses more than its quota.
    pub(super) borrows: &'a [bool],
}

/// Candidates that are left, by queue.
#[derive(Default)]
pub(super) struct WaitingCandidates(BTreeMap<QuotaNode, QueueCandidates>);

#[derive(Default)]
struct QueueCandidates {
    /// Place in the order of all candidates, and the group; the first one last.
    groups: Vec<(usize, GroupId)>,
}

impl WaitingCandidates {
    pub(super) fn new(groups: &Groups, candidates: impl Iterator<Item = (usize, GroupId)>) -> Self {
        let mut waiting = Self::default();
        for (rank, group) in candidates {
            let line = waiting.0.entry(groups.get(group).queue).or_default();
            line.groups.push((rank, group));
        }
        waiting.0.values_mut().for_each(|line| line.groups.sort_by(|l, r| r.cmp(l)));
        waiting
    }

    pub(super) fn first(&self, queue: QuotaNode) -> Option<(usize, GroupId)> {
        self.0.get(&queue)?.groups.last().copied()
    }

    pub(super) fn pop(&mut self, queue: QuotaNode) -> Option<(usize, GroupId)> {
        self.0.get_mut(&queue)?.groups.pop()
    }

    pub(super) fn drop_queue(&mut self, queue: QuotaNode) -> Vec<(usize, GroupId)> {
        let line = self.0.remove(&queue).unwrap_or_default();
        line.groups.into_iter().rev().collect()
    }
}

/// Whose turn it is: the queues and cohorts that are still in (A.9.3).
pub(super) struct FairOrder {
    /// Children of each cohort that are not left out yet.
    children: BTreeMap<QuotaNode, Vec<QuotaNode>>,
    /// The preemptor's queue and what is above it.
    own_path: Vec<QuotaNode>,
}

impl FairOrder {
    pub(super) fn new(forest: &Forest, own: QuotaNode) -> Self {
        let mut children = BTreeMap::new();
        let mut open = vec![forest.top(own)];
        while let Some(node) = open.pop() {
            let row = forest.node(node);
            open.extend(&row.children);
            if !row.is_queue {
                children.insert(node, row.children.clone());
            }
        }
        Self { children, own_path: forest.path(own).collect() }
    }

    pub(super) fn next(
        &mut self,
        now: &NodeShares<'_>,
        waiting: &WaitingCandidates,
    ) -> Option<QuotaNode> {
        let top = *self.own_path.last()?;
        if now.forest.node(top).is_queue {
            return waiting.first(top).map(|_| top);
        }
        self.below(now, waiting, top)
    }

    /// The queue below this cohort; `None`: the cohort is left out.
    fn below(
        &mut self,
        now: &NodeShares<'_>,
        waiting: &WaitingCandidates,
        cohort: QuotaNode,
    ) -> Option<QuotaNode> {
        loop {
            let mut children = self.children.remove(&cohort)?;
            children.retain(|&child| self.is_in(now, waiting, child));
            let best = children.iter().copied().reduce(|best, next| {
                if later(now, waiting, best, next).is_lt() { next } else { best }
            });
            self.children.insert(cohort, children);
            let best = best?;
            if now.forest.node(best).is_queue {
                return Some(best);
            }
            if let Some(queue) = self.below(now, waiting, best) {
                return Some(queue);
            }
            if let Some(children) = self.children.get_mut(&cohort) {
                children.retain(|&child| child != best);
            }
        }
    }

    fn is_in(&self, now: &NodeShares<'_>, waiting: &WaitingCandidates, child: QuotaNode) -> bool {
        let is_own = self.own_path.contains(&child);
        let may_give = is_own || now.borrows[child.index()];
        let is_queue = now.forest.node(child).is_queue;
        may_give && (!is_queue || waiting.first(child).is_some())
    }
}

/// Greater: the first one is next. The larger share; then a cohort before a queue, of two queues
/// the one with the candidate that comes first, of two cohorts the smaller name.
fn later(
    now: &NodeShares<'_>,
    waiting: &WaitingCandidates,
    l: QuotaNode,
    r: QuotaNode,
) -> Ordering {
    let forest = now.forest;
    let (row_l, row_r) = (forest.node(l), forest.node(r));
    now.shares[l.index()].compare(&now.shares[r.index()]).then_with(|| {
        match (row_l.is_queue, row_r.is_queue) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => row_r.name.cmp(&row_l.name),
            (true, true) => {
                let rank = |queue| waiting.first(queue).map_or(usize::MAX, |(rank, _)| rank);
                rank(r).cmp(&rank(l))
            }
        }
    })
}
