//! Copies of large clusters: one fork and the first writes after it, one copy, a checkpoint, an engine with
//! its twin, and the replay of an hour.

use anyhow::{Context, ensure};
use vc_bundle::{
    Bundle, BundleWriter, History, RecordedInput, Replay, effect_line, encode_checkpoint,
};
use vc_engine::{BatchKind, CycleTime, Effect, Engine, EngineBatch, RepeatedBatch};
use vc_model::{Cluster, ClusterEvent, NodeId, ObjectKey, PodGroupPhase, TaskId};

use super::clusters::{case, engine};
use super::{Figure, millis, p99_of};
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

/// Number of rows of a part of a table.
const PART: usize = 256;
/// Number of a gang that does not exist.
const NEW_GANG: u64 = 1_000_000;

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
    let mut figures = vec![Figure { what: "ms", value, goal: 0.2 }];
    figures.extend(first_writes_to_parts(&mut engine));
    figures.extend(first_writes_to_wholes(&mut engine));
    // The fork has shared the rows until here.
    drop(fork);
    Ok(figures)
}

/// Measures the first write to each part of the tables of nodes and tasks. It copies the rows of the part.
fn first_writes_to_parts(engine: &mut Engine) -> [Figure; 2] {
    let nodes: Vec<NodeId> = engine.cluster().nodes.ids().step_by(PART).collect();
    let tasks: Vec<TaskId> = engine.cluster().tasks.ids().step_by(PART).collect();
    let write = |&node: &NodeId| change(engine, |cluster| cluster.nodes.get_mut(node).is_some());
    let of_nodes = nodes.iter().map(write).collect();
    let write = |&task: &TaskId| change(engine, |cluster| cluster.tasks.get_mut(task).is_some());
    let of_tasks = tasks.iter().map(write).collect();
    [
        Figure { what: "p99 ms, part of the nodes", value: p99_of(of_nodes), goal: 0.3 },
        Figure { what: "p99 ms, part of the tasks", value: p99_of(of_tasks), goal: 0.3 },
    ]
}

/// Measures the first writes to the largest members of the cluster that are copied as a whole. Three events make them,
/// and write to single parts of tables as well:
/// - a further pod of a job writes to the two indexes of pods;
/// - a further job writes to the index and to the order of jobs;
/// - a pod with other labels writes to the indexes of classes by content, label and namespace.
fn first_writes_to_wholes(engine: &mut Engine) -> [Figure; 3] {
    let shape = Shape { cpu_milli: 2_000, memory_gi: 8 };
    let [known, new] =
        [0, NEW_GANG].map(|number| gang(number, 4, shape, PodGroupPhase::Running, START_MICROS));
    let mut millis_of = |event| change(engine, |cluster| cluster.apply(event));
    let pods = millis_of(ClusterEvent::PodApplied(Box::new(known.pod(known.n_pods, None))));
    let jobs = millis_of(ClusterEvent::PodGroupApplied(Box::new(new.pod_group())));
    let classes = millis_of(ClusterEvent::PodApplied(Box::new(new.pod(0, None))));
    [
        Figure { what: "ms, indexes of pods", value: pods, goal: 10.0 },
        Figure { what: "ms, order of jobs", value: jobs, goal: 10.0 },
        Figure { what: "ms, indexes of classes", value: classes, goal: 10.0 },
    ]
}

/// Changes the cluster. Returns the duration in milliseconds.
fn change<T>(engine: &mut Engine, change: impl FnOnce(&mut Cluster) -> T) -> f64 {
    millis(|| engine.suppose(change)).1
}

pub(crate) fn copy() -> anyhow::Result<Vec<Figure>> {
    let engine = large()?;
    let (copy, value) = millis(|| engine.copy());
    drop(copy);
    Ok(vec![Figure { what: "ms", value, goal: 200.0 }])
}

/// Measures what the engine's thread does to make a twin, and then what the twin's thread does to have rows of its own.
pub(crate) fn hand_over() -> anyhow::Result<Vec<Figure>> {
    let mut engine = large()?;
    let (twin, handed_over) = millis(|| {
        engine.share();
        engine.twin()
    });
    let mut twin = twin.context("the configuration asks services")?;
    let ((), own) = millis(|| twin.unshare());
    Ok(vec![
        Figure { what: "ms, thread of the engine", value: handed_over, goal: 2.0 },
        Figure { what: "ms, thread of the twin", value: own, goal: 200.0 },
    ])
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

/// An engine and its twin, alone and at the peak, while a checkpoint of the twin is made and stored and its state is
/// copied for questions. Nobody asks one; the wire case `memory/10k-200k-answers` has the process that is asked.
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
