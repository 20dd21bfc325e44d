//! The closed list of events that change the cluster state between two cycles.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::budget::BudgetRecord;
use crate::default_spread::{SelectorKind, SelectorObject};
use crate::device::{DeviceKind, DeviceObject, ResourceClaim};
use crate::hyper_node::HyperNodeRecord;
use crate::node_load::NodeLoad;
use crate::numa::NumaTopology;
use crate::quota::QuotaRecord;
use crate::record::{
    NodeRecord, NodeShardRecord, ObjectKey, PodGroupRecord, PodGroupStatus, PodRecord,
    PriorityClassRecord, QueueRecord,
};
use crate::saved_usage::SavedUsage;
use crate::selector::Labels;
use crate::volume::{StorageKind, StorageObject};

/// The write of a pod after which the pod is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadAfter {
    /// A bind that failed, or for which the pre-bind functions failed.
    Bind,
    /// An eviction that failed.
    Eviction,
    /// A nomination that could not be written.
    Nomination,
}

/// One event. Events of one object come in the order in which the API server made them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ClusterEvent {
    /// The watch reported a pod that was added or changed.
    PodApplied(Box<PodRecord>),
    /// A pod is gone. The uid prevents a late event from deleting a new pod with the same name.
    PodDeleted {
        /// Namespace and name.
        key: ObjectKey,
        /// Uid of the pod. If it is empty, the event means any pod with this name.
        uid: Arc<str>,
    },
    /// The answer to a GET after a write of which nobody knows how it has ended. It replaces what
    /// was assumed of that write; what was decided since stays (core.md 4.5: resync).
    PodRead {
        /// What the API server says.
        pod: Box<PodRecord>,
        /// The write.
        after: ReadAfter,
    },
    /// A bind failed; the pod stays Binding until `PodRead` or `PodDeleted`.
    BindFailed {
        /// Uid of the pod.
        uid: Arc<str>,
        /// Name of the node that it was to be bound to.
        node: Arc<str>,
        /// Message of the API server.
        error: String,
        /// True if the same write would fail again; it is repeated after a pause (core.md 7.2).
        pauses: bool,
    },
    /// An eviction was refused. The pod stays Releasing until `PodRead` or `PodDeleted`. It is
    /// evicted again after a pause at the earliest (core.md 7.2).
    EvictFailed {
        /// Uid of the pod.
        uid: Arc<str>,
        /// Message of the API server.
        error: String,
    },
    /// A pod condition, a nomination or the removal of a gate could not be written. The next cycle
    /// compares and writes it again.
    PodStatusFailed {
        /// Uid of the pod.
        uid: Arc<str>,
    },
    /// A node was added or changed.
    NodeApplied(Box<NodeRecord>),
    /// A node is gone; its pods may still exist (C-19).
    NodeDeleted {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// A load source was read. Nodes that are not listed keep what was read before.
    NodeLoadsRead(Vec<(Arc<str>, NodeLoad)>),
    /// The reports of device plugins were read, all of them. Nodes that are not listed have none.
    DeviceReportsRead(Vec<(Arc<str>, Labels)>),
    /// A PodGroup was added or changed.
    PodGroupApplied(Box<PodGroupRecord>),
    /// A PodGroup is gone; its pods may still exist.
    PodGroupDeleted {
        /// Namespace and name.
        key: ObjectKey,
    },
    /// Our PodGroup status was stored with this resource version (core.md 11 (c)).
    PodGroupWritten {
        /// Namespace and name.
        key: ObjectKey,
        /// `metadata.resourceVersion` of the answer.
        resource_version: Arc<str>,
        /// What was stored.
        status: Box<PodGroupStatus>,
    },
    /// Our PodGroup status was not stored. If another status was decided since, that one is on its
    /// way, and the event changes nothing.
    PodGroupFailed {
        /// Namespace and name.
        key: ObjectKey,
        /// What was to be stored.
        status: Box<PodGroupStatus>,
    },
    /// A queue was added or changed.
    QueueApplied(Box<QueueRecord>),
    /// A queue is gone; PodGroups may still name it.
    QueueDeleted {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// Our queue status was not stored.
    QueueFailed {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// A PriorityClass was added or changed.
    PriorityClassApplied(PriorityClassRecord),
    /// A PriorityClass is gone.
    PriorityClassDeleted {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// A NodeShard was added or changed.
    NodeShardApplied(Box<NodeShardRecord>),
    /// A NodeShard is gone.
    NodeShardDeleted {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// Our NodeShard status was not stored.
    NodeShardFailed {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// A Numatopology was added or changed.
    NumaTopologyApplied(Box<NumaTopology>),
    /// A Numatopology is gone.
    NumaTopologyDeleted {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// A HyperNode was added or changed.
    HyperNodeApplied(Box<HyperNodeRecord>),
    /// A HyperNode is gone.
    HyperNodeDeleted {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// The HyperNodes were listed, or can no longer be read.
    HyperNodesListed {
        /// True if all HyperNodes were sent before this event. False if the API server refuses them
        /// or has no such kind.
        is_complete: bool,
    },
    /// A volume, a claim or another object of storage was added or changed.
    StorageApplied(Box<StorageObject>),
    /// A volume, a claim or another object of storage is gone.
    StorageDeleted {
        /// Kind of the object.
        kind: StorageKind,
        /// Namespace and name. The namespace is empty for cluster-scoped kinds.
        key: ObjectKey,
    },
    /// A ResourceClaim, DeviceClass or ResourceSlice was added or changed.
    DeviceApplied(Box<DeviceObject>),
    /// A ResourceClaim, DeviceClass or ResourceSlice is gone.
    DeviceDeleted {
        /// Kind of the object.
        kind: DeviceKind,
        /// Namespace and name. The namespace is empty for cluster-scoped kinds.
        key: ObjectKey,
    },
    /// The volumes and claims of a pod were written, with these contents (plugins-nodes.md 5.7).
    VolumesWritten {
        /// Uid of the pod.
        uid: Arc<str>,
        /// The objects of storage in the answer of the API server.
        objects: Vec<StorageObject>,
        /// ResourceClaims as they are stored now.
        devices: Vec<ResourceClaim>,
    },
    /// A write that must precede a bind was refused; nothing was bound.
    PreBindFailed {
        /// Uid of the pod.
        uid: Arc<str>,
        /// Message of the API server.
        error: String,
        /// True if the same write would fail again; the bind is repeated after a pause (core.md
        /// 7.2).
        pauses: bool,
    },
    /// A PodDisruptionBudget was added or changed.
    BudgetApplied(Box<BudgetRecord>),
    /// A PodDisruptionBudget is gone.
    BudgetDeleted {
        /// Namespace and name.
        key: ObjectKey,
    },
    /// A ResourceQuota was added or changed.
    QuotaApplied(Box<QuotaRecord>),
    /// A ResourceQuota is gone.
    QuotaDeleted {
        /// Namespace and name.
        key: ObjectKey,
    },
    /// Usage that an earlier process has saved was read. `None`: there is none.
    UsageRead(Option<Arc<SavedUsage>>),
    /// Our usage was not saved.
    UsageNotSaved,
    /// A Service or controller with a pod selector was added or changed.
    SelectorApplied(Box<SelectorObject>),
    /// A Service or controller with a pod selector is gone.
    SelectorDeleted {
        /// Kind of the object.
        kind: SelectorKind,
        /// Namespace and name.
        key: ObjectKey,
    },
    /// A namespace was added or changed.
    NamespaceApplied {
        /// `metadata.name`.
        name: Arc<str>,
        /// `metadata.labels`.
        labels: Labels,
    },
    /// A namespace is gone.
    NamespaceDeleted {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// Usage that an earlier process has saved could not be read yet. Nothing is saved over it until it was.
    UsageUnread,
}
