//! What the gang actions may conclude without trying. Exact because only rules are read whose
//! answers the trial itself would get: tests of node objects, which no eviction and no placement
//! changes, and what plugins state of themselves. Specification: actions.md 12.2 S15.

use vc_model::{NodeId, TaskId};

use super::parts::Part;
use super::prepared::{Prepared, Test};
use crate::scan::Filter;
use crate::session::Session;

impl Session<'_> {
    /// Whether a trial to place the task leaves nothing behind that decides or is told: no plugin
    /// is asked of which nothing is known, and no scorer that may fail. Not so in the plain
    /// evaluator, which runs every trial.
    pub fn tries_without_trace(&self, task: TaskId) -> bool {
        let rules = || Prepared::new(self, task, Filter::Allocate);
        self.is_fast() && rules().is_some_and(|rules| !rules.scores_batches())
    }

    /// Which of the nodes a task may ever be placed on, as far as their objects tell: the same for
    /// all classes that share results ([`vc_model::Classes::serial`]).
    pub fn open_nodes(&self, task: TaskId, nodes: &[NodeId]) -> Vec<bool> {
        let rules = Prepared::new(self, task, Filter::Allocate);
        let tests = rules.iter().flat_map(|rules| &rules.tests);
        // One that reads nothing of the class reads claims, which placements change.
        let lasting = tests.filter_map(|(_, test)| match test {
            Test::Object(rule) if rule.part != Part::Nothing => Some(rule),
            _ => None,
        });
        let lasting: Vec<_> = lasting.collect();
        let is_open = |&node: &NodeId| lasting.iter().all(|rule| (rule.ask)(node) != 0);
        nodes.iter().map(is_open).collect()
    }

    /// Whether a placement of these tasks that stands, each on its node and the job pipelined, also
    /// stands without some evictions on other nodes if it does without those and further ones.
    pub fn stands_by_nodes(&self, tasks: impl Iterator<Item = TaskId>) -> bool {
        let (hooks, ask) = (self.hooks(), self.ask());
        let mut tasks = tasks;
        self.is_fast()
            && hooks.pipelines_rows()
            && hooks.ease_by_evictions()
            && tasks.all(|task| hooks.filters_read_rows(ask, task))
    }
}
