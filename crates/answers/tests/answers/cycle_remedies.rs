//! Remedies that whole cycles verify, in answers without a start. Specification: answers.md 20, cases 32, 36.

use proptest::prelude::*;
use vc_answers::{Depth, Explanation, Remedy, RemedyChange, RemedyKind};

use crate::support::{Asked, conf, random_cases};
use crate::unblock::waiting_alone;

fn asked(text: &str) -> Asked {
    let tiers = "priority conformance | gang predicates nodeorder";
    Asked::new(&conf("enqueue, allocate, preempt", tiers), text)
}

/// Returns the remedies that whole cycles verify and that need no end.
fn of_cycles(why: &Explanation) -> Vec<Remedy> {
    let is_of_cycles = |it: &&Remedy| {
        let is_kind = matches!(it.kind, RemedyKind::RaisePriority | RemedyKind::Together);
        is_kind && it.at_micros.is_none()
    };
    why.unblock.iter().filter(is_of_cycles).cloned().collect()
}

/// Returns how many pods of the job `j` get a node with a remedy.
fn n_placed(it: &Asked, remedy: &Remedy) -> usize {
    let changes = remedy.change.as_ref().map(RemedyChange::as_changes).unwrap_or_default();
    let placed = it.what_if(changes).placed;
    placed.iter().filter(|row| row.pod.name.starts_with("j-")).count()
}

/// Returns the texts of these remedies in a full answer without the start. They are those of an answer with it.
fn told(it: &Asked) -> Vec<String> {
    let found = of_cycles(&it.full_in(&mut it.state(), "j"));
    assert_eq!(found, of_cycles(&it.why_with_start("j")));
    assert!(found.iter().all(|remedy| 0 < n_placed(it, remedy)), "{found:?}");
    let quick = it.why_to(&mut it.state(), "j", Depth::Quick);
    assert!(quick.unblock.is_empty());
    found.into_iter().map(|remedy| remedy.text).collect()
}

#[test]
fn ans_28_a_higher_priority_needs_no_start() {
    let text = "node n cpu=4
        priorityclass c9 value=9
        job run priority=6 running
          task a cpu=4 @n running priority=6
        job j priority=2
          task a cpu=4 priority=2";
    assert_eq!(told(&asked(text)), ["priority class c9, which evicts 1 pod of default/run"]);
}

#[test]
fn ans_28_several_changes_together_need_no_start_if_they_need_no_end() {
    let nodes = "node n cpu=4 zone=b taint=x:NoSchedule\n";
    let waiting = "job j priority=1\n task a cpu=4 selector.zone=a priority=1";
    let it = asked(&format!("{nodes}{waiting}"));
    assert_eq!(told(&it), ["tolerate x:NoSchedule, do not ask for label zone"]);
    let running = "job k priority=2 running
        task a cpu=4 @n running priority=2 started=0 annotation.reservation.volcano.sh/runtime=100m";
    let it = asked(&format!("{nodes}{running}\n{waiting}"));
    assert!(told(&it).is_empty());
    let with_start = it.why_with_start("j").unblock;
    let together = with_start.iter().find(|it| it.kind == RemedyKind::Together).unwrap();
    assert!(together.at_micros.is_some(), "{together:?}");
}

proptest! {
    #![proptest_config(random_cases(100))]

    /// Case 32, and what is kept of a question changes no later one.
    #[test]
    fn ans_32_full_answers_have_the_remedies_of_cycles(text in waiting_alone()) {
        let it = asked(&text);
        let mut state = it.state();
        let full = it.full_in(&mut state, "j");
        prop_assert_eq!(&it.full_in(&mut state, "j"), &full, "{}", text);
        let with_start = it.why_with_start("j");
        prop_assert_eq!(&it.why_with_start_in(&mut state, "j"), &with_start, "{}", text);
        let found = of_cycles(&full);
        for remedy in &found {
            prop_assert!(0 < n_placed(&it, remedy), "{}\n{:?}", text, remedy);
        }
        prop_assert_eq!(found, of_cycles(&with_start), "{}", text);
    }
}
