//! The rules of all plugins in the form in which they can be remembered, prepared for a task. A
//! rule that says nothing about its form leaves the task to the plain evaluator; the engine's
//! `columns.rs` takes every path and compares. Specification: actions.md 12.2 S1-S4,
//! plugins-nodes.md 0.

use std::ops::Range;

use vc_model::{NodeId, TaskId};
use vc_resource::Dim;

use super::columns::NodeColumns;
use super::parts::ObjectRule;
use crate::dispatch::NodeRules;
use crate::plugin::NodeRule;
use crate::scan::Filter;
use crate::session::Session;

/// What a plugin's answer about a task and a node depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Nothing but the row of the node, the names of the dimensions, the plugin's own arguments, what
    /// [`crate::Plugin::edition`] tells apart, and of the task's class what
    /// [`vc_model::Classes::serial`] does.
    ClassAndNode,
    /// Anything else as well.
    Anything,
}

/// One scorer of a plugin, prepared for a task: its score of a node counts `weight` times.
pub struct Column<'a> {
    /// Factor of the score, below a million either way.
    pub weight: i64,
    /// How it scores.
    pub raw: Raw<'a>,
}

/// How a scorer scores.
pub enum Raw<'a> {
    /// By the object of the node.
    Object {
        /// The raw score.
        rule: ObjectRule<'a>,
        /// How it becomes a score of 0..100. `None`: it is one.
        normal: Option<Normal>,
    },
    /// By the amounts of the node, from 0 to 100.
    Amounts(Fill<'a, i64>),
    /// All candidates at once, by what is in the cluster; they come in name order. Fills the scores,
    /// 0 to 100; false: it cannot.
    Batch(BatchFill<'a>),
}

/// The scores of all candidates; false: it cannot.
pub type BatchFill<'a> = Box<dyn Fn(&[NodeId], &mut [i64]) -> bool + 'a>;

/// A score of 0..100 from the raw one and the highest raw one among the candidates, or 0 if that is
/// less.
pub type Normal = fn(raw: i64, highest: i64) -> i64;

/// Something for each row of a range of the columns, from the class and these amounts alone.
pub type Fill<'a, T> = Box<dyn Fn(&NodeColumns, Range<usize>, &mut [T]) + 'a>;

/// Predicate of a plugin as tests that say no more than whether a node passes.
pub struct NodeTests<'a> {
    /// What reads the class of the task and the row of the node alone; a node has to pass all.
    pub tests: Vec<Test<'a>>,
    /// What reads more; `None`: nothing does for this task.
    pub wide: Option<NodeRule<'a>>,
}

/// A part of Predicate that reads the class of the task and the row of the node alone.
pub enum Test<'a> {
    /// By the object of the node, which passes unless its number is 0.
    Object(ObjectRule<'a>),
    /// By the amounts of the node: makes those false that do not pass.
    Amounts(Fill<'a, bool>),
    /// By anything in the row of the node.
    Row(Box<dyn Fn(NodeId) -> bool + 'a>),
}

/// NodeOrder of a plugin.
pub(crate) enum Base<'a> {
    /// By the amounts of the node.
    Amounts(Fill<'a, f64>),
    /// By anything in its row. `None`: it failed, and the node gets 0 from all of them.
    Row(Box<dyn Fn(NodeId) -> Option<f64> + 'a>),
}

/// The rules of all plugins for a task.
pub(crate) struct Prepared<'a> {
    pub(super) task: TaskId,
    pub(super) filter: Filter,
    /// What is requested, in report order; nothing where no room is needed.
    pub(super) room: Vec<(Dim, i64)>,
    /// With the number of the plugin.
    pub(super) tests: Vec<(usize, Test<'a>)>,
    pub(super) n_test_parts: usize,
    /// What cannot be remembered.
    pub(super) wide: NodeRules<'a>,
    /// What is found against nodes that the tests refuse, where some findings are no reason.
    pub(super) whole: Option<NodeRules<'a>>,
    /// In tier order; they are added up.
    pub(super) bases: Vec<Base<'a>>,
    /// Columns of each plugin that scores in batches, in tier order.
    pub(super) plugins: Vec<Vec<Column<'a>>>,
}

impl<'a> Prepared<'a> {
    /// `None`: some rule is not of such a form.
    pub(super) fn new(session: &'a Session<'_>, task: TaskId, filter: Filter) -> Option<Self> {
        let (hooks, ask) = (session.hooks(), session.ask());
        if !hooks.is_memorable(ask, task) {
            return None;
        }
        let (tests, wide) = hooks.tests(ask, task)?;
        let plugins = hooks.columns(ask, task)?;
        let request = session.request(task);
        let dims = session.dims.in_report_order().iter();
        let requested = dims.map(|&dim| (dim, request.get(dim))).filter(|(_, amount)| 0 < *amount);
        let room = match filter {
            Filter::Allocate => requested.collect(),
            Filter::BestEffort | Filter::Preempt => Vec::new(),
        };
        let is_object = |(_, test): &&(usize, Test<'_>)| matches!(test, Test::Object(_));
        let n_test_parts = tests.iter().filter(is_object).count();
        let bases = hooks.bases(ask, task);
        let whole = (filter == Filter::Preempt).then(|| hooks.node_rules(ask, task));
        Some(Self { task, filter, room, tests, n_test_parts, wide, whole, bases, plugins })
    }

    /// Whether what is remembered decides alone.
    pub(super) fn decide_alone(&self) -> bool {
        self.wide.is_empty() && !self.scores_batches()
    }

    /// Whether NodeOrder reads amounts alone.
    pub(super) fn bases_read_amounts(&self) -> bool {
        self.bases.iter().all(|base| matches!(base, Base::Amounts(_)))
    }

    /// Whether scores look at all candidates.
    pub(super) fn scores_batches(&self) -> bool {
        let mut columns = self.plugins.iter().flatten();
        columns.any(|column| matches!(column.raw, Raw::Batch(_)))
    }

    /// What reads objects of nodes, with the number of its plugin; tests first.
    pub(super) fn object_rules(&self) -> impl Iterator<Item = (usize, &ObjectRule<'a>)> {
        let tests = self.tests.iter().filter_map(|(owner, test)| match test {
            Test::Object(rule) => Some((*owner, rule)),
            Test::Amounts(_) | Test::Row(_) => None,
        });
        let scorers = self.plugins.iter().enumerate().flat_map(|(plugin, columns)| {
            columns.iter().filter_map(move |column| match &column.raw {
                Raw::Object { rule, .. } => Some((SCORERS + plugin, rule)),
                Raw::Amounts(_) | Raw::Batch(_) => None,
            })
        });
        tests.chain(scorers)
    }
}

/// Numbers of plugins that score, behind those of plugins that filter.
const SCORERS: usize = 1 << 16;
