//! Texts of pod conditions and of a job's state: core.md 3.10, actions.md 10.1, 10.2.

use vc_framework::{
    Filter, Room, Session, SessionState, TaskMessage, WaitCause, job_text, task_message,
};
use vc_model::{FitErrors, TaskStatus, fixture};

use super::support::{in_session, in_session_of, job, node, task};

fn reported(session: &SessionState<'_>, path: &str) -> TaskMessage {
    task_message(session.view(), &session.records, task(session, path))
}

fn record_errors(session: &mut Session<'_>, path: &str) {
    let task = task(session, path);
    let errors = session.filter(task, &session.info().nodes, Filter::Allocate).errors;
    session.note_fit_errors(task, errors.into());
}

#[test]
fn core_48_text_of_a_job() {
    let text = "node n1 cpu=8
         node n2 cpu=8
         node n3 cpu=8
         job j min=6
           task task-1 cpu=1
           task task-2 cpu=1
           task task-3 cpu=1
           task task-4 cpu=1
           task task-5 cpu=1
           task task-6 cpu=1";
    let predicates = "a predicate=n1:node(s)_pod_number_exceeded,\
         n2:node(s)_resource_fit_failed,n3:node(s)_resource_fit_failed";
    in_session(text, predicates, |session| {
        let n1 = node(session, "n1");
        let placed = ["j/task-1", "j/task-2", "j/task-3"].map(|path| task(session, path));
        let mut statement = session.statement();
        for task in placed {
            statement.allocate(task, n1).unwrap();
        }
        statement.discard();
        record_errors(session, "j/task-6");
        assert_eq!(
            job_text(session.view(), &session.records, job(session, "j")),
            "pod group is not ready, 6 Pending, 6 minAvailable; Pending: 3 Schedulable, 3 \
             Unschedulable. Origin reason is j-task-6: 0/3 nodes are unavailable: 1 node(s) pod \
             number exceeded, 2 node(s) resource fit failed."
        );
    });
}

#[test]
fn text_of_a_job_names_its_own_reason_first_and_leaves_out_what_is_not_there() {
    let text = "node n cpu=8\n job j min=1\n task a cpu=9\n task b cpu=1 @n running";
    in_session(text, "", |session| {
        let id = job(session, "j");
        record_errors(session, "j/a");
        session.note_job_fit(id, WaitCause::QueueOverused, "queue q is overused");
        assert_eq!(
            job_text(session.view(), &session.records, id),
            "pod group is ready, 1 Pending, 1 Running, 1 minAvailable; Pending: 1 \
             Unschedulable. Origin reason is: queue q is overused"
        );
    });
    in_session("job j min=1\n task b cpu=1 @n running", "", |session| {
        assert_eq!(
            job_text(session.view(), &session.records, job(session, "j")),
            "pod group is ready, 1 Running, 1 minAvailable"
        );
    });
}

#[test]
fn core_77_a_discarded_placement_explains_why_the_pod_waits() {
    let text = "node n1 cpu=8\n job j min=2\n task a cpu=1\n task b cpu=1";
    in_session(text, "", |session| {
        let (a, b, n1) = (task(session, "j/a"), task(session, "j/b"), node(session, "n1"));
        let mut statement = session.statement();
        statement.allocate(a, n1).unwrap();
        statement.pipeline(b, n1, Room::Releasing).unwrap();
        statement.discard();
        let message = "Pod default/j-a can possibly be assigned to n1, once minAvailable is \
                       satisfied";
        assert_eq!(
            (reported(session, "j/a").reason, &*reported(session, "j/a").message),
            ("Schedulable", message)
        );
        let message = "Pod default/j-b can possibly be assigned to n1, once resource is released \
                       and minAvailable is satisfied";
        assert_eq!(
            (reported(session, "j/b").reason, &*reported(session, "j/b").message),
            ("Unschedulable", message)
        );
    });
}

#[test]
fn what_stands_speaks_for_itself() {
    let text = "node n1 cpu=8\n node n2 cpu=8\n job j min=2\n task a cpu=1\n task b cpu=1";
    in_session(text, "", |session| {
        let a = task(session, "j/a");
        let (n1, n2) = (node(session, "n1"), node(session, "n2"));
        let mut statement = session.statement();
        statement.allocate(a, n1).unwrap();
        statement.discard();
        let mut statement = session.statement();
        statement.allocate(a, n2).unwrap();
        statement.keep();
        let message = reported(session, "j/a").message;
        assert!(message.contains("assigned to n2"), "not the attempt before: {message}");
    });
}

#[test]
fn a_pending_task_tells_its_own_errors_then_those_of_its_job() {
    let text = "node n cpu=1\n job j\n task a cpu=2\n task b cpu=2";
    in_session(text, "", |session| {
        record_errors(session, "j/a");
        let a = reported(session, "j/a");
        assert_eq!(a.reason, "Unschedulable");
        assert_eq!(a.message, "0/1 nodes are unavailable: 1 Insufficient cpu.");
        assert_eq!(reported(session, "j/b").message, "");
        let id = job(session, "j");
        session.note_job_fit(id, WaitCause::QueueNotOpen, "queue q is Closed");
        assert_eq!(reported(session, "j/b").message, "queue q is Closed");
        let b = task(session, "j/b");
        session.note_fit_errors(b, FitErrors::fixed("queue q has no room").into());
        assert_eq!(reported(session, "j/b").message, "queue q has no room");
    });
}

#[test]
fn a_pod_that_could_not_be_read_tells_why() {
    // C-20: a pod that cannot be read in part gets the reason.
    let mut cluster = fixture::cluster("job j\n task a");
    let a = task(&cluster, "j/a");
    cluster.tasks[a].invalid = Some("spec.affinity: not an object".into());
    in_session_of(&mut cluster, "", |session| {
        let message = reported(session, "j/a");
        assert_eq!(message.reason, "Unschedulable");
        assert_eq!(message.message, "spec.affinity: not an object");
    });
}

#[test]
fn other_statuses_are_their_own_reason() {
    in_session("job j\n task a @n running", "", |session| {
        let message = reported(session, "j/a");
        assert_eq!((message.reason, &*message.message), ("Running", ""));
        let a = task(session, "j/a");
        session.cluster_mut().set_task(a, TaskStatus::Unknown, None);
        assert_eq!(reported(session, "j/a").reason, "Unknown");
    });
}
