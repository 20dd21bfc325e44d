//! The tree of queues by `spec.parent`, or a flat list of queues.
//! Specification: plugins-jobs-queues.md 6.3, D14.

use std::collections::BTreeSet;

use vc_framework::SessionView;
use vc_model::{Cluster, Id, Queue, QueueId};

const ROOT: &str = "root";

/// The role of a queue, which decides whether jobs are scheduled in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum QueueRole {
    Leaf,
    /// Another queue names this one as its parent. Jobs of this queue are not scheduled.
    Inner,
    /// The ancestors do not reach root, or the queue is not in the session.
    #[default]
    Unusable,
}

/// Paths and roles of the queues of a session.
#[derive(Debug, Default)]
pub(super) struct QueueTree {
    /// Indexed by queue id.
    places: Vec<QueuePath>,
    /// The queue named root. `None` without a tree, or if root does not exist. D14: a missing root
    /// acts as one with an empty spec.
    root: Option<QueueId>,
}

#[derive(Clone, Debug, Default)]
struct QueuePath {
    /// The queue, its parent and so on up to root. An unusable queue has a path of itself.
    path: Vec<QueueId>,
    role: QueueRole,
}

impl QueueTree {
    /// Builds a flat list in which every queue is a leaf.
    pub(super) fn flat(view: SessionView<'_>) -> Self {
        let mut queue_tree = Self::default();
        for &queue in &view.info.queues {
            queue_tree.put(queue, QueuePath { path: vec![queue], role: QueueRole::Leaf });
        }
        queue_tree
    }

    /// Builds the tree below root.
    pub(super) fn tree(view: SessionView<'_>) -> Self {
        let cluster = view.cluster;
        let mut queue_tree = Self { root: present(cluster, ROOT), ..Self::default() };
        let parents = view.info.queues.iter().filter_map(|&queue| parent(cluster, queue));
        let inner: BTreeSet<QueueId> = parents.collect();
        for &queue in &view.info.queues {
            let place = match path_to_root(cluster, queue) {
                None => QueuePath { path: vec![queue], role: QueueRole::Unusable },
                Some(path) if inner.contains(&queue) => QueuePath { path, role: QueueRole::Inner },
                Some(path) => QueuePath { path, role: QueueRole::Leaf },
            };
            queue_tree.put(queue, place);
        }
        queue_tree
    }

    fn put(&mut self, queue: QueueId, place: QueuePath) {
        if self.places.len() <= queue.index() {
            self.places.resize(queue.index() + 1, QueuePath::default());
        }
        self.places[queue.index()] = place;
    }

    pub(super) fn role(&self, queue: QueueId) -> QueueRole {
        self.places.get(queue.index()).map_or(QueueRole::Unusable, |place| place.role)
    }

    /// Returns the queue, its parent and so on up to root. Returns an empty slice if the queue is
    /// not in the session.
    pub(super) fn path(&self, queue: QueueId) -> &[QueueId] {
        self.places.get(queue.index()).map_or(&[], |place| &place.path)
    }

    /// True if the queue is a leaf directly below root, or without any parent. Two such queues are
    /// compared by their own values.
    pub(super) fn is_top_leaf(&self, queue: QueueId) -> bool {
        let n_above = usize::from(self.root.is_some());
        self.role(queue) == QueueRole::Leaf && self.path(queue).len() == 1 + n_above
    }

    pub(super) fn root(&self) -> Option<QueueId> {
        self.root
    }

    /// Returns the ancestor at this distance, where 1 is the parent. Returns `None` for root and
    /// above.
    pub(super) fn ancestor(&self, queue: QueueId, distance: usize) -> Option<QueueId> {
        let found = self.path(queue).get(distance).copied();
        found.filter(|&ancestor| Some(ancestor) != self.root)
    }

    /// True if the two queues have one of their first `level` ancestors in common, root not
    /// counted.
    pub(super) fn share_ancestor(&self, l: QueueId, r: QueueId, level: usize) -> bool {
        let mut of_l = (1..=level).map_while(|distance| self.ancestor(l, distance));
        of_l.any(|one| (1..=level).any(|distance| self.ancestor(r, distance) == Some(one)))
    }

    /// Returns the number of common ancestors of two queues, counted from root down.
    pub(super) fn n_common(&self, l: QueueId, r: QueueId) -> usize {
        let ancestors = |queue| self.path(queue).iter().skip(1).rev();
        ancestors(l).zip(ancestors(r)).take_while(|(l, r)| l == r).count()
    }

    /// Returns the two ancestors, or the queues themselves, directly below the last common
    /// ancestor.
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

/// Returns the path of a queue up to root. Returns `None` if a parent is missing, or the parents
/// form a cycle (D14: such queues are unusable).
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
