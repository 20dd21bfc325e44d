//! Which writes pause after a refusal, and what another decision is. Specification: core.md 7.2.

use std::sync::Arc;

use vc_engine::{Effect, Nomination};
use vc_model::PodGroupPhase;

use crate::lanes::Target;

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
pub(crate) enum Decision {
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
    pub(crate) key: (Target, WriteKind),
    pub(crate) decision: Decision,
}

impl Pausable {
    /// What is to be remembered of a write. `None`: it does not pause here.
    pub(crate) fn of(target: &Target, effect: &Effect) -> Option<Self> {
        let (kind, decision) = match effect {
            Effect::PodCondition { reason, nomination, .. } => {
                (WriteKind::Condition, Decision::Reason(reason.clone(), nomination.clone()))
            }
            Effect::PodGroupStatus { uid, status, .. } => {
                (WriteKind::PodGroup, Decision::Phase(uid.clone(), status.phase))
            }
            Effect::ClearNomination { .. } => (WriteKind::Nomination, Decision::Same),
            Effect::RemoveGate { .. } => (WriteKind::Gate, Decision::Same),
            Effect::DeallocateClaim { .. } => (WriteKind::Devices, Decision::Same),
            Effect::QueueStatus { .. } => (WriteKind::Queue, Decision::Same),
            Effect::QueueAnnotation { key, .. } => (WriteKind::Annotation(key), Decision::Same),
            Effect::NodeShardStatus { .. } => (WriteKind::NodeShard, Decision::Same),
            Effect::Bind { .. }
            | Effect::PreBind { .. }
            | Effect::Resync { .. }
            | Effect::UnreserveClaims { .. }
            | Effect::Evict { .. }
            | Effect::CreateQueue { .. }
            | Effect::Event { .. } => return None,
        };
        Some(Self { key: (target.clone(), kind), decision })
    }
}
