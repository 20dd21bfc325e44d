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

/// Reason and message of each pod that is told something, without amounts and what is said of
/// evictions.
fn reasons(cycle: &Cycle) -> BTreeMap<String, String> {
    let reason = |(pod, text): (String, String)| (pod, without_amounts(&text));
    reported(cycle).into_iter().map(reason).collect()
}

/// Reason and message of each pod that is told something.
fn reported(cycle: &Cycle) -> BTreeMap<String, String> {
    let text = |effect: &Effect| match effect {
        Effect::PodCondition { pod, condition, .. } => {
            let text = format!("{} {}", condition.reason, condition.message);
            Some((pod.name.to_string(), text))
        }
        _ => None,
    };
    cycle.effects.iter().filter_map(text).collect()
}

fn without_amounts(text: &str) -> String {
    let end = text.find("Nothing evicted: ").unwrap_or(text.len());
    let is_ours = |part: &&str| {
        ["Requests ", "It fits on no node", "Limit of "].iter().any(|word| part.starts_with(word))
    };
    let parts = text[..end].trim_end_matches(['.', ' ']).split(". ");
    parts.filter(|part| !is_ours(part)).collect::<Vec<_>>().join(". ")
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

/// Compares the first cycle with and without evicting actions. Returns the number of compared pods:
/// those of jobs for which nobody was evicted or nominated, and which lost nobody.
fn compare(config: &Config, text: &str) -> Result<usize, TestCaseError> {
    let with = World::new(config, text).cycle();
    let without = World::new(&without_evictions(config), text).cycle();
    let (moves, moves_without) = (moved(&with), moved(&without));
    let differing: BTreeSet<&String> = moves.symmetric_difference(&moves_without).collect();
    let touched: BTreeSet<&str> = differing.iter().map(|line| job_of(line)).collect();
    let reasons_with = reasons(&with);
    let mut n_compared = 0;
    for (pod, reason) in &reasons(&without) {
        let line = format!("pod {pod}");
        if touched.contains(job_of(&line)) {
            continue;
        }
        n_compared += 1;
        let now = reasons_with.get(pod).map(String::as_str);
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
            let reported: Vec<String> = reasons(&cycle).into_values().collect();
            assert!(
                reported.iter().any(|reason| reason.starts_with("Schedulable ")),
                "{reported:?}"
            );
            assert!(!reported.iter().any(|reason| reason.contains("released")), "{reported:?}");
        }
    }
}

/// The messages of the pods of the first cycle.
fn messages(config: &Config, text: &str) -> Vec<String> {
    let cycle = World::new(config, text).cycle();
    let line = |(pod, text): (String, String)| format!("{pod} {text}");
    reported(&cycle).into_iter().map(line).collect()
}

const PLUGINS: &str = "priority gang conformance | drf predicates nodeorder binpack";
const CAPACITY: &str = "priority gang conformance | drf predicates capacity nodeorder binpack";

#[test]
fn messages_have_amounts() {
    let config = conf("allocate, backfill", PLUGINS);
    let one = "job j\n  task a";
    let nodes = "node n1 cpu=8 memory=4Gi\nnode n2 cpu=4 memory=8Gi\n";
    let busy = "job r\n  task r cpu=3 @n2 running\n  task s cpu=6 @n1 running\n";
    let none = "j-a Unschedulable 0/2 nodes are unavailable: ";
    let cases = [
        (
            format!("{nodes}{one} cpu=20"),
            "2 Insufficient cpu. It fits on no node even when empty: requests 20 cpu, largest \
             node 8.",
        ),
        (
            format!("{nodes}{one} cpu=8 memory=8Gi"),
            "1 Insufficient cpu, 1 Insufficient memory. It fits on no node even when empty: \
             requests 8 cpu and 8Gi memory, no node has all of it.",
        ),
        (
            format!("{nodes}{busy}{one} cpu=4"),
            "2 Insufficient cpu. Requests 4 cpu, most free on a node 2.",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(messages(&config, &text), [format!("{none}{expected}")], "{text}");
    }
}

#[test]
fn messages_name_limits_of_queues() {
    let text = "node n1 cpu=8
        queue q cap.cpu=4
        job r queue=q
          task r cpu=3 @n1 running
        job j queue=q
          task a cpu=2";
    let why = "j-a Unschedulable queue q has no room: insufficient cpu. Limit of queue q: 4 cpu";
    let reported = messages(&conf("allocate", CAPACITY), text);
    assert_eq!(reported, [format!("{why} (spec.capability), used 3, asked 2.")]);
    let proportion = CAPACITY.replace("capacity", "proportion");
    let reported = messages(&conf("allocate", &proportion), text);
    assert_eq!(reported, [format!("{why} (deserved), used 3, asked 2.")]);
}

#[test]
fn messages_count_members_that_have_room() {
    let nodes = "node n1 cpu=8\nnode n2 cpu=8\nnode n3 cpu=8\nnode n4 cpu=8\n";
    let text = format!("{nodes}job j min=6\n  task a cpu=6 x6");
    let reported = messages(&conf("allocate, backfill", PLUGINS), &text);
    let ours = "4 of 6 members have room.";
    assert_eq!(
        [&*reported[0], &*reported[4]],
        [
            format!(
                "j-a-0 Schedulable Pod default/j-a-0 can possibly be assigned to n1, once \
                 minAvailable is satisfied. {ours}"
            ),
            format!("j-a-4 Unschedulable 0/4 nodes are unavailable: 4 Insufficient cpu. {ours}"),
        ]
    );
}

#[test]
fn messages_say_why_nothing_was_evicted() {
    let text = "node n1 cpu=2
        job r priority=10 min=2
          task r cpu=1 @n1 running x2
        job j priority=100
          task a cpu=1";
    // A vote of drf in a lower tier would offer the victims that gang has refused.
    let plugins = PLUGINS.replace("drf ", "");
    let reported = messages(&conf("allocate, preempt", &plugins), text);
    let why = "j-a Unschedulable 0/1 nodes are unavailable: 1 Insufficient cpu. Requests 1 cpu, \
        most free on a node 0. Nothing evicted: preempt: 1 victims refused by gang.";
    assert_eq!(reported, [why]);
}

/// Amounts are no reason to write for five minutes; another cause is.
#[test]
fn messages_are_made_anew_when_the_cause_changes_or_after_five_minutes() {
    let text = "node n1 cpu=8
        job r
          task r cpu=6 @n1 running
          task s cpu=1 @n1 running
        job j
          task a cpu=4";
    let mut world = World::new(&conf("allocate", PLUGINS), text);
    let why = "Unschedulable 0/1 nodes are unavailable: 1 Insufficient cpu. Requests 4 cpu, most \
        free on a node";
    let said = |cycle: &Cycle| reported(cycle).into_values().collect::<Vec<_>>();
    assert_eq!(said(&world.cycle()), [format!("{why} 1.")]);
    world.delete_pod("r-s");
    for seconds in [1, 100, 198] {
        world.tick(seconds);
        assert_eq!(said(&world.cycle()), [""; 0], "only an amount has changed");
    }
    world.tick(1);
    assert_eq!(said(&world.cycle()), [format!("{why} 2.")]);
    for seconds in [1, 299, 300] {
        world.tick(seconds);
        assert_eq!(said(&world.cycle()), [""; 0], "nothing has changed");
    }
    world.add("node n2 cpu=1");
    let now = "Unschedulable 0/2 nodes are unavailable: 2 Insufficient cpu. Requests 4 cpu, most \
        free on a node 2.";
    assert_eq!(said(&world.cycle()), [now]);
}
