//! Provisioning: tests whether a volume for the claim can be provisioned for a node. Without
//! `--csi-storage` no driver is known, and capacity is not checked.
//! Specification: plugins-nodes.md 5.5.

use vc_model::{Cluster, Labels, Node, StorageCapacity, TopologyTerm};

use super::{DelayedClaim, NO_ROOM, NO_VOLUME};

/// Returns the reason against the node. Returns `None` if it passes.
///
/// # Errors
///
/// The claim has no class that exists.
pub(super) fn refusal(
    cluster: &Cluster,
    delayed: &DelayedClaim<'_>,
    node: &Node,
) -> Result<Option<&'static str>, String> {
    let class = delayed.class;
    if class.name.is_empty() {
        return Err(format!("no class for claim \"{}\"", delayed.claim.key));
    }
    if matches!(&*class.provisioner, "" | "kubernetes.io/no-provisioner") {
        return Ok(Some(NO_VOLUME));
    }
    let terms = &class.allowed_topologies;
    if !terms.is_empty() && !terms.iter().any(|term| holds(term, &node.labels)) {
        return Ok(Some(NO_VOLUME));
    }
    let Some(request) = delayed.claim.request_bytes else { return Ok(None) };
    let driver = cluster.volumes.csi_driver(&class.provisioner);
    if !driver.is_some_and(|driver| driver.storage_capacity) {
        return Ok(None);
    }
    let mut rows = cluster.volumes.capacities(&class.name);
    let has_room = rows.any(|row| offers(row, request, node));
    Ok((!has_room).then_some(NO_ROOM))
}

/// True if the capacity is of this node and large enough.
pub(super) fn offers(row: &StorageCapacity, request: i64, node: &Node) -> bool {
    let size = row.maximum_bytes.or(row.capacity_bytes);
    let topology = row.node_topology.as_ref();
    size.is_some_and(|size| request <= size)
        && topology.is_some_and(|topology| topology.matches(&node.labels))
}

fn holds(term: &TopologyTerm, labels: &Labels) -> bool {
    term.iter().all(|(label, values)| labels.get(label).is_some_and(|value| values.contains(value)))
}
