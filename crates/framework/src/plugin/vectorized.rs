//! Faster forms of node rules: they compute what all nodes have in common once, or answer for many
//! nodes at a time. They give the same answers as the plain rules. Specification: core.md 5.3,
//! actions.md 12.2 S2-S4.

use vc_model::TaskId;

use super::{NodeRule, SessionView};
use crate::node_score_cache::{ColumnFill, NodeTests, ScoreColumn};

/// Node rules of a plugin in faster forms. Every form has a neutral default.
pub trait VectorizedPlugin {
    /// Returns Predicate for one task, with everything that does not depend on the node computed in
    /// advance. `None` means that `predicate` is called for each node.
    fn node_rule<'a>(&'a self, _view: SessionView<'a>, _task: TaskId) -> Option<NodeRule<'a>> {
        None
    }
    /// Returns Predicate as separate tests, each cached on its own. `None` means that Predicate is
    /// cached as a whole, if its declared inputs allow it.
    fn node_tests<'a>(&'a self, _view: SessionView<'a>, _task: TaskId) -> Option<NodeTests<'a>> {
        None
    }
    /// Returns NodeOrder over columns: it adds the scores of [`super::Plugin::node_order`], which
    /// must not fail for the task. `None` means that `node_order` is called for each node.
    fn node_order_fill<'a>(
        &'a self,
        _view: SessionView<'a>,
        _task: TaskId,
    ) -> Option<ColumnFill<'a, f64>> {
        None
    }
    /// Returns BatchNodeOrder as a sum of scorers that declare what they read. Returns `None` if it
    /// is no such sum.
    fn columns<'a>(
        &'a self,
        _view: SessionView<'a>,
        _task: TaskId,
    ) -> Option<Vec<ScoreColumn<'a>>> {
        None
    }
}
