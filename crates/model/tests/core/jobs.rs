//! Jobs, their counters and predicates, and priorities: core.md 3.7.

use vc_model::{
    Cluster, ClusterEvent, Counts, Job, ObjectKey, PodGroupPhase, PodGroupRecord,
    PriorityClassRecord, Settings, TaskStatus, fixture,
};
use vc_resource::Dim;

use super::support::{apply, apply_group, apply_pod, group, labels, list, member, requesting};

fn job<'c>(cluster: &'c Cluster, name: &str) -> &'c Job {
    &cluster.jobs[fixture::job(cluster, name)]
}

#[test]
fn core_43_ready_pipelined_starving() {
    let mut cluster = fixture::cluster(
        "node n cpu=8
         job j min=5
           task pending-full cpu=1
           task pending-empty
           task pipelined-full cpu=1
           task pipelined-empty
           task running-full cpu=1 @n running
           task running-empty @n running",
    );
    let node = fixture::node(&cluster, "n");
    for path in ["j/pipelined-full", "j/pipelined-empty"] {
        let task = fixture::task(&cluster, path);
        cluster.set_task(task, TaskStatus::Pipelined, Some(node));
    }
    assert_eq!(cluster.check(), Ok(()));
    let is = |job: &Job| (job.is_ready(), job.is_pipelined(), job.is_starving());
    assert_eq!(is(job(&cluster, "j")), (false, true, true));
    fixture::apply(&mut cluster, "job j min=3");
    assert_eq!(is(job(&cluster, "j")), (true, true, false));
}

#[test]
fn core_44_releasing_and_scheduled_counters() {
    let releasing = fixture::cluster(
        "job j
           task a releasing @node-1
           task b releasing
           task c releasing @node-2",
    );
    assert_eq!(job(&releasing, "j").counts.releasing_on_node, 2);
    let scheduled = fixture::cluster(
        "job j
           task a running @n
           task b bound @n
           task c failed @n
           task d succeeded @n
           task e
           task f releasing @n",
    );
    let counts = &job(&scheduled, "j").counts;
    assert_eq!((counts.scheduled(), counts.total()), (4, 6));
    assert_eq!((counts.allocated(), counts.ready(), counts.valid()), (2, 3, 4));
}

#[test]
fn core_45_role_minimums_above_the_job_minimum_do_not_count() {
    let text = |min| format!("job j min={min} role.a=2 role.b=3\n  task x role=a cpu=1");
    let skipped = fixture::cluster(&text(4));
    let row = job(&skipped, "j");
    assert!(!row.enforces_roles());
    assert!(row.roles_valid() && row.roles_ready() && row.roles_pipelined());
    let enforced = fixture::cluster(&text(5));
    let row = job(&enforced, "j");
    assert!(row.enforces_roles());
    assert!(!row.roles_valid() && !row.roles_ready() && !row.roles_pipelined());
}

#[test]
fn role_minimums_count_what_is_placed_and_what_asks_for_nothing() {
    let mut cluster = fixture::cluster(
        "node n cpu=8
         job j min=2 role.a=1 role.b=1
           task x role=a cpu=1 @n running
           task y role=b cpu=1",
    );
    let is = |job: &Job| (job.roles_valid(), job.roles_ready(), job.roles_pipelined());
    assert_eq!(is(job(&cluster, "j")), (true, false, false));
    let (task, node) = (fixture::task(&cluster, "j/y"), fixture::node(&cluster, "n"));
    cluster.set_task(task, TaskStatus::Pipelined, Some(node));
    assert_eq!(is(job(&cluster, "j")), (true, false, true));
    cluster.set_task(task, TaskStatus::Allocated, Some(node));
    assert_eq!(is(job(&cluster, "j")), (true, true, true));
    cluster.set_task(task, TaskStatus::Pending, None);
    fixture::apply(&mut cluster, "job j min=2 role.a=1 role.b=1\n  task y role=b");
    assert_eq!(is(job(&cluster, "j")), (true, true, true), "best effort");
}

#[test]
fn core_47_an_invalid_waiting_time_leaves_the_other_key() {
    let cases = [
        ("volcano.sh/sla-waiting-time=-1h sla-waiting-time=1h", Some(3_600_000_000)),
        ("volcano.sh/sla-waiting-time=5m sla-waiting-time=1h", Some(300_000_000)),
        ("volcano.sh/sla-waiting-time=bad sla-waiting-time=5m", Some(300_000_000)),
        ("sla-waiting-time=0s", None),
        ("", None),
    ];
    for (annotations, micros) in cases {
        let mut cluster = Cluster::new(Settings::default());
        let record = PodGroupRecord { annotations: labels(annotations), ..group("j", 1) };
        apply_group(&mut cluster, record);
        let group = job(&cluster, "ns/j").pod_group.as_ref().unwrap();
        assert_eq!(group.sla_waiting_micros, micros, "{annotations}");
    }
}

#[test]
fn core_40_a_group_is_not_preemptable_unless_it_says_so() {
    let of = |annotations: &str, own_labels: &str| {
        let mut cluster = Cluster::new(Settings::default());
        let annotations = labels(annotations);
        let record = PodGroupRecord { annotations, labels: labels(own_labels), ..group("j", 1) };
        apply_group(&mut cluster, record);
        let group = job(&cluster, "ns/j").pod_group.as_ref().unwrap();
        (group.preemptable, group.not_preemptable)
    };
    assert_eq!(of("", ""), (false, false));
    assert_eq!(of("volcano.sh/preemptable=maybe", "volcano.sh/preemptable=true"), (false, true));
    assert_eq!(of("", "volcano.sh/preemptable=true"), (true, false));
    assert_eq!(of("", "volcano.sh/preemptable=false"), (false, true));
    assert_eq!(of("volcano.sh/preemptable=1", ""), (true, false));
}

fn class(name: &str, value: i32, global_default: bool) -> ClusterEvent {
    let record = PriorityClassRecord { name: name.into(), value, global_default };
    ClusterEvent::PriorityClassApplied(record)
}

#[test]
fn core_50_a_deleted_priority_class_leaves_the_default_or_0() {
    let mut cluster = fixture::cluster("job j priority=10");
    assert_eq!(job(&cluster, "j").priority, 10);
    let deleted = |name: &str| ClusterEvent::PriorityClassDeleted { name: name.into() };
    apply(&mut cluster, deleted("priority-10"));
    assert_eq!(job(&cluster, "j").priority, 0);
    // Of two defaults the smaller one counts (C-13).
    apply(&mut cluster, class("a", 7, true));
    apply(&mut cluster, class("b", 5, true));
    assert_eq!(job(&cluster, "j").priority, 5);
    apply(&mut cluster, class("b", 9, true));
    assert_eq!(job(&cluster, "j").priority, 7);
    apply(&mut cluster, class("priority-10", 11, false));
    assert_eq!(job(&cluster, "j").priority, 11);
    apply(&mut cluster, deleted("priority-10"));
    apply(&mut cluster, deleted("a"));
    assert_eq!(job(&cluster, "j").priority, 9);
}

#[test]
fn sums_of_a_job() {
    let mut cluster = fixture::cluster("node n cpu=8");
    let gate =
        |record, gate: &str| vc_model::PodRecord { scheduling_gates: vec![gate.into()], ..record };
    let pod = |name, requests: &str| requesting(member(name, "j"), requests);
    apply_group(
        &mut cluster,
        PodGroupRecord { min_resources: Some(list("cpu=3")), ..group("j", 1) },
    );
    apply_pod(&mut cluster, super::support::running(pod("a", "cpu=4"), "n"));
    apply_pod(&mut cluster, pod("b", "cpu=1"));
    apply_pod(&mut cluster, gate(pod("c", "cpu=2"), "example.com/mine"));
    let ours = "scheduling.volcano.sh/queue-allocation-gate";
    apply_pod(&mut cluster, gate(pod("d", "cpu=16"), ours));
    let row = job(&cluster, "ns/j");
    let cpu = |sum: &vc_resource::Resource| sum.get(Dim::CPU);
    assert_eq!(cpu(&row.total_request()), 23_000);
    assert_eq!(cpu(&row.allocated), 4_000);
    assert_eq!(cpu(&row.pending_request), 19_000);
    assert_eq!(cpu(&row.gated), 2_000, "the queue gate alone does not count");
    assert_eq!(cpu(&row.elastic()), 1_000);
    assert_eq!(cpu(&row.minus_gated(&row.min_resources())), 1_000);
    assert_eq!(cpu(&row.minus_gated(&row.allocated)), 2_000);
}

#[test]
fn core_60_a_pod_may_come_before_its_group_and_outlive_it() {
    let mut cluster = Cluster::new(Settings::default());
    apply_pod(&mut cluster, member("p", "j"));
    let row = job(&cluster, "ns/j");
    assert!(row.pod_group.is_none() && row.is_pending());
    assert_eq!((row.tasks.len(), row.min_available), (1, 0));
    apply_group(&mut cluster, group("j", 2));
    assert_eq!(job(&cluster, "ns/j").min_available, 2);
    let key = ObjectKey::new("ns", "j");
    apply(&mut cluster, ClusterEvent::PodGroupDeleted { key: key.clone() });
    let row = job(&cluster, "ns/j");
    assert_eq!((row.tasks.len(), row.min_available, row.phase()), (1, 0, PodGroupPhase::Pending));
    let gone = ClusterEvent::PodDeleted { key: ObjectKey::new("ns", "p"), uid: "p".into() };
    apply(&mut cluster, gone);
    assert_eq!(cluster.job(&key), None, "neither PodGroup nor tasks");
}

#[test]
fn core_61_a_group_of_a_missing_queue_names_a_queue_that_is_not_present() {
    let mut cluster = fixture::cluster("job j queue=q1\n  task a");
    assert!(!cluster.queues[job(&cluster, "j").queue].present);
    fixture::apply(&mut cluster, "queue q1");
    assert!(cluster.queues[job(&cluster, "j").queue].present);
    apply(&mut cluster, ClusterEvent::QueueDeleted { name: "q1".into() });
    let queue = &cluster.queues[job(&cluster, "j").queue];
    assert_eq!((&*queue.name, queue.present), ("q1", false));
}

#[test]
fn a_role_without_tasks_has_no_counters() {
    let mut cluster = fixture::cluster("job j role.a=1\n  task x role=a\n  task y role=b");
    fixture::apply(&mut cluster, "job j role.a=1\n  task x role=c");
    let row = job(&cluster, "j");
    let roles: Vec<&str> = row.roles.iter().map(|(role, _)| &**role).collect();
    assert_eq!(roles, ["b", "c"]);
    assert!(row.roles.iter().all(|(_, counts)| *counts != Counts::default()));
}
