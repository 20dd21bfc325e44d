//! Plugin `binpack`: scores a node higher the fuller it becomes in the resources that the task
//! requests.
//! Specification: plugins-nodes.md 9.

use std::collections::BTreeMap;
use std::ops::Range;

use vc_conf::{Argument, PluginOption, Warning};
use vc_framework::{
    ColumnFill, Depends, DimColumns, Inputs, NodeColumns, Plugin, PluginEntry, Points, SessionView,
    VectorizedPlugin,
};
use vc_model::{NodeId, TaskId};
use vc_resource::{Dim, Resource};

pub(crate) const ENTRY: PluginEntry =
    PluginEntry::new("binpack", build).arguments(&[&WEIGHT, &CPU, &MEMORY, &RESOURCES, &RESOURCE]);

const WEIGHT: Argument<i64> =
    Argument::new("binpack.weight", 1, "weight of the whole score; 0: no score");
const CPU: Argument<i64> = Argument::new("binpack.cpu", 1, "weight of cpu").at_least(0);
const MEMORY: Argument<i64> = Argument::new("binpack.memory", 1, "weight of memory").at_least(0);
const RESOURCES: Argument<&str> =
    Argument::new("binpack.resources", "", "further resources, separated by commas");
const RESOURCE: Argument<i64> = Argument::new(
    "binpack.resources.*",
    1,
    "weight of a listed resource, as in `binpack.resources.nvidia.com/gpu`",
)
.at_least(0);

const BEST: f64 = 100.0;

struct Binpack {
    /// Weight of the plugin's score. With 0 the plugin scores nothing.
    weight: i64,
    /// Weight by resource name: cpu, memory and the listed names. Weights are added up in the order
    /// of names.
    resources: BTreeMap<String, i64>,
    /// The entries of `resources` whose name occurs in an object of the cluster.
    weights: Vec<(Dim, i64)>,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    let arguments = &option.arguments;
    let mut resources = BTreeMap::new();
    let list = RESOURCES.read(arguments, warnings);
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        resources.insert(name.to_owned(), RESOURCE.read_named(name, arguments, warnings));
    }
    // These two come after the list because they have argument keys of their own.
    for (name, argument) in [("cpu", CPU), ("memory", MEMORY)] {
        resources.insert(name.to_owned(), argument.read(arguments, warnings));
    }
    let weight = WEIGHT.read(arguments, warnings);
    Box::new(Binpack { weight, resources, weights: Vec::new() })
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[(Points::NODE_ORDER, Inputs::POD_SHAPE.and(Inputs::NODE_ROW))];

impl Plugin for Binpack {
    fn points(&self) -> Points {
        if self.weight == 0 { Points::NONE } else { Points::NODE_ORDER }
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_vectorized(&self) -> Option<&dyn VectorizedPlugin> {
        Some(self)
    }

    fn open(&mut self, view: SessionView<'_>) {
        let known = |(name, &weight): (&String, &i64)| Some((view.cluster.dims.get(name)?, weight));
        self.weights = self.resources.iter().filter_map(known).collect();
    }

    fn node_order(&self, view: SessionView<'_>, task: TaskId, node: NodeId) -> Result<f64, String> {
        let request = view.cluster.request(task);
        let node = &view.cluster.nodes[node];
        let weighed = self.weighed(request).map(|(dim, weight)| ResourceUse {
            weight,
            capacity: node.allocatable.get(dim),
            used: node.used.get(dim).saturating_add(request.get(dim)),
        });
        Ok(self.score(weighed))
    }
}

impl VectorizedPlugin for Binpack {
    fn node_order_fill<'a>(
        &'a self,
        view: SessionView<'a>,
        task: TaskId,
    ) -> Option<ColumnFill<'a, f64>> {
        let request = view.cluster.request(task);
        let weighed: Vec<WeightedDim> = self
            .weighed(request)
            .map(|(dim, weight)| WeightedDim { dim, weight, requested: request.get(dim) })
            .collect();
        Some(Box::new(move |columns, range, scores| match *weighed {
            [one] => self.add([one], columns, range, scores),
            [one, two] => self.add([one, two], columns, range, scores),
            _ => {
                for (sum, at) in scores.iter_mut().zip(range) {
                    *sum += self.score(weighed.iter().map(|of| of.part(columns.of(of.dim), at)));
                }
            }
        }))
    }
}

/// A resource that is scored, with its weight and the requested amount.
#[derive(Clone, Copy)]
struct WeightedDim {
    dim: Dim,
    weight: i64,
    requested: i64,
}

impl WeightedDim {
    fn part(self, amounts: &DimColumns, at: usize) -> ResourceUse {
        let used = amounts.used[at].saturating_add(self.requested);
        ResourceUse { weight: self.weight, capacity: amounts.allocatable[at], used }
    }
}

/// One resource of a node. `used` includes the request of the task.
struct ResourceUse {
    weight: i64,
    capacity: i64,
    used: i64,
}

impl Binpack {
    /// Returns the resources that are scored for a request, with their weights.
    fn weighed<'a>(&'a self, request: &'a Resource) -> impl Iterator<Item = (Dim, i64)> + 'a {
        self.weights.iter().copied().filter(|(dim, _)| !request.is_zero(*dim))
    }

    /// Adds the scores of a range of nodes. `N` is constant so that the compiler unrolls the loop
    /// over the resources.
    fn add<const N: usize>(
        &self,
        weighed: [WeightedDim; N],
        columns: &NodeColumns,
        range: Range<usize>,
        scores: &mut [f64],
    ) {
        let n_nodes = scores.len();
        let of = weighed.map(|weighed| {
            let DimColumns { allocatable, used, .. } = columns.of(weighed.dim);
            let (allocatable, used) = (&allocatable[range.clone()], &used[range.clone()]);
            (weighed, &allocatable[..n_nodes], &used[..n_nodes])
        });
        for (at, sum) in scores.iter_mut().enumerate() {
            let parts = of.iter().map(|(weighed, allocatable, used)| {
                let used = used[at].saturating_add(weighed.requested);
                ResourceUse { weight: weighed.weight, capacity: allocatable[at], used }
            });
            *sum += self.score(parts);
        }
    }

    #[inline]
    fn score(&self, parts: impl Iterator<Item = ResourceUse>) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for ResourceUse { weight, capacity, used } in parts {
            weights += weight as f64;
            if capacity == 0 || weight == 0 {
                continue;
            }
            if capacity < used {
                return 0.0;
            }
            sum += weight as f64 * used as f64 / capacity as f64;
        }
        if weights == 0.0 { 0.0 } else { sum / weights * BEST * self.weight as f64 }
    }
}
