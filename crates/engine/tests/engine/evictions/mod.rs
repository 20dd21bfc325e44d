//! Laws of evictions over random small clusters and several cycles with kubelets that obey and
//! controllers that replace what is evicted: never useless, never endless, the freed place goes to
//! the job it was freed for, and nobody goes who is protected (actions.md 2.11, 11.2, A16;
//! plugins-jobs-queues.md D1, 6.8, 10-13).

mod checks;
mod crowded;
mod found;
mod shortcuts;
mod world;

use std::ops::Range;
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use vc_conf::Config;

use crate::support::*;
use checks::{
    PreviousAttempt, Promises, Protected, Rules, bound, check_gangs, check_useful, ready,
};
use vc_engine::EvictReason;
use vc_model::{ClusterEvent, fixture};
pub(crate) use world::{RACKS, Shape, With, clusters};

/// Of [`configs`]: nothing holds evictions back but votes.
const PLAIN: Range<usize> = 0..10;
/// With the plugin pdb.
const BUDGETS: Range<usize> = 10..12;
/// With cdp.
const COOLDOWN: Range<usize> = 12..14;
/// With tdm.
const ZONES: Range<usize> = 14..16;
/// With resourcequota.
const QUOTA: Range<usize> = 16..18;
/// Actions that take only from other queues.
const GUARANTEES: Range<usize> = 18..22;
/// With network-topology-aware.
const NETWORKS: Range<usize> = 22..26;

/// Each with one tier, in which gang votes.
pub(crate) fn configs() -> &'static [Config; 26] {
    static CONFIGS: OnceLock<[Config; 26]> = OnceLock::new();
    CONFIGS.get_or_init(make_configs)
}

/// Of a configuration.
fn rules(config: usize) -> Rules {
    Rules {
        conformance: true,
        cooldown: COOLDOWN.contains(&config),
        zones: ZONES.contains(&config),
        guarantees: GUARANTEES.contains(&config),
    }
}

fn make_configs() -> [Config; 26] {
    let tp = "gang{preemptable jobPipelined jobStarving jobReady jobOrder} \
        priority{taskOrder jobOrder preemptable jobPipelined jobStarving} conformance \
        proportion{overused allocatable queueOrder} predicates nodeorder";
    let elastic = "gang{preemptable reclaimable jobPipelined jobReady jobOrder} \
        priority{taskOrder jobOrder preemptable jobStarving} conformance \
        proportion{reclaimable queueOrder preemptive allocatable} predicates binpack";
    let tr = "gang{reclaimable jobPipelined jobStarving jobReady jobOrder} conformance \
        priority{jobOrder taskOrder} drf{jobOrder} \
        proportion{reclaimable queueOrder preemptive allocatable} predicates binpack";
    let both = "priority gang conformance drf{jobOrder} predicates proportion{*} binpack";
    let capacity = "gang{reclaimable jobPipelined jobStarving jobReady jobOrder} conformance \
        priority{jobOrder taskOrder} predicates binpack \
        capacity{reclaimable queueOrder preemptive allocatable jobEnqueued}";
    let tree = "priority gang conformance predicates capacity{* hierarchy} binpack";
    let deep = "priority gang conformance predicates \
        capacity{* hierarchy ancestorReclaimLevel=1} binpack";
    let zones = "tdm{* tdm.revocable-zone.open=0:00-0:00 tdm.revocable-zone.shut=0:00-0:01 \
        tdm.evict.period=1s}";
    let networks = "network-topology-aware";
    let all = "enqueue, allocate, preempt, reclaim, backfill";
    let every = "enqueue, allocate, gangpreempt, preempt, gangreclaim, reclaim, backfill";
    let dry = conf("allocate, preempt, backfill", tp);
    let dry = with_arguments(dry, "preempt", "{enableTopologyAwarePreemption: true}");
    [
        conf("allocate, preempt, backfill", tp),
        dry,
        conf("allocate, reclaim, backfill", tr),
        conf(all, both),
        with_arguments(conf(all, elastic), "preempt", "{trimStatement: true}"),
        conf("allocate, backfill, reclaim, preempt", elastic),
        conf("enqueue, allocate, reclaim, backfill", capacity),
        conf(all, tree),
        conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", both),
        conf("allocate, preempt, gangpreempt, reclaim, gangreclaim, backfill", elastic),
        conf(all, &format!("{elastic} pdb")),
        conf("allocate, gangpreempt, reclaim, gangreclaim, backfill", &format!("{both} pdb")),
        conf(all, &format!("{elastic} cdp")),
        conf("allocate, gangpreempt, reclaim, gangreclaim, backfill", &format!("{both} cdp")),
        conf("allocate, preempt, shuffle, backfill", &format!("{tp} {zones}")),
        conf("allocate, shuffle, backfill, reclaim, preempt", &format!("{elastic} {zones}")),
        conf("enqueue, allocate, preempt, backfill", &format!("{tp} resourcequota")),
        conf(all, &format!("{both} resourcequota")),
        conf("allocate, reclaim, backfill", tr),
        conf("enqueue, allocate, reclaim, backfill", capacity),
        conf("enqueue, allocate, reclaim, backfill", deep),
        conf("enqueue, allocate, gangreclaim, backfill", tree),
        conf("allocate, preempt, backfill", &format!("{tp} {networks}")),
        conf("enqueue, allocate, reclaim, backfill", &format!("{tr} {networks}")),
        conf("allocate, gangpreempt, gangreclaim, backfill", &format!("{both} {networks}")),
        conf(every, &format!("{elastic} {networks}")),
    ]
}

const N_CYCLES: u32 = 40;

/// How a cluster is run.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Of [`configs`].
    config: usize,
    /// Kubelets obey after every so many cycles.
    lag: u32,
    /// The scheduler starts anew before this cycle.
    restart: Option<u32>,
}

fn runs(law: &Law) -> impl Strategy<Value = Run> + use<> {
    let restart = match law.restarts {
        true => prop::option::weighted(0.2, 1_u32..4).boxed(),
        false => Just(None).boxed(),
    };
    let configs = law.configs.clone();
    (configs, 1_u32..4, restart).prop_map(|(config, lag, restart)| Run { config, lag, restart })
}

fn live(run: Run, text: &str) -> Result<(), String> {
    let (config, lag) = (&configs()[run.config], run.lag);
    let world = World::new(config, text);
    let mut world = if lag == 1 { world } else { world.alone() };
    if NETWORKS.contains(&run.config) {
        fixture::events_of(RACKS).into_iter().for_each(|event| world.send(event));
        world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    }
    let mut n_quiet = 0;
    let mut story = String::new();
    let mut promises = Promises::default();
    let mut protected = Protected::of(text);
    for number in 0..N_CYCLES {
        // Who has left by then is known to nobody.
        if run.restart == Some(number) && number % lag != 0 {
            world.restart(config);
            story.push_str("restart\n");
        }
        world.deliver();
        let n_ready = ready(world.engine.cluster());
        let before = PreviousAttempt::of(world.engine.cluster(), config, world.now_micros());
        let cycle = world.cycle();
        story.push_str(&format!("--- {number}\n{}\n", cycle.decisions()));
        let cluster = world.engine.cluster();
        let proofs = cycle.report.certificates.iter();
        let for_somebody = proofs.filter(|it| it.action != EvictReason::Shuffle).count();
        let checked = check_useful(cluster, &cycle)
            .and_then(|()| check_gangs(cluster, &cycle, &n_ready))
            .and_then(|()| promises.check(cluster, &cycle, &before, (number, lag)))
            .and_then(|()| protected.check(cluster, &cycle, &before, rules(run.config)))
            .and_then(|()| match N_CYCLES - 4 < number && 0 < for_somebody {
                true => Err("no end of evictions".to_owned()),
                false => Ok(()),
            });
        checked.map_err(|why| format!("{why}\n{story}"))?;
        let quiet = bound(&cycle).is_empty() && cycle.report.n_evictions == 0;
        n_quiet = if quiet { n_quiet + 1 } else { 0 };
        if lag < n_quiet {
            break;
        }
        if (number + 1) % lag == 0 {
            world.kubelets_and_controllers();
        }
        world.tick(1);
    }
    Ok(())
}

/// One kind of clusters, and what they are run with.
struct Law {
    name: &'static str,
    shape: Shape,
    /// Of [`configs`].
    configs: Range<usize>,
    /// Whether the scheduler may start anew.
    restarts: bool,
}

fn laws() -> [Law; 11] {
    let shape = Shape {
        nodes: 1..4,
        copies: 1..2,
        slots: 20..26,
        best_effort: false,
        ports: false,
        with: With::Nothing,
    };
    let law = |name, shape, configs| Law { name, shape, configs, restarts: true };
    let with = |with| Shape { with, ..shape.clone() };
    // The world does not keep the objects that limit evictions.
    let unbroken = |law| Law { restarts: false, ..law };
    [
        law("cpu", shape.clone(), PLAIN),
        law("alike", Shape { nodes: 3..9, copies: 1..6, ..shape.clone() }, PLAIN),
        law("slots", Shape { slots: 2..6, best_effort: true, ..shape.clone() }, PLAIN),
        law("ports", Shape { ports: true, ..shape.clone() }, PLAIN),
        unbroken(law("budgets", with(With::Budget), BUDGETS)),
        law("cooldown", with(With::Cooldown), COOLDOWN),
        law("zones", with(With::Zones), ZONES),
        law("zones and ports", Shape { ports: true, ..with(With::Zones) }, ZONES),
        unbroken(law("quota", with(With::Quota), QUOTA)),
        law("guarantees", with(With::Guarantees), GUARANTEES),
        law("networks", Shape { nodes: 2..6, ..with(With::HyperNodes) }, NETWORKS),
    ]
}

/// Runs random clusters of a law.
///
/// # Errors
/// The smallest cluster that breaks it, with its story and the seed.
fn run(law: &Law, seed: u64, cases: u32) -> Result<(), String> {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let strategy = (clusters(&law.shape), runs(law));
    let outcome =
        runner.run(&strategy, |(text, run)| live(run, &text).map_err(TestCaseError::fail));
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, (text, run))) => {
            Err(format!("{} with seed {seed}: {why}\n{run:?}\n{text}", law.name))
        }
        Err(TestError::Abort(why)) => Err(format!("{} with seed {seed}: aborted: {why}", law.name)),
    }
}

fn check(name: &str, seed: u64, cases: u32) {
    let law = laws().into_iter().find(|law| law.name == name).expect("it is listed");
    if let Err(why) = run(&law, seed, cases) {
        panic!("{why}");
    }
}

// Together more than 10,000 clusters, in parts that run beside each other.

#[test]
fn evictions_are_useful_and_end() {
    check("cpu", 1, 1_200);
}

#[test]
fn evictions_are_useful_and_end_again() {
    check("cpu", 2, 500);
}

#[test]
fn evictions_for_pods_alike_are_useful_and_end() {
    check("alike", 13, 1_000);
}

#[test]
fn evictions_for_slots_are_useful_and_end() {
    check("slots", 3, 1_500);
}

#[test]
fn evictions_for_slots_are_useful_and_end_again() {
    check("slots", 4, 300);
}

#[test]
fn evictions_for_ports_are_useful_and_end() {
    check("ports", 5, 1_200);
}

#[test]
fn evictions_for_ports_are_useful_and_end_again() {
    check("ports", 6, 300);
}

#[test]
fn evictions_keep_budgets_and_end() {
    check("budgets", 8, 1_000);
}

#[test]
fn evictions_keep_cooldowns_and_end() {
    check("cooldown", 9, 700);
}

#[test]
fn evictions_drain_zones_and_end() {
    check("zones", 10, 700);
}

/// What predicates finds hides what tdm would.
#[test]
fn evictions_drain_zones_with_ports_and_end() {
    check("zones and ports", 14, 400);
}

#[test]
fn evictions_keep_quotas_and_end() {
    check("quota", 11, 600);
}

#[test]
fn evictions_keep_guarantees_and_end() {
    check("guarantees", 12, 1_500);
}

#[test]
fn evictions_in_hyper_nodes_are_useful_and_end() {
    check("networks", 15, 800);
}

/// `make fuzz-evict`: FUZZ_EVICT=forever goes on with ever new seeds until something breaks,
/// FUZZ_EVICT=<seed> repeats one. Without it, a few clusters of a seed of its own.
#[test]
fn fuzz_evict() {
    let reported = |law: &Law, seed: u64| {
        eprintln!("{}: 1000 clusters with seed {seed}", law.name);
        run(law, seed, 1_000)
    };
    let all = |seed: u64| check_at_once(&laws(), |law| reported(law, seed));
    let outcome = match FuzzRequest::of("FUZZ_EVICT", 7) {
        FuzzRequest::Few(seed) => laws().iter().try_for_each(|law| run(law, seed, 20)),
        FuzzRequest::Seed(seed) => all(seed),
        FuzzRequest::Forever(first) => (first..).try_for_each(all),
    };
    outcome.unwrap_or_else(|why| panic!("{why}"));
}
