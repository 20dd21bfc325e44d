//! What a cycle wants done outside: self-contained requests for the edge. Specification: core.md 7.

use std::sync::Arc;

use vc_model::{Allocation, ClaimPromise, ObjectKey, PodGroupStatus, ReservedClaim};

/// Why a pod is evicted; the text of events and conditions (core.md 7.2).
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
    /// A plugin chose it.
    Shuffle,
}

impl EvictReason {
    /// The text.
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

/// Text of the event `Evict` on a victim (core.md 7.2), which names the PodGroup that gets the room
/// if there is one; without it, text of its condition `Ready`.
pub fn evict_message(reason: EvictReason, pod_group: Option<&ObjectKey>) -> String {
    let reason = reason.as_str();
    match pod_group {
        Some(key) => format!("Pod is evicted, because of {reason}: for PodGroup {key}"),
        None => format!("Pod is evicted, because of {reason}"),
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
}

/// What happens to `status.nominatedNodeName`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nomination {
    /// It stays as it is.
    Keep,
    /// It becomes this node.
    Set(Arc<str>),
    /// It is taken away.
    Clear,
}

/// What is written for a pod before it is bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreBindWrites {
    /// `claimRef` of the volume becomes the claim.
    pub bindings: Vec<(ReservedClaim, Arc<str>)>,
    /// Claims that get the annotation `volume.kubernetes.io/selected-node`.
    pub provisions: Vec<ReservedClaim>,
    /// Claims for devices: they get the allocation, unless they have it, and the pod as a consumer
    /// (6.7).
    pub devices: Vec<ClaimPromise>,
}

/// A request to the edge. Failures come back as events of a later cycle. There is one for each pod
/// that is bound: what others have more than a bind is in boxes, so that all are small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// POST binding (core.md 7.3).
    Bind {
        /// Namespace and name.
        pod: ObjectKey,
        /// Of the pod; keeps a successor of the same name from being bound.
        uid: Arc<str>,
        /// Name of the node.
        node: Arc<str>,
        /// Those that plugins added, no others (C-25).
        annotations: Vec<(Arc<str>, Arc<str>)>,
    },
    /// PUT of the volumes and claims of a pod whose bind waits for them (plugins-nodes.md 5.7 step
    /// 1). The answer is an event, `VolumesWritten` or `PreBindFailed`.
    PreBind {
        /// Namespace and name.
        pod: ObjectKey,
        /// Of the pod.
        uid: Arc<str>,
        /// Name of the node.
        node: Arc<str>,
        /// What is written.
        writes: Box<PreBindWrites>,
    },
    /// PATCH that takes the pod out of `status.reservedFor` of its claims: it was not bound after
    /// all (plugins-nodes.md 6.7).
    UnreserveClaims {
        /// Namespace and name.
        pod: ObjectKey,
        /// Of the pod.
        uid: Arc<str>,
        /// Their names, in the namespace of the pod.
        claims: Vec<Arc<str>>,
    },
    /// PUT of the status of a claim without allocation and consumers: what it has keeps its pod off
    /// every node (plugins-nodes.md 6.4).
    DeallocateClaim {
        /// Namespace and name.
        claim: ObjectKey,
        /// Of the claim.
        uid: Arc<str>,
        /// What it has; anything else that is found there stays.
        allocation: Arc<Allocation>,
        /// Uid of the pod, the only one that may be entered as a consumer.
        consumer: Arc<str>,
    },
    /// GET of a pod whose bind was withdrawn; the answer is believed (core.md 4.5).
    Resync {
        /// Namespace and name.
        pod: ObjectKey,
        /// Of the pod.
        uid: Arc<str>,
    },
    /// Event, status, DELETE (core.md 7.2).
    Evict {
        /// Namespace and name.
        pod: ObjectKey,
        /// Of the pod; a precondition of the DELETE.
        uid: Arc<str>,
        /// The PodGroup of the pod and its uid, for its event; `None`: the pod has none.
        pod_group: Option<Box<(ObjectKey, Arc<str>)>>,
        /// Which action wants it.
        reason: EvictReason,
        /// The pod that gets the room; `None`: no single one does.
        for_pod: Option<Box<ObjectKey>>,
        /// The PodGroup for which it goes; `None`: no one's.
        for_pod_group: Option<Box<ObjectKey>>,
        /// Text of its events in the place of [`evict_message`]; `None`: there is no other.
        message: Option<Arc<str>>,
    },
    /// Condition `PodScheduled` = False and nomination, with its FailedScheduling event (core.md
    /// 7.4).
    PodCondition {
        /// Namespace and name.
        pod: ObjectKey,
        /// Of the pod.
        uid: Arc<str>,
        /// Of the condition: `Unschedulable`, `Schedulable`, `SchedulerError`.
        reason: Arc<str>,
        /// Of the condition and of the event.
        message: Arc<str>,
        /// What happens to the nominated node.
        nomination: Nomination,
    },
    /// Takes `status.nominatedNodeName` away from a pod that is placed elsewhere (A15); nothing
    /// else changes.
    ClearNomination {
        /// Namespace and name.
        pod: ObjectKey,
        /// Of the pod.
        uid: Arc<str>,
    },
    /// PUT of the PodGroup with this status (core.md 7.6).
    PodGroupStatus {
        /// Namespace and name.
        pod_group: ObjectKey,
        /// Of the PodGroup.
        uid: Arc<str>,
        /// Whole: fields that are not in it belong to nobody.
        status: PodGroupStatus,
        /// The phase is another one than before; controllers wait for that.
        phase_changed: bool,
    },
    /// PUT of `status.allocated` (core.md 7.7).
    QueueStatus {
        /// Name.
        queue: Arc<str>,
        /// Resource name and quantity text, by name.
        allocated: Vec<(String, String)>,
    },
    /// POST of queue `root` or the default one, which somebody has deleted (core.md 4.7).
    CreateQueue {
        /// Name.
        queue: Arc<str>,
        /// `spec.reclaimable`.
        reclaimable: bool,
    },
    /// PUT of a queue with an annotation of ours; PATCH is not granted (cohort.md B.8).
    QueueAnnotation {
        /// Name.
        queue: Arc<str>,
        /// Key of the annotation.
        key: &'static str,
        /// Its text.
        value: String,
    },
    /// PUT of the status of our NodeShard (core.md 4.10).
    NodeShardStatus {
        /// Name.
        shard: Arc<str>,
        /// `nodesInUse`, by name, each once; likewise the others.
        nodes_in_use: Vec<Arc<str>>,
        /// `nodesToRemove`.
        nodes_to_remove: Vec<Arc<str>>,
        /// `nodesToAdd`.
        nodes_to_add: Vec<Arc<str>>,
    },
    /// Strategic merge PATCH that takes the gate `scheduling.volcano.sh/queue-allocation-gate` away
    /// from a pod, and no other (core.md 7.8).
    RemoveGate {
        /// Namespace and name.
        pod: ObjectKey,
        /// Of the pod.
        uid: Arc<str>,
    },
    /// A core/v1 event (core.md 7.9).
    Event {
        /// The object.
        about: About,
        /// Type Warning, else Normal.
        warning: bool,
        /// One word.
        reason: &'static str,
        /// For people.
        message: Arc<str>,
    },
}
