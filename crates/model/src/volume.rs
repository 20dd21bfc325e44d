//! Volumes, claims and what says where they may be: the objects as rows. Specification:
//! plugins-nodes.md 3.5, 4.6-4.9, 5.1.

mod attached;
mod in_tree;
mod index;
mod names;
mod pod;
mod reservation;
mod store;

use std::sync::Arc;

use crate::record::ObjectKey;
use crate::selector::{Labels, NodeSelectorTerm};

pub use attached::NodeVolumes;
pub use in_tree::{InTree, aws_ebs, gce_pd};
pub use index::Decision;
pub use names::{VolumeName, csi_dimension};
pub use pod::{Disk, PodClaim, PodVolume};
pub use reservation::{Reservation, ReservedClaim, Stage};
pub use store::{Selected, Volumes};

/// `ReadWriteOnce` and its kin as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// A mode of a newer server: nothing offers it.
    const UNKNOWN: Self = Self(16);

    /// The modes of these names.
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

    /// Whether all of `wanted` are in.
    pub fn offer(self, wanted: Self) -> bool {
        wanted.0 & !self.0 == 0 && wanted.0 & Self::UNKNOWN.0 == 0
    }

    /// Whether one of `others` is in.
    pub fn any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// `volumeMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VolumeMode {
    /// Also when absent.
    #[default]
    Filesystem,
    /// A raw device.
    Block,
}

/// What a PersistentVolume is made of, as far as volume limits go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum VolumeSource {
    /// `spec.csi`.
    Csi {
        /// Name of the driver.
        driver: Arc<str>,
        /// `volumeHandle`.
        handle: Arc<str>,
    },
    /// A type that was part of Kubernetes and is served by a CSI driver now.
    Migrated {
        /// Which.
        of: InTree,
        /// As the driver calls the volume.
        handle: Arc<str>,
    },
    /// Of such a type, but the driver has no name for it.
    Untranslatable {
        /// Which.
        of: InTree,
        /// Why.
        problem: Arc<str>,
    },
    /// Anything else: not counted.
    #[default]
    Other,
}

/// `status.phase` of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VolumePhase {
    /// May be bound.
    Available,
    /// Any other.
    #[default]
    Other,
}

/// `spec.claimRef` of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRef {
    /// Namespace and name.
    pub claim: ObjectKey,
    /// Empty: whatever claim has this name.
    pub uid: Arc<str>,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PersistentVolume {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// A deletionTimestamp is set.
    pub deleting: bool,
    /// Annotation, else `spec.storageClassName`; empty if none.
    pub class: Arc<str>,
    /// Bytes, rounded up.
    pub capacity_bytes: i64,
    /// `spec.volumeMode`.
    pub mode: VolumeMode,
    /// `spec.volumeAttributesClassName`; empty if none.
    pub attributes_class: Arc<str>,
    /// `spec.accessModes`.
    pub access_modes: AccessModes,
    /// `None`: not bound and not meant for a claim.
    pub claim: Option<ClaimRef>,
    /// `spec.nodeAffinity.required`; `None`: every node reaches it.
    pub node_affinity: Option<Vec<NodeSelectorTerm>>,
    /// What it is made of.
    pub source: VolumeSource,
    /// `status.phase`.
    pub phase: VolumePhase,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq)]
pub struct PersistentVolumeClaim {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Arc<str>,
    /// A deletionTimestamp is set.
    pub deleting: bool,
    /// Uid of the owner with `controller: true`; `None`: there is none.
    pub controller_uid: Option<Arc<str>>,
    /// Annotation, else `spec.storageClassName`; empty if none.
    pub class: Arc<str>,
    /// Requested bytes, rounded up; `None`: nothing is requested.
    pub request_bytes: Option<i64>,
    /// `spec.volumeMode`.
    pub mode: VolumeMode,
    /// `spec.volumeAttributesClassName`; empty if none.
    pub attributes_class: Arc<str>,
    /// `spec.accessModes`.
    pub access_modes: AccessModes,
    /// `spec.selector`; `None`: any volume.
    pub selector: Option<crate::selector::LabelSelector>,
    /// `spec.volumeName`; empty: not bound.
    pub volume_name: Arc<str>,
    /// Annotation `pv.kubernetes.io/bind-completed` is there.
    pub bind_completed: bool,
    /// Annotation `volume.kubernetes.io/selected-node`.
    pub selected_node: Option<Arc<str>>,
    /// It has annotations at all.
    pub has_annotations: bool,
    /// `status.phase` is `Lost`.
    pub lost: bool,
}

impl PersistentVolumeClaim {
    /// A claim of this name, with nothing set.
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

    /// Volume and annotation are there (plugins-nodes.md 5.1).
    pub fn is_bound(&self) -> bool {
        !self.volume_name.is_empty() && self.bind_completed
    }
}

/// `volumeBindingMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BindingMode {
    /// `WaitForFirstConsumer`.
    Delayed,
    /// `Immediate`.
    Immediate,
    /// The object names none.
    #[default]
    Absent,
}

/// A StorageClass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StorageClass {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `provisioner`.
    pub provisioner: Arc<str>,
    /// `volumeBindingMode`.
    pub mode: BindingMode,
    /// Parameter `csi.storage.k8s.io/csi-driver-name`; `None`: the provisioner is the driver.
    pub driver: Option<Arc<str>>,
    /// `allowedTopologies`: one of the terms must hold; empty: any node.
    pub allowed_topologies: Vec<TopologyTerm>,
}

/// Labels that a node must have, each with one of these values.
pub type TopologyTerm = Vec<(Arc<str>, Vec<Arc<str>>)>;

/// A CSINode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CsiNode {
    /// `metadata.name`, that of the node.
    pub name: Arc<str>,
    /// Driver and `allocatable.count`; `None`: it states no limit.
    pub drivers: Vec<(Arc<str>, Option<i64>)>,
    /// Types of volumes that the kubelet leaves to CSI drivers, by annotation.
    pub migrated_plugins: Vec<Arc<str>>,
}

/// A CSIDriver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsiDriver {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `spec.storageCapacity`.
    pub storage_capacity: bool,
}

/// A CSIStorageCapacity.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageCapacity {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `storageClassName`.
    pub class: Arc<str>,
    /// Bytes, rounded up; `None`: unknown.
    pub capacity_bytes: Option<i64>,
    /// Bytes of the largest volume; `None`: the capacity decides.
    pub maximum_bytes: Option<i64>,
    /// `nodeTopology`; `None`: no node reaches it.
    pub node_topology: Option<crate::selector::LabelSelector>,
}

/// A VolumeAttachment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeAttachment {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `spec.attacher`.
    pub attacher: Arc<str>,
    /// `spec.nodeName`.
    pub node: Arc<str>,
    /// `spec.source.persistentVolumeName`; empty: an inline volume.
    pub volume: Arc<str>,
}

/// An object of one of these kinds that was added or changed.
#[derive(Clone, Debug, PartialEq)]
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

/// Which of these kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
