//! Cases 46-59 of plugins-jobs-queues.md: capacity with a tree of queues, example 18.2.

use std::cmp::Ordering;

use vc_framework::{Effect, QueueAmount, QueueGauges, Session};
use vc_model::QueueId;
use vc_resource::Dim;

use crate::support::{
    allocatable, allocate, deserved, enqueueable, in_session, job, preemptive, queue, reclaimed,
    series, shown, task,
};

const TREE: &str = "capacity +enableHierarchy";
const LEVEL_1: &str = "capacity +enableHierarchy ancestorReclaimLevel=1";

const EXAMPLE: &str = "node n cpu=32 memory=128Gi gpu=16 pods=220
    queue root
    queue eng parent=root cap.cpu=24 cap.gpu=12 deserved.cpu=20 deserved.gpu=10 \
        guarantee.cpu=8 guarantee.gpu=4
    queue eng-a parent=eng cap.gpu=8 deserved.cpu=12 deserved.gpu=6 guarantee.cpu=4
    queue eng-b parent=eng deserved.gpu=1 guarantee.gpu=2
    queue sci deserved.cpu=12 deserved.gpu=6 guarantee.cpu=4
    job a queue=eng-a running minres.cpu=6 minres.gpu=3\n task t x3 cpu=2 gpu=1 @n running
        task six gpu=6\n task one gpu=1
        task both cpu=8 gpu=1
    job b queue=eng-b running minres.cpu=4 minres.gpu=3\n task t x3 cpu=1 gpu=1 @n running
        task c cpu=1 @n running
        task six gpu=6\n task one gpu=1
    job s queue=sci\n task t x3 cpu=1 gpu=1 @n running\n task two gpu=2
    job seven queue=eng-b minres.gpu=7
    job six queue=eng-b minres.gpu=6";

fn amounts(gauges: &[QueueGauges], name: &str, kind: QueueAmount) -> (f64, f64, Option<f64>) {
    let found = gauges.iter().find(|gauges| &*gauges.queue == name).expect("the queue is shown");
    let (_, amounts) = found.amounts.iter().find(|(other, _)| *other == kind).expect("it is told");
    let gpu = amounts.scalars.iter().find(|(name, _)| name == "nvidia.com/gpu");
    (amounts.cpu_milli / 1000.0, amounts.memory_bytes, gpu.map(|(_, gpu)| gpu / 1000.0))
}

#[test]
fn jobs_46_limits_of_the_example() {
    in_session(EXAMPLE, TREE, |session| {
        let gauges = shown(session);
        let (no, m) = (f64::MAX, i64::MAX as f64 / 1000.0);
        let unlimited = no / 1000.0;
        for (name, capability, real, deserved) in [
            ("root", (unlimited, no, Some(m)), (unlimited, no, Some(m)), (32.0, 0.0, Some(16.0))),
            ("eng", (24.0, no, Some(12.0)), (24.0, no, Some(12.0)), (20.0, 0.0, Some(10.0))),
            ("eng-a", (24.0, no, Some(8.0)), (24.0, no, Some(8.0)), (12.0, 0.0, Some(6.0))),
            ("eng-b", (24.0, no, Some(12.0)), (20.0, no, Some(12.0)), (0.0, 0.0, Some(2.0))),
            ("sci", (unlimited, no, Some(m)), (unlimited, no, Some(m)), (12.0, 0.0, Some(6.0))),
        ] {
            assert_eq!(amounts(&gauges, name, QueueAmount::Capability), capability, "{name}");
            assert_eq!(amounts(&gauges, name, QueueAmount::RealCapability), real, "{name}");
            assert_eq!(amounts(&gauges, name, QueueAmount::Deserved), deserved, "{name}");
        }
        assert_eq!(amounts(&gauges, "eng", QueueAmount::Allocated), (10.0, 0.0, Some(6.0)));
        assert_eq!(amounts(&gauges, "root", QueueAmount::Allocated), (13.0, 0.0, Some(9.0)));
    });
}

#[test]
fn jobs_46_shares_and_queue_order() {
    in_session(EXAMPLE, TREE, |session| {
        for (name, share) in [("eng-a", 0.5), ("eng-b", 1.5), ("sci", 0.5), ("eng", 0.6)] {
            assert_eq!(deserved(session, name).1, share, "{name}");
        }
        let order = |l, r| {
            let (l, r) = (queue(session, l), queue(session, r));
            session.plugins().queue_order(session.view(), l, r)
        };
        assert_eq!(order("eng-a", "eng-b"), Ordering::Less);
        assert_eq!(order("sci", "eng-a"), Ordering::Less);
        assert_eq!(order("sci", "eng-b"), Ordering::Less);
        assert_eq!(order("eng", "eng-b"), Ordering::Greater, "leaves go first");
    });
}

#[test]
fn jobs_46_room_and_admission() {
    in_session(EXAMPLE, TREE, |session| {
        let gpu = session.dims.get("nvidia.com/gpu").expect("the node has it");
        assert_eq!(allocatable(session, "a/six"), Err(vec![gpu]));
        assert_eq!(allocatable(session, "b/six"), Ok(()));
        assert_eq!(allocatable(session, "a/one"), Ok(()));
        let message = "queue resource quota insufficient: insufficient nvidia.com/gpu".to_owned();
        assert_eq!(enqueueable(session, "seven"), Err(Some(message)));
        assert_eq!(enqueueable(session, "six"), Ok(()));
        let six = task(session, "b/six");
        allocate(session, six, "n");
        // The leaf would have 4 of 8, its parent 13 of 12.
        assert_eq!(allocatable(session, "a/one"), Err(vec![gpu]));
    });
}

#[test]
fn jobs_46_reclaim() {
    let all = ["b/t-0", "b/t-1", "b/t-2"];
    in_session(EXAMPLE, TREE, |session| {
        assert!(preemptive(session, "eng-a", &["a/both"]));
        assert!(!preemptive(session, "eng-b", &["b/one"]));
        assert_eq!(reclaimed(session, "s/two", &all).len(), 1);
    });
    in_session(EXAMPLE, LEVEL_1, |session| {
        assert!(preemptive(session, "eng-b", &["b/one"]));
        assert_eq!(reclaimed(session, "s/two", &all), [""; 0]);
    });
}

#[test]
fn jobs_47_jobs_of_a_queue_with_children_are_left_out() {
    let text = "node n cpu=8 memory=8Gi
        queue root\n queue q1 parent=root cap.cpu=4 cap.memory=4Gi
        queue q11 parent=q1 cap.cpu=1 cap.memory=1Gi
        job inner queue=q1 minres.cpu=1\n task t cpu=1 memory=1Gi
        job leaf queue=q11 minres.cpu=1\n task t cpu=1 memory=1Gi";
    in_session(text, TREE, |session| {
        assert_eq!(
            (allocatable(session, "leaf/t"), enqueueable(session, "leaf")),
            (Ok(()), Ok(()))
        );
        assert_eq!(allocatable(session, "inner/t"), Err(vec![]));
        assert_eq!(enqueueable(session, "inner"), Err(None));
        assert!(!preemptive(session, "q1", &["inner/t"]));
        let reported = |session: &mut Session<'_>| -> Vec<String> {
            session.close_plugins();
            let message = |effect| match effect {
                Effect::Event { warning: true, reason: "Unschedulable", message, .. } => {
                    Some(message.to_string())
                }
                _ => None,
            };
            std::mem::take(&mut session.outcome.out.effects)
                .into_iter()
                .filter_map(message)
                .collect()
        };
        let text = "queue q1 has child queues, jobs are scheduled in queues without children only";
        assert_eq!(reported(session), [text]);
        assert_eq!(reported(session), [""; 0], "once");
    });
}

#[test]
fn jobs_48_a_leaf_may_borrow_up_to_its_capability() {
    let both = "deserved.cpu=2 deserved.memory=2Gi cap.cpu=4 cap.memory=4Gi";
    let text = format!(
        "node n cpu=8 memory=8Gi\n queue root\n queue p {both}\n queue l parent=p {both}
         job j queue=l\n task t x3 cpu=2 memory=2Gi"
    );
    in_session(&text, TREE, |session| {
        for index in 0..2 {
            assert_eq!(allocatable(session, &format!("j/t-{index}")), Ok(()));
            let next = task(session, &format!("j/t-{index}"));
            allocate(session, next, "n");
        }
        assert_eq!(allocatable(session, "j/t-2"), Err(vec![Dim::CPU, Dim::MEMORY]));
    });
}

#[test]
fn jobs_49_the_closest_relatives_go_first() {
    let text = "node n cpu=8 memory=8Gi
        queue root\n queue q3 deserved.cpu=6 deserved.memory=6Gi
        queue q4 deserved.cpu=2 deserved.memory=2Gi
        queue q31 parent=q3 deserved.cpu=2 deserved.memory=2Gi
        queue q32 parent=q3 deserved.cpu=2 deserved.memory=2Gi
        job far queue=q4\n task t cpu=4 memory=4Gi @n running
        job near queue=q31\n task t x2 cpu=2 memory=2Gi @n running
        job p queue=q32\n task t cpu=2 memory=2Gi";
    in_session(text, TREE, |session| {
        assert!(preemptive(session, "q32", &["p/t"]));
        // near/t-0 is not preemptable and therefore not offered.
        let victims = reclaimed(session, "p/t", &["far/t", "near/t-1"]);
        assert_eq!(victims, ["near-t-1", "far-t"]);
    });
}

#[test]
fn jobs_50_a_full_parent_stops_its_leaves() {
    let text = "node n cpu=16
        queue root\n queue q3 cap.cpu=4\n queue q31 parent=q3\n queue q32 parent=q3 cap.cpu=4
        job a queue=q31\n task t x4 cpu=1 @n running
        job p queue=q32\n task t cpu=1";
    in_session(text, TREE, |session| {
        assert_eq!(allocatable(session, "p/t"), Err(vec![Dim::CPU]));
    });
}

#[test]
fn jobs_51_what_no_queue_lists_is_unlimited() {
    let text = "node n cpu=8 memory=8Gi
        queue root\n queue q5 cap.memory=4Gi\n queue q51 parent=q5 cap.memory=2Gi
        job j queue=q51\n task t cpu=1\n task m memory=3Gi";
    in_session(text, TREE, |session| {
        assert_eq!(allocatable(session, "j/t"), Ok(()));
        assert_eq!(allocatable(session, "j/m"), Err(vec![Dim::MEMORY]));
    });
}

#[test]
fn jobs_52_admission_counts_what_siblings_hold_back() {
    let text = "node n cpu=8 memory=8Gi
        queue root\n queue q6 cap.cpu=2 cap.memory=4Gi\n queue q61 parent=q6\n queue q62 parent=q6
        job a queue=q61 minres.cpu=2 minres.memory=4Gi
        job b queue=q62 minres.cpu=2 minres.memory=4Gi";
    in_session(text, TREE, |session| {
        assert_eq!((enqueueable(session, "a"), enqueueable(session, "b")), (Ok(()), Ok(())));
        let first = job(session, "a");
        session.enqueue(first);
        let lacks = "queue resource quota insufficient: insufficient cpu, insufficient memory";
        assert_eq!(enqueueable(session, "b"), Err(Some(lacks.to_owned())));
    });
}

#[test]
fn jobs_53_amounts_that_contradict_each_other_stop_nothing() {
    for root in ["", "cap.cpu=100 cap.memory=100Gi", "cap.cpu=3 cap.memory=3Gi"] {
        let text = format!(
            "node n cpu=8 memory=8Gi
             queue root {root}\n queue p guarantee.cpu=6 cap.cpu=6 deserved.cpu=3
             queue a parent=p guarantee.cpu=4 cap.cpu=7 deserved.cpu=4
             queue b parent=p guarantee.cpu=4\n queue free
             job a queue=a\n task t cpu=1\n job f queue=free\n task t memory=1Gi"
        );
        in_session(&text, TREE, |session| {
            // 6 of the parent's without 8 is nothing, and its own guarantee is given back.
            assert_eq!(allocatable(session, "a/t"), Ok(()), "{root}");
            assert_eq!(allocatable(session, "f/t"), Ok(()), "{root}");
        });
    }
}

#[test]
fn jobs_54_scalars_that_are_deserved_or_not_mentioned() {
    for deserved in ["deserved.gpu=4", "deserved.gpu=0", ""] {
        let text = format!(
            "node n cpu=8 memory=8Gi gpu=8
             queue root\n queue p cap.cpu=8\n queue a parent=p {deserved}\n queue b parent=p
             job a queue=a\n task t gpu=4\n job b queue=b\n task t gpu=4"
        );
        in_session(&text, TREE, |session| {
            for name in ["a/t", "b/t"] {
                assert_eq!(allocatable(session, name), Ok(()), "{name} {deserved}");
                let next = task(session, name);
                allocate(session, next, "n");
            }
        });
    }
}

#[test]
fn jobs_55_reclaim_for_one_scalar() {
    let text = "node n cpu=8 memory=8Gi nvidia.com/a100=5 rdma/hca=5
        queue root\n queue p\n queue own parent=p deserved.nvidia.com/a100=2\n queue v parent=p
        job v queue=v\n task t x2 nvidia.com/a100=2 @n running
        job p queue=own\n task t cpu=1 memory=1Gi nvidia.com/a100=2 rdma/hca=1";
    in_session(text, TREE, |session| {
        assert!(preemptive(session, "own", &["p/t"]));
        assert_eq!(reclaimed(session, "p/t", &["v/t-1"]), ["v-t-1"]);
    });
}

#[test]
fn jobs_56_without_root_and_with_jobs_of_unknown_queues() {
    let text = "node n cpu=8\n queue p cap.cpu=3\n queue l parent=p\n queue m parent=p
        job j queue=l minres.cpu=2\n task t cpu=2\n job k queue=m\n task t cpu=2
        job lost queue=gone\n task t cpu=1 @n running";
    in_session(text, TREE, |session| {
        assert_eq!((allocatable(session, "j/t"), enqueueable(session, "j")), (Ok(()), Ok(())));
        let first = task(session, "j/t");
        allocate(session, first, "n");
        assert_eq!(allocatable(session, "k/t"), Err(vec![Dim::CPU]));
        assert_eq!(reclaimed(session, "k/t", &["lost/t"]), [""; 0]);
    });
}

#[test]
fn jobs_57_a_queue_that_does_not_reach_root_is_out_and_the_rest_is_not() {
    let text = "node n cpu=8\n queue root
        queue stray parent=gone\n queue below parent=stray
        queue a parent=b\n queue b parent=a\n queue self parent=self\n queue good deserved.cpu=4
        job s queue=stray minres.cpu=1\n task t cpu=1
        job w queue=below minres.cpu=1\n task t cpu=1 @n running\n task u cpu=1
        job c queue=a minres.cpu=1\n task t cpu=1
        job i queue=self minres.cpu=1\n task t cpu=1
        job g queue=good minres.cpu=1\n task t cpu=1";
    in_session(text, TREE, |session| {
        for (name, pod, queue) in
            [("s", "s/t", "stray"), ("w", "w/u", "below"), ("c", "c/t", "a"), ("i", "i/t", "self")]
        {
            assert_eq!(allocatable(session, pod), Err(vec![]), "{name}");
            assert_eq!(enqueueable(session, name), Err(None), "{name}");
            assert!(!preemptive(session, queue, &[pod]), "{name}");
            assert_eq!(reclaimed(session, pod, &["w/t"]), [""; 0], "{name}");
        }
        assert_eq!((allocatable(session, "g/t"), enqueueable(session, "g")), (Ok(()), Ok(())));
        assert!(preemptive(session, "good", &["g/t"]));
        assert_eq!(reclaimed(session, "g/t", &["w/t"]), [""; 0]);
    });
}

#[test]
fn jobs_58_a_partial_capability_of_root_limits_what_it_lists() {
    let text = "node n cpu=32 memory=64Gi gpu=4\n queue root cap.cpu=16\n queue l
        job j queue=l\n task m cpu=16 memory=64Gi gpu=4\n task c cpu=17";
    in_session(text, TREE, |session| {
        assert_eq!(allocatable(session, "j/m"), Ok(()));
        assert_eq!(allocatable(session, "j/c"), Err(vec![Dim::CPU]));
    });
}

#[test]
fn jobs_59_shares_of_ancestors_follow_within_the_session() {
    let text = "node n cpu=8\n queue root
        queue p1 deserved.cpu=4\n queue p2 deserved.cpu=4\n queue l1 parent=p1\n queue l2 parent=p2
        job a queue=l1\n task t x4 cpu=1\n job b queue=l2\n task t x4 cpu=1";
    in_session(text, TREE, |session| {
        let (l1, l2) = (queue(session, "l1"), queue(session, "l2"));
        let mut waiting = [series(session, "a/t", 4), series(session, "b/t", 4)];
        let mut served = String::new();
        for _ in 0..8 {
            let first = session.plugins().queue_order(session.view(), l1, l2).is_le();
            served.push(if first { '1' } else { '2' });
            let next = waiting[usize::from(!first)].remove(0);
            allocate(session, next, "n");
        }
        assert_eq!(served, "12121212");
    });
}

#[test]
fn jobs_46_only_leaves_at_the_top_stand_alone() {
    let text = "node n cpu=8
        queue root\n queue top\n queue flat\n queue deep parent=top\n queue lost parent=gone";
    let alone = |plugin: &str, text: &str| {
        in_session(text, plugin, |session| {
            let alone =
                |queue: &&QueueId| session.plugins().has_total_order_key(session.view(), **queue);
            let alone = session.info().queues.iter().filter(alone);
            alone.map(|&queue| session.queues[queue].name.to_string()).collect::<Vec<String>>()
        })
    };
    assert_eq!(alone(TREE, text), ["flat"]);
    let without_root = text.replace("queue root\n", "");
    assert_eq!(alone(TREE, &without_root), ["flat"]);
    assert_eq!(alone("capacity", text).len(), 5);
    // S17: with hierarchical drf it is the queues with the longest path.
    let drf = "drf +enableHierarchy";
    assert_eq!(alone(drf, text).len(), 5);
    let path = "queue deep hierarchy=root/deep weights=1/1";
    assert_eq!(alone(drf, &text.replace("queue deep parent=top", path)), ["deep"]);
}
