//! Scores of the candidate nodes of a task: the sums over the plugins, where a scorer that fails
//! counts 0. Specification: core.md 5.3, 8.3, actions.md 2.7 with A13.

use std::sync::atomic::Ordering;

use vc_model::{NodeId, TaskId};

use crate::dispatch::Dispatch;
use crate::fast::{Base, Column, Raw, Reads};
use crate::plugin::{Ask, Plugin};
use crate::points::Points;

impl Dispatch {
    /// Σ NodeOrder + Σ BatchNodeOrder + Σ reduced NodeMap per node, in the order of `nodes`.
    pub fn scores(&self, ask: Ask<'_>, task: TaskId, nodes: &[NodeId]) -> Vec<f64> {
        let mut total: Vec<f64> =
            nodes.iter().map(|&node| self.node_score(ask, task, node)).collect();
        let mut column = vec![0.0; nodes.len()];
        for plugin in self.all(Points::BATCH_NODE_ORDER) {
            column.fill(0.0);
            match plugin.batch_node_order(ask, task, nodes, &mut column) {
                Ok(()) => total.iter_mut().zip(&column).for_each(|(sum, score)| *sum += score),
                Err(error) => self.note_failure(&error),
            }
        }
        self.add_reduced(ask, task, nodes, &mut total);
        total
    }

    /// Σ reduced NodeMap scores: each plugin's own are rounded down, then normalised by it (8.3). A plugin
    /// that maps and does not reduce counts as it is.
    fn add_reduced(&self, ask: Ask<'_>, task: TaskId, nodes: &[NodeId], total: &mut [f64]) {
        for plugin in self.all(Points::NODE_MAP) {
            let mut mapped = Vec::with_capacity(nodes.len());
            for &node in nodes {
                let score = plugin.node_map(ask, task, node).unwrap_or_else(|error| {
                    self.note_failure(&error);
                    0.0
                });
                mapped.push(score.floor() as i64);
            }
            let reduced = match plugin.points().has(Points::NODE_REDUCE) {
                true => plugin.node_reduce(ask, task, &mut mapped),
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

    /// Whether what the plugins say about the task on a node may be remembered until its class or
    /// the node changes; [`Dispatch::columns`] says it of batches.
    pub(crate) fn is_memorable(&self, ask: Ask<'_>, task: TaskId) -> bool {
        let nobody = |point| self.all(point).next().is_none();
        let remembered = |point| {
            let mut plugins = self.all(point);
            plugins.all(|plugin| plugin.reads(ask, task, point) == Reads::ClassAndNode)
        };
        nobody(Points::BEST_NODE) && nobody(Points::NODE_MAP) && remembered(Points::NODE_ORDER)
    }

    /// Whether every plugin scores by the class of the task without namespace and labels and the row
    /// of the node alone, but for the extremes by which scores are normalised.
    pub(crate) fn scorers_read_rows(&self, ask: Ask<'_>, task: TaskId) -> bool {
        let by_row = |column: &Column<'_>| !matches!(column.raw, Raw::Batch(_));
        let columns = || self.columns(ask, task);
        self.is_memorable(ask, task)
            && columns().is_some_and(|columns| columns.iter().flatten().all(by_row))
    }

    /// Columns of every plugin that scores in batches, in tier order. `None`: one is not of that
    /// form.
    pub(crate) fn columns<'a>(
        &'a self,
        ask: Ask<'a>,
        task: TaskId,
    ) -> Option<Vec<Vec<Column<'a>>>> {
        self.all(Points::BATCH_NODE_ORDER).map(|plugin| plugin.columns(ask, task)).collect()
    }

    /// NodeOrder of all plugins in tier order, over columns where they can.
    pub(crate) fn bases<'a>(&'a self, ask: Ask<'a>, task: TaskId) -> Vec<Base<'a>> {
        let base = |plugin: &'a dyn Plugin| match plugin.node_order_fill(ask, task) {
            Some(fill) => Base::Amounts(fill),
            None => Base::Row(Box::new(move |node| {
                let score = plugin.node_order(ask, task, node);
                score.inspect_err(|error| self.note_failure(error)).ok()
            })),
        };
        self.all(Points::NODE_ORDER).map(base).collect()
    }

    /// Σ NodeOrder; an error leaves the node with its other parts only (8.3).
    fn node_score(&self, ask: Ask<'_>, task: TaskId, node: NodeId) -> f64 {
        let mut scores =
            self.all(Points::NODE_ORDER).map(|plugin| plugin.node_order(ask, task, node));
        let sum = scores.try_fold(0.0, |sum, score| score.map(|score| sum + score));
        sum.unwrap_or_else(|error| {
            self.note_failure(&error);
            0.0
        })
    }

    /// One line per cycle (A13).
    fn note_failure(&self, error: &str) {
        if !self.scorer_failed.swap(true, Ordering::Relaxed) {
            tracing::error!("scoring failed: {error}");
        }
    }
}
