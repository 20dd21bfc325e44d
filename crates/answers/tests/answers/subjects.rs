//! Finding what a question is about, and asking without a trace. Specification: answers.md 2
//! (ANS-5), 20, cases 29 and 30.

use vc_answers::{Subject, SubjectError, SubjectKind, SubjectQuery, find_subject};
use vc_model::ClusterEvent;
use vc_model::fixture::events_of;

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
