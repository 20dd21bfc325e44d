//! The quota trees of one resource, computed from the Queue objects by recursion. They follow the
//! formulas of cohort.md A.2 and B.2. The code is slow, and shares nothing with the crate that the
//! plugin uses.

use std::collections::{BTreeMap, BTreeSet};

use vc_conf::PluginOption;
use vc_framework::SessionState;
use vc_model::Queue;
use vc_resource::Dim;

const ROOT: &str = "root";

/// An amount above any real one.
const UNLIMITED: i128 = 1 << 100;

/// Queues by name, and the options of the quota trees.
pub(super) struct VerifiedQuotaTrees<'a> {
    queues: BTreeMap<&'a str, &'a Queue>,
    children: BTreeMap<&'a str, Vec<&'a str>>,
    /// `rootCohort: false`.
    without_root: bool,
    /// `rootQuota: Cluster`.
    root_owns_cluster: bool,
}

impl<'a> VerifiedQuotaTrees<'a> {
    pub(super) fn of(session: &'a SessionState<'_>, option: &PluginOption) -> Self {
        let rows = session.info().queues.iter().map(|&queue| &session.queues[queue]);
        let argument = |key: &str| option.arguments.get(key);
        let without_root = argument("rootCohort").and_then(|value| value.as_bool()) == Some(false);
        let quota = argument("rootQuota").and_then(|value| value.as_str());
        let mut trees = Self::new(rows, without_root);
        trees.root_owns_cluster = quota == Some("Cluster");
        trees
    }

    fn new(rows: impl Iterator<Item = &'a Queue>, without_root: bool) -> Self {
        let queues: BTreeMap<&str, &Queue> = rows.map(|row| (&*row.name, row)).collect();
        let (children, root_owns_cluster) = (BTreeMap::new(), false);
        let mut trees = Self { queues, children, without_root, root_owns_cluster };
        let names: Vec<&str> = trees.queues.keys().copied().collect();
        for name in names {
            if let Some(parent) = trees.parent(name) {
                trees.children.entry(parent).or_default().push(name);
            }
        }
        trees
    }

    /// Returns the parent of a queue. Returns `None` for the top of a tree.
    pub(super) fn parent(&self, name: &str) -> Option<&'a str> {
        let parent: &'a str = match self.queues.get(name) {
            Some(queue) if !queue.parent.is_empty() => &queue.parent,
            Some(_) => ROOT,
            // A cohort without a Queue object has no parent.
            None => return None,
        };
        (name != ROOT && !(self.without_root && parent == ROOT)).then_some(parent)
    }

    /// Returns the queue and its ancestors. A cycle of parents is followed once.
    pub(super) fn path(&self, name: &'a str) -> Vec<&'a str> {
        let up = std::iter::successors(Some(name), |name| self.parent(name));
        up.take(self.queues.len() + 1).collect()
    }

    /// Returns all queues of the tree that the queue is in.
    fn members(&self, name: &'a str) -> BTreeSet<&'a str> {
        let mut open: Vec<&str> = self.path(name).last().copied().into_iter().collect();
        let mut members = BTreeSet::new();
        while let Some(member) = open.pop() {
            if members.insert(member) {
                open.extend(self.children_of(member));
            }
        }
        members
    }

    fn children_of(&self, name: &str) -> impl Iterator<Item = &'a str> + '_ {
        self.children.get(name).into_iter().flatten().copied()
    }
}

/// One resource, with the amounts that queues use of it.
pub(super) struct QuotaTreeUse<'t, 'a> {
    pub(super) trees: &'t VerifiedQuotaTrees<'a>,
    pub(super) dim: Dim,
    /// Amount of all nodes.
    pub(super) cluster: i128,
    /// Used amounts by queue name.
    pub(super) used: BTreeMap<&'a str, i128>,
}

impl<'a> QuotaTreeUse<'_, 'a> {
    /// True if a queue of the tree has a quota of the resource.
    pub(super) fn is_managed(&self, name: &'a str) -> bool {
        let lists = |queue: &&Queue| {
            let is_native = self.dim == Dim::CPU || self.dim == Dim::MEMORY;
            let has = |amounts: &vc_resource::Resource| amounts.has(self.dim) && !is_native;
            queue.listed.contains(&self.dim) || has(&queue.deserved) || has(&queue.guarantee)
        };
        let members = self.trees.members(name);
        members.into_iter().filter_map(|name| self.trees.queues.get(name)).any(lists)
    }

    fn sum(&self, name: &str, of: impl Fn(&'a str) -> i128) -> i128 {
        self.trees.children_of(name).map(of).sum()
    }

    fn listed(&self, name: &str, of: fn(&Queue) -> &vc_resource::Resource) -> i128 {
        let queue = self.trees.queues.get(name);
        queue.map_or(0, |queue| i128::from(of(queue).get(self.dim).max(0)))
    }

    fn cap(&self, name: &str) -> i128 {
        let Some(queue) = self.trees.queues.get(name) else { return UNLIMITED };
        let is_native = self.dim == Dim::CPU || self.dim == Dim::MEMORY;
        match self.listed(name, |queue| &queue.capability) {
            0 if is_native || !queue.capability.has(self.dim) => UNLIMITED,
            cap => cap,
        }
    }

    fn guarantee(&self, name: &str) -> i128 {
        let below = self.sum(name, |child| self.guarantee(child));
        self.listed(name, |queue| &queue.guarantee).max(below)
    }

    fn total(&self, name: &str) -> i128 {
        let own = self.listed(name, |queue| &queue.deserved).max(self.guarantee(name));
        if self.trees.children_of(name).next().is_none() {
            return own.min(self.cap(name));
        }
        let owns_cluster = name == ROOT && self.trees.root_owns_cluster;
        let cluster = if owns_cluster { self.cluster } else { 0 };
        own.max(self.sum(name, |child| self.total(child))).max(cluster)
    }

    /// Returns the part of the quota that no other queue can use.
    fn local(&self, name: &str) -> i128 {
        let kept = self.guarantee(name) - self.sum(name, |child| self.guarantee(child));
        let is_top = self.trees.parent(name).is_none();
        if is_top { 0 } else { kept.min(self.quota(name)).max(0) }
    }

    /// Returns the quota of a queue (`S` in cohort.md).
    fn quota(&self, name: &str) -> i128 {
        let own = self.total(name) - self.sum(name, |child| self.total(child));
        own + self.sum(name, |child| self.quota(child) - self.local(child))
    }

    fn usage(&self, name: &str) -> i128 {
        let own = self.used.get(name).copied().unwrap_or(0);
        own + self.sum(name, |child| (self.usage(child) - self.local(child)).max(0))
    }

    /// True if the queue uses more than its quota.
    pub(super) fn is_over(&self, name: &str) -> bool {
        self.quota(name) < self.usage(name)
    }

    /// Returns the amount that may still be admitted.
    pub(super) fn room(&self, name: &str) -> i128 {
        let (quota, local, usage) = (self.quota(name), self.local(name), self.usage(name));
        let cap = self.cap(name);
        let borrowing = if cap == UNLIMITED { UNLIMITED } else { cap - self.total(name) };
        let Some(parent) = self.trees.parent(name) else {
            return quota + borrowing.min(0) - usage;
        };
        let own = quota - local - (usage - local).max(0) + borrowing;
        (local - usage).max(0) + self.room(parent).min(own)
    }
}

#[cfg(test)]
mod tests {
    use vc_model::{Cluster, fixture};

    use super::*;

    /// Room of a queue in cpus while these cpus are in use.
    fn room(queues: &str, used: &[(&'static str, i128)], name: &'static str) -> i128 {
        let text: String = queues.split(';').map(|queue| format!("queue {queue}\n")).collect();
        with(&text, used, |amounts| amounts.room(name))
    }

    fn with<T>(
        text: &str,
        used: &[(&'static str, i128)],
        look: impl Fn(&QuotaTreeUse<'_, '_>) -> T,
    ) -> T {
        let cluster: Cluster = fixture::cluster(text);
        let rows = cluster.queues.iter().map(|(_, row)| row).filter(|row| row.present);
        let trees = VerifiedQuotaTrees::new(rows, false);
        let used = used.iter().map(|&(name, cpus)| (name, cpus * 1000)).collect();
        look(&QuotaTreeUse { trees: &trees, dim: Dim::CPU, cluster: 0, used })
    }

    #[test]
    fn t5_room_by_recursion() {
        let lend = "lend1 deserved.cpu=6 guarantee.cpu=2;lend2 deserved.cpu=6 guarantee.cpu=4";
        assert_eq!(room(lend, &[("lend2", 7)], "lend1"), 5_000);
        let own = "p deserved.cpu=10;x deserved.cpu=3 parent=p;y deserved.cpu=4 parent=p";
        assert_eq!(room(own, &[], "x"), 10_000);
        let ceiling = "p deserved.cpu=4 cap.cpu=6;x deserved.cpu=2 parent=p;\
            y deserved.cpu=2 parent=p;z deserved.cpu=10";
        assert_eq!(room(ceiling, &[], "x"), 6_000);
        assert_eq!(room(ceiling, &[("x", 4)], "y"), 2_000);
        let negative = "p cap.cpu=3;x deserved.cpu=2 parent=p;y deserved.cpu=2 parent=p";
        assert_eq!(room(negative, &[("x", 2)], "y"), 1_000);
    }

    #[test]
    fn who_uses_more_than_its_quota() {
        let text = "queue p deserved.cpu=4\nqueue x deserved.cpu=2 parent=p\nqueue z";
        with(text, &[("x", 3)], |amounts| {
            let names = ["x", "p", "z"];
            assert_eq!(names.map(|name| amounts.is_over(name)), [true, false, false]);
            assert!(names.into_iter().all(|name| amounts.is_managed(name)));
        });
        with("queue z\nqueue y", &[("z", 3)], |amounts| assert!(!amounts.is_managed("z")));
    }
}
