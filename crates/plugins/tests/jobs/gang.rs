//! Cases 1-11 of plugins-jobs-queues.md: gang.

use std::cmp::Ordering;

use vc_framework::Session;
use vc_model::{PodGroupCondition, fixture};

use crate::support::{
    allocate, evict, in_session, in_session_of, job, names, pipeline, series, task,
};

const NODE: &str = "node n cpu=100 memory=100Gi\n";

/// Conditions of the one job after close.
fn conditions(session: &mut Session<'_>) -> Vec<PodGroupCondition> {
    session.close_plugins();
    session.outcome.out.conditions.iter().map(|(_, condition)| condition.clone()).collect()
}

fn closed(text: &str) -> Vec<PodGroupCondition> {
    in_session(&format!("{NODE}{text}"), "gang", conditions)
}

fn message_of(text: &str) -> String {
    closed(text)[0].message.to_string()
}

#[test]
fn jobs_01_leaving_members_that_make_up_the_difference_write_nothing() {
    let pair = "job j min=2
                  task a cpu=1 @n running
                  task b cpu=1 @n releasing\n";
    assert_eq!(closed(pair), []);
    assert_eq!(
        message_of(&format!("{pair} task c cpu=1")),
        "1/3 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 Releasing, \
         1 Running, 2 minAvailable; Pending: 1 Unschedulable",
    );
    let pipelined = in_session(&format!("{NODE}{pair} task c cpu=1"), "gang", |session| {
        let waiting = task(session, "j/c");
        pipeline(session, waiting, "n");
        conditions(session)
    });
    assert_eq!(&*pipelined[0].kind, "Unschedulable");
    assert_eq!(&*closed("job j min=1\n task a releasing")[0].kind, "Unschedulable");
    let three = pair.replace("min=2", "min=3");
    assert_eq!(&*closed(&three)[0].kind, "Unschedulable");
}

#[test]
fn jobs_02_only_members_above_the_minimum_may_go_in_the_order_given() {
    let victims = |min: i32, n: usize| {
        let text =
            format!("{NODE} job j min={min}\n task t x{n} cpu=1 @n running\n job p\n task a cpu=1");
        in_session(&text, "gang", |session| {
            let mut candidates = series(session, "j/t", n);
            candidates.reverse();
            let (view, preemptor) = (session.view(), task(session, "p/a"));
            let victims = session.plugins().preemptable(view, preemptor, &candidates);
            assert_eq!(victims, session.plugins().reclaimable(view, preemptor, &candidates));
            names(session, &victims)
        })
    };
    assert_eq!(victims(2, 4), ["j-t-3", "j-t-2"]);
    assert_eq!(victims(2, 2), [""; 0]);
}

#[test]
fn jobs_02_evictions_of_the_session_count() {
    let text = format!("{NODE} job j min=2\n task t x4 cpu=1 @n running\n job p\n task a cpu=1");
    let victims = in_session(&text, "gang", |session| {
        let members = series(session, "j/t", 4);
        evict(session, &members[..1]);
        let (view, preemptor) = (session.view(), task(session, "p/a"));
        let victims = session.plugins().preemptable(view, preemptor, &members[1..]);
        names(session, &victims)
    });
    assert_eq!(victims, ["j-t-1"]);
}

/// The reason and message of JobValid, or nothing.
fn invalid(text: &str) -> Option<(&'static str, String)> {
    in_session(&format!("{NODE}{text}"), "gang", |session| {
        let result = session.plugins().job_valid(session.view(), job(session, "j"));
        result.err().map(|invalid| (invalid.reason, invalid.message))
    })
}

#[test]
fn jobs_03_a_role_that_is_short_makes_the_job_invalid_if_the_minimum_covers_all_roles() {
    let text = "job j min=3 role.ps=1 role.worker=2\n task w x3 cpu=1 role=worker";
    let message = "Not enough valid pods of each task for gang-scheduling".to_owned();
    assert_eq!(invalid(text), Some(("NotEnoughPodsOfTask", message)));
    assert_eq!(invalid(&text.replace("min=3", "min=2")), None);
}

#[test]
fn jobs_04_too_few_tasks_are_counted_in_the_message() {
    let message = "Not enough valid tasks for gang-scheduling, valid: 2, min: 3".to_owned();
    let text = "job j min=3\n task t x2 cpu=1\n task f cpu=1 @n failed";
    assert_eq!(invalid(text), Some(("NotEnoughTasks", message)));
}

#[test]
fn jobs_05_sub_groups_must_be_ready_each() {
    let text = format!(
        "{NODE} job j min=3
           policy p keys=idx size=2 min=2
           task a x2 cpu=1 label.idx=0
           task b x1 cpu=1 label.idx=1"
    );
    in_session(&text, "gang", |session| {
        let id = job(session, "j");
        assert_eq!(session.plugins().job_valid(session.view(), id), Ok(()));
        for placed in ["j/a-0", "j/a-1", "j/b-0"] {
            let placed = task(session, placed);
            allocate(session, placed, "n");
        }
        let (view, plugins) = (session.view(), session.plugins());
        // The total is reached, and one of the two groups.
        assert!(plugins.sub_job_ready(view, id, 1) && !plugins.sub_job_ready(view, id, 2));
        assert!(!plugins.job_ready(view, id) && !plugins.job_pipelined(view, id));
        assert!(!plugins.sub_job_pipelined(view, id, 2));
        assert_eq!(plugins.sub_job_order(view, id, 1, 2), Ordering::Greater);
    });
    let both = text.replace("task b x1", "task b x2");
    in_session(&both, "gang", |session| {
        for placed in ["j/a-0", "j/a-1", "j/b-0"] {
            let placed = task(session, placed);
            allocate(session, placed, "n");
        }
        let last = task(session, "j/b-1");
        pipeline(session, last, "n");
        let (view, plugins, id) = (session.view(), session.plugins(), job(session, "j"));
        assert!(!plugins.job_ready(view, id) && plugins.job_pipelined(view, id));
        assert!(plugins.sub_job_pipelined(view, id, 2));
    });
}

#[test]
fn jobs_05_missing_sub_groups_make_the_job_invalid() {
    let message = "Not enough valid subGroups of each task for gang-scheduling".to_owned();
    let text = "job j min=2\n policy p keys=idx size=2 min=2\n task a x2 cpu=1 label.idx=0";
    assert_eq!(invalid(text), Some(("NotEnoughPodsOfTask", message)));
}

#[test]
fn jobs_06_jobs_that_are_not_ready_go_first_then_the_next_plugin_decides() {
    let text = format!(
        "{NODE} job ready min=1 priority=1\n task t cpu=1 @n running
                job wants min=1 priority=1\n task t cpu=1
                job done min=1 priority=9\n task t cpu=1 @n running"
    );
    in_session(&text, "gang, priority", |session| {
        let order = |l, r| {
            session.plugins().job_order_plugins(session.view(), job(session, l), job(session, r))
        };
        assert_eq!(order("wants", "ready"), Ordering::Less);
        assert_eq!(order("wants", "done"), Ordering::Less);
        assert_eq!(order("done", "ready"), Ordering::Less);
    });
    in_session(&text, "gang", |session| {
        let (l, r) = (job(session, "done"), job(session, "ready"));
        assert_eq!(session.plugins().job_order_plugins(session.view(), l, r), Ordering::Equal);
    });
}

#[test]
fn jobs_07_best_effort_members_make_ready_but_do_not_end_starving() {
    let text = format!("{NODE} job j min=3\n task t x2 cpu=1 @n running\n task b");
    in_session(&text, "gang", |session| {
        let (view, plugins, id) = (session.view(), session.plugins(), job(session, "j"));
        assert!(plugins.job_ready(view, id) && plugins.job_starving(view, id));
    });
}

#[test]
fn jobs_08_a_missing_role_is_unschedulable_although_the_total_is_reached() {
    let text = "job j min=2 role.ps=1 role.worker=1\n task w x2 cpu=1 @n running role=worker";
    let conditions = closed(text);
    assert_eq!(conditions.len(), 1);
    assert_eq!(
        (&*conditions[0].kind, &*conditions[0].reason),
        ("Unschedulable", "NotEnoughResources")
    );
    assert!(conditions[0].message.starts_with("1/2 tasks in gang unschedulable: "));
    let roles = text.replace("min=2 role.ps=1", "min=4 role.ps=3").replace("x2", "x4");
    assert!(message_of(&roles).starts_with("3/4 tasks in gang unschedulable: "));
}

#[test]
fn jobs_09_finished_members_keep_their_place() {
    let text = "job j min=2\n task a cpu=1 @n succeeded\n task b cpu=1 @n running";
    let conditions = closed(text);
    assert_eq!(conditions.len(), 1);
    let expected = PodGroupCondition {
        kind: "Scheduled".into(),
        status: "True".into(),
        transition_id: "session-1".into(),
        last_transition_time: "2026-01-01T00:00:00Z".into(),
        reason: "tasks in gang are ready to be scheduled".into(),
        message: "".into(),
    };
    assert_eq!(conditions[0], expected);
}

#[test]
fn jobs_10_a_policy_with_only_a_selector_forms_one_sub_group() {
    let text = "job j min=1\n policy p match.kind=x size=1 min=1\n task a cpu=1 label.kind=x";
    assert_eq!(invalid(text), None);
    let cluster = fixture::cluster(text);
    let ids: Vec<&str> = cluster.jobs[fixture::job(&cluster, "j")]
        .existing_sub_jobs()
        .map(|sub_job| &*sub_job.id)
        .collect();
    assert_eq!(ids, ["default/j/p-"]);
}

#[test]
fn jobs_11_names_of_sub_groups() {
    let cluster = fixture::cluster(
        "job job1
           policy policy1 keys=k1,k2 min=1
           task a label.k1=value1 label.k2=value2
           task b label.k1=value1
           task c label.k1=value1 label.k2=",
    );
    let id = |path| {
        let task = &cluster.tasks[fixture::task(&cluster, path)];
        let job = task.job.expect("it has a job");
        cluster.jobs[job].sub_jobs[task.sub_job].id.to_string()
    };
    assert_eq!(id("job1/a"), "default/job1/policy1-value1-value2");
    assert_eq!([id("job1/b"), id("job1/c")], ["default/job1", "default/job1"]);
}

#[test]
fn what_a_discarded_statement_had_placed_is_not_unready() {
    let text = format!("{NODE} job j min=3\n task t x3 cpu=60");
    let conditions = in_session(&text, "gang", |session| {
        let placed = task(session, "j/t-0");
        let node = fixture::node(session, "n");
        let mut statement = session.statement();
        statement.allocate(placed, node).expect("the task is pending");
        statement.discard();
        conditions(session)
    });
    assert_eq!(
        &*conditions[0].message,
        "2/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; \
         Pending: 1 Schedulable, 2 Unschedulable",
    );
}

#[test]
fn a_group_without_pods_and_a_pod_without_group_get_no_condition() {
    let text = format!("{NODE} job j min=0\n pod p cpu=1 @n running\n job k\n task a cpu=1");
    let cluster = fixture::cluster(&text);
    let jobs = in_session_of(cluster, "gang", 0, |session| {
        session.close_plugins();
        let keys =
            session.outcome.out.conditions.iter().map(|(id, _)| session.jobs[*id].key.to_string());
        keys.collect::<Vec<_>>()
    });
    assert_eq!(jobs, ["default/k"]);
}

#[test]
fn orphans_are_no_victims() {
    let text = format!("{NODE} job j min=0 queue=gone\n task a cpu=1 @n running\n job p\n task a");
    let victims = in_session(&text, "gang", |session| {
        let candidates = [task(session, "j/a")];
        session.plugins().reclaimable(session.view(), task(session, "p/a"), &candidates)
    });
    assert_eq!(victims, []);
}
