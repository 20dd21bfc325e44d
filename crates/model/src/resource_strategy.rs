//! How a resource of a node is scored, and what a pod says about it in its annotations.
//! Specification: plugins-nodes.md 10.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The strategy by which the plugin `resource-strategy-fit` scores a resource of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ResourceStrategy {
    /// Prefers nodes on which much of the resource stays free.
    #[default]
    LeastAllocated,
    /// Prefers nodes on which little of the resource stays free.
    MostAllocated,
}

impl ResourceStrategy {
    /// Returns the strategy of this name. Returns `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "LeastAllocated" => Some(Self::LeastAllocated),
            "MostAllocated" => Some(Self::MostAllocated),
            _ => None,
        }
    }
}

/// The strategy of a pod, which replaces the configured strategies for this pod (annotations
/// `volcano.sh/resource-strategy-scoring-type` and `volcano.sh/resource-strategy-weight`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodResourceStrategy {
    /// The strategy of every resource in `weights`.
    pub strategy: ResourceStrategy,
    /// Weights by exact resource name. Without a weight every node scores 0. Annotations that
    /// cannot be read leave no weight.
    pub weights: BTreeMap<Arc<str>, i64>,
}
