//! Cases 77-80 of plugins-jobs-queues.md: quota that capacity keeps for pods whose queue allocation
//! gate was lifted.

use vc_framework::Session;
use vc_model::{Cluster, TaskStatus, fixture};
use vc_resource::Dim;

use crate::support::{allocatable, allocate, enqueueable, evict, in_session_of, pipeline, task};

const OURS: &str = "annotation.scheduling.volcano.sh/queue-allocation-gate=true";

fn cluster(text: &str) -> Cluster {
    let mut cluster = fixture::cluster(&text.replace("OURS", OURS));
    cluster.settings.queue_gate_admission = true;
    cluster
}

fn full() -> Result<(), Vec<Dim>> {
    Err(vec![Dim::CPU])
}

fn lift(session: &mut Session<'_>, path: &str) {
    let task = task(session, path);
    session.remove_gate(task);
}

const CASE_77: &str = "node n cpu=8\n queue q cap.cpu=1
    job j queue=q min=0\n task a cpu=1 OURS gate=queue
        task b cpu=1 OURS gate=queue\n task c cpu=1";

#[test]
fn jobs_77_a_lifted_gate_keeps_its_quota() {
    in_session_of(cluster(CASE_77), "capacity", 0, |session| {
        assert_eq!(allocatable(session, "j/b"), Ok(()));
        lift(session, "j/a");
        assert_eq!(allocatable(session, "j/a"), Ok(()), "it does not stand in its own way");
        assert_eq!(allocatable(session, "j/b"), full());
        assert_eq!(allocatable(session, "j/c"), full());
    });
}

#[test]
fn jobs_77_later_sessions_read_it_off_the_pod() {
    // The gate is gone and the pod has no place yet; or the removal was sent and is not seen.
    let without = CASE_77.replacen(" gate=queue", "", 1);
    let mut underway = cluster(CASE_77);
    let first = fixture::task(&underway, "j/a");
    underway.tasks[first].ungating = true;
    for cluster in [cluster(&without), underway] {
        in_session_of(cluster, "capacity", 0, |session| {
            assert_eq!(allocatable(session, "j/a"), Ok(()));
            assert_eq!(allocatable(session, "j/b"), full());
            let first = task(session, "j/a");
            pipeline(session, first, "n");
            assert_eq!(allocatable(session, "j/b"), full(), "it is used now");
        });
    }
}

#[test]
fn jobs_77_a_placement_that_is_undone_keeps_the_quota() {
    let text = CASE_77.replacen(" gate=queue", "", 1).replace("cap.cpu=1", "cap.cpu=2");
    in_session_of(cluster(&text), "capacity", 0, |session| {
        let (first, node) = (task(session, "j/a"), fixture::node(session, "n"));
        let mut statement = session.statement();
        statement.allocate(first, node).expect("it is pending");
        statement.discard();
        assert_eq!(allocatable(session, "j/b"), Ok(()));
        let third = task(session, "j/c");
        allocate(session, third, "n");
        assert_eq!(allocatable(session, "j/b"), full());
        assert_eq!(allocatable(session, "j/a"), Ok(()));
    });
}

#[test]
fn jobs_77_without_the_feature_nothing_is_kept() {
    let mut cluster = cluster(&CASE_77.replacen(" gate=queue", "", 1));
    cluster.settings.queue_gate_admission = false;
    in_session_of(cluster, "capacity", 0, |session| {
        lift(session, "j/b");
        assert_eq!(allocatable(session, "j/c"), Ok(()));
    });
}

#[test]
fn jobs_78_siblings_cannot_reserve_their_parent_twice() {
    let text = "node n cpu=8\n queue root\n queue p cap.cpu=2
        queue a parent=p cap.cpu=2\n queue b parent=p cap.cpu=2
        job a queue=a\n task t cpu=2 OURS gate=queue
        job b queue=b\n task t cpu=2 OURS gate=queue";
    in_session_of(cluster(text), "capacity +enableHierarchy", 0, |session| {
        lift(session, "a/t");
        assert_eq!(allocatable(session, "b/t"), full());
    });
}

#[test]
fn jobs_79_an_evicted_pod_frees_its_quota() {
    let text = "node n cpu=8\n queue q cap.cpu=1
        job v queue=q\n task t cpu=1 OURS @n running\n job p queue=q\n task t cpu=1";
    in_session_of(cluster(text), "capacity", 0, |session| {
        assert_eq!(allocatable(session, "p/t"), full());
        let victim = task(session, "v/t");
        evict(session, &[victim]);
        assert_eq!(session.tasks[victim].status, TaskStatus::Releasing);
        assert_eq!(allocatable(session, "p/t"), Ok(()));
    });
}

#[test]
fn jobs_80_pods_with_further_gates_hold_nothing_back() {
    let text = "node n cpu=8\n queue q cap.cpu=4
        job j queue=q min=0 inqueue minres.cpu=3
            task both cpu=2 OURS gate=queue gate=foreign\n task ours cpu=1 OURS gate=queue
        job fits queue=q minres.cpu=3\n job over queue=q minres.cpu=3001m";
    in_session_of(cluster(text), "capacity", 0, |session| {
        lift(session, "j/both");
        let cpu = ["fits", "over"].map(|name| enqueueable(session, name).is_ok());
        assert_eq!(cpu, [true, false]);
        assert!(session.outcome.out.effects.is_empty(), "{:?}", session.outcome.out.effects);
        // Nothing is kept for it either.
        let ours = task(session, "j/ours");
        assert!(!session.tasks[ours].ungating);
    });
}
