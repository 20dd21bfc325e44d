//! The filters and scorers of all plugins for one task, in a form whose results can be cached. If
//! one of them has no such form, the plain evaluator serves the task. The engine's `columns.rs`
//! takes every path and compares.
//! Specification: actions.md 12.2 S1-S4, plugins-nodes.md 0.

use std::ops::Range;

use vc_model::{NodeId, TaskId};
use vc_resource::Dim;

use super::column_cache::{ClassField, NodeColumnRule};
use super::columns::NodeColumns;
use crate::plugin::NodeRule;
use crate::plugin_set::NodeRules;
use crate::scan::Filter;
use crate::session::SessionState;

/// One scorer of a plugin for one task. Its score of a node counts `weight` times.
pub struct ScoreColumn<'a> {
    /// Factor of the score. Its absolute value is below a million.
    pub weight: i64,
    /// How the scorer computes its score.
    pub raw: RawScore<'a>,
}

/// How a scorer computes its score.
pub enum RawScore<'a> {
    /// Reads the object of the node.
    Object {
        /// The raw score.
        rule: NodeColumnRule<'a>,
        /// Maps the raw score to 0..=100. `None` means that the raw score is the score.
        normal: Option<Normalizer>,
    },
    /// Reads the amounts of the node; the score is in 0..=100.
    Amounts(ColumnFill<'a, i64>),
    /// Scores all candidates at once, in name order, and may read the whole cluster. Scores are in
    /// 0..=100.
    Batch(BatchFill<'a, i64>),
    /// The same with scores that are no whole numbers. They are not weighted, and a plugin with
    /// such a column has no other one.
    Fractions(BatchFill<'a, f64>),
}

impl RawScore<'_> {
    /// True if it scores all candidates at once.
    pub(crate) fn is_batch(&self) -> bool {
        matches!(self, Self::Batch(_) | Self::Fractions(_))
    }
}

/// Fills in the scores of all candidates. Returns false if it cannot score them.
pub type BatchFill<'a, T> = Box<dyn Fn(&[NodeId], &mut [T]) -> bool + 'a>;

/// Maps a raw score to 0..=100. `highest` is the highest raw score among the candidates, at least
/// 0.
pub type Normalizer = fn(raw: i64, highest: i64) -> i64;

/// Fills in one value for each row of a range, from the class and these amounts alone.
pub type ColumnFill<'a, T> = Box<dyn Fn(&NodeColumns, Range<usize>, &mut [T]) + 'a>;

/// Predicate of a plugin as tests that only say whether a node passes.
pub struct NodeTests<'a> {
    /// Tests that read only the class of the task and the row of the node. A node has to pass all
    /// of them.
    pub tests: Vec<NodeTest<'a>>,
    /// The cluster-scoped filter. `None` if the plugin has none for this task.
    pub cluster_scoped: Option<NodeRule<'a>>,
}

/// A test of Predicate that reads only the class of the task and the row of the node.
pub enum NodeTest<'a> {
    /// Reads the object of the node. The node passes unless the value is 0.
    Object(NodeColumnRule<'a>),
    /// Reads the amounts of the node. Sets the entries of nodes that fail to false.
    Amounts(ColumnFill<'a, bool>),
    /// Reads anything in the row of the node.
    Row(Box<dyn Fn(NodeId) -> bool + 'a>),
}

/// NodeOrder of a plugin.
pub(crate) enum NodeOrderForm<'a> {
    /// Reads the amounts of the node.
    Amounts(ColumnFill<'a, f64>),
    /// Reads anything in the row of the node. `None` means that it failed; Σ NodeOrder of the node
    /// is then 0.
    Row(Box<dyn Fn(NodeId) -> Option<f64> + 'a>),
}

/// The filters and scorers of all plugins for one task.
pub(crate) struct PreparedRules<'a> {
    pub(super) task: TaskId,
    pub(super) filter: Filter,
    /// Requested amounts in report order. Empty in the filter modes that need no room.
    pub(super) room: Vec<(Dim, i64)>,
    /// Tests, each with the number of its plugin.
    pub(super) tests: Vec<(usize, NodeTest<'a>)>,
    pub(super) n_test_columns: usize,
    /// Cluster-scoped filters, which are not cached.
    pub(super) cluster_scoped: NodeRules<'a>,
    /// Filters with their findings, for nodes that the tests refuse. `None` in the filter modes
    /// where every finding rules a node out.
    pub(super) whole: Option<NodeRules<'a>>,
    /// NodeOrder of the plugins in tier order. Their scores are added up.
    pub(super) bases: Vec<NodeOrderForm<'a>>,
    /// Columns of each plugin that scores in batches, in tier order.
    pub(super) plugins: Vec<Vec<ScoreColumn<'a>>>,
}

impl<'a> PreparedRules<'a> {
    /// Prepares the rules for a task. Returns `None` if some rule has no cacheable form.
    pub(super) fn new(session: &'a SessionState<'_>, task: TaskId, filter: Filter) -> Option<Self> {
        let (plugins, view) = (session.plugins(), session.view());
        if !plugins.has_cacheable_scores() {
            return None;
        }
        let (tests, cluster_scoped) = plugins.tests(view, task)?;
        let columns = plugins.columns(view, task)?;
        let request = session.request(task);
        let dims = session.dims.in_report_order().iter();
        let requested = dims.map(|&dim| (dim, request.get(dim))).filter(|(_, amount)| 0 < *amount);
        let room = match filter {
            Filter::Allocate => requested.collect(),
            Filter::BestEffort | Filter::Preempt => Vec::new(),
        };
        let is_object = |(_, test): &&(usize, NodeTest<'_>)| matches!(test, NodeTest::Object(_));
        let n_test_columns = tests.iter().filter(is_object).count();
        let bases = plugins.bases(view, task);
        let whole = (filter == Filter::Preempt).then(|| plugins.node_rules(view, task));
        Some(Self {
            task,
            filter,
            room,
            tests,
            n_test_columns,
            cluster_scoped,
            whole,
            bases,
            plugins: columns,
        })
    }

    /// True if cached results alone decide, without a cluster-scoped rule.
    pub(super) fn decide_alone(&self) -> bool {
        self.cluster_scoped.is_empty() && !self.scores_batches()
    }

    /// True if NodeOrder of every plugin reads only amounts.
    pub(super) fn bases_read_amounts(&self) -> bool {
        self.bases.iter().all(|base| matches!(base, NodeOrderForm::Amounts(_)))
    }

    /// True if some scorer scores all candidates at once.
    pub(super) fn scores_batches(&self) -> bool {
        let mut columns = self.plugins.iter().flatten();
        columns.any(|column| column.raw.is_batch())
    }

    /// Returns the tests of node objects that no placement changes, each with its owner number. A rule
    /// with the field `Nothing` reads claims, which placements change.
    pub(super) fn lasting_tests(&self) -> impl Iterator<Item = (usize, &NodeColumnRule<'a>)> {
        self.tests.iter().filter_map(|(owner, test)| match test {
            NodeTest::Object(rule) if rule.part != ClassField::Nothing => Some((*owner, rule)),
            _ => None,
        })
    }

    /// Returns the rules that read node objects, each with its owner number, tests first.
    pub(super) fn object_rules(&self) -> impl Iterator<Item = (usize, &NodeColumnRule<'a>)> {
        let tests = self.tests.iter().filter_map(|(owner, test)| match test {
            NodeTest::Object(rule) => Some((*owner, rule)),
            NodeTest::Amounts(_) | NodeTest::Row(_) => None,
        });
        let scorers = self.plugins.iter().enumerate().flat_map(|(plugin, columns)| {
            columns.iter().filter_map(move |column| match &column.raw {
                RawScore::Object { rule, .. } => Some((SCORERS + plugin, rule)),
                RawScore::Amounts(_) | RawScore::Batch(_) | RawScore::Fractions(_) => None,
            })
        });
        tests.chain(scorers)
    }
}

/// Offset of the owner numbers of scorers, above those of filters.
const SCORERS: usize = 1 << 16;
