//! The nodes that reach a bound volume. A volume of an in-tree type is used by its CSI driver if
//! the node's CSINode says so. It then has the node affinity that the driver knows.
//! Specification: plugins-nodes.md 5.3, 4.6.

use vc_model::node_selector::labels_match;
use vc_model::{InTree, Node, NodeSelectorTerm, PersistentVolume, VolumeSource, Volumes};

/// A volume that is bound, or will be.
pub(super) struct BoundVolume<'a> {
    volume: &'a PersistentVolume,
    /// The volume as the CSI driver of its in-tree type sees it. `None` if it has no in-tree type.
    translated: Option<TranslatedVolume<'a>>,
}

struct TranslatedVolume<'a> {
    of: InTree,
    /// The node affinity by the driver. `Ok(None)` means that every node reaches it. `Err` says why
    /// the driver does not know it.
    affinity: Result<Option<Vec<NodeSelectorTerm>>, &'a str>,
}

impl<'a> BoundVolume<'a> {
    pub(super) fn new(volume: &'a PersistentVolume) -> Self {
        let (of, affinity) = match &volume.source {
            VolumeSource::Migrated { of, .. } => (*of, Ok(volume.affinity_of_driver(*of))),
            VolumeSource::Untranslatable { of, problem } => (*of, Err(&**problem)),
            VolumeSource::Csi { .. } | VolumeSource::Other => {
                return Self { volume, translated: None };
            }
        };
        Self { volume, translated: Some(TranslatedVolume { of, affinity }) }
    }

    /// True if the volume can be used on the node.
    ///
    /// # Errors
    ///
    /// The node leaves the volume to a driver that does not know it.
    pub(super) fn is_reached(&self, volumes: &Volumes, node: &Node) -> Result<bool, String> {
        let leaves = |translated: &&TranslatedVolume<'_>| {
            let plugins = volumes.csi_node(&node.name).map(|row| &row.migrated_plugins);
            plugins.into_iter().flatten().any(|plugin| **plugin == *translated.of.plugin())
        };
        let affinity = match self.translated.as_ref().filter(leaves) {
            None => &self.volume.node_affinity,
            Some(TranslatedVolume { affinity: Ok(affinity), .. }) => affinity,
            Some(TranslatedVolume { affinity: Err(problem), .. }) => {
                return Err(format!("could not translate pv: {problem}"));
            }
        };
        Ok(affinity.as_ref().is_none_or(|terms| labels_match(terms, &node.labels)))
    }
}
