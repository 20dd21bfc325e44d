//! actions.md "gangpreempt, gangreclaim": which pods of a victim job form a bundle, and which
//! bundle goes first.

use crate::support::gang::*;
use crate::support::*;

#[test]
fn gang__bundle_split() {
    let roles = |need: u32| {
        format!(
            "node n1 cpu=5
            job v priority=1 min=3 role.worker=3
              task a cpu=1 priority=1 role=worker @n1 running
              task b cpu=1 priority=2 role=worker @n1 running
              task c cpu=1 priority=3 role=worker @n1 running
              task d cpu=1 priority=4 role=worker @n1 running
              task e cpu=1 priority=5 role=worker @n1 running
            job p priority=9
              task p cpu={need}"
        )
    };
    assert_eq!(evicted(&only_safe(), &roles(2)), "v-a v-b");
    assert_eq!(evicted(&only_safe(), &roles(3)), "");
    assert_eq!(evicted(&gang_preempt(), &roles(5)), "v-a v-b v-c v-d v-e");
    let total = |need: u32| {
        format!(
            "node n1 cpu=4
            job v priority=1 min=2
              task x cpu=1 @n1 x4 running
            job p priority=9
              task p cpu={need}"
        )
    };
    assert_eq!(evicted(&only_safe(), &total(2)), "v-x-0 v-x-1");
    assert_eq!(evicted(&only_safe(), &total(3)), "");
    let below = "node n1 cpu=2
        job v priority=1 min=10
          task x cpu=1 @n1 x2 running
          task w cpu=1 x8
        job p priority=9
          task p cpu=2";
    assert_eq!(evicted(&only_safe(), below), "v-x-0 v-x-1");
}

/// One role may be short of its minimum although the job is not.
#[test]
fn gang__bundle_split_text_map() {
    let text = |min: u32| {
        format!(
            "node n1 cpu=4
            job v priority=1 min={min} role.ps=2
              task ps cpu=1 priority=1 role=ps @n1 x2 running
              task worker cpu=1 priority=2 role=worker @n1 x2 running
            job p priority=9
              task p cpu=1"
        )
    };
    assert_eq!(evicted(&only_safe(), &text(2)), "v-worker-0");
    // Below the sum of the roles, these are not looked at.
    assert_eq!(evicted(&only_safe(), &text(1)), "v-ps-0");
}

#[test]
fn gang__bundle_subgroups() {
    let text = |minimum: u32, need: u32| {
        format!(
            "node n1 cpu=6
            job v priority=1 min=2 policy.g=2x{minimum}
              task a1 cpu=1 priority=1 label.g=a @n1 running
              task a2 cpu=1 priority=2 label.g=a @n1 running
              task b1 cpu=1 priority=3 label.g=b @n1 running
              task b2 cpu=1 priority=4 label.g=b @n1 running
              task c1 cpu=1 priority=5 label.g=c @n1 running
              task rest cpu=1 priority=6 @n1 running
            job p priority=9
              task p cpu={need}"
        )
    };
    // Of two pairs one is needed: one may break, c is broken already, the rest has no minimum.
    assert_eq!(evicted(&only_safe(), &text(1, 2)), "v-a1 v-a2");
    assert_eq!(evicted(&only_safe(), &text(1, 4)), "v-a1 v-a2 v-c1 v-rest");
    assert_eq!(evicted(&only_safe(), &text(1, 5)), "");
    // Both are needed.
    assert_eq!(evicted(&only_safe(), &text(2, 1)), "v-c1");
    assert_eq!(evicted(&only_safe(), &text(2, 3)), "");
}

#[test]
fn gang__allowed() {
    let text = |min: u32, need: u32| {
        format!(
            "node n1 cpu=2
            job v priority=1 min={min}
              task t1 cpu=1 priority=1 @n1 running
              task t2 cpu=1 priority=2 class=system-node-critical @n1 running
            job p priority=9
              task p cpu={need}"
        )
    };
    assert_eq!(evicted(&gang_preempt(), &text(0, 1)), "v-t1");
    assert_eq!(evicted(&gang_preempt(), &text(0, 2)), "");
    assert_eq!(evicted(&gang_preempt(), &text(2, 1)), "");
}

#[test]
fn gang__order() {
    let safe_first = "node n1 cpu=2
        job a priority=1 min=1
          task v cpu=1 @n1 running
        job b priority=5 min=0
          task v cpu=1 @n1 running
        job p priority=9
          task p cpu=1";
    assert_eq!(evicted(&gang_preempt(), safe_first), "b-v");
    let less_important_first = "node n1 cpu=2
        job a priority=5 min=1
          task v cpu=1 @n1 running
        job b priority=1 min=1
          task v cpu=1 @n1 running
          task waits cpu=9
        job p priority=9
          task p cpu=1";
    assert_eq!(evicted(&gang_preempt(), less_important_first), "b-v");
    // Plugins hold them equal: the younger one goes, though with it twice as much is lost.
    let younger_first = "node n1 cpu=4
        job a priority=1 min=1 created=0
          task v cpu=2 @n1 running
        job b priority=1 min=1 created=10
          task v cpu=2 @n1 running
          task waits cpu=2
        job p priority=9
          task p cpu=2";
    assert_eq!(evicted(&gang_preempt(), younger_first), "b-v");
    let safe = younger_first.replace("min=1", "min=0");
    assert_eq!(evicted(&gang_preempt(), &safe), "b-v");
    let by_uid = younger_first.replace("created=10", "created=0");
    assert_eq!(evicted(&gang_preempt(), &by_uid), "b-v");
    let older = younger_first.replace("created=0", "created=20");
    assert_eq!(evicted(&gang_preempt(), &older), "a-v");
}

#[test]
fn gang__order_of_queues() {
    let text = "node n1 cpu=4
        queue q1 created=0
        queue q2 created=1
        queue q3
        job a queue=q1 min=1
          task v cpu=2 @n1 running
        job b queue=q2 min=1
          task v cpu=2 @n1 running
          task waits cpu=2
        job p queue=q3
          task p cpu=2";
    assert_eq!(evicted(&gang_reclaim(), text), "b-v");
    // Inside one queue the smaller loss decides.
    assert_eq!(evicted(&gang_reclaim(), &text.replace("queue=q1", "queue=q2")), "a-v");
}

/// D3: gang permits everybody and decides the first tier alone, but shares are filtered before.
#[test]
fn gang__shares() {
    let text = "node n1 cpu=6
        queue modest deserved.cpu=2
        queue greedy deserved.cpu=2
        queue taker deserved.cpu=2
        job m queue=modest min=0
          task v cpu=2 @n1 running
        job g queue=greedy min=1
          task v cpu=4 @n1 running
        job p queue=taker
          task p cpu=1";
    let victims = |tiers: &str| evicted(&conf("gangreclaim", tiers), text);
    for plugin in ["proportion", "capacity"] {
        for tiers in [
            format!("priority gang conformance | {plugin} predicates"),
            format!("{plugin} predicates | priority gang conformance"),
            format!("priority gang conformance {plugin} predicates"),
        ] {
            assert_eq!(victims(&tiers), "g-v", "{tiers}");
        }
    }
    assert_eq!(victims("priority gang conformance | predicates"), "m-v", "its gang can spare it");
}

#[test]
fn gang__priority_first() {
    let text = "node n1 cpu=2
        job low priority=1 min=1
          task v cpu=1 @n1 running
        job mid priority=5 min=0
          task v cpu=1 @n1 running
        job p priority=9
          task p cpu=1";
    assert_eq!(evicted(&gang_preempt(), text), "mid-v");
    let policy = "{victimOrderPolicy: priority-first}";
    let config = with_arguments(gang_preempt(), "gangpreempt", policy);
    assert_eq!(evicted(&config, text), "low-v");
    // Reclaim asks for the queues before.
    let queues = "node n1 cpu=3
        queue q1 created=0
        queue q2 created=1
        queue q3
        job low queue=q1 priority=1 min=1
          task v cpu=1 @n1 running
        job mid queue=q2 priority=5 min=0
          task v cpu=1 @n1 running
        job some queue=q2 priority=3 min=1
          task v cpu=1 @n1 running
        job p queue=q3
          task p cpu=1";
    let config = with_arguments(gang_reclaim(), "gangreclaim", policy);
    assert_eq!(evicted(&config, queues), "some-v");
    assert_eq!(evicted(&gang_reclaim(), queues), "mid-v");
}

#[test]
fn gang__whole_off() {
    let text = "node n1 cpu=2
        job v priority=1 min=2
          task x cpu=1 @n1 x2 running
        job p priority=9
          task p cpu=1";
    assert_eq!(evicted(&only_safe(), text), "");
    assert_eq!(evicted(&gang_preempt(), text), "v-x-0 v-x-1");
}

#[test]
fn gang__podgroup_protected() {
    for (word, expected) in [("pre=false", ""), ("pre=maybe", ""), ("pre=true", "v-x"), ("", "v-x")]
    {
        let text = format!(
            "node n1 cpu=1
            job v priority=1 min=1 {word}
              task x cpu=1 @n1 running
            job p priority=9
              task p cpu=1"
        );
        assert_eq!(evicted(&gang_preempt(), &text), expected, "{word}");
    }
}
