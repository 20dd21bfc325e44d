//! The table of watched kinds, one row each. A further kind is a further row here, and nothing else in
//! this crate.
//! Specification: core.md 4.1.

use std::sync::Arc;

use tokio::sync::mpsc;
use vc_model::{ClusterEvent, DeviceObject, ObjectKey, SelectorObject, StorageObject};
use vc_wire::{
    Kind, ShortText, SlimBudget, SlimCsiDriver, SlimCsiNode, SlimDeviceClass, SlimHyperNode,
    SlimNamespace, SlimNode, SlimNodeShard, SlimNumaTopology, SlimPersistentVolume,
    SlimPersistentVolumeClaim, SlimPod, SlimPodGroup, SlimPriorityClass, SlimQueue, SlimQuota,
    SlimReplicaSet, SlimReplicationController, SlimResourceClaim, SlimResourceSlice, SlimService,
    SlimStatefulSet, SlimStorageCapacity, SlimStorageClass, SlimVolumeAttachment, WireError,
    scanned,
};

use crate::client::Clients;
use crate::feeds::Feeds;
use crate::inbox::EngineMessage;
use crate::observe::Observer;
use crate::slim::{self, Slim};

/// A set of kinds that are watched together, each under one condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindSet {
    /// Kinds that every scheduler watches.
    Core,
    /// PriorityClasses, which are watched with the flag `--priority-class`.
    PriorityClasses,
    /// NodeShards, which are watched if `--scheduler-sharding-mode` is hard or soft.
    NodeShards,
    /// CSI drivers and their storage capacities, which are watched with `--csi-storage`.
    CsiStorage,
    /// ResourceClaims, DeviceClasses and ResourceSlices, if the API server serves them.
    Devices,
    /// Controllers of pods, which the default spread constraints need. They are watched with the gate
    /// `WorkLoadSupport` (core.md 1.3).
    Controllers,
    /// Numatopologies, which are watched with the gate `ResourceTopology` (core.md 1.3).
    NumaTopologies,
    /// PodDisruptionBudgets, which are watched with the gate `PodDisruptionBudgetsSupport`
    /// (plugins-jobs-queues.md 10).
    Budgets,
}

/// The objects of a kind at the API server.
#[derive(Debug)]
pub(crate) struct KindCollection {
    pub(crate) set: KindSet,
    /// Name of the kind.
    pub(crate) name: &'static str,
    /// Path of all objects.
    pub(crate) path: String,
    /// What a scheduler without objects of the kind does otherwise. `None`: it needs them.
    pub(crate) without: Option<&'static str>,
}

/// Generates `Slim` for each row, and `Feeds::follow`. A row holds the set, the slim type and the kind;
/// the name, group, version and plural in the API; and the conversion of a record to an event. The
/// consequence of a missing kind stands before the conversion; `None` there: the kind is required. A
/// last column names the reader for texts of long first lists.
macro_rules! kinds {
    ($(
        $set:ident $slim:ty: $kind:ident $name:literal, $group:literal $version:literal
        $plural:literal, $without:expr, $event:expr $(, $read:path)?;
    )+) => {
        $(impl Slim for $slim {
            const KIND: Kind = Kind::$kind;
            const GROUP: &'static str = $group;
            const VERSION: &'static str = $version;
            const NAME: &'static str = $name;
            const PLURAL: &'static str = $plural;
            const WITHOUT: Option<&'static str> = $without;

            fn identity(&self) -> Option<(ObjectKey, Arc<str>)> {
                slim::identity(&self.metadata)
            }

            fn version(&self) -> Option<ShortText> {
                slim::version(&self.metadata)
            }

            $(fn read(text: &str) -> Option<Self> {
                $read(text)
            })?

            fn event(self) -> Result<(ClusterEvent, Vec<String>), WireError> {
                self.to_record().map($event)
            }
        })+

        /// Returns where the objects of every kind are.
        pub(crate) fn collections() -> Vec<KindCollection> {
            vec![$(KindCollection {
                set: KindSet::$set,
                name: $name,
                path: slim::collection::<$slim>(),
                without: $without,
            },)+]
        }

        impl Feeds {
            /// Follows the kinds of the set too.
            pub fn follow(
                &mut self,
                set: KindSet,
                clients: &Clients,
                inbox: &mpsc::Sender<EngineMessage>,
                observer: &Arc<dyn Observer>,
            ) {
                $(if set == KindSet::$set {
                    self.add::<$slim>(clients, inbox, observer);
                })+
            }
        }
    };
}

kinds! {
    Core SlimNode: Node "Node", "" "v1" "nodes", None, checked(ClusterEvent::NodeApplied), scanned;
    Core SlimNamespace: Namespace "Namespace", "" "v1" "namespaces", None, |metadata| {
        let (name, labels) = (metadata.name, metadata.labels);
        (ClusterEvent::NamespaceApplied { name, labels }, Vec::new())
    };
    Core SlimService: Service "Service", "" "v1" "services", NO_SPREAD, selecting;
    Core SlimQueue: Queue "Queue", "scheduling.volcano.sh" "v1beta1" "queues", None,
        |queue| (ClusterEvent::QueueApplied(Box::new(queue)), Vec::new());
    PriorityClasses SlimPriorityClass: PriorityClass "PriorityClass",
        "scheduling.k8s.io" "v1" "priorityclasses", None,
        |class| (ClusterEvent::PriorityClassApplied(class), Vec::new());
    Core SlimStorageClass: StorageClass "StorageClass", "storage.k8s.io" "v1" "storageclasses",
        Some("pods whose volumes are not bound yet wait"), stored(StorageObject::Class);
    Core SlimCsiNode: CsiNode "CSINode", "storage.k8s.io" "v1" "csinodes",
        Some("nodes have no limits of volumes"), stored(StorageObject::CsiNode);
    Core SlimVolumeAttachment: VolumeAttachment "VolumeAttachment",
        "storage.k8s.io" "v1" "volumeattachments",
        Some("volumes that are attached to a node without a pod do not count against its limit"),
        stored(StorageObject::Attachment);
    Core SlimPersistentVolume: PersistentVolume "PersistentVolume", "" "v1" "persistentvolumes",
        None, stored(StorageObject::Volume);
    Core SlimPersistentVolumeClaim: PersistentVolumeClaim "PersistentVolumeClaim",
        "" "v1" "persistentvolumeclaims", None, stored(StorageObject::Claim);
    Core SlimQuota: ResourceQuota "ResourceQuota", "" "v1" "resourcequotas",
        Some("the plugin resourcequota refuses no job"), checked(ClusterEvent::QuotaApplied);
    Core SlimHyperNode: HyperNode "HyperNode", "topology.volcano.sh" "v1alpha1" "hypernodes",
        Some("jobs with a network topology wait"),
        checked(ClusterEvent::HyperNodeApplied);
    Core SlimPodGroup: PodGroup "PodGroup", "scheduling.volcano.sh" "v1beta1" "podgroups", None,
        checked(ClusterEvent::PodGroupApplied), scanned;
    Core SlimPod: Pod "Pod", "" "v1" "pods", None, checked(ClusterEvent::PodApplied), scanned;
    NodeShards SlimNodeShard: NodeShard "NodeShard", "shard.volcano.sh" "v1alpha1" "nodeshards",
        Some("no node belongs to the shard of this scheduler"),
        |shard| (ClusterEvent::NodeShardApplied(Box::new(shard)), Vec::new());
    NumaTopologies SlimNumaTopology: NumaTopology "Numatopology",
        "nodeinfo.volcano.sh" "v1alpha1" "numatopologies",
        Some("no node has NUMA data for the plugin numa-aware"),
        checked(ClusterEvent::NumaTopologyApplied);
    Budgets SlimBudget: PodDisruptionBudget "PodDisruptionBudget",
        "policy" "v1" "poddisruptionbudgets", Some("the plugin pdb protects no pod"),
        checked(ClusterEvent::BudgetApplied);
    Controllers SlimReplicationController: ReplicationController "ReplicationController",
        "" "v1" "replicationcontrollers", NO_SPREAD, selecting;
    Controllers SlimReplicaSet: ReplicaSet "ReplicaSet", "apps" "v1" "replicasets", NO_SPREAD,
        selecting;
    Controllers SlimStatefulSet: StatefulSet "StatefulSet", "apps" "v1" "statefulsets", NO_SPREAD,
        selecting;
    CsiStorage SlimCsiDriver: CsiDriver "CSIDriver", "storage.k8s.io" "v1" "csidrivers",
        Some("the storage capacity of drivers is not checked"), stored(StorageObject::CsiDriver);
    CsiStorage SlimStorageCapacity: StorageCapacity "CSIStorageCapacity",
        "storage.k8s.io" "v1" "csistoragecapacities",
        Some("no driver that publishes its capacity has any"), stored(StorageObject::Capacity);
    Devices SlimDeviceClass: DeviceClass "DeviceClass", "resource.k8s.io" "v1" "deviceclasses",
        NO_ALLOCATION, device(DeviceObject::Class);
    Devices SlimResourceSlice: ResourceSlice "ResourceSlice",
        "resource.k8s.io" "v1" "resourceslices", NO_ALLOCATION, device(DeviceObject::Slice);
    Devices SlimResourceClaim: ResourceClaim "ResourceClaim",
        "resource.k8s.io" "v1" "resourceclaims", Some("pods with resource claims wait"),
        device(DeviceObject::Claim);
}

const NO_SPREAD: Option<&str> = Some("the default topology spread ignores them");
const NO_ALLOCATION: Option<&str> = Some("pods whose claims are not allocated yet wait");

/// An event, and what is malformed in the object.
type EventWithWarnings = (ClusterEvent, Vec<String>);

/// The event of a record that is used although parts of the object are malformed.
fn checked<T>(
    event: impl FnOnce(Box<T>) -> ClusterEvent,
) -> impl FnOnce((T, Vec<String>)) -> EventWithWarnings {
    |(record, problems)| (event(Box::new(record)), problems)
}

/// The event of a Service or a controller.
fn selecting(read: (SelectorObject, Vec<String>)) -> EventWithWarnings {
    checked(ClusterEvent::SelectorApplied)(read)
}

fn stored<T>(object: impl FnOnce(T) -> StorageObject) -> impl FnOnce(T) -> EventWithWarnings {
    |record| (ClusterEvent::StorageApplied(Box::new(object(record))), Vec::new())
}

fn device<T>(object: impl FnOnce(T) -> DeviceObject) -> impl FnOnce(T) -> EventWithWarnings {
    |record| (ClusterEvent::DeviceApplied(Box::new(object(record))), Vec::new())
}
