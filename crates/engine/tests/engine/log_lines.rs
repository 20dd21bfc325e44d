//! The log lines that operators rely on (actions.md 10.5), of the actions that are built.

use crate::support::*;

/// What is logged while the actions run on the cluster of the text.
fn logged(actions: &str, tiers: &str, text: &str) -> Vec<String> {
    let mut world = World::new(&conf(actions, tiers), text);
    log_of(|| {
        world.cycle();
    })
}

#[test]
fn log__actions_begin_and_end() {
    assert_eq!(
        logged("enqueue, allocate, backfill", "gang", ""),
        [
            "5 Enter Enqueue ...",
            "5 Leaving Enqueue ...",
            "5 Enter Allocate ...",
            "5 Leaving Allocate ...",
            "5 Enter Backfill ...",
            "5 Leaving Backfill ...",
        ]
    );
}

#[test]
fn log__commit_and_discard() {
    let text = "node n1 cpu=2
        job fits created=0
          task a cpu=1
        job large min=2 created=1
          task a cpu=1
          task b cpu=9";
    assert_eq!(
        logged("allocate", "gang predicates", text),
        [
            "5 Enter Allocate ...",
            "3 Committing operations ...",
            "3 Discarding operations ...",
            "5 Leaving Allocate ...",
        ]
    );
}

#[test]
fn log__jobs_that_are_skipped() {
    let text = "job pending minres.cpu=1 pending
        job invalid min=2
          task a cpu=1";
    let lines = logged("enqueue, allocate, backfill", "gang proportion", text);
    let not_valid = "NotEnoughTasks: Not enough valid tasks for gang-scheduling, valid: 1, min: 2";
    for action in ["allocate", "backfill"] {
        let skip = |job: &str, reason: &str| {
            format!("4 Job <default/{job}> Queue <default> skip {action}, reason: {reason}")
        };
        for line in [skip("invalid", not_valid), skip("pending", "job status is pending")] {
            assert!(lines.contains(&line), "{line}\n{lines:#?}");
        }
    }
}

#[test]
fn log__queue_without_room() {
    let text = "node n1 cpu=4
        queue q cap.cpu=1 cap.pods=1
        job r queue=q
          task a cpu=1 @n1 running
        job j queue=q
          task a cpu=1";
    let lines = logged("allocate", "gang proportion{overused} predicates", text);
    assert_eq!(lines[1], "3 Queue <q> is overused, ignore it.");
    let lines = logged("allocate", "gang proportion{allocatable} predicates", text);
    assert_eq!(lines[1], "3 Queue <q> is overused when considering task <j-a>, ignore it.");
}

#[test]
fn log__missing_queue() {
    let lines = logged("enqueue", "gang", "job j queue=none pending");
    assert_eq!(lines[2..], ["error Failed to find Queue <none> for Job <default/j>"]);
}
