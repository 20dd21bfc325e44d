//! Records made of rows, and supposed changes of rows. Specification: answers.md 9 (ANS-48).

use std::sync::Arc;

use vc_model::fixture::{self, cluster, job, node, queue, task};
use vc_model::{Cluster, ClusterEvent, PodGroup, TaskStatus};

const CLUSTER: &str = "
    node n1 cpu=4 memory=8Gi gpu=8 zone=a taint=x:NoSchedule
    node n2 cpu=2500m memory=3 unschedulable
    queue root
    queue q1 weight=2 cap.cpu=4 cap.gpu=2 deserved.cpu=0 guarantee.memory=1Gi parent=root priority=5
    queue q2 cap.cpu=1500m deserved.memory=3
    job j1 queue=q1 min=2 role.ps=1 priority=10 minres.cpu=4 inqueue sla=5m created=60 owner=etl-1 kind=Job
      policy p keys=idx size=2 min=1
      task a cpu=2 @n1 running role=ps priority=7
      task b cpu=1 x2 label.idx=0
    job j2 queue=q2 min=1
      task a cpu=1 @n2 bound
      task b cpu=1 gate=other
      task c memory=1Gi";

/// Applies the event and returns true if it brings news.
fn is_news(cluster: &mut Cluster, event: ClusterEvent) -> bool {
    let before = cluster.version();
    cluster.apply(event);
    assert_eq!(cluster.check(), Ok(()));
    cluster.version() != before
}

#[test]
fn ans_48_the_record_of_a_row_brings_no_news() {
    let mut cluster = cluster(CLUSTER);
    for name in ["n1", "n2"] {
        let mut record = cluster.node_record(node(&cluster, name));
        let event = ClusterEvent::NodeApplied(Box::new(record.clone()));
        assert!(!is_news(&mut cluster, event), "{name}");
        record.unschedulable = !record.unschedulable;
        assert!(is_news(&mut cluster, ClusterEvent::NodeApplied(Box::new(record))), "{name}");
    }
    for name in ["root", "q1", "q2"] {
        let mut record = cluster.queue_record(queue(&cluster, name));
        let event = ClusterEvent::QueueApplied(Box::new(record.clone()));
        assert!(!is_news(&mut cluster, event), "{name}");
        record.weight += 1;
        assert!(is_news(&mut cluster, ClusterEvent::QueueApplied(Box::new(record))), "{name}");
    }
    for name in ["j1", "j2"] {
        let mut record = cluster.pod_group_record(job(&cluster, name)).unwrap();
        let event = ClusterEvent::PodGroupApplied(Box::new(record.clone()));
        assert!(!is_news(&mut cluster, event), "{name}");
        record.min_member += 1;
        assert!(is_news(&mut cluster, ClusterEvent::PodGroupApplied(Box::new(record))), "{name}");
    }
}

#[test]
fn ans_48_supposed_changes_keep_the_sums() {
    let mut cluster = cluster(CLUSTER);
    let status = |cluster: &Cluster, path: &str| cluster.tasks[task(cluster, path)].status;
    let mut version = cluster.version();
    let mut check = |cluster: &Cluster, what: &str| {
        assert_eq!(cluster.check(), Ok(()), "{what}");
        assert!(version < cluster.version(), "{what} is a change");
        version = cluster.version();
    };
    let bound = task(&cluster, "j2/a");
    cluster.start_pod(bound, 5);
    check(&cluster, "start");
    assert_eq!(status(&cluster, "j2/a"), TaskStatus::Running);
    assert_eq!(cluster.tasks[bound].started_micros, Some(5));
    cluster.end_pod(bound);
    check(&cluster, "end");
    assert_eq!(status(&cluster, "j2/a"), TaskStatus::Succeeded);
    let running = task(&cluster, "j1/a");
    cluster.requeue_pod(running);
    check(&cluster, "requeue");
    let row = &cluster.tasks[running];
    assert_eq!((row.status, row.node, row.started_micros), (TaskStatus::Pending, None, None));
    let gated = task(&cluster, "j2/b");
    let mut class = cluster.class(gated).clone();
    class.shape = cluster.class(task(&cluster, "j2/c")).shape.clone();
    cluster.replace_class(gated, class.clone());
    check(&cluster, "class");
    cluster.open_gates(gated);
    check(&cluster, "gates");
    cluster.replace_class(gated, class);
    check(&cluster, "the same class");
    cluster.replace_priority(gated, &"priority-10".into());
    check(&cluster, "priority");
    assert_eq!(cluster.tasks[gated].priority, 10);
}

#[test]
fn ans_36_a_pod_says_how_long_it_runs() {
    let mut cluster = cluster("node n1 cpu=4\njob j\n task a cpu=1 @n1 running deadline=60");
    fixture::apply(
        &mut cluster,
        "job k\n task a cpu=1 annotation.reservation.volcano.sh/runtime=1h\n task b cpu=1",
    );
    let run = |path: &str| cluster.tasks[task(&cluster, path)].stated_run.as_deref().copied();
    assert_eq!(run("j/a").unwrap().deadline_micros, Some(60_000_000));
    assert_eq!(run("k/a").unwrap().runtime_micros, Some(3_600_000_000));
    assert_eq!(run("k/b"), None);
}

#[test]
fn ans_40_a_pod_says_by_when_it_is_gone() {
    let cluster = cluster(
        "node n1 cpu=4\njob j\n task a cpu=1 @n1 releasing=60\n task b cpu=1 @n1 releasing",
    );
    let deletion = |path: &str| {
        let row = &cluster.tasks[task(&cluster, path)];
        row.stated_run.as_ref().and_then(|stated| stated.deletion_micros)
    };
    assert_eq!(deletion("j/a"), Some(fixture::START_MICROS + 60_000_000));
    assert_eq!(deletion("j/b"), None, "the time of its deletion is not known");
}

#[test]
fn ans_36_templates_come_from_annotations_and_owners() {
    let mut cluster = cluster(
        "job j owner=etl-28473829\n task a cpu=1 owner=etl-28473829-w x2
         job k annotation.reservation.volcano.sh/template=mine\n task a cpu=1 owner=web-x7k2p",
    );
    let of_job = |cluster: &Cluster, name: &str| {
        let group = cluster.jobs[job(cluster, name)].pod_group.as_ref();
        group.and_then(PodGroup::run_template).map(|it| (it.name.to_string(), it.is_stated))
    };
    assert_eq!(of_job(&cluster, "j"), Some(("etl".to_owned(), false)));
    assert_eq!(of_job(&cluster, "k"), Some(("mine".to_owned(), true)));
    let of_pod = |path: &str| cluster.tasks[task(&cluster, path)].run_template.clone().unwrap();
    assert_eq!(&*of_pod("j/a-0").name, "etl-28473829-w");
    assert!(Arc::ptr_eq(&of_pod("j/a-0"), &of_pod("j/a-1")), "pods of a job share it");
    assert_eq!(&*of_pod("k/a").name, "web");
    // A record that is made of the row has the same template.
    let record = cluster.pod_group_record(job(&cluster, "j")).unwrap();
    cluster.apply(ClusterEvent::PodGroupApplied(Box::new(record)));
    assert_eq!(of_job(&cluster, "j"), Some(("etl".to_owned(), false)));
}
