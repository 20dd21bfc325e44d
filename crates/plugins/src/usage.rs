//! Plugin `usage`: keeps pods off nodes that monitoring reports as loaded, and prefers nodes with
//! little load. What monitoring cannot see yet is estimated from the pods that came last.
//! Specification: plugins-nodes.md 12.

mod estimate;

use std::collections::BTreeSet;

use vc_conf::{Argument, Arguments, PluginOption, Section, Warning};
use vc_framework::{CacheKeys, Clock, Depends, Inputs, Plugin, PluginEntry, Points, SessionView};
use vc_model::{
    ChangeReader, Code, Column, Finding, Node, NodeId, NodeLoad, Reason, TaskId, TaskStatus,
};
use vc_resource::Dim;

use estimate::{ESTIMATOR, Estimator};

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("usage", build)
    .arguments(&[&WEIGHT, &CPU_WEIGHT, &MEMORY_WEIGHT, &THRESHOLDS, &ESTIMATOR])
    .moved_arguments(&[
        ("thresholds.cpu", "write a map, as in thresholds: {cpu: 80}"),
        ("thresholds.mem", "write a map, as in thresholds: {mem: 80}"),
        ("estimator.*", "write a map, as in estimator: {request_ratio: 0.7}"),
    ]);

const WEIGHT: Argument<i64> =
    Argument::new("usage.weight", 5, "weight of the score; 0: no score").at_least(0);
const CPU_WEIGHT: Argument<i64> =
    Argument::new("cpu.weight", 1, "weight of the load of cpu").at_least(0);
const MEMORY_WEIGHT: Argument<i64> =
    Argument::new("memory.weight", 1, "weight of the load of memory").at_least(0);
const THRESHOLDS: Argument<Section> = Argument::new(
    "thresholds",
    Section(&[&CPU_THRESHOLD, &MEMORY_THRESHOLD]),
    "load in percent above which a node is full",
);
const CPU_THRESHOLD: Argument<i64> =
    Argument::new("cpu", 80, "percent of cpu").at_least(0).at_most(100);
const MEMORY_THRESHOLD: Argument<i64> =
    Argument::new("mem", 80, "percent of memory").at_least(0).at_most(100);

const CPU_EXCEEDED: &str = "the CPU load of the node exceeds the upper limit.";
const MEMORY_EXCEEDED: &str = "the memory load of the node exceeds the upper limit.";

/// The age up to which a load counts.
const FRESH_MICROS: i64 = 300_000_000;
const BEST: f64 = 100.0;

struct UsagePlugin {
    /// Weight of the score. With 0 there is no score.
    weight: i64,
    cpu_threshold: f64,
    memory_threshold: f64,
    shares: LoadWeights,
    estimator: Estimator,
    /// What the last pods of a node are estimated to use. `None` without a load that counts, and
    /// where the estimate is zero.
    estimates: Column<NodeId, CpuMemory>,
    /// The node on which the session has put a task, by task.
    placed: Column<TaskId, NodeId>,
    /// The tasks in `placed`.
    tasks: Vec<TaskId>,
    changed: ChangeReader<NodeId>,
    /// For each node, the time of the first session in which time alone changes an answer.
    due: BTreeSet<(i64, NodeId)>,
    /// The times in `due`.
    due_micros: Column<NodeId, i64>,
    now_micros: i64,
    revision: u64,
}

/// An amount of cpu and of memory, or a part of the capacity. In millicores and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CpuMemory {
    cpu: f64,
    memory: f64,
}

/// The weights of cpu and memory in the load of a node.
#[derive(Clone, Copy, Debug)]
struct LoadWeights {
    cpu: f64,
    memory: f64,
}

impl LoadWeights {
    /// Returns the weighted mean. Returns 0 if both weights are 0.
    fn mean(self, of: CpuMemory) -> f64 {
        let sum = self.cpu + self.memory;
        if sum == 0.0 { 0.0 } else { (of.cpu * self.cpu + of.memory * self.memory) / sum }
    }
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    let arguments: &Arguments = &option.arguments;
    let thresholds = arguments.section(THRESHOLDS.key);
    let shares = LoadWeights {
        cpu: CPU_WEIGHT.read(arguments, warnings) as f64,
        memory: MEMORY_WEIGHT.read(arguments, warnings) as f64,
    };
    Box::new(UsagePlugin {
        weight: WEIGHT.read(arguments, warnings),
        cpu_threshold: CPU_THRESHOLD.read(&thresholds, warnings) as f64,
        memory_threshold: MEMORY_THRESHOLD.read(&thresholds, warnings) as f64,
        shares,
        estimator: Estimator::new(arguments, warnings),
        estimates: Column::default(),
        placed: Column::default(),
        tasks: Vec::new(),
        changed: ChangeReader::default(),
        due: BTreeSet::new(),
        due_micros: Column::default(),
        now_micros: i64::MIN,
        revision: 0,
    })
}

/// The load of the node and the pods on it are parts of its row.
const READS: Inputs = Inputs::NODE_ROW.and(Inputs::CLOCK);

impl Plugin for UsagePlugin {
    fn points(&self) -> Points {
        match self.weight {
            0 => Points::PREDICATE,
            _ => Points::PREDICATE.and(Points::NODE_ORDER).and(Points::EVENT_HANDLERS),
        }
    }

    fn depends(&self) -> Depends {
        Depends::of(&[
            (Points::PREDICATE.and(Points::NODE_ORDER), READS),
            (Points::EVENT_HANDLERS, Inputs::NONE),
        ])
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    /// Estimates anew for nodes that changed, or whose answers change with the time.
    fn open(&mut self, view: SessionView<'_>) {
        for task in self.tasks.drain(..) {
            self.placed.take(task);
        }
        let now = view.now_micros();
        let is_backward = now < self.now_micros;
        self.now_micros = now;
        let changed = self.changed.read(view.cluster.node_changes());
        let changed: Option<Vec<NodeId>> = changed.map(Iterator::collect);
        match changed.filter(|_| !is_backward) {
            Some(nodes) => nodes.into_iter().for_each(|node| {
                self.renew(view, node);
            }),
            None => {
                self.due.clear();
                self.revision += 1;
                view.info.nodes.iter().for_each(|&node| self.renew(view, node));
            }
        }
        self.pass_time(view);
    }

    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        let Some(node) = view.cluster.tasks[task].node else { return };
        if self.placed.place(task).replace(node).is_none() {
            self.tasks.push(task);
        }
        self.estimate(view, node);
    }

    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        let placed = self.placed.get(task).copied();
        if let Some(node) = view.cluster.tasks[task].node.or(placed) {
            self.estimate(view, node);
        }
    }

    fn predicate(
        &self,
        view: SessionView<'_>,
        _task: TaskId,
        node: NodeId,
        findings: &mut Vec<Finding>,
    ) {
        let Some(load) = fresh(&view.cluster.nodes[node], view.now_micros()) else { return };
        let text = if self.cpu_threshold < load.cpu_percent() {
            CPU_EXCEEDED
        } else if self.memory_threshold < load.memory_percent() {
            MEMORY_EXCEEDED
        } else {
            return;
        };
        findings.push(Finding { code: Code::Unresolvable, reason: Reason::Text(text) });
    }

    fn node_order(
        &self,
        view: SessionView<'_>,
        _task: TaskId,
        node: NodeId,
    ) -> Result<f64, String> {
        let row = &view.cluster.nodes[node];
        let Some(load) = fresh(row, view.now_micros()) else { return Ok(0.0) };
        let estimated = self.estimates.get(node).copied().unwrap_or_default();
        Ok(self.score(used_part(load, row, estimated)))
    }
}

impl CacheKeys for UsagePlugin {
    /// Returns the time at which the first load becomes too old, or the first pod is no longer new.
    fn clock(&self, _view: SessionView<'_>) -> Clock {
        self.due.first().map_or(Clock::Ignores, |&(due, _)| Clock::Until(due))
    }

    /// Returns a number that changes when time alone changed an answer.
    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }
}

impl UsagePlugin {
    /// The score of a node of which this part is used (section 12.4).
    fn score(&self, used: CpuMemory) -> f64 {
        let free = CpuMemory { cpu: 1.0 - used.cpu, memory: 1.0 - used.memory };
        self.shares.mean(free) * BEST * self.weight as f64
    }

    /// Estimates anew for the nodes that are due.
    fn pass_time(&mut self, view: SessionView<'_>) {
        while let Some(&(due, node)) = self.due.first()
            && due <= self.now_micros
        {
            self.renew(view, node);
        }
    }

    /// Renews the estimate for a node, and the time at which it is due again. If it is due now, time
    /// alone may have changed its answers, which caches learn from the revision.
    fn renew(&mut self, view: SessionView<'_>, node: NodeId) {
        if let Some(due) = self.due_micros.take(node) {
            self.due.remove(&(due, node));
            self.revision += u64::from(due <= self.now_micros);
        }
        self.estimate(view, node);
        if let Some(due) = self.due(view, node) {
            *self.due_micros.place(node) = Some(due);
            self.due.insert((due, node));
        }
    }

    /// Returns the first time after this session at which time alone changes an answer about the
    /// node. Returns `None` if time changes none.
    fn due(&self, view: SessionView<'_>, node: NodeId) -> Option<i64> {
        let row = view.cluster.nodes.get(node)?;
        let load = fresh(row, self.now_micros)?;
        let stale = load.read_micros.saturating_add(FRESH_MICROS).saturating_add(1);
        if self.weight == 0 {
            return Some(stale);
        }
        let seen = row.tasks.iter().filter_map(|&task| {
            let task = &view.cluster.tasks[task];
            let seen = task.started_micros?.saturating_add(load.interval_micros);
            (task.status == TaskStatus::Running && self.now_micros < seen).then_some(seen)
        });
        Some(seen.fold(stale, i64::min))
    }

    /// Estimates what the pods of the node use that its load may not contain yet, by start time and
    /// uid. Pods that have not started come last, by what they ask for, so that equal pods of two jobs
    /// can stand for each other. Each raises the load that the next one finds.
    fn estimate(&mut self, view: SessionView<'_>, id: NodeId) {
        let row = view.cluster.nodes.get(id);
        let loaded = row.and_then(|row| Some((row, fresh(row, self.now_micros)?)));
        let Some((row, load)) = loaded.filter(|_| self.weight != 0) else {
            self.estimates.take(id);
            return;
        };
        let is_new = |&task: &TaskId| {
            let task = &view.cluster.tasks[task];
            match task.status {
                TaskStatus::Allocated
                | TaskStatus::Pipelined
                | TaskStatus::Binding
                | TaskStatus::Bound => true,
                TaskStatus::Running => task.started_micros.is_none_or(|started| {
                    self.now_micros < started.saturating_add(load.interval_micros)
                }),
                _ => false,
            }
        };
        let mut tasks: Vec<TaskId> = row.tasks.iter().copied().filter(is_new).collect();
        tasks.sort_by_key(|&id| {
            let (task, class) = (&view.cluster.tasks[id], view.cluster.class(id));
            let (request, limits) = (&class.request, class.limits);
            let asked = task.started_micros.is_none().then(|| {
                let [cpu, memory] = [Dim::CPU, Dim::MEMORY].map(|dim| request.get(dim));
                (request.is_empty(), cpu, memory, limits.cpu_milli, limits.memory_bytes)
            });
            // Pods that have started have no `asked`, which comes first.
            (asked, task.started_micros, &task.uid)
        });
        let mut sum = CpuMemory::default();
        for task in tasks {
            let risk = self.estimator.risk(self.shares.mean(used_part(load, row, sum)));
            let class = view.cluster.class(task);
            let estimate = self.estimator.estimate(&class.request, class.limits, risk);
            sum.cpu += estimate.cpu;
            sum.memory += estimate.memory;
        }
        *self.estimates.place(id) = Some(sum).filter(|sum| *sum != CpuMemory::default());
    }
}

/// Returns the load of the node if it is not too old.
fn fresh(node: &Node, now_micros: i64) -> Option<&NodeLoad> {
    let load = node.load.as_ref()?;
    (now_micros.saturating_sub(load.read_micros) <= FRESH_MICROS).then_some(load)
}

/// Returns the parts of the capacity of a node that are used, each between 0 and 1.
fn used_part(load: &NodeLoad, node: &Node, estimated: CpuMemory) -> CpuMemory {
    let part = |percent: f64, dim: Dim, estimated: f64| {
        let capacity = node.capacity.get(dim) as f64;
        if capacity <= 0.0 {
            return 0.0;
        }
        ((percent / 100.0 * capacity + estimated) / capacity).clamp(0.0, 1.0)
    };
    CpuMemory {
        cpu: part(load.cpu_percent(), Dim::CPU, estimated.cpu),
        memory: part(load.memory_percent(), Dim::MEMORY, estimated.memory),
    }
}
