//! Node shards: which nodes are in our shard, and the status of our NodeShard. Specification:
//! core.md 4.10, 8.4.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::ids::NodeId;
use crate::record::NodeShardRecord;

/// `--scheduler-sharding-mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShardingMode {
    /// Shards are ignored.
    #[default]
    None,
    /// Nodes outside our shard are refused.
    Hard,
    /// Nodes of our shard are tried first.
    Soft,
}

/// The division of nodes between schedulers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharding {
    /// Effect of a shard.
    pub mode: ShardingMode,
    /// `--scheduler-sharding-name`: our NodeShard.
    pub name: Arc<str>,
}

impl Default for Sharding {
    fn default() -> Self {
        Self { mode: ShardingMode::None, name: "volcano".into() }
    }
}

/// The NodeShards as last seen; ours as last written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Shards {
    by_name: CopyOnWrite<BTreeMap<Arc<str>, NodeShardRecord>>,
    /// Names of the nodes in our shard; the nodes need not exist.
    pub(super) ours: CopyOnWrite<BTreeSet<Arc<str>>>,
    /// True if our status could not be written.
    failed: bool,
}

copy_on_write_members! { Shards: shared by_name, ours; copied failed; }

impl Cluster {
    pub(super) fn node_shard_applied(&mut self, record: NodeShardRecord) {
        if record.name == self.settings.sharding.name {
            self.shards.failed = false;
        }
        self.shards.by_name.get_mut().insert(record.name.clone(), record);
        self.recompute_shard();
    }

    pub(super) fn node_shard_deleted(&mut self, name: &str) {
        self.shards.by_name.remove(name);
        self.recompute_shard();
    }

    pub(super) fn node_shard_failed(&mut self, name: &str) {
        self.shards.failed |= name == &*self.settings.sharding.name;
    }

    /// Recomputes our shard: nodes that our NodeShard desires and no other one uses. Without our
    /// NodeShard the last set stays.
    fn recompute_shard(&mut self) {
        let Sharding { mode, name } = &self.settings.sharding;
        let by_name = self.shards.by_name.get();
        let Some(ours) = by_name.get(name).filter(|_| *mode != ShardingMode::None) else { return };
        let others = by_name.values().filter(|shard| shard.name != *name);
        let taken: BTreeSet<&Arc<str>> = others.flat_map(|shard| &shard.nodes_in_use).collect();
        let desired = ours.nodes_desired.iter();
        let free = desired.filter(|node| !taken.contains(node)).cloned().collect();
        self.shards.ours = CopyOnWrite::Own(free);
        for &node in &self.node_order {
            let row = &mut self.nodes[node];
            let in_shard = self.shards.ours.get().contains(&row.name);
            if row.in_shard != in_shard {
                row.in_shard = in_shard;
                self.node_changes.push(node);
            }
        }
    }

    /// True if sharding is on and our NodeShard does not exist.
    pub fn lacks_node_shard(&self) -> bool {
        let Sharding { mode, name } = &self.settings.sharding;
        *mode != ShardingMode::None && !self.shards.by_name.get().contains_key(name)
    }

    /// Returns our NodeShard with the status to write. Returns `None` if the status is current, or
    /// if our NodeShard does not exist.
    pub fn node_shard_to_write(&self) -> Option<NodeShardRecord> {
        let Sharding { mode, name } = &self.settings.sharding;
        let (by_name, ours) = (self.shards.by_name.get(), self.shards.ours.get());
        let stored = by_name.get(name).filter(|_| *mode != ShardingMode::None)?;
        let (used, unused): (Vec<Arc<str>>, Vec<Arc<str>>) =
            stored.nodes_desired.iter().cloned().partition(|node| ours.contains(node));
        let wanted = NodeShardRecord {
            nodes_in_use: distinct(&used),
            // Our shard uses only nodes that are desired, so none is to be removed.
            nodes_to_remove: Vec::new(),
            nodes_to_add: distinct(&unused),
            ..stored.clone()
        };
        let status = |of: &NodeShardRecord| {
            [&of.nodes_in_use, &of.nodes_to_remove, &of.nodes_to_add].map(|nodes| distinct(nodes))
        };
        (self.shards.failed || status(stored) != status(&wanted)).then_some(wanted)
    }

    /// Records a status of our NodeShard as written, until the watch shows another one.
    pub fn node_shard_written(&mut self, record: NodeShardRecord) {
        self.shards.failed = false;
        self.shards.by_name.get_mut().insert(record.name.clone(), record);
    }

    /// True if the shard forbids the node: the mode is hard, and the node is outside (actions.md
    /// 2.6, item 1).
    pub fn is_outside_shard(&self, node: NodeId) -> bool {
        self.settings.sharding.mode == ShardingMode::Hard && !self.nodes[node].in_shard
    }

    /// Returns the nodes in two groups to be tried in order: nodes of our shard, then the others.
    /// Each group keeps the given order. Returns `None` unless the mode is soft.
    pub fn by_shard(&self, nodes: &[NodeId]) -> Option<[Vec<NodeId>; 2]> {
        let soft = self.settings.sharding.mode == ShardingMode::Soft;
        soft.then(|| {
            let (own, others) = nodes.iter().partition(|&&node| self.nodes[node].in_shard);
            [own, others]
        })
    }
}

/// Returns the names sorted and without duplicates.
fn distinct(nodes: &[Arc<str>]) -> Vec<Arc<str>> {
    nodes.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}
