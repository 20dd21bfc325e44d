//! Finding what a question is about, and asking without a trace. Specification: answers.md 2
//! (ANS-5), 20, cases 29 and 30.

use vc_answers::{Subject, SubjectError, SubjectKind, SubjectQuery, find_subject};
use vc_model::fixture::events_of;
use vc_model::{ClusterEvent, SelectorKind};

use crate::examples::two_ways_out;
use crate::support::{Asked, EXAMPLE, conf};

fn find(asked: &Asked, name: &str, uid: Option<&str>) -> Result<Subject, SubjectError> {
    let state = asked.state();
    let kind = SubjectKind::Any;
    let query = SubjectQuery { namespace: "ml", name, controller_uid: uid, kind };
    find_subject(state.cluster(), query)
}

/// A PodGroup `name` that a controller with this uid owns.
fn owned(name: &str, uid: &str) -> Vec<ClusterEvent> {
    let mut events = events_of(&format!("job ml/{name}\n task a cpu=99"));
    for event in &mut events {
        if let ClusterEvent::PodGroupApplied(group) = event {
            group.controller_uid = Some(uid.into());
        }
    }
    events
}

#[test]
fn ans_05_a_name_is_a_group_a_controller_or_a_pod() {
    let mut asked = Asked::new(&conf("allocate", EXAMPLE), "node n cpu=4");
    asked.cycle([owned("train-7f3c", "7f3c"), owned("podgroup-11aa", "11aa")].concat());
    let cluster = asked.engine.cluster();
    let job = |name: &str| cluster.job(&vc_model::ObjectKey::new("ml", name));
    let train = job("train-7f3c");
    assert_eq!(find(&asked, "train-7f3c", None).unwrap().job, train);
    assert_eq!(find(&asked, "train", None).unwrap().job, train);
    assert_eq!(find(&asked, "any", Some("11aa")).unwrap().job, job("podgroup-11aa"));
    let pod = find(&asked, "train-7f3c-a", None).unwrap();
    assert_eq!((pod.job, pod.pod.is_some()), (train, true));
}

#[test]
fn ans_05_several_and_none() {
    let mut asked = Asked::new(&conf("allocate", EXAMPLE), "node n cpu=4");
    asked.cycle([owned("train-1", "1"), owned("train-2", "2"), owned("eval-3", "3")].concat());
    let several = vec!["ml/train-1".to_owned(), "ml/train-2".to_owned()];
    assert_eq!(find(&asked, "train", None), Err(SubjectError::Several(several)));
    assert_eq!(find(&asked, "evla", None), Err(SubjectError::Unknown(vec!["eval".to_owned()])));
    assert_eq!(find(&asked, "something", None), Err(SubjectError::Unknown(Vec::new())));
}

/// Jobs of controllers that are no Volcano Jobs, and one without a controller.
const OWNED: &str = "job ml/podgroup-11aa owner=web-5d9f7c kind=ReplicaSet\n task a cpu=99
    job ml/podgroup-22bb owner=db kind=StatefulSet\n task a cpu=99
    job ml/podgroup-33cc owner=etl kind=Job\n task a cpu=99
    job ml/tune-7f owner=tune kind=MPIJob\n task a cpu=99
    job ml/plain\n task a cpu=99
    job other/podgroup-66ff owner=web-5d9f7c kind=ReplicaSet\n task a cpu=99";

/// Returns the name of the PodGroup or pod of the namespace ml that `KIND/NAME` or `NAME` means.
fn find_of_kind(asked: &Asked, text: &str) -> Result<String, SubjectError> {
    let (kind, name) = match text.split_once('/') {
        Some((kind, name)) => (Some(kind), name),
        None => (None, text),
    };
    let kind = SubjectKind::of(kind);
    let query = SubjectQuery { namespace: "ml", name, controller_uid: None, kind };
    let cluster = asked.engine.cluster();
    find_subject(cluster, query).map(|subject| match (subject.job, subject.pod) {
        (Some(job), _) => cluster.jobs[job].key.name.to_string(),
        (None, pod) => cluster.tasks[pod.unwrap()].key.name.to_string(),
    })
}

#[test]
fn ans_84_controllers_of_all_kinds_are_found() {
    let mut asked = Asked::new(&conf("allocate", EXAMPLE), &format!("node n cpu=4\n{OWNED}"));
    for (text, group) in [
        ("deployment/web", "podgroup-11aa"),
        ("deploy/web", "podgroup-11aa"),
        ("Deployments.apps/web", "podgroup-11aa"),
        ("web", "podgroup-11aa"),
        ("rs/web-5d9f7c", "podgroup-11aa"),
        ("web-5d9f7c", "podgroup-11aa"),
        ("sts/db", "podgroup-22bb"),
        ("db", "podgroup-22bb"),
        ("job/etl", "podgroup-33cc"),
        ("vcjob/etl", "podgroup-33cc"),
        ("MPIJob/tune", "tune-7f"),
        ("mpijobs/tune", "tune-7f"),
        ("job/plain", "plain"),
        ("pg/plain", "plain"),
        ("pod/plain-a", "plain"),
    ] {
        assert_eq!(find_of_kind(&asked, text), Ok(group.to_owned()), "{text}");
    }
    for (text, close) in [
        ("deployment/plain", "podgroup/plain"),
        ("deployment/db", "statefulset/db"),
        ("statefulset/ddb", "statefulset/db"),
        ("mpijob/etl", "job/etl"),
        ("job/tun", "mpijob/tune"),
        ("pod/db", "db"),
        ("deployment/plain-a", "pod/plain-a"),
    ] {
        let unknown = SubjectError::Unknown(vec![close.to_owned()]);
        assert_eq!(find_of_kind(&asked, text), Err(unknown), "{text}");
    }
    let nothing = SubjectError::Unknown(Vec::new());
    assert_eq!(find_of_kind(&asked, "statefulset/nothing"), Err(nothing));
    asked.cycle(events_of("job ml/podgroup-44dd owner=web-77b8cd kind=ReplicaSet\n task a cpu=99"));
    let several = vec!["ml/podgroup-11aa".to_owned(), "ml/podgroup-44dd".to_owned()];
    for text in ["deployment/web", "web"] {
        let expected = SubjectError::Several(several.clone());
        assert_eq!(find_of_kind(&asked, text), Err(expected), "{text}");
    }
    assert_eq!(find_of_kind(&asked, "rs/web-77b8cd"), Ok("podgroup-44dd".to_owned()));
}

#[test]
fn ans_84_pods_tell_of_their_controllers() {
    let mut asked = Asked::new(&conf("allocate", EXAMPLE), "node n cpu=4");
    let mut events = events_of(
        "job ml/shared\n task a cpu=99 x2\npod ml/lone-0 cpu=1\npod ml/far-0 cpu=1 @n running",
    );
    for event in &mut events {
        let ClusterEvent::PodApplied(pod) = event else { continue };
        let (controller, scheduler) = match &*pod.key.name {
            "lone-0" => ((SelectorKind::StatefulSet, "lone"), "volcano"),
            "far-0" => ((SelectorKind::StatefulSet, "far"), "default-scheduler"),
            _ => ((SelectorKind::ReplicaSet, "web-5d9f7c"), "volcano"),
        };
        pod.controller = Some((controller.0, controller.1.into()));
        pod.scheduler_name = scheduler.into();
    }
    asked.cycle(events);
    for (text, found) in [
        ("deployment/web", "shared"),
        ("web", "shared"),
        ("replicaset/web-5d9f7c", "shared"),
        ("statefulset/lone", "lone-0"),
    ] {
        assert_eq!(find_of_kind(&asked, text), Ok(found.to_owned()), "{text}");
    }
    let unknown = SubjectError::Unknown(vec!["pod/far-0".to_owned()]);
    let far = find_of_kind(&asked, "statefulset/far");
    assert_eq!(far, Err(unknown), "another scheduler has placed it");
}

#[test]
fn ans_05_a_name_itself_comes_before_a_deployment_that_may_have_it() {
    let objects = "node n cpu=4
        job ml/train-7f owner=train kind=Job\n task a cpu=99
        job ml/podgroup-1 owner=train-api kind=ReplicaSet\n task a cpu=99
        job ml/podgroup-2 owner=web-5d9f7c kind=ReplicaSet\n task a cpu=99
        job ml/podgroup-3 owner=lone-api kind=ReplicaSet\n task a cpu=99
        pod ml/lone cpu=1";
    let asked = Asked::new(&conf("allocate", EXAMPLE), objects);
    for (text, found) in [
        ("train", "train-7f"),
        ("job/train", "train-7f"),
        ("pg/train", "train-7f"),
        ("deployment/train", "podgroup-1"),
        ("train-api", "podgroup-1"),
        ("web", "podgroup-2"),
        ("pg/web", "podgroup-2"),
        ("lone", "lone"),
        ("deploy/lone", "podgroup-3"),
    ] {
        assert_eq!(find_of_kind(&asked, text), Ok(found.to_owned()), "{text}");
    }
}

/// Makes a StatefulSet the controller of all pods of the namespace ml whose names begin with its own.
fn with_set(objects: &str, set: &str) -> Vec<ClusterEvent> {
    let mut events = events_of(objects);
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event
            && pod.key.name.starts_with(set)
        {
            pod.controller = Some((SelectorKind::StatefulSet, set.into()));
        }
    }
    events
}

#[test]
fn ans_05_pods_without_a_group_are_named_where_several_are_meant() {
    let mut asked = Asked::new(&conf("allocate", EXAMPLE), "node n cpu=4");
    asked.cycle(with_set("pod ml/db-0 cpu=1\npod ml/db-1 cpu=1", "db"));
    let pods = vec!["ml/db-0".to_owned(), "ml/db-1".to_owned()];
    for text in ["statefulset/db", "db"] {
        let several = SubjectError::SeveralPods(pods.clone());
        assert_eq!(find_of_kind(&asked, text), Err(several), "{text}");
    }
    assert_eq!(find_of_kind(&asked, "db-1"), Ok("db-1".to_owned()));
    asked.cycle(with_set("job ml/db-shared\n task a cpu=99", "db"));
    let names = [pods, vec!["ml/db-shared".to_owned()]].concat();
    assert_eq!(find_of_kind(&asked, "sts/db"), Err(SubjectError::SeveralPods(names)));
    // A pod of the name comes before the pods of a controller.
    asked.cycle(events_of("pod ml/db cpu=1"));
    assert_eq!(find_of_kind(&asked, "db"), Ok("db".to_owned()));
}

#[test]
fn ans_29_the_same_question_has_the_same_answer() {
    let asked = two_ways_out();
    let first = asked.why("ml/train");
    let all = asked.all();
    assert_eq!(all.len(), 2);
    (0..20).for_each(|_| drop(asked.why("ml/sweep")));
    assert_eq!(asked.why("ml/train"), first);
    let mut of_list = all.into_iter().find(|it| it.subject.key == first.subject.key).unwrap();
    of_list.line = first.line.clone();
    of_list.blocking = first.blocking.clone();
    of_list.unblock = first.unblock.clone();
    of_list.evict = first.evict.clone();
    assert_eq!(of_list, first, "one of many, but for sets, remedies and the jobs ahead");
}

#[test]
fn ans_30_questions_change_nothing() {
    let (mut asked, mut silent) = (two_ways_out(), two_ways_out());
    let mut state = asked.state();
    let before = format!("{:?}", asked.engine.cluster());
    let kind = SubjectKind::Any;
    let query = SubjectQuery { namespace: "ml", name: "train", controller_uid: None, kind };
    let subject = find_subject(state.cluster(), query).unwrap();
    let first = vc_answers::explain(&mut state, subject, vc_answers::Depth::Full);
    assert_eq!(
        vc_answers::explain(&mut state, subject, vc_answers::Depth::Full),
        first,
        "asked of the same copy"
    );
    assert_eq!(state.cluster().check(), Ok(()));
    assert_eq!(format!("{:?}", asked.engine.cluster()), before);
    let events = || events_of("node g5 cpu=64 gpu=8");
    let time = vc_engine::CycleTime { unix_micros: i64::MAX / 2 };
    let decided = asked.engine.cycle(events(), time).0;
    assert_eq!(decided, silent.engine.cycle(events(), time).0);
}
