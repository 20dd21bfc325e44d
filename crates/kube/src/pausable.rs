//! Which writes pause after a refusal, and what another decision is. Specification: core.md 7.2.

use std::sync::Arc;

use vc_engine::{Effect, Nomination};
use vc_model::PodGroupPhase;

use crate::write_queue::WriteTarget;

/// A kind of write whose refusal makes the same write of the object pause. For binds and evictions
/// the engine decides that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WriteKind {
    Condition,
    Nomination,
    Gate,
    Devices,
    PodGroup,
    Queue,
    Annotation(&'static str),
    NodeShard,
}

/// What a write decides; one that decides something else does not pause.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WriteDecision {
    /// Nothing that could change.
    Same,
    /// Phase of the PodGroup with this uid.
    Phase(Arc<str>, PodGroupPhase),
    /// Reason and nomination of a pod.
    Reason(Arc<str>, Nomination),
}

/// The part of a write that is kept while it is sent: a refusal of it starts or lengthens a pause.
#[derive(Clone, Debug)]
pub(crate) struct Pausable {
    pub(crate) key: (WriteTarget, WriteKind),
    pub(crate) decision: WriteDecision,
}

impl Pausable {
    /// What is to be remembered of a write. `None`: it does not pause here.
    pub(crate) fn of(target: &WriteTarget, effect: &Effect) -> Option<Self> {
        let (kind, decision) = match effect {
            Effect::PodCondition { condition, nomination, .. } => {
                let decision = WriteDecision::Reason(condition.reason.clone(), nomination.clone());
                (WriteKind::Condition, decision)
            }
            Effect::PodGroupStatus { uid, status, .. } => {
                (WriteKind::PodGroup, WriteDecision::Phase(uid.clone(), status.phase))
            }
            Effect::ClearNomination { .. } => (WriteKind::Nomination, WriteDecision::Same),
            Effect::RemoveGate { .. } => (WriteKind::Gate, WriteDecision::Same),
            Effect::DeallocateClaim { .. } => (WriteKind::Devices, WriteDecision::Same),
            Effect::QueueStatus { .. } => (WriteKind::Queue, WriteDecision::Same),
            Effect::QueueAnnotation { key, .. } => {
                (WriteKind::Annotation(key), WriteDecision::Same)
            }
            Effect::NodeShardStatus { .. } => (WriteKind::NodeShard, WriteDecision::Same),
            Effect::Bind { .. }
            | Effect::PreBind { .. }
            | Effect::Resync { .. }
            | Effect::UnreserveClaims { .. }
            | Effect::Evict { .. }
            | Effect::CreateQueue { .. }
            | Effect::SaveUsage { .. }
            | Effect::Event { .. } => return None,
        };
        Some(Self { key: (target.clone(), kind), decision })
    }
}
