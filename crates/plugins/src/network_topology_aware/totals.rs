//! Totals of the nodes of each HyperNode. Kept from call to call: only nodes that changed are read
//! again.
//!
//! Exact because:
//! - amounts are integers, and a node gives back what it had added;
//! - a node is read again whenever the change log names it, and all are in another tree;
//! - the test below compares with sums over all nodes.
//!
//! Specification: plugins-nodes.md 15.4.

use std::sync::Arc;

use vc_framework::SessionView;
use vc_model::{ChangeReader, Cluster, HyperNodeId, HyperNodeTree, Id, NodeId};
use vc_resource::Resource;

/// What nodes have together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) allocatable: Resource,
    pub(super) used: Resource,
    pub(super) idle: Resource,
    /// Idle + Releasing - Pipelined.
    pub(super) future_idle: Resource,
}

impl Totals {
    fn of(cluster: &Cluster, node: NodeId) -> Self {
        let node = &cluster.nodes[node];
        Self {
            allocatable: node.allocatable.clone(),
            used: node.used.clone(),
            idle: node.idle.clone(),
            future_idle: node.future_idle(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.allocatable.add(&other.allocatable);
        self.used.add(&other.used);
        self.idle.add(&other.idle);
        self.future_idle.add(&other.future_idle);
    }

    fn sub(&mut self, other: &Self) {
        self.allocatable.sub(&other.allocatable);
        self.used.sub(&other.used);
        self.idle.sub(&other.idle);
        self.future_idle.sub(&other.future_idle);
    }
}

/// The totals of all HyperNodes of one tree.
#[derive(Debug, Default)]
pub(super) struct HyperNodeTotals {
    tree: Option<Arc<HyperNodeTree>>,
    changed_nodes: ChangeReader<NodeId>,
    /// What each node has added to its HyperNodes, by node. `None` for one that is not in the tree.
    of_nodes: Vec<Option<Totals>>,
    /// By HyperNode.
    totals: Vec<Totals>,
}

impl HyperNodeTotals {
    /// Returns the totals of all HyperNodes in the present state, by index.
    pub(super) fn all(&mut self, view: SessionView<'_>) -> &[Totals] {
        self.follow(view);
        &self.totals
    }

    /// Reads the nodes that changed since the last call.
    fn follow(&mut self, view: SessionView<'_>) {
        let tree = &view.info.hyper_nodes;
        let is_same = self.tree.as_ref().is_some_and(|known| Arc::ptr_eq(known, tree));
        match self.changed_nodes.read(view.cluster.node_changes()).filter(|_| is_same) {
            Some(changed) => changed.for_each(|node| self.read(view.cluster, tree, node)),
            None => self.read_all(view.cluster, tree),
        }
    }

    fn read_all(&mut self, cluster: &Cluster, tree: &Arc<HyperNodeTree>) {
        let nodes = &tree[HyperNodeTree::ROOT].nodes;
        let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        self.tree = Some(tree.clone());
        self.of_nodes.clear();
        self.of_nodes.resize_with(n_ids, || None);
        self.totals = vec![Totals::default(); tree.len()];
        for &node in nodes.iter() {
            let new = Totals::of(cluster, node);
            match tree.shares_nodes() {
                true => self.add_to_all(tree.containing(node), &new),
                false => self.totals[tree.smallest(node).index()].add(&new),
            }
            self.of_nodes[node.index()] = Some(new);
        }
        if !tree.shares_nodes() {
            self.add_to_parents(tree);
        }
    }

    fn add_to_all(&mut self, ids: Vec<HyperNodeId>, new: &Totals) {
        ids.into_iter().for_each(|id| self.totals[id.index()].add(new));
    }

    /// Adds the totals of each HyperNode to its parent, from the lowest ones up.
    fn add_to_parents(&mut self, tree: &HyperNodeTree) {
        for id in tree.below(HyperNodeTree::ROOT).into_iter().rev() {
            if let Some(parent) = tree[id].parent {
                let of_member = self.totals[id.index()].clone();
                self.totals[parent.index()].add(&of_member);
            }
        }
    }

    fn read(&mut self, cluster: &Cluster, tree: &HyperNodeTree, node: NodeId) {
        let Some(Some(known)) = self.of_nodes.get_mut(node.index()) else { return };
        let new = Totals::of(cluster, node);
        if *known == new {
            return;
        }
        for id in tree.containing(node) {
            let totals = &mut self.totals[id.index()];
            totals.sub(known);
            totals.add(&new);
        }
        *known = new;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vc_framework::SessionInfo;
    use vc_model::{TaskStatus, fixture};
    use vc_resource::Dim;

    use super::*;

    const TREES: [&str; 2] = [
        "hypernode a node=n0 node=n1\nhypernode b node=n2\nhypernode c tier=2 member=a member=b\n",
        "hypernode a node=n0 node=n1\nhypernode b node=n1 node=n2\nhypernode c tier=2 member=a\n",
    ];

    fn plain(cluster: &Cluster, tree: &HyperNodeTree, id: HyperNodeId) -> Totals {
        let mut totals = Totals::default();
        tree[id].nodes.iter().for_each(|&node| totals.add(&Totals::of(cluster, node)));
        totals
    }

    fn amounts(totals: &Totals) -> Vec<Vec<(Dim, i64)>> {
        let all = [&totals.allocatable, &totals.used, &totals.idle, &totals.future_idle];
        let amounts = |of: &Resource| -> Vec<(Dim, i64)> {
            of.dims().map(|dim| (dim, of.get(dim))).filter(|(_, amount)| *amount != 0).collect()
        };
        all.map(amounts).to_vec()
    }

    proptest! {
        #[test]
        fn totals_are_sums_of_nodes(
            tree in 0_usize..2,
            steps in prop::collection::vec((0_usize..4, 0_usize..4, 0_u8..4), 1..30),
        ) {
            let nodes = "node n0 cpu=9\nnode n1 cpu=8 memory=4Gi\nnode n2 cpu=7\nnode n3 cpu=6\n";
            let jobs = "job j\n task p cpu=1 x2\n task q cpu=2 memory=1Gi x2\n";
            let mut cluster = fixture::cluster(&format!("{}{nodes}{jobs}", TREES[tree]));
            let tasks: Vec<_> = cluster.tasks.ids().collect();
            let mut totals = HyperNodeTotals::default();
            for (task, node, step) in steps {
                let status = [TaskStatus::Allocated, TaskStatus::Pipelined, TaskStatus::Releasing];
                let node = fixture::node(&cluster, &format!("n{node}"));
                match status.get(usize::from(step)) {
                    Some(&status) => cluster.set_task(tasks[task], status, Some(node)),
                    None => cluster.set_task(tasks[task], TaskStatus::Pending, None),
                }
                let info = SessionInfo {
                    hyper_nodes: cluster.hyper_node_tree(),
                    ..SessionInfo::default()
                };
                let view = SessionView { cluster: &cluster, info: &info };
                let tree = &info.hyper_nodes;
                for id in tree.below(HyperNodeTree::ROOT) {
                    let wanted = plain(&cluster, tree, id);
                    prop_assert_eq!(amounts(&totals.all(view)[id.index()]), amounts(&wanted));
                }
            }
        }
    }
}
