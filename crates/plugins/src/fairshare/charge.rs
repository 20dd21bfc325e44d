//! The charge of a task: what it costs its account while it holds resources.
//! Specification: fair-share.md 2, FS-10.

use vc_model::Cluster;
use vc_resource::{Dim, Resource};

/// Units of an amount for which a weight of [`WeightedCharge`] stands.
const MILLI: i128 = 1_000;
const BYTES_PER_GIB: i128 = 1 << 30;
/// The charge of one unit by weights.
const MILLIONTHS: i128 = 1_000_000;

/// What is charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChargeRule {
    /// The amount of one resource, in internal units.
    Resource(String),
    /// Weighted amounts of several resources, in millionths.
    Weighted(WeightedCharge),
}

/// Weights of resources by name, in millionths per cpu, per GiB, or per piece of anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WeightedCharge {
    pub(super) weights: Vec<(String, i64)>,
    /// True if the largest weighted amount is charged, and not their sum.
    pub(super) is_max: bool,
}

impl ChargeRule {
    /// Returns the charge of an amount. The charge of a sum of tasks is the sum of their charges
    /// only for [`ChargeRule::Resource`].
    pub(super) fn of(&self, cluster: &Cluster, amount: &Resource) -> i128 {
        match self {
            ChargeRule::Resource(name) => {
                let dim = cluster.dims.get(name);
                dim.map_or(0, |dim| i128::from(amount.get(dim).max(0)))
            }
            ChargeRule::Weighted(WeightedCharge { weights, is_max }) => {
                let term = |(name, weight): &(String, i64)| {
                    let dim = cluster.dims.get(name)?;
                    let amount = i128::from(amount.get(dim).max(0));
                    Some(i128::from(*weight) * amount / unit(dim))
                };
                let terms = weights.iter().filter_map(term);
                if *is_max { terms.max().unwrap_or(0) } else { terms.sum() }
            }
        }
    }

    /// Returns an upper bound of the charge of all tasks that together request this amount.
    pub(super) fn most_of(&self, cluster: &Cluster, amount: &Resource) -> i128 {
        match self {
            ChargeRule::Weighted(WeightedCharge { weights, is_max: true }) => {
                // Each task may be charged for another resource.
                let weights = weights.clone();
                let sum = ChargeRule::Weighted(WeightedCharge { weights, is_max: false });
                sum.of(cluster, amount)
            }
            _ => self.of(cluster, amount),
        }
    }

    /// True if the charge of a sum of tasks is the sum of their charges.
    pub(super) fn is_additive(&self) -> bool {
        matches!(self, ChargeRule::Resource(_))
    }

    /// Returns the charge of one unit: a cpu, a GiB, a piece of anything else.
    pub(super) fn unit(&self, cluster: &Cluster) -> i128 {
        match self {
            ChargeRule::Resource(name) => cluster.dims.get(name).map_or(1, unit),
            ChargeRule::Weighted(_) => MILLIONTHS,
        }
    }

    /// Returns the name for messages.
    pub(super) fn name(&self) -> &str {
        match self {
            ChargeRule::Resource(name) => name,
            ChargeRule::Weighted(_) => "weighted resources",
        }
    }
}

impl ChargeRule {
    /// Returns what is charged, as text: equal texts are equal charges.
    pub(super) fn text(&self) -> String {
        match self {
            ChargeRule::Resource(name) => name.clone(),
            ChargeRule::Weighted(WeightedCharge { weights, is_max }) => {
                let weight = |(name, weight): &(String, i64)| format!("{name}={weight}");
                let weights: Vec<String> = weights.iter().map(weight).collect();
                format!("{} of {}", if *is_max { "max" } else { "sum" }, weights.join(","))
            }
        }
    }
}

fn unit(dim: Dim) -> i128 {
    match dim {
        Dim::MEMORY => BYTES_PER_GIB,
        Dim::PODS => 1,
        _ => MILLI,
    }
}

#[cfg(test)]
mod tests {
    use vc_model::fixture;

    use super::*;

    fn charge(is_max: bool) -> i128 {
        let cluster = fixture::cluster(
            "node n cpu=9\n job j\n task t cpu=4 memory=32Gi gpu=1\n task u cpu=1",
        );
        let weights = [("cpu", 1_000_000), ("memory", 250_000), ("nvidia.com/gpu", 16_000_000)];
        let weights = weights.map(|(name, weight)| (name.to_owned(), weight)).to_vec();
        let rule = ChargeRule::Weighted(WeightedCharge { weights, is_max });
        rule.of(&cluster, cluster.request(fixture::task(&cluster, "j/t")))
    }

    #[test]
    fn fs_billing_sum() {
        assert_eq!(charge(false), 28_000_000);
    }

    #[test]
    fn fs_billing_max() {
        assert_eq!(charge(true), 16_000_000);
    }
}
