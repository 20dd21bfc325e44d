//! Scores of the candidate nodes of a task: the sums over the plugins, where a scorer that fails
//! counts 0. Specification: core.md 5.3, 8.3, actions.md 2.7 with A13.

use std::sync::atomic::Ordering;

use vc_model::{NodeId, TaskId};

use crate::depends::Inputs;
use crate::node_score_cache::{NodeOrderForm, ScoreColumn};
use crate::plugin::{Plugin, SessionView};
use crate::plugin_set::{PluginSet, has_revision};
use crate::points::Points;

impl PluginSet {
    /// Σ NodeOrder + Σ BatchNodeOrder + Σ reduced NodeMap per node, in the order of `nodes`.
    pub fn scores(&self, view: SessionView<'_>, task: TaskId, nodes: &[NodeId]) -> Vec<f64> {
        let mut total: Vec<f64> =
            nodes.iter().map(|&node| self.node_score(view, task, node)).collect();
        let mut column = vec![0.0; nodes.len()];
        for plugin in self.all(Points::BATCH_NODE_ORDER) {
            column.fill(0.0);
            match plugin.batch_node_order(view, task, nodes, &mut column) {
                Ok(()) => total.iter_mut().zip(&column).for_each(|(sum, score)| *sum += score),
                Err(error) => self.note_failure(&error),
            }
        }
        self.add_reduced(view, task, nodes, &mut total);
        total
    }

    /// Adds the reduced NodeMap scores: each plugin's scores are rounded down and normalised by the
    /// plugin (core.md 8.3). A plugin without NodeReduce contributes its scores as they are.
    fn add_reduced(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
        total: &mut [f64],
    ) {
        for plugin in self.all(Points::NODE_MAP) {
            let mut mapped = Vec::with_capacity(nodes.len());
            for &node in nodes {
                let score = plugin.node_map(view, task, node).unwrap_or_else(|error| {
                    self.note_failure(&error);
                    0.0
                });
                mapped.push(score.floor() as i64);
            }
            let reduced = match plugin.points().has(Points::NODE_REDUCE) {
                true => plugin.node_reduce(view, task, &mut mapped),
                false => Ok(()),
            };
            match reduced {
                Ok(()) => {
                    total.iter_mut().zip(&mapped).for_each(|(sum, &score)| *sum += score as f64)
                }
                Err(error) => self.note_failure(&error),
            }
        }
    }

    /// True if the filters and scores of a task on a node may be cached until its class or the node
    /// changes. [`PluginSet::columns`] covers batch scores.
    pub(crate) fn has_cacheable_scores(&self) -> bool {
        let nobody = |point| self.all(point).next().is_none();
        let remembered = |point| {
            let mut plugins = self.all_with_inputs(point);
            plugins.all(|(plugin, reads)| reads.is_by_shape_and_node(has_revision(plugin)))
        };
        nobody(Points::BEST_NODE) && nobody(Points::NODE_MAP) && remembered(Points::NODE_ORDER)
    }

    /// True if some plugin reads the queue of a task to filter or score nodes.
    pub(crate) fn read_queues_for_scores(&self) -> bool {
        [Points::PREDICATE, Points::NODE_ORDER]
            .into_iter()
            .any(|point| self.all_with_inputs(point).any(|(_, reads)| reads.has(Inputs::OWN_QUEUE)))
    }

    /// True if some plugin may read namespace or labels of the pod to score it. Scores of nodes by
    /// their rows read neither.
    pub(crate) fn scorers_read_labels(&self, view: SessionView<'_>, task: TaskId) -> bool {
        let is_batch = |column: &ScoreColumn<'_>| column.raw.is_batch();
        let mut plugins = self.all_with_inputs(Points::BATCH_NODE_ORDER);
        !self.has_cacheable_scores()
            || plugins.any(|(plugin, reads)| {
                let columns = || plugin.as_vectorized()?.columns(view, task);
                reads.has(Inputs::POD_LABELS)
                    && columns().is_none_or(|columns| columns.iter().any(is_batch))
            })
    }

    /// Returns the columns of every plugin that scores in batches, in tier order. Returns `None` if
    /// one of them has no columns.
    pub(crate) fn columns<'a>(
        &'a self,
        view: SessionView<'a>,
        task: TaskId,
    ) -> Option<Vec<Vec<ScoreColumn<'a>>>> {
        let plugins = self.all(Points::BATCH_NODE_ORDER);
        plugins.map(|plugin| plugin.as_vectorized()?.columns(view, task)).collect()
    }

    /// Returns NodeOrder of all plugins in tier order, over columns where the plugin supports it.
    pub(crate) fn bases<'a>(
        &'a self,
        view: SessionView<'a>,
        task: TaskId,
    ) -> Vec<NodeOrderForm<'a>> {
        let fill = |plugin: &'a dyn Plugin| plugin.as_vectorized()?.node_order_fill(view, task);
        let base = |plugin: &'a dyn Plugin| match fill(plugin) {
            Some(fill) => NodeOrderForm::Amounts(fill),
            None => NodeOrderForm::Row(Box::new(move |node| {
                let score = plugin.node_order(view, task, node);
                score.inspect_err(|error| self.note_failure(error)).ok()
            })),
        };
        self.all(Points::NODE_ORDER).map(base).collect()
    }

    /// Returns Σ NodeOrder of a node. After an error it is 0, and the node keeps its other scores
    /// (core.md 8.3).
    fn node_score(&self, view: SessionView<'_>, task: TaskId, node: NodeId) -> f64 {
        let mut scores =
            self.all(Points::NODE_ORDER).map(|plugin| plugin.node_order(view, task, node));
        let sum = scores.try_fold(0.0, |sum, score| score.map(|score| sum + score));
        sum.unwrap_or_else(|error| {
            self.note_failure(&error);
            0.0
        })
    }

    /// Logs the first failure of a scorer in a session (A13: a scorer that fails counts 0).
    fn note_failure(&self, error: &str) {
        if !self.scorer_failed.swap(true, Ordering::Relaxed) {
            tracing::error!("scoring failed: {error}");
        }
    }
}
