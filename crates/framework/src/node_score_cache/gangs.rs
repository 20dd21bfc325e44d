//! What the gang actions may conclude without a trial placement.
//!
//! Exact because:
//! - only rules are read that the trial itself would read: tests of node objects, and what plugins
//!   declare;
//! - no eviction and no placement changes node objects.
//!
//! Specification: actions.md 12.2 S15.

use vc_model::{NodeId, TaskId};

use super::prepared::PreparedRules;
use crate::scan::Filter;
use crate::session::SessionState;

impl SessionState<'_> {
    /// True if a failed trial placement of the task leaves no record that could change a decision
    /// or a message. This requires that every plugin declares what it reads, and that no scorer may
    /// fail. Always false in the plain evaluator, which runs every trial.
    pub fn tries_without_trace(&self, task: TaskId) -> bool {
        let rules = || PreparedRules::new(self, task, Filter::Allocate);
        self.is_fast && rules().is_some_and(|rules| !rules.scores_batches())
    }

    /// True if a trial placement that fails in HyperNodes need not be run, as far as this task is
    /// concerned: it would leave nothing behind but records that the next trial overwrites. Always
    /// false in the plain evaluator.
    pub fn may_skip_trial_of(&self, task: TaskId) -> bool {
        self.is_fast
            && self.is_plain(task)
            && PreparedRules::new(self, task, Filter::Allocate).is_some()
    }

    /// Returns, per node, whether the node objects allow the task there at all. The answer is the
    /// same for all classes with one [`vc_model::Classes::shape_id`].
    pub fn open_nodes(&self, task: TaskId, nodes: &[NodeId]) -> Vec<bool> {
        let rules = PreparedRules::new(self, task, Filter::Allocate);
        let lasting: Vec<_> = rules.iter().flat_map(PreparedRules::lasting_tests).collect();
        let is_open = |&node: &NodeId| lasting.iter().all(|(_, rule)| (rule.value)(node) != 0);
        nodes.iter().map(is_open).collect()
    }

    /// True if further evictions on other nodes can never break a placement of these tasks
    /// (monotonicity). Victims can then be put back together: a placement that holds without all of
    /// them holds without any part of them.
    pub fn stands_by_nodes(&self, tasks: impl Iterator<Item = TaskId>) -> bool {
        let (plugins, view) = (self.plugins(), self.view());
        // A pod that shares a claim may depend on a pod of another node.
        let reads_rows = |task: TaskId| {
            self.class(task).resource_claims.is_empty() && plugins.filters_read_rows(view, task)
        };
        let mut tasks = tasks;
        self.is_fast
            && plugins.pipelines_rows()
            && plugins.ease_by_evictions()
            && tasks.all(reads_rows)
    }
}
