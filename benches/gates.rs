//! Instruction counts of five pieces of work, with limits (counts gate, seconds do not): `make gates`
//! in the release profile, and part of `make test` in that of the tests, where nothing has to be
//! built for it. A limit is what was counted, plus a tenth; whoever makes something faster lowers it.

#[path = "gates/json.rs"]
mod json;
#[path = "gates/objects.rs"]
mod objects;
#[path = "gates/residents.rs"]
mod residents;

use std::hint::black_box;

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use vc_engine::{CycleTime, Effect, Engine};
use vc_model::ClusterEvent;
use vc_wire::SlimPod;

use crate::json::pod_json;
use crate::objects::{N_NODES, START_MICROS, empty_nodes, engine, gang};
use crate::residents::full_nodes;

const NOW: CycleTime = CycleTime { unix_micros: START_MICROS };

/// Fails above this many instructions.
fn at_most(n_instructions: u64) -> LibraryBenchmarkConfig {
    let callgrind = Callgrind::default().hard_limits([(EventKind::Ir, n_instructions)]).clone();
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

/// Nothing fits: every shape looks at every node.
fn nothing_fits() -> Engine {
    let gangs = (0..20).flat_map(|number| gang(number, 5, 3000 + 250 * number));
    engine(full_nodes().chain(gangs))
}

/// Gangs of 50 that all fit.
fn all_fits() -> Engine {
    let gangs = (0..20).flat_map(|number| gang(number, 50, 500 * (1 + number % 4)));
    engine(empty_nodes().chain(gangs))
}

/// Gangs of which all but the last pod fit: what was placed is undone.
fn nearly_fits() -> Engine {
    let n_pods = N_NODES + 1;
    let gangs = (0..5).flat_map(|number| gang(number, n_pods, 40_000 + 250 * number));
    engine(empty_nodes().chain(gangs))
}

fn arrivals() -> (Engine, Vec<ClusterEvent>) {
    let gangs = (0..20).flat_map(|number| gang(number, 50, 1000));
    (engine(empty_nodes()), gangs.collect())
}

/// Without space between their parts, as API servers send them.
fn pods() -> Vec<String> {
    let compact = |text: String| {
        let pod: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        pod.to_string()
    };
    (0..200).map(pod_json).map(compact).collect()
}

fn cycle(mut engine: Engine, n_binds: usize) -> Engine {
    let (effects, _) = black_box(engine.cycle(Vec::new(), NOW));
    let binds = effects.iter().filter(|effect| matches!(effect, Effect::Bind { .. }));
    assert_eq!(binds.count(), n_binds);
    engine
}

#[library_benchmark(config = at_most(LIMIT_SCAN))]
#[bench::full(nothing_fits())]
fn scan(engine: Engine) -> Engine {
    cycle(engine, 0)
}

#[library_benchmark(config = at_most(LIMIT_PLACE))]
#[bench::gangs(all_fits())]
fn place(engine: Engine) -> Engine {
    cycle(engine, 1000)
}

#[library_benchmark(config = at_most(LIMIT_UNDO))]
#[bench::gangs(nearly_fits())]
fn undo(engine: Engine) -> Engine {
    cycle(engine, 0)
}

#[library_benchmark(config = at_most(LIMIT_APPLY))]
#[bench::pods(arrivals())]
fn apply((mut engine, events): (Engine, Vec<ClusterEvent>)) -> Engine {
    engine.apply(black_box(events));
    engine
}

#[library_benchmark(config = at_most(LIMIT_DECODE))]
#[bench::pods(pods())]
fn decode(pods: Vec<String>) -> usize {
    let record = |text: &String| {
        let slim: SlimPod = vc_wire::scanned(text).expect("it is a compact pod");
        black_box(slim.to_record()).expect("it has a name")
    };
    pods.iter().map(record).filter(|(_, problems)| problems.is_empty()).count()
}

const LIMIT_SCAN: u64 = limit(4_330_000, 11_400_000);
const LIMIT_PLACE: u64 = limit(26_600_000, 58_700_000);
const LIMIT_UNDO: u64 = limit(74_100_000, 169_700_000);
const LIMIT_APPLY: u64 = limit(10_660_000, 19_100_000);
const LIMIT_DECODE: u64 = limit(10_760_000, 98_900_000);

/// That of the profile it is built with: releases, or tests.
const fn limit(release: u64, test: u64) -> u64 {
    if cfg!(debug_assertions) { test } else { release }
}

library_benchmark_group!(name = gates, benchmarks = [scan, place, undo, apply, decode]);
main!(library_benchmark_groups = gates);
