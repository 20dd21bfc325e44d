//! Which queue is below which: the tree by `spec.parent`, or no tree at all.
//! Specification: plugins-jobs-queues.md 6.3, D14.

use std::collections::BTreeSet;

use vc_framework::Ask;
use vc_model::{Cluster, Id, Queue, QueueId};

const ROOT: &str = "root";

/// Whether jobs can be scheduled in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    Leaf,
    /// Some queue names it as parent: its jobs are not scheduled.
    Inner,
    /// Its ancestors do not reach root, or it is not in the session.
    #[default]
    Unusable,
}

/// The places of the queues of a session.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// By queue.
    places: Vec<Place>,
    /// `None`: no tree, or root is not there and acts as one with an empty spec (D14).
    root: Option<QueueId>,
}

#[derive(Clone, Debug, Default)]
struct Place {
    /// The queue, its parent and so on up to root. Of an unusable queue: itself.
    path: Vec<QueueId>,
    standing: Standing,
}

impl Shape {
    /// Every queue stands for itself.
    pub(super) fn flat(ask: Ask<'_>) -> Self {
        let mut shape = Self::default();
        for &queue in &ask.facts.queues {
            shape.put(queue, Place { path: vec![queue], standing: Standing::Leaf });
        }
        shape
    }

    /// The tree below root.
    pub(super) fn tree(ask: Ask<'_>) -> Self {
        let cluster = ask.cluster;
        let mut shape = Self { root: present(cluster, ROOT), ..Self::default() };
        let parents = ask.facts.queues.iter().filter_map(|&queue| parent(cluster, queue));
        let inner: BTreeSet<QueueId> = parents.collect();
        for &queue in &ask.facts.queues {
            let place = match path_to_root(cluster, queue) {
                None => Place { path: vec![queue], standing: Standing::Unusable },
                Some(path) if inner.contains(&queue) => Place { path, standing: Standing::Inner },
                Some(path) => Place { path, standing: Standing::Leaf },
            };
            shape.put(queue, place);
        }
        shape
    }

    fn put(&mut self, queue: QueueId, place: Place) {
        if self.places.len() <= queue.index() {
            self.places.resize(queue.index() + 1, Place::default());
        }
        self.places[queue.index()] = place;
    }

    pub(super) fn standing(&self, queue: QueueId) -> Standing {
        self.places.get(queue.index()).map_or(Standing::Unusable, |place| place.standing)
    }

    /// The queue, its parent and so on up to root; nothing for one that is not in the session.
    pub(super) fn path(&self, queue: QueueId) -> &[QueueId] {
        self.places.get(queue.index()).map_or(&[], |place| &place.path)
    }

    /// No queue below it, and none above but for root: of two such queues the ways part at
    /// themselves.
    pub(super) fn is_top_leaf(&self, queue: QueueId) -> bool {
        let n_above = usize::from(self.root.is_some());
        self.standing(queue) == Standing::Leaf && self.path(queue).len() == 1 + n_above
    }

    pub(super) fn root(&self) -> Option<QueueId> {
        self.root
    }

    /// The ancestor at this distance, 1 is the parent; root is none.
    pub(super) fn ancestor(&self, queue: QueueId, distance: usize) -> Option<QueueId> {
        let found = self.path(queue).get(distance).copied();
        found.filter(|&ancestor| Some(ancestor) != self.root)
    }

    /// Whether the two have one of their first `level` ancestors in common, root not counted.
    pub(super) fn share_ancestor(&self, l: QueueId, r: QueueId, level: usize) -> bool {
        let mut of_l = (1..=level).map_while(|distance| self.ancestor(l, distance));
        of_l.any(|one| (1..=level).any(|distance| self.ancestor(r, distance) == Some(one)))
    }

    /// Number of ancestors that the two have in common, from root down.
    pub(super) fn n_common(&self, l: QueueId, r: QueueId) -> usize {
        let ancestors = |queue| self.path(queue).iter().skip(1).rev();
        ancestors(l).zip(ancestors(r)).take_while(|(l, r)| l == r).count()
    }

    /// Below the last ancestor that the two have in common: the ancestors at which their ways part,
    /// or the queues themselves.
    pub(super) fn fork(&self, l: QueueId, r: QueueId) -> (QueueId, QueueId) {
        let down = |queue| self.path(queue).iter().rev().copied();
        let differ = |&(l, r): &(QueueId, QueueId)| l != r;
        down(l).zip(down(r)).find(differ).unwrap_or((l, r))
    }
}

fn present(cluster: &Cluster, name: &str) -> Option<QueueId> {
    cluster.queue(name).filter(|&queue| cluster.queues[queue].present)
}

fn parent_name(queue: &Queue) -> &str {
    if queue.parent.is_empty() { ROOT } else { &queue.parent }
}

fn parent(cluster: &Cluster, queue: QueueId) -> Option<QueueId> {
    let row = &cluster.queues[queue];
    if &*row.name == ROOT { None } else { present(cluster, parent_name(row)) }
}

/// `None`: a parent is missing, or the way up leads round in a circle (D14).
fn path_to_root(cluster: &Cluster, queue: QueueId) -> Option<Vec<QueueId>> {
    let mut path = vec![queue];
    let mut at = queue;
    while &*cluster.queues[at].name != ROOT {
        let Some(parent) = parent(cluster, at) else {
            let under_root = parent_name(&cluster.queues[at]) == ROOT;
            return under_root.then_some(path);
        };
        if path.contains(&parent) {
            return None;
        }
        path.push(parent);
        at = parent;
    }
    Some(path)
}
