//! Jobs and pods that the cluster has forgotten. Specification: answers.md 20, case 47.

use vc_answers::{FoundSubject, GoneSubject, SubjectError, SubjectKind, SubjectQuery};
use vc_engine::EngineOptions;
use vc_model::fixture::{START_MICROS, events_of};
use vc_model::{ClusterEvent, ObjectKey, Settings};

use crate::timeline::{ALL, Recorded};

const PLUGINS: &str = "gang priority predicates";
const WORLD: &str = "node n cpu=8\nqueue default
    job ml/train-7f owner=7f min=1 running\n task a cpu=1 x2 @n running
    job ml/eval-9c owner=9c min=1 running\n task a cpu=1 @n running";
/// The first job of [`WORLD`] after its end.
const ENDED: &str = "job ml/train-7f owner=7f min=1 running\n task a cpu=1 x2 @n succeeded";

/// Returns what is remembered, one text: `job ml/train-7f ended 1`, with seconds after the start.
fn found(recorded: &Recorded, kind: SubjectKind, name: &str) -> Result<String, SubjectError> {
    let query = SubjectQuery { namespace: "ml", name, controller_uid: None, kind };
    let how = |is_deleted: bool| if is_deleted { "deleted" } else { "ended" };
    let second = |micros: i64| (micros - START_MICROS) / 1_000_000;
    let found = recorded.timeline.find_gone(query)?;
    Ok(match found {
        None => "unknown".to_owned(),
        Some(GoneSubject::Evicted(it)) => format!("pod {} evicted by {}", it.pod, it.action),
        Some(GoneSubject::Pod(it)) => {
            let group = it.pod_group.as_ref().map_or("no group".to_owned(), ToString::to_string);
            format!("pod {} of {group} {} {}", it.pod, how(it.is_deleted), second(it.end_micros))
        }
        Some(GoneSubject::Job(it)) => {
            let kind = if it.is_bare { "pod" } else { "job" };
            let end = second(it.end_micros.unwrap());
            format!("{kind} {} {} {end}", it.key, how(it.is_deleted))
        }
    })
}

fn any(recorded: &Recorded, name: &str) -> String {
    found(recorded, SubjectKind::Any, name).unwrap()
}

/// Deletes a job with its pods.
fn delete_job(recorded: &mut Recorded, name: &str) {
    let key = ObjectKey::new("ml", name);
    recorded.delete_pods(&key);
    recorded.cycle_with(vec![ClusterEvent::PodGroupDeleted { key }]);
}

#[test]
fn ans_47_jobs_that_have_ended_or_were_deleted_are_remembered() {
    for learns in [true, false] {
        let mut it = Recorded::new("enqueue, allocate", PLUGINS);
        it.learns = learns;
        it.cycle(WORLD);
        it.cycle(ENDED);
        delete_job(&mut it, "train-7f");
        delete_job(&mut it, "eval-9c");
        for name in ["train", "train-7f"] {
            assert_eq!(any(&it, name), "job ml/train-7f ended 1", "{learns}");
        }
        assert_eq!(any(&it, "eval"), "job ml/eval-9c deleted 4", "{learns}");
        assert_eq!(any(&it, "nothing"), "unknown");
        assert_eq!(found(&it, SubjectKind::Pod, "train").unwrap(), "unknown");
        let pods = ["train-7f-a-0", "eval-9c-a"].map(|name| any(&it, name));
        match learns {
            true => assert_eq!(
                pods,
                [
                    "pod ml/train-7f-a-0 of ml/train-7f ended 1",
                    "pod ml/eval-9c-a of ml/eval-9c deleted 4"
                ]
            ),
            false => assert_eq!(pods, ["unknown", "unknown"], "only events tell of pods"),
        }
        assert_eq!(found(&it, SubjectKind::Group, "train-7f-a-0").unwrap(), "unknown");
    }
}

#[test]
fn ans_47_an_end_and_a_deletion_at_once_are_an_end() {
    let mut it = Recorded::new("enqueue, allocate", PLUGINS);
    it.cycle(WORLD);
    let mut events = events_of(ENDED);
    for at in 0..2 {
        let (name, uid) = (format!("train-7f-a-{at}"), format!("ml-train-7f-a-{at}"));
        let key = ObjectKey::new("ml", &name);
        events.push(ClusterEvent::PodDeleted { key, uid: uid.as_str().into() });
    }
    events.push(ClusterEvent::PodGroupDeleted { key: ObjectKey::new("ml", "train-7f") });
    it.cycle_with(events);
    assert_eq!(any(&it, "train"), "job ml/train-7f ended 1");
    assert_eq!(any(&it, "train-7f-a-1"), "pod ml/train-7f-a-1 of ml/train-7f ended 1");
}

#[test]
fn ans_47_several_jobs_of_a_name_are_told() {
    let mut it = Recorded::new("enqueue, allocate", PLUGINS);
    it.cycle(WORLD);
    it.cycle("job ml/train-8a owner=8a min=1 running\n task a cpu=1 @n running");
    delete_job(&mut it, "train-7f");
    delete_job(&mut it, "train-8a");
    let several = vec!["ml/train-7f".to_owned(), "ml/train-8a".to_owned()];
    assert_eq!(found(&it, SubjectKind::Any, "train"), Err(SubjectError::Several(several)));
    assert_eq!(any(&it, "train-8a"), "job ml/train-8a deleted 4");
}

#[test]
fn ans_47_the_last_pod_of_a_name_counts() {
    let mut it = Recorded::new("allocate, preempt", PLUGINS);
    it.cycle("node n cpu=4\nqueue default\njob ml/low min=1 running priority=1\n task a cpu=2 x2 @n running");
    it.cycle("job ml/high min=1 priority=10\n task a cpu=2");
    let pod = it.timeline.evictions(ALL).next().unwrap().pod.clone();
    let cluster = it.engine.cluster();
    let uid = cluster.tasks[cluster.task_named(&pod).unwrap()].uid.clone();
    it.cycle_with(vec![ClusterEvent::PodDeleted { key: pod.clone(), uid }]);
    let name = pod.name.to_string();
    assert_eq!(any(&it, &name), format!("pod {pod} evicted by preempt"));
    // Its controller makes another one, which ends by itself.
    for phase in ["running", "succeeded"] {
        let text = format!("job ml/low min=1 running priority=1\n task a x2 @n {phase} created=3");
        let mut events = events_of(&text);
        events.retain_mut(|event| {
            let ClusterEvent::PodApplied(record) = event else { return false };
            record.uid = "second".into();
            record.key == pod
        });
        it.cycle_with(events);
    }
    it.cycle_with(vec![ClusterEvent::PodDeleted { key: pod.clone(), uid: "second".into() }]);
    assert_eq!(any(&it, &name), format!("pod {pod} of ml/low ended 4"));
}

#[test]
fn ans_47_pods_without_a_group_are_remembered() {
    for learns in [true, false] {
        let settings = Settings { bare_pods: true, ..Settings::default() };
        let mut it = Recorded::with(EngineOptions::from(settings), "enqueue, allocate", PLUGINS);
        it.learns = learns;
        it.cycle(
            "node n cpu=4\nqueue default\npod ml/p cpu=1 @n running\npod ml/q cpu=1 @n running",
        );
        it.cycle("pod ml/p cpu=1 @n succeeded");
        let deleted = |name: &str| {
            let uid = format!("ml-{name}").as_str().into();
            ClusterEvent::PodDeleted { key: ObjectKey::new("ml", name), uid }
        };
        it.cycle_with(vec![deleted("p"), deleted("q")]);
        let group = if learns { " of no group" } else { "" };
        assert_eq!(any(&it, "p"), format!("pod ml/p{group} ended 1"));
        assert_eq!(any(&it, "q"), format!("pod ml/q{group} deleted 2"));
        assert_eq!(found(&it, SubjectKind::Group, "p").unwrap(), "unknown");
    }
}

#[test]
fn ans_47_jobs_of_other_controllers_are_remembered() {
    let mut it = Recorded::new("enqueue, allocate", PLUGINS);
    it.cycle(
        "node n cpu=8\nqueue default
        job ml/podgroup-5e owner=web-5d9f7c kind=ReplicaSet min=1 running\n task a cpu=1 @n running",
    );
    delete_job(&mut it, "podgroup-5e");
    for (kind, name) in [
        (SubjectKind::Any, "web"),
        (SubjectKind::Any, "web-5d9f7c"),
        (SubjectKind::Controller("deployment"), "web"),
        (SubjectKind::Controller("replicaset"), "web-5d9f7c"),
    ] {
        let found = found(&it, kind, name).unwrap();
        assert!(found.starts_with("job ml/podgroup-5e deleted "), "{kind:?} {name}: {found}");
    }
    for (kind, name) in [("statefulset", "web"), ("deployment", "podgroup-5e")] {
        assert_eq!(found(&it, SubjectKind::Controller(kind), name).unwrap(), "unknown", "{kind}");
    }
    let of_group = found(&it, SubjectKind::Controller("job"), "podgroup-5e").unwrap();
    assert!(of_group.starts_with("job ml/podgroup-5e "), "a PodGroup is called a job: {of_group}");
}

#[test]
fn ans_47_a_job_that_is_gone_comes_before_what_its_name_may_mean() {
    let mut it = Recorded::new("enqueue, allocate", PLUGINS);
    it.cycle(
        "node n cpu=8\nqueue default
        job ml/train-7f owner=train kind=Job min=1 running\n task a cpu=1 @n running
        job ml/podgroup-1 owner=train-api kind=ReplicaSet min=1 running\n task a cpu=1 @n running
        job ml/podgroup-2 owner=web-5d9f7c kind=ReplicaSet min=1 running\n task a cpu=1 @n running",
    );
    let find = |it: &Recorded, kind: SubjectKind, name: &str| {
        let query = SubjectQuery { namespace: "ml", name, controller_uid: None, kind };
        let cluster = it.engine.cluster();
        match it.timeline.find(cluster, query).unwrap() {
            FoundSubject::Present(subject) => {
                cluster.jobs[subject.job.unwrap()].key.name.to_string()
            }
            FoundSubject::Gone(GoneSubject::Job(span)) => format!("gone {}", span.key.name),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(find(&it, SubjectKind::Any, "train"), "train-7f");
    delete_job(&mut it, "train-7f");
    assert_eq!(find(&it, SubjectKind::Any, "train"), "gone train-7f");
    assert_eq!(find(&it, SubjectKind::Controller("deployment"), "train"), "podgroup-1");
    assert_eq!(find(&it, SubjectKind::Any, "web"), "podgroup-2");
    delete_job(&mut it, "podgroup-2");
    assert_eq!(find(&it, SubjectKind::Any, "web"), "gone podgroup-2");
    let unknown = SubjectQuery {
        namespace: "ml",
        name: "nothing",
        controller_uid: None,
        kind: SubjectKind::Any,
    };
    let found = it.timeline.find(it.engine.cluster(), unknown);
    assert_eq!(found, Err(SubjectError::Unknown(Vec::new())));
}
