//! The closed list of what can happen to the cluster state between two cycles.

use std::sync::Arc;

use crate::budget::BudgetRecord;
use crate::default_spread::{SelectorKind, SelectorObject};
use crate::device::{DeviceKind, DeviceObject, ResourceClaim};
use crate::quota::QuotaRecord;
use crate::record::{
    NodeRecord, NodeShardRecord, ObjectKey, PodGroupRecord, PodRecord, PriorityClassRecord,
    QueueRecord,
};
use crate::selector::Labels;
use crate::volume::{StorageKind, StorageObject};

/// One event. The order of events of one object is the order in which the API server made them.
#[derive(Clone, Debug)]
pub enum ClusterEvent {
    /// A pod was added or changed, as the watch says.
    PodApplied(Box<PodRecord>),
    /// A pod is gone. The uid keeps a late event from hitting a successor of the same name.
    PodDeleted {
        /// Namespace and name.
        key: ObjectKey,
        /// Empty: unknown, whatever pod has this name is meant.
        uid: Arc<str>,
    },
    /// The answer to a GET after a failed write: believed whatever was assumed (core.md 4.5,
    /// resync).
    PodResynced(Box<PodRecord>),
    /// A bind failed; the pod stays Binding until `PodResynced` or `PodDeleted`.
    BindFailed {
        /// Of the pod.
        uid: Arc<str>,
        /// Name of the node that it was to be bound to.
        node: Arc<str>,
        /// What the API server said.
        error: String,
        /// The same write would fail again: it is repeated after a pause (core.md 7.2).
        pauses: bool,
    },
    /// An eviction was refused; the pod stays Releasing until `PodResynced` or `PodDeleted`, and is
    /// evicted after a pause at the earliest (core.md 7.2).
    EvictFailed {
        /// Of the pod.
        uid: Arc<str>,
        /// What the API server said.
        error: String,
    },
    /// A pod condition, a nomination or the removal of a gate could not be written; it is compared
    /// again in the next cycle.
    PodStatusFailed {
        /// Of the pod.
        uid: Arc<str>,
    },
    /// A node was added or changed.
    NodeApplied(Box<NodeRecord>),
    /// A node is gone; its pods may still be there (C-19).
    NodeDeleted {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// A PodGroup was added or changed.
    PodGroupApplied(Box<PodGroupRecord>),
    /// A PodGroup is gone; its pods may still be there.
    PodGroupDeleted {
        /// Namespace and name.
        key: ObjectKey,
    },
    /// Our PodGroup status was stored under this version (core.md 11 (c)).
    PodGroupWritten {
        /// Namespace and name.
        key: ObjectKey,
        /// `metadata.resourceVersion` of the answer.
        resource_version: Arc<str>,
    },
    /// Our PodGroup status was not stored.
    PodGroupFailed {
        /// Namespace and name.
        key: ObjectKey,
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
    /// A HyperNode was added or changed.
    HyperNodeApplied {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// A HyperNode is gone.
    HyperNodeDeleted {
        /// `metadata.name`.
        name: Arc<str>,
    },
    /// The list of the HyperNodes has come, or can no longer be read.
    HyperNodesListed {
        /// True: all HyperNodes were sent before. False: the API server refuses them or has no such kind.
        is_complete: bool,
    },
    /// A volume, a claim or another object of storage was added or changed.
    StorageApplied(Box<StorageObject>),
    /// Such an object is gone.
    StorageDeleted {
        /// Which kind.
        kind: StorageKind,
        /// The namespace is empty for kinds of cluster scope.
        key: ObjectKey,
    },
    /// A claim for devices, a class or a slice of them was added or changed.
    DeviceApplied(Box<DeviceObject>),
    /// One of these is gone.
    DeviceDeleted {
        /// Its kind.
        kind: DeviceKind,
        /// Namespace (empty for cluster scope) and name.
        key: ObjectKey,
    },
    /// The volumes and claims of a pod were written as they are now (plugins-nodes.md 5.7).
    VolumesWritten {
        /// Of the pod.
        uid: Arc<str>,
        /// As the API server answered.
        objects: Vec<StorageObject>,
        /// Claims for devices as they are stored now.
        devices: Vec<ResourceClaim>,
    },
    /// What has to be written before a bind was refused; nothing was bound.
    PreBindFailed {
        /// Of the pod.
        uid: Arc<str>,
        /// What the API server said.
        error: String,
        /// The same write would fail again: the bind is repeated after a pause (core.md 7.2).
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
    /// A Service or a controller, which select pods, was added or changed.
    SelectorApplied(Box<SelectorObject>),
    /// One of these is gone.
    SelectorDeleted {
        /// Its kind.
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
}
