//! actions.md "allocate, flat" (TA).

use vc_conf::Config;
use vc_framework::{Plugin, PluginEntry, Points, SessionView};
use vc_model::{NodeId, Reservation, TaskId, TaskStatus};

use crate::support::*;

fn check(text: &str, decisions: &str) {
    check_with(&ta(), text, decisions);
}

fn check_with(config: &Config, text: &str, decisions: &str) {
    assert_eq!(decide(config, text), decisions, "{text}");
}

/// TA without the queue limit.
fn unlimited() -> Config {
    conf("enqueue, allocate", &TA.replace(" allocatable}", "}"))
}

#[test]
fn allocate__role_selector() {
    check(
        "node n1 cpu=2 nodeRole=worker
         job pg min=1
           task p1 cpu=1 role=master selector.nodeRole=master
           task p2 cpu=1 role=worker selector.nodeRole=worker",
        "bind pg-p2 n1",
    );
}

#[test]
fn allocate__role_min() {
    check(
        "node n1 cpu=1 nodeRole=master
         node n2 cpu=1 nodeRole=worker
         job pg min=2 role.master=1 role.worker=1
           task p0 cpu=1 role=master selector.nodeRole=master
           task p1 cpu=1 role=master selector.nodeRole=master
           task p2 cpu=1 role=worker selector.nodeRole=worker
           task p3 cpu=1 role=worker selector.nodeRole=worker",
        "bind pg-p0 n1\nbind pg-p2 n2",
    );
}

#[test]
fn allocate__role_min_fail() {
    check(
        "node n1 cpu=1 nodeRole=master
         node n2 cpu=2 nodeRole=worker
         job pg min=2 role.master=2 role.worker=0
           task p0 cpu=1 role=master selector.nodeRole=master
           task p1 cpu=1 role=master selector.nodeRole=master
           task p2 cpu=1 role=worker selector.nodeRole=worker
           task p3 cpu=1 role=worker selector.nodeRole=worker",
        "",
    );
}

#[test]
fn allocate__min_zero() {
    check(
        "node n1 cpu=2
         job pg min=0
           task p cpu=1 x2",
        "bind pg-p-0 n1\nbind pg-p-1 n1",
    );
}

#[test]
fn allocate__two_queues() {
    check(
        "node n1 cpu=2
         queue c1
         queue c2
         job a queue=c1 min=0
           task p cpu=1 x2
         job b queue=c2 min=0
           task p cpu=1 x2",
        "bind a-p-0 n1\nbind b-p-0 n1",
    );
}

#[test]
fn allocate__high_queue_does_not_block() {
    check(
        "node n1 cpu=2
         queue c1 priority=10
         queue c2
         job a queue=c1
           task p cpu=3
         job b queue=c2
           task p cpu=1",
        "bind b-p n1",
    );
}

#[test]
fn allocate__fair_share() {
    check_with(
        &unlimited(),
        "node n1 cpu=5
         queue q1
         queue q2
         job r1 queue=q1
           task p cpu=1 @n1 running
         job w1 queue=q1
           task p cpu=2
         job w2 queue=q2
           task p cpu=3",
        "bind w2-p n1",
    );
}

#[test]
fn allocate__repush() {
    check_with(
        &unlimited(),
        "node n1 cpu=5
         queue q1
         queue q2
         job r1 queue=q1
           task p cpu=1 @n1 running
         job w1 queue=q1
           task large cpu=2
         job w2 queue=q2
           task a-large cpu=2
           task b-small cpu=1",
        "bind w2-a-large n1\nbind w1-large n1",
    );
}

#[test]
fn allocate__empty_job_no_stop() {
    check(
        "node n1 cpu=2
         job a created=0
           task p cpu=1 @n1 running
         job b created=1
           task p cpu=1",
        "bind b-p n1",
    );
}

#[test]
fn allocate__interleave() {
    check(
        "node n1 cpu=4
         job a min=1
           task p cpu=1 x4
         job b min=1
           task p cpu=1 x4",
        "bind a-p-0 n1\nbind b-p-0 n1\nbind a-p-1 n1\nbind b-p-1 n1",
    );
}

#[test]
fn allocate__pipelined_kept() {
    let mut world = World::new(
        &unlimited(),
        "node n1 cpu=2
         job gone
           task v cpu=1 @n1 running deleting
         job gang min=2 created=0
           task p cpu=1 x2
         job late created=1
           task p cpu=1",
    );
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "pipeline gang-p-1 n1");
    assert_eq!(
        cycle.only(&["pod"]),
        "pod gang-p-0 Schedulable \"Pod default/gang-p-0 can possibly be assigned to n1, once \
         minAvailable is satisfied\"\n\
         pod gang-p-1 Unschedulable \"Pod default/gang-p-1 can possibly be assigned to n1, once \
         resource is released and minAvailable is satisfied\"\n\
         pod late-p Unschedulable \"0/1 nodes are unavailable: 1 Insufficient cpu. Requests 1 cpu, \
         most free on a node 0.\""
    );
    // Nothing holds afterwards: the gang goes, the later job has the room.
    for pod in ["gang-p-0", "gang-p-1"] {
        assert_eq!(world.pod(pod).nominated_node, None);
        world.delete_pod(pod);
    }
    assert_eq!(world.cycle().decisions(), "bind late-p n1");
}

#[test]
fn allocate__pipelined_kept_gives_the_gang_its_place_when_the_room_is_there() {
    let mut world = World::new(
        &ta(),
        "node n1 cpu=2
         job gone
           task v cpu=1 @n1 running deleting
         job gang min=2
           task p cpu=1 x2",
    );
    world.cycle();
    world.kubelets();
    assert_eq!(world.cycle().decisions(), "bind gang-p-0 n1\nbind gang-p-1 n1");
}

#[test]
fn allocate__idle_before_releasing() {
    let text = |n1: &str| {
        format!(
            "node n1 cpu=1 zone=best
             node n2 cpu=1
             job v
               task a cpu={n1} @n1 running deleting
             job j
               task p cpu=1 prefer.zone=best"
        )
    };
    check(&text("1"), "bind j-p n2");
    // The same scores with both nodes idle.
    check(&text("0"), "bind j-p n1");
}

#[test]
fn allocate__no_room_in_queue() {
    let mut world = World::new(
        &ta(),
        "node n1 cpu=10
         queue q cap.cpu=1
         job r queue=q
           task p cpu=1 @n1 running
         job j queue=q
           task p cpu=1",
    );
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    assert_eq!(
        cycle.only(&["pod"]),
        "pod j-p Unschedulable \"queue q has no room: insufficient cpu. Limit of queue q: 1 cpu \
         (deserved), used 1, asked 1.\""
    );
}

#[test]
fn allocate__no_room_in_queue_that_is_closed() {
    let text = "node n1 cpu=10
        queue q state=Closed
        job j queue=q
          task p cpu=1";
    let cycle = World::new(&ta(), text).cycle();
    assert_eq!(cycle.only(&["pod"]), "pod j-p Unschedulable \"queue q is Closed\"");
    let group = cycle.only(&["group"]);
    assert!(group.contains("Origin reason is: queue q is Closed"), "{group}");
}

#[test]
fn allocate__gated() {
    let mut world = World::new(
        &ta(),
        "node n1 cpu=4
         job gang min=2
           task a cpu=1 gate=example.com/later
           task b cpu=1
         job free min=1
           task a cpu=1 gate=example.com/later
           task b cpu=1",
    );
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind free-b n1");
    let reported: Vec<&str> =
        cycle.lines.iter().filter_map(|line| line.strip_prefix("pod ")).collect();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].starts_with("gang-b "), "{reported:?}");
    world.edit("gang-a", |pod| pod.scheduling_gates.clear());
    assert_eq!(world.cycle().decisions(), "bind gang-a n1\nbind gang-b n1");
}

#[test]
fn allocate__nominated_first() {
    let text = |n1: u32| {
        format!(
            "node n1 cpu={n1}
             node n2 cpu=4 zone=best
             job j
               task p cpu=2 prefer.zone=best nominated=n1"
        )
    };
    let mut world = World::new(&ta(), &text(2));
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind j-p n1");
    assert_eq!(cycle.only(&["pod"]), "");
    let mut world = World::new(&ta(), &text(1));
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind j-p n2");
    assert_eq!(cycle.only(&["pod"]), "pod j-p nominated=-");
}

#[test]
fn allocate__fit_text() {
    let text = "node n1 cpu=1
        node n2 cpu=1
        node n3 cpu=8 taint=k:NoSchedule
        job j min=1
          task p cpu=2 role=w x2";
    let why = "0/3 nodes are unavailable: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. It \
        fits on no node even when empty: requests 2 cpu, largest node 1.";
    assert_eq!(
        World::new(&ta(), text).cycle().only(&["pod"]),
        format!("pod j-p-0 Unschedulable {why:?}\npod j-p-1 Unschedulable {why:?}")
    );
}

#[test]
fn allocate__same_role_different_request() {
    check(
        "node n1 cpu=2
         job j min=1
           task a cpu=10 role=w
           task b cpu=1 role=w",
        "bind j-b n1",
    );
}

/// The continue rule of 4.6: what else is tried after a task that fits nowhere.
#[test]
fn allocate__after_a_failure() {
    let roles = "task p0 cpu=9 role=m
        task p1 cpu=1 role=m
        task p2 cpu=1 role=w
        task p3 cpu=1 role=w";
    let cases = [
        ("every task is required", "job j min=2\ntask a cpu=9\ntask b cpu=1", "", ""),
        ("not every one", "job j min=1\ntask a cpu=9\ntask b cpu=1", "bind j-b n1", ""),
        (
            "the failed role is short",
            "job j min=2 role.m=2 role.w=0\ntask a cpu=1 role=m\ntask b cpu=9 role=m\n\
             task c cpu=1 role=w",
            "",
            "j-a",
        ),
        (
            "enough others, with minimums beyond the job's",
            &format!("job j min=2 role.m=2 role.w=2\n{roles}"),
            "bind j-p1 n1\nbind j-p2 n1\nbind j-p3 n1",
            "",
        ),
        (
            "too few others, with minimums beyond the job's",
            &format!("job j min=3 role.m=2 role.w=2\n{roles}"),
            "",
            "",
        ),
    ];
    for (name, job, decisions, schedulable) in cases {
        let cycle = World::new(&unlimited(), &format!("node n1 cpu=4\n{job}")).cycle();
        assert_eq!(cycle.decisions(), decisions, "{name}");
        let reported = cycle.only(&["pod"]);
        let placed: Vec<&str> = reported
            .lines()
            .filter(|line| line.contains(" Schedulable "))
            .filter_map(|line| line.split(' ').nth(1))
            .collect();
        assert_eq!(placed.join(" "), schedulable, "{name}: {reported}");
    }
}

#[test]
fn allocate__best_effort_is_not_its_business() {
    let text = "node n1 cpu=1
        job j
          task a priority=9
          task b cpu=1";
    check_with(&conf("allocate", TA), text, "bind j-b n1");
}

#[test]
fn allocate__gang_too_big() {
    check(
        "node n1 cpu=3
         job j min=4
           task p cpu=1 x4",
        "",
    );
}

#[test]
fn allocate__more_members_than_pods() {
    let text = "node n1 cpu=8
        job j min=3
          task p cpu=1 x2";
    let cycle = World::new(&ta(), text).cycle();
    assert_eq!(cycle.decisions(), "");
    let why = "pod group is not ready, 2 Pending, 3 minAvailable; Pending: 2 Unschedulable. \
        1 pod is missing: 2 of 3 exist";
    let counted = format!("Unschedulable \"3/3 tasks in gang unschedulable: {why}\"");
    assert_eq!(cycle.only(&["group"]), format!("group j Inqueue {counted}"));
    assert_eq!(cycle.only(&["event"]), format!("event PodGroup j Warning {counted}"));
    let pods = ["j-p-0", "j-p-1"].map(|pod| format!("pod {pod} Unschedulable {why:?}"));
    assert_eq!(cycle.only(&["pod"]), pods.join("\n"));
}

#[test]
fn allocate__no_nodes() {
    let text = "job j
          task p cpu=1";
    let cycle = World::new(&ta(), text).cycle();
    assert_eq!(cycle.only(&["pod"]), "pod j-p Unschedulable \"0/0 nodes are unavailable\"");
}

#[test]
fn allocate__overused_queue_is_left_out() {
    let overused = TA.replace(" allocatable}", " overused}");
    let text = "node n1 cpu=4
        queue q cap.cpu=1 cap.pods=1
        job r queue=q
          task p cpu=1 @n1 running
        job j queue=q
          task p cpu=1";
    let cycle = World::new(&conf("allocate", &overused), text).cycle();
    assert_eq!(cycle.decisions(), "");
    assert_eq!(cycle.only(&["pod"]), "pod j-p Unschedulable \"queue q is overused\"");
}

#[test]
fn allocate__fifo_queue_waits_for_its_head() {
    let text = |fifo: &str| {
        format!(
            "node n1 cpu=2
             queue q {fifo}
             job a queue=q created=0
               task p cpu=4
             job b queue=q created=1
               task p cpu=1"
        )
    };
    check(&text("fifo"), "");
    check(&text(""), "bind b-p n1");
}

#[test]
fn allocate__twice_goes_on_where_the_first_stopped() {
    // A gang that was kept is not started again; what is left of the others is.
    let text = "node n1 cpu=2
        job gone
          task v cpu=1 @n1 running deleting
        job gang min=2
          task p cpu=1 x3";
    check_with(&conf("allocate, allocate", TA), text, "pipeline gang-p-1 n1");
}

/// A device that n1 turns out not to have.
struct NotOnTheFirst;

impl Plugin for NotOnTheFirst {
    fn points(&self) -> Points {
        Points::EVENT_HANDLERS
    }
    fn reserve(
        &self,
        view: SessionView<'_>,
        _: TaskId,
        node: NodeId,
        _: TaskStatus,
    ) -> Result<Option<Reservation>, String> {
        match &*view.cluster.nodes[node].name == "n1" {
            true => Err("no device is left".to_owned()),
            false => Ok(None),
        }
    }
}

/// A21: the node is left out for this task, and the next best one is taken.
#[test]
fn allocate__reserve_fails() {
    let entry = || PluginEntry::new("scorer", |_, _| Box::new(NotOnTheFirst));
    let config = conf("allocate", &format!("scorer {TA}"));
    let placed = |text: &str| {
        let mut stage = Stage::new(&config, vec![entry()], text);
        let outbox = stage.session(|session| run(session, "allocate"));
        let bind = |effect: &vc_engine::Effect| match effect {
            vc_engine::Effect::Bind { node, .. } => Some(node.to_string()),
            _ => None,
        };
        outbox.effects.iter().filter_map(bind).collect::<Vec<_>>()
    };
    let job = "\njob j min=2\n task a cpu=1\n task b cpu=1";
    assert_eq!(placed(&format!("node n1 cpu=4\nnode n2 cpu=4{job}")), ["n2", "n2"]);
    assert_eq!(placed(&format!("node n1 cpu=4\nnode n2 cpu=1{job}")), [""; 0]);
}
