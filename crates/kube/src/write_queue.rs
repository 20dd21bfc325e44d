//! Which write goes next: binds and evictions first, one write per object at a time, and what a
//! newer write makes pointless is dropped while it waits. What only informs rests for a while, for
//! it is soon replaced. Specification: core.md 7.3, 7.4, 11 (order between objects is free).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;
use vc_engine::{Effect, Nomination};
use vc_model::{ObjectKey, PodGroupPhase};

use crate::pausable::{Pausable, WriteDecision, WriteKind};
use crate::pauses::Pauses;

/// The object that a write changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WriteTarget {
    Pod(Arc<str>),
    PodGroup(ObjectKey),
    Queue(Arc<str>),
    NodeShard(Arc<str>),
    ConfigMap(ObjectKey),
}

impl WriteTarget {
    /// `None`: events go their own way.
    pub(crate) fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Bind { uid, .. }
            | Effect::PreBind { uid, .. }
            | Effect::Resync { uid, .. }
            | Effect::UnreserveClaims { uid, .. }
            | Effect::DeallocateClaim { uid, .. }
            | Effect::Evict { uid, .. }
            | Effect::PodCondition { uid, .. }
            | Effect::ClearNomination { uid, .. }
            | Effect::RemoveGate { uid, .. } => Some(Self::Pod(uid.clone())),
            Effect::PodGroupStatus { pod_group, .. } => Some(Self::PodGroup(pod_group.clone())),
            Effect::QueueStatus { queue, .. }
            | Effect::QueueAnnotation { queue, .. }
            | Effect::CreateQueue { queue, .. } => Some(Self::Queue(queue.clone())),
            Effect::NodeShardStatus { shard, .. } => Some(Self::NodeShard(shard.clone())),
            Effect::SaveUsage { config_map, .. } => Some(Self::ConfigMap(config_map.clone())),
            Effect::Event { .. } => None,
        }
    }
}

/// Order of importance.
const LANES: usize = 3;

fn priority_of(effect: &Effect) -> usize {
    match effect {
        Effect::Bind { .. }
        | Effect::PreBind { .. }
        | Effect::Resync { .. }
        | Effect::UnreserveClaims { .. }
        | Effect::DeallocateClaim { .. }
        | Effect::Evict { .. } => 0,
        // Or the bind of the next cycle would overtake what went wrong with the last one.
        Effect::PodCondition { condition, .. } if &*condition.reason == "SchedulerError" => 0,
        Effect::PodGroupStatus { .. }
        | Effect::QueueStatus { .. }
        | Effect::NodeShardStatus { .. }
        | Effect::CreateQueue { .. }
        | Effect::RemoveGate { .. } => 1,
        Effect::PodCondition { .. }
        | Effect::ClearNomination { .. }
        | Effect::QueueAnnotation { .. }
        | Effect::SaveUsage { .. }
        | Effect::Event { .. } => 2,
    }
}

/// How long what only informs rests: Volcano's period, so nobody sees it later than from Volcano.
const REST: Duration = Duration::from_secs(1);
/// What was replaced while it rested rests again, so many times in all at most: a gang that arrives
/// piece by piece is told nothing until it is complete.
const RESTS_OF_REASONS: u8 = 5;
/// The sums of a queue change as long as its pods are being bound.
const RESTS_OF_SUMS: u8 = 3;

/// Nothing but people waits for it: while a gang arrives or starts, it changes in every cycle.
fn only_informs(effect: &Effect) -> bool {
    match effect {
        Effect::PodGroupStatus { phase_changed, .. } => !phase_changed,
        Effect::PodCondition { nomination, .. } => {
            priority_of(effect) != 0 && *nomination == Nomination::Keep
        }
        Effect::QueueStatus { .. } | Effect::QueueAnnotation { .. } => true,
        _ => false,
    }
}

/// How often a write that only informs rests at most. One that says why something is not placed yet
/// is made untrue pod by pod while a gang arrives.
fn most_rests(effect: &Effect) -> u8 {
    let waits = |phase| matches!(phase, PodGroupPhase::Pending | PodGroupPhase::Inqueue);
    match effect {
        Effect::PodGroupStatus { status, .. } if waits(status.phase) => RESTS_OF_REASONS,
        Effect::PodCondition { .. } => RESTS_OF_REASONS,
        Effect::QueueStatus { .. } => RESTS_OF_SUMS,
        _ => 1,
    }
}

/// Writes that wait.
#[derive(Default)]
pub(crate) struct WriteQueue {
    slots: FxHashMap<WriteTarget, WriteSlot>,
    /// Targets whose first write is of that priority; an entry may be stale, the slot decides.
    ready: [VecDeque<WriteTarget>; LANES],
    /// Targets whose first write rests, in the order of their ends; an entry may be stale, too.
    debounced: VecDeque<(Instant, WriteTarget)>,
    /// Refusals, after which the same write pauses.
    pauses: Pauses<(WriteTarget, WriteKind), WriteDecision>,
    /// When a pause ends for a write that waits for it; an entry may be stale, too.
    ends: BTreeSet<(Instant, WriteTarget)>,
    /// Binds that were dropped, since [`WriteQueue::take_dropped_binds`] was called last.
    n_dropped_binds: usize,
}

#[derive(Default)]
struct WriteSlot {
    running: bool,
    waiting: VecDeque<Effect>,
    /// Writes that pause after a refusal.
    paused: Vec<Effect>,
    /// How often the first write has begun to rest; a write that does not rest starts anew.
    n_rests: u8,
    /// It was replaced since then.
    replaced: bool,
}

impl WriteQueue {
    /// Returns how much is kept, by table.
    pub(crate) fn table_sizes(&self) -> [(&'static str, usize); 3] {
        let n_ready: usize = self.ready.iter().map(VecDeque::len).sum();
        [
            ("writes.targets", self.slots.len()),
            ("writes.turns", n_ready + self.debounced.len() + self.ends.len()),
            ("writes.pauses", self.pauses.len()),
        ]
    }

    /// Queues a write behind those of the same object, a bind or an eviction before the lesser
    /// ones. One that replaces a resting one rests in its place.
    pub(crate) fn push(&mut self, target: WriteTarget, mut effect: Effect, now: Instant) {
        if let Some(slot) = self.slots.get(&target) {
            keep_nomination(&mut effect, &slot.paused);
        }
        let until = self.paused_until(&target, &effect, now);
        let slot = self.slots.entry(target.clone()).or_default();
        slot.paused.retain(|paused| !supersedes(&effect, paused));
        match until {
            Some(until) => {
                slot.waiting.retain(|waiting| !supersedes(&effect, waiting));
                slot.paused.push(effect);
                self.ends.insert((until, target));
            }
            None => self.queue(target, effect, now),
        }
    }

    fn paused_until(&self, target: &WriteTarget, effect: &Effect, now: Instant) -> Option<Instant> {
        if self.pauses.is_empty() {
            return None;
        }
        let Pausable { key, decision } = Pausable::of(target, effect)?;
        self.pauses.until(&key, &decision, now)
    }

    fn queue(&mut self, target: WriteTarget, mut effect: Effect, now: Instant) {
        let slot = self.slots.entry(target.clone()).or_default();
        let rests = slot.waiting.front().is_some_and(only_informs);
        keep_nomination(&mut effect, &slot.waiting);
        keep_urgency(&mut effect, &slot.waiting);
        let is_dropped = |waiting: &Effect| supersedes(&effect, waiting);
        let n_dropped = slot.waiting.iter().filter(|it| is_bind(it) && is_dropped(it)).count();
        slot.waiting.retain(|waiting| !is_dropped(waiting));
        self.n_dropped_binds += n_dropped;
        let urgent = slot.waiting.iter().filter(|waiting| priority_of(waiting) == 0).count();
        let at = if priority_of(&effect) == 0 { urgent } else { slot.waiting.len() };
        slot.waiting.insert(at, effect);
        let first = slot.waiting.front();
        if slot.running {
            return;
        }
        match rests && first.is_some_and(only_informs) {
            true => slot.replaced = true,
            false => self.line_up(target, now),
        }
    }

    /// Queues a write that has paused, before those of the same object that were decided since, unless one
    /// of these replaces it. `end` is the end of the pause; its own pause may last longer. Without a
    /// time it pauses no more.
    fn resume(&mut self, target: WriteTarget, effect: Effect, now: Option<Instant>, end: Instant) {
        let until = now.and_then(|now| self.paused_until(&target, &effect, now));
        let Some(slot) = self.slots.get_mut(&target) else { return };
        if let Some(until) = until {
            slot.paused.push(effect);
            self.ends.insert((until, target));
            return;
        }
        if slot.waiting.iter().any(|newer| supersedes(newer, &effect)) {
            return;
        }
        let is_urgent = |waiting: &&Effect| priority_of(waiting) == 0;
        let n_urgent = slot.waiting.iter().filter(is_urgent).count();
        let at = if priority_of(&effect) == 0 { 0 } else { n_urgent };
        slot.waiting.insert(at, effect);
        if !slot.running {
            self.line_up(target, now.unwrap_or(end));
        }
    }

    /// Puts a target where its first write belongs.
    fn line_up(&mut self, target: WriteTarget, now: Instant) {
        let Some(slot) = self.slots.get_mut(&target) else { return };
        let Some(first) = slot.waiting.front() else { return };
        slot.replaced = false;
        match only_informs(first) {
            true => {
                slot.n_rests = 1;
                self.debounced.push_back((now + REST, target));
            }
            false => self.ready[priority_of(first)].push_back(target),
        }
    }

    /// When the next write has rested, or has paused; `None`: none does.
    pub(crate) fn rested_at(&self) -> Option<Instant> {
        let rested = self.debounced.front().map(|(end, _)| *end);
        let paused = self.ends.first().map(|(end, _)| *end);
        rested.into_iter().chain(paused).min()
    }

    /// Lets go what has rested or paused until then; without a time, everything.
    pub(crate) fn wake(&mut self, now: Option<Instant>) {
        while let Some((end, _)) = self.ends.first()
            && now.is_none_or(|now| *end <= now)
            && let Some((end, target)) = self.ends.pop_first()
        {
            let slot = self.slots.get_mut(&target);
            let paused = slot.map(|slot| std::mem::take(&mut slot.paused)).unwrap_or_default();
            for effect in paused.into_iter().rev() {
                self.resume(target.clone(), effect, now, end);
            }
        }
        while let Some((end, _)) = self.debounced.front()
            && now.is_none_or(|now| *end <= now)
            && let Some((_, target)) = self.debounced.pop_front()
        {
            let Some(slot) = self.slots.get_mut(&target).filter(|slot| !slot.running) else {
                continue;
            };
            let Some(first) = slot.waiting.front() else { continue };
            let again = std::mem::take(&mut slot.replaced) && slot.n_rests < most_rests(first);
            match now.filter(|_| again && only_informs(first)) {
                Some(now) => {
                    slot.n_rests += 1;
                    self.debounced.push_back((now + REST, target));
                }
                None => self.ready[priority_of(first)].push_back(target),
            }
        }
    }

    /// The next write; its object is taken until [`WriteQueue::finish`].
    pub(crate) fn next(&mut self) -> Option<(WriteTarget, Effect)> {
        for targets in &mut self.ready {
            while let Some(target) = targets.pop_front() {
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

    /// A write was answered, if it is one that may pause. Those that wait and decide the same pause
    /// with a refused one.
    pub(crate) fn answered(&mut self, write: Option<Pausable>, is_refused: bool, now: Instant) {
        let Some(Pausable { key, decision }) = write else { return };
        if !is_refused {
            return self.pauses.accepted(&key);
        }
        let target = key.0.clone();
        self.pauses.refused(key, decision, now);
        let slot = self.slots.get_mut(&target);
        let waiting = slot.map(|slot| std::mem::take(&mut slot.waiting)).unwrap_or_default();
        for effect in waiting {
            let until = self.paused_until(&target, &effect, now);
            let Some(slot) = self.slots.get_mut(&target) else { return };
            match until {
                Some(until) => {
                    slot.paused.push(effect);
                    self.ends.insert((until, target.clone()));
                }
                None => slot.waiting.push_back(effect),
            }
        }
    }

    /// A PodGroup has changed: its status is written now, and refusals are counted anew.
    pub(crate) fn pod_group_changed(&mut self, key: ObjectKey, now: Instant) {
        let target = WriteTarget::PodGroup(key);
        self.pauses.forget(&(target.clone(), WriteKind::PodGroup));
        let slot = self.slots.get_mut(&target);
        let paused = slot.map(|slot| std::mem::take(&mut slot.paused)).unwrap_or_default();
        paused
            .into_iter()
            .rev()
            .for_each(|effect| self.resume(target.clone(), effect, Some(now), now));
    }

    /// Drops the binds of this pod that wait, because one is done.
    pub(crate) fn bound(&mut self, target: &WriteTarget) {
        let Some(slot) = self.slots.get_mut(target) else { return };
        let n_before = slot.waiting.len();
        slot.waiting.retain(|waiting| !is_bind(waiting));
        self.n_dropped_binds += n_before - slot.waiting.len();
    }

    /// Returns the number of binds that were dropped since the last call.
    pub(crate) fn take_dropped_binds(&mut self) -> usize {
        std::mem::take(&mut self.n_dropped_binds)
    }

    /// The write of this object has ended.
    pub(crate) fn finish(&mut self, target: WriteTarget, now: Instant) {
        let Some(slot) = self.slots.get_mut(&target) else {
            return;
        };
        slot.running = false;
        match (slot.waiting.is_empty(), slot.paused.is_empty()) {
            (true, true) => drop(self.slots.remove(&target)),
            (true, false) => {}
            (false, _) => self.line_up(target, now),
        }
    }
}

/// A condition that leaves the nomination alone must not swallow one that sets it.
fn keep_nomination<'a>(newer: &mut Effect, waiting: impl IntoIterator<Item = &'a Effect>) {
    let Effect::PodCondition { nomination: newer, .. } = newer else { return };
    for older in waiting {
        if let Effect::PodCondition { nomination: older, .. } = older
            && *newer == Nomination::Keep
        {
            *newer = older.clone();
        }
    }
}

/// Counts that replace a phase which somebody waits for are as urgent as the phase.
fn keep_urgency(newer: &mut Effect, waiting: &VecDeque<Effect>) {
    let Effect::PodGroupStatus { phase_changed: newer, .. } = newer else { return };
    *newer |= { waiting.iter() }
        .any(|older| matches!(older, Effect::PodGroupStatus { phase_changed: true, .. }));
}

fn is_bind(effect: &Effect) -> bool {
    matches!(effect, Effect::Bind { .. })
}

/// A status and a bind are replaced by a newer one; what a pod was refused no longer matters once it is bound
/// or evicted.
fn supersedes(newer: &Effect, older: &Effect) -> bool {
    match (older, newer) {
        (Effect::PodCondition { .. }, Effect::PodCondition { .. }) => {
            priority_of(newer) <= priority_of(older)
        }
        (
            Effect::PodCondition { .. },
            Effect::ClearNomination { .. } | Effect::RemoveGate { .. },
        ) => false,
        (Effect::PodCondition { .. }, _) => priority_of(older) != 0,
        (Effect::ClearNomination { .. }, _) => matches!(newer, Effect::ClearNomination { .. }),
        (Effect::RemoveGate { .. }, _) => matches!(newer, Effect::RemoveGate { .. }),
        (Effect::QueueStatus { .. }, _) => matches!(newer, Effect::QueueStatus { .. }),
        (Effect::QueueAnnotation { key, .. }, _) => {
            matches!(newer, Effect::QueueAnnotation { key: other, .. } if other == key)
        }
        (
            Effect::PodGroupStatus { .. }
            | Effect::NodeShardStatus { .. }
            | Effect::SaveUsage { .. },
            _,
        ) => true,
        // While the object is taken, a list or a read may have the pod decided once more.
        (Effect::Bind { .. }, _) => is_bind(newer),
        // What the claim has is seen again in every cycle until it is gone.
        (Effect::DeallocateClaim { .. }, _) => matches!(newer, Effect::DeallocateClaim { .. }),
        (
            Effect::PreBind { .. }
            | Effect::Resync { .. }
            | Effect::UnreserveClaims { .. }
            | Effect::Evict { .. }
            | Effect::Event { .. },
            _,
        ) => false,
        (Effect::CreateQueue { .. }, _) => matches!(newer, Effect::CreateQueue { .. }),
    }
}

#[cfg(test)]
mod tests;
