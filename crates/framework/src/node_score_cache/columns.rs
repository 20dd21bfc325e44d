//! The amounts of nodes, one contiguous column per amount, so that rules run over slices.
//!
//! Exact because:
//! - a row is read again whenever the change log names its node (`node_rows.rs`);
//! - the engine's `columns.rs` compares with the plain evaluator, which has no columns.
//!
//! Specification: actions.md 12.2 S2, S3.

use std::hash::Hasher;

use rustc_hash::FxHasher;
use vc_model::{NodeId, ShardingMode};
use vc_resource::{Dim, Resource};

use crate::session::SessionState;

/// The numbers that rules read of nodes, one row per node or kind of node.
#[derive(Clone, Debug, Default)]
pub struct NodeColumns {
    dims: Vec<DimColumns>,
    /// Σ cpu of the pods, with the scoring defaults, in millicores.
    pub held_cpu_milli: Vec<i64>,
    /// Σ memory of the pods, with the scoring defaults, in bytes.
    pub held_memory_bytes: Vec<i64>,
    /// Number of pods on the node.
    pub n_pods: Vec<i64>,
    pub(super) shards: Vec<Shard>,
}

/// One resource on every node, in its unit.
#[derive(Clone, Debug, Default)]
pub struct DimColumns {
    /// Allocatable amount of the node.
    pub allocatable: Vec<i64>,
    /// Amount that the node's tasks use.
    pub used: Vec<i64>,
    /// Amount that the node's pods request, as filters and scorers see it.
    pub requested: Vec<i64>,
    pub(super) idle: Vec<i64>,
    pub(super) future_idle: Vec<i64>,
}

/// Relation of a node to the shard of this scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shard {
    /// In the shard, or sharding is off.
    #[default]
    Own,
    /// Outside of the shard with soft sharding; tried after the nodes of the shard.
    Other,
    /// Outside of the shard with hard sharding; refused.
    Forbidden,
}

impl NodeColumns {
    /// Returns the columns of a resource.
    #[inline]
    pub fn of(&self, dim: Dim) -> &DimColumns {
        &self.dims[dim.index()]
    }

    /// Creates `n_rows` rows of zeros.
    pub(super) fn new(n_dims: usize, n_rows: usize) -> Self {
        let mut columns = Self { dims: vec![DimColumns::default(); n_dims], ..Self::default() };
        columns.numbers_mut().for_each(|column| column.resize(n_rows, 0));
        columns.shards.resize(n_rows, Shard::Own);
        columns
    }

    pub(super) fn n_dims(&self) -> usize {
        self.dims.len()
    }

    /// Copies the amounts of a node into the first row.
    pub(super) fn read(&mut self, session: &SessionState<'_>, id: NodeId) {
        let (node, at) = (&session.nodes[id], 0);
        for &dim in session.dims.in_report_order() {
            let amounts = &mut self.dims[dim.index()];
            let of = |resource: &Resource| resource.get(dim);
            amounts.allocatable[at] = of(&node.allocatable);
            amounts.used[at] = of(&node.used);
            amounts.requested[at] = of(&node.view.requested);
            amounts.idle[at] = of(&node.idle);
            amounts.future_idle[at] = node.future_idle_of(dim);
        }
        let held = node.view.non_zero.nearest();
        self.held_cpu_milli[at] = held.cpu_milli;
        self.held_memory_bytes[at] = held.memory_bytes;
        self.n_pods[at] = i64::from(node.view.n_pods);
        self.shards[at] = match session.cluster.settings.sharding.mode {
            ShardingMode::Hard if !node.in_shard => Shard::Forbidden,
            ShardingMode::Soft if !node.in_shard => Shard::Other,
            _ => Shard::Own,
        };
    }

    /// Adds a row of zeros.
    pub(super) fn push(&mut self) {
        self.numbers_mut().for_each(|column| column.push(0));
        self.shards.push(Shard::Own);
    }

    /// Copies the first row of `others` into `row`.
    pub(super) fn copy(&mut self, row: usize, others: &Self) {
        for (column, other) in self.numbers_mut().zip(others.numbers()) {
            column[row] = other[0];
        }
        self.shards[row] = others.shards[0];
    }

    /// True if `row` equals the first row of `others`.
    pub(super) fn is_like(&self, row: usize, others: &Self) -> bool {
        let mut dims = self.dims.iter().zip(&others.dims);
        self.held_cpu_milli[row] == others.held_cpu_milli[0]
            && self.held_memory_bytes[row] == others.held_memory_bytes[0]
            && self.n_pods[row] == others.n_pods[0]
            && self.shards[row] == others.shards[0]
            && dims.all(|(amounts, others)| amounts.row(row) == others.row(0))
    }

    /// Returns the hash of the first row.
    pub(super) fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.numbers().for_each(|column| hasher.write_i64(column[0]));
        hasher.write_u8(self.shards[0] as u8);
        hasher.finish()
    }

    fn numbers(&self) -> impl Iterator<Item = &Vec<i64>> {
        let others = [&self.held_cpu_milli, &self.held_memory_bytes, &self.n_pods];
        self.dims.iter().flat_map(DimColumns::each).chain(others)
    }

    fn numbers_mut(&mut self) -> impl Iterator<Item = &mut Vec<i64>> {
        let others = [&mut self.held_cpu_milli, &mut self.held_memory_bytes, &mut self.n_pods];
        self.dims.iter_mut().flat_map(DimColumns::each_mut).chain(others)
    }
}

impl DimColumns {
    fn row(&self, at: usize) -> [i64; 5] {
        self.each().map(|column| column[at])
    }

    fn each(&self) -> [&Vec<i64>; 5] {
        let Self { allocatable, used, requested, idle, future_idle } = self;
        [allocatable, used, requested, idle, future_idle]
    }

    fn each_mut(&mut self) -> [&mut Vec<i64>; 5] {
        let Self { allocatable, used, requested, idle, future_idle } = self;
        [allocatable, used, requested, idle, future_idle]
    }
}
