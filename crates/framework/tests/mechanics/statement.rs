//! Statements: operations, undo, plan and replay: core.md 6, actions.md 2.4.

use vc_framework::{EvictReason, OperationRefused, Room, SessionState, Statement};
use vc_model::{ClusterEvent, NodeId, TaskId, TaskStatus, fixture};

use super::support::{counter, idle_cpu, in_session, in_session_of, job, node, place, shown, task};
use TaskStatus::{Allocated, Bound, Pending, Pipelined, Releasing, Running};

const BED: &str = "node n1 cpu=4
     node n2 cpu=4
     job v
       task bound cpu=1 @n1 bound
       task runs cpu=2 @n1 running
     job j min=2
       task a cpu=1
       task b cpu=3
       task c cpu=1";

const COUNTER: &str = "a counter=x";
const PREEMPT: EvictReason = EvictReason::Preempt;

fn evict(statement: &mut Statement<'_, '_>, path: &str) {
    let victim = task(statement, path);
    statement.evict(victim, PREEMPT, None).unwrap();
}

fn allocate(statement: &mut Statement<'_, '_>, path: &str, name: &str) {
    let (task, node) = (task(statement, path), node(statement, name));
    statement.allocate(task, node).unwrap();
}

fn pipeline(statement: &mut Statement<'_, '_>, path: &str, name: &str, room: Room) {
    let (task, node) = (task(statement, path), node(statement, name));
    statement.pipeline(task, node, room).unwrap();
}

fn statuses(session: &SessionState<'_>) -> Vec<TaskStatus> {
    let paths = ["v/bound", "v/runs", "j/a", "j/b", "j/c"];
    paths.iter().map(|path| place(session, path).0).collect()
}

#[test]
fn core_73_an_unknown_node_or_job_is_refused() {
    let text = "node n cpu=4
         job j
           task x cpu=1
         job gone
           task y cpu=1
         pod alone cpu=1
         pod there cpu=1 @missing running";
    let mut cluster = fixture::cluster(text);
    let key = cluster.jobs[job(&cluster, "gone")].key.clone();
    cluster.apply(ClusterEvent::PodGroupDeleted { key });
    in_session_of(&mut cluster, COUNTER, |session| {
        let (n, missing) = (node(session, "n"), node(session, "missing"));
        let x = task(session, "j/x");
        let unknown_jobs = ["gone/y", "alone"].map(|path| task(session, path));
        let mut statement = session.statement();
        let room = Room::Releasing;
        assert_eq!(statement.allocate(x, missing), Err(OperationRefused::UnknownNode));
        assert_eq!(statement.pipeline(x, missing, room), Err(OperationRefused::UnknownNode));
        for task in unknown_jobs {
            assert_eq!(statement.allocate(task, n), Err(OperationRefused::UnknownJob));
            assert_eq!(statement.pipeline(task, n, room), Err(OperationRefused::UnknownJob));
        }
        assert!(statement.is_empty());
        drop(statement);
        assert_eq!(place(session, "j/x"), (Pending, None));
        assert_eq!(counter(session), (0.0, 0.0), "no handler has heard of it");
    });
}

#[test]
fn stmt__failed_op() {
    in_session(BED, COUNTER, |session| {
        let (a, n1, n2) = (task(session, "j/a"), node(session, "n1"), node(session, "n2"));
        let mut statement = session.statement();
        statement.allocate(a, n1).unwrap();
        let mark = statement.mark();
        for node in [n1, n2] {
            assert_eq!(statement.allocate(a, node), Err(OperationRefused::AlreadyPlaced));
            let pipelined = statement.pipeline(a, node, Room::Releasing);
            assert_eq!(pipelined, Err(OperationRefused::AlreadyPlaced));
        }
        assert!(statement.plan(mark).is_empty(), "no operation");
        statement.roll_back(mark);
        assert_eq!(place(&statement, "j/a"), (Allocated, Some("n1".to_owned())));
        statement.discard();
        assert_eq!(place(session, "j/a"), (Pending, None));
        assert_eq!(counter(session), (0.0, 0.0));
    });
}

#[test]
fn what_does_not_wait_is_not_placed_and_what_does_not_run_is_not_evicted() {
    let text = "node n cpu=8
         job j
           task leaving releasing
           task ended succeeded @n
           task going releasing @n
           task waits
           task lost unknown @n
         job gone
           task v @n running
         pod alone @n running";
    let mut cluster = fixture::cluster(text);
    let key = cluster.jobs[job(&cluster, "gone")].key.clone();
    cluster.apply(ClusterEvent::PodGroupDeleted { key });
    in_session_of(&mut cluster, COUNTER, |session| {
        let n = node(session, "n");
        let of = |session: &SessionState<'_>, path: &str| task(session, path);
        let leaving = of(session, "j/leaving");
        let evictions = [
            ("j/leaving", Err(OperationRefused::NotPlaced)),
            ("j/waits", Err(OperationRefused::NotPlaced)),
            ("j/ended", Err(OperationRefused::NotRunning)),
            ("j/going", Err(OperationRefused::NotRunning)),
            ("gone/v", Err(OperationRefused::UnknownJob)),
            ("alone", Err(OperationRefused::UnknownJob)),
            ("j/lost", Ok(())),
        ];
        let victims: Vec<(TaskId, _)> =
            evictions.into_iter().map(|(path, answer)| (of(session, path), answer)).collect();
        let mut statement = session.statement();
        assert_eq!(statement.allocate(leaving, n), Err(OperationRefused::NotPending));
        for (victim, answer) in victims {
            assert_eq!(statement.evict(victim, PREEMPT, None), answer);
        }
        let again = of(&statement, "j/lost");
        assert_eq!(
            statement.evict(again, PREEMPT, None),
            Err(OperationRefused::NotRunning),
            "twice"
        );
    });
}

fn evict_pipeline_allocate(statement: &mut Statement<'_, '_>) {
    evict(statement, "v/bound");
    evict(statement, "v/runs");
    pipeline(statement, "j/b", "n1", Room::Evicted);
    allocate(statement, "j/a", "n2");
}

#[test]
fn core_74_discard_restores_status_amounts_and_handlers() {
    in_session(BED, COUNTER, |session| {
        let before = statuses(session);
        let mut statement = session.statement();
        evict_pipeline_allocate(&mut statement);
        assert_eq!(statuses(&statement), [Releasing, Releasing, Allocated, Pipelined, Pending]);
        assert_eq!(counter(&statement), (0.0, 1_000.0), "two more, two less");
        assert_eq!((idle_cpu(&statement, "n1"), idle_cpu(&statement, "n2")), (1_000, 3_000));
        statement.discard();
        assert_eq!(statuses(session), before);
        assert_eq!((idle_cpu(session, "n1"), idle_cpu(session, "n2")), (1_000, 4_000));
        assert_eq!(counter(session), (0.0, 0.0));
    });
}

#[test]
fn stmt__discard() {
    in_session(BED, COUNTER, |session| {
        let amounts: Vec<_> = session.nodes.iter().map(|(_, node)| node.clone()).collect();
        let mut statement = session.statement();
        evict_pipeline_allocate(&mut statement);
        let victim = task(&statement, "v/bound");
        let n1 = node(&statement, "n1");
        assert_eq!(statement.nodes[n1].view.n_pods, 1, "evicted pods are out of the view");
        drop(statement);
        assert_eq!(session.tasks[victim].status, Bound, "not Running (A6)");
        let now: Vec<_> = session.nodes.iter().map(|(_, node)| node.clone()).collect();
        assert_eq!(now, amounts);
        assert_eq!(counter(session), (0.0, 0.0));
        assert_eq!(shown(&session.outcome.out.effects), [""; 0]);
    });
}

#[test]
fn core_75_and_stmt__merge_plans_are_appended_in_order() {
    in_session(BED, "", |session| {
        let mut statement = session.statement();
        let start = statement.mark();
        evict(&mut statement, "v/runs");
        pipeline(&mut statement, "j/b", "n1", Room::Evicted);
        let evicting = statement.plan(start);
        statement.roll_back(start);
        allocate(&mut statement, "j/a", "n2");
        let mut merged = statement.plan(start);
        statement.roll_back(start);
        assert!(statement.is_empty(), "rolling back an attempt leaves nothing of it");
        merged.append(evicting);
        merged.append(Default::default());
        statement.replay(&merged).unwrap();
        statement.commit();
        assert_eq!(shown(&session.outcome.out.effects), ["bind j-a n2", "evict v-runs preempt"]);
        assert_eq!(place(session, "j/b"), (Pipelined, Some("n1".to_owned())));
    });
}

#[test]
fn core_76_and_stmt__recover_replay_keeps_order_and_flags() {
    in_session(BED, COUNTER, |session| {
        let b = task(session, "j/b");
        let mut statement = session.statement();
        let start = statement.mark();
        evict_pipeline_allocate(&mut statement);
        let plan = statement.plan(start);
        statement.roll_back(start);
        assert_eq!(counter(&statement), (0.0, 0.0));
        statement.replay(&plan).unwrap();
        assert_eq!(statement.plan(start), plan);
        statement.commit();
        let claim = session.eviction_holds.of(session, session.tasks[b].job.unwrap()).unwrap();
        assert_eq!(claim.planned.get(&session.tasks[b].uid).map(|node| &**node), Some("n1"));
    });
}

#[test]
fn stmt__recover_that_fails_half_way_changes_nothing() {
    // A8: a statement that cannot be recovered is discarded as a whole.
    in_session(BED, COUNTER, |session| {
        let before = statuses(session);
        let mut statement = session.statement();
        let start = statement.mark();
        evict_pipeline_allocate(&mut statement);
        let plan = statement.plan(start);
        statement.roll_back(start);
        allocate(&mut statement, "j/a", "n1");
        let counted = counter(&statement);
        assert_eq!(statement.replay(&plan), Err(OperationRefused::AlreadyPlaced));
        assert_eq!(counter(&statement), counted);
        assert_eq!(place(&statement, "v/runs").0, Running, "what was done half-way is undone");
        statement.discard();
        assert_eq!(statuses(session), before);
    });
}

#[test]
fn marks_of_another_attempt_reach_nothing() {
    in_session(BED, "", |session| {
        let mut statement = session.statement();
        allocate(&mut statement, "j/a", "n2");
        let late = statement.mark();
        statement.discard();
        let mut statement = session.statement();
        assert!(statement.plan(late).is_empty());
        statement.roll_back(late);
        assert!(statement.is_empty());
    });
}

#[test]
fn what_is_kept_holds_until_the_session_ends() {
    let mut cluster = fixture::cluster(BED);
    let ((), outbox, _) = in_session_of(&mut cluster, COUNTER, |session| {
        let mut statement = session.statement();
        allocate(&mut statement, "j/a", "n2");
        pipeline(&mut statement, "j/b", "n1", Room::Releasing);
        statement.keep();
        assert_eq!(place(session, "j/a"), (Allocated, Some("n2".to_owned())));
        assert_eq!(counter(session), (2.0, 4_000.0));
    });
    assert_eq!(shown(&outbox.effects), [""; 0]);
    assert_eq!(place(&cluster, "j/a"), (Pending, None));
    assert_eq!(place(&cluster, "j/b"), (Pending, None));
}

#[test]
fn what_was_committed_outlives_the_session_as_the_edge_will_do_it() {
    let mut cluster = fixture::cluster(BED);
    let ((), outbox, _) = in_session_of(&mut cluster, COUNTER, |session| {
        let victim = task(session, "v/runs");
        let (b, n1): (TaskId, NodeId) = (task(session, "j/b"), node(session, "n1"));
        let mut statement = session.statement();
        statement.evict(victim, PREEMPT, Some(b)).unwrap();
        statement.pipeline(b, n1, Room::Evicted).unwrap();
        allocate(&mut statement, "j/a", "n2");
        assert!(statement.commit());
        assert_eq!(place(session, "j/b"), (Pipelined, Some("n1".to_owned())));
        assert_eq!(session.nodes[n1].view.n_pods, 2, "the victim is out, the waiting pod is in");
    });
    let expected = ["evict v-runs preempt for j-b", "bind j-a n2"];
    assert_eq!(shown(&outbox.effects), expected);
    assert_eq!(place(&cluster, "j/a"), (TaskStatus::Binding, Some("n2".to_owned())));
    assert_eq!(place(&cluster, "j/b"), (Pending, None), "not remembered");
    let victim = &cluster.tasks[task(&cluster, "v/runs")];
    assert_eq!((victim.status, victim.evicting, victim.hidden), (Releasing, true, false));
}
