//! Plain against fast evaluator over random clusters, random events and many cycles: `World` runs
//! both and compares effects and reports of every cycle, so that decisions, statuses, conditions,
//! events and messages are the same (actions.md 12.2). Quiet cycles are among them.

mod story;

use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use vc_conf::Config;

use crate::support::*;
use story::{Step, Story, stories};

/// What ships, the legends of the specification's cases, and every plugin at least twice.
fn configs() -> &'static [Config] {
    static CONFIGS: OnceLock<Vec<Config>> = OnceLock::new();
    CONFIGS.get_or_init(make_configs)
}

fn make_configs() -> Vec<Config> {
    let all = "enqueue, allocate, preempt, reclaim, backfill";
    let chart =
        "priority gang conformance | overcommit drf predicates proportion nodeorder binpack";
    let flat = "priority gang conformance pdb sla=1 | drf predicates capacity nodeorder";
    let flat = flat.replace("sla=1", "sla{* sla-waiting-time=90s}");
    let tree = "priority gang conformance cdp | predicates capacity{* hierarchy} binpack nodeorder";
    let quota = "priority gang | overcommit resourcequota proportion predicates nodeorder";
    let zones = "priority gang conformance tdm{* tdm.revocable-zone.rz1=00:30-23:30} | drf \
        predicates proportion nodeorder";
    let quotas = "priority gang conformance | predicates nodeorder cohort{* \
        withinClusterQueue=LowerPriority reclaimWithinCohort=Any}";
    let dry = with_arguments(conf(all, chart), "preempt", "{enableTopologyAwarePreemption: true}");
    vec![
        conf("enqueue, allocate, backfill", chart),
        conf(all, chart),
        dry,
        conf(all, &flat),
        conf(all, tree),
        conf("enqueue, allocate, backfill, shuffle", quota),
        conf("enqueue, allocate, preempt, reclaim, backfill, shuffle", zones),
        conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", chart),
        conf(all, quotas),
        conf(all, &quotas.replace("cohort{*", "cohort{* fairSharing.enable=true")),
        conf("allocate, backfill", TA),
        conf("allocate, preempt", "priority | predicates nodeorder"),
    ]
}

fn tell(world: &mut World, step: &Step, seen: &mut usize) {
    match step {
        Step::Add(text) => world.add(text),
        Step::DeletePod(place) => {
            world.nth_pod(*place).into_iter().for_each(|pod| world.delete_pod(&pod));
        }
        Step::DeleteNode(name) => world.delete_node(name),
        Step::DeleteQueue(name) => world.delete_queue(name),
        Step::DeleteGroup(name) => world.delete_group(name),
        Step::End(place, phase) => {
            let pod = world.nth_pod(*place).filter(|pod| world.pod(pod).node_name.is_some());
            pod.into_iter().for_each(|pod| world.edit(&pod, |pod| pod.phase = *phase));
        }
        Step::Label(place, value) => {
            let pod = world.nth_pod(*place);
            let label = |pod: &mut vc_model::PodRecord| {
                pod.labels.insert("app".into(), (*value).into());
            };
            pod.into_iter().for_each(|pod| world.edit(&pod, label));
        }
        Step::Kubelets => world.kubelets(),
        Step::Controllers => world.kubelets_and_controllers(),
        Step::Tick(seconds) => world.tick(*seconds),
        Step::Configure(which) => world.configure(&configs()[which % configs().len()]),
        Step::Refuse(every) => *seen = *every,
    }
}

/// Panics where the two differ.
fn live(story: &Story) {
    let mut world = World::new(&configs()[story.config % configs().len()], &story.cluster);
    for steps in &story.turns {
        // Of the binds of this cycle, every so many fail; 0: none.
        let mut refused_every = 0;
        steps.iter().for_each(|step| tell(&mut world, step, &mut refused_every));
        world.cycle_refusing(refused_every);
    }
}

/// Runs random stories.
///
/// # Errors
/// The smallest story in which the two differ, and the seed.
fn run(seed: u64, cases: u32) -> Result<(), String> {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&stories(), |story| {
        live(&story);
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, story)) => Err(format!("with seed {seed}: {why}\n{story}")),
        Err(TestError::Abort(why)) => Err(format!("with seed {seed}: aborted: {why}")),
    }
}

fn check(seed: u64, cases: u32) {
    if let Err(why) = run(seed, cases) {
        panic!("{why}");
    }
}

// Together 10,000 stories, in parts that run beside each other.

#[test]
fn fast__differential() {
    check(1, 2_500);
}

#[test]
fn fast__differential_again() {
    check(2, 2_500);
}

#[test]
fn fast__differential_once_more() {
    check(3, 2_500);
}

#[test]
fn fast__differential_to_the_end() {
    check(4, 2_500);
}

/// `make fuzz-fast`: FUZZ_FAST=forever goes on with ever new seeds until the two differ,
/// FUZZ_FAST=<seed> repeats one. Without it, a few stories of a seed of its own.
#[test]
fn fuzz_fast() {
    let wanted = std::env::var("FUZZ_FAST").unwrap_or_default();
    let mut seed = wanted.parse().unwrap_or_else(|_| match wanted.is_empty() {
        true => 5,
        false => std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()),
    });
    let cases = if wanted.is_empty() { 20 } else { 1_000 };
    loop {
        if !wanted.is_empty() {
            eprintln!("{cases} stories with seed {seed}");
        }
        check(seed, cases);
        if wanted != "forever" {
            return;
        }
        seed += 1;
    }
}
