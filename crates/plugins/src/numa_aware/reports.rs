//! Reports of nodes whose Numatopology contradicts the node. Specification: plugins-nodes.md 14.1.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_framework::{Outbox, SessionView};
use vc_model::{ChangeReader, Node, NodeId};
use vc_resource::Dim;

/// The nodes that were reported.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct NumaReports {
    #[serde(skip)]
    changed: ChangeReader<NodeId>,
    /// Number of CPUs in the Numatopology and in the node, by node.
    reported: BTreeMap<Arc<str>, (usize, i64)>,
}

impl NumaReports {
    /// Looks at the nodes that changed, and warns of each contradiction once.
    pub(super) fn update(&mut self, view: SessionView<'_>, out: &mut Outbox) {
        let changed: Vec<NodeId> = match self.changed.read(view.cluster.object_changes()) {
            Some(changed) => changed.collect(),
            None => view.info.nodes.to_vec(),
        };
        for id in changed {
            let Some(node) = view.cluster.nodes.get(id) else { continue };
            match contradiction(node) {
                None => drop(self.reported.remove(&node.name)),
                Some(counts) if self.reported.get(&node.name) == Some(&counts) => {}
                Some((n_cpus, capacity)) => {
                    out.warnings.push(format!(
                        "node {}: its Numatopology has {n_cpus} CPUs, but the node has {capacity}. \
                         The Numatopology decides. Restart the exporter of the node, or delete the \
                         Numatopology",
                        node.name
                    ));
                    self.reported.insert(node.name.clone(), (n_cpus, capacity));
                }
            }
        }
    }
}

/// Returns the number of CPUs in the Numatopology and in the node, if the node has fewer. It may
/// have more by oversubscription.
fn contradiction(node: &Node) -> Option<(usize, i64)> {
    let n_cpus = node.numa.as_ref()?.places.len();
    let capacity = node.capacity.get(Dim::CPU) / 1000;
    (capacity < i64::try_from(n_cpus).unwrap_or(i64::MAX)).then_some((n_cpus, capacity))
}
