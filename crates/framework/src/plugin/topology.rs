//! The part of a plugin that orders HyperNodes for jobs with a network topology. Specification:
//! core.md 5.3, actions.md 2.12, 4.5.

use vc_model::{HyperNodeId, JobId};

use crate::plugin::SessionView;

/// A list of groups of HyperNodes to try. The first group in which one suffices decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gradient {
    /// The groups, each ordered by name.
    pub groups: Vec<Vec<HyperNodeId>>,
    /// Why there is none (A18: the limit that left no HyperNode). `None` if there are groups.
    pub problem: Option<String>,
}

impl Gradient {
    /// The gradient with one HyperNode.
    pub fn one(id: HyperNodeId) -> Self {
        Self { groups: vec![vec![id]], problem: None }
    }

    /// The gradient without a HyperNode.
    pub fn none(problem: String) -> Self {
        Self { groups: Vec::new(), problem: Some(problem) }
    }
}

/// The score of a HyperNode for a sub-job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HyperNodeScore {
    /// The score. A job prefers the HyperNode with the highest sum over its sub-jobs.
    pub score: f64,
    /// The share of the tasks of the sub-job that are placed there, which decides between equal
    /// scores (A17).
    pub share: f64,
}

/// Extension points for network topologies.
pub trait TopologyPlugin {
    /// HyperNodeGradient: the HyperNodes at or below `under` in which a job, or one of its
    /// sub-jobs, may be placed.
    fn gradient(
        &self,
        view: SessionView<'_>,
        job: JobId,
        sub_job: Option<usize>,
        under: HyperNodeId,
    ) -> Gradient;

    /// HyperNodeOrder: the scores of HyperNodes in which a sub-job finds places, in their order.
    fn hyper_node_order(
        &self,
        view: SessionView<'_>,
        job: JobId,
        sub_job: usize,
        candidates: &[HyperNodeId],
    ) -> Vec<HyperNodeScore>;
}
