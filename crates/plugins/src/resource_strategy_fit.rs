//! Plugin `resource-strategy-fit`: scores a node by a strategy for each resource that the task
//! requests. It also keeps tasks off nodes with scarce resources, and keeps cpu and memory free
//! beside them.
//! Specification: plugins-nodes.md 10.

mod proportional;
mod scarce;
mod strategies;

use vc_conf::{Argument, PluginOption, StructuredInt, Warning};
use vc_framework::{
    ColumnFill, Depends, DimColumns, Inputs, Plugin, PluginEntry, Points, SessionView,
    VectorizedPlugin,
};
use vc_model::{Finding, NodeId, ResourceStrategy, TaskId};
use vc_resource::Dim;

use proportional::Proportional;
use scarce::ScarceResources;
use strategies::Strategies;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("resource-strategy-fit", build)
    .arguments(&[&WEIGHT, &strategies::RESOURCES, &scarce::SRA, &proportional::PROPORTIONAL]);

const WEIGHT: Argument<StructuredInt> = Argument::new(
    "resourceStrategyFitWeight",
    StructuredInt(10),
    "weight of the score; 0: no score; negative: the default",
);

const BEST: f64 = 100.0;

struct ResourceStrategyFit {
    /// Weight of the score by strategies. With 0 there is no such score.
    weight: i64,
    strategies: Strategies,
    /// `None` if the score for scarce resources is off.
    scarce: Option<ScarceResources>,
    /// `None` if the reservation is off.
    proportional: Option<Proportional>,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    let arguments = &option.arguments;
    let mut weight = WEIGHT.read(arguments, warnings);
    if weight < 0 {
        let remedy = "write 0 or more; until then the default 10 is in force";
        warnings.push(arguments.warning(WEIGHT.key, &format!("{weight} is less than 0"), remedy));
        weight = WEIGHT.default.0;
    }
    Box::new(ResourceStrategyFit {
        weight,
        strategies: Strategies::new(arguments, warnings),
        scarce: ScarceResources::new(arguments, warnings),
        proportional: Proportional::new(arguments, warnings),
    })
}

/// The state that each extension point reads. The annotations of the pod are part of its shape.
const READS: &[(Points, Inputs)] = &[
    (Points::NODE_ORDER, Inputs::POD_SHAPE.and(Inputs::NODE_ROW)),
    (Points::PREDICATE, Inputs::POD_SHAPE.and(Inputs::NODE_ROW)),
];

impl Plugin for ResourceStrategyFit {
    fn points(&self) -> Points {
        let mut points = Points::NONE;
        if self.weight != 0 || self.scarce.is_some() {
            points = points.and(Points::NODE_ORDER);
        }
        if self.proportional.is_some() {
            points = points.and(Points::PREDICATE);
        }
        points
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_vectorized(&self) -> Option<&dyn VectorizedPlugin> {
        Some(self)
    }

    fn open(&mut self, view: SessionView<'_>) {
        let dims = &view.cluster.dims;
        self.strategies.follow(dims);
        if let Some(scarce) = &mut self.scarce {
            scarce.follow(dims);
        }
        if let Some(proportional) = &mut self.proportional {
            proportional.follow(dims);
        }
    }

    fn predicate(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        findings: &mut Vec<Finding>,
    ) {
        let request = view.cluster.request(task);
        let proportional = self.proportional.as_ref();
        findings.extend(proportional.and_then(|it| it.check(request, &view.cluster.nodes[node])));
    }

    fn node_order(&self, view: SessionView<'_>, task: TaskId, node: NodeId) -> Result<f64, String> {
        let node = &view.cluster.nodes[node];
        let fit = self.weighed(view, task).into_iter().map(|of| NodeUse {
            strategy: of.strategy,
            weight: of.weight,
            capacity: node.allocatable.get(of.dim),
            used: node.used.get(of.dim).saturating_add(of.requested),
        });
        let fit = self.fit(fit);
        let request = view.cluster.request(task);
        let scarce = self.scarce.as_ref();
        let offered = |dim| node.allocatable.get(dim);
        let scarce =
            scarce.map_or(0.0, |it| it.score(&request.names().collect::<Vec<_>>(), offered));
        Ok(fit + scarce)
    }
}

impl VectorizedPlugin for ResourceStrategyFit {
    fn node_order_fill<'a>(
        &'a self,
        view: SessionView<'a>,
        task: TaskId,
    ) -> Option<ColumnFill<'a, f64>> {
        let weighed = self.weighed(view, task);
        let requested: Vec<Dim> = view.cluster.request(task).names().collect();
        Some(Box::new(move |columns, range, scores| {
            for (sum, at) in scores.iter_mut().zip(range) {
                let fit = self.fit(weighed.iter().map(|of| of.part(columns.of(of.dim), at)));
                let scarce = self
                    .scarce
                    .as_ref()
                    .map_or(0.0, |it| it.score(&requested, |dim| columns.of(dim).allocatable[at]));
                *sum += fit + scarce;
            }
        }))
    }
}

/// A requested resource that is scored.
#[derive(Clone, Copy)]
struct DimStrategy {
    dim: Dim,
    strategy: ResourceStrategy,
    weight: i64,
    requested: i64,
}

impl DimStrategy {
    fn part(self, amounts: &DimColumns, at: usize) -> NodeUse {
        let Self { strategy, weight, requested, .. } = self;
        let used = amounts.used[at].saturating_add(requested);
        NodeUse { strategy, weight, capacity: amounts.allocatable[at], used }
    }
}

/// One resource of a node. `used` includes the request of the task.
struct NodeUse {
    strategy: ResourceStrategy,
    weight: i64,
    capacity: i64,
    used: i64,
}

impl ResourceStrategyFit {
    /// Returns the resources that are scored for a task, in report order: the requested ones that
    /// the annotations of the pod name, or else those that the configuration names.
    fn weighed(&self, view: SessionView<'_>, task: TaskId) -> Vec<DimStrategy> {
        if self.weight == 0 {
            return Vec::new();
        }
        let (class, dims) = (view.cluster.class(task), &view.cluster.dims);
        let request = &class.request;
        let requested = dims.in_report_order().iter().filter(|&&dim| !request.is_zero(dim));
        let weighed = |&dim: &Dim| {
            let (strategy, weight) = match &class.resource_strategy {
                Some(of_pod) => (of_pod.strategy, *of_pod.weights.get(dims.name(dim))?),
                None => self.strategies.of(dim)?,
            };
            Some(DimStrategy { dim, strategy, weight, requested: request.get(dim) })
        };
        requested.filter_map(weighed).collect()
    }

    /// The score by strategies (section 10.2).
    fn fit(&self, parts: impl Iterator<Item = NodeUse>) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for NodeUse { strategy, weight, capacity, used } in parts {
            weights += weight as f64;
            if capacity == 0 || weight == 0 {
                continue;
            }
            if capacity < used {
                return 0.0;
            }
            let counted = match strategy {
                ResourceStrategy::MostAllocated => used,
                ResourceStrategy::LeastAllocated => capacity.saturating_sub(used),
            };
            sum += weight as f64 * counted as f64 / capacity as f64;
        }
        if weights == 0.0 { 0.0 } else { sum / weights * BEST * self.weight as f64 }
    }
}
