//! The fast evaluator: what was worked out for a class and a node is kept until the node changes,
//! so that a placement costs one node and not all of them. Exact where every plugin that filters or
//! scores says that it reads the class and the node alone ([`Reads`]); for any other task the plain
//! evaluator is asked. `tests/mechanics/fast.rs` and the engine's `fast.rs` compare the two.
//! Specification: actions.md 12.2 S1, S2, S4, S5.

mod class;
mod tree;

use std::collections::BTreeMap;

use vc_model::{FitErrors, NodeId, TaskId};

use crate::dispatch::NodeRules;
use crate::session::Session;
use class::{ClassMemo, Staleness};

/// Bytes that remembered classes may take together; the one that was not used for longest goes.
const MOST_BYTES: usize = 96 << 20;

/// What a plugin's answer about a task and a node depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Nothing but the task's class without namespace and labels, the row of the node, the names of
    /// the dimensions, and the plugin's own arguments.
    ClassAndNode,
    /// Anything else as well.
    Anything,
}

/// One scorer of a plugin, prepared for a task: its score of a node counts `weight` times.
pub struct Column<'a> {
    /// Factor of the score, below a million either way.
    pub weight: i64,
    /// How a raw score becomes one of 0..100. `None`: it is one.
    pub normal: Option<Normal>,
    /// Another number when raw scores may have changed otherwise than by the row of their node.
    pub version: u64,
    /// The raw score of a node, which depends on the class of the task and the node alone, as long
    /// as the version is the same.
    pub raw: Box<dyn Fn(NodeId) -> i64 + 'a>,
}

/// A score of 0..100 from the raw one and the highest raw one among the candidates, or 0 if that is
/// less.
pub type Normal = fn(raw: i64, highest: i64) -> i64;

/// Which evaluator finds nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evaluator {
    /// Every node for every task: what the other one is compared with.
    Plain,
    /// Remembered results.
    #[default]
    Fast,
}

/// What the fast evaluator found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The node that filter and choice of the plain evaluator lead to.
    Node(NodeId),
    /// No node, and why.
    Nowhere(FitErrors),
}

/// Results by class, kept from cycle to cycle as long as the configuration. Classes that differ in
/// namespace and labels alone share them ([`vc_model::Classes::serial`]).
#[derive(Debug, Default)]
pub struct Memo {
    by_class: BTreeMap<u64, ClassMemo>,
    n_bytes: usize,
    /// Counts uses.
    clock: u64,
    positions: Positions,
}

/// Where a node stands in name order.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    by_node: Vec<u32>,
    set_version: u64,
    /// Per position the catch-up that saw it last: a node that changed twice is looked at once.
    seen: Vec<u64>,
    catch_up: u64,
}

impl Session<'_> {
    /// The node for a task among all nodes, by group, shard, score and name, if that can be said
    /// from what is remembered. `None`: ask [`Session::filter`] and [`Session::choose_by_group`].
    pub fn find_remembered(&mut self, task: TaskId) -> Option<Found> {
        let mut memo = self.memo.take()?;
        let found = memo.find(self, task);
        self.memo = Some(memo);
        found
    }
}

/// The rules of all plugins, prepared for a task.
pub(crate) struct Prepared<'a> {
    /// Those that may be remembered.
    filters: NodeRules<'a>,
    /// The others.
    wide: NodeRules<'a>,
    /// Of each plugin that scores in batches, in tier order.
    columns: Vec<Vec<Column<'a>>>,
    task: TaskId,
}

impl Prepared<'_> {
    /// Of all columns.
    fn versions(&self) -> Vec<u64> {
        self.columns.iter().flatten().map(|column| column.version).collect()
    }
}

impl Memo {
    fn find(&mut self, session: &Session<'_>, task: TaskId) -> Option<Found> {
        let (hooks, ask) = (session.hooks(), session.ask());
        if !hooks.is_memorable(ask, task) {
            return None;
        }
        let columns = hooks.columns(ask, task)?;
        let (filters, wide) = hooks.split_rules(ask, task)?;
        let rules = Prepared { filters, wide, columns, task };
        self.positions.follow(session);
        self.clock += 1;
        let serial = session.classes.serial(session.tasks[task].class);
        let kept = self.by_class.remove(&serial);
        let versions = rules.versions();
        self.n_bytes -= kept.as_ref().map_or(0, ClassMemo::n_bytes);
        let mut memo = match kept.map(|memo| (memo.staleness(session, &versions), memo)) {
            Some((Staleness::Nodes, mut memo)) => {
                memo.catch_up(session, &rules, &mut self.positions);
                memo
            }
            _ => ClassMemo::new(session, &rules),
        };
        memo.last_use = self.clock;
        let found = match rules.wide.is_empty() {
            true => memo.found(session),
            false => memo.found_passing(session, &rules.wide),
        };
        self.n_bytes += memo.n_bytes();
        self.by_class.insert(serial, memo);
        self.forget();
        found
    }

    /// Makes room, the class that was not used for longest first.
    fn forget(&mut self) {
        while MOST_BYTES < self.n_bytes && 1 < self.by_class.len() {
            let oldest = self.by_class.iter().min_by_key(|(_, memo)| memo.last_use);
            let Some(serial) = oldest.map(|(&serial, _)| serial) else { return };
            let gone = self.by_class.remove(&serial);
            self.n_bytes -= gone.as_ref().map_or(0, ClassMemo::n_bytes);
        }
    }
}

impl Positions {
    /// Takes over the order of the session's nodes if it is another.
    fn follow(&mut self, session: &Session<'_>) {
        use vc_model::Id;
        let version = session.node_changes().set_version();
        let nodes = &session.facts().nodes;
        if self.set_version == version && self.seen.len() == nodes.len() {
            return;
        }
        self.set_version = version;
        let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        self.by_node = vec![u32::MAX; n_ids];
        for (position, node) in nodes.iter().enumerate() {
            self.by_node[node.index()] = position as u32;
        }
        self.seen = vec![0; nodes.len()];
    }

    /// Positions of the known ones among the nodes, each once.
    fn distinct(&mut self, nodes: &[NodeId]) -> Vec<usize> {
        use vc_model::Id;
        self.catch_up += 1;
        let mut distinct = Vec::new();
        for node in nodes {
            let Some(&position) = self.by_node.get(node.index()) else { continue };
            let Some(seen) = self.seen.get_mut(position as usize) else { continue };
            if *seen != self.catch_up {
                *seen = self.catch_up;
                distinct.push(position as usize);
            }
        }
        distinct
    }
}
