//! What a rule says about nodes by a part of the class and the objects of the nodes alone: worked
//! out once for all classes that agree in that part. Exact because the key holds the whole part, and
//! a node is asked about again when its object changes; the engine's `laws.rs` compares with the
//! plain evaluator. Specification: actions.md 12.2 S1, S2.

use rustc_hash::FxHashMap;
use vc_model::{ChangeReader, Class, NodeId, NodeSelectorTerm, Requirement, Revision, Shape};

use super::budget::bytes_of;
use super::rows::Rows;
use crate::session::Session;

/// Bytes that all columns may take together; beyond it they are worked out anew.
const MOST_BYTES: usize = 48 << 20;

/// A part of a class that a rule reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Nothing.
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

impl Part {
    /// The part alone, as content to compare by.
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

/// A number for every node, which depends on a part of the class, on labels, taints, schedulability
/// and images of the node, and on what [`crate::Plugin::edition`] tells apart alone.
pub struct ObjectRule<'a> {
    /// Of the rule, other than those of the other rules of the plugin.
    pub name: &'static str,
    /// What of the class it reads.
    pub part: Part,
    /// Another number when answers may have changed for another reason.
    pub version: u64,
    /// The number of a node.
    pub ask: Box<dyn Fn(NodeId) -> i64 + 'a>,
}

/// Which rule of which plugin, and what it read.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    owner: usize,
    name: &'static str,
    part: Part,
    content: Class,
}

impl Key {
    /// About what a column takes beside its numbers: the place in the table, and the content.
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

/// Two texts that others may share.
const BYTES_OF_LABEL: usize = 4 * size_of::<usize>();

fn n_bytes_of(term: &NodeSelectorTerm) -> usize {
    let rules = term.match_expressions.iter().chain(&term.match_fields);
    let rule = |rule: &Requirement| size_of::<Requirement>() + bytes_of(&rule.values);
    size_of::<NodeSelectorTerm>() + rules.map(rule).sum::<usize>()
}

/// A column that a class uses, in the state in which it used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) slot: usize,
    n_changes: u64,
}

/// The columns, by what they depend on.
#[derive(Debug, Default)]
pub(super) struct Parts {
    slots: FxHashMap<Key, usize>,
    columns: Vec<PartColumn>,
    node_set: Revision,
    edition: u64,
    n_bytes: usize,
    /// Counts how often all were thrown away.
    pub(super) epoch: u64,
}

/// The numbers of all nodes, by position in name order.
#[derive(Debug, Default)]
pub(super) struct PartColumn {
    /// Index into the distinct numbers.
    codes: Vec<u32>,
    /// In order of appearance.
    distinct: Vec<i64>,
    code_of: FxHashMap<i64, u32>,
    version: u64,
    changed_objects: ChangeReader<NodeId>,
    /// Of any number.
    n_changes: u64,
}

impl Parts {
    pub(super) fn column(&self, slot: usize) -> &PartColumn {
        &self.columns[slot]
    }

    /// Throws all away where the nodes are others, a plugin answers otherwise, or the columns are too
    /// many.
    pub(super) fn follow(&mut self, session: &Session<'_>) {
        let node_set = session.node_set_revision();
        let edition = session.hooks().edition();
        let is_same = (self.node_set, self.edition) == (node_set, edition);
        if !is_same || MOST_BYTES < self.n_bytes {
            *self = Self { node_set, edition, epoch: self.epoch + 1, ..Self::default() };
        }
    }

    /// The column of a rule of a plugin for a class, up to date. `slot`: where it was before.
    pub(super) fn get(
        &mut self,
        session: &Session<'_>,
        positions: &Rows,
        (owner, rule, class): (usize, &ObjectRule<'_>, &Class),
        slot: Option<usize>,
    ) -> Used {
        let slot = slot.unwrap_or_else(|| self.slot(owner, rule, class));
        let column = &mut self.columns[slot];
        self.n_bytes -= column.n_bytes();
        column.follow(session, positions, rule);
        self.n_bytes += column.n_bytes();
        Used { slot, n_changes: column.n_changes }
    }

    /// Of a column that may be new, and empty.
    fn slot(&mut self, owner: usize, rule: &ObjectRule<'_>, class: &Class) -> usize {
        let content = rule.part.of(class);
        let key = Key { owner, name: rule.name, part: rule.part, content };
        let n_bytes = key.n_bytes();
        let next = self.columns.len();
        let slot = *self.slots.entry(key).or_insert(next);
        if slot == next {
            let column = PartColumn::default();
            self.n_bytes += n_bytes + column.n_bytes();
            self.columns.push(column);
        }
        slot
    }
}

impl PartColumn {
    /// About the size in memory.
    fn n_bytes(&self) -> usize {
        2 * size_of::<Self>()
            + bytes_of(&self.codes)
            + bytes_of(&self.distinct)
            + 2 * self.code_of.len() * size_of::<(i64, u32)>()
    }

    /// The number of a node.
    pub(super) fn at(&self, position: usize) -> i64 {
        self.distinct[self.code(position)]
    }

    /// Which of the distinct numbers a node has.
    pub(super) fn code(&self, position: usize) -> usize {
        self.codes[position] as usize
    }

    /// The same of all nodes.
    pub(super) fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// Every number that some node has, each once.
    pub(super) fn distinct(&self) -> &[i64] {
        &self.distinct
    }

    fn follow(&mut self, session: &Session<'_>, positions: &Rows, rule: &ObjectRule<'_>) {
        let nodes = &session.facts().nodes;
        let same = self.codes.len() == nodes.len() && self.version == rule.version;
        let changed = self.changed_objects.read(session.object_changes());
        match changed.filter(|_| same) {
            Some(changed) => {
                for node in changed {
                    let Some(at) = positions.position(node) else { continue };
                    let code = self.code_for((rule.ask)(node));
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
                    let code = self.code_for((rule.ask)(node));
                    self.codes.push(code);
                }
            }
        }
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
