//! What the gang actions may conclude without trying. Exact because only rules are read whose answers
//! the trial itself would get: tests of node objects, which no eviction and no placement changes,
//! and what plugins state of themselves. Specification: actions.md 12.2 S15.

use vc_model::{NodeId, TaskId};

use super::parts::Part;
use super::prepared::{Prepared, Test};
use crate::scan::Filter;
use crate::session::Session;

impl Session<'_> {
    /// Which of the nodes a task of this class may ever be placed on, as far as their objects tell.
    /// `None`: a trial may leave something behind besides its answer, because scorers are asked that
    /// may fail, or plugins of which nothing is known; or the plain evaluator is selected.
    pub fn open_nodes(&self, task: TaskId, nodes: &[NodeId]) -> Option<Vec<bool>> {
        if !self.is_fast() {
            return None;
        }
        let rules = Prepared::new(self, task, Filter::Allocate)?;
        if rules.scores_batches() {
            return None;
        }
        // One that reads nothing of the class reads claims, which placements change.
        let lasting = rules.tests.iter().filter_map(|(_, test)| match test {
            Test::Object(rule) if rule.part != Part::Nothing => Some(rule),
            _ => None,
        });
        let lasting: Vec<_> = lasting.collect();
        let is_open = |&node: &NodeId| lasting.iter().all(|rule| (rule.ask)(node) != 0);
        Some(nodes.iter().map(is_open).collect())
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
