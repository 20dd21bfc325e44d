//! actions.md "backfill".

use vc_conf::Config;
use vc_framework::{EvictReason, Plugin, PluginEntry, Points, Report, Room, Session, SessionView};
use vc_model::{NodeId, TaskId, TaskStatus};

use crate::support::*;

fn config() -> Config {
    conf("enqueue, allocate, backfill", "priority gang | drf predicates proportion nodeorder")
}

fn check(text: &str, decisions: &str) {
    assert_eq!(decide(&config(), text), decisions, "{text}");
}

/// Binds that the action `backfill` makes after `before` was done to the session.
fn backfilled(stage: &mut Stage, before: impl FnOnce(&mut Session<'_>)) -> String {
    let outbox = stage.session(|session| {
        before(session);
        run(session, "backfill");
    });
    lines(&outbox.effects, &Report::default()).join("\n")
}

fn pipeline(session: &mut Session<'_>, pod: &str, on: &str) {
    let (task, node) = (task(session, pod), node(session, on));
    let mut statement = session.statement();
    statement.pipeline(task, node, Room::Releasing).expect("the pod is pending");
    statement.keep();
}

fn allocate(session: &mut Session<'_>, pod: &str, on: &str) {
    let (task, node) = (task(session, pod), node(session, on));
    let mut statement = session.statement();
    statement.allocate(task, node).expect("the pod is pending");
    statement.keep();
}

#[test]
fn backfill__order() {
    let text = "node n1 cpu=4 pods=20
        job pg1 priority=1
          task a priority=1
          task b priority=2
          task c priority=3
          task d priority=4
          task busy cpu=1 priority=5
        job pg2 priority=2
          task a priority=1
          task b priority=2
          task c priority=3
          task d priority=4";
    let mut stage = Stage::new(&config(), Vec::new(), text);
    let done = backfilled(&mut stage, |session| {
        for pod in ["pg1-b", "pg1-d", "pg2-a", "pg2-c"] {
            pipeline(session, pod, "n1");
        }
    });
    let order = ["pg2-d", "pg2-c", "pg2-b", "pg2-a", "pg1-d", "pg1-c", "pg1-b", "pg1-a"];
    assert_eq!(done, order.map(|pod| format!("bind {pod} n1")).join("\n"));
}

#[test]
fn backfill__continue() {
    check(
        "node n1 cpu=1
         job j
           task a priority=9 selector.zone=none
           task b priority=2
           task c priority=1",
        "bind j-b n1\nbind j-c n1",
    );
}

#[test]
fn backfill__gang_with_best_effort() {
    let text = |selector: &str| {
        format!(
            "node n1 cpu=1
             job j min=2
               task a cpu=1
               task b {selector}"
        )
    };
    check(&text(""), "bind j-a n1\nbind j-b n1");
    check(&text("selector.zone=none"), "bind j-a n1");
}

#[test]
fn backfill__gang_completion() {
    let text = "node n1 cpu=2
        job j min=2
          task a cpu=1
          task b";
    let mut stage = Stage::new(&config(), Vec::new(), text);
    let done = backfilled(&mut stage, |session| {
        allocate(session, "j-a", "n1");
        pipeline(session, "j-b", "n1");
    });
    assert_eq!(done, "bind j-a n1\nbind j-b n1");
}

#[test]
fn backfill__not_ready() {
    let text = "node n1 cpu=2
        job gone
          task v cpu=1 @n1 running deleting
        job j min=3
          task a cpu=1
          task b cpu=1
          task c";
    let cycle = World::new(&config(), text).cycle();
    assert_eq!(cycle.decisions(), "pipeline j-b n1");
    let reported = cycle.only(&["pod"]);
    assert!(reported.contains("pod j-c Schedulable \"Pod default/j-c can possibly"), "{reported}");
}

#[test]
fn backfill__gated() {
    check(
        "node n1 cpu=1
         job j
           task a gate=example.com/later
           task b",
        "bind j-b n1",
    );
}

#[test]
fn backfill__not_admitted_or_not_valid() {
    check(
        "node n1 cpu=1
         queue q cap.cpu=1
         job pending queue=q minres.cpu=4 pending
           task a
         job invalid min=2
           task a
         job lost queue=none
           task a",
        "",
    );
}

#[test]
fn backfill__pipelined_stays() {
    let text = "node n1 cpu=4 pods=1
        job victim
          task v cpu=1 @n1 running
        job other
          task a cpu=1
        job j
          task a";
    let mut stage = Stage::new(&config(), Vec::new(), text);
    let outbox = stage.session(|session| {
        let (victim, waiting, n1) =
            (task(session, "victim-v"), task(session, "j-a"), node(session, "n1"));
        let mut statement = session.statement();
        statement.evict(victim, EvictReason::Preempt, Some(waiting)).expect("it runs");
        statement.pipeline(waiting, n1, Room::Evicted).expect("it waits");
        statement.commit();
        allocate(session, "other-a", "n1");
        run(session, "backfill");
        let row = &session.tasks[waiting];
        assert_eq!((row.status, row.node), (TaskStatus::Pipelined, Some(n1)));
        let hold =
            row.job.and_then(|job| session.eviction_holds.of(session, job)).expect("it was made");
        assert_eq!(hold.planned.get(&row.uid).map(|node| &**node), Some("n1"));
        assert_eq!(session.records.fit_errors.get(waiting), None);
    });
    assert_eq!(lines(&outbox.effects, &Report::default()), ["evict victim-v preempt"]);
}

/// A scorer that fails for every node.
struct Broken;

impl Plugin for Broken {
    fn points(&self) -> Points {
        Points::NODE_ORDER
    }
    fn node_order(&self, _: SessionView<'_>, _: TaskId, _: NodeId) -> Result<f64, String> {
        Err("no score today".to_owned())
    }
}

#[test]
fn backfill__scorer_error() {
    let config = conf("backfill", "scorer gang predicates");
    let broken = PluginEntry::new("scorer", |_, _| Box::new(Broken));
    let text = "node n1 cpu=1
        node n2 cpu=1
        job j
          task a";
    let mut stage = Stage::new(&config, vec![broken], text);
    let mut done = String::new();
    let log = log_of(|| done = backfilled(&mut stage, |_| {}));
    assert_eq!(done, "bind j-a n1");
    let errors: Vec<&String> = log.iter().filter(|line| line.starts_with("error")).collect();
    assert_eq!(errors, ["error scoring failed: no score today"]);
}
