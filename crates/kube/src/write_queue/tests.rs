//! Tests of the order of writes.

use vc_model::{Allocation, DeviceResult, PodCondition, PodGroupStatus};

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
    let (status, reason, message) = ("False".into(), reason.into(), message.into());
    let condition = Arc::new(PodCondition { status, reason, message });
    Effect::PodCondition { pod, uid, condition, nomination }
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

/// A condition that was refused is older than what was decided while it paused.
#[test]
fn what_has_paused_replaces_nothing_newer() {
    let (mut write_queue, start) = (WriteQueue::default(), Instant::now());
    let after = |millis| start + Duration::from_millis(millis);
    let failed = because("SchedulerError", "a", "failed to bind", Nomination::Keep);
    let waits = condition("a", "0/2 nodes are unavailable");
    let target = WriteTarget::of(&failed).unwrap();
    write_queue.push(target.clone(), failed.clone(), start);
    assert_eq!(write_queue.next(), Some((target.clone(), failed.clone())));
    write_queue.answered(Pausable::of(&target, &failed), true, start);
    write_queue.finish(target.clone(), start);
    write_queue.push(target.clone(), failed.clone(), start);
    assert_eq!(write_queue.next(), None, "it pauses");
    write_queue.push(target.clone(), waits.clone(), after(900));
    write_queue.wake(Some(after(1000)));
    assert_eq!(write_queue.next(), Some((target.clone(), failed)));
    write_queue.finish(target.clone(), after(1000));
    write_queue.wake(Some(after(2000)));
    assert_eq!(write_queue.next(), Some((target, waits)));
}

/// What was decided since makes a condition that has paused pointless, but for its nomination.
#[test]
fn what_has_paused_is_dropped_for_something_newer() {
    let (mut write_queue, start) = (WriteQueue::default(), Instant::now());
    let after = |millis| start + Duration::from_millis(millis);
    let node = || Nomination::Set("n".into());
    let refused = nominating("a", "1", node());
    let target = WriteTarget::of(&refused).unwrap();
    write_queue.push(target.clone(), refused.clone(), start);
    write_queue.wake(Some(after(1000)));
    assert_eq!(write_queue.next().map(|(_, effect)| effect), Some(refused.clone()));
    write_queue.answered(Pausable::of(&target, &refused), true, after(1000));
    write_queue.finish(target.clone(), after(1000));
    write_queue.push(target.clone(), refused, after(1000));
    write_queue.push(target, because("Undetermined", "a", "2", Nomination::Keep), after(1500));
    assert_eq!(drain(&mut write_queue), [because("Undetermined", "a", "2", node())]);
}

/// A pod is decided again while the pod is read after an earlier bind.
#[test]
fn a_pod_is_not_bound_twice() {
    let mut write_queue = WriteQueue::default();
    let to = |node: &str| match bind("a") {
        Effect::Bind { pod, uid, annotations, node_lock, .. } => {
            Effect::Bind { pod, uid, node: node.into(), annotations, node_lock }
        }
        other => other,
    };
    push(&mut write_queue, to("n1"));
    let (target, _) = write_queue.next().unwrap();
    push(&mut write_queue, to("n2"));
    push(&mut write_queue, to("n3"));
    assert_eq!(write_queue.take_dropped_binds(), 1);
    // The first one was refused.
    write_queue.finish(target.clone(), Instant::now());
    assert_eq!(write_queue.next(), Some((target.clone(), to("n3"))));
    push(&mut write_queue, to("n3"));
    write_queue.bound(&target);
    write_queue.finish(target, Instant::now());
    assert_eq!((write_queue.next(), write_queue.take_dropped_binds()), (None, 1));
    assert!(write_queue.slots.is_empty());
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
