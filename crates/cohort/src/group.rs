//! Groups that hold quota, the one that wants some, and in which order groups are taken.
//! Specification: cohort.md A.4, A.5, B.6.

use std::cmp::Ordering;
use std::cmp::Reverse;
use std::sync::Arc;

use crate::amount::Demand;
use crate::forest::Forest;
use crate::node::QuotaNode;
use crate::order::{self, Head};

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
    pub holds: Demand,
}

/// The group that is to be accommodated.
#[derive(Clone, Debug)]
pub struct Preemptor {
    /// Its queue.
    pub queue: QuotaNode,
    /// Of the whole group.
    pub priority: i32,
    /// Its age, in microseconds since 1970.
    pub created_micros: i64,
    /// What it asks for.
    pub demand: Demand,
}

/// All groups that hold quota, and the trees that they hold it in.
#[derive(Clone, Debug)]
pub struct Groups {
    forest: Forest,
    rows: Vec<Group>,
    /// It does not hold its quota for the moment.
    taken: Vec<bool>,
    by_queue: Vec<Vec<GroupId>>,
}

impl Groups {
    /// None yet.
    pub fn new(forest: Forest) -> Self {
        let by_queue = vec![Vec::new(); forest.len()];
        Self { forest, rows: Vec::new(), taken: Vec::new(), by_queue }
    }

    /// The trees with what the groups use.
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    pub(crate) fn forest_mut(&mut self) -> &mut Forest {
        &mut self.forest
    }

    /// Quota that is kept for somebody who holds none yet: a claim, or a reservation (A.11, B.7).
    pub fn keep(&mut self, queue: QuotaNode, demand: &Demand) {
        self.forest.add(queue, demand);
    }

    /// It is no longer kept.
    pub fn let_go(&mut self, queue: QuotaNode, demand: &Demand) {
        self.forest.remove(queue, demand);
    }

    /// What the group holds has changed: some of its pods were placed, or have gone.
    pub fn change(&mut self, id: GroupId, holds: Demand) {
        let was_taken = self.taken[id.index()];
        self.take(id);
        self.rows[id.index()].holds = holds;
        if !was_taken {
            self.put_back(id);
        }
    }

    /// Place of the head that is served first.
    pub fn next_head(&mut self, heads: &[Head], fair_sharing: bool) -> Option<usize> {
        match fair_sharing {
            false => order::by_level(&self.forest, heads),
            true => order::by_shares(&mut self.forest, heads),
        }
    }

    /// Enters a group, which holds its quota from now on.
    pub fn insert(&mut self, group: Group) -> GroupId {
        let id = GroupId(u32::try_from(self.rows.len()).expect("fewer than 2^32 groups"));
        self.forest.add(group.queue, &group.holds);
        self.by_queue[group.queue.index()].push(id);
        self.rows.push(group);
        self.taken.push(false);
        id
    }

    /// Takes the group that was entered last out again.
    pub(crate) fn remove_last(&mut self) {
        let (Some(group), Some(taken)) = (self.rows.pop(), self.taken.pop()) else { return };
        if !taken {
            self.forest.remove(group.queue, &group.holds);
        }
        self.by_queue[group.queue.index()].pop();
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

    /// Which group is taken first for one in the queue `own` (A.5; of other queues those of lower
    /// `spec.priority` first, B.6).
    pub(crate) fn order(&self, own: QuotaNode, l: GroupId, r: GroupId) -> Ordering {
        let (l, r) = (self.get(l), self.get(r));
        let key = |group: &Group| {
            let queue = self.forest.node(group.queue);
            (
                !group.evicting,
                group.queue == own,
                queue.queue_priority,
                group.priority,
                Reverse(group.admitted_micros),
            )
        };
        key(l).cmp(&key(r)).then_with(|| l.uid.cmp(&r.uid))
    }
}
