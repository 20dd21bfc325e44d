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

/// What one node adds to the totals.
#[derive(Clone, Debug, Default, PartialEq)]
struct AmountsOfNode {
    allocatable: Resource,
    used: Resource,
    idle: Resource,
    /// Idle + Releasing - Pipelined.
    future_idle: Resource,
}

impl AmountsOfNode {
    fn new(cluster: &Cluster, node: NodeId) -> Self {
        let node = &cluster.nodes[node];
        Self {
            allocatable: node.allocatable.clone(),
            used: node.used.clone(),
            idle: node.idle.clone(),
            future_idle: node.future_idle(),
        }
    }
}

/// What the nodes of each HyperNode have together. There is a list for each kind of amount, by the
/// index of the HyperNode, because most callers read one kind of many HyperNodes.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) allocatable: Vec<Resource>,
    pub(super) used: Vec<Resource>,
    pub(super) idle: Vec<Resource>,
    /// Idle + Releasing - Pipelined.
    pub(super) future_idle: Vec<Resource>,
}

impl Totals {
    fn zero(n_hyper_nodes: usize) -> Self {
        let zero = vec![Resource::default(); n_hyper_nodes];
        Self {
            allocatable: zero.clone(),
            used: zero.clone(),
            idle: zero.clone(),
            future_idle: zero,
        }
    }

    fn add(&mut self, id: HyperNodeId, new: &AmountsOfNode) {
        self.allocatable[id.index()].add(&new.allocatable);
        self.used[id.index()].add(&new.used);
        self.idle[id.index()].add(&new.idle);
        self.future_idle[id.index()].add(&new.future_idle);
    }

    fn sub(&mut self, id: HyperNodeId, old: &AmountsOfNode) {
        self.allocatable[id.index()].sub(&old.allocatable);
        self.used[id.index()].sub(&old.used);
        self.idle[id.index()].sub(&old.idle);
        self.future_idle[id.index()].sub(&old.future_idle);
    }

    /// Adds the totals of a HyperNode to those of its parent.
    fn add_to_parent(&mut self, id: HyperNodeId, parent: HyperNodeId) {
        let kinds = [&mut self.allocatable, &mut self.used, &mut self.idle, &mut self.future_idle];
        for of_kind in kinds {
            let of_member = of_kind[id.index()].clone();
            of_kind[parent.index()].add(&of_member);
        }
    }
}

/// The totals of all HyperNodes of one tree.
#[derive(Debug, Default)]
pub(super) struct HyperNodeTotals {
    tree: Option<Arc<HyperNodeTree>>,
    changed_nodes: ChangeReader<NodeId>,
    /// What each node has added to its HyperNodes, by node. `None` for one that is not in the tree.
    of_nodes: Vec<Option<AmountsOfNode>>,
    totals: Totals,
}

impl HyperNodeTotals {
    /// Returns the totals of all HyperNodes in the present state.
    pub(super) fn all(&mut self, view: SessionView<'_>) -> &Totals {
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
        self.totals = Totals::zero(tree.len());
        for &node in nodes.iter() {
            let new = AmountsOfNode::new(cluster, node);
            match tree.is_nested() {
                true => self.totals.add(tree.smallest(node), &new),
                false => tree.containing(node).into_iter().for_each(|id| self.totals.add(id, &new)),
            }
            self.of_nodes[node.index()] = Some(new);
        }
        if tree.is_nested() {
            // From the lowest ones up.
            for id in tree.below(HyperNodeTree::ROOT).into_iter().rev() {
                if let Some(parent) = tree[id].parent {
                    self.totals.add_to_parent(id, parent);
                }
            }
        }
    }

    fn read(&mut self, cluster: &Cluster, tree: &HyperNodeTree, node: NodeId) {
        let Some(Some(known)) = self.of_nodes.get_mut(node.index()) else { return };
        let new = AmountsOfNode::new(cluster, node);
        if *known == new {
            return;
        }
        for id in tree.containing(node) {
            self.totals.sub(id, known);
            self.totals.add(id, &new);
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

    const TREES: [&str; 3] = [
        "hypernode a node=n0 node=n1\nhypernode b node=n2\nhypernode c tier=2 member=a member=b\n",
        "hypernode a node=n0 node=n1\nhypernode b node=n1 node=n2\nhypernode c tier=2 member=a\n",
        "hypernode all member=b member=c\nhypernode b node=n0\nhypernode c tier=2 node=n1 node=n2\n",
    ];

    fn plain(cluster: &Cluster, tree: &HyperNodeTree, id: HyperNodeId) -> [Resource; 4] {
        let mut sums: [Resource; 4] = Default::default();
        for &node in tree[id].nodes.iter() {
            let node = &cluster.nodes[node];
            let of_node = [&node.allocatable, &node.used, &node.idle, &node.future_idle()];
            sums.iter_mut().zip(of_node).for_each(|(sum, of_node)| sum.add(of_node));
        }
        sums
    }

    fn amounts(totals: [&Resource; 4]) -> [Vec<(Dim, i64)>; 4] {
        totals.map(|of| {
            of.dims().map(|dim| (dim, of.get(dim))).filter(|(_, amount)| *amount != 0).collect()
        })
    }

    proptest! {
        #[test]
        fn totals_are_sums_of_nodes(
            tree in 0_usize..3,
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
                    let all = totals.all(view);
                    let kinds = [&all.allocatable, &all.used, &all.idle, &all.future_idle];
                    let kept = kinds.map(|of_kind| &of_kind[id.index()]);
                    prop_assert_eq!(amounts(kept), amounts(wanted.each_ref()));
                }
            }
        }
    }
}
