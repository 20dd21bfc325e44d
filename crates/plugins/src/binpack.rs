//! `binpack`: the fuller a node becomes in what the task requests, the better.
//! Specification: plugins-nodes.md 9.

use std::collections::BTreeMap;
use std::ops::Range;

use vc_conf::{Arguments, PluginOption, Warning};
use vc_framework::{Ask, Clock, DimColumns, Fill, NodeColumns, Plugin, PluginEntry, Points, Reads};
use vc_model::{NodeId, TaskId};
use vc_resource::{Dim, Resource};

pub(crate) const ENTRY: PluginEntry = PluginEntry { name: "binpack", build };

const BEST: f64 = 100.0;

struct Binpack {
    /// 0: the plugin scores nothing.
    weight: i64,
    /// Resource name to weight: cpu, memory and those listed, in the order in which they are added.
    resources: BTreeMap<String, i64>,
    /// The same for the resources that some object of the cluster names.
    weights: Vec<(Dim, i64)>,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    let arguments = &option.arguments;
    let mut resources = BTreeMap::new();
    let list = arguments.string("binpack.resources", "", warnings);
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let weight = resource_weight(arguments, &format!("binpack.resources.{name}"), warnings);
        resources.insert(name.to_owned(), weight);
    }
    // After the list: these two have keys of their own.
    for name in ["cpu", "memory"] {
        let weight = resource_weight(arguments, &format!("binpack.{name}"), warnings);
        resources.insert(name.to_owned(), weight);
    }
    let weight = arguments.int("binpack.weight", 1, warnings);
    Box::new(Binpack { weight, resources, weights: Vec::new() })
}

/// Weight of a resource; a negative one counts as 1.
fn resource_weight(arguments: &Arguments, key: &str, warnings: &mut Vec<Warning>) -> i64 {
    let weight = arguments.int(key, 1, warnings);
    if 0 <= weight {
        return weight;
    }
    let message = format!("{weight} is less than 0");
    let remedy = "write 0 or more; until then the default 1 is in force";
    warnings.push(arguments.warning(key, &message, remedy));
    1
}

impl Plugin for Binpack {
    fn points(&self) -> Points {
        if self.weight == 0 { Points::NONE } else { Points::NODE_ORDER }
    }

    fn clock(&self, _ask: Ask<'_>) -> Clock {
        Clock::Ignores
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    fn open(&mut self, ask: Ask<'_>) {
        let known = |(name, &weight): (&String, &i64)| Some((ask.cluster.dims.get(name)?, weight));
        self.weights = self.resources.iter().filter_map(known).collect();
    }

    fn reads(&self, _ask: Ask<'_>, _task: TaskId, _point: Points) -> Reads {
        Reads::ClassAndNode
    }

    fn node_order(&self, ask: Ask<'_>, task: TaskId, node: NodeId) -> Result<f64, String> {
        let request = ask.cluster.request(task);
        let node = &ask.cluster.nodes[node];
        let weighed = self.weighed(request).map(|(dim, weight)| Part {
            weight,
            capacity: node.allocatable.get(dim),
            used: node.used.get(dim).saturating_add(request.get(dim)),
        });
        Ok(self.score(weighed))
    }

    fn node_order_fill<'a>(&'a self, ask: Ask<'a>, task: TaskId) -> Option<Fill<'a, f64>> {
        let request = ask.cluster.request(task);
        let weighed: Vec<Weighed> = self
            .weighed(request)
            .map(|(dim, weight)| Weighed { dim, weight, requested: request.get(dim) })
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

/// A resource that counts, and how much of it is requested.
#[derive(Clone, Copy)]
struct Weighed {
    dim: Dim,
    weight: i64,
    requested: i64,
}

impl Weighed {
    fn part(self, amounts: &DimColumns, at: usize) -> Part {
        let used = amounts.used[at].saturating_add(self.requested);
        Part { weight: self.weight, capacity: amounts.allocatable[at], used }
    }
}

/// One resource of a node, with what the task would use.
struct Part {
    weight: i64,
    capacity: i64,
    used: i64,
}

impl Binpack {
    /// What counts for a request.
    fn weighed<'a>(&'a self, request: &'a Resource) -> impl Iterator<Item = (Dim, i64)> + 'a {
        self.weights.iter().copied().filter(|(dim, _)| !request.is_zero(*dim))
    }

    /// Adds the scores of nodes in a row; the compiler unrolls the few resources.
    fn add<const N: usize>(
        &self,
        weighed: [Weighed; N],
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
                Part { weight: weighed.weight, capacity: allocatable[at], used }
            });
            *sum += self.score(parts);
        }
    }

    #[inline]
    fn score(&self, parts: impl Iterator<Item = Part>) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for Part { weight, capacity, used } in parts {
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
