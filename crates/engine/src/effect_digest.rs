//! A number that stands for the effects of a cycle, so that two engines that decide the same can be
//! compared without keeping the effects. Specification: answers.md 10 (ANS-57).

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use vc_framework::{About, Effect};

/// A 64-bit fold over kind, object and node of effects, in order; by default that of no effects. It is
/// the same in every process of one build. The engine's thread makes it, so it is a fast one.
#[derive(Clone, Default)]
pub struct EffectDigest(FxHasher);

impl EffectDigest {
    /// Adds effects behind those that were added before.
    pub fn add(&mut self, effects: &[Effect]) {
        for effect in effects {
            std::mem::discriminant(effect).hash(&mut self.0);
            let (object, place) = object_and_place(effect);
            object.hash(&mut self.0);
            place.hash(&mut self.0);
        }
    }

    /// Returns the number.
    pub fn value(&self) -> u64 {
        self.0.finish()
    }
}

/// Returns uid or name of the object, and the node or what else the effect is about.
fn object_and_place(effect: &Effect) -> (&str, &str) {
    match effect {
        Effect::Bind { uid, node, .. } | Effect::PreBind { uid, node, .. } => (uid, node),
        Effect::Evict { uid, reason, .. } => (uid, reason.as_str()),
        Effect::PodCondition { uid, condition, .. } => (uid, &condition.reason),
        Effect::PodGroupStatus { uid, status, .. } => (uid, status.phase.as_str()),
        Effect::UnreserveClaims { uid, .. }
        | Effect::DeallocateClaim { uid, .. }
        | Effect::Resync { uid, .. }
        | Effect::ClearNomination { uid, .. }
        | Effect::RemoveGate { uid, .. } => (uid, ""),
        Effect::QueueStatus { queue, .. } | Effect::CreateQueue { queue, .. } => (queue, ""),
        Effect::QueueAnnotation { queue, key, .. } => (queue, key),
        Effect::NodeShardStatus { shard, .. } => (shard, ""),
        Effect::SaveUsage { config_map, .. } => (&config_map.name, &config_map.namespace),
        Effect::Event { about, reason, .. } => (about_uid(about), reason),
    }
}

fn about_uid(about: &About) -> &str {
    match about {
        About::Pod { uid, .. }
        | About::PodGroup { uid, .. }
        | About::Queue { uid, .. }
        | About::HyperNode { uid, .. } => uid,
    }
}
