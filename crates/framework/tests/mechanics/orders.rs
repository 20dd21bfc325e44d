//! Orders and the order of eviction: core.md 5.4, 5.6, actions.md 2.3, 2.9.

use vc_framework::{Session, SessionState};
use vc_model::{Cluster, ClusterEvent, JobId, TaskId, fixture};

use super::support::{in_session, in_session_of, job, pods, queue, tasks};

fn by_task_order(session: &SessionState<'_>, mut tasks: Vec<TaskId>) -> Vec<String> {
    tasks.sort_by(|&l, &r| session.plugins().task_order(session.view(), l, r));
    pods(session, &tasks)
}

#[test]
fn core_70_default_task_order() {
    let text = "job j
       task w-10 created=1
       task w-2 created=2
       task b created=3
       task a created=4
       task c created=3";
    in_session(text, "", |session| {
        let indexed = tasks(session, &["j/w-10", "j/w-2"]);
        assert_eq!(by_task_order(session, indexed), ["j-w-2", "j-w-10"]);
        let plain = tasks(session, &["j/a", "j/c", "j/b"]);
        assert_eq!(by_task_order(session, plain), ["j-b", "j-c", "j-a"], "older, then uid");
    });
    in_session("job j\n task w-10 priority=5\n task w-2", "a task_order=priority", |session| {
        let indexed = tasks(session, &["j/w-2", "j/w-10"]);
        assert_eq!(by_task_order(session, indexed), ["j-w-10", "j-w-2"], "plugins first");
    });
}

#[test]
fn default_job_order_is_age_in_seconds_then_the_uid() {
    let text = "job old created=0\n job a/j created=60\n job a-b/j created=60\n job b/z created=60";
    in_session(text, "", |session| {
        let names = ["b/z", "a/j", "a-b/j", "old"];
        let mut jobs: Vec<JobId> = names.iter().map(|name| job(session, name)).collect();
        jobs.sort_by(|&l, &r| session.plugins().job_order(session.view(), l, r));
        let keys: Vec<String> = jobs.iter().map(|&id| session.jobs[id].key.to_string()).collect();
        assert_eq!(keys, ["default/old", "a-b/j", "a/j", "b/z"]);
    });
}

#[test]
fn default_queue_order_is_age_then_name() {
    let text = "queue c created=0\n queue b created=9\n queue a created=9";
    let sorted = |tiers: &str| {
        in_session(text, tiers, |session| {
            let mut queues = session.info().queues.clone();
            queues.sort_by(|&l, &r| session.plugins().queue_order(session.view(), l, r));
            queues.iter().map(|&id| session.queues[id].name.to_string()).collect::<Vec<_>>()
        })
    };
    assert_eq!(sorted(""), ["c", "a", "b"]);
    assert_eq!(sorted("a queue_order=priority"), ["c", "a", "b"], "all the same to the plugin");
}

#[test]
fn default_sub_job_order_is_match_index_then_id() {
    let text = "job j
       policy p keys=idx
       task a label.idx=10
       task b label.idx=2
       task c label.idx=x";
    in_session(text, "", |session| {
        let id = job(session, "j");
        let mut indexes: Vec<usize> = (0..session.jobs[id].sub_jobs.len()).collect();
        indexes.sort_by(|&l, &r| session.plugins().sub_job_order(session.view(), id, l, r));
        let row = &session.jobs[id];
        let ids: Vec<&str> = indexes.iter().map(|&index| &*row.sub_jobs[index].id).collect();
        let expected = ["default/j", "default/j/p-x", "default/j/p-2", "default/j/p-10"];
        assert_eq!(ids, expected);
    });
}

/// The order of eviction for a preemptor of job `p`, if it is known.
fn evicted(
    cluster: &mut Cluster,
    tiers: &str,
    preemptor: Option<&str>,
    victims: &[&str],
) -> Vec<String> {
    let run = |session: &mut Session<'_>| {
        let preemptor = preemptor.map(|name| job(session, name));
        let mut victims = tasks(session, victims);
        let (plugins, view) = (session.plugins(), session.view());
        victims.sort_by(|&l, &r| plugins.victim_order(view, preemptor, l, r));
        pods(session, &victims)
    };
    in_session_of(cluster, tiers, run).0
}

const PRIORITIES: &str = "a job_order=priority task_order=priority";

#[test]
fn victims__order_same_job() {
    let text =
        "job p\n job j\n task high priority=100 @n running\n task low priority=10 @n running";
    for preemptor in [Some("p"), None] {
        let cluster = &mut fixture::cluster(text);
        let order = evicted(cluster, PRIORITIES, preemptor, &["j/high", "j/low"]);
        assert_eq!(order, ["j-low", "j-high"]);
    }
}

#[test]
fn victims__order_jobs_tie() {
    let text = "job p
       job old created=1
         task v priority=10 @n running
       job new created=9
         task v priority=100 @n running";
    let victims = ["new/v", "old/v"];
    let order = evicted(&mut fixture::cluster(text), PRIORITIES, Some("p"), &victims);
    assert_eq!(order, ["old-v", "new-v"], "by the task, not by the age of the job");
}

#[test]
fn core_71_of_equal_jobs_the_lower_task_goes_first() {
    let text = "job p
       job a priority=5 created=9
         task v priority=7 @n running
       job b priority=5 created=1
         task v priority=3 @n running
       job c priority=4
         task v priority=100 @n running";
    let victims = ["a/v", "b/v", "c/v"];
    let order = evicted(&mut fixture::cluster(text), PRIORITIES, Some("p"), &victims);
    assert_eq!(order, ["c-v", "b-v", "a-v"], "the lower job before both");
}

#[test]
fn victims__unknown_job() {
    let text = "job p
       job j priority=0
         task v priority=0 @n running
       job gone priority=9
         task v priority=9 @n running
         task w priority=8 @n running
       job lost queue=nowhere priority=9
         task v priority=7 @n running";
    let mut cluster = fixture::cluster(text);
    let key = cluster.jobs[job(&cluster, "gone")].key.clone();
    cluster.apply(ClusterEvent::PodGroupDeleted { key });
    let victims = ["j/v", "gone/v", "gone/w", "lost/v"];
    let order = evicted(&mut cluster, PRIORITIES, Some("p"), &victims);
    assert_eq!(order, ["lost-v", "gone-w", "gone-v", "j-v"]);
}

#[test]
fn victims__queue_order() {
    let text = "queue own
       queue q1 priority=5 weight=9
       queue q2 priority=10 weight=1
       job p queue=own
       job a queue=q1 priority=9
         task v @n running
       job b queue=q2
         task v @n running";
    let tiers = "a job_order=priority queue_order=priority";
    let victims = ["b/v", "a/v"];
    let order = evicted(&mut fixture::cluster(text), tiers, Some("p"), &victims);
    assert_eq!(order, ["a-v", "b-v"], "the reverse of the queue order");
    let stated = format!("{tiers} victim_queue_order=weight");
    let order = evicted(&mut fixture::cluster(text), &stated, Some("p"), &victims);
    assert_eq!(order, ["b-v", "a-v"], "a plugin says otherwise");
    let order = evicted(&mut fixture::cluster(text), tiers, None, &victims);
    assert_eq!(order, ["b-v", "a-v"], "preemptor unknown: by the jobs");
}

#[test]
fn victim_queues_without_a_plugin_are_in_reverse_queue_order() {
    let text = "queue old created=1\n queue new created=2\n queue own";
    in_session(text, "", |session| {
        let [old, new, own] = ["old", "new", "own"].map(|name| queue(session, name));
        let order = session.plugins().victim_queue_order(session.view(), old, new, own);
        assert_eq!(order, std::cmp::Ordering::Greater);
    });
}
