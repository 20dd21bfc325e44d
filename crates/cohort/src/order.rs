//! Which queue is served next: by borrowing level, or by a tournament of shares. Specification:
//! cohort.md A.11 step 2, B.5.2.

use std::cmp::Ordering;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::amount::Demand;
use crate::forest::Forest;
use crate::node::QuotaNode;
use crate::share::Share;

/// The first group that waits in a queue.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its queue; no two heads have the same.
    pub queue: QuotaNode,
    /// Of the group.
    pub priority: i32,
    /// Its age, in microseconds since 1970.
    pub created_micros: i64,
    /// What it asks for.
    pub demand: Demand,
}

/// A node with the head that has won below it.
#[derive(Clone, Copy, Debug)]
struct Contender {
    head: usize,
    /// With the head admitted, the node borrows of what the head asks for.
    borrows: bool,
    share: Share,
}

impl Forest {
    /// Place of the head that is served first, without fair sharing.
    pub(crate) fn next_head(&self, heads: &[Head]) -> Option<usize> {
        let level = |head: &Head| self.classify(head.queue, &head.demand, false).level;
        let levels: Vec<u32> = heads.iter().map(level).collect();
        (0..heads.len()).min_by(|&l, &r| {
            let by_queue = self.queue_priority(&heads[r]).cmp(&self.queue_priority(&heads[l]));
            let by_level = by_queue.then_with(|| levels[l].cmp(&levels[r]));
            by_level.then_with(|| self.by_age(&heads[l], &heads[r]))
        })
    }

    /// Place of the head that wins the tournament of fair sharing. Nothing is in use in the end
    /// that was not before.
    pub(crate) fn next_fair_head(&mut self, heads: &[Head]) -> Option<usize> {
        let mut rounds: BTreeMap<(Reverse<u32>, QuotaNode), Vec<Contender>> = BTreeMap::new();
        // By head, the state of each node on its way up, its queue first.
        let ways: Vec<Vec<(bool, Share)>> = heads.iter().map(|head| self.way_up(head)).collect();
        for (head, way) in ways.iter().enumerate() {
            let queue = heads[head].queue;
            let key = (Reverse(self.node(queue).depth), queue);
            rounds.insert(key, vec![contender(head, way, 0)]);
        }
        let mut winners: Vec<usize> = Vec::new();
        while let Some(((Reverse(depth), node), contenders)) = rounds.pop_first() {
            let better = |l: &Contender, r: &Contender| self.compare(heads, l, r);
            let Some(best) = contenders.iter().min_by(|l, r| better(l, r)) else { continue };
            let Some(parent) = self.parent(node) else {
                winners.push(best.head);
                continue;
            };
            let way = &ways[best.head];
            let steps = self.node(heads[best.head].queue).depth - depth;
            let own = contender(best.head, way, steps as usize);
            rounds.entry((Reverse(depth - 1), parent)).or_default().push(own);
        }
        winners.into_iter().min_by(|&l, &r| {
            let by_queue = self.queue_priority(&heads[r]).cmp(&self.queue_priority(&heads[l]));
            by_queue.then_with(|| self.by_age(&heads[l], &heads[r]))
        })
    }

    /// Each node up to the top with the head admitted.
    fn way_up(&mut self, head: &Head) -> Vec<(bool, Share)> {
        self.add(head.queue, &head.demand);
        let state = |node| (self.borrows_of(node, &head.demand), self.share(node));
        let way = self.path(head.queue).map(state).collect();
        self.remove(head.queue, &head.demand);
        way
    }

    fn compare(&self, heads: &[Head], l: &Contender, r: &Contender) -> Ordering {
        let (head_l, head_r) = (&heads[l.head], &heads[r.head]);
        self.queue_priority(head_r)
            .cmp(&self.queue_priority(head_l))
            .then_with(|| l.borrows.cmp(&r.borrows))
            .then_with(|| l.share.compare(&r.share))
            .then_with(|| self.by_age(head_l, head_r))
    }

    fn queue_priority(&self, head: &Head) -> i32 {
        self.node(head.queue).queue_priority
    }

    fn by_age(&self, l: &Head, r: &Head) -> Ordering {
        let key = |head: &Head| (Reverse(head.priority), head.created_micros);
        key(l).cmp(&key(r)).then_with(|| self.name(l.queue).cmp(self.name(r.queue)))
    }
}

fn contender(head: usize, way: &[(bool, Share)], step: usize) -> Contender {
    let (borrows, share) = way[step];
    Contender { head, borrows, share }
}
