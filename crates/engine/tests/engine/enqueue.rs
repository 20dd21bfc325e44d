//! actions.md "enqueue": drf{jobOrder}, proportion{queueOrder, jobEnqueued}, sla 3 min, gang.

use crate::support::*;
use vc_conf::Config;
use vc_model::PodGroupPhase::{self, Inqueue, Pending, Running};

fn legend(actions: &str) -> Config {
    conf(
        actions,
        "drf{jobOrder} proportion{queueOrder jobEnqueued} sla{* sla-waiting-time=3m} gang \
         predicates",
    )
}

/// Phases after one cycle of enqueue, and what PodGroups were told by the plugins.
fn enqueue(text: &str, jobs: &[&str]) -> (Vec<PodGroupPhase>, String) {
    let mut world = World::new(&legend("enqueue"), text);
    let cycle = world.cycle();
    let refusal = |line: &&String| line.starts_with("event") && line.contains(" Normal ");
    let reported: Vec<&str> = cycle.lines.iter().filter(refusal).map(String::as_str).collect();
    let phases = jobs.iter().map(|job| world.group(job).status.phase).collect();
    (phases, reported.join("\n"))
}

#[test]
fn enqueue__inqueue_stays() {
    let text = "node n1 cpu=4
        job j1
        job j2 running
          task a cpu=1 @n1 running";
    assert_eq!(enqueue(text, &["j1", "j2"]).0, [Inqueue, Running]);
}

#[test]
fn enqueue__no_min_resources() {
    let text = "queue c1 cap.cpu=4 cap.memory=4Gi
        queue c2 cap.cpu=4 cap.memory=4Gi
        job j1 queue=c1 pending
        job j2 queue=c2 pending";
    assert_eq!(enqueue(text, &["j1", "j2"]), (vec![Inqueue, Inqueue], String::new()));
}

#[test]
fn enqueue__no_queue() {
    let text = "job j1 queue=c1 pending
        job j2 queue=c1";
    assert_eq!(enqueue(text, &["j1", "j2"]).0, [Pending, Inqueue]);
}

#[test]
fn enqueue__too_big() {
    let text = "node n1 cpu=8 memory=8Gi
        queue c1 cap.cpu=1 cap.memory=1Gi
        job j1 queue=c1 minres.cpu=8 minres.memory=8Gi pending";
    let reported = "event PodGroup j1 Normal Unschedulable \"queue resource quota insufficient: \
        insufficient cpu, insufficient memory. Limit of queue c1: 1 cpu (spec.capability), used 0, \
        asked 8; 1Gi memory (spec.capability), used 0, asked 8Gi.\"";
    assert_eq!(enqueue(text, &["j1"]), (vec![Pending], reported.to_owned()));
}

#[test]
fn enqueue__no_blocking() {
    let text = "node n1 cpu=8
        queue c1 cap.cpu=2
        job big queue=c1 minres.cpu=4 created=0 pending
        job small queue=c1 minres.cpu=1 created=1 pending";
    assert_eq!(enqueue(text, &["big", "small"]).0, [Pending, Inqueue]);
}

#[test]
fn enqueue__order_of_queues_is_asked_after_every_job() {
    // Room for two: the queue that got one comes after the other.
    let text = "node n1 cpu=2
        queue c1
        queue c2
        job a queue=c1 minres.cpu=1 pending
        job b queue=c1 minres.cpu=1 pending
        job c queue=c2 minres.cpu=1 pending";
    let mut world = World::new(&conf("enqueue", "overcommit{* overcommit-factor=1} gang"), text);
    world.cycle();
    let phases = ["a", "b", "c"].map(|job| world.group(job).status.phase);
    // Without a plugin for the order of queues the first by name keeps its turn.
    assert_eq!(phases, [Inqueue, Inqueue, Pending]);
}

#[test]
fn enqueue__absent() {
    let text = "node n1 cpu=4
        job j1 pending
          task a cpu=1";
    let mut world = World::new(&legend("allocate"), text);
    assert_eq!(world.cycle().decisions(), "bind j1-a n1");
    assert_eq!(world.group("j1").status.phase, Inqueue);
}

#[test]
fn enqueue__refusal_is_told_again_after_thirty_seconds_only() {
    let text = "node n1 cpu=8
        queue c1 cap.cpu=1
        job j1 queue=c1 minres.cpu=8 pending";
    let mut world = World::new(&legend("enqueue"), text);
    let refused = |world: &mut World| world.cycle().all().contains(" Normal Unschedulable ");
    let mut reported = vec![refused(&mut world)];
    for seconds in [1, 28, 1, 29, 1] {
        world.tick(seconds);
        reported.push(refused(&mut world));
    }
    assert_eq!(reported, [true, false, false, true, false, true]);
}
