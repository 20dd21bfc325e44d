//! Numbers of pods that find room on each node, once per kind of node.
//!
//! Exact because:
//! - nodes of one kind have equal FutureIdle (`node_kinds.rs`);
//! - tests of node objects are those of [`SessionState::open_nodes`], read from columns that follow
//!   the change logs;
//! - the plain evaluator reads every node, and random stories with HyperNodes compare the two.
//!
//! Specification: actions.md 12.2 S12.

use vc_model::{Id, TaskId};
use vc_resource::Dim;

use super::NodeScoreCache;
use super::column_cache::{FieldColumn, NodeColumnRule};
use super::prepared::PreparedRules;
use crate::scan::Filter;
use crate::session::{Session, SessionState};

impl Session<'_> {
    /// Returns what `n_places` says of the FutureIdle of each node, by the index of its id. It is 0
    /// for nodes whose objects do not admit the task. Returns `None` if nothing is cached.
    pub fn count_places(
        &mut self,
        task: TaskId,
        n_places: impl Fn(&dyn Fn(Dim) -> i64) -> i64,
    ) -> Option<Vec<i64>> {
        self.caches.score_cache.as_mut()?.count_places(&self.state, task, n_places)
    }
}

impl NodeScoreCache {
    fn count_places(
        &mut self,
        session: &SessionState<'_>,
        task: TaskId,
        n_places: impl Fn(&dyn Fn(Dim) -> i64) -> i64,
    ) -> Option<Vec<i64>> {
        let rules = PreparedRules::new(session, task, Filter::Allocate)?;
        self.rows.follow(session);
        self.column_cache.follow(session, &self.rows);
        let class = session.class(task);
        let column_of = |of_rule: (usize, &NodeColumnRule<'_>)| {
            let (owner, rule) = of_rule;
            self.column_cache.get(session, &self.rows, (owner, rule, class), None).slot
        };
        let slots: Vec<usize> = rules.lasting_tests().map(column_of).collect();
        let columns: Vec<&FieldColumn> =
            slots.into_iter().map(|slot| self.column_cache.column(slot)).collect();
        let kinds = &self.rows.kinds;
        let mut of_kinds: Vec<Option<i64>> = vec![None; kinds.len()];
        let nodes = &session.info().nodes;
        let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        let mut by_node = vec![0; n_ids];
        for (at, &node) in nodes.iter().enumerate() {
            if columns.iter().all(|column| column.at(at) != 0) {
                let kind = kinds.of()[at] as usize;
                let count = || n_places(&|dim| kinds.columns.of(dim).future_idle[kind]);
                by_node[node.index()] = *of_kinds[kind].get_or_insert_with(count);
            }
        }
        Some(by_node)
    }
}
