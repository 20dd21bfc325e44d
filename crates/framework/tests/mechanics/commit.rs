//! What the binder would refuse, and what a commit does then: core.md 7.3, actions.md 2.4 (A7), 5.

use vc_framework::{EvictReason, Room, Session};
use vc_model::{TaskStatus, fixture};

use super::support::{counter, idle_cpu, in_session, in_session_of, job, node, place, shown, task};
use TaskStatus::{Allocated, Binding, Pending};

const GANG: &str = "a job_ready=min counter=x";

/// Places every task of job `j` on the node of its name and commits. The node of task `b` has no
/// room, so the binder would refuse that task.
fn commit_without_a_node(min: u32) -> (bool, Vec<String>) {
    let text = format!(
        "node a cpu=1
         node b cpu=0
         node c cpu=1
         job j min={min}
           task a cpu=1
           task b cpu=1
           task c cpu=1"
    );
    let mut cluster = fixture::cluster(&text);
    let (sent, outbox, _) = in_session_of(&mut cluster, GANG, |session| {
        let placed =
            ["a", "b", "c"].map(|name| (task(session, &format!("j/{name}")), node(session, name)));
        let mut statement = session.statement();
        for (task, node) in placed {
            statement.allocate(task, node).unwrap();
        }
        let sent = statement.commit();
        assert_eq!(place(session, "j/b"), (Pending, None));
        let n_bound = if sent { 2.0 } else { 0.0 };
        assert_eq!(counter(session), (n_bound, n_bound * 1_000.0));
        sent
    });
    (sent, shown(&outbox.effects))
}

#[test]
fn stmt__commit_gang() {
    assert_eq!(commit_without_a_node(3), (false, Vec::new()), "0 of 3");
    let two = ["bind j-a a".to_owned(), "bind j-c c".to_owned()].to_vec();
    assert_eq!(commit_without_a_node(2), (true, two));
}

#[test]
fn core_53_a_task_that_does_not_fit_is_not_handed_to_the_binder() {
    let text = "node n cpu=2
         job j min=1
           task first cpu=2
           task second cpu=1
           task none";
    in_session(text, GANG, |session| {
        let [first, second, none] =
            ["j/first", "j/second", "j/none"].map(|path| task(session, path));
        let n = node(session, "n");
        let mut statement = session.statement();
        for task in [first, second, none] {
            statement.allocate(task, n).unwrap();
        }
        assert_eq!(idle_cpu(&statement, "n"), -1_000, "a statement may try that");
        assert!(statement.commit());
        assert_eq!(shown(&session.outcome.out.effects), ["bind j-first n", "bind j-none n"]);
        assert_eq!(place(session, "j/second"), (Pending, None));
        assert_eq!(idle_cpu(session, "n"), 0);
    });
}

#[test]
fn what_other_jobs_only_try_out_does_not_count_for_the_binder() {
    let text = "node n cpu=2
         job other
           task x cpu=2
         job j min=1
           task y cpu=2";
    in_session(text, GANG, |session| {
        let (x, y, n) = (task(session, "other/x"), task(session, "j/y"), node(session, "n"));
        let mut statement = session.statement();
        statement.allocate(x, n).unwrap();
        statement.keep();
        let mut statement = session.statement();
        statement.allocate(y, n).unwrap();
        assert!(statement.commit());
        assert_eq!(shown(&session.outcome.out.effects), ["bind j-y n"]);
    });
}

#[test]
fn dispatch_hands_over_what_was_kept_of_this_job() {
    let text = "node n cpu=3
         job other
           task x cpu=1
         job j min=2
           task a cpu=1
           task b cpu=1
           task c cpu=1";
    in_session(text, GANG, |session| {
        let n = node(session, "n");
        for path in ["j/a", "other/x", "j/b"] {
            let task = task(session, path);
            let mut statement = session.statement();
            statement.allocate(task, n).unwrap();
            statement.keep();
        }
        let c = task(session, "j/c");
        let mut statement = session.statement();
        statement.pipeline(c, n, Room::Releasing).unwrap();
        statement.keep();
        session.dispatch_allocated(job(session, "j"));
        assert_eq!(shown(&session.outcome.out.effects), ["bind j-a n", "bind j-b n"]);
        assert_eq!(place(session, "j/a").0, Binding);
        assert_eq!(place(session, "other/x").0, Allocated);
        assert_eq!(place(session, "j/c").0, TaskStatus::Pipelined);
    });
}

#[test]
fn dispatch_gives_back_what_the_binder_would_refuse() {
    let text = "node n cpu=1 pods=1\n job j min=1\n task a\n task b";
    in_session(text, GANG, |session| {
        let n = node(session, "n");
        for path in ["j/a", "j/b"] {
            let task = task(session, path);
            let mut statement = session.statement();
            statement.allocate(task, n).unwrap();
            statement.keep();
        }
        session.dispatch_allocated(job(session, "j"));
        assert_eq!(shown(&session.outcome.out.effects), ["bind j-a n"]);
        assert_eq!(place(session, "j/b"), (Pending, None));
    });
}

#[test]
fn a_pipelined_task_can_be_taken_back_and_put_again() {
    let text = "node n cpu=1\n job j\n task a cpu=1";
    in_session(text, GANG, |session| {
        let (a, n) = (task(session, "j/a"), node(session, "n"));
        assert_eq!(session.unpipeline(a), None, "it is not pipelined");
        let mut statement = session.statement();
        statement.pipeline(a, n, Room::Releasing).unwrap();
        statement.keep();
        let (at, op) = session.unpipeline(a).unwrap();
        assert_eq!((at, place(session, "j/a"), counter(session)), (n, (Pending, None), (0.0, 0.0)));
        session.repipeline(op);
        assert_eq!(place(session, "j/a"), (TaskStatus::Pipelined, Some("n".to_owned())));
        assert_eq!(counter(session), (1.0, 1_000.0));
        let again = |session: &mut Session<'_>| session.unpipeline(a).is_some();
        assert!(again(session) && !again(session));
    });
}

#[test]
fn an_eviction_that_cannot_be_sent_is_undone_alone() {
    let text = "node n cpu=3
         job j
           task tried cpu=1
           task runs cpu=1 @n running";
    in_session(text, GANG, |session| {
        let (tried, runs, n) =
            (task(session, "j/tried"), task(session, "j/runs"), node(session, "n"));
        let mut statement = session.statement();
        statement.allocate(tried, n).unwrap();
        statement.keep();
        let mut statement = session.statement();
        for victim in [tried, runs] {
            statement.evict(victim, EvictReason::Reclaim, None).unwrap();
        }
        assert!(statement.commit());
        assert_eq!(shown(&session.outcome.out.effects), ["evict j-runs reclaim"]);
        assert_eq!(place(session, "j/tried").0, Allocated);
        assert_eq!(counter(session), (0.0, 0.0), "one more, one less");
    });
}
