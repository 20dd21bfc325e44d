//! A write that panics has failed like any other: its answer goes back, so that nobody waits for it
//! until a restart, and its object is free for the next write. Specification: core.md 4.5 (resync),
//! 9 (internal errors), 11.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use vc_engine::{Effect, Nomination};
use vc_model::{ClusterEvent, ReadAfter};

use crate::observe::Observer;
use crate::perform::{EffectWriter, FollowUp, WriteOutcome};

const INSIDE: &str = "the scheduler has failed inside, its log says where";

/// What `work` gives. `None`: it has panicked, which is counted; what it shares with others are
/// channels and texts that may be forgotten.
pub(crate) async fn caught<T>(
    observer: &dyn Observer,
    kind: &'static str,
    work: impl Future<Output = T>,
) -> Option<T> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    let done = done.inspect_err(|_| {
        observer.internal_error(kind);
        tracing::error!(kind, "a write has failed inside");
    });
    done.ok()
}

impl EffectWriter {
    /// [`EffectWriter::perform`], whatever happens in it.
    pub(crate) async fn try_to_perform(
        &self,
        effect: Effect,
        created: Option<i64>,
    ) -> WriteOutcome {
        let (event, rest) = failure(&effect);
        match caught(&*self.observer, "write", self.perform(effect, created)).await {
            Some(done) => done,
            None => {
                if let Some(event) = event {
                    self.report(event).await;
                }
                WriteOutcome { rest, is_refused: true }
            }
        }
    }
}

/// What is told and what is left to be done where nobody knows how the write has ended, as
/// [`EffectWriter::perform`] has it for answers that say no.
fn failure(effect: &Effect) -> (Option<ClusterEvent>, Option<FollowUp>) {
    let read = |pod: &_, uid: &_, after| {
        Some(FollowUp::Read { pod: Clone::clone(pod), uid: Clone::clone(uid), after })
    };
    let status = |uid: &_| Some(ClusterEvent::PodStatusFailed { uid: Clone::clone(uid) });
    match effect {
        Effect::Bind { pod, uid, node, .. } => {
            let (uid, node, error) = (uid.clone(), node.clone(), INSIDE.to_owned());
            let rest = read(pod, &uid, ReadAfter::Bind);
            (Some(ClusterEvent::BindFailed { uid, node, error, pauses: true }), rest)
        }
        Effect::PreBind { uid, .. } => {
            let (uid, error) = (uid.clone(), INSIDE.to_owned());
            (Some(ClusterEvent::PreBindFailed { uid, error, pauses: true }), None)
        }
        Effect::UnreserveClaims { pod, uid, claims } => {
            let (pod, uid, claims) = (pod.clone(), uid.clone(), claims.clone());
            (None, Some(FollowUp::Free { pod, uid, claims }))
        }
        Effect::Resync { pod, uid } => (None, read(pod, uid, ReadAfter::Bind)),
        Effect::Evict { pod, uid, .. } => {
            let (uid, error) = (uid.clone(), INSIDE.to_owned());
            let rest = read(pod, &uid, ReadAfter::Eviction);
            (Some(ClusterEvent::EvictFailed { uid, error }), rest)
        }
        Effect::CreateQueue { queue, reclaimable } => {
            let (queue, reclaimable) = (queue.clone(), *reclaimable);
            (None, Some(FollowUp::Create { queue, reclaimable }))
        }
        Effect::PodCondition { pod, uid, nomination, .. } => {
            let nominates = *nomination != Nomination::Keep;
            (status(uid), nominates.then(|| read(pod, uid, ReadAfter::Nomination)).flatten())
        }
        Effect::ClearNomination { pod, uid } => {
            (status(uid), read(pod, uid, ReadAfter::Nomination))
        }
        Effect::RemoveGate { uid, .. } => (status(uid), None),
        Effect::PodGroupStatus { pod_group, status, .. } => {
            let (key, status) = (pod_group.clone(), Box::new(status.clone()));
            (Some(ClusterEvent::PodGroupFailed { key, status }), None)
        }
        Effect::QueueStatus { queue, .. } => {
            (Some(ClusterEvent::QueueFailed { name: queue.clone() }), None)
        }
        Effect::NodeShardStatus { shard, .. } => {
            (Some(ClusterEvent::NodeShardFailed { name: shard.clone() }), None)
        }
        Effect::SaveUsage { .. } => (Some(ClusterEvent::UsageNotSaved), None),
        Effect::DeallocateClaim { .. } | Effect::QueueAnnotation { .. } | Effect::Event { .. } => {
            (None, None)
        }
    }
}
