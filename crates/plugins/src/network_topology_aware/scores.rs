//! HyperNodeOrder and BatchNodeOrder. Scores are from 0 to 1 here. Specification: plugins-nodes.md
//! 15.5, 15.6.

use std::collections::BTreeMap;
use std::ops::Range;

use vc_framework::{HyperNodeScore, SessionView};
use vc_model::{HyperNodeId, HyperNodeTree, JobId, NodeId, TaskId};
use vc_resource::Resource;

use super::totals::Totals;
use super::{BEST, NetworkTopologyAware};

/// Tiers without a HyperNode between two that have some, beyond which their weights are not added one by one.
const LONG_GAP: i64 = 64;

impl NetworkTopologyAware {
    /// Scores HyperNodes higher the fuller they become with all tasks of the sub-job.
    pub(super) fn scores_of_hyper_nodes(
        &self,
        view: SessionView<'_>,
        (job, sub_job): (JobId, usize),
        candidates: &[HyperNodeId],
    ) -> Vec<HyperNodeScore> {
        let row = &view.cluster.jobs[job];
        let tasks = &row.sub_jobs[sub_job].tasks;
        let mut request = Resource::default();
        match row.sub_jobs.len() {
            1 => request = row.total_request(),
            _ => tasks.iter().for_each(|&task| request.add(view.cluster.request(task))),
        }
        let placed = nodes_of(view, tasks);
        let mut totals = self.totals();
        let totals = totals.all(view);
        let score = |&id: &HyperNodeId| HyperNodeScore {
            score: self.fullness(totals, id, &request) * BEST * self.weight,
            share: share(view, &placed, tasks.len(), id),
        };
        candidates.iter().map(score).collect()
    }

    /// Scores nodes higher the closer they are to the nodes of the tasks that are placed.
    pub(super) fn near_the_placed(
        &self,
        view: SessionView<'_>,
        (job, sub_job): (JobId, usize),
        allocated: HyperNodeId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) {
        let tree = &*view.info.hyper_nodes;
        let (lowest, highest) = tree.tiers();
        let closeness = |id: HyperNodeId| match id {
            HyperNodeTree::ROOT => 0.0,
            id if id == allocated => 1.0,
            _ if lowest == highest => 1.0,
            id => {
                let common = tree[tree.lca(id, allocated)].tier;
                f64::from(highest - common) / f64::from(highest - lowest)
            }
        };
        by_hyper_node(tree, nodes, out, closeness);
        let best = out.iter().copied().fold(0.0, f64::max);
        let tasks = &view.cluster.jobs[job].sub_jobs[sub_job].tasks;
        let placed = nodes_of(view, tasks);
        let mut shares: BTreeMap<HyperNodeId, f64> = BTreeMap::new();
        for (score, &node) in out.iter_mut().zip(nodes).filter(|(score, _)| **score == best) {
            let id = tree.smallest(node);
            let share = shares.entry(id).or_insert_with(|| share(view, &placed, tasks.len(), id));
            *score += if id == HyperNodeTree::ROOT { 0.0 } else { *share };
        }
    }

    /// Scores a pod without a network topology: nodes outside of HyperNodes first, then full
    /// HyperNodes. Each tier counts less than the one below.
    pub(super) fn outside_of_hyper_nodes(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) {
        let tree = &*view.info.hyper_nodes;
        let request = view.cluster.request(task);
        let (lowest, _) = tree.tiers();
        let tiers = tree.existing_tiers();
        let mut totals = self.totals();
        let totals = totals.all(view);
        let mut known: Vec<Option<f64>> = vec![None; tree.len()];
        let mut fullness = |id: HyperNodeId| {
            *known[id.index()].get_or_insert_with(|| self.fullness(totals, id, request))
        };
        let mut scores: Vec<Option<f64>> = vec![None; tree.len()];
        let mut score = |smallest: HyperNodeId| {
            let above: Vec<HyperNodeId> = tree.ancestors(smallest).collect();
            let (mut sum, mut weights) = (0.0, 0.0);
            let mut next = lowest;
            for &tier in &tiers {
                // No HyperNode has the tiers between two that exist.
                for of_gap in self.weights_of_gap(next..tier) {
                    sum += of_gap;
                    weights += of_gap;
                }
                let of_tier = above.iter().find(|&&id| tree[id].tier == tier);
                sum += self.weight_of(tier) * of_tier.map_or(1.0, |&id| fullness(id));
                weights += self.weight_of(tier);
                next = tier.saturating_add(1);
            }
            let score = sum / weights;
            if score.is_finite() { score } else { 0.0 }
        };
        by_hyper_node(tree, nodes, out, |smallest| {
            *scores[smallest.index()].get_or_insert_with(|| score(smallest))
        });
    }

    /// Returns the weight of a tier. With a fading of 0 tier 1 alone counts, also where there is a tier 0.
    fn weight_of(&self, tier: i32) -> f64 {
        match self.fading == 0.0 {
            true => f64::from(u8::from(tier == 1)),
            false => self.fading.powi(tier.saturating_sub(1)),
        }
    }

    /// Returns weights whose sum is that of these tiers: one by one, or of a long gap all in one.
    fn weights_of_gap(&self, tiers: Range<i32>) -> Vec<f64> {
        let n_tiers = i64::from(tiers.end) - i64::from(tiers.start);
        if n_tiers <= LONG_GAP {
            return tiers.map(|tier| self.weight_of(tier)).collect();
        }
        let first = self.weight_of(tiers.start);
        vec![match self.fading {
            0.0 => f64::from(u8::from(tiers.contains(&1))),
            1.0 => n_tiers as f64,
            fading => first * (1.0 - fading.powf(n_tiers as f64)) / (1.0 - fading),
        }]
    }

    /// Returns how full the HyperNode is with the request, as a weighted mean over the resources
    /// that are asked for. Returns 0 if it has too little of one.
    fn fullness(&self, totals: &Totals, id: HyperNodeId, request: &Resource) -> f64 {
        let (all, used) = (&totals.allocatable[id.index()], &totals.used[id.index()]);
        let (mut sum, mut weights) = (0.0, 0.0);
        for &(dim, weight) in self.weights.iter().filter(|(dim, _)| !request.is_zero(*dim)) {
            let used = request.to_f64(dim) + used.to_f64(dim);
            let allocatable = all.to_f64(dim);
            if allocatable < used {
                return 0.0;
            }
            sum += weight * used / allocatable;
            weights += weight;
        }
        if 0.0 < weights { sum / weights } else { 0.0 }
    }
}

/// Sets the score of each node to that of the smallest HyperNode that contains it.
fn by_hyper_node(
    tree: &HyperNodeTree,
    nodes: &[NodeId],
    out: &mut [f64],
    mut score: impl FnMut(HyperNodeId) -> f64,
) {
    let mut out = out.iter_mut();
    // Neighbours in name order mostly have one HyperNode.
    for alike in nodes.chunk_by(|&l, &r| tree.smallest(l) == tree.smallest(r)) {
        let of_id = score(tree.smallest(alike[0]));
        out.by_ref().take(alike.len()).for_each(|of_node| *of_node = of_id);
    }
}

/// Returns the node of each task with a node.
fn nodes_of(view: SessionView<'_>, tasks: &[TaskId]) -> Vec<NodeId> {
    let mut nodes = Vec::with_capacity(tasks.len());
    nodes.extend(tasks.iter().filter_map(|&task| view.cluster.tasks[task].node));
    nodes
}

/// Returns the share of the tasks that have a node in the HyperNode. `placed` has the node of each
/// task with a node.
fn share(view: SessionView<'_>, placed: &[NodeId], n_tasks: usize, id: HyperNodeId) -> f64 {
    let is_there = |node: &&NodeId| view.info.hyper_nodes.contains(id, **node);
    placed.iter().filter(is_there).count() as f64 / n_tasks.max(1) as f64
}
