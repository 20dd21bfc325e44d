//! Instruction counts of what a twin costs the engine's thread. The limits are what it may cost.
//! Specification: answers.md 19 (gates `tee` and `idle`).

#[path = "gates/objects.rs"]
mod objects;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use vc_engine::{BatchKind, CycleTime, Effect};
use vc_kube::{EventBatch, TwinFeed, TwinInput};
use vc_model::ClusterEvent;

use crate::objects::{START_MICROS, empty_nodes, engine, gang};

const NOW: CycleTime = CycleTime { unix_micros: START_MICROS };

/// Fails above this many instructions.
fn at_most(n_instructions: u64) -> LibraryBenchmarkConfig {
    let callgrind = Callgrind::default().hard_limits([(EventKind::Ir, n_instructions)]).clone();
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

/// What the engine's thread has in hand when a cycle is over of which a twin is told.
struct FedCycle {
    feed: TwinFeed,
    batch: EventBatch,
    effects: Vec<Effect>,
    /// The end of the twin, which is kept open.
    _sent: Receiver<TwinInput>,
}

/// A cycle of these events. Their senders have made copies.
fn fed(events: Vec<ClusterEvent>) -> FedCycle {
    let mut engine = engine(empty_nodes());
    let (sender, sent) = channel();
    let mut feed = TwinFeed::new(move |input| drop(sender.send(input)), Arc::default());
    feed.start(&mut engine);
    let mut batch = EventBatch::default();
    events.iter().for_each(|event| batch.push(event.clone(), Some(event.clone())));
    let (effects, _) = engine.cycle(events, NOW);
    FedCycle { feed, batch, effects, _sent: sent }
}

/// 1,000 pods that are all bound.
fn fed_arrivals() -> FedCycle {
    let gangs = (0..20).flat_map(|number| gang(number, 50, 1000));
    let fed = fed(gangs.collect());
    let binds = fed.effects.iter().filter(|effect| matches!(effect, Effect::Bind { .. }));
    assert_eq!(binds.count(), 1000);
    fed
}

/// Nothing comes, and nothing is decided.
fn fed_nothing() -> FedCycle {
    let mut fed = fed(Vec::new());
    fed.effects.clear();
    fed
}

fn tell_the_twin(mut fed: FedCycle) -> FedCycle {
    let copy = fed.feed.copy(BatchKind::Cycle, black_box(&mut fed.batch));
    let mut copy = copy.expect("a twin follows");
    copy.add(&fed.effects);
    fed.feed.send(copy, NOW);
    fed
}

// What a twin costs the engine's thread: a copy of each event is handed on, and the effects are
// folded into a digest.
#[library_benchmark(config = at_most(LIMIT_TEE))]
#[bench::arrivals(fed_arrivals())]
fn tee(fed: FedCycle) -> FedCycle {
    tell_the_twin(fed)
}

// The same of a cycle in which nothing happens.
#[library_benchmark(config = at_most(LIMIT_IDLE))]
#[bench::nothing(fed_nothing())]
fn idle(fed: FedCycle) -> FedCycle {
    tell_the_twin(fed)
}

/// 200 for each of 1,020 events. In the profile of the tests nothing of the feed is optimized.
const LIMIT_TEE: u64 = limit(204_000, 600_000);
const LIMIT_IDLE: u64 = limit(1_000, 2_000);

/// That of the profile it is built with: releases, or tests.
const fn limit(release: u64, test: u64) -> u64 {
    if cfg!(debug_assertions) { test } else { release }
}

library_benchmark_group!(name = twin_gates, benchmarks = [tee, idle]);
main!(library_benchmark_groups = twin_gates);
