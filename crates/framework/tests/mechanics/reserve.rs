//! What is promised along with a node comes and goes with it. Specification: plugins-nodes.md 1.6,
//! 2.6-2.8.

use vc_framework::{Effect, OperationRefused, Room};
use vc_model::{Cluster, fixture};

use super::support::*;

const TEXT: &str = "node n cpu=8
    job j min=2
      task a cpu=1
      task b cpu=1
    job k
      task c cpu=1";

fn promises(cluster: &Cluster) -> usize {
    assert_eq!(cluster.check(), Ok(()));
    cluster.volumes.reservations().count()
}

#[test]
fn a_refused_reservation_leaves_nothing() {
    in_session(TEXT, "a counter=yes;b reserve=fail", |session| {
        let (a, n) = (task(session, "j/a"), node(session, "n"));
        let mut statement = session.statement();
        assert_eq!(statement.allocate(a, n), Err(OperationRefused::NotReserved));
        assert_eq!(statement.pipeline(a, n, Room::Releasing), Err(OperationRefused::NotReserved));
        assert!(statement.is_empty());
        drop(statement);
        assert_eq!(counter(session), (0.0, 0.0), "no handler has heard of it");
        assert_eq!(promises(session), 0);
    });
}

#[test]
fn nodes_19_a_discarded_statement_takes_its_promises_along() {
    let mut cluster = fixture::cluster(TEXT);
    let before = format!("{:?}", cluster.volumes);
    in_session_of(&mut cluster, "a reserve=yes", |session| {
        let (a, b, n) = (task(session, "j/a"), task(session, "j/b"), node(session, "n"));
        let mut statement = session.statement();
        statement.allocate(a, n).unwrap();
        let mark = statement.mark();
        statement.pipeline(b, n, Room::Releasing).unwrap();
        assert_eq!(promises(&statement), 2);
        statement.roll_back(mark);
        assert_eq!(promises(&statement), 1);
        statement.discard();
        assert_eq!(promises(session), 0);
        // What only waits for room is promised for the session (deviation of 2.6).
        let mut statement = session.statement();
        statement.pipeline(b, n, Room::Releasing).unwrap();
        statement.keep();
        assert_eq!(promises(session), 1);
    });
    assert_eq!(format!("{:?}", cluster.volumes), before);
}

#[test]
fn a_committed_gang_is_written_and_its_binds_wait() {
    let mut cluster = fixture::cluster(TEXT);
    let (_, outbox, _) = in_session_of(&mut cluster, "a reserve=yes", |session| {
        let n = node(session, "n");
        let tasks = tasks(session, &["j/a", "j/b"]);
        let mut statement = session.statement();
        tasks.iter().for_each(|&task| statement.allocate(task, n).unwrap());
        assert!(statement.commit());
    });
    let written = outbox.effects.iter().map(|effect| match effect {
        Effect::PreBind { pod, .. } => pod.name.to_string(),
        other => panic!("{other:?}"),
    });
    assert!(written.eq(["j-a", "j-b"]));
    assert_eq!((promises(&cluster), cluster.volumes.held().count()), (2, 2));
    assert_eq!(place(&cluster, "j/a").0, vc_model::TaskStatus::Binding);
}
