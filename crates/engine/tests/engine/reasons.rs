//! Pods are told what allocate and backfill found: trial placements of evicting actions that are
//! undone change no reason (core.md 3.10, actions.md 10.2).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use vc_conf::Config;
use vc_engine::Effect;

use crate::evictions::{Shape, With, clusters, configs};
use crate::support::*;

const EVICTING: [&str; 4] = ["preempt", "reclaim", "gangpreempt", "gangreclaim"];

fn without_evictions(config: &Config) -> Config {
    let mut config = config.clone();
    config.actions.retain(|action| !EVICTING.contains(&&**action));
    config
}

/// Reason and message of each pod that is told something.
fn reasons(cycle: &Cycle) -> BTreeMap<String, String> {
    let reason = |effect: &Effect| match effect {
        Effect::PodCondition { pod, reason, message, .. } => {
            Some((pod.name.to_string(), format!("{reason} {message:?}")))
        }
        _ => None,
    };
    cycle.effects.iter().filter_map(reason).collect()
}

/// Lines of pods that were placed, wait for room on a node, or go.
fn moved(cycle: &Cycle) -> BTreeSet<String> {
    let is_move =
        |line: &&String| ["bind ", "pipeline ", "evict "].iter().any(|word| line.starts_with(word));
    cycle.lines.iter().filter(is_move).cloned().collect()
}

/// The job of the pod of a line: pod `j1-a` is of job `j1`.
fn job_of(line: &str) -> &str {
    let pod = line.split_whitespace().nth(1).expect("an object follows the verb");
    pod.split_once('-').map_or(pod, |(job, _)| job)
}

/// Compares the first cycle with and without evicting actions. How many pods of jobs that these
/// actions did nothing for, or to, were compared.
fn compare(config: &Config, text: &str) -> Result<usize, TestCaseError> {
    let with = World::new(config, text).cycle();
    let without = World::new(&without_evictions(config), text).cycle();
    let (moves, moves_without) = (moved(&with), moved(&without));
    let differing: BTreeSet<&String> = moves.symmetric_difference(&moves_without).collect();
    let touched: BTreeSet<&str> = differing.iter().map(|line| job_of(line)).collect();
    let (told, told_without) = (reasons(&with), reasons(&without));
    let mut n_compared = 0;
    for (pod, reason) in &told_without {
        let line = format!("pod {pod}");
        if touched.contains(job_of(&line)) {
            continue;
        }
        n_compared += 1;
        let now = told.get(pod).map(String::as_str);
        prop_assert_eq!(now, Some(&**reason), "{} in\n{}", pod, text);
    }
    Ok(n_compared)
}

/// Compares so many random clusters with all configurations of evictions.
fn check(shape: &Shape, cases: u32) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let n_compared = Cell::new(0);
    let outcome = runner.run(&(clusters(shape), 0..configs().len()), |(text, which)| {
        n_compared.set(n_compared.get() + compare(&configs()[which], &text)?);
        Ok(())
    });
    outcome.unwrap_or_else(|why| panic!("{why}"));
    let n_compared = n_compared.get();
    assert!(cases as usize / 2 < n_compared, "only {n_compared} pods were compared");
}

fn shape() -> Shape {
    Shape {
        nodes: 1..4,
        copies: 1..4,
        slots: 20..26,
        best_effort: false,
        ports: false,
        with: With::Nothing,
    }
}

#[test]
fn reasons_are_those_of_allocate() {
    check(&shape(), 600);
}

#[test]
fn reasons_are_those_of_allocate_with_ports() {
    check(&Shape { ports: true, ..shape() }, 200);
}

#[test]
fn reasons_are_those_of_allocate_and_enqueue() {
    check(&Shape { with: With::Quota, ..shape() }, 200);
}

/// Gangs that have no room: on empty nodes, and in their queue.
#[test]
fn reasons_of_gangs_without_room() {
    let nodes = "node n1 cpu=8\nnode n2 cpu=8\nnode n3 cpu=8\nnode n4 cpu=8\n";
    let large = format!("{nodes}job j min=6\n  task a cpu=6 x6");
    let capped = format!("{nodes}queue q cap.cpu=4\njob j queue=q min=3\n  task a cpu=2 x3");
    let plugins = "priority gang conformance | drf predicates proportion nodeorder binpack";
    for text in [large, capped] {
        let plain = World::new(&conf("allocate, backfill", plugins), &text).cycle();
        for actions in EVICTING.map(|action| format!("allocate, {action}, backfill")) {
            let cycle = World::new(&conf(&actions, plugins), &text).cycle();
            assert_eq!(reasons(&cycle), reasons(&plain), "{actions}: {text}");
            let told: Vec<String> = reasons(&cycle).into_values().collect();
            assert!(told.iter().any(|reason| reason.starts_with("Schedulable ")), "{told:?}");
            assert!(!told.iter().any(|reason| reason.contains("released")), "{told:?}");
        }
    }
}
