//! The nodes that reach a bound volume. A volume of a type that was part of Kubernetes is used by
//! its CSI driver where the node's CSINode says so, and then has the node affinity that the driver
//! knows (plugins-nodes.md 5.3, 4.6).

use vc_model::node_selector::labels_match;
use vc_model::{InTree, Node, NodeSelectorTerm, PersistentVolume, VolumeSource, Volumes};

/// A volume that is bound, or is to be.
pub(super) struct Bound<'a> {
    volume: &'a PersistentVolume,
    /// How the CSI driver of its type has it; `None`: it has no such type.
    translated: Option<Translated<'a>>,
}

struct Translated<'a> {
    of: InTree,
    /// `None` inside: every node reaches it; an error says why the driver does not know it.
    affinity: Result<Option<Vec<NodeSelectorTerm>>, &'a str>,
}

impl<'a> Bound<'a> {
    pub(super) fn new(volume: &'a PersistentVolume) -> Self {
        let (of, affinity) = match &volume.source {
            VolumeSource::Migrated { of, .. } => (*of, Ok(volume.affinity_of_driver(*of))),
            VolumeSource::Untranslatable { of, problem } => (*of, Err(&**problem)),
            VolumeSource::Csi { .. } | VolumeSource::Other => {
                return Self { volume, translated: None };
            }
        };
        Self { volume, translated: Some(Translated { of, affinity }) }
    }

    /// Whether it can be used on the node.
    ///
    /// # Errors
    /// The node leaves it to a driver that does not know it.
    pub(super) fn is_reached(&self, volumes: &Volumes, node: &Node) -> Result<bool, String> {
        let leaves = |translated: &&Translated<'_>| {
            let plugins = volumes.csi_node(&node.name).map(|row| &row.migrated_plugins);
            plugins.into_iter().flatten().any(|plugin| **plugin == *translated.of.plugin())
        };
        let affinity = match self.translated.as_ref().filter(leaves) {
            None => &self.volume.node_affinity,
            Some(Translated { affinity: Ok(affinity), .. }) => affinity,
            Some(Translated { affinity: Err(problem), .. }) => {
                return Err(format!("could not translate pv: {problem}"));
            }
        };
        Ok(affinity.as_ref().is_none_or(|terms| labels_match(terms, &node.labels)))
    }
}
