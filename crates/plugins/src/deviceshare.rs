//! Plugin `deviceshare`: shares accelerators between pods where the resources of Kubernetes cannot
//! describe the parts. Each kind of devices is a file of this folder. Specification:
//! plugins-nodes.md 16.

mod assigned;
mod config;
mod exclusive;
mod family;
mod gpu_share;
mod locks;
mod mind_cluster;
mod reports;
mod vgpu;
mod vnpu;

use std::sync::Arc;

use vc_conf::{Argument, ArgumentShape, PluginOption, Warning};
use vc_framework::{
    CacheKeys, Clock, ColumnFill, Depends, EarlierMemory, Inputs, NodeTest, NodeTests, Outbox,
    Plugin, PluginEntry, PluginMemory, Points, RawScore, Records, ScoreColumn, SessionView,
    VectorizedPlugin,
};
use vc_model::{Code, Finding, JobId, Labels, NodeId, Reservation, TaskId, TaskStatus};
use vc_resource::Resource;

use config::DEVICE_CONFIG;
pub use config::{DeviceConfigMap, needs_device_reports, with_device_config};
use exclusive::ExclusiveRules;
use family::{Choice, DeviceFamily, DeviceNode, DevicePolicy, Query, Refusal};
use gpu_share::GpuShare;
use locks::NodeLocks;
use mind_cluster::MindCluster;
use reports::DeviceReports;
use vgpu::Vgpu;
use vnpu::Vnpu;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("deviceshare", build)
    .arguments(&[
        &GPU_SHARING,
        &GPU_NUMBER,
        &VGPU,
        &ASCEND_HAMI,
        &ASCEND_MIND_CLUSTER,
        &NODE_LOCK,
        &POLICY,
        &WEIGHT,
        &CONFIG_MAP,
        &CONFIG_MAP_NAMESPACE,
        &DEVICE_CONFIG,
        &EXCLUSIVE_RULES,
    ])
    .moved_arguments(&[("NodeLockEnable", "write deviceshare.NodeLockEnable")])
    .exclusive_arguments(&[
        (GPU_SHARING.key, GPU_NUMBER.key, "can not define true in both gpu sharing and gpu number"),
        (GPU_SHARING.key, VGPU.key, NO_GPU_BESIDE_VGPU),
        (GPU_NUMBER.key, VGPU.key, NO_GPU_BESIDE_VGPU),
    ]);
const NO_GPU_BESIDE_VGPU: &str = "gpu-share and vgpu can't be used together";

const GPU_SHARING: Argument<bool> =
    Argument::new("deviceshare.GPUSharingEnable", false, "share cards by memory");
const GPU_NUMBER: Argument<bool> = Argument::new(
    "deviceshare.GPUNumberEnable",
    false,
    "whole cards by number; not together with sharing",
);
const VGPU: Argument<bool> =
    Argument::new("deviceshare.VGPUEnable", false, "vGPU; not together with either of the above");
const ASCEND_HAMI: Argument<bool> =
    Argument::new("deviceshare.AscendHAMiVNPUEnable", false, "Ascend vNPU by HAMi");
const ASCEND_MIND_CLUSTER: Argument<bool> = Argument::new(
    "deviceshare.AscendMindClusterVNPUEnable",
    false,
    "Ascend 310P vNPU by MindCluster",
);
const NODE_LOCK: Argument<bool> =
    Argument::new("deviceshare.NodeLockEnable", false, "lock the node before a bind");
const POLICY: Argument<&str> =
    Argument::new("deviceshare.SchedulePolicy", "", "`binpack`, `spread`, else the default order");
const WEIGHT: Argument<i64> = Argument::new(
    "deviceshare.ScheduleWeight",
    0,
    "weight of the device score; 0 or less: no score",
);
const CONFIG_MAP: Argument<&str> = Argument::new(
    "deviceshare.KnownGeometriesCMName",
    "volcano-vgpu-device-config",
    "ConfigMap with the device configuration",
);
const CONFIG_MAP_NAMESPACE: Argument<&str> = Argument::new(
    "deviceshare.KnownGeometriesCMNamespace",
    "kube-system",
    "namespace of that ConfigMap",
);
const EXCLUSIVE_RULES: Argument<ArgumentShape> = Argument::new(
    "deviceshare.GPUExclusiveRules",
    ArgumentShape::List(&ArgumentShape::MapOf(&ArgumentShape::Text)),
    "labels by rule; pods that match one rule share no GPU with each other",
)
.shown_as("empty");

struct DeviceShare {
    /// The kinds that are switched on, in the order in which they are asked.
    kinds: Vec<Box<dyn DeviceFamily>>,
    weight: i64,
    /// True if the choice of devices reads labels of pods.
    reads_labels: bool,
    reports: DeviceReports,
    /// The locks of nodes. `None` if nodes are not locked.
    locks: Option<NodeLocks>,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    let arguments = &option.arguments;
    let mut kinds: Vec<Box<dyn DeviceFamily>> = Vec::new();
    let policy = DevicePolicy::of(&POLICY.read(arguments, warnings));
    match (GPU_SHARING.read(arguments, warnings), GPU_NUMBER.read(arguments, warnings)) {
        (true, _) => kinds.push(Box::new(GpuShare::ByMemory)),
        (_, true) => kinds.push(Box::new(GpuShare::ByNumber)),
        _ => {}
    }
    let rules = ExclusiveRules::read(EXCLUSIVE_RULES.key, arguments, warnings);
    if VGPU.read(arguments, warnings) {
        let config = config::vgpu(arguments, warnings);
        kinds.push(Box::new(Vgpu { config, policy, rules: rules.clone() }));
    }
    if ASCEND_MIND_CLUSTER.read(arguments, warnings) {
        kinds.push(Box::new(MindCluster));
    }
    if ASCEND_HAMI.read(arguments, warnings) {
        let config::VnpuConfig { is_soft, chips } = config::vnpu(arguments, warnings);
        let kinds_of = chips.into_iter().map(|chip| Vnpu { chip, policy, is_soft });
        kinds.extend(kinds_of.map(|kind| -> Box<dyn DeviceFamily> { Box::new(kind) }));
    }
    let weight = WEIGHT.read(arguments, warnings);
    let reads_labels = !rules.is_empty();
    let locks = NODE_LOCK.read(arguments, warnings).then(NodeLocks::default);
    Box::new(DeviceShare { kinds, weight, reads_labels, reports: DeviceReports::default(), locks })
}

/// What the choice of devices reads: the request, and the pods and annotations of the node.
const READS: Inputs = Inputs::POD_SHAPE.and(Inputs::NODE_ROW).and(Inputs::NODE_OBJECT);

impl Plugin for DeviceShare {
    fn points(&self) -> Points {
        let points = Points::PREDICATE.and(Points::EVENT_HANDLERS).and(Points::SIMULATION);
        let has_batch = self.kinds.iter().any(|kind| kind.has_batch_scores());
        match (self.kinds.is_empty(), self.weight, has_batch) {
            (true, ..) => Points::NONE,
            (false, ..=0, _) => points,
            (false, _, false) => points.and(Points::NODE_ORDER),
            (false, _, true) => points.and(Points::NODE_ORDER).and(Points::BATCH_NODE_ORDER),
        }
    }

    fn depends(&self) -> Depends {
        let labels = if self.reads_labels { Inputs::POD_LABELS } else { Inputs::NONE };
        let clock = if self.locks.is_some() { Inputs::CLOCK } else { Inputs::NONE };
        let reads = READS.and(labels).and(clock);
        Depends::of(&[
            (Points::PREDICATE, reads),
            (Points::NODE_ORDER, reads),
            (Points::BATCH_NODE_ORDER, reads),
            (Points::EVENT_HANDLERS, reads),
        ])
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        self.locks.as_ref().map(|_| -> &dyn CacheKeys { self })
    }

    fn as_vectorized(&self) -> Option<&dyn VectorizedPlugin> {
        Some(self)
    }

    /// Returns what is reported, so that nothing is reported again.
    fn memory(&self) -> Option<Box<dyn PluginMemory>> {
        Some(Box::new(self.reports.clone()))
    }

    fn take_over(&mut self, memory: EarlierMemory) {
        self.reports = memory.read().unwrap_or_default();
        self.reports.look_at_all();
    }

    fn open(&mut self, view: SessionView<'_>) {
        if let Some(locks) = &mut self.locks {
            locks.open(view);
        }
    }

    fn close(&mut self, view: SessionView<'_>, _: &Records, out: &mut Outbox) {
        self.reports.update(view, &self.kinds, out);
    }

    fn device_corrections(&self) -> Vec<(JobId, Resource)> {
        self.reports.corrections()
    }

    fn predicate(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        findings: &mut Vec<Finding>,
    ) {
        let query = query(view, task, node, true);
        findings
            .extend(self.choices(query).find_map(|(_, choice)| choice.err()).map(Finding::from));
    }

    /// Rounds the sum of the scores of all devices before it is weighted.
    fn node_order(&self, view: SessionView<'_>, task: TaskId, node: NodeId) -> Result<f64, String> {
        let query = query(view, task, node, true);
        let scores = self.choices(query).filter_map(|(_, choice)| Some(choice.ok()?.score));
        Ok((scores.sum::<f64>() + 0.5).floor() * self.weight as f64)
    }

    /// Adds the scores of the kinds that compare nodes with each other.
    fn batch_node_order(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) -> Result<(), String> {
        for kind in self.requested_kinds(view, task).filter(|kind| kind.has_batch_scores()) {
            for (out, score) in out.iter_mut().zip(kind.batch_scores(view, task, nodes)) {
                *out += score * self.weight as f64;
            }
        }
        Ok(())
    }

    /// A pod that is bound gets only devices that nobody holds. A pod that waits may count on those
    /// of pods that leave.
    fn reserve(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        status: TaskStatus,
    ) -> Result<Option<Reservation>, String> {
        let after_releases = status == TaskStatus::Pipelined;
        let query = query(view, task, node, after_releases);
        let (mut shares, mut node_lock) = (Labels::new(), None);
        for (kind, choice) in self.choices(query) {
            let choice = choice.map_err(|refusal| refusal.reason)?;
            let written = kind.annotations(&choice, query.at.node(), view.info.now_micros);
            shares.extend(written.into_iter().map(|(key, value)| (key.into(), value)));
            node_lock = self.locks.as_ref().and_then(|_| kind.lock()).map(Arc::from).or(node_lock);
        }
        let shares = (!shares.is_empty()).then(|| Arc::new(shares));
        Ok(shares.map(|shares| Reservation {
            shares: Some(shares),
            node_lock,
            ..Reservation::default()
        }))
    }
}

impl CacheKeys for DeviceShare {
    fn clock(&self, _view: SessionView<'_>) -> Clock {
        self.locks.as_ref().map_or(Clock::Ignores, NodeLocks::clock)
    }

    fn revision(&self) -> Option<u64> {
        self.locks.as_ref().map(NodeLocks::revision)
    }
}

impl VectorizedPlugin for DeviceShare {
    /// Only pods that request devices are tested.
    fn node_tests<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<NodeTests<'a>> {
        let mut tests = NodeTests { tests: Vec::new(), cluster_scoped: None };
        match (self.is_requested(view, task), self.reads_labels) {
            (false, _) => {}
            (true, false) => tests.tests.push(NodeTest::Row(Box::new(move |node| {
                let query = query(view, task, node, true);
                self.choices(query).all(|(_, choice)| choice.is_ok())
            }))),
            // What is kept per node is kept for pods with other labels, too.
            (true, true) => {
                tests.cluster_scoped = Some(Box::new(move |node, findings| {
                    self.predicate(view, task, node, findings);
                }));
            }
        }
        Some(tests)
    }

    /// Pods that request no devices score 0 everywhere.
    fn node_order_fill<'a>(
        &'a self,
        view: SessionView<'a>,
        task: TaskId,
    ) -> Option<ColumnFill<'a, f64>> {
        (!self.is_requested(view, task)).then(|| -> ColumnFill<'a, f64> { Box::new(|_, _, _| {}) })
    }

    /// Pods whose devices are scored node by node have no scores of all nodes together.
    fn columns<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<Vec<ScoreColumn<'a>>> {
        if !self.requested_kinds(view, task).any(|kind| kind.has_batch_scores()) {
            return Some(Vec::new());
        }
        let fill = move |nodes: &[NodeId], out: &mut [f64]| {
            self.batch_node_order(view, task, nodes, out).is_ok()
        };
        Some(vec![ScoreColumn { weight: 1, raw: RawScore::Fractions(Box::new(fill)) }])
    }
}

impl DeviceShare {
    /// True if the pod requests devices of a kind that is switched on.
    fn is_requested(&self, view: SessionView<'_>, task: TaskId) -> bool {
        self.requested_kinds(view, task).next().is_some()
    }

    /// Returns the kinds whose devices the pod requests.
    fn requested_kinds<'a>(
        &'a self,
        view: SessionView<'a>,
        task: TaskId,
    ) -> impl Iterator<Item = &'a dyn DeviceFamily> {
        let demand = view.cluster.class(task).device_demand.as_ref();
        let is_requested =
            move |kind: &&dyn DeviceFamily| demand.is_some_and(|demand| kind.is_requested(demand));
        self.kinds.iter().map(|kind| &**kind).filter(is_requested)
    }

    /// Returns what each kind chooses that the pod requests.
    fn choices<'a>(
        &'a self,
        query: Query<'a>,
    ) -> impl Iterator<Item = (&'a dyn DeviceFamily, Result<Choice, Refusal>)> {
        let demand = query.demand();
        let is_requested =
            move |kind: &&dyn DeviceFamily| demand.is_some_and(|demand| kind.is_requested(demand));
        let kinds = self.kinds.iter().map(|kind| &**kind).filter(is_requested);
        kinds.map(move |kind| (kind, self.choose(kind, query)))
    }

    /// Returns what a kind chooses, unless the node is locked.
    fn choose(&self, kind: &dyn DeviceFamily, query: Query<'_>) -> Result<Choice, Refusal> {
        let lock = self.locks.as_ref().zip(kind.lock());
        if lock.is_some_and(|(locks, lock)| locks.is_locked(query.at, lock)) {
            let name = &query.at.node().name;
            let reason = format!("node {name} has been locked within 5 minutes");
            return Err(Refusal { code: Code::Unschedulable, reason });
        }
        kind.choose(query)
    }
}

/// Returns the query that asks which devices of a node the task can have.
fn query(view: SessionView<'_>, task: TaskId, node: NodeId, after_releases: bool) -> Query<'_> {
    Query { task, at: DeviceNode { cluster: view.cluster, node, after_releases } }
}
