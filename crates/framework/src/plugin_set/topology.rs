//! HyperNodes for jobs with a network topology: the first plugin decides which to try, and scores
//! are added up. Specification: core.md 5.3.

use vc_model::{HyperNodeId, JobId};

use crate::plugin::{Gradient, GradientQuery, HyperNodeScore, Plugin, SessionView};
use crate::plugin_set::PluginSet;
use crate::points::Points;

impl PluginSet {
    /// Returns the HyperNodes to try for a job or a sub-job. Without a plugin that decides it is
    /// `under` alone.
    pub fn gradient(&self, view: SessionView<'_>, query: GradientQuery<'_>) -> Gradient {
        let mut deciding = self.all(Points::HYPER_NODE_GRADIENT).filter_map(Plugin::as_topology);
        let decided = deciding.next().map(|plugin| plugin.gradient(view, query));
        decided.unwrap_or_else(|| Gradient::one(query.under))
    }

    /// Returns the highest score of a HyperNode that a sub-job may choose at or below each of these.
    /// Without one it is negative infinity.
    pub fn highest_scores(
        &self,
        view: SessionView<'_>,
        (job, sub_job): (JobId, usize),
        under: &[HyperNodeId],
    ) -> Vec<f64> {
        let mut deciding = self.all(Points::HYPER_NODE_GRADIENT).filter_map(Plugin::as_topology);
        let found = match deciding.next() {
            Some(plugin) => plugin.gradients(view, (job, sub_job), under),
            None => under.iter().copied().enumerate().collect(),
        };
        let candidates: Vec<HyperNodeId> = found.iter().map(|&(_, id)| id).collect();
        let scores = self.hyper_node_scores(view, job, sub_job, &candidates);
        let mut highest = vec![f64::NEG_INFINITY; under.len()];
        for ((place, _), score) in found.into_iter().zip(scores) {
            highest[place] = highest[place].max(score.score);
        }
        highest
    }

    /// True if a plugin decides which HyperNodes a job may use.
    pub fn places_by_hyper_nodes(&self) -> bool {
        self.all(Points::HYPER_NODE_GRADIENT).any(|plugin| plugin.as_topology().is_some())
    }

    /// Returns the scores of HyperNodes for a sub-job, in their order.
    pub fn hyper_node_scores(
        &self,
        view: SessionView<'_>,
        job: JobId,
        sub_job: usize,
        candidates: &[HyperNodeId],
    ) -> Vec<HyperNodeScore> {
        let mut sums = vec![HyperNodeScore::default(); candidates.len()];
        for plugin in self.all(Points::HYPER_NODE_ORDER).filter_map(Plugin::as_topology) {
            let scores = plugin.hyper_node_order(view, job, sub_job, candidates);
            for (sum, score) in sums.iter_mut().zip(scores) {
                sum.score += score.score;
                sum.share += score.share;
            }
        }
        sums
    }
}
