//! The argument `resources`: a strategy and a weight by resource name, which may end in `*`.
//! Specification: plugins-nodes.md 10.1.

use std::collections::BTreeMap;

use vc_conf::{Argument, ArgumentShape, Arguments, StructuredPart, Warning};
use vc_model::ResourceStrategy;
use vc_resource::{Dim, Dims};

pub(super) const RESOURCES: Argument<ArgumentShape> = Argument::new(
    "resources",
    ArgumentShape::MapOf(&ArgumentShape::Record(&[
        ("type", ArgumentShape::Text),
        ("weight", ArgumentShape::Int),
    ])),
    "strategy by resource, `*` at the end matches",
)
.shown_as("cpu and memory, LeastAllocated");

type WeightedStrategy = (ResourceStrategy, i64);

/// Strategies and weights by resource.
pub(super) struct Strategies {
    exact: BTreeMap<String, WeightedStrategy>,
    /// Entries for all names with a prefix, the longest prefix first.
    by_prefix: Vec<(String, WeightedStrategy)>,
    /// The entry of each dimension that is known, by index.
    by_dim: Vec<Option<WeightedStrategy>>,
}

impl Strategies {
    pub(super) fn new(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Self {
        let mut strategies =
            Self { exact: BTreeMap::new(), by_prefix: Vec::new(), by_dim: Vec::new() };
        let resources = arguments.structured(RESOURCES.key);
        if resources.entries().next().is_none() {
            let default = (ResourceStrategy::LeastAllocated, 1);
            strategies.exact = ["cpu", "memory"].map(|name| (name.to_owned(), default)).into();
        }
        let mut warn = |problem: String, remedy: &str| {
            warnings.push(arguments.warning(RESOURCES.key, &problem, remedy));
        };
        for (name, entry) in resources.entries() {
            strategies.enter(name, weighted_strategy(name, entry, &mut warn), &mut warn);
        }
        strategies.by_prefix.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        strategies
    }

    fn enter(&mut self, name: &str, entry: WeightedStrategy, warn: &mut impl FnMut(String, &str)) {
        match name.split_once('*') {
            None => drop(self.exact.insert(name.to_owned(), entry)),
            Some((prefix, "")) if !prefix.is_empty() => {
                self.by_prefix.push((prefix.to_owned(), entry));
            }
            Some(_) => warn(
                format!(
                    "{name}: a * must be the only one and stand behind a prefix, the entry is ignored"
                ),
                "write a name, or a prefix as in nvidia.com/*",
            ),
        }
    }

    /// Looks up the entries of dimensions that are new.
    pub(super) fn follow(&mut self, dims: &Dims) {
        if self.by_dim.len() == dims.len() {
            return;
        }
        self.by_dim = vec![None; dims.len()];
        for &dim in dims.in_report_order() {
            self.by_dim[dim.index()] = self.named(dims.name(dim));
        }
    }

    /// Returns the entry of a resource. Returns `None` if the configuration leaves it out.
    pub(super) fn of(&self, dim: Dim) -> Option<WeightedStrategy> {
        self.by_dim.get(dim.index()).copied().flatten()
    }

    /// Returns the entry of this exact name, or else that with the longest prefix.
    fn named(&self, name: &str) -> Option<WeightedStrategy> {
        let by_prefix = || self.by_prefix.iter().find(|(prefix, _)| name.starts_with(prefix));
        let exact = self.exact.get(name);
        exact.copied().or_else(|| by_prefix().map(|(_, entry)| *entry))
    }
}

fn weighted_strategy(
    name: &str,
    entry: StructuredPart<'_>,
    warn: &mut impl FnMut(String, &str),
) -> WeightedStrategy {
    let strategy = entry.field("type").text();
    let weight = entry.field("weight").int().filter(|&weight| 0 < weight).unwrap_or(1);
    let strategy = ResourceStrategy::named(strategy).unwrap_or_else(|| {
        if !strategy.is_empty() {
            let problem = format!("{name}.type: not a strategy: {strategy:?}");
            let remedy =
                "write LeastAllocated or MostAllocated; until then LeastAllocated is in force";
            warn(problem, remedy);
        }
        ResourceStrategy::default()
    });
    (strategy, weight)
}
