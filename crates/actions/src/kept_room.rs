//! Room that eviction holds keep: an evicting action does not take the room of members of other
//! jobs for which pods were evicted.
//! Specification: actions.md 2.11.

use std::collections::{BTreeMap, BTreeSet};

use vc_framework::{Op, Statement};
use vc_model::{JobId, NodeId};
use vc_resource::Resource;

/// Returns the first node on which the placements of the statement take room that is kept for
/// waiting members of other jobs. `None` if there is no such node.
///
/// A waiting member keeps no room in allocate, so that a queue whose share fell for one cycle holds
/// nobody up. Evictions beside it would be of no use: the member has the first turn again.
pub(crate) fn find_taken(statement: &Statement<'_, '_>, job: JobId) -> Option<NodeId> {
    let kept = by_node(statement, job);
    if kept.is_empty() {
        return None;
    }
    let taken = |(node, kept): (&NodeId, &Resource)| {
        let mut room = statement.nodes[*node].future_idle();
        let left = kept.fits(&room);
        // Without the statement the room has to be there. Otherwise it is lost already.
        let on_node = |op: &&Op| statement.tasks[op.task()].node == Some(*node);
        for op in statement.ops().iter().filter(on_node) {
            let request = statement.request(op.task());
            match op {
                Op::Evict { .. } => room.sub(request),
                Op::Pipeline { .. } | Op::Allocate { .. } => room.add(request),
            }
        }
        (!left && kept.fits(&room)).then_some(*node)
    };
    kept.iter().find_map(taken)
}

/// Returns what the waiting members of other jobs request that are planned on the nodes where the
/// statement places tasks, per node.
fn by_node(statement: &Statement<'_, '_>, job: JobId) -> BTreeMap<NodeId, Resource> {
    let placed = statement.ops().iter().filter(|op| matches!(op, Op::Pipeline { .. }));
    let nodes: BTreeSet<NodeId> = placed.filter_map(|op| statement.tasks[op.task()].node).collect();
    let mut kept: BTreeMap<NodeId, Resource> = BTreeMap::new();
    for (node, task) in statement.eviction_holds.planned_by_others(statement, job, &nodes) {
        kept.entry(node).or_default().add(statement.request(task));
    }
    kept
}
