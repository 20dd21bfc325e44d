//! The kinds that become cluster events. Specification: core.md 4.1.

/// A row: kind, version and name in the API, the word for messages, and whether its objects live in a
/// namespace.
macro_rules! kinds {
    ($($kind:ident, $version:literal $name:literal $noun:literal, $is_namespaced:literal;)+) => {
        /// A kind that is read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($kind,)+
        }

        /// The kind of an object, if it is one that is read.
        pub fn kind_of(api_version: &str, kind: &str) -> Option<Kind> {
            match (api_version, kind) {
                $(($version, $name) => Some(Kind::$kind),)+
                _ => None,
            }
        }

        impl Kind {
            /// The word for messages, as in `csinode a: ...`.
            pub fn noun(self) -> &'static str {
                match self {
                    $(Self::$kind => $noun,)+
                }
            }

            /// True if objects of this kind live in a namespace.
            pub fn is_namespaced(self) -> bool {
                match self {
                    $(Self::$kind => $is_namespaced,)+
                }
            }
        }
    };
}

kinds! {
    Pod, "v1" "Pod" "pod", true;
    Node, "v1" "Node" "node", false;
    PodGroup, "scheduling.volcano.sh/v1beta1" "PodGroup" "podgroup", true;
    Queue, "scheduling.volcano.sh/v1beta1" "Queue" "queue", false;
    PriorityClass, "scheduling.k8s.io/v1" "PriorityClass" "priorityclass", false;
    Namespace, "v1" "Namespace" "namespace", false;
    NodeShard, "shard.volcano.sh/v1alpha1" "NodeShard" "nodeshard", false;
    NumaTopology, "nodeinfo.volcano.sh/v1alpha1" "Numatopology" "numatopology", false;
    HyperNode, "topology.volcano.sh/v1alpha1" "HyperNode" "hypernode", false;
    PersistentVolume, "v1" "PersistentVolume" "persistentvolume", false;
    PersistentVolumeClaim, "v1" "PersistentVolumeClaim" "persistentvolumeclaim", true;
    StorageClass, "storage.k8s.io/v1" "StorageClass" "storageclass", false;
    CsiNode, "storage.k8s.io/v1" "CSINode" "csinode", false;
    CsiDriver, "storage.k8s.io/v1" "CSIDriver" "csidriver", false;
    StorageCapacity, "storage.k8s.io/v1" "CSIStorageCapacity" "csistoragecapacity", true;
    VolumeAttachment, "storage.k8s.io/v1" "VolumeAttachment" "volumeattachment", false;
    PodDisruptionBudget, "policy/v1" "PodDisruptionBudget" "poddisruptionbudget", true;
    ResourceQuota, "v1" "ResourceQuota" "resourcequota", true;
    ResourceClaim, "resource.k8s.io/v1" "ResourceClaim" "resourceclaim", true;
    DeviceClass, "resource.k8s.io/v1" "DeviceClass" "deviceclass", false;
    ResourceSlice, "resource.k8s.io/v1" "ResourceSlice" "resourceslice", false;
    Service, "v1" "Service" "service", true;
    ReplicationController, "v1" "ReplicationController" "replicationcontroller", true;
    ReplicaSet, "apps/v1" "ReplicaSet" "replicaset", true;
    StatefulSet, "apps/v1" "StatefulSet" "statefulset", true;
}
