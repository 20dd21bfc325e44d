//! Every cause for which a pod waits reaches the pod: its condition says why, or its PodGroup where
//! the API server speaks for the pod. A new cause does not compile without a case here.
//! Specification: core.md 3.10 (C-43).

use vc_engine::Effect;
use vc_framework::WaitCause;
use vc_model::{ClusterEvent, fixture};

use crate::support::*;

/// How a pod comes to wait for one cause.
struct Case {
    actions: &'static str,
    plugins: &'static str,
    objects: &'static str,
    /// Changes objects before the first cycle.
    change: fn(&mut World),
    /// The pod that waits.
    pod: &'static str,
    /// What its message holds.
    says: &'static str,
}

const ALL_ACTIONS: &str = "enqueue, allocate, backfill";
const PLUGINS: &str = "priority gang conformance | predicates proportion nodeorder";
/// No queue has a limit, so that only nodes can be short.
const WITHOUT_LIMITS: &str = "priority gang conformance | predicates nodeorder";

impl Case {
    fn new(objects: &'static str, pod: &'static str, says: &'static str) -> Self {
        Self { actions: ALL_ACTIONS, plugins: PLUGINS, objects, change: |_| {}, pod, says }
    }
}

fn case(cause: WaitCause) -> Case {
    match cause {
        WaitCause::NoGroupName => {
            Case::new("pod p cpu=1", "p", "annotation scheduling.k8s.io/group-name is missing")
        }
        WaitCause::GroupMissing => Case {
            change: |world| world.delete_group("j"),
            ..Case::new("job j\n task a cpu=1", "j-a", "PodGroup default/j does not exist")
        },
        WaitCause::QueueMissing => {
            Case::new("job j queue=none\n task a cpu=1", "j-a", "queue none does not exist")
        }
        WaitCause::Gated => Case::new(
            "job j min=2\n task a cpu=1 gate=example.com/later\n task b cpu=1",
            "j-a",
            "1 pod (j-a) has scheduling gate example.com/later",
        ),
        WaitCause::Incomplete => Case {
            change: |world| world.edit("j-a", |pod| pod.invalid = Some("claim c is gone".into())),
            ..Case::new("job j\n task a cpu=1", "j-a", "claim c is gone")
        },
        WaitCause::BindRefused => Case {
            change: refuse_binds,
            ..Case::new(
                "job j\n task a cpu=1",
                "j-a",
                "failed to bind to node n1: refused. It is tried again after 1 s",
            )
        },
        WaitCause::NotAdmitted => Case::new(
            "queue q cap.cpu=1\n job j queue=q minres.cpu=4 pending\n task a cpu=4",
            "j-a",
            "queue resource quota insufficient: insufficient cpu",
        ),
        WaitCause::QueueNotOpen => Case::new(
            "queue q state=Closed\n job j queue=q\n task a cpu=1",
            "j-a",
            "queue q is Closed",
        ),
        WaitCause::QueueOverused => Case::new(
            "queue q cap.cpu=1 cap.pods=1\n job r queue=q running\n task a cpu=1 @n1 running\n \
             job j queue=q\n task a cpu=1",
            "j-a",
            "queue q is overused",
        ),
        WaitCause::QueueFull => Case::new(
            "queue q cap.cpu=1\n job j queue=q\n task a cpu=2",
            "j-a",
            "queue q has no room: insufficient cpu",
        ),
        WaitCause::BehindHead => Case::new(
            "queue q fifo\n job h queue=q created=0\n task a cpu=9\n \
             job j queue=q created=1\n task a cpu=1",
            "j-a",
            "waiting behind job default/h of the same queue",
        ),
        other => case_of_placement(other),
    }
}

/// One cycle whose binds are refused, so that their pods pause (core.md 7.2, C-50).
fn refuse_binds(world: &mut World) {
    for effect in &world.cycle_unanswered().effects {
        match effect {
            Effect::Bind { pod, uid, node, .. } => world.refuse(pod, uid, node, true),
            _ => world.store(effect),
        }
    }
}

/// One cycle whose binds wait for a volume, and two seconds.
fn hold_binds(world: &mut World) {
    let storage =
        "class slow provisioner=d delayed\n csinode n1 d=9\n pvc ca 1Gi class=slow version=1";
    fixture::storage(storage).into_iter().for_each(|event| world.send(event));
    assert_eq!(world.cycle().only(&["prebind", "pod"]), "prebind j-a n1 ca");
    world.tick(1);
    assert_eq!(world.cycle().only(&["pod"]), "");
    world.tick(1);
}

fn case_of_placement(cause: WaitCause) -> Case {
    match cause {
        WaitCause::Topology => Case::new(
            "job j topology=hard\n task a cpu=1",
            "j-a",
            "network topology: hyperNodes are not ready. Remove networkTopology to place the pods \
             without. PodGroup default/j asks for a HyperNode of tier 1 at most (mode hard).",
        ),
        WaitCause::AwaitsVictims => Case::new(
            "job v running\n task v cpu=4 @n1 running deleting\n \
             job j\n task a cpu=4 nominated=n1\n task b cpu=4",
            "j-b",
            "waiting for terminating victims: 1 on n1",
        ),
        WaitCause::AwaitsVolumes => Case {
            change: hold_binds,
            ..Case::new(
                "job j min=2\n task a cpu=1 pvc=ca\n task b cpu=1",
                "j-a",
                "waiting on node n1 for PersistentVolumeClaim ca to be bound",
            )
        },
        WaitCause::MembersMissing => {
            Case::new("job j min=3\n task a cpu=1 x2", "j-a-1", "1 pod is missing: 2 of 3 exist")
        }
        WaitCause::NoNodes => Case {
            plugins: WITHOUT_LIMITS,
            change: |world| world.delete_node("n1"),
            ..Case::new("job j\n task a cpu=1", "j-a", "0/0 nodes are unavailable")
        },
        WaitCause::FitsNowhere => Case {
            plugins: WITHOUT_LIMITS,
            ..Case::new(
                "job j\n task a cpu=9",
                "j-a",
                "0/1 nodes are unavailable: 1 Insufficient cpu.",
            )
        },
        WaitCause::GangIncomplete => Case::new(
            "job j min=2\n task a cpu=1\n task b cpu=9",
            "j-a",
            "Pod default/j-a can possibly be assigned to n1, once minAvailable is satisfied",
        ),
        WaitCause::AwaitsRoom => Case::new(
            "job v running\n task v cpu=4 @n1 running deleting\n job j\n task a cpu=4",
            "j-a",
            "can possibly be assigned to n1, once resource is released",
        ),
        WaitCause::OtherMember => Case {
            plugins: WITHOUT_LIMITS,
            ..Case::new(
                "job j min=2\n task a cpu=9 x2",
                "j-a-1",
                "Origin reason is j-a-0: 0/1 nodes are unavailable",
            )
        },
        WaitCause::NotTried => Case {
            actions: "enqueue, allocate",
            ..Case::new("job j\n task a", "j-a", "no action has tried the pod")
        },
        WaitCause::NoGroupName
        | WaitCause::GroupMissing
        | WaitCause::QueueMissing
        | WaitCause::Gated
        | WaitCause::Incomplete
        | WaitCause::BindRefused
        | WaitCause::NotAdmitted
        | WaitCause::QueueNotOpen
        | WaitCause::QueueOverused
        | WaitCause::QueueFull
        | WaitCause::BehindHead => unreachable!("it has a case above"),
    }
}

fn world(case: &Case) -> World {
    let config = conf(case.actions, case.plugins);
    let mut world = World::new(&config, &format!("node n1 cpu=4\n {}", case.objects));
    (case.change)(&mut world);
    world
}

/// What the pod says, or its PodGroup where it has a gate.
fn message(world: &World, cause: WaitCause, pod: &str) -> String {
    let condition = world.pod(pod).scheduled_condition.as_ref();
    if cause == WaitCause::Gated {
        assert_eq!(condition, None, "the API server has written it");
        let conditions = &world.group("j").status.conditions;
        return conditions.iter().map(|condition| condition.message.to_string()).collect();
    }
    let condition = condition.unwrap_or_else(|| panic!("{cause:?}: no condition"));
    assert_eq!(&*condition.status, "False", "{cause:?}");
    condition.message.to_string()
}

#[test]
fn every_cause_reaches_its_pod() {
    for &cause in WaitCause::ALL {
        let case = case(cause);
        let mut world = world(&case);
        let cycle = world.cycle();
        let waiting = &cycle.report.waiting;
        let found = waiting.iter().find(|task| &*task.pod.name == case.pod);
        let found = found.unwrap_or_else(|| panic!("{cause:?}: {} does not wait", case.pod));
        assert_eq!(found.cause, cause, "{}", found.message);
        let message = message(&world, cause, case.pod);
        assert!(message.contains(case.says), "{cause:?}: {message}");
        for _ in 0..3 {
            world.cycle();
        }
        let later = world.cycle();
        assert_eq!(later.only(&["pod", "group", "event"]), "", "{cause:?}: said once");
    }
}

/// Each kind of message is one write with its event (core.md 7.4): a PodGroup that is gone, too.
#[test]
fn gated_members_of_a_ready_group_are_told_in_an_event() {
    let text = "node n1 cpu=4
        job j min=1
          task a cpu=1
          task b cpu=1 gate=b.io/later gate=a.io/later x2";
    let mut world = World::new(&conf(ALL_ACTIONS, "gang | predicates"), text);
    let reported = "event PodGroup j Normal SchedulingGated \"2 pods (j-b-0, ...) have scheduling \
        gates b.io/later, a.io/later\"";
    assert_eq!(world.cycle().only(&["event"]), reported);
    assert!(!world.cycle().all().contains("SchedulingGated"), "it is said once");
    world.edit("j-b-1", |pod| pod.scheduling_gates.clear());
    let cycle = world.cycle();
    assert!(cycle.all().contains("1 pod (j-b-0) has scheduling gates"), "{}", cycle.all());
}

/// A member without volumes waits with its gang.
#[test]
fn each_member_of_a_gang_is_told_for_which_volumes_it_waits() {
    let case = case(WaitCause::AwaitsVolumes);
    let mut world = world(&case);
    let reported = world.cycle().only(&["pod"]);
    let wanted = "pod j-a Binding \"waiting on node n1 for PersistentVolumeClaim ca to be bound\"\n\
        pod j-b Binding \"waiting on node n1 for the volumes or devices of other pods of its PodGroup\"";
    assert_eq!(reported, wanted);
    assert_eq!(world.cycle().only(&["pod"]), "");
}

#[test]
fn a_job_with_a_topology_is_told_whether_there_are_hyper_nodes() {
    let text = "node n1 cpu=4\n job j topology=hard\n task a cpu=1";
    let mut world = World::new(&conf(ALL_ACTIONS, "gang | predicates"), text);
    let hyper_node =
        |name: &str| fixture::events_of(&format!("hypernode {name} node=n1")).remove(0);
    let applied = || hyper_node("h");
    let deleted = || ClusterEvent::HyperNodeDeleted { name: "h".into() };
    let listed = |is_complete| ClusterEvent::HyperNodesListed { is_complete };
    let asks = "Remove networkTopology to place the pods without. PodGroup default/j asks for a \
        HyperNode of tier 1 at most (mode hard).";
    let not_ready = "hyperNodes are not ready";
    let lost = "hyperNodes cannot be read any more; the scheduler's log says why";
    let no_plugin = "no plugin places by HyperNodes; network-topology-aware does";
    // The first list has not come; the second HyperNode changes nothing.
    let steps = [
        (vec![applied()], Some(not_ready)),
        (vec![deleted(), listed(true)], Some("no HyperNode exists")),
        (vec![applied()], Some(no_plugin)),
        (vec![hyper_node("i")], None),
        // They could be read and cannot any more; then again, and no more a second time.
        (vec![deleted(), listed(false)], Some(lost)),
        (vec![listed(true)], Some(no_plugin)),
        (vec![listed(false)], Some(lost)),
    ];
    for (events, says) in steps {
        events.into_iter().for_each(|event| world.send(event));
        let cycle = world.cycle();
        assert_eq!(cycle.decisions(), "");
        let message = message(&world, WaitCause::Topology, "j-a");
        match says {
            Some(says) => assert_eq!(message, format!("network topology: {says}. {asks}")),
            None => {
                assert_eq!(cycle.only(&["pod", "group"]), "");
                assert!(!cycle.only(&["event"]).contains("event PodGroup"), "{}", cycle.all());
            }
        }
    }
}

#[test]
fn a_group_may_come_after_its_pods() {
    let mut world = World::new(&conf(ALL_ACTIONS, "gang | predicates"), "node n1 cpu=4");
    world.add("job j\n task a cpu=1");
    world.delete_group("j");
    world.add("pod p cpu=1");
    let now_micros = world.now_micros();
    for pod in ["j-a", "p"] {
        world.edit(pod, |pod| pod.created_micros = now_micros);
    }
    assert_eq!(world.cycle().only(&["pod"]), "");
    world.tick(1);
    assert_eq!(world.cycle().only(&["pod"]), "");
    world.tick(1);
    let reported = world.cycle().only(&["pod"]);
    assert_eq!(reported.lines().count(), 2, "no event was needed: {reported}");
    assert_eq!(world.cycle().only(&["pod"]), "");
    world.add("job j");
    assert_eq!(world.cycle().decisions(), "bind j-a n1");
}
