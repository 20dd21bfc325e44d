//! Copies of large clusters: one fork, one copy, a checkpoint, an engine with its twin and its history,
//! and the replay of an hour.

use anyhow::{Context, ensure};
use vc_bundle::{
    Bundle, BundleWriter, History, RecordedInput, Replay, effect_line, encode_checkpoint,
};
use vc_engine::{BatchKind, CycleTime, Effect, Engine, EngineBatch, RepeatedBatch};
use vc_model::{ClusterEvent, ObjectKey, PodGroupPhase};

use super::clusters::{case, engine};
use super::{Figure, millis};
use crate::cases::START_MICROS;
use crate::load::{apply, base, events, gang, load_empty, load_idle};
use crate::meter::{cost_of, peak_rss_kib};
use crate::objects::{Gang, Shape};

const MIB: f64 = 1024.0 * 1024.0;
/// Cycles of an hour, one a second.
const CYCLES: u64 = 3_600;
/// Pods that come in a cycle, and how many cycles they run.
const ARRIVING: u64 = 28;
const RUNNING_CYCLES: u64 = 600;

/// Second of a cycle in which nothing is remembered any more of what the first one wrote.
const SETTLED: u64 = 200;

/// A cluster of 10,000 nodes with 200,000 pods, some minutes after the start.
fn large() -> anyhow::Result<Engine> {
    let mut engine = engine(vc_conf::CHART)?;
    let mut case = case(10_000, 4);
    case.n_running = 200_000;
    load_idle(&case, &mut engine);
    drop(engine.cycle(Vec::new(), time(1)));
    drop(engine.cycle(Vec::new(), time(SETTLED)));
    Ok(engine)
}

fn time(cycle: u64) -> CycleTime {
    CycleTime { unix_micros: START_MICROS + cycle as i64 * 1_000_000 }
}

pub(crate) fn fork() -> anyhow::Result<Vec<Figure>> {
    let mut engine = large()?;
    // As the twin does before it is asked.
    let (fork, value) = millis(|| {
        engine.share();
        engine.fork()
    });
    drop(fork);
    Ok(vec![Figure { what: "ms", value, goal: 0.2 }])
}

pub(crate) fn copy() -> anyhow::Result<Vec<Figure>> {
    let engine = large()?;
    let (copy, value) = millis(|| engine.copy());
    drop(copy);
    Ok(vec![Figure { what: "ms", value, goal: 200.0 }])
}

pub(crate) fn checkpoint() -> anyhow::Result<Vec<Figure>> {
    let copy = large()?.copy();
    let (encoded, cost) = cost_of(|| {
        let checkpoint = copy.into_checkpoint(time(SETTLED + 1).unix_micros)?;
        encode_checkpoint(&checkpoint).map_err(anyhow::Error::msg)
    })?;
    let size = encoded?.size() as f64 / MIB;
    Ok(vec![
        Figure { what: "s of CPU", value: cost.cpu_nanos as f64 / 1e9, goal: 2.0 },
        Figure { what: "MiB", value: size, goal: 16.0 },
    ])
}

/// The cycle of 100,000 placements, done again by the twin.
pub(crate) fn twin() -> anyhow::Result<Vec<Figure>> {
    let mut engine = engine(vc_conf::CHART)?;
    let mut case = case(10_000, 10);
    (case.n_pending, case.n_running) = (100_000, 0);
    load_empty(&case, &mut engine);
    let mut twin = engine.twin().context("the configuration asks services")?;
    let batch = EngineBatch { kind: BatchKind::Cycle, events: Vec::new(), now: time(1), digest: 0 };
    let expected = batch.clone().repeat(&mut engine).digest;
    let (repeated, value) = millis(|| batch.repeat(&mut twin));
    ensure!(repeated.digest == expected, "the twin decides otherwise");
    Ok(vec![Figure { what: "ms", value, goal: 400.0 }])
}

/// An engine, its twin and 32 MiB of history, while a checkpoint is made and a job is asked about.
pub(crate) fn memory() -> anyhow::Result<Vec<Figure>> {
    let mut engine = large()?;
    let mut twin = engine.twin().context("the configuration asks services")?;
    let now = time(SETTLED + 1);
    drop(twin.cycle(Vec::new(), now));
    let (_effects, report) = engine.cycle(Vec::new(), now);
    let alone = peak_rss_kib()?;
    let mut history = History::new(32 << 20);
    let segment = history.begin(twin.n_cycles(), now.unix_micros);
    twin.share();
    let checkpoint = twin.copy().into_checkpoint(now.unix_micros)?;
    let encoded = encode_checkpoint(&checkpoint).map_err(anyhow::Error::msg)?;
    drop(checkpoint);
    history.put_checkpoint(segment, encoded);
    let state = vc_answers::AnswerState::new(&twin, &report);
    ensure!(state.as_of().cycle == twin.n_cycles(), "a copy of another cycle");
    Ok(vec![
        Figure { what: "MiB, engine and twin", value: alone as f64 / 1024.0, goal: 512.0 },
        Figure { what: "MiB, peak", value: peak_rss_kib()? as f64 / 1024.0, goal: 512.0 },
    ])
}

/// An hour of 100,000 pods, each of which runs ten minutes.
pub(crate) fn replay() -> anyhow::Result<Vec<Figure>> {
    let mut engine = engine(vc_conf::CHART)?;
    let case = case(1_000, ARRIVING);
    apply(&mut engine, base(&case));
    let mut history = History::new(usize::MAX);
    let segment = history.begin(engine.n_cycles(), time(0).unix_micros);
    let checkpoint = engine.copy().into_checkpoint(time(0).unix_micros)?;
    let encoded = encode_checkpoint(&checkpoint).map_err(anyhow::Error::msg)?;
    history.put_checkpoint(segment, encoded);
    let mut bound = Vec::new();
    for cycle in 1..=CYCLES {
        let mut events = std::mem::take(&mut bound);
        events.extend(arriving(cycle));
        events.extend(ended(cycle));
        let now = time(cycle);
        let mut batch = EngineBatch { kind: BatchKind::Cycle, events, now, digest: 0 };
        let RepeatedBatch { digest, effects, .. } = batch.clone().repeat(&mut engine);
        batch.digest = digest;
        let effect_lines = effects.iter().map(effect_line).collect();
        history.record(&RecordedInput::Batch { batch, effect_lines }, engine.n_cycles());
        bound = running(cycle, &effects);
        ensure!(!bound.is_empty(), "cycle {cycle} has bound nothing");
    }
    let mut file = Vec::new();
    BundleWriter::new(&history.copy(), None)?.write(&mut file)?;
    let ((), millis) = {
        let (result, millis) = millis(|| replay_all(&file));
        (result?, millis)
    };
    Ok(vec![
        Figure { what: "s", value: millis / 1e3, goal: 60.0 },
        Figure { what: "MiB of the file", value: file.len() as f64 / MIB, goal: 32.0 },
    ])
}

fn replay_all(file: &[u8]) -> anyhow::Result<()> {
    let mut replay = Replay::new(&Bundle::read(file)?, None)?;
    let mut n_steps = 0;
    while let Some(step) = replay.step() {
        ensure!(step.is_same, "cycle {} decides otherwise", step.cycle);
        n_steps += 1;
    }
    ensure!(n_steps == CYCLES, "{n_steps} steps");
    Ok(())
}

/// The gang that comes before a cycle.
fn arriving_gang(cycle: u64) -> Gang {
    let shape = Shape { cpu_milli: 500 + 250 * (cycle % 16) as i64, memory_gi: 2 };
    gang(cycle, ARRIVING, shape, PodGroupPhase::Pending, time(cycle).unix_micros)
}

fn arriving(cycle: u64) -> Vec<ClusterEvent> {
    events(&arriving_gang(cycle), |_| None)
}

/// The gang that has run long enough is deleted.
fn ended(cycle: u64) -> Vec<ClusterEvent> {
    let Some(begun) = cycle.checked_sub(RUNNING_CYCLES).filter(|&begun| 0 < begun) else {
        return Vec::new();
    };
    let gang = arriving_gang(begun);
    let pods = (0..ARRIVING).map(|index| {
        let pod = gang.pod(index, None);
        ClusterEvent::PodDeleted { key: pod.key, uid: pod.uid }
    });
    pods.chain([ClusterEvent::PodGroupDeleted { key: gang.pod_group().key }]).collect()
}

/// What the watch says of the pods that were bound: they run.
fn running(cycle: u64, effects: &[Effect]) -> Vec<ClusterEvent> {
    let gang = arriving_gang(cycle);
    let pods = (0..ARRIVING).map(|index| gang.pod(index, None));
    let mut node_of = std::collections::BTreeMap::<ObjectKey, u64>::new();
    for effect in effects {
        if let Effect::Bind { pod, node, .. } = effect {
            let number = node.rsplit('-').next().and_then(|text| text.parse().ok());
            node_of.extend(number.map(|number| (pod.clone(), number)));
        }
    }
    let bound = pods.enumerate().filter_map(|(index, pod)| {
        let node = node_of.get(&pod.key)?;
        Some(ClusterEvent::PodApplied(Box::new(gang.pod(index as u64, Some(*node)))))
    });
    bound.collect()
}
