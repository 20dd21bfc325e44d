//! `vcsim fuzz`: fixed seeds hold, a seed gives the same story again, and what is refused.

use std::collections::BTreeSet;

use vc_sim::fuzz::FaultKind;

use crate::common::*;

#[test]
fn stories_of_fixed_seeds_violate_nothing() {
    // Memory is short in 83, and pods share GPUs in 444.
    let seeds = "1,2,3,4,5,6,7,8,83,444";
    let Called { code, stdout: out, .. } = vcsim(&["fuzz", "--seeds", seeds, "--minutes", "2"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.starts_with("10 stories from seed 1, 0 with a violation: "), "{out}");
}

#[test]
fn a_story_may_have_more_nodes() {
    let bound_to = |nodes: &str| -> BTreeSet<usize> {
        let args = ["fuzz", "--seeds", "3", "--minutes", "1", "--timeline", "--nodes", nodes];
        let Called { code, stdout: out, .. } = vcsim(&args);
        assert_eq!(code, 0, "{out}");
        let nodes = out.lines().filter_map(|line| line.split_once("/binding to n"));
        nodes.filter_map(|(_, rest)| rest.split_once(':')?.0.parse().ok()).collect()
    };
    assert_eq!(bound_to("1"), BTreeSet::from([0]));
    let of_many = bound_to("30");
    assert!(of_many.last().is_some_and(|last| (6..30).contains(last)), "{of_many:?}");
}

/// Seeds whose stories violated something once.
const KEPT: &str = include_str!("kept_seeds.txt");

/// Returns the kept seeds of stories of so many minutes, each with what it violated.
fn kept(minutes: &str) -> Vec<(&'static str, &'static str)> {
    let lines = KEPT.lines().filter_map(|line| line.strip_prefix(minutes)?.strip_prefix(' '));
    lines.map(|line| line.split_once(' ').unwrap()).collect()
}

/// Plays the kept seeds of stories of so many minutes. Returns what was printed.
fn play_kept(minutes: &str) -> String {
    let kept = kept(minutes);
    let seeds: Vec<&str> = kept.iter().map(|(seed, _)| *seed).collect();
    let called = vcsim(&["fuzz", "--minutes", minutes, "--seeds", &seeds.join(",")]);
    let Called { code, stdout: out, .. } = called;
    assert_eq!(code, 0, "{out}\nthese once violated: {kept:?}");
    let begin = format!("{} stories from seed {}, 0 with a violation: ", seeds.len(), seeds[0]);
    assert!(out.starts_with(&begin), "{out}");
    out
}

/// Every kind of fault strikes in these stories.
#[test]
fn stories_that_violated_something_once_violate_nothing() {
    let out = play_kept("10");
    let struck = out.lines().find_map(|line| line.strip_prefix("faults that struck: "));
    let struck = struck.unwrap().split(", ").filter_map(|text| text.split(' ').next());
    let struck: Vec<&str> = struck.collect();
    assert_eq!(struck, FaultKind::ALL.map(FaultKind::word), "{out}");
}

#[test]
fn stories_of_a_minute_that_violated_something_once_violate_nothing() {
    play_kept("1");
}

#[test]
fn every_kept_seed_has_a_length_that_is_played() {
    let n_kept = KEPT.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(n_kept, kept("10").len() + kept("1").len());
}

/// I8: byte by byte, whatever else runs beside it.
#[test]
fn i8_a_seed_gives_the_same_story_again() {
    let digest = || {
        let Called { code, stdout: out, .. } =
            vcsim(&["fuzz", "--seeds", "5", "--minutes", "2", "--timeline"]);
        assert_eq!(code, 0, "{out}");
        let lines: Vec<&str> = out.lines().collect();
        // The summary names the time that it took.
        lines[..lines.len() - 2].join("\n")
    };
    let first = digest();
    assert!(first.starts_with("seed 5, digest "), "{first}");
    assert!(first.contains(" leads\n") && first.contains("/binding to n"), "{first}");
    assert_eq!(first, digest());
}

#[test]
fn unknown_faults_and_seeds_are_refused() {
    let Called { code, stderr: err, .. } = vcsim(&["fuzz", "--fault", "flood"]);
    assert_eq!(code, 2);
    assert!(err.starts_with("error: no kind of fault is called \"flood\"\nhint: one of "), "{err}");
    for (seeds, text) in [("x", "\"x\" is not a number"), ("9..1", "the range is empty")] {
        let Called { code, stderr: err, .. } = vcsim(&["fuzz", "--seeds", seeds]);
        assert_eq!(code, 2);
        assert!(err.contains(text), "{err}");
    }
}
