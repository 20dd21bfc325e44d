//! Which queue is served next: by borrowing level, or by a tournament of shares. Specification:
//! cohort.md A.11 step 2, B.5.2.

use std::cmp::Ordering;
use std::cmp::Reverse;

use crate::amount::Demand;
use crate::forest::Forest;
use crate::group::Groups;
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

/// A head of which is known how it stands, as long as what it depends on is as it was.
#[derive(Clone, Debug)]
struct Ranked {
    identity: u64,
    head: Head,
    /// Of the nodes that it depends on, so many on the way up.
    stamp: u64,
    n_nodes: usize,
    /// Borrowing level; 0 under fair sharing.
    level: u32,
    /// Under fair sharing with the head admitted: whether each node on the way up borrows of what it
    /// asks for, and its share; the queue first.
    way: Vec<(bool, Share)>,
}

/// A node with the head that has won below it.
#[derive(Clone, Copy, Debug)]
struct Contender {
    queue: QuotaNode,
    borrows: bool,
    share: Share,
}

/// The heads of queues with what is known of them, so that a change of one queue is looked at in
/// that queue and above only (B.11).
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// By queue.
    known: Vec<Option<Ranked>>,
    /// By node, for the tournament.
    best: Vec<Option<Contender>>,
}

impl Ranking {
    /// Places of the heads that are not known. A head is a queue with a number that is another one
    /// when the head, or what it asks for, is another one.
    pub fn unknown(&self, heads: &[(QuotaNode, u64)]) -> Vec<usize> {
        let is_known = |&(queue, identity): &(QuotaNode, u64)| {
            let known = self.known.get(queue.index()).and_then(Option::as_ref);
            known.is_some_and(|ranked| ranked.identity == identity)
        };
        (0..heads.len()).filter(|&place| !is_known(&heads[place])).collect()
    }

    /// What the head of a queue is.
    pub fn enter(&mut self, identity: u64, head: Head) {
        let place = head.queue.index();
        if self.known.len() <= place {
            self.known.resize(place + 1, None);
        }
        let (n_nodes, level, way) = (0, 0, Vec::new());
        // No path has this stamp: it is ranked before it is compared.
        let stamp = u64::MAX;
        self.known[place] = Some(Ranked { identity, head, stamp, n_nodes, level, way });
    }

    /// Place of the head that is served first, of heads that are all known.
    pub fn next(
        &mut self,
        groups: &mut Groups,
        heads: &[(QuotaNode, u64)],
        fair_sharing: bool,
    ) -> Option<usize> {
        let forest = groups.forest_mut();
        for &(queue, _) in heads {
            let Some(known) = &mut self.known[queue.index()] else { continue };
            if forest.stamp(queue, known.n_nodes) != known.stamp {
                known.rank(forest, fair_sharing);
            }
        }
        match fair_sharing {
            false => {
                let places = 0..heads.len();
                places.min_by(|&l, &r| self.by_level(forest, heads[l].0, heads[r].0))
            }
            true => {
                let queue = self.tournament(forest, heads)?;
                heads.iter().position(|head| head.0 == queue)
            }
        }
    }

    fn of(&self, queue: QuotaNode) -> Option<&Ranked> {
        self.known[queue.index()].as_ref()
    }

    fn by_level(&self, forest: &Forest, l: QuotaNode, r: QuotaNode) -> Ordering {
        let level = |queue| self.of(queue).map_or(0, |ranked| ranked.level);
        let by_level = || level(l).cmp(&level(r));
        by_queue(forest, l, r).then_with(by_level).then_with(|| self.by_age(forest, l, r))
    }

    fn by_age(&self, forest: &Forest, l: QuotaNode, r: QuotaNode) -> Ordering {
        let key = |queue| {
            self.of(queue).map(|ranked| (Reverse(ranked.head.priority), ranked.head.created_micros))
        };
        key(l).cmp(&key(r)).then_with(|| forest.name(l).cmp(forest.name(r)))
    }

    /// At each cohort, from below, the winners of its children compete; then the winners of all
    /// tops.
    fn tournament(&mut self, forest: &Forest, heads: &[(QuotaNode, u64)]) -> Option<QuotaNode> {
        let mut best = std::mem::take(&mut self.best);
        best.clear();
        best.resize(forest.len(), None);
        for &(queue, _) in heads {
            best[queue.index()] = self.contender(queue, 0);
        }
        let mut first: Option<QuotaNode> = None;
        for &node in forest.up() {
            let Some(winner) = best[node.index()] else { continue };
            let Some(parent) = forest.parent(node) else {
                let before = first.filter(|&other| self.is_first(forest, other, winner.queue));
                first = before.or(Some(winner.queue));
                continue;
            };
            let steps = forest.depth(winner.queue) - forest.depth(node);
            let own = self.contender(winner.queue, steps as usize);
            let place = &mut best[parent.index()];
            *place = match (*place, own) {
                (Some(l), Some(r)) if self.compare(forest, &l, &r).is_lt() => Some(l),
                (before, own) => own.or(before),
            };
        }
        self.best = best;
        first
    }

    /// What the queue's head is, seen so many steps above the queue.
    fn contender(&self, queue: QuotaNode, steps: usize) -> Option<Contender> {
        let &(borrows, share) = self.of(queue)?.way.get(steps)?;
        Some(Contender { queue, borrows, share })
    }

    fn compare(&self, forest: &Forest, l: &Contender, r: &Contender) -> Ordering {
        by_queue(forest, l.queue, r.queue)
            .then_with(|| l.borrows.cmp(&r.borrows))
            .then_with(|| l.share.compare(&r.share))
            .then_with(|| self.by_age(forest, l.queue, r.queue))
    }

    /// Of the winners of two trees.
    fn is_first(&self, forest: &Forest, l: QuotaNode, r: QuotaNode) -> bool {
        by_queue(forest, l, r).then_with(|| self.by_age(forest, l, r)).is_lt()
    }
}

/// Higher `spec.priority` first.
fn by_queue(forest: &Forest, l: QuotaNode, r: QuotaNode) -> Ordering {
    forest.node(r).queue_priority.cmp(&forest.node(l).queue_priority)
}

impl Ranked {
    fn rank(&mut self, forest: &mut Forest, fair_sharing: bool) {
        let queue = self.head.queue;
        match fair_sharing {
            false => (self.level, self.n_nodes) = forest.level(queue, &self.head.demand),
            true => {
                self.way = forest.way_up(&self.head);
                // A top neither borrows nor has a share.
                self.n_nodes = self.way.len() - 1;
            }
        }
        self.stamp = forest.stamp(queue, self.n_nodes);
    }
}

impl Forest {
    /// Each node up to the top with the head admitted.
    fn way_up(&mut self, head: &Head) -> Vec<(bool, Share)> {
        self.without_trace(head.queue, |forest| {
            forest.add(head.queue, &head.demand);
            let state = |node| (forest.borrows_of(node, &head.demand), forest.share(node));
            let way = forest.path(head.queue).map(state).collect();
            forest.remove(head.queue, &head.demand);
            way
        })
    }
}
