//! The kinds that become cluster events. Specification: core.md 4.1.

/// A kind that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Pod,
    Node,
    PodGroup,
    Queue,
    PriorityClass,
    Namespace,
    NodeShard,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CsiNode,
    CsiDriver,
    StorageCapacity,
    VolumeAttachment,
    PodDisruptionBudget,
    ResourceQuota,
    ResourceClaim,
    DeviceClass,
    ResourceSlice,
    Service,
    ReplicationController,
    ReplicaSet,
    StatefulSet,
}

/// The kind of an object, if it is one that is read.
pub fn kind_of(api_version: &str, kind: &str) -> Option<Kind> {
    match (api_version, kind) {
        ("v1", "Pod") => Some(Kind::Pod),
        ("v1", "Node") => Some(Kind::Node),
        ("v1", "PersistentVolume") => Some(Kind::PersistentVolume),
        ("v1", "PersistentVolumeClaim") => Some(Kind::PersistentVolumeClaim),
        ("storage.k8s.io/v1", "StorageClass") => Some(Kind::StorageClass),
        ("storage.k8s.io/v1", "CSINode") => Some(Kind::CsiNode),
        ("storage.k8s.io/v1", "CSIDriver") => Some(Kind::CsiDriver),
        ("storage.k8s.io/v1", "CSIStorageCapacity") => Some(Kind::StorageCapacity),
        ("storage.k8s.io/v1", "VolumeAttachment") => Some(Kind::VolumeAttachment),
        ("resource.k8s.io/v1", "ResourceClaim") => Some(Kind::ResourceClaim),
        ("resource.k8s.io/v1", "DeviceClass") => Some(Kind::DeviceClass),
        ("resource.k8s.io/v1", "ResourceSlice") => Some(Kind::ResourceSlice),
        ("v1", "Namespace") => Some(Kind::Namespace),
        ("scheduling.volcano.sh/v1beta1", "PodGroup") => Some(Kind::PodGroup),
        ("scheduling.volcano.sh/v1beta1", "Queue") => Some(Kind::Queue),
        ("scheduling.k8s.io/v1", "PriorityClass") => Some(Kind::PriorityClass),
        ("shard.volcano.sh/v1alpha1", "NodeShard") => Some(Kind::NodeShard),
        ("policy/v1", "PodDisruptionBudget") => Some(Kind::PodDisruptionBudget),
        ("v1", "ResourceQuota") => Some(Kind::ResourceQuota),
        ("v1", "Service") => Some(Kind::Service),
        ("v1", "ReplicationController") => Some(Kind::ReplicationController),
        ("apps/v1", "ReplicaSet") => Some(Kind::ReplicaSet),
        ("apps/v1", "StatefulSet") => Some(Kind::StatefulSet),
        _ => None,
    }
}

impl Kind {
    /// The word for messages.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Node => "node",
            Self::PodGroup => "podgroup",
            Self::Queue => "queue",
            Self::PriorityClass => "priorityclass",
            Self::Namespace => "namespace",
            Self::NodeShard => "nodeshard",
            Self::PersistentVolume => "persistentvolume",
            Self::PersistentVolumeClaim => "persistentvolumeclaim",
            Self::StorageClass => "storageclass",
            Self::CsiNode => "csinode",
            Self::CsiDriver => "csidriver",
            Self::StorageCapacity => "csistoragecapacity",
            Self::VolumeAttachment => "volumeattachment",
            Self::PodDisruptionBudget => "poddisruptionbudget",
            Self::ResourceQuota => "resourcequota",
            Self::ResourceClaim => "resourceclaim",
            Self::DeviceClass => "deviceclass",
            Self::ResourceSlice => "resourceslice",
            Self::Service => "service",
            Self::ReplicationController => "replicationcontroller",
            Self::ReplicaSet => "replicaset",
            Self::StatefulSet => "statefulset",
        }
    }

    /// Whether objects of this kind live in a namespace.
    pub fn is_namespaced(self) -> bool {
        matches!(
            self,
            Self::Pod
                | Self::PodGroup
                | Self::PersistentVolumeClaim
                | Self::StorageCapacity
                | Self::PodDisruptionBudget
                | Self::ResourceQuota
                | Self::ResourceClaim
                | Self::Service
                | Self::ReplicationController
                | Self::ReplicaSet
                | Self::StatefulSet
        )
    }
}
