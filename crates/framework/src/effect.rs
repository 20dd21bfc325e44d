//! What a cycle wants done outside: self-contained requests for the edge. Specification: core.md 7.

use std::sync::Arc;

use vc_model::{ObjectKey, PodGroupStatus};

/// Why a pod is evicted; the text of events and conditions (core.md 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictReason {
    Preempt,
    Reclaim,
    GangPreempt,
    GangReclaim,
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

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    Pod { key: ObjectKey, uid: Arc<str> },
    PodGroup { key: ObjectKey, uid: Arc<str> },
}

/// What happens to `status.nominatedNodeName`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nomination {
    Keep,
    Set(Arc<str>),
    Clear,
}

/// A request to the edge. Failures come back as events of a later cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// POST binding (core.md 7.3). `annotations`: only those that plugins added.
    Bind { pod: ObjectKey, uid: Arc<str>, node: Arc<str>, annotations: Vec<(Arc<str>, Arc<str>)> },
    /// Event, status, DELETE (core.md 7.2). `for_pod`: the pod that gets the room, if one does.
    Evict {
        pod: ObjectKey,
        uid: Arc<str>,
        pod_group: Option<(ObjectKey, Arc<str>)>,
        reason: EvictReason,
        for_pod: Option<ObjectKey>,
    },
    /// Condition `PodScheduled` = False and nomination, with its FailedScheduling event (core.md 7.4).
    PodCondition {
        pod: ObjectKey,
        uid: Arc<str>,
        reason: Arc<str>,
        message: Arc<str>,
        nomination: Nomination,
    },
    /// Takes `status.nominatedNodeName` away from a pod that is placed elsewhere (A15); nothing else changes.
    ClearNomination { pod: ObjectKey, uid: Arc<str> },
    /// PUT of the PodGroup with this status (core.md 7.6).
    PodGroupStatus { pod_group: ObjectKey, uid: Arc<str>, status: PodGroupStatus },
    /// PUT of `status.allocated` (core.md 7.7): name and quantity text, by name.
    QueueStatus { queue: Arc<str>, allocated: Vec<(String, String)> },
    /// A core/v1 event (core.md 7.9).
    Event { about: About, warning: bool, reason: &'static str, message: Arc<str> },
}
