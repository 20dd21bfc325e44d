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
        Effect::PodCondition { reason, .. } if &**reason == "SchedulerError" => 0,
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
    pub(crate) fn push(&mut self, target: WriteTarget, effect: Effect, now: Instant) {
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
        slot.waiting.retain(|waiting| !supersedes(&effect, waiting));
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
            for effect in paused {
                match now {
                    // Its own pause may last longer.
                    Some(now) => self.push(target.clone(), effect, now),
                    None => self.queue(target.clone(), effect, end),
                }
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
        paused.into_iter().for_each(|effect| self.push(target.clone(), effect, now));
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
fn keep_nomination(newer: &mut Effect, waiting: &VecDeque<Effect>) {
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

/// A status is replaced by a newer one; what a pod was refused no longer matters once it is bound
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
        // What the claim has is seen again in every cycle until it is gone.
        (Effect::DeallocateClaim { .. }, _) => matches!(newer, Effect::DeallocateClaim { .. }),
        (
            Effect::Bind { .. }
            | Effect::PreBind { .. }
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
mod tests {
    use vc_model::{Allocation, DeviceResult, PodGroupStatus};

    use super::*;

    fn condition(pod: &str, message: &str) -> Effect {
        nominating(pod, message, Nomination::Keep)
    }

    fn clear(pod: &str) -> Effect {
        Effect::ClearNomination { pod: ObjectKey::new("ns", pod), uid: pod.into() }
    }

    fn nominating(pod: &str, message: &str, nomination: Nomination) -> Effect {
        because("Unschedulable", pod, message, nomination)
    }

    fn because(reason: &str, pod: &str, message: &str, nomination: Nomination) -> Effect {
        let (uid, pod) = (pod.into(), ObjectKey::new("ns", pod));
        let (reason, message) = (reason.into(), message.into());
        Effect::PodCondition { pod, uid, reason, message, nomination }
    }

    fn bind(pod: &str) -> Effect {
        let (key, uid) = (ObjectKey::new("ns", pod), pod.into());
        Effect::Bind { pod: key, uid, node: "n".into(), annotations: Vec::new(), node_lock: None }
    }

    fn queue(name: &str) -> Effect {
        Effect::QueueStatus { queue: name.into(), allocated: Vec::new() }
    }

    fn push(write_queue: &mut WriteQueue, effect: Effect) {
        write_queue.push(WriteTarget::of(&effect).unwrap(), effect, Instant::now());
    }

    /// All writes, without rest.
    fn drain(write_queue: &mut WriteQueue) -> Vec<Effect> {
        let mut order = Vec::new();
        write_queue.wake(None);
        while let Some((target, effect)) = write_queue.next() {
            order.push(effect);
            write_queue.finish(target, Instant::now());
            write_queue.wake(None);
        }
        assert!(write_queue.slots.is_empty());
        order
    }

    #[test]
    fn binds_overtake_status_overtakes_conditions() {
        let mut write_queue = WriteQueue::default();
        for effect in [condition("a", "m"), queue("q"), bind("b")] {
            push(&mut write_queue, effect);
        }
        assert_eq!(drain(&mut write_queue), [bind("b"), queue("q"), condition("a", "m")]);
    }

    #[test]
    fn a_newer_condition_or_bind_replaces_one_that_waits() {
        let mut write_queue = WriteQueue::default();
        for effect in [condition("a", "1"), condition("b", "1"), condition("a", "2"), bind("b")] {
            push(&mut write_queue, effect);
        }
        assert_eq!(drain(&mut write_queue), [bind("b"), condition("a", "2")]);
    }

    #[test]
    fn a_nomination_survives_a_newer_condition() {
        let mut write_queue = WriteQueue::default();
        let node = || Nomination::Set("n".into());
        push(&mut write_queue, nominating("a", "1", node()));
        push(&mut write_queue, condition("a", "2"));
        assert_eq!(drain(&mut write_queue), [nominating("a", "2", node())]);
        push(&mut write_queue, clear("b"));
        push(&mut write_queue, bind("b"));
        push(&mut write_queue, clear("b"));
        assert_eq!(drain(&mut write_queue), [bind("b"), clear("b")]);
    }

    #[test]
    fn a_failed_bind_is_told_before_the_next_attempt() {
        let mut write_queue = WriteQueue::default();
        let failed = |text| because("SchedulerError", "a", text, Nomination::Keep);
        for effect in [failed("1"), failed("2"), condition("a", "m"), bind("a")] {
            push(&mut write_queue, effect);
        }
        assert_eq!(drain(&mut write_queue), [failed("2"), bind("a")]);
    }

    #[test]
    fn one_write_per_object_at_a_time_in_order() {
        let mut write_queue = WriteQueue::default();
        push(&mut write_queue, bind("a"));
        let (target, first) = write_queue.next().unwrap();
        assert_eq!(first, bind("a"));
        push(&mut write_queue, condition("a", "failed"));
        assert!(write_queue.next().is_none());
        push(&mut write_queue, bind("b"));
        assert_eq!(write_queue.next().unwrap().1, bind("b"));
        write_queue.finish(target, Instant::now());
        write_queue.wake(None);
        assert_eq!(write_queue.next().unwrap().1, condition("a", "failed"));
    }

    fn status(phase_changed: bool, running: i32) -> Effect {
        let phase = PodGroupPhase::Running;
        let status = PodGroupStatus { phase, running, ..PodGroupStatus::default() };
        let (pod_group, uid) = (ObjectKey::new("ns", "g"), "g".into());
        Effect::PodGroupStatus { pod_group, uid, status, phase_changed }
    }

    #[test]
    fn what_only_informs_rests_and_is_replaced_meanwhile() {
        let (mut write_queue, start) = (WriteQueue::default(), Instant::now());
        let mut push = |effect: Effect, millis| {
            let at = start + Duration::from_millis(millis);
            write_queue.push(WriteTarget::of(&effect).unwrap(), effect, at);
            write_queue.wake(Some(at));
            write_queue.next().map(|(target, effect)| {
                write_queue.finish(target, at);
                effect
            })
        };
        assert_eq!(push(status(false, 1), 0), None);
        assert_eq!(push(status(false, 2), 900), None);
        assert_eq!(push(condition("a", "m"), 950), None);
        assert_eq!(push(queue("q"), 1000), Some(status(false, 2)));
        assert_eq!(push(bind("a"), 1100), Some(bind("a")));
        assert_eq!(push(status(false, 3), 1200), None);
        assert_eq!(push(status(true, 4), 1300), Some(status(true, 4)));
        assert_eq!(write_queue.rested_at(), Some(start + Duration::from_millis(1950)));
        assert_eq!(drain(&mut write_queue), [queue("q")]);
    }

    #[test]
    fn counts_that_replace_a_new_phase_are_as_urgent() {
        let mut write_queue = WriteQueue::default();
        push(&mut write_queue, status(false, 1));
        write_queue.wake(None);
        let (target, _) = write_queue.next().unwrap();
        // While it is being written, the phase changes, and then the counts.
        push(&mut write_queue, status(true, 2));
        push(&mut write_queue, status(false, 3));
        write_queue.finish(target, Instant::now());
        assert_eq!(write_queue.next().unwrap().1, status(true, 3));
    }

    #[test]
    fn devices_are_taken_away_once() {
        let deallocate = |claim: &str, request: &str| {
            let chosen = DeviceResult { request: request.into(), ..DeviceResult::default() };
            let allocation = Allocation { results: vec![chosen], ..Allocation::default() };
            let (allocation, consumer) = (Arc::new(allocation), Arc::from("pod"));
            let (uid, claim) = (claim.into(), ObjectKey::new("ns", claim));
            Effect::DeallocateClaim { claim, uid, allocation, consumer }
        };
        let mut write_queue = WriteQueue::default();
        for effect in [deallocate("a", "1"), deallocate("b", "1"), deallocate("a", "2")] {
            push(&mut write_queue, effect);
        }
        assert_eq!(drain(&mut write_queue), [deallocate("a", "2"), deallocate("b", "1")]);
    }

    /// Each push replaces what rests; after five or three rests it is told all the same.
    #[test]
    fn what_changes_again_and_again_is_told_when_it_is_settled() {
        let reason = |tick: u64| condition("a", &tick.to_string());
        let sum = |tick: u64| {
            let allocated = vec![("cpu".to_owned(), tick.to_string())];
            Effect::QueueStatus { queue: "q".into(), allocated }
        };
        let cases: [(&dyn Fn(u64) -> Effect, _, _); 9] = [
            (&reason, 1, 1000),
            (&reason, 2, 2000),
            (&reason, 3, 3000),
            (&reason, 4, 3000),
            (&reason, 99, 5000),
            (&sum, 1, 1000),
            (&sum, 2, 2000),
            (&sum, 99, 3000),
            (&|tick| status(false, tick as i32), 99, 1000),
        ];
        for (effect, n_changes, wanted) in cases {
            assert_eq!(told_at(effect, n_changes), Some(wanted), "{:?} {n_changes}", effect(0));
        }
    }

    /// Milliseconds until the write of an effect that changes so many times, every 600 ms.
    fn told_at(effect: &dyn Fn(u64) -> Effect, n_changes: u64) -> Option<u64> {
        let (mut write_queue, start) = (WriteQueue::default(), Instant::now());
        (0..60).find_map(|tick| {
            let at = start + Duration::from_millis(tick * 100);
            if tick % 6 == 0 && tick < 6 * n_changes {
                let effect = effect(tick);
                write_queue.push(WriteTarget::of(&effect).unwrap(), effect, at);
            }
            write_queue.wake(Some(at));
            write_queue.next().map(|_| tick * 100)
        })
    }
}
