//! Which write goes next: binds and evictions first, one write per object at a time, and what a newer write makes
//! pointless is dropped while it waits. Specification: core.md 7.3, 7.4, 11 (order between objects is free).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use vc_engine::Effect;
use vc_model::ObjectKey;

/// The object that a write changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    Pod(Arc<str>),
    PodGroup(ObjectKey),
    Queue(Arc<str>),
}

impl Target {
    /// `None`: events go their own way.
    pub(crate) fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Bind { uid, .. }
            | Effect::Evict { uid, .. }
            | Effect::PodCondition { uid, .. } => Some(Self::Pod(uid.clone())),
            Effect::PodGroupStatus { pod_group, .. } => Some(Self::PodGroup(pod_group.clone())),
            Effect::QueueStatus { queue, .. } => Some(Self::Queue(queue.clone())),
            Effect::Event { .. } => None,
        }
    }
}

/// Order of importance.
const LANES: usize = 3;

fn lane(effect: &Effect) -> usize {
    match effect {
        Effect::Bind { .. } | Effect::Evict { .. } => 0,
        Effect::PodGroupStatus { .. } | Effect::QueueStatus { .. } => 1,
        Effect::PodCondition { .. } | Effect::Event { .. } => 2,
    }
}

/// Writes that wait.
#[derive(Default)]
pub(crate) struct Lanes {
    slots: HashMap<Target, Slot>,
    /// Targets whose first write is of that lane; an entry may be stale, the slot decides.
    ready: [VecDeque<Target>; LANES],
}

#[derive(Default)]
struct Slot {
    running: bool,
    waiting: VecDeque<Effect>,
}

impl Lanes {
    /// Queues a write behind those of the same object.
    pub(crate) fn push(&mut self, target: Target, effect: Effect) {
        let slot = self.slots.entry(target.clone()).or_default();
        slot.waiting.retain(|waiting| !supersedes(&effect, waiting));
        slot.waiting.push_back(effect);
        if !slot.running
            && let Some(first) = slot.waiting.front()
        {
            self.ready[lane(first)].push_back(target);
        }
    }

    /// The next write; its object is taken until [`Lanes::finish`].
    pub(crate) fn next(&mut self) -> Option<(Target, Effect)> {
        for lane in &mut self.ready {
            while let Some(target) = lane.pop_front() {
                let Some(slot) = self.slots.get_mut(&target).filter(|slot| !slot.running) else {
                    continue;
                };
                if let Some(effect) = slot.waiting.pop_front() {
                    slot.running = true;
                    return Some((target, effect));
                }
            }
        }
        None
    }

    /// The write of this object has ended.
    pub(crate) fn finish(&mut self, target: Target) {
        let Some(slot) = self.slots.get_mut(&target) else {
            return;
        };
        slot.running = false;
        match slot.waiting.front() {
            Some(first) => self.ready[lane(first)].push_back(target),
            None => drop(self.slots.remove(&target)),
        }
    }
}

/// A status is replaced by a newer one; what a pod was refused no longer matters once it is bound or evicted.
fn supersedes(newer: &Effect, older: &Effect) -> bool {
    match older {
        Effect::PodCondition { .. } => true,
        Effect::PodGroupStatus { .. } | Effect::QueueStatus { .. } => lane(newer) == lane(older),
        Effect::Bind { .. } | Effect::Evict { .. } | Effect::Event { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use vc_engine::Nomination;

    use super::*;

    fn condition(pod: &str, message: &str) -> Effect {
        Effect::PodCondition {
            pod: ObjectKey::new("ns", pod),
            uid: pod.into(),
            reason: "Unschedulable".into(),
            message: message.into(),
            nomination: Nomination::Keep,
        }
    }

    fn bind(pod: &str) -> Effect {
        let (key, uid) = (ObjectKey::new("ns", pod), pod.into());
        Effect::Bind { pod: key, uid, node: "n".into(), annotations: Vec::new() }
    }

    fn queue(name: &str) -> Effect {
        Effect::QueueStatus { queue: name.into(), allocated: Vec::new() }
    }

    fn push(lanes: &mut Lanes, effect: Effect) {
        lanes.push(Target::of(&effect).unwrap(), effect);
    }

    fn drain(lanes: &mut Lanes) -> Vec<Effect> {
        let mut order = Vec::new();
        while let Some((target, effect)) = lanes.next() {
            order.push(effect);
            lanes.finish(target);
        }
        assert!(lanes.slots.is_empty());
        order
    }

    #[test]
    fn binds_overtake_status_overtakes_conditions() {
        let mut lanes = Lanes::default();
        for effect in [condition("a", "m"), queue("q"), bind("b")] {
            push(&mut lanes, effect);
        }
        assert_eq!(drain(&mut lanes), [bind("b"), queue("q"), condition("a", "m")]);
    }

    #[test]
    fn a_newer_condition_or_bind_replaces_one_that_waits() {
        let mut lanes = Lanes::default();
        for effect in [condition("a", "1"), condition("b", "1"), condition("a", "2"), bind("b")] {
            push(&mut lanes, effect);
        }
        assert_eq!(drain(&mut lanes), [bind("b"), condition("a", "2")]);
    }

    #[test]
    fn one_write_per_object_at_a_time_in_order() {
        let mut lanes = Lanes::default();
        push(&mut lanes, bind("a"));
        let (target, first) = lanes.next().unwrap();
        assert_eq!(first, bind("a"));
        push(&mut lanes, condition("a", "failed"));
        assert!(lanes.next().is_none());
        push(&mut lanes, bind("b"));
        assert_eq!(lanes.next().unwrap().1, bind("b"));
        lanes.finish(target);
        assert_eq!(lanes.next().unwrap().1, condition("a", "failed"));
    }
}
