//! The amounts of all nodes, one contiguous column for each, so that a rule that compares or scores
//! runs over slices. Exact because a row is read again whenever its node is in the log of changes;
//! `rows_are_those_of_the_nodes` compares the two. Specification: actions.md 12.2 S2, S3.

use vc_model::{Id, NodeId, ShardingMode};
use vc_resource::{Dim, Resource};

use crate::session::Session;

/// What rules read of nodes as numbers, by position in name order.
#[derive(Debug, Default)]
pub struct NodeColumns {
    dims: Vec<DimColumns>,
    /// Σ cpu of the pods, with the scoring defaults, in millicores.
    pub held_cpu_milli: Vec<i64>,
    /// Σ memory of the pods, with the scoring defaults, in bytes.
    pub held_memory_bytes: Vec<i64>,
    /// Pods that count.
    pub n_pods: Vec<i64>,
    pub(super) shards: Vec<Shard>,
    /// Nodes outside of the own shard, of either kind.
    pub(super) n_foreign: usize,
    /// Room becomes free or is promised.
    is_moving: Vec<bool>,
    pub(super) n_moving: usize,
    seen_until: u64,
    set_version: Option<u64>,
    by_node: Vec<u32>,
    /// Per position the catch-up of a class that saw it last: a node that changed twice is looked at
    /// once.
    seen: Vec<u64>,
    catch_up: u64,
}

/// One resource on every node, in its unit.
#[derive(Debug, Default)]
pub struct DimColumns {
    /// What the node offers.
    pub allocatable: Vec<i64>,
    /// What its tasks use.
    pub used: Vec<i64>,
    /// What its pods request, as filters and scorers see them.
    pub requested: Vec<i64>,
    pub(super) idle: Vec<i64>,
    pub(super) future_idle: Vec<i64>,
}

/// How a node stands to the shard of this scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shard {
    /// In it, or shards do not matter.
    #[default]
    Own,
    /// Comes after those of the shard.
    Other,
    /// Refused.
    Forbidden,
}

impl NodeColumns {
    /// The columns of a resource.
    #[inline]
    pub fn of(&self, dim: Dim) -> &DimColumns {
        &self.dims[dim.index()]
    }

    pub(super) fn n_nodes(&self) -> usize {
        self.n_pods.len()
    }

    /// Reads the rows that changed.
    pub(super) fn follow(&mut self, session: &Session<'_>) {
        let changes = session.node_changes();
        let same = self.set_version == Some(changes.set_version())
            && self.n_nodes() == session.facts().nodes.len()
            && self.dims.len() == session.dims.len();
        match changes.since(self.seen_until).filter(|_| same) {
            Some(changed) => {
                for &node in changed {
                    if let Some(at) = self.position(node) {
                        self.read(session, node, at);
                    }
                }
            }
            None => self.read_all(session),
        }
        self.seen_until = changes.end();
    }

    fn read_all(&mut self, session: &Session<'_>) {
        let nodes = &session.facts().nodes;
        let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        let numbers = || vec![0; nodes.len()];
        let amounts = |_| DimColumns {
            allocatable: numbers(),
            used: numbers(),
            requested: numbers(),
            idle: numbers(),
            future_idle: numbers(),
        };
        *self = Self {
            dims: (0..session.dims.len()).map(amounts).collect(),
            held_cpu_milli: numbers(),
            held_memory_bytes: numbers(),
            n_pods: numbers(),
            shards: vec![Shard::Own; nodes.len()],
            is_moving: vec![false; nodes.len()],
            set_version: Some(session.node_changes().set_version()),
            by_node: vec![u32::MAX; n_ids],
            seen: vec![0; nodes.len()],
            ..Self::default()
        };
        for (at, &node) in nodes.iter().enumerate() {
            self.by_node[node.index()] = at as u32;
            self.read(session, node, at);
        }
    }

    fn read(&mut self, session: &Session<'_>, id: NodeId, at: usize) {
        let node = &session.nodes[id];
        for &dim in session.dims.in_report_order() {
            let amounts = &mut self.dims[dim.index()];
            let of = |resource: &Resource| resource.get(dim);
            amounts.allocatable[at] = of(&node.allocatable);
            amounts.used[at] = of(&node.used);
            amounts.requested[at] = of(&node.view.requested);
            let idle = of(&node.idle);
            amounts.idle[at] = idle;
            let future = idle.wrapping_add(of(&node.releasing)).wrapping_sub(of(&node.pipelined));
            amounts.future_idle[at] = future;
        }
        self.held_cpu_milli[at] = node.view.non_zero.cpu_milli;
        self.held_memory_bytes[at] = node.view.non_zero.memory_bytes;
        self.n_pods[at] = i64::from(node.view.n_pods);
        let is_moving = !is_nothing(&node.releasing) || !is_nothing(&node.pipelined);
        self.n_moving += usize::from(is_moving);
        self.n_moving -= usize::from(std::mem::replace(&mut self.is_moving[at], is_moving));
        let shard = match session.cluster.settings.sharding.mode {
            ShardingMode::Hard if !node.in_shard => Shard::Forbidden,
            ShardingMode::Soft if !node.in_shard => Shard::Other,
            _ => Shard::Own,
        };
        self.n_foreign += usize::from(shard != Shard::Own);
        let before = std::mem::replace(&mut self.shards[at], shard);
        self.n_foreign -= usize::from(before != Shard::Own);
    }

    /// Where the node stands; `None`: it is not in the session.
    pub(super) fn position(&self, node: NodeId) -> Option<usize> {
        let at = *self.by_node.get(node.index())?;
        (at != u32::MAX).then_some(at as usize)
    }

    /// Positions of the known ones among the nodes, each once.
    pub(super) fn distinct(&mut self, nodes: &[NodeId]) -> Vec<usize> {
        self.catch_up += 1;
        let mut distinct = Vec::new();
        for &node in nodes {
            let Some(at) = self.position(node) else { continue };
            if std::mem::replace(&mut self.seen[at], self.catch_up) != self.catch_up {
                distinct.push(at);
            }
        }
        distinct
    }
}

fn is_nothing(amounts: &Resource) -> bool {
    amounts.dims().all(|dim| amounts.get(dim) == 0)
}
