//! The closed list of what can happen to the cluster state between two cycles.

use std::sync::Arc;

use crate::record::{
    NodeRecord, ObjectKey, PodGroupRecord, PodRecord, PriorityClassRecord, QueueRecord,
};

/// One event. The order of events of one object is the order in which the API server made them.
#[derive(Clone, Debug)]
pub enum ClusterEvent {
    /// A pod was added or changed, as the watch says.
    PodApplied(Box<PodRecord>),
    /// A pod is gone. The uid keeps a late event from hitting a successor of the same name.
    PodDeleted { key: ObjectKey, uid: Arc<str> },
    /// The answer to a GET after a failed write: believed whatever was assumed (core.md 4.5, resync).
    PodResynced(Box<PodRecord>),
    /// A bind failed with this error; the pod stays Binding until `PodResynced` or `PodDeleted`.
    BindFailed { uid: Arc<str>, node: Arc<str>, error: String },
    /// A pod condition or nomination could not be written; it is compared again in the next cycle.
    PodStatusFailed { uid: Arc<str> },
    NodeApplied(Box<NodeRecord>),
    NodeDeleted { name: Arc<str> },
    PodGroupApplied(Box<PodGroupRecord>),
    PodGroupDeleted { key: ObjectKey },
    /// Our PodGroup status was stored under this version (core.md 11 (c)).
    PodGroupWritten { key: ObjectKey, resource_version: Arc<str> },
    /// Our PodGroup status was not stored.
    PodGroupFailed { key: ObjectKey },
    QueueApplied(Box<QueueRecord>),
    QueueDeleted { name: Arc<str> },
    /// Our queue status was not stored.
    QueueFailed { name: Arc<str> },
    PriorityClassApplied(PriorityClassRecord),
    PriorityClassDeleted { name: Arc<str> },
    NamespaceApplied { name: Arc<str>, labels: crate::selector::Labels },
    NamespaceDeleted { name: Arc<str> },
}
