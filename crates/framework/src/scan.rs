//! The plain evaluator: for a task, filter every node, score every node, choose by score, then
//! name. It is the rule in code that every shortcut is compared with. Specification: actions.md
//! 2.6-2.9, core.md 8.

use vc_model::{Code, Finding, FitErrors, NodeId, Reason, TaskId};
use vc_resource::Dim;

use crate::meter::Stage;
use crate::session::Session;

/// Which findings reject a node (actions.md 2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Filter {
    /// Room in FutureIdle first, then any finding of a plugin.
    Allocate,
    /// Any finding of a plugin; no room is needed (backfill).
    BestEffort,
    /// Only findings that eviction cannot cure (preempt, reclaim).
    Preempt,
}

/// A node that belongs to another scheduler (core.md 3.10, 4.10).
const OUTSIDE_SHARD: &str = "node isn't in scheduler node shard";

/// What a hard shard says of the nodes outside (actions.md 2.6, item 1).
pub fn outside_shard() -> Finding {
    Finding::new(Code::Error, OUTSIDE_SHARD)
}

/// The task does not fit in this dimension.
pub(crate) fn no_room(dim: Dim) -> Finding {
    Finding { code: Code::Unschedulable, reason: Reason::Insufficient(dim) }
}

/// What a scan of nodes found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// In the order of the nodes given.
    pub feasible: Vec<NodeId>,
    /// Of the others.
    pub errors: FitErrors,
}

impl Session<'_> {
    /// Filters every one of `nodes` for the task.
    pub fn filter(&self, task: TaskId, nodes: &[NodeId], filter: Filter) -> Scan {
        let start = self.hooks().meter.now();
        let mut scan = Scan::default();
        let mut findings = Vec::new();
        let rules = self.hooks().node_rules(self.ask(), task);
        for &node in nodes {
            findings.clear();
            match self.unusable(task, node, filter) {
                Some(finding) => findings.push(finding),
                None => rules.find(node, &mut findings),
            }
            let rejected = match filter {
                Filter::Preempt => findings.iter().any(|found| found.code != Code::Unschedulable),
                Filter::Allocate | Filter::BestEffort => !findings.is_empty(),
            };
            match rejected {
                true => scan.errors.add(node, &findings),
                false => scan.feasible.push(node),
            }
        }
        self.hooks().meter.ends(Stage::Predicate, start);
        scan
    }

    /// Why no plugin need be asked about the node.
    pub(crate) fn unusable(&self, task: TaskId, node: NodeId, filter: Filter) -> Option<Finding> {
        if self.is_outside_shard(node) {
            return Some(outside_shard());
        }
        if filter != Filter::Allocate {
            return None;
        }
        self.lacking(task, node).map(no_room)
    }

    /// The first dimension in which the task does not fit FutureIdle (A4, C-15).
    fn lacking(&self, task: TaskId, node: NodeId) -> Option<Dim> {
        self.request(task).first_lacking(&self.nodes[node].future_idle(), &self.dims)
    }

    /// Whether the request fits what is idle now.
    pub fn fits_idle(&self, task: TaskId, node: NodeId) -> bool {
        self.request(task).fits(&self.nodes[node].idle)
    }

    /// Whether the request fits what will be idle.
    pub fn fits_future_idle(&self, task: TaskId, node: NodeId) -> bool {
        self.request(task).fits(&self.nodes[node].future_idle())
    }

    /// Whether the request fits what will be idle once the victims are gone too (actions.md 2.9).
    /// Without victims there may be room from an earlier, larger eviction.
    pub fn victims_suffice(&self, task: TaskId, node: NodeId, victims: &[TaskId]) -> bool {
        let mut room = self.nodes[node].future_idle();
        victims.iter().for_each(|&victim| room.add(self.request(victim)));
        self.request(task).fits(&room)
    }

    /// The best of the nodes: a plugin's choice, else the highest score, ties by name. One node
    /// needs no score; a score that is no number never wins. `nodes` are in name order.
    pub fn choose(&self, task: TaskId, nodes: &[NodeId]) -> Option<NodeId> {
        if nodes.len() <= 1 {
            return nodes.first().copied();
        }
        let start = self.hooks().meter.now();
        let scores = self.hooks().scores(self.ask(), task, nodes);
        self.hooks().meter.ends(Stage::Scoring, start);
        let scored: Vec<(NodeId, f64)> = nodes.iter().copied().zip(scores).collect();
        if let Some(node) = self.hooks().best_node(self.ask(), task, &scored) {
            return Some(node);
        }
        let comparable = scored.into_iter().filter(|(_, score)| !score.is_nan());
        let better = |best: (NodeId, f64), next: (NodeId, f64)| {
            if best.1 < next.1 { next } else { best }
        };
        comparable.reduce(better).map(|(node, _)| node)
    }

    /// Candidates by the groups of actions.md 4.7: idle nodes first, then those that will be; with
    /// soft sharding those of the own shard first in either.
    pub fn choose_by_group(&self, task: TaskId, nodes: &[NodeId]) -> Option<NodeId> {
        let (idle, future): (Vec<NodeId>, Vec<NodeId>) =
            nodes.iter().partition(|&&node| self.fits_idle(task, node));
        self.choose_by_shard(task, &idle).or_else(|| {
            let fits = |node: &NodeId| self.fits_future_idle(task, *node);
            let future: Vec<NodeId> = future.into_iter().filter(fits).collect();
            self.choose_by_shard(task, &future)
        })
    }

    /// The best node of the own shard, else of the others (core.md 8.4).
    pub fn choose_by_shard(&self, task: TaskId, nodes: &[NodeId]) -> Option<NodeId> {
        match self.by_shard(nodes) {
            Some(groups) => groups.iter().find_map(|group| self.choose(task, group)),
            None => self.choose(task, nodes),
        }
    }

    /// Nodes worth evicting on for a task: all but those that eviction cannot help (actions.md
    /// 2.8).
    pub fn nodes_worth_evicting(&self, task: TaskId) -> Vec<NodeId> {
        let errors = self.records.fit_errors.get(&task);
        let hopeless = |node: &NodeId| errors.is_some_and(|errors| errors.is_unresolvable(*node));
        self.facts().nodes.iter().copied().filter(|node| !hopeless(node)).collect()
    }
}
