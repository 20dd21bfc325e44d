//! Claims and nominations (actions.md 2.11, 4.1, A15, A16), as far as they go without an evicting
//! action: a restarted scheduler finds them in `nominatedNodeName`.

use vc_framework::{EvictReason, Room, Session};
use vc_model::TaskStatus;

use crate::support::*;

/// A victim leaves n1; the room is meant for `waiting`, and `first` comes before it in job order.
const ROOM_IS_BEING_MADE: &str = "node n1 cpu=2
    job victim
      task v cpu=2 @n1 running deleting
    job first created=0
      task a cpu=2
    job waiting created=1
      task a cpu=2 nominated=n1";

fn config() -> vc_conf::Config {
    conf("enqueue, allocate, backfill", "priority gang conformance | drf predicates nodeorder")
}

#[test]
fn cycle__restart() {
    let mut world = World::new(&config(), ROOM_IS_BEING_MADE);
    for _ in 0..3 {
        let cycle = world.cycle();
        assert_eq!(cycle.decisions(), "pipeline waiting-a n1");
        assert!(!cycle.all().contains("nominated="), "{}", cycle.all());
    }
    world.restart(&config());
    assert_eq!(world.cycle().decisions(), "pipeline waiting-a n1");
    world.kubelets();
    assert_eq!(world.cycle().decisions(), "bind waiting-a n1");
}

#[test]
fn cycle__restart_says_what_the_job_waits_for() {
    let group = World::new(&config(), ROOM_IS_BEING_MADE).cycle().only(&["group"]);
    let reported = "1 Pipelined, 1 minAvailable. Origin reason is: waiting for terminating victims: \
        1 on n1\"";
    assert!(group.contains(reported), "{group}");
}

#[test]
fn cycle__claim_without_first_turn() {
    let mut off = config();
    let text = "actions: \"allocate\"
tiers:
- plugins:
  - name: gang
configurations:
- name: allocate
  arguments: {claimFirst: false}
";
    let loaded = vc_conf::parse("test.conf", text, &vc_engine::KNOWN).expect("it is valid");
    off.configurations = loaded.config.configurations;
    let mut world = World::new(&off, ROOM_IS_BEING_MADE);
    assert_eq!(world.cycle().decisions(), "pipeline first-a n1");
    // A2: without the key the default is in force again.
    world.configure(&config());
    assert_eq!(world.cycle().decisions(), "pipeline waiting-a n1");
}

#[test]
fn cycle__claim_is_tried_on_its_node_only_and_then_ends() {
    // n1 has room for others only; the job goes elsewhere in the regular pass of the same cycle.
    let text = "node n1 cpu=1
        node n2 cpu=2
        job waiting
          task a cpu=2 nominated=n1";
    let mut world = World::new(&config(), text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind waiting-a n2");
    assert_eq!(cycle.only(&["pod"]), "pod waiting-a nominated=-");
    assert_eq!(world.pod("waiting-a").nominated_node, None);
}

#[test]
fn cycle__claim_that_finds_no_room_ends() {
    let text = "node n1 cpu=1
        job waiting
          task a cpu=2 nominated=n1";
    let mut world = World::new(&config(), text);
    let reported = "pod waiting-a Unschedulable \"0/1 nodes are unavailable: 1 Insufficient cpu. It fits \
        on no node even when empty: requests 2 cpu, largest node 1.\"";
    assert_eq!(world.cycle().only(&["pod"]), format!("{reported} nominated=-"));
    assert_eq!(world.cycle().only(&["pod"]), "");
}

#[test]
fn cycle__claim_ends_with_a_queue_that_is_overused() {
    let config = conf("allocate", "gang proportion{overused} predicates");
    let text = "node n1 cpu=2
        queue q cap.cpu=1 cap.pods=1
        job r queue=q
          task a cpu=1 @n1 running
        job waiting queue=q
          task a cpu=1 nominated=n1";
    let reported = "pod waiting-a Unschedulable \"queue q is overused\" nominated=-";
    assert_eq!(World::new(&config, text).cycle().only(&["pod"]), reported);
}

#[test]
fn cycle__node_lost() {
    let mut world = World::new(&config(), ROOM_IS_BEING_MADE);
    world.cycle();
    world.delete_node("n1");
    world.add("node n2 cpu=1");
    let reported = world.cycle().only(&["pod"]);
    let expected = "pod waiting-a Unschedulable \"0/1 nodes are unavailable: 1 Insufficient cpu. It \
        fits on no node even when empty: requests 2 cpu, largest node 1.\" nominated=-";
    assert!(reported.contains(expected), "{reported}");
    assert_eq!(world.pod("waiting-a").nominated_node, None);
}

#[test]
fn cycle__claim_of_a_gang_is_all_or_nothing() {
    // One planned node is full, so the claim pass gives back what it had placed.
    let text = "node n1 cpu=1
        node n2 cpu=1
        job other
          task a cpu=1 @n2 running
        job first created=0
          task a cpu=1
        job gang min=2 created=1
          task a cpu=1 nominated=n1
          task b cpu=1 nominated=n2";
    let cycle = World::new(&config(), text).cycle();
    assert_eq!(cycle.decisions(), "bind first-a n1");
    let reported = cycle.only(&["pod"]);
    assert_eq!(reported.matches("nominated=-").count(), 2, "{reported}");
}

#[test]
fn cycle__claim_leaves_the_rest_of_a_ready_job_to_the_regular_pass() {
    let text = "node n1 cpu=1
        node n2 cpu=2
        job first created=0
          task a cpu=1 x2 selector.none=none
        job gang min=1 created=1
          task a cpu=1 nominated=n1
          task b cpu=1";
    let decisions = World::new(&config(), text).cycle().decisions();
    assert_eq!(decisions, "bind gang-a n1\nbind gang-b n2");
}

#[test]
fn cycle__restart_keeps_the_room_of_a_ready_job() {
    // The victim of b has left before anybody else reads the objects; b is beyond the minimum.
    let text = "node n1 cpu=1
        node n2 cpu=1
        job first created=0
          task a cpu=1
        job waiting min=1 created=1
          task a cpu=1 @n2 running
          task b cpu=1 nominated=n1";
    let mut world = World::new(&config(), text);
    assert_eq!(world.cycle().decisions(), "bind waiting-b n1");
    // A nomination whose node is full is worth nothing.
    let full = text.replace("node n1 cpu=1", "node n1 cpu=0").replace("task a cpu=1\n", "\n");
    let reported = World::new(&config(), &full).cycle().only(&["pod"]);
    assert!(reported.ends_with(" nominated=-"), "{reported}");
}

#[test]
fn cycle__claim_that_waits_takes_no_more() {
    let text = "node n1 cpu=1
        node n2 cpu=1
        job victim
          task v cpu=1 @n1 running deleting
        job waiting min=1
          task a cpu=1 nominated=n1
          task b cpu=1";
    assert_eq!(World::new(&config(), text).cycle().decisions(), "pipeline waiting-a n1");
}

fn preempt(session: &mut Session<'_>, victim: &str, preemptor: &str, on: &str) {
    let (victim, preemptor) = (task(session, victim), task(session, preemptor));
    let node = node(session, on);
    let mut statement = session.statement();
    let reason = EvictReason::Preempt;
    statement.evict(victim, reason, Some(preemptor)).expect("it runs");
    statement.pipeline(preemptor, node, Room::Evicted).expect("it waits");
    statement.commit();
}

#[test]
fn cycle__claim_lasts_while_its_victims_do() {
    let text = "node n1 cpu=2
        node n2 cpu=1
        job victim
          task v cpu=2 @n1 running
        job waiting
          task a cpu=2";
    let mut stage = Stage::new(&config(), Vec::new(), text);
    stage.session(|session| preempt(session, "victim-v", "waiting-a", "n1"));
    let waiting = stage.cluster.tasks[task(&stage.cluster, "waiting-a")].job.expect("it has one");
    let claim =
        stage.eviction_holds.of(&stage.cluster, waiting).expect("the eviction was committed");
    assert_eq!(
        claim.victims.iter().map(|uid| &**uid).collect::<Vec<_>>(),
        ["uid-default-victim-v"]
    );
    // The node is taken by somebody else: the claim cannot be served, but the victim is still
    // there.
    stage.session(|session| {
        let (waiting_task, n1) = (task(session, "waiting-a"), node(session, "n1"));
        assert_eq!(session.tasks[waiting_task].status, TaskStatus::Pending);
        let mut statement = session.statement();
        statement.pipeline(waiting_task, n1, Room::Releasing).expect("it waits");
        statement.discard();
        session.end_eviction_hold(waiting);
    });
    assert!(stage.eviction_holds.of(&stage.cluster, waiting).is_some());
}

#[test]
fn cycle__no_nomination_without_a_commit() {
    // A15: a discarded statement leaves neither claim nor nomination.
    let text = "node n1 cpu=1
        job victim
          task v cpu=1 @n1 running
        job waiting
          task a cpu=1";
    let mut stage = Stage::new(&config(), Vec::new(), text);
    let outbox = stage.session(|session| {
        let (victim, waiting) = (task(session, "victim-v"), task(session, "waiting-a"));
        let n1 = node(session, "n1");
        let mut statement = session.statement();
        statement.evict(victim, EvictReason::Preempt, Some(waiting)).expect("it runs");
        statement.pipeline(waiting, n1, Room::Evicted).expect("it waits");
        statement.discard();
        assert_eq!(session.tasks[victim].status, TaskStatus::Running);
    });
    assert_eq!(outbox.effects, []);
    let waiting = stage.cluster.tasks[task(&stage.cluster, "waiting-a")].job.expect("it has one");
    assert!(stage.eviction_holds.of(&stage.cluster, waiting).is_none());
}
