//! The slim types of vc-wire, where the API server keeps their objects, and which events they become.
//! Specification: core.md 4.1.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use vc_model::{
    ClusterEvent, DeviceObject, ObjectKey, PodGroupPhase, SelectorObject, StorageObject,
};
use vc_wire::{
    Brief, Kind, Own, SlimBudget, SlimCsiDriver, SlimCsiNode, SlimDeviceClass, SlimMetadata,
    SlimNamespace, SlimNode, SlimNodeShard, SlimPersistentVolume, SlimPersistentVolumeClaim,
    SlimPod, SlimPodGroup, SlimPriorityClass, SlimQueue, SlimQuota, SlimReplicaSet,
    SlimReplicationController, SlimResourceClaim, SlimResourceSlice, SlimService, SlimStatefulSet,
    SlimStorageCapacity, SlimStorageClass, SlimVolumeAttachment, Soft, WireError,
};

use crate::observe::Observer;

/// A slim type and where the API server keeps its objects.
pub(crate) trait Slim: DeserializeOwned + Send + 'static {
    const KIND: Kind;
    const GROUP: &'static str;
    const VERSION: &'static str;
    const NAME: &'static str;
    const PLURAL: &'static str;
    /// True if the kind counts as "there are none" when the server refuses it or does not have it
    /// (C-06). The others say where pods are and may go, how far apart, and who comes first.
    const OPTIONAL: bool = matches!(
        Self::KIND,
        Kind::NodeShard
            | Kind::PodDisruptionBudget
            | Kind::ResourceQuota
            | Kind::StorageClass
            | Kind::CsiNode
            | Kind::CsiDriver
            | Kind::StorageCapacity
            | Kind::VolumeAttachment
            | Kind::ResourceClaim
            | Kind::DeviceClass
            | Kind::ResourceSlice
            | Kind::Service
            | Kind::ReplicationController
            | Kind::ReplicaSet
            | Kind::StatefulSet
    );

    /// Its objects are written whole (README, ARCHITECTURE).
    const WRITTEN_WHOLE: bool = matches!(Self::KIND, Kind::PodGroup);

    fn metadata(&self) -> &Soft<SlimMetadata>;

    /// From the text of an object; `None`: in another way than this.
    fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The event, and what is malformed in an object that is used nevertheless.
    fn event(self) -> Result<(ClusterEvent, Vec<String>), WireError>;
}

/// Slim type, group, kind of ours, kind of the API, plural, and which object of storage it is.
macro_rules! storage {
    ($slim:ty, $group:literal, $kind:ident, $name:literal, $plural:literal, $object:ident) => {
        impl Slim for $slim {
            const KIND: Kind = Kind::$kind;
            const GROUP: &'static str = $group;
            const VERSION: &'static str = "v1";
            const NAME: &'static str = $name;
            const PLURAL: &'static str = $plural;

            fn metadata(&self) -> &Soft<SlimMetadata> {
                &self.metadata
            }

            fn event(self) -> Result<(ClusterEvent, Vec<String>), WireError> {
                let object = StorageObject::$object(self.to_record()?);
                Ok((ClusterEvent::StorageApplied(Box::new(object)), Vec::new()))
            }
        }
    };
}

/// Slim type, group, version, kind, plural, how its record becomes an event, and how it is read if a
/// first list has many.
macro_rules! slim {
    (
        $slim:ty, $group:literal, $version:literal, $kind:ident, $plural:literal,
        $event:expr $(, $read:path)? $(,)?
    ) => {
        impl Slim for $slim {
            const KIND: Kind = Kind::$kind;
            const GROUP: &'static str = $group;
            const VERSION: &'static str = $version;
            const NAME: &'static str = stringify!($kind);
            const PLURAL: &'static str = $plural;

            fn metadata(&self) -> &Soft<SlimMetadata> {
                &self.metadata
            }

            $(fn read(text: &str) -> Option<Self> {
                $read(text)
            })?

            fn event(self) -> Result<(ClusterEvent, Vec<String>), WireError> {
                self.to_record().map($event)
            }
        }
    };
}

slim!(
    SlimPod,
    "",
    "v1",
    Pod,
    "pods",
    |(pod, problems)| (ClusterEvent::PodApplied(Box::new(pod)), problems),
    vc_wire::scanned
);
slim!(
    SlimNode,
    "",
    "v1",
    Node,
    "nodes",
    |(node, problems)| (ClusterEvent::NodeApplied(Box::new(node)), problems),
    vc_wire::scanned
);
slim!(SlimNamespace, "", "v1", Namespace, "namespaces", |metadata| {
    let (name, labels) = (metadata.name, metadata.labels);
    (ClusterEvent::NamespaceApplied { name, labels }, Vec::new())
});
slim!(
    SlimPodGroup,
    "scheduling.volcano.sh",
    "v1beta1",
    PodGroup,
    "podgroups",
    |(group, problems)| (ClusterEvent::PodGroupApplied(Box::new(group)), problems),
    vc_wire::scanned
);
slim!(SlimQueue, "scheduling.volcano.sh", "v1beta1", Queue, "queues", |queue| {
    (ClusterEvent::QueueApplied(Box::new(queue)), Vec::new())
});
slim!(SlimPriorityClass, "scheduling.k8s.io", "v1", PriorityClass, "priorityclasses", |class| {
    (ClusterEvent::PriorityClassApplied(class), Vec::new())
});

slim!(SlimNodeShard, "shard.volcano.sh", "v1alpha1", NodeShard, "nodeshards", |shard| {
    (ClusterEvent::NodeShardApplied(Box::new(shard)), Vec::new())
});

slim!(SlimBudget, "policy", "v1", PodDisruptionBudget, "poddisruptionbudgets", |(
    budget,
    problems,
)| (
    ClusterEvent::BudgetApplied(Box::new(budget)),
    problems
));
slim!(SlimQuota, "", "v1", ResourceQuota, "resourcequotas", |(quota, problems)| {
    (ClusterEvent::QuotaApplied(Box::new(quota)), problems)
});
/// The event of a Service or a controller.
fn selecting((object, problems): (SelectorObject, Vec<String>)) -> (ClusterEvent, Vec<String>) {
    (ClusterEvent::SelectorApplied(Box::new(object)), problems)
}

slim!(SlimService, "", "v1", Service, "services", selecting);
slim!(
    SlimReplicationController,
    "",
    "v1",
    ReplicationController,
    "replicationcontrollers",
    selecting
);
slim!(SlimReplicaSet, "apps", "v1", ReplicaSet, "replicasets", selecting);
slim!(SlimStatefulSet, "apps", "v1", StatefulSet, "statefulsets", selecting);
storage!(
    SlimPersistentVolume,
    "",
    PersistentVolume,
    "PersistentVolume",
    "persistentvolumes",
    Volume
);
storage!(
    SlimPersistentVolumeClaim,
    "",
    PersistentVolumeClaim,
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    Claim
);
storage!(SlimStorageClass, "storage.k8s.io", StorageClass, "StorageClass", "storageclasses", Class);
storage!(SlimCsiNode, "storage.k8s.io", CsiNode, "CSINode", "csinodes", CsiNode);
storage!(SlimCsiDriver, "storage.k8s.io", CsiDriver, "CSIDriver", "csidrivers", CsiDriver);
storage!(
    SlimStorageCapacity,
    "storage.k8s.io",
    StorageCapacity,
    "CSIStorageCapacity",
    "csistoragecapacities",
    Capacity
);
storage!(
    SlimVolumeAttachment,
    "storage.k8s.io",
    VolumeAttachment,
    "VolumeAttachment",
    "volumeattachments",
    Attachment
);

slim!(SlimResourceClaim, "resource.k8s.io", "v1", ResourceClaim, "resourceclaims", |claim| {
    (ClusterEvent::DeviceApplied(Box::new(DeviceObject::Claim(claim))), Vec::new())
});
slim!(SlimDeviceClass, "resource.k8s.io", "v1", DeviceClass, "deviceclasses", |class| {
    (ClusterEvent::DeviceApplied(Box::new(DeviceObject::Class(class))), Vec::new())
});
slim!(SlimResourceSlice, "resource.k8s.io", "v1", ResourceSlice, "resourceslices", |slice| {
    (ClusterEvent::DeviceApplied(Box::new(DeviceObject::Slice(slice))), Vec::new())
});

/// An object that was decoded.
#[derive(Debug)]
pub(crate) struct Object {
    /// Namespace, name and uid; `None`: they cannot be read.
    pub(crate) identity: Option<(ObjectKey, Arc<str>)>,
    /// `metadata.resourceVersion`; `None`: it cannot be read.
    pub(crate) version: Option<Brief>,
    /// What it was decoded from, if it is soon written whole.
    pub(crate) text: Option<Box<str>>,
    decoded: Result<(ClusterEvent, Vec<String>), WireError>,
}

impl Object {
    pub(crate) fn of<S: Slim>(slim: S) -> Self {
        let (identity, version) = (identity(&slim), version(&slim));
        Self { identity, version, text: None, decoded: slim.event() }
    }

    pub(crate) fn with_text<S: Slim>(slim: S, text: &str) -> Self {
        let mut object = Self::of(slim);
        if S::WRITTEN_WHOLE && object.awaits_a_status() {
            object.text = Some(text.into());
        }
        object
    }

    /// Its phase is one that we change.
    fn awaits_a_status(&self) -> bool {
        let Ok((ClusterEvent::PodGroupApplied(group), _)) = &self.decoded else { return false };
        matches!(group.status.phase, PodGroupPhase::Pending | PodGroupPhase::Inqueue)
    }

    /// The event; what is malformed is counted, and logged with its place. `None`: it cannot be used
    /// at all.
    pub(crate) fn event<S: Slim>(self, observer: &dyn Observer) -> Option<ClusterEvent> {
        match self.decoded {
            Ok((event, problems)) => {
                for problem in problems {
                    observer.malformed(S::PLURAL);
                    tracing::warn!(problem, "malformed object");
                }
                Some(event)
            }
            Err(error) => {
                observer.malformed(S::PLURAL);
                tracing::warn!(problem = %error, "object ignored");
                None
            }
        }
    }
}

fn identity<S: Slim>(slim: &S) -> Option<(ObjectKey, Arc<str>)> {
    let Soft::Good(metadata) = slim.metadata() else {
        return None;
    };
    let text = |field: &Soft<Arc<str>>| match field {
        Soft::Good(text) => text.clone(),
        _ => Arc::default(),
    };
    let Soft::Good(Own(name)) = &metadata.name else {
        return None;
    };
    let key = ObjectKey { namespace: text(&metadata.namespace), name: name.clone() };
    (!key.name.is_empty()).then(|| (key, text(&metadata.uid)))
}

fn version<S: Slim>(slim: &S) -> Option<Brief> {
    match slim.metadata() {
        Soft::Good(metadata) => match &metadata.resource_version {
            Soft::Good(version) => Some(version.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Path of all objects of the kind.
pub(crate) fn collection<S: Slim>() -> String {
    match S::GROUP {
        "" => format!("/api/{}/{}", S::VERSION, S::PLURAL),
        group => format!("/apis/{group}/{}/{}", S::VERSION, S::PLURAL),
    }
}
