//! Plugin `network-topology-aware`: keeps the pods of a job close together in the network. It says
//! which HyperNodes a job may use, prefers full HyperNodes and nodes near the pods that are placed,
//! and packs pods without a network topology outside of HyperNodes.
//! Specification: plugins-nodes.md 15.

mod gradient;
mod scores;
mod totals;

use std::sync::{Mutex, MutexGuard, PoisonError};

use vc_conf::{Argument, PluginOption, Warning};
use vc_framework::{
    Depends, Gradient, GradientQuery, HyperNodeScore, Inputs, Plugin, PluginEntry, Points,
    RawScore, ScoreColumn, SessionView, TopologyPlugin, VectorizedPlugin,
};
use vc_model::{HyperNodeId, JobId, NodeId, TaskId};
use vc_resource::Dim;

use totals::HyperNodeTotals;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("network-topology-aware", build)
    .arguments(&[&WEIGHT, &CPU, &MEMORY, &RESOURCES, &RESOURCE, &NORMAL_PODS, &FADING, &MAX_EVICT]);

const WEIGHT: Argument<i64> = Argument::new("weight", 1, "weight of the score").at_least(0);
const CPU: Argument<i64> = Argument::new("hypernode.binpack.cpu", 1, "weight of cpu").at_least(0);
const MEMORY: Argument<i64> =
    Argument::new("hypernode.binpack.memory", 1, "weight of memory").at_least(0);
const RESOURCES: Argument<&str> =
    Argument::new("hypernode.binpack.resources", "", "further resources, separated by commas");
const RESOURCE: Argument<i64> =
    Argument::new("hypernode.binpack.resources.*", 1, "weight of a listed resource").at_least(0);
const NORMAL_PODS: Argument<bool> = Argument::new(
    "hypernode.binpack.normal-pod.enable",
    true,
    "score pods without a network topology too",
);
const FADING: Argument<f64> = Argument::new(
    "hypernode.binpack.normal-pod.fading",
    0.8,
    "weight of a tier against the one below",
)
.at_least(0.0);
const MAX_EVICT: Argument<i64> =
    Argument::new("hypernode.gradient.evict.max-hypernodes", 8, "HyperNodes tried with evictions")
        .at_least(1);

/// Score of the best node or HyperNode, before the weight of the plugin.
const BEST: f64 = 100.0;

struct NetworkTopologyAware {
    weight: f64,
    /// Weights of cpu, memory and the listed resources, by name.
    resources: Vec<(String, i64)>,
    /// The entries of `resources` whose name occurs in an object of the cluster.
    weights: Vec<(Dim, f64)>,
    /// True if pods without a network topology are scored.
    scores_normal_pods: bool,
    fading: f64,
    /// Largest number of HyperNodes in a gradient for evictions.
    max_evict: usize,
    totals: Mutex<HyperNodeTotals>,
}

impl NetworkTopologyAware {
    fn totals(&self) -> MutexGuard<'_, HyperNodeTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    let arguments = &option.arguments;
    let mut resources = vec![
        ("cpu".to_owned(), CPU.read(arguments, warnings)),
        ("memory".to_owned(), MEMORY.read(arguments, warnings)),
    ];
    let list = RESOURCES.read(arguments, warnings);
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if resources.iter().all(|(known, _)| known != name) {
            resources.push((name.to_owned(), RESOURCE.read_named(name, arguments, warnings)));
        }
    }
    let max_evict = MAX_EVICT.read(arguments, warnings);
    Box::new(NetworkTopologyAware {
        weight: WEIGHT.read(arguments, warnings) as f64,
        resources,
        weights: Vec::new(),
        scores_normal_pods: NORMAL_PODS.read(arguments, warnings),
        fading: FADING.read(arguments, warnings),
        max_evict: usize::try_from(max_evict).unwrap_or(usize::MAX),
        totals: Mutex::default(),
    })
}

/// The state that each extension point reads. It scores by what all nodes of a HyperNode have.
const READS: &[(Points, Inputs)] = &[
    (Points::BATCH_NODE_ORDER, NETWORK),
    (Points::HYPER_NODE_GRADIENT, NETWORK.and(Inputs::JOB_REQUEST)),
    (Points::HYPER_NODE_ORDER, NETWORK),
];

/// Topologies, HyperNodes, the nodes in them, and where the pods of the job are.
const NETWORK: Inputs = Inputs::POD_SHAPE
    .and(Inputs::JOB_TOPOLOGY)
    .and(Inputs::JOB_COUNTS)
    .and(Inputs::QUEUE_OBJECT)
    .and(Inputs::NODE_ROW)
    .and(Inputs::NODE_OBJECT)
    .and(Inputs::OTHER_PODS)
    .and(Inputs::OTHER_OBJECTS);

impl Plugin for NetworkTopologyAware {
    fn points(&self) -> Points {
        Points::HYPER_NODE_GRADIENT.and(Points::HYPER_NODE_ORDER).and(Points::BATCH_NODE_ORDER)
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_vectorized(&self) -> Option<&dyn VectorizedPlugin> {
        Some(self)
    }

    fn as_topology(&self) -> Option<&dyn TopologyPlugin> {
        Some(self)
    }

    fn open(&mut self, view: SessionView<'_>) {
        let known =
            |(name, weight): &(String, i64)| Some((view.cluster.dims.get(name)?, *weight as f64));
        self.weights = self.resources.iter().filter_map(known).collect();
    }

    fn batch_node_order(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) -> Result<(), String> {
        match self.preference(view, task) {
            Preference::None => return Ok(()),
            Preference::NearTheOthers { of, allocated } => {
                self.near_the_placed(view, of, allocated, nodes, out);
            }
            Preference::OutsideOfHyperNodes => {
                self.outside_of_hyper_nodes(view, task, nodes, out);
            }
        }
        out.iter_mut().for_each(|score| *score *= BEST * self.weight);
        Ok(())
    }
}

/// The nodes that a task prefers.
enum Preference {
    None,
    /// Those near the placed tasks of this sub-job, which are in this HyperNode.
    NearTheOthers {
        of: (JobId, usize),
        allocated: HyperNodeId,
    },
    OutsideOfHyperNodes,
}

impl NetworkTopologyAware {
    fn preference(&self, view: SessionView<'_>, task: TaskId) -> Preference {
        let row = &view.cluster.tasks[task];
        let Some(job) = row.job.filter(|&job| view.has_job(job)) else { return Preference::None };
        // Without HyperNodes all nodes are equal.
        let is_flat = view.info.hyper_nodes.is_empty();
        match view.has_topology(job, row.sub_job) {
            _ if is_flat => Preference::None,
            true => match view.allocated_hyper_node(job, row.sub_job) {
                Some(allocated) => Preference::NearTheOthers { of: (job, row.sub_job), allocated },
                None => Preference::None,
            },
            false if self.scores_normal_pods => Preference::OutsideOfHyperNodes,
            false => Preference::None,
        }
    }
}

impl VectorizedPlugin for NetworkTopologyAware {
    fn columns<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<Vec<ScoreColumn<'a>>> {
        if let Preference::None = self.preference(view, task) {
            return Some(Vec::new());
        }
        let fill = move |nodes: &[NodeId], out: &mut [f64]| {
            self.batch_node_order(view, task, nodes, out).is_ok()
        };
        Some(vec![ScoreColumn { weight: 1, raw: RawScore::Fractions(Box::new(fill)) }])
    }
}

impl TopologyPlugin for NetworkTopologyAware {
    fn gradient(&self, view: SessionView<'_>, query: GradientQuery<'_>) -> Gradient {
        gradient::gradient(view, query, self.totals().all(view), self.max_evict)
    }

    fn gradients(
        &self,
        view: SessionView<'_>,
        of_sub_job: (JobId, usize),
        under: &[HyperNodeId],
    ) -> Vec<(usize, HyperNodeId)> {
        gradient::gradients(view, of_sub_job, self.totals().all(view), under)
    }

    fn hyper_node_order(
        &self,
        view: SessionView<'_>,
        job: JobId,
        sub_job: usize,
        candidates: &[HyperNodeId],
    ) -> Vec<HyperNodeScore> {
        self.scores_of_hyper_nodes(view, (job, sub_job), candidates)
    }
}
