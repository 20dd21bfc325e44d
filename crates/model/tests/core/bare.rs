//! Pods without group annotation as jobs of their own.

use vc_model::{
    Cluster, ClusterEvent, Job, ObjectKey, PodGroupPhase, PodRecord, PriorityClassRecord, Settings,
};

use crate::support::*;

fn cluster() -> Cluster {
    Cluster::new(Settings { bare_pods: true, ..Settings::default() })
}

fn job_of<'c>(cluster: &'c Cluster, uid: &str) -> &'c Job {
    cluster.job_of(id(cluster, uid)).unwrap()
}

#[test]
fn a_bare_pod_is_a_job_of_one_task_that_no_pod_group_can_be() {
    let mut cluster = cluster();
    apply_group(&mut cluster, group("p", 3));
    apply_pod(&mut cluster, requesting(pod("p"), "cpu=2"));
    let job = job_of(&cluster, "p");
    assert_eq!(job.key.to_string(), "ns/pod:p");
    assert_eq!((job.bare, job.min_available, job.tasks.len()), (true, 1, 1));
    assert_eq!(job.min_resources().text(&cluster.dims), "cpu 2000.00, memory 0.00, pods 1.00");
    assert_eq!(&*cluster.queues[job.queue].name, "default");
    let named = &cluster.jobs[cluster.job(&ObjectKey::new("ns", "p")).unwrap()];
    assert_eq!((named.bare, named.tasks.len()), (false, 0));
}

#[test]
fn only_our_pods_without_annotation_are_bare() {
    let mut cluster = cluster();
    let foreign = PodRecord { scheduler_name: "other".into(), ..running(pod("f"), "n") };
    apply_pod(&mut cluster, foreign);
    assert_eq!(row(&cluster, "f").job, None);
    apply_pod(&mut cluster, member("m", "j"));
    assert!(!job_of(&cluster, "m").bare);
    let mut ignoring = Cluster::new(Settings::default());
    apply_pod(&mut ignoring, pod("p"));
    assert_eq!(row(&ignoring, "p").job, None);
}

#[test]
fn the_queue_is_that_of_the_annotation_else_of_the_label() {
    let named = |queue: &str| labels(&format!("scheduling.volcano.sh/queue-name={queue}"));
    let both = PodRecord { annotations: named("a"), labels: named("l"), ..pod("both") };
    let label = PodRecord { annotations: named(""), labels: named("l"), ..pod("label") };
    let empty = PodRecord { labels: named(""), ..pod("empty") };
    let mut cluster = cluster();
    for (pod, queue) in [(both, "a"), (label, "l"), (empty, "default")] {
        let uid = pod.uid.clone();
        apply_pod(&mut cluster, pod);
        assert_eq!(&*cluster.queues[job_of(&cluster, &uid).queue].name, queue, "{uid}");
    }
    apply_pod(&mut cluster, PodRecord { labels: named("x"), ..pod("label") });
    assert_eq!(&*cluster.queues[job_of(&cluster, "label").queue].name, "x");
}

#[test]
fn the_priority_is_that_of_the_class() {
    let mut cluster = cluster();
    apply_pod(&mut cluster, PodRecord { priority_class_name: "high".into(), ..pod("p") });
    assert_eq!(job_of(&cluster, "p").priority, 0);
    let class = PriorityClassRecord { name: "high".into(), value: 7, global_default: false };
    apply(&mut cluster, ClusterEvent::PriorityClassApplied(class));
    assert_eq!(job_of(&cluster, "p").priority, 7);
}

#[test]
fn the_phase_lasts_as_long_as_the_pod() {
    let mut cluster = cluster();
    apply_pod(&mut cluster, pod("p"));
    apply_pod(&mut cluster, running(pod("r"), "n"));
    assert_eq!(job_of(&cluster, "p").phase(), PodGroupPhase::Pending);
    assert_eq!(job_of(&cluster, "r").phase(), PodGroupPhase::Running);
    cluster.set_phase(row(&cluster, "p").job.unwrap(), PodGroupPhase::Inqueue);
    apply_pod(&mut cluster, PodRecord { labels: labels("a=b"), ..pod("p") });
    assert_eq!(job_of(&cluster, "p").phase(), PodGroupPhase::Inqueue);
    apply_pod(&mut cluster, PodRecord { uid: "second".into(), ..pod("p") });
    assert_eq!(cluster.task("p"), None);
    assert_eq!(job_of(&cluster, "second").phase(), PodGroupPhase::Pending);
}

#[test]
fn the_job_goes_with_the_pod_and_when_it_joins_a_pod_group() {
    let mut cluster = cluster();
    apply_pod(&mut cluster, pod("gone"));
    apply_pod(&mut cluster, pod("joins"));
    assert_eq!(cluster.jobs.len(), 2);
    let (key, uid) = (ObjectKey::new("ns", "gone"), "gone".into());
    apply(&mut cluster, ClusterEvent::PodDeleted { key, uid });
    assert_eq!(cluster.jobs.len(), 1);
    apply_pod(&mut cluster, member("joins", "j"));
    let keys: Vec<String> = cluster.jobs.iter().map(|(_, job)| job.key.to_string()).collect();
    assert_eq!(keys, ["ns/j"]);
}
