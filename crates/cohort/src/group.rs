//! Groups that hold quota, the one that wants some, and in which order groups are taken.
//! Specification: cohort.md A.4, A.5, B.6.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::amount::QuotaDemand;
use crate::forest::Forest;
use crate::node::QuotaNode;
use crate::order::{self, QueueHead};
use crate::ranks::GroupRanks;

/// A group in [`Groups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(u32);

impl GroupId {
    /// Its place in [`Groups`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A group that holds quota.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its queue.
    pub queue: QuotaNode,
    /// Of the whole group.
    pub priority: i32,
    /// Its age, in microseconds since 1970.
    pub created_micros: i64,
    /// When it got its quota, in microseconds since 1970.
    pub admitted_micros: i64,
    /// Unique; the last tie.
    pub uid: Arc<str>,
    /// It is to go and holds quota still.
    pub evicting: bool,
    /// What it holds.
    pub holds: QuotaDemand,
}

/// The group that is to be accommodated.
#[derive(Clone, Debug)]
pub struct QuotaPreemptor {
    /// Its queue.
    pub queue: QuotaNode,
    /// Of the whole group.
    pub priority: i32,
    /// Its age, in microseconds since 1970.
    pub created_micros: i64,
    /// What it asks for.
    pub demand: QuotaDemand,
}

/// All groups that hold quota, and the trees that they hold it in.
#[derive(Clone, Debug)]
pub struct Groups {
    forest: Forest,
    rows: Vec<Group>,
    /// It does not hold its quota for the moment.
    taken: Vec<bool>,
    /// By group: it is one; else its number is free.
    is_in: Vec<bool>,
    free: Vec<GroupId>,
    by_queue: Vec<Vec<GroupId>>,
    /// By group: where it is in the list of its queue.
    places: Vec<usize>,
    ranks: GroupRanks,
    /// Ranks in place of `ranks`, by group, while an order within queues is in force.
    queue_ranks: Option<Vec<u32>>,
}

/// What decides who is taken first, in this order: it is not being evicted, it is of the preemptor's
/// queue, `spec.priority` of its queue (B.6), keys 3 to 6 of A.5.
pub(crate) type Precedence = (bool, bool, i32, u32);

impl Groups {
    /// None yet.
    pub fn new(forest: Forest) -> Self {
        Self {
            by_queue: vec![Vec::new(); forest.len()],
            forest,
            rows: Vec::new(),
            taken: Vec::new(),
            is_in: Vec::new(),
            free: Vec::new(),
            places: Vec::new(),
            ranks: GroupRanks::default(),
            queue_ranks: None,
        }
    }

    /// The trees with what the groups use.
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    pub(crate) fn forest_mut(&mut self) -> &mut Forest {
        &mut self.forest
    }

    /// Quota that is kept for somebody who holds none yet: a claim, or a reservation (A.11, B.7).
    pub fn keep(&mut self, queue: QuotaNode, demand: &QuotaDemand) {
        self.forest.add(queue, demand);
    }

    /// It is no longer kept.
    pub fn let_go(&mut self, queue: QuotaNode, demand: &QuotaDemand) {
        self.forest.remove(queue, demand);
    }

    /// What the group holds has changed: some of its pods were placed, or have gone.
    pub fn change(&mut self, id: GroupId, holds: QuotaDemand) {
        let was_taken = self.taken[id.index()];
        self.take(id);
        self.rows[id.index()].holds = holds;
        if !was_taken {
            self.put_back(id);
        }
    }

    /// Place of the head that is served first.
    pub fn next_head(&mut self, heads: &[QueueHead], fair_sharing: bool) -> Option<usize> {
        match fair_sharing {
            false => order::by_level(&self.forest, heads),
            true => order::by_shares(&mut self.forest, heads),
        }
    }

    /// Enters a group, which holds its quota from now on. It may get the number of one that was
    /// removed.
    pub fn insert(&mut self, group: Group) -> GroupId {
        self.forest.add(group.queue, &group.holds);
        let of_queue = &mut self.by_queue[group.queue.index()];
        let place = of_queue.len();
        let id = match self.free.pop() {
            Some(id) => {
                self.rows[id.index()] = group;
                (self.taken[id.index()], self.is_in[id.index()]) = (false, true);
                self.places[id.index()] = place;
                id
            }
            None => {
                let id = GroupId(u32::try_from(self.rows.len()).expect("fewer than 2^32 groups"));
                self.rows.push(group);
                self.taken.push(false);
                self.is_in.push(true);
                self.places.push(place);
                id
            }
        };
        of_queue.push(id);
        self.ranks.came(id);
        id
    }

    /// Takes the group out; there is none of this number from now on.
    pub fn remove(&mut self, id: GroupId) {
        self.take(id);
        self.is_in[id.index()] = false;
        let of_queue = &mut self.by_queue[self.rows[id.index()].queue.index()];
        let place = self.places[id.index()];
        of_queue.swap_remove(place);
        if let Some(moved) = of_queue.get(place) {
            self.places[moved.index()] = place;
        }
        self.free.push(id);
        self.ranks.went(id);
    }

    /// The group.
    pub fn get(&self, id: GroupId) -> &Group {
        &self.rows[id.index()]
    }

    /// Whether the group holds its quota.
    pub fn holds(&self, id: GroupId) -> bool {
        !self.taken[id.index()]
    }

    /// Those of a queue that hold quota.
    pub fn of_queue(&self, queue: QuotaNode) -> impl Iterator<Item = GroupId> + '_ {
        self.by_queue[queue.index()].iter().copied().filter(|&id| self.holds(id))
    }

    /// The group gives its quota up.
    pub fn take(&mut self, id: GroupId) {
        if !std::mem::replace(&mut self.taken[id.index()], true) {
            let group = &self.rows[id.index()];
            self.forest.remove(group.queue, &group.holds);
        }
    }

    /// The group has its quota again.
    pub fn put_back(&mut self, id: GroupId) {
        if std::mem::replace(&mut self.taken[id.index()], false) {
            let group = &self.rows[id.index()];
            self.forest.add(group.queue, &group.holds);
        }
    }

    /// Brings [`Groups::precedence`] up to date.
    pub(crate) fn rank(&mut self) {
        self.ranks.update(&self.rows, &self.is_in);
    }

    /// Groups of one queue are taken in this order, until [`Groups::forget_order`]. The places that a
    /// queue's groups have among all groups stay the same; equal groups keep their order. It is key 3
    /// of A.5, for queues whose groups belong to accounts (A.11).
    pub fn order_within_queues(&mut self, compare: impl Fn(GroupId, GroupId) -> Ordering) {
        self.rank();
        let all = self.rows.iter().enumerate().filter(|(index, _)| self.is_in[*index]);
        let groups = all.filter_map(|(index, _)| u32::try_from(index).ok()).map(GroupId);
        let mut ranks = vec![0; self.rows.len()];
        groups.for_each(|group| ranks[group.index()] = self.ranks.of(group));
        for of_queue in &self.by_queue {
            let mut places: Vec<u32> = of_queue.iter().map(|&id| self.ranks.of(id)).collect();
            places.sort_unstable();
            let mut ordered = of_queue.clone();
            ordered.sort_by(|&l, &r| {
                compare(l, r).then_with(|| self.ranks.of(l).cmp(&self.ranks.of(r)))
            });
            for (group, place) in ordered.into_iter().zip(places) {
                ranks[group.index()] = place;
            }
        }
        self.queue_ranks = Some(ranks);
    }

    /// Ends the order within queues.
    pub fn forget_order(&mut self) {
        self.queue_ranks = None;
    }

    /// The group with the smallest is taken first for one in the queue `own`.
    pub(crate) fn precedence(&self, own: QuotaNode, id: GroupId) -> Precedence {
        let group = self.get(id);
        let queue_priority = self.forest.node(group.queue).queue_priority;
        let rank = match &self.queue_ranks {
            Some(ranks) => ranks[id.index()],
            None => self.ranks.of(id),
        };
        (!group.evicting, group.queue == own, queue_priority, rank)
    }
}
