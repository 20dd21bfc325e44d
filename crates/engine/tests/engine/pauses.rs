//! Refused binds and evictions are repeated after pauses of 1 s, doubling to 1 min, that end when
//! the pod or the chosen node changes; queues that must exist are made again. Every cycle is
//! compared with one of the plain evaluator. Specification: core.md 7.2 (C-50), 4.7 (C-51).

use vc_conf::Config;
use vc_engine::Effect;
use vc_model::{ClusterEvent, ReadAfter, fixture};

use crate::support::*;

fn config() -> Config {
    conf("enqueue, allocate, preempt, backfill", "priority gang conformance | predicates nodeorder")
}

const ONE: &str = "node n1 cpu=2
    job j
      task a cpu=1";

/// One cycle in which every bind and every eviction of these pods is refused; the others are
/// stored.
fn refuse(world: &mut World, pods: &[&str]) -> Cycle {
    let cycle = world.cycle_unanswered();
    for effect in &cycle.effects {
        match effect {
            Effect::Bind { pod, uid, node, .. } if pods.contains(&&*pod.name) => {
                world.refuse(pod, uid, node, true);
            }
            Effect::Evict { pod, uid, .. } if pods.contains(&&*pod.name) => {
                let (uid, error) = (uid.clone(), "refused".to_owned());
                world.send(ClusterEvent::EvictFailed { uid, error });
                let pod = Box::new(world.pod(&pod.name).clone());
                world.send(ClusterEvent::PodRead { pod, after: ReadAfter::Eviction });
            }
            _ => world.store(effect),
        }
    }
    cycle
}

/// The seconds in which something of this kind was decided while all of it was refused.
fn attempts(world: &mut World, kind: &str, pods: &[&str], n_seconds: i64) -> Vec<i64> {
    let mut seconds = Vec::new();
    for second in 0..n_seconds {
        let cycle = refuse(world, pods);
        seconds.extend((!cycle.only(&[kind]).is_empty()).then_some(second));
        world.tick(1);
    }
    seconds
}

/// A refusal is known a cycle after the bind, so that each pause begins a second later.
const DOUBLED: [i64; 9] = [0, 2, 5, 10, 19, 36, 69, 130, 191];

#[test]
fn a_refused_bind_pauses_twice_as_long_each_time() {
    let mut world = World::new(&config(), ONE);
    assert_eq!(attempts(&mut world, "bind", &["j-a"], 200), DOUBLED);
}

#[test]
fn a_pod_that_pauses_says_why_and_until_when_and_nothing_more() {
    let mut world = World::new(&config(), ONE);
    refuse(&mut world, &["j-a"]);
    let cycle = refuse(&mut world, &["j-a"]);
    let reported = "pod j-a SchedulerError \"failed to bind to node n1: refused. It is tried again after \
        1 s, at 2026-01-01T01:00:01Z, or when the pod or the node changes\"";
    assert_eq!(cycle.only(&["pod"]), reported);
    let waiting = &cycle.report.waiting[0];
    assert_eq!(waiting.reason, "SchedulerError");
    assert!(reported.contains(&waiting.message), "{}", waiting.message);
    assert_eq!(world.engine.due_micros(), Some(world.now_micros() + 1_000_000));
    for _ in 0..3 {
        let cycle = refuse(&mut world, &["j-a"]);
        assert_eq!(cycle.only(&["bind", "pod", "event"]), "", "while it pauses");
    }
    world.tick(1);
    assert_eq!(world.cycle().decisions(), "bind j-a n1");
    assert_eq!(world.engine.due_micros(), None);
}

#[test]
fn a_pause_ends_when_the_pod_or_the_chosen_node_changes() {
    type Change = fn(&mut World);
    let changes: [(Change, bool); 6] = [
        (|world| world.edit("j-a", |pod| pod.priority = Some(7)), true),
        (|world| world.edit("j-a", |pod| pod.nominated_node = Some("n2".into())), false),
        (|world| world.add("node n1 cpu=3"), true),
        (|world| world.add("node n1 cpu=2"), false),
        (|world| world.add("node n2 cpu=3"), false),
        (|world| world.add("job other\n task a cpu=1 @n1 running"), false),
    ];
    for (index, (change, ends)) in changes.into_iter().enumerate() {
        let mut world = World::new(&config(), &format!("node n2 cpu=1\n{ONE}"));
        assert_eq!(attempts(&mut world, "bind", &["j-a"], 6), [0, 2, 5]);
        refuse(&mut world, &["j-a"]);
        change(&mut world);
        let cycle = refuse(&mut world, &["j-a"]);
        assert_eq!(!cycle.decisions().is_empty(), ends, "change {index}: {}", cycle.all());
        if ends {
            world.tick(1);
            let next = attempts(&mut world, "bind", &["j-a"], 6);
            assert_eq!(next, [1, 4], "change {index}: counted anew");
        }
    }
}

#[test]
fn a_change_that_comes_with_the_refusal_leaves_no_pause() {
    let mut world = World::new(&config(), ONE);
    world.cycle_unanswered();
    let pod = world.pod("j-a").clone();
    world.send(ClusterEvent::BindFailed {
        uid: pod.uid.clone(),
        node: "n1".into(),
        error: "refused".into(),
        pauses: true,
    });
    let changed = vc_model::PodRecord { priority: Some(9), ..pod };
    world.send(ClusterEvent::PodRead { pod: Box::new(changed), after: ReadAfter::Bind });
    let cycle = world.cycle_unanswered();
    assert_eq!(cycle.decisions(), "bind j-a n1");
    assert_eq!(
        cycle.only(&["pod"]),
        "pod j-a SchedulerError \"failed to bind to node n1: refused\""
    );
}

#[test]
fn room_of_a_pod_that_pauses_is_free_for_others_and_its_gang_goes_on_without_it() {
    let mut world = World::new(&config(), "node n1 cpu=1\n job j\n task a cpu=1");
    refuse(&mut world, &["j-a"]);
    world.add("job other created=9\n task b cpu=1");
    assert_eq!(refuse(&mut world, &["j-a"]).decisions(), "bind other-b n1");

    let text = "node n1 cpu=4\n job j min=2\n task a cpu=1\n task b cpu=1\n task c cpu=1";
    let mut world = World::new(&config(), text);
    world.edit("j-c", |pod| pod.scheduling_gates.push("wait".into()));
    assert_eq!(refuse(&mut world, &["j-a", "j-b"]).decisions(), "bind j-a n1\nbind j-b n1");
    refuse(&mut world, &["j-a"]);
    // One member may go, but the gang needs two: it waits until both may.
    world.edit("j-b", |pod| pod.priority = Some(1));
    assert_eq!(refuse(&mut world, &["j-a"]).decisions(), "");
    world.edit("j-c", |pod| pod.scheduling_gates.clear());
    assert_eq!(refuse(&mut world, &["j-a"]).decisions(), "bind j-b n1\nbind j-c n1");
    world.tick(1);
    assert_eq!(world.cycle().decisions(), "bind j-a n1");
}

const GANG: &str = "node n1 cpu=2
    job j min=2
      task a cpu=1
      task b cpu=1";
const URGENT: &str = "job other priority=100 created=9\n task c cpu=1";

#[test]
fn a_member_of_a_broken_gang_keeps_its_place_while_it_pauses_and_gets_the_first_turn() {
    let mut world = World::new(&config(), GANG);
    assert_eq!(refuse(&mut world, &["j-b"]).decisions(), "bind j-a n1\nbind j-b n1");
    world.add(URGENT);
    let cycle = refuse(&mut world, &["j-b"]);
    assert_eq!(cycle.decisions(), "", "the room is kept");
    let waiting = cycle.report.waiting.iter().find(|waiting| &*waiting.pod.name == "j-b").unwrap();
    assert_eq!(waiting.reason, "SchedulerError");
    assert!(waiting.message.contains("It is tried again after 1 s"), "{}", waiting.message);
    world.tick(1);
    assert_eq!(refuse(&mut world, &["j-b"]).decisions(), "bind j-b n1", "before more urgent ones");
    assert_eq!(refuse(&mut world, &["j-b"]).decisions(), "");
    world.tick(2);
    assert_eq!(world.cycle().decisions(), "bind j-b n1");
    assert_eq!(world.cycle().decisions(), "");
}

/// A conflict has no pause, and a pause may be over before the pod could be read again.
#[test]
fn a_member_of_a_broken_gang_that_was_not_bound_gets_the_first_turn() {
    for pauses in [false, true] {
        let mut world = World::new(&config(), GANG);
        for effect in &world.cycle_unanswered().effects {
            match effect {
                Effect::Bind { pod, uid, node, .. } if &*pod.name == "j-b" => {
                    let (uid, node, error) = (uid.clone(), node.clone(), "no".to_owned());
                    world.send(ClusterEvent::BindFailed { uid, node, error, pauses });
                }
                _ => world.store(effect),
            }
        }
        world.add(URGENT);
        for _ in 0..2 {
            assert_eq!(world.cycle().decisions(), "", "nobody knows yet whether it is bound");
            world.tick(2);
        }
        let pod = Box::new(world.pod("j-b").clone());
        world.send(ClusterEvent::PodRead { pod, after: ReadAfter::Bind });
        assert_eq!(world.cycle().decisions(), "bind j-b n1", "{pauses}");
    }
}

/// A restore of the API server lets the pod be listed anew, and decided again, before the read is answered.
#[test]
fn a_read_undoes_no_bind_that_was_decided_since() {
    let mut world = World::new(&config(), "node n1 cpu=4\njob j\n task a cpu=2");
    let mut refused = None;
    for effect in &world.cycle_unanswered().effects {
        if let Effect::Bind { uid, node, .. } = effect {
            refused = Some((uid.clone(), node.clone()));
        }
    }
    let (uid, node) = refused.unwrap();
    let (failed, error) = (uid.clone(), "no".to_owned());
    world.send(ClusterEvent::BindFailed { uid: failed, node, error, pauses: true });
    assert_eq!(world.cycle_unanswered().decisions(), "");
    let pod = Box::new(world.pod("j-a").clone());
    let key = pod.key.clone();
    world.send(ClusterEvent::PodDeleted { key: key.clone(), uid: uid.clone() });
    world.send(ClusterEvent::PodApplied(pod.clone()));
    assert_eq!(world.cycle_unanswered().decisions(), "bind j-a n1");
    world.send(ClusterEvent::PodRead { pod: pod.clone(), after: ReadAfter::Bind });
    assert_eq!(world.cycle_unanswered().decisions(), "");
    // A pod that is gone does not return by the answer to a read.
    let (failed, node, error) = (uid.clone(), "n1".into(), "no".to_owned());
    world.send(ClusterEvent::BindFailed { uid: failed, node, error, pauses: true });
    world.send(ClusterEvent::PodDeleted { key, uid });
    world.send(ClusterEvent::PodRead { pod, after: ReadAfter::Bind });
    world.cycle_unanswered();
    assert_eq!(world.engine.cluster().tasks.len(), 0);
}

#[test]
fn a_place_is_given_up_when_the_bind_was_refused_seven_times() {
    let mut world = World::new(&config(), GANG);
    refuse(&mut world, &["j-b"]);
    world.add(URGENT);
    let seconds = attempts(&mut world, "bind", &["j-b"], 129);
    assert_eq!(seconds, [1, 4, 9, 18, 35, 68], "the place is its own");
    assert_eq!(refuse(&mut world, &["j-b"]).decisions(), "bind j-b n1", "the eighth time");
    assert_eq!(refuse(&mut world, &["j-b"]).decisions(), "bind other-c n1");
}

#[test]
fn nobody_keeps_a_place_for_a_gang_that_has_no_pod_or_its_minimum() {
    let mut world = World::new(&config(), GANG);
    refuse(&mut world, &["j-a", "j-b"]);
    world.add("job other created=9\n task c cpu=2");
    assert_eq!(refuse(&mut world, &["j-a", "j-b"]).decisions(), "bind other-c n1");

    let text = "node n1 cpu=3\n job j min=2\n task a cpu=1\n task b cpu=1\n task c cpu=1";
    let mut world = World::new(&config(), text);
    refuse(&mut world, &["j-c"]);
    world.add("job other created=9\n task c cpu=1");
    assert_eq!(refuse(&mut world, &["j-c"]).decisions(), "bind other-c n1");
}

#[test]
fn a_place_is_given_up_when_the_pod_changes_or_goes() {
    type Change = fn(&mut World);
    let changes: [(Change, &str); 3] = [
        (|world| world.edit("j-b", |pod| pod.priority = Some(7)), "bind j-b n1"),
        (|world| world.delete_pod("j-b"), "bind other-c n1"),
        (|world| world.edit("j-b", |pod| pod.nominated_node = Some("n1".into())), ""),
    ];
    for (index, (change, decided)) in changes.into_iter().enumerate() {
        let mut world = World::new(&config(), GANG);
        refuse(&mut world, &["j-b"]);
        refuse(&mut world, &["j-b"]);
        world.add("job other created=9\n task c cpu=1");
        change(&mut world);
        assert_eq!(refuse(&mut world, &["j-b"]).decisions(), decided, "change {index}");
    }
}

#[test]
fn a_refused_pre_bind_pauses_and_a_conflict_does_not() {
    for (pauses, wanted) in [(true, vec![0, 2]), (false, vec![0, 1, 2, 3])] {
        let mut world = World::new(&config(), ONE);
        let mut seconds = Vec::new();
        for second in 0..4 {
            let cycle = world.cycle_unanswered();
            for effect in &cycle.effects {
                match effect {
                    Effect::Bind { pod, uid, node, .. } => world.refuse(pod, uid, node, pauses),
                    _ => world.store(effect),
                }
            }
            seconds.extend((!cycle.decisions().is_empty()).then_some(second));
            world.tick(1);
        }
        assert_eq!(seconds, wanted, "{pauses}");
    }
}

const VICTIMS: &str = "node n1 cpu=2
    node n2 cpu=2
    job low priority=10 min=0
      task a cpu=2 @n1 running
      task b cpu=2 @n2 running
    job high priority=100
      task p cpu=2";

#[test]
fn a_victim_whose_eviction_is_refused_pauses_and_another_one_goes() {
    let mut world = World::new(&config(), VICTIMS);
    assert_eq!(refuse(&mut world, &["low-a"]).only(&["evict"]), "evict low-a preempt");
    assert_eq!(refuse(&mut world, &["low-a"]).only(&["evict"]), "evict low-b preempt");
    world.kubelets();
    assert_eq!(refuse(&mut world, &["low-a"]).decisions(), "bind high-p n2");
}

#[test]
fn a_refused_eviction_pauses_twice_as_long_each_time() {
    let mut world = World::new(&config(), VICTIMS);
    world.delete_node("n2");
    world.delete_pod("low-b");
    assert_eq!(attempts(&mut world, "evict", &["low-a"], 40), DOUBLED[..6]);
    // The pod says that it may go now.
    world.edit("low-a", |pod| pod.priority = Some(3));
    assert_eq!(refuse(&mut world, &["low-a"]).only(&["evict"]), "evict low-a preempt");
}

#[test]
fn an_eviction_that_a_plugin_chose_pauses_when_it_is_refused() {
    let zones = "tdm{* tdm.revocable-zone.rz1=0:00-0:01 tdm.evict.period=1s} conformance";
    let text = "node n1 cpu=2 revocable=rz1
        job low min=0
          task a cpu=1 pre=true @n1 running";
    let mut world = World::new(&conf("allocate, shuffle", zones), text);
    world.tick(7_200);
    assert_eq!(attempts(&mut world, "evict", &["low-a"], 40), DOUBLED[..6]);
}

#[test]
fn a_clock_that_is_set_back_ends_all_pauses() {
    let mut world = World::new(&config(), ONE);
    attempts(&mut world, "bind", &["j-a"], 21);
    world.tick(-3_600);
    assert_eq!(world.cycle().decisions(), "bind j-a n1");
}

#[test]
fn queues_that_must_exist_are_made_again() {
    let mut world = World::new(&config(), "queue root\n queue q");
    for (queue, wanted) in
        [("root", "create queue root"), ("q", ""), ("default", "create queue default")]
    {
        world.delete_queue(queue);
        assert_eq!(world.cycle().only(&["create"]), wanted);
        assert_eq!(world.cycle().only(&["create"]), "", "once");
    }
    world.delete_queue("default");
    let created = |effect: &Effect| matches!(effect, Effect::CreateQueue { reclaimable: true, .. });
    assert!(world.cycle().effects.iter().any(created));
}

/// Nobody deletes them before the eyes of a process that begins after a restore.
#[test]
fn queues_that_the_first_lists_lack_are_made_again() {
    let missing = |text: &str| -> Vec<String> {
        let world = World::new(&config(), text);
        let mut engine = world.engine;
        engine.apply(fixture::events_of(text));
        let made = engine.create_missing_queues();
        made.iter().map(|effect| format!("{effect:?}")).collect()
    };
    let made = |name: &str, reclaimable: bool| {
        format!("CreateQueue {{ queue: {name:?}, reclaimable: {reclaimable} }}")
    };
    assert_eq!(missing("queue q"), [made("root", false), made("default", true)]);
    assert_eq!(
        missing("queue root\n job j queue=default"),
        [made("default", true)],
        "only a job names it"
    );
    assert_eq!(missing("queue root\n queue default"), [""; 0]);
}
