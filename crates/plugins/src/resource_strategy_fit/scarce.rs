//! Scarce resource avoidance (SRA): nodes without scarce resources score higher.
//! Specification: plugins-nodes.md 10.3.

use std::collections::BTreeSet;

use vc_conf::{Argument, ArgumentShape, Arguments, Warning};
use vc_resource::{Dim, Dims};

use super::BEST;

pub(super) const SRA: Argument<ArgumentShape> = Argument::new(
    "sra",
    ArgumentShape::Record(&[
        ("enable", ArgumentShape::Bool),
        ("resources", ArgumentShape::Text),
        ("weight", ArgumentShape::Int),
        ("resourceWeight", ArgumentShape::MapOf(&ArgumentShape::Int)),
    ]),
    "keep pods off scarce resources",
)
.shown_as("off");

/// The scarce resources with their weights.
pub(super) struct ScarceResources {
    weight: i64,
    resources: Vec<(String, i64)>,
    total: i64,
    /// The entries of `resources` whose name occurs in an object of the cluster.
    weights: Vec<(Dim, i64)>,
}

impl ScarceResources {
    /// Reads the argument. Returns `None` if the score is off.
    pub(super) fn new(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Option<Self> {
        let sra = arguments.structured(SRA.key);
        let weight = sra.field("weight").int().filter(|&weight| 0 < weight)?;
        if !sra.field("enable").is_true() {
            return None;
        }
        let given = sra.field("resourceWeight");
        let weight_of = |name: &str| {
            let weight = given.entries().find(|(key, _)| *key == name)?.1.int()?;
            if weight < 0 {
                let problem = format!("resourceWeight.{name}: {weight} is less than 0");
                let remedy = "write 0 or more; until then 1 is in force";
                warnings.push(arguments.warning(SRA.key, &problem, remedy));
            }
            Some(weight).filter(|&weight| 0 <= weight)
        };
        let mut weight_of = weight_of;
        let names: BTreeSet<&str> = listed(sra.field("resources").text()).collect();
        let resources: Vec<(String, i64)> =
            names.iter().map(|&name| (name.to_owned(), weight_of(name).unwrap_or(1))).collect();
        let total = resources.iter().fold(0_i64, |sum, (_, weight)| sum.saturating_add(*weight));
        Some(Self { weight, resources, total, weights: Vec::new() })
    }

    pub(super) fn follow(&mut self, dims: &Dims) {
        let known = |(name, weight): &(String, i64)| Some((dims.get(name)?, *weight));
        self.weights = self.resources.iter().filter_map(known).collect();
    }

    /// Returns the score of a node. `offered` is its allocatable amount of a resource.
    pub(super) fn score(&self, requested: &[Dim], offered: impl Fn(Dim) -> i64) -> f64 {
        if self.total == 0 || requested.iter().any(|&dim| offered(dim) == 0) {
            return 0.0;
        }
        let present = self.weights.iter().filter(|(dim, _)| 0 < offered(*dim));
        let present = present.fold(0_i64, |sum, (_, weight)| sum.saturating_add(*weight));
        (1.0 - present as f64 / self.total as f64) * BEST * self.weight as f64
    }
}

/// Returns the names of a comma-separated list, without blanks.
pub(super) fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty())
}
