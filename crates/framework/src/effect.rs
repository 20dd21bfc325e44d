//! Effects: self-contained requests of a cycle to the edge. Specification: core.md 7.

use std::sync::Arc;

use vc_model::{
    Allocation, ClaimPromise, Cluster, ObjectKey, PodCondition, PodGroupStatus, ReservedClaim,
    SavedUsage, TaskId,
};

/// Reason of an eviction; the text of events and conditions (core.md 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictReason {
    /// For a job of the same queue.
    Preempt,
    /// For a job of another queue.
    Reclaim,
    /// For a gang of the same queue, by bundles.
    GangPreempt,
    /// For a gang of another queue, by bundles.
    GangReclaim,
    /// A plugin chose it (shuffle).
    Shuffle,
}

impl EvictReason {
    /// Returns the text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preempt => "preempt",
            Self::Reclaim => "reclaim",
            Self::GangPreempt => "gangpreempt",
            Self::GangReclaim => "gangreclaim",
            Self::Shuffle => "shuffle",
        }
    }
}

/// Returns the text of the event `Evict` on a victim (core.md 7.2), which names the PodGroup that
/// gets the room. Without a PodGroup it is the text of the condition `Ready`.
pub fn evict_message(reason: EvictReason, pod_group: Option<&ObjectKey>) -> String {
    let reason = reason.as_str();
    match pod_group {
        Some(key) => format!("Pod is evicted, because of {reason}: for PodGroup {key}"),
        None => format!("Pod is evicted, because of {reason}"),
    }
}

/// A lock of a node, which is written before a bind and kept until the pod has its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLock {
    /// Key of the annotation.
    pub annotation: Arc<str>,
    /// Time of the decision, in microseconds since 1970; the value of the annotation.
    pub now_micros: i64,
}

impl Effect {
    /// Returns the bind of a task to the node that it has, with the annotations that name its shared
    /// devices. Returns `None` if the task has no node.
    pub fn bind(cluster: &Cluster, task: TaskId, now_micros: i64) -> Option<Self> {
        let row = &cluster.tasks[task];
        let devices = row.devices.iter().flat_map(|devices| devices.iter());
        let lock = |annotation: &Arc<str>| {
            Box::new(NodeLock { annotation: annotation.clone(), now_micros })
        };
        Some(Self::Bind {
            pod: row.key.clone(),
            uid: row.uid.clone(),
            node: cluster.nodes[row.node?].name.clone(),
            annotations: devices.map(|(key, value)| (key.clone(), value.clone())).collect(),
            node_lock: row.node_lock.as_ref().map(lock),
        })
    }
}

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// A pod.
    Pod {
        /// Namespace and name.
        key: ObjectKey,
        /// `metadata.uid`.
        uid: Arc<str>,
    },
    /// A PodGroup.
    PodGroup {
        /// Namespace and name.
        key: ObjectKey,
        /// `metadata.uid`.
        uid: Arc<str>,
    },
    /// A queue.
    Queue {
        /// `metadata.name`.
        name: Arc<str>,
        /// `metadata.uid`.
        uid: Arc<str>,
    },
    /// A HyperNode.
    HyperNode {
        /// `metadata.name`.
        name: Arc<str>,
        /// `metadata.uid`.
        uid: Arc<str>,
    },
}

/// Change of `status.nominatedNodeName`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nomination {
    /// The field stays unchanged.
    Keep,
    /// The field is set to this node.
    Set(Arc<str>),
    /// The field is cleared.
    Clear,
}

/// Writes for a pod that precede its bind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreBindWrites {
    /// Volumes whose `claimRef` is set, each with its claim.
    pub bindings: Vec<(ReservedClaim, Arc<str>)>,
    /// Claims that get the annotation `volume.kubernetes.io/selected-node`.
    pub provisions: Vec<ReservedClaim>,
    /// ResourceClaims that get the allocation, unless they have one, and the pod as a consumer
    /// (plugins-nodes.md 6.7).
    pub devices: Vec<ClaimPromise>,
}

/// A request to the edge. Failures come back as events of a later cycle. Every bound pod has a
/// `Bind`, so larger fields of the other variants are boxed to keep all of them small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// POST binding (core.md 7.3).
    Bind {
        /// Namespace and name.
        pod: ObjectKey,
        /// Uid of the pod; it prevents a bind of a later pod with the same name.
        uid: Arc<str>,
        /// Name of the node.
        node: Arc<str>,
        /// Annotations that plugins added, no others (C-25: other annotations could undo a
        /// concurrent change).
        annotations: Vec<(Arc<str>, Arc<str>)>,
        /// The lock that the node gets before. It is removed if the bind fails. `None` if the node
        /// is not locked.
        node_lock: Option<Box<NodeLock>>,
    },
    /// PUT of the volumes and claims of a pod whose bind waits for them (plugins-nodes.md 5.7 step
    /// 1). The answer is an event, `VolumesWritten` or `PreBindFailed`.
    PreBind {
        /// Namespace and name.
        pod: ObjectKey,
        /// Uid of the pod.
        uid: Arc<str>,
        /// Name of the node.
        node: Arc<str>,
        /// The writes.
        writes: Box<PreBindWrites>,
    },
    /// PATCH that removes the pod from `status.reservedFor` of its claims, because it was not bound
    /// after all (plugins-nodes.md 6.7).
    UnreserveClaims {
        /// Namespace and name.
        pod: ObjectKey,
        /// Uid of the pod.
        uid: Arc<str>,
        /// Names of the claims, in the namespace of the pod.
        claims: Vec<Arc<str>>,
    },
    /// PUT of the status of a claim without allocation and consumers, because its allocation keeps
    /// the pod off every node (plugins-nodes.md 6.4).
    DeallocateClaim {
        /// Namespace and name.
        claim: ObjectKey,
        /// Uid of the claim.
        uid: Arc<str>,
        /// The allocation to remove; any other allocation stays.
        allocation: Arc<Allocation>,
        /// Uid of the only pod that may be a consumer.
        consumer: Arc<str>,
    },
    /// GET of a pod whose bind was withdrawn; the answer replaces the local state (core.md 4.5).
    Resync {
        /// Namespace and name.
        pod: ObjectKey,
        /// Uid of the pod.
        uid: Arc<str>,
    },
    /// Eviction of a pod: event, status and DELETE (core.md 7.2).
    Evict {
        /// Namespace and name.
        pod: ObjectKey,
        /// Uid of the pod; a precondition of the DELETE.
        uid: Arc<str>,
        /// The PodGroup of the pod and its uid, for its event. `None` if the pod has none.
        pod_group: Option<Box<(ObjectKey, Arc<str>)>>,
        /// The action that evicts it.
        reason: EvictReason,
        /// The pod that gets the room. `None` if no single pod does.
        for_pod: Option<Box<ObjectKey>>,
        /// The PodGroup for which it is evicted. `None` if there is none.
        for_pod_group: Option<Box<ObjectKey>>,
        /// Text of its events in place of [`evict_message`]. `None` if that text applies.
        message: Option<Arc<str>>,
    },
    /// Condition `PodScheduled` = False and nomination, with its FailedScheduling event (core.md
    /// 7.4).
    PodCondition {
        /// Namespace and name.
        pod: ObjectKey,
        /// Uid of the pod.
        uid: Arc<str>,
        /// The condition. Its reason is `Unschedulable`, `Schedulable` or `SchedulerError`; its message
        /// is that of the event, too. Pods with equal conditions may share it in memory.
        condition: Arc<PodCondition>,
        /// Change of the nominated node.
        nomination: Nomination,
    },
    /// Clears `status.nominatedNodeName` of a pod that is placed elsewhere (A15: nominations follow
    /// committed statements). Nothing else changes.
    ClearNomination {
        /// Namespace and name.
        pod: ObjectKey,
        /// Uid of the pod.
        uid: Arc<str>,
    },
    /// PUT of the PodGroup with this status (core.md 7.6).
    PodGroupStatus {
        /// Namespace and name.
        pod_group: ObjectKey,
        /// Uid of the PodGroup.
        uid: Arc<str>,
        /// The whole status; fields that are not in it are removed.
        status: PodGroupStatus,
        /// True if the phase changed; controllers wait for that.
        phase_changed: bool,
    },
    /// PUT of `status.allocated` (core.md 7.7).
    QueueStatus {
        /// Name.
        queue: Arc<str>,
        /// Resource name and quantity text, by name.
        allocated: Vec<(String, String)>,
    },
    /// POST of queue `root` or of the default queue after it was deleted (core.md 4.7).
    CreateQueue {
        /// Name.
        queue: Arc<str>,
        /// `spec.reclaimable`.
        reclaimable: bool,
    },
    /// PUT of a queue with an annotation of this scheduler; PATCH is not granted (cohort.md B.8).
    QueueAnnotation {
        /// Name.
        queue: Arc<str>,
        /// Key of the annotation.
        key: &'static str,
        /// Value of the annotation.
        value: String,
    },
    /// PUT of the status of this scheduler's NodeShard (core.md 4.10).
    NodeShardStatus {
        /// Name.
        shard: Arc<str>,
        /// `nodesInUse`, sorted by name without duplicates.
        nodes_in_use: Vec<Arc<str>>,
        /// `nodesToRemove`.
        nodes_to_remove: Vec<Arc<str>>,
        /// `nodesToAdd`.
        nodes_to_add: Vec<Arc<str>>,
    },
    /// PUT of the ConfigMap with the usage that the plugin `fairshare` remembers (fair-share.md 11).
    SaveUsage {
        /// Namespace and name of the ConfigMap.
        config_map: ObjectKey,
        /// The usage.
        usage: Arc<SavedUsage>,
    },
    /// Strategic merge PATCH that removes only the gate
    /// `scheduling.volcano.sh/queue-allocation-gate` from a pod (core.md 7.8).
    RemoveGate {
        /// Namespace and name.
        pod: ObjectKey,
        /// Uid of the pod.
        uid: Arc<str>,
    },
    /// A core/v1 event (core.md 7.9).
    Event {
        /// The object.
        about: About,
        /// True for type Warning, false for Normal.
        warning: bool,
        /// Event reason, one word.
        reason: &'static str,
        /// Event message.
        message: Arc<str>,
    },
}
