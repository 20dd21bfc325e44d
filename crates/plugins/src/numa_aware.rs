//! Plugin `numa-aware`: places pods that get CPUs to themselves on nodes whose topology manager
//! will admit them, and prefers nodes where these CPUs are on few NUMA nodes. Specification:
//! plugins-nodes.md 14.

mod choice;
mod cpus;
mod hints;
mod reports;

use std::sync::Arc;

use vc_conf::{Argument, PluginOption, Warning};
use vc_filters::normalize::{Best, normalize};
use vc_framework::{
    Depends, EarlierMemory, Inputs, NodeTest, NodeTests, Outbox, Plugin, PluginEntry, PluginMemory,
    Points, RawScore, Records, ScoreColumn, SessionView, VectorizedPlugin,
};
use vc_model::{Code, Finding, NodeId, Reservation, TaskId, TaskStatus};

use choice::{choose, n_numa_nodes};
use reports::NumaReports;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("numa-aware", build).arguments(&[&WEIGHT]);

const WEIGHT: Argument<i64> = Argument::new("weight", 1, "weight of the score");

struct NumaAware {
    weight: f64,
    reports: NumaReports,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    let weight = WEIGHT.read(&option.arguments, warnings) as f64;
    Box::new(NumaAware { weight, reports: NumaReports::default() })
}

/// The CPUs that a pod gets: what it asks for, the Numatopology of the node, and what its pods
/// have.
const READS: Inputs = Inputs::POD_SHAPE.and(Inputs::NODE_OBJECT).and(Inputs::NODE_ROW);

impl Plugin for NumaAware {
    fn points(&self) -> Points {
        Points::PREDICATE.and(Points::BATCH_NODE_ORDER).and(Points::EVENT_HANDLERS)
    }

    fn depends(&self) -> Depends {
        Depends::of(&[
            (Points::PREDICATE, READS),
            (Points::BATCH_NODE_ORDER, READS),
            (Points::EVENT_HANDLERS, READS),
        ])
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
    }

    fn close(&mut self, view: SessionView<'_>, _: &Records, out: &mut Outbox) {
        self.reports.update(view, out);
    }

    fn predicate(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        findings: &mut Vec<Finding>,
    ) {
        if let Err(reason) = choose(view.cluster, task, node) {
            findings.push(Finding { code: Code::Unresolvable, reason });
        }
    }

    /// Pods with a policy prefer nodes where their CPUs are on few NUMA nodes.
    fn batch_node_order(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) -> Result<(), String> {
        if !has_policy(view, task) {
            return Ok(());
        }
        let spread = |&node: &NodeId| {
            let cpus = choose(view.cluster, task, node).unwrap_or_default();
            let topology = view.cluster.nodes[node].numa.as_deref();
            topology.map_or(0, |topology| n_numa_nodes(topology, &cpus) as i64)
        };
        let mut scores: Vec<i64> = nodes.iter().map(spread).collect();
        if scores.iter().all(|&n_nodes| n_nodes == 0) {
            return Ok(());
        }
        normalize(&mut scores, Best::Lowest);
        for (out, score) in out.iter_mut().zip(scores) {
            *out = score as f64 * self.weight;
        }
        Ok(())
    }

    /// Notes the CPUs that the task is expected to get, until the kubelet reports them.
    fn reserve(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        _status: TaskStatus,
    ) -> Result<Option<Reservation>, String> {
        let cpus = choose(view.cluster, task, node);
        let cpus = cpus.map_err(|reason| reason.text(&view.cluster.dims))?;
        let cpus = (!cpus.is_empty()).then(|| Arc::new(cpus));
        Ok(cpus.map(|cpus| Reservation { cpus: Some(cpus), ..Reservation::default() }))
    }
}

impl VectorizedPlugin for NumaAware {
    /// Only pods that get CPUs to themselves, or have a policy, are tested.
    fn node_tests<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<NodeTests<'a>> {
        let mut tests = NodeTests { tests: Vec::new(), cluster_scoped: None };
        if view.cluster.class(task).numa_demand.is_some() {
            let passes = move |node| choose(view.cluster, task, node).is_ok();
            tests.tests.push(NodeTest::Row(Box::new(passes)));
        }
        Some(tests)
    }

    /// Pods without a policy score 0 everywhere.
    fn columns<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<Vec<ScoreColumn<'a>>> {
        if !has_policy(view, task) {
            return Some(Vec::new());
        }
        let fill = move |nodes: &[NodeId], out: &mut [f64]| {
            self.batch_node_order(view, task, nodes, out).is_ok()
        };
        Some(vec![ScoreColumn { weight: 1, raw: RawScore::Fractions(Box::new(fill)) }])
    }
}

/// True if the pod is Guaranteed and has a policy.
fn has_policy(view: SessionView<'_>, task: TaskId) -> bool {
    let demand = view.cluster.class(task).numa_demand.as_ref();
    demand.is_some_and(|demand| demand.policy.is_some())
}
