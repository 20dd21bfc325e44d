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
    pub problem: Option<GradientProblem>,
}

/// The reason for which a job or a sub-job has no HyperNode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GradientProblem {
    /// The text names the limit that left no HyperNode.
    pub text: String,
    /// The field of the PodGroup that has to change, if no allowed HyperNode could hold the pods even
    /// when empty. `None` also for a tier that no HyperNode has: the engine reports such fields by
    /// themselves.
    pub field: Option<String>,
}

impl Gradient {
    /// The gradient with one HyperNode.
    pub fn one(id: HyperNodeId) -> Self {
        Self { groups: vec![vec![id]], problem: None }
    }

    /// The gradient without a HyperNode.
    pub fn none(problem: GradientProblem) -> Self {
        Self { groups: Vec::new(), problem: Some(problem) }
    }
}

/// What a gradient is asked for.
#[derive(Clone, Copy)]
pub enum GradientPurpose<'a> {
    /// To place pods in room that is idle or becomes free.
    Allocate,
    /// To evict pods there.
    Evict {
        /// True if the HyperNode may have room once its candidates are evicted. Others do not count
        /// towards the largest number of HyperNodes that are tried.
        may_suffice: &'a dyn Fn(HyperNodeId) -> bool,
    },
}

/// A question for the HyperNodes in which a job, or one of its sub-jobs, may be placed.
#[derive(Clone, Copy)]
pub struct GradientQuery<'a> {
    /// The job.
    pub job: JobId,
    /// Index into the sub-jobs of the job. `None` for the job as a whole.
    pub sub_job: Option<usize>,
    /// Only this HyperNode and those below it are asked for.
    pub under: HyperNodeId,
    /// What they are asked for.
    pub purpose: GradientPurpose<'a>,
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
    /// HyperNodeGradient: the HyperNodes that answer the question.
    fn gradient(&self, view: SessionView<'_>, query: GradientQuery<'_>) -> Gradient;

    /// Returns the HyperNodes of the gradients of a sub-job under each of these, in any order. Each
    /// comes with the place of the HyperNode that was asked for.
    fn gradients(
        &self,
        view: SessionView<'_>,
        (job, sub_job): (JobId, usize),
        under: &[HyperNodeId],
    ) -> Vec<(usize, HyperNodeId)> {
        let purpose = GradientPurpose::Allocate;
        let of_each = under.iter().enumerate().flat_map(|(place, &under)| {
            let query = GradientQuery { job, sub_job: Some(sub_job), under, purpose };
            let found = self.gradient(view, query).groups.concat();
            found.into_iter().map(move |id| (place, id))
        });
        of_each.collect()
    }

    /// HyperNodeOrder: the scores of HyperNodes in which a sub-job finds places, in their order.
    fn hyper_node_order(
        &self,
        view: SessionView<'_>,
        job: JobId,
        sub_job: usize,
        candidates: &[HyperNodeId],
    ) -> Vec<HyperNodeScore>;
}
