//! Columns of rules that read one field of the class and the objects of nodes. A column is computed
//! once for all classes that agree in that field.
//!
//! Exact because:
//! - the key holds the whole field;
//! - a value is computed again when the object of its node changes, which includes that the node
//!   comes; of other nodes it reads only what the version of the rule stands for;
//! - the engine's `laws.rs` compares with the plain evaluator.
//!
//! Specification: actions.md 12.2 S1, S2.

use rustc_hash::FxHashMap;
use vc_model::{ChangeReader, Class, NodeId, NodeSelectorTerm, Requirement, Revision, Shape};

use super::budget::bytes_of;
use super::node_rows::NodeRows;
use crate::session::SessionState;

/// Upper bound of the bytes of all columns. Beyond it all columns are dropped and computed again.
const MOST_BYTES: usize = 48 << 20;

/// The field of a class that a rule reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClassField {
    /// No field.
    Nothing,
    /// `tolerations`.
    Tolerations,
    /// `node_selector` and the required terms of `node_affinity`.
    RequiredNodes,
    /// The preferred terms of `node_affinity`.
    PreferredNodes,
    /// `images`.
    Images,
    /// `any_revocable_zone`.
    RevocableZones,
}

impl ClassField {
    /// Returns a class with only this field, for comparison.
    fn of(self, class: &Class) -> Class {
        let mut part = Shape::default();
        match self {
            Self::Nothing => {}
            Self::Tolerations => part.tolerations.clone_from(&class.tolerations),
            Self::RequiredNodes => {
                part.node_selector.clone_from(&class.node_selector);
                part.node_affinity.required.clone_from(&class.node_affinity.required);
            }
            Self::PreferredNodes => {
                part.node_affinity.preferred.clone_from(&class.node_affinity.preferred);
            }
            Self::Images => part.images.clone_from(&class.images),
            Self::RevocableZones => part.any_revocable_zone = class.any_revocable_zone,
        }
        part.into()
    }
}

/// A rule that gives every node a number. The number depends only on a field of the class and on
/// labels, taints, schedulability and images of the node, within one
/// [`crate::CacheKeys::revision`].
pub struct NodeColumnRule<'a> {
    /// Name of the rule, unique within its plugin.
    pub name: &'static str,
    /// The field of the class that the rule reads.
    pub part: ClassField,
    /// Changes whenever values may have changed for any other reason, such as the number of nodes.
    pub version: u64,
    /// Computes the number of a node.
    pub value: Box<dyn Fn(NodeId) -> i64 + 'a>,
}

/// Cache key: the plugin, its rule, and the content of the class field.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ColumnKey {
    owner: usize,
    name: &'static str,
    part: ClassField,
    content: Class,
}

impl ColumnKey {
    /// Returns roughly the bytes of a column besides its numbers: the table entry and the content.
    fn n_bytes(&self) -> usize {
        let Shape { node_selector, node_affinity, tolerations, images, .. } = &*self.content.shape;
        let required = node_affinity.required.iter().flatten();
        let preferred = node_affinity.preferred.iter().map(|preferred| &preferred.term);
        2 * size_of::<(Self, usize)>()
            + size_of::<Shape>()
            + node_selector.as_ref().map_or(0, |labels| labels.len() * BYTES_OF_LABEL)
            + required.chain(preferred).map(n_bytes_of).sum::<usize>()
            + bytes_of(tolerations)
            + bytes_of(images)
    }
}

/// Bytes of a label: two strings that may be shared.
const BYTES_OF_LABEL: usize = 4 * size_of::<usize>();

fn n_bytes_of(term: &NodeSelectorTerm) -> usize {
    let rules = term.match_expressions.iter().chain(&term.match_fields);
    let rule = |rule: &Requirement| size_of::<Requirement>() + bytes_of(&rule.values);
    size_of::<NodeSelectorTerm>() + rules.map(rule).sum::<usize>()
}

/// A column that a class uses, with the state in which it used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UsedColumn {
    pub(super) slot: usize,
    n_changes: u64,
}

/// The columns by their keys.
#[derive(Debug, Default)]
pub(super) struct ColumnCache {
    slots: FxHashMap<ColumnKey, usize>,
    columns: Vec<FieldColumn>,
    node_set: Revision,
    revision: u64,
    n_bytes: usize,
    /// Number of times that all columns were dropped.
    pub(super) columns_revision: u64,
}

/// One column: the numbers of all nodes, by position in name order.
#[derive(Debug, Default)]
pub(super) struct FieldColumn {
    /// Per node: index into `distinct`.
    codes: Vec<u32>,
    /// Distinct numbers in order of appearance.
    distinct: Vec<i64>,
    code_of: FxHashMap<i64, u32>,
    version: u64,
    changed_objects: ChangeReader<NodeId>,
    /// Number of changes of any value.
    n_changes: u64,
}

impl ColumnCache {
    /// Returns the bytes of all columns.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    pub(super) fn column(&self, slot: usize) -> &FieldColumn {
        &self.columns[slot]
    }

    /// Moves the numbers of the nodes to new positions if the set of nodes changed. Drops all columns if it
    /// is not known how, if the plugins' revision changed, or if they exceed `MOST_BYTES`.
    pub(super) fn follow(&mut self, session: &SessionState<'_>, positions: &NodeRows) {
        let node_set = session.node_set_revision();
        let revision = session.plugins().revision();
        let is_kept = self.revision == revision && self.n_bytes <= MOST_BYTES;
        if is_kept && self.node_set == node_set {
            return;
        }
        match positions.moves_between(self.node_set, node_set).filter(|_| is_kept) {
            Some(earlier) => {
                (self.node_set, self.columns_revision) = (node_set, self.columns_revision + 1);
                self.columns.iter_mut().for_each(|column| column.move_nodes(earlier));
                self.n_bytes = self.slots.keys().map(ColumnKey::n_bytes).sum::<usize>()
                    + self.columns.iter().map(FieldColumn::n_bytes).sum::<usize>();
            }
            None => {
                *self = Self {
                    node_set,
                    revision,
                    columns_revision: self.columns_revision + 1,
                    ..Self::default()
                };
            }
        }
    }

    /// Returns the column of a plugin's rule for a class, brought up to date. `slot` is its slot if
    /// that is known.
    pub(super) fn get(
        &mut self,
        session: &SessionState<'_>,
        positions: &NodeRows,
        (owner, rule, class): (usize, &NodeColumnRule<'_>, &Class),
        slot: Option<usize>,
    ) -> UsedColumn {
        let slot = slot.unwrap_or_else(|| self.slot(owner, rule, class));
        let column = &mut self.columns[slot];
        self.n_bytes -= column.n_bytes();
        column.follow(session, positions, rule);
        self.n_bytes += column.n_bytes();
        UsedColumn { slot, n_changes: column.n_changes }
    }

    /// Returns the slot of a column. A new column is empty.
    fn slot(&mut self, owner: usize, rule: &NodeColumnRule<'_>, class: &Class) -> usize {
        let content = rule.part.of(class);
        let key = ColumnKey { owner, name: rule.name, part: rule.part, content };
        let n_bytes = key.n_bytes();
        let next = self.columns.len();
        let slot = *self.slots.entry(key).or_insert(next);
        if slot == next {
            let column = FieldColumn::default();
            self.n_bytes += n_bytes + column.n_bytes();
            self.columns.push(column);
        }
        slot
    }
}

impl FieldColumn {
    /// Returns roughly the size in memory.
    fn n_bytes(&self) -> usize {
        2 * size_of::<Self>()
            + bytes_of(&self.codes)
            + bytes_of(&self.distinct)
            + 2 * self.code_of.len() * size_of::<(i64, u32)>()
    }

    /// Returns the number of a node.
    pub(super) fn at(&self, position: usize) -> i64 {
        self.distinct[self.code(position)]
    }

    /// Returns the index of a node's number in [`FieldColumn::distinct`].
    pub(super) fn code(&self, position: usize) -> usize {
        self.codes[position] as usize
    }

    /// Returns the indices of all nodes into [`FieldColumn::distinct`].
    pub(super) fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// Returns every number of the column once. Numbers that no node has any more may be among
    /// them.
    pub(super) fn distinct(&self) -> &[i64] {
        &self.distinct
    }

    fn follow(
        &mut self,
        session: &SessionState<'_>,
        positions: &NodeRows,
        rule: &NodeColumnRule<'_>,
    ) {
        let nodes = &session.info().nodes;
        let same = self.codes.len() == nodes.len() && self.version == rule.version;
        let changed = self.changed_objects.read(session.object_changes());
        match changed.filter(|_| same) {
            Some(changed) => {
                for node in changed {
                    let Some(at) = positions.position(node) else { continue };
                    let code = self.code_for((rule.value)(node));
                    let before = std::mem::replace(&mut self.codes[at], code);
                    self.n_changes += u64::from(before != code);
                }
            }
            None => {
                self.version = rule.version;
                self.n_changes += 1;
                self.distinct.clear();
                self.code_of.clear();
                self.codes.clear();
                for &node in nodes.iter() {
                    let code = self.code_for((rule.value)(node));
                    self.codes.push(code);
                }
            }
        }
    }

    /// Gives each position the number of an earlier one. The number of a node that is new is computed by the
    /// next [`FieldColumn::follow`], because the log of changed objects names it.
    fn move_nodes(&mut self, earlier: &[u32]) {
        let code = |&at: &u32| self.codes.get(at as usize).copied().unwrap_or(0);
        self.codes = earlier.iter().map(code).collect();
        self.n_changes += 1;
    }

    fn code_for(&mut self, number: i64) -> u32 {
        if self.distinct.first() == Some(&number) {
            return 0;
        }
        let next = self.distinct.len() as u32;
        *self.code_of.entry(number).or_insert_with(|| {
            self.distinct.push(number);
            next
        })
    }
}
