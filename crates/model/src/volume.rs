//! Rows of PersistentVolumes, PersistentVolumeClaims and the objects that restrict their nodes.
//! Specification: plugins-nodes.md 3.5, 4.6-4.9, 5.1.

mod attached;
mod in_tree;
mod index;
mod names;
mod pod;
mod reservation;
mod store;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::record::ObjectKey;
use crate::selector::{Labels, NodeSelectorTerm};

pub use attached::NodeVolumes;
pub use in_tree::{InTree, aws_ebs, gce_pd};
pub use index::Decision;
pub use names::{VolumeName, csi_dimension};
pub use pod::{Disk, PodClaim, PodVolume};
pub use reservation::{BindingStage, Reservation, ReservedClaim};
pub use store::{Selected, Volumes};

/// A set of access modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessModes(u8);

impl AccessModes {
    /// One node may write.
    pub const READ_WRITE_ONCE: Self = Self(1);
    /// Many nodes may read.
    pub const READ_ONLY_MANY: Self = Self(2);
    /// Many nodes may write.
    pub const READ_WRITE_MANY: Self = Self(4);
    /// One pod may write.
    pub const READ_WRITE_ONCE_POD: Self = Self(8);
    /// A mode that this version does not know; no volume offers it.
    const UNKNOWN: Self = Self(16);

    /// Returns the set of the modes with these names.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let bit = |name| match name {
            "ReadWriteOnce" => Self::READ_WRITE_ONCE,
            "ReadOnlyMany" => Self::READ_ONLY_MANY,
            "ReadWriteMany" => Self::READ_WRITE_MANY,
            "ReadWriteOncePod" => Self::READ_WRITE_ONCE_POD,
            _ => Self::UNKNOWN,
        };
        names.into_iter().map(bit).fold(Self::default(), |all, mode| Self(all.0 | mode.0))
    }

    /// True if all modes of `wanted` are in this set and known.
    pub fn offer(self, wanted: Self) -> bool {
        wanted.0 & !self.0 == 0 && wanted.0 & Self::UNKNOWN.0 == 0
    }

    /// True if at least one mode of `others` is in this set.
    pub fn any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// `volumeMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeMode {
    /// A mounted file system, also the default.
    #[default]
    Filesystem,
    /// A raw device.
    Block,
}

/// The source of a PersistentVolume, as far as volume limits read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum VolumeSource {
    /// `spec.csi`.
    Csi {
        /// Name of the driver.
        driver: Arc<str>,
        /// `volumeHandle`.
        handle: Arc<str>,
    },
    /// An in-tree type that a CSI driver serves now.
    Migrated {
        /// The in-tree type.
        of: InTree,
        /// Volume handle of the CSI driver.
        handle: Arc<str>,
    },
    /// An in-tree volume that has no CSI volume handle.
    Untranslatable {
        /// The in-tree type.
        of: InTree,
        /// Why there is no volume handle.
        problem: Arc<str>,
    },
    /// Any other source, which is not counted.
    #[default]
    Other,
}

/// `status.phase` of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumePhase {
    /// The volume may be bound.
    Available,
    /// Any other phase.
    #[default]
    Other,
}

/// `spec.claimRef` of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimRef {
    /// Namespace and name of the claim.
    pub claim: ObjectKey,
    /// Uid of the claim; empty means any claim with this name.
    pub uid: Arc<str>,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PersistentVolume {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// True if a deletionTimestamp is set.
    pub deleting: bool,
    /// Annotation, else `spec.storageClassName`; empty if absent.
    pub class: Arc<str>,
    /// `spec.capacity` in bytes, rounded up.
    pub capacity_bytes: i64,
    /// `spec.volumeMode`.
    pub mode: VolumeMode,
    /// `spec.volumeAttributesClassName`; empty if none.
    pub attributes_class: Arc<str>,
    /// `spec.accessModes`.
    pub access_modes: AccessModes,
    /// `spec.claimRef`. `None` if the volume is neither bound nor reserved for a claim.
    pub claim: Option<ClaimRef>,
    /// `spec.nodeAffinity.required`. `None` if every node can access the volume.
    pub node_affinity: Option<Vec<NodeSelectorTerm>>,
    /// The source of the volume.
    pub source: VolumeSource,
    /// `status.phase`.
    pub phase: VolumePhase,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersistentVolumeClaim {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Arc<str>,
    /// True if a deletionTimestamp is set.
    pub deleting: bool,
    /// Uid of the owner with `controller: true`. `None` if there is none.
    pub controller_uid: Option<Arc<str>>,
    /// Annotation, else `spec.storageClassName`; empty if absent.
    pub class: Arc<str>,
    /// Requested bytes, rounded up. `None` if nothing is requested.
    pub request_bytes: Option<i64>,
    /// `spec.volumeMode`.
    pub mode: VolumeMode,
    /// `spec.volumeAttributesClassName`; empty if none.
    pub attributes_class: Arc<str>,
    /// `spec.accessModes`.
    pub access_modes: AccessModes,
    /// `spec.selector`. `None` if any volume matches.
    pub selector: Option<crate::selector::LabelSelector>,
    /// `spec.volumeName`; empty if the claim is not bound.
    pub volume_name: Arc<str>,
    /// True if annotation `pv.kubernetes.io/bind-completed` is present.
    pub bind_completed: bool,
    /// Annotation `volume.kubernetes.io/selected-node`.
    pub selected_node: Option<Arc<str>>,
    /// True if the claim has any annotation.
    pub has_annotations: bool,
    /// True if `status.phase` is `Lost`.
    pub lost: bool,
}

impl PersistentVolumeClaim {
    /// Returns a claim with this name and no other field set.
    pub fn new(key: ObjectKey) -> Self {
        Self {
            key,
            uid: Arc::default(),
            resource_version: Arc::default(),
            deleting: false,
            controller_uid: None,
            class: Arc::default(),
            request_bytes: None,
            mode: VolumeMode::default(),
            attributes_class: Arc::default(),
            access_modes: AccessModes::default(),
            selector: None,
            volume_name: Arc::default(),
            bind_completed: false,
            selected_node: None,
            has_annotations: false,
            lost: false,
        }
    }

    /// True if the claim has a volume and annotation `pv.kubernetes.io/bind-completed`
    /// (plugins-nodes.md 5.1).
    pub fn is_bound(&self) -> bool {
        !self.volume_name.is_empty() && self.bind_completed
    }
}

/// `volumeBindingMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindingMode {
    /// `WaitForFirstConsumer`.
    Delayed,
    /// `Immediate`.
    Immediate,
    /// The object names no mode.
    #[default]
    Absent,
}

/// A StorageClass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StorageClass {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `provisioner`.
    pub provisioner: Arc<str>,
    /// `volumeBindingMode`.
    pub mode: BindingMode,
    /// Parameter `csi.storage.k8s.io/csi-driver-name`. `None` if the provisioner is the driver.
    pub driver: Option<Arc<str>>,
    /// `allowedTopologies`: a node must meet one of the terms. Empty means any node.
    pub allowed_topologies: Vec<TopologyTerm>,
}

/// Labels that a node must have, each with the values that are allowed.
pub type TopologyTerm = Vec<(Arc<str>, Vec<Arc<str>>)>;

/// A CSINode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CsiNode {
    /// `metadata.name`, which is the name of the node.
    pub name: Arc<str>,
    /// Drivers with `allocatable.count`. `None` if a driver states no limit.
    pub drivers: Vec<(Arc<str>, Option<i64>)>,
    /// In-tree types that the kubelet leaves to CSI drivers, from the annotation.
    pub migrated_plugins: Vec<Arc<str>>,
}

/// A CSIDriver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiDriver {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `spec.storageCapacity`.
    pub storage_capacity: bool,
}

/// A CSIStorageCapacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageCapacity {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `storageClassName`.
    pub class: Arc<str>,
    /// `capacity` in bytes, rounded up. `None` if it is unknown.
    pub capacity_bytes: Option<i64>,
    /// `maximumVolumeSize` in bytes. `None` if only the capacity limits a volume.
    pub maximum_bytes: Option<i64>,
    /// `nodeTopology`. `None` if no node can access the storage.
    pub node_topology: Option<crate::selector::LabelSelector>,
}

/// A VolumeAttachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeAttachment {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `spec.attacher`.
    pub attacher: Arc<str>,
    /// `spec.nodeName`.
    pub node: Arc<str>,
    /// `spec.source.persistentVolumeName`; empty for an inline volume.
    pub volume: Arc<str>,
}

/// An object of storage that was added or changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StorageObject {
    /// PersistentVolume.
    Volume(PersistentVolume),
    /// PersistentVolumeClaim.
    Claim(PersistentVolumeClaim),
    /// StorageClass.
    Class(StorageClass),
    /// CSINode.
    CsiNode(CsiNode),
    /// CSIDriver.
    CsiDriver(CsiDriver),
    /// CSIStorageCapacity.
    Capacity(StorageCapacity),
    /// VolumeAttachment.
    Attachment(VolumeAttachment),
}

/// Kind of a [`StorageObject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StorageKind {
    /// PersistentVolume.
    Volume,
    /// PersistentVolumeClaim.
    Claim,
    /// StorageClass.
    Class,
    /// CSINode.
    CsiNode,
    /// CSIDriver.
    CsiDriver,
    /// CSIStorageCapacity.
    Capacity,
    /// VolumeAttachment.
    Attachment,
}
