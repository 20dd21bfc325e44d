//! The status of our NodeShard, at most one write per cycle. Specification: core.md 4.10.

use vc_framework::{Effect, Session};

use crate::engine::EngineMemory;

/// Writes the status if it differs from the one in the API. A missing NodeShard is logged once.
pub(crate) fn record(session: &mut Session<'_>, memory: &mut EngineMemory) {
    let missing = session.lacks_node_shard();
    if missing && !memory.without_shard {
        let name = &session.view().cluster.settings.sharding.name;
        tracing::error!(
            "node shard {name} does not exist, the nodes of the shard stay as they are"
        );
    }
    memory.without_shard = missing;
    let Some(shard) = session.node_shard_to_write() else { return };
    session.outcome.out.effects.push(Effect::NodeShardStatus {
        shard: shard.name.clone(),
        nodes_in_use: shard.nodes_in_use.clone(),
        nodes_to_remove: shard.nodes_to_remove.clone(),
        nodes_to_add: shard.nodes_to_add.clone(),
    });
    session.cluster_mut().node_shard_written(shard);
}
