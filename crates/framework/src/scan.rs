//! The plain evaluator: for a task it filters every node, scores every node, and chooses by score,
//! then name. It is the rule in code and the oracle of the fast evaluator. Specification:
//! actions.md 2.6-2.9, core.md 8.

use vc_model::{Code, Finding, FitErrors, NodeId, Reason, TaskId};
use vc_resource::{Dim, Resource};

use crate::meter::Stage;
use crate::session::SessionState;

/// Which findings reject a node (actions.md 2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Filter {
    /// Too little room in FutureIdle rejects a node, then any finding of a plugin.
    Allocate,
    /// Any finding of a plugin rejects a node; room is not checked (backfill).
    BestEffort,
    /// Only findings that eviction cannot cure reject a node (preempt, reclaim).
    Preempt,
}

/// Reason against a node that belongs to another scheduler (core.md 3.10, 4.10).
const OUTSIDE_SHARD: &str = "node isn't in scheduler node shard";

/// Returns the finding against nodes outside a hard shard (actions.md 2.6, item 1).
pub fn outside_shard() -> Finding {
    Finding::new(Code::Error, OUTSIDE_SHARD)
}

/// Returns the finding that the task does not fit in this dimension.
pub(crate) fn no_room(dim: Dim) -> Finding {
    Finding { code: Code::Unschedulable, reason: Reason::Insufficient(dim) }
}

/// Result of filtering nodes for a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Feasible nodes, in the given order.
    pub feasible: Vec<NodeId>,
    /// Fit errors of all other nodes.
    pub errors: FitErrors,
}

impl SessionState<'_> {
    /// Filters every one of `nodes` for the task.
    pub fn filter(&self, task: TaskId, nodes: &[NodeId], filter: Filter) -> Scan {
        if let Some(scan) = self.filter_lifted(task, nodes, filter) {
            return scan;
        }
        let start = self.plugins().meter.now();
        let mut scan = Scan::default();
        let mut findings = Vec::new();
        let rules = self.plugins().node_rules(self.view(), task);
        let mut at_once = self.findings_at_once(task, nodes, filter);
        for &node in nodes {
            findings.clear();
            match (self.unusable(task, node, filter), &mut at_once) {
                (Some(finding), _) => findings.push(finding),
                (None, Some(of_nodes)) => findings.extend(of_nodes.next().into_iter().flatten()),
                (None, None) => rules.find(node, &mut findings),
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
        self.plugins().meter.ends(Stage::Predicate, start);
        scan
    }

    /// Returns the findings of the plugins for each usable node, if a plugin looks at several nodes
    /// at once. Returns `None` otherwise.
    fn findings_at_once(
        &self,
        task: TaskId,
        nodes: &[NodeId],
        filter: Filter,
    ) -> Option<std::vec::IntoIter<Vec<Finding>>> {
        self.plugins().predicate_all(self.view(), task, &[])?;
        let is_usable = |node: &NodeId| self.unusable(task, *node, filter).is_none();
        let usable: Vec<NodeId> = nodes.iter().copied().filter(is_usable).collect();
        let found = self.plugins().predicate_all(self.view(), task, &usable)?;
        Some(found.into_iter())
    }

    /// Returns a finding that rejects the node before any plugin is called. Returns `None` if there
    /// is none.
    pub(crate) fn unusable(&self, task: TaskId, node: NodeId, filter: Filter) -> Option<Finding> {
        if self.is_outside_shard(node) {
            return Some(outside_shard());
        }
        if filter != Filter::Allocate {
            return None;
        }
        self.lacking(task, node).map(no_room)
    }

    /// Returns the first dimension in which the task does not fit FutureIdle (A4: in report order).
    /// C-15: dimensions that the task does not request do not count.
    fn lacking(&self, task: TaskId, node: NodeId) -> Option<Dim> {
        self.nodes[node].future_lacking(self.request(task), None, &self.dims)
    }

    /// True if the request fits the idle amounts of the node.
    pub fn fits_idle(&self, task: TaskId, node: NodeId) -> bool {
        self.request(task).fits(&self.nodes[node].idle)
    }

    /// True if the request fits FutureIdle of the node.
    pub fn fits_future_idle(&self, task: TaskId, node: NodeId) -> bool {
        self.lacking(task, node).is_none()
    }

    /// True if the request fits FutureIdle of the node plus the amounts of the victims (actions.md
    /// 2.9). It may fit without victims, in room of an earlier, larger eviction.
    pub fn victims_suffice(&self, task: TaskId, node: NodeId, victims: &[TaskId]) -> bool {
        let mut given = Resource::default();
        victims.iter().for_each(|&victim| given.add(self.request(victim)));
        self.nodes[node].future_lacking(self.request(task), Some(&given), &self.dims).is_none()
    }

    /// Returns the best node: a plugin's choice, else the highest score, ties by name. A single
    /// node is not scored, and a NaN score never wins. `nodes` must be in name order.
    pub fn choose(&self, task: TaskId, nodes: &[NodeId]) -> Option<NodeId> {
        if nodes.len() <= 1 {
            return nodes.first().copied();
        }
        let start = self.plugins().meter.now();
        let scores = self.plugins().scores(self.view(), task, nodes);
        self.plugins().meter.ends(Stage::Scoring, start);
        let scored: Vec<(NodeId, f64)> = nodes.iter().copied().zip(scores).collect();
        if let Some(node) = self.plugins().best_node(self.view(), task, &scored) {
            return Some(node);
        }
        let comparable = scored.into_iter().filter(|(_, score)| !score.is_nan());
        let better = |best: (NodeId, f64), next: (NodeId, f64)| {
            if best.1 < next.1 { next } else { best }
        };
        comparable.reduce(better).map(|(node, _)| node)
    }

    /// Returns the best node by the groups of actions.md 4.7: idle nodes first, then nodes that
    /// will be idle. With soft sharding, nodes of the own shard come first in both groups.
    pub fn choose_by_group(&self, task: TaskId, nodes: &[NodeId]) -> Option<NodeId> {
        let (idle, future): (Vec<NodeId>, Vec<NodeId>) =
            nodes.iter().partition(|&&node| self.fits_idle(task, node));
        self.choose_by_shard(task, &idle).or_else(|| {
            let fits = |node: &NodeId| self.fits_future_idle(task, *node);
            let future: Vec<NodeId> = future.into_iter().filter(fits).collect();
            self.choose_by_shard(task, &future)
        })
    }

    /// Returns the best node of the own shard, else of the other nodes (core.md 8.4).
    pub fn choose_by_shard(&self, task: TaskId, nodes: &[NodeId]) -> Option<NodeId> {
        match self.by_shard(nodes) {
            Some(groups) => groups.iter().find_map(|group| self.choose(task, group)),
            None => self.choose(task, nodes),
        }
    }

    /// Returns the nodes on which evictions can help a task: all but the unresolvable ones
    /// (actions.md 2.8).
    pub fn nodes_worth_evicting(&self, task: TaskId) -> Vec<NodeId> {
        let errors = self.records.fit_errors.get(task);
        let unresolvable =
            |node: &NodeId| errors.is_some_and(|errors| errors.is_unresolvable(*node));
        self.info().nodes.iter().copied().filter(|node| !unresolvable(node)).collect()
    }
}
