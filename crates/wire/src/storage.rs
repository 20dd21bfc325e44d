//! Storage classes, drivers, their limits and capacities, attachments. Specification:
//! plugins-nodes.md 4.6, 5.1, 5.5.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{
    BindingMode, CsiDriver, CsiNode, StorageCapacity, StorageClass, TopologyTerm, VolumeAttachment,
};
use vc_resource::Quantity;

use crate::metadata::{self, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::selector::{SlimLabelSelector, label_selector};
use crate::soft::{LenientField, LenientList, LenientMap, object};
use crate::{Kind, WireError, finish};

const DRIVER_PARAMETER: &str = "csi.storage.k8s.io/csi-driver-name";
/// Annotation of a CSINode: the types of volumes that its kubelet leaves to CSI drivers.
const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

/// A StorageClass as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimStorageClass {
    pub metadata: LenientField<SlimMetadata>,
    pub provisioner: LenientField<Arc<str>>,
    pub volume_binding_mode: LenientField<Arc<str>>,
    pub parameters: LenientField<LenientMap<Arc<str>>>,
    pub allowed_topologies: LenientList<SlimTopologyTerm>,
}

/// A term of `allowedTopologies`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimTopologyTerm {
    pub match_label_expressions: LenientList<SlimTopologyLabel>,
}

/// A label of such a term.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimTopologyLabel {
    pub key: LenientField<Arc<str>>,
    pub values: LenientList<Arc<str>>,
}

/// A CSINode as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimCsiNode {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimCsiNodeSpec>,
}

/// `spec` of a CSINode.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimCsiNodeSpec {
    pub drivers: LenientList<SlimNodeDriver>,
}

/// A driver of a CSINode.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNodeDriver {
    pub name: LenientField<Arc<str>>,
    pub allocatable: LenientField<SlimCount>,
}

/// `allocatable` of such a driver.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimCount {
    pub count: LenientField<i32>,
}

/// A CSIDriver as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimCsiDriver {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimCsiDriverSpec>,
}

/// `spec` of a CSIDriver.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimCsiDriverSpec {
    pub storage_capacity: LenientField<bool>,
}

/// A CSIStorageCapacity as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimStorageCapacity {
    pub metadata: LenientField<SlimMetadata>,
    pub storage_class_name: LenientField<Arc<str>>,
    pub capacity: LenientField<Quantity>,
    pub maximum_volume_size: LenientField<Quantity>,
    pub node_topology: LenientField<SlimLabelSelector>,
}

/// A VolumeAttachment as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimVolumeAttachment {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimAttachmentSpec>,
}

/// `spec` of a VolumeAttachment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimAttachmentSpec {
    pub attacher: LenientField<Arc<str>>,
    pub node_name: LenientField<Arc<str>>,
    pub source: LenientField<SlimAttachmentSource>,
}

/// `spec.source` of a VolumeAttachment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimAttachmentSource {
    pub persistent_volume_name: LenientField<Arc<str>>,
}

object!(
    SlimTopologyTerm,
    SlimTopologyLabel,
    SlimCsiNodeSpec,
    SlimNodeDriver,
    SlimCount,
    SlimCsiDriverSpec,
    SlimAttachmentSpec,
    SlimAttachmentSource,
);

impl SlimStorageClass {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<StorageClass, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::StorageClass, self.metadata, &mut problems)?;
        let mode = FieldPath::root("volumeBindingMode");
        let topologies = FieldPath::root("allowedTopologies");
        let mut parameters = problems.labels(self.parameters, &FieldPath::root("parameters"));
        let class = StorageClass {
            name: metadata.name.clone(),
            provisioner: problems.text(self.provisioner, &FieldPath::root("provisioner")),
            mode: match &*problems.text(self.volume_binding_mode, &mode) {
                "WaitForFirstConsumer" => BindingMode::Delayed,
                "" => BindingMode::Absent,
                _ => BindingMode::Immediate,
            },
            driver: parameters.remove(DRIVER_PARAMETER).filter(|driver| !driver.is_empty()),
            allowed_topologies: problems.list(self.allowed_topologies, &topologies, topology),
        };
        finish(class, Kind::StorageClass, "", &metadata.name, problems)
    }
}

fn topology(problems: &mut Problems, slim: SlimTopologyTerm, path: &FieldPath<'_>) -> TopologyTerm {
    let path = path.field("matchLabelExpressions");
    problems.list(slim.match_label_expressions, &path, |problems, slim, path| {
        let key = problems.text(slim.key, &path.field("key"));
        (key, problems.texts(slim.values, &path.field("values")))
    })
}

impl SlimCsiNode {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<CsiNode, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::CsiNode, self.metadata, &mut problems)?;
        let path = FieldPath::root("spec");
        let spec = problems.or_default(self.spec, &path);
        let drivers =
            problems.list(spec.drivers, &path.field("drivers"), |problems, slim, path| {
                let allocatable = path.field("allocatable");
                let count = problems.or_default(slim.allocatable, &allocatable).count;
                let count = problems.read(count, &allocatable.field("count"));
                (problems.text(slim.name, &path.field("name")), count.map(i64::from))
            });
        let listed = metadata.annotations.get(MIGRATED_PLUGINS);
        let plugins = listed.into_iter().flat_map(|listed| listed.split(','));
        let migrated_plugins = plugins.map(Arc::from).collect();
        let node = CsiNode { name: metadata.name.clone(), drivers, migrated_plugins };
        finish(node, Kind::CsiNode, "", &metadata.name, problems)
    }
}

impl SlimCsiDriver {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<CsiDriver, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::CsiDriver, self.metadata, &mut problems)?;
        let path = FieldPath::root("spec");
        let spec = problems.or_default(self.spec, &path);
        let capacity = path.field("storageCapacity");
        let driver = CsiDriver {
            name: metadata.name.clone(),
            storage_capacity: problems.or_default(spec.storage_capacity, &capacity),
        };
        finish(driver, Kind::CsiDriver, "", &metadata.name, problems)
    }
}

impl SlimStorageCapacity {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<StorageCapacity, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::StorageCapacity, self.metadata, &mut problems)?;
        let topology = FieldPath::root("nodeTopology");
        let capacity = problems.read(self.capacity, &FieldPath::root("capacity"));
        let maximum =
            problems.read(self.maximum_volume_size, &FieldPath::root("maximumVolumeSize"));
        let row = StorageCapacity {
            key: metadata.key(),
            class: problems.text(self.storage_class_name, &FieldPath::root("storageClassName")),
            capacity_bytes: capacity.map(Quantity::value),
            maximum_bytes: maximum.map(Quantity::value),
            node_topology: { problems.read(self.node_topology, &topology) }
                .map(|slim| label_selector(slim, &topology, &mut problems)),
        };
        finish(row, Kind::StorageCapacity, &metadata.namespace, &metadata.name, problems)
    }
}

impl SlimVolumeAttachment {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<VolumeAttachment, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::VolumeAttachment, self.metadata, &mut problems)?;
        let path = FieldPath::root("spec");
        let spec = problems.or_default(self.spec, &path);
        let source_path = path.field("source");
        let source = problems.or_default(spec.source, &source_path);
        let volume = source_path.field("persistentVolumeName");
        let row = VolumeAttachment {
            name: metadata.name.clone(),
            attacher: problems.text(spec.attacher, &path.field("attacher")),
            node: problems.text(spec.node_name, &path.field("nodeName")),
            volume: problems.text(source.persistent_volume_name, &volume),
        };
        finish(row, Kind::VolumeAttachment, "", &metadata.name, problems)
    }
}
