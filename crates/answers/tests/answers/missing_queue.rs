//! Jobs whose queue does not exist: what else they wait for, and what creates their place. Specification: answers.md 20,
//! cases 19, 25, 31, 32 and 42.

use vc_answers::{
    Depth, Explanation, LeftOut, RemedyChange, RemedyKind, Responsible, StartUnknown,
};
use vc_engine::Evaluator;

use crate::support::{Asked, EXAMPLE, conf, sets};

fn asked(text: &str) -> Asked {
    Asked::new(&conf("enqueue, allocate", EXAMPLE), text)
}

/// Explains the job `j`, which both evaluators do alike.
fn why(text: &str) -> Explanation {
    let config = conf("enqueue, allocate", "gang predicates nodeorder");
    let [fast, plain] = [Evaluator::Fast, Evaluator::Plain]
        .map(|evaluator| Asked::evaluated(evaluator, &config, text).why("j"));
    assert_eq!(fast, plain, "{text}");
    fast
}

#[test]
fn ans_19_a_queue_that_does_not_exist_is_in_every_set() {
    for (text, expected) in [
        ("node n cpu=4\njob j queue=q\n task a cpu=1", vec!["queue"]),
        (
            "node n cpu=4\njob k running\n task a cpu=4 @n running\njob j queue=q\n task a cpu=1",
            vec!["queue + room/cpu"],
        ),
        (
            "node n cpu=4 taint=x:NoSchedule\nnode m cpu=4 taint=y:NoSchedule
             job j queue=q\n task a cpu=1",
            vec!["queue + taint/x:NoSchedule", "queue + taint/y:NoSchedule"],
        ),
        (
            "node n cpu=4 taint=x:NoSchedule\njob j queue=q min=2\n task a cpu=1 gate=y",
            vec!["gates + members + queue + taint/x:NoSchedule"],
        ),
        ("node n cpu=4\njob j queue=q\n task a cpu=5", vec![]),
    ] {
        let why = why(text);
        assert_eq!(sets(&why), expected, "{text}");
        let blocking = why.blocking.unwrap();
        assert!(blocking.atoms.contains(&"queue".to_owned()), "{text}");
        assert_eq!((blocking.even_empty, blocking.is_complete()), (Some(false), true), "{text}");
        assert!(!blocking.helps_waiting(), "{text}");
        assert!(blocking.sets.iter().all(|set| set.certified == "all"), "{text}");
    }
}

#[test]
fn ans_25_a_queue_that_does_not_exist_is_created_by_an_admin() {
    let blocking = why("node n cpu=4\njob j queue=q\n task a cpu=1").blocking.unwrap();
    let atom = &blocking.sets[0].atoms[0];
    assert_eq!((&*atom.place, atom.n_nodes, atom.who), ("Queue q", None, Responsible::Admin));
}

#[test]
fn ans_32_the_queue_is_created() {
    let it = asked("node n cpu=4\nnode m cpu=2\njob j queue=q\n task a cpu=3");
    assert_eq!(it.remedies("j"), ["admin: create the queue q: n"]);
    let remedy = it.why("j").unblock.remove(0);
    let created = RemedyChange::CreateQueue { queue: "q".into() };
    assert_eq!((remedy.kind, &remedy.change), (RemedyKind::CreateQueue, &Some(created.clone())));
    let placed = it.what_if(created.as_changes()).placed;
    assert_eq!((placed.len(), &*placed[0].node), (1, "n"));
    // It would not suffice.
    let text =
        "node n cpu=4\njob k running\n task a cpu=2 @n running\njob j queue=q\n task a cpu=3";
    assert_eq!(asked(text).remedies("j"), [""; 0]);
}

#[test]
fn ans_42_no_end_creates_a_queue() {
    let it = asked("node n cpu=4\njob j queue=q\n task a cpu=1");
    let start = it.why_with_start("j").start;
    assert_eq!(start.unwrap().unknown, Some(StartUnknown::NotByTime));
    // Also if the sets were not found.
    let why = it.why_with_start_within("j", 0);
    assert_eq!(why.blocking.unwrap().left_out, [LeftOut::Sets]);
    assert_eq!(why.start.unwrap().unknown, Some(StartUnknown::NotByTime));
}

#[test]
fn ans_31_a_small_budget_of_a_job_without_a_queue() {
    let it = asked("node n cpu=4\njob j queue=q\n task a cpu=1");
    let why = it.why_within("j", 0);
    assert_eq!((why.unblock.len(), sets(&why)), (0, Vec::new()));
    let blocking = why.blocking.unwrap();
    assert_eq!(blocking.left_out, [LeftOut::Sets]);
    assert_eq!((&*blocking.atoms, blocking.even_empty), (&["queue".to_owned()][..], Some(false)));
    let mut state = it.state();
    assert_eq!(it.why_to(&mut state, "j", Depth::Quick).blocking, None);
    let alone = it.why_to(&mut state, "j", Depth::Sets);
    assert_eq!((sets(&alone), alone.unblock.len()), (vec!["queue".to_owned()], 0));
}
