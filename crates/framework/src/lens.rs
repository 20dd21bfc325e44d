//! A lens: which atoms count as no obstacle while a trial of one job runs. Rules of nodes, votes
//! and amounts look through it; a session without trials has none. Specification: answers.md 4.1,
//! 4.2.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use vc_model::{Code, Finding, NodeId, TaskId};
use vc_resource::Dim;

use crate::atom::Atom;
use crate::plugin::SessionView;
use crate::plugin_set::PluginSet;
use crate::points::Points;
use crate::scan::{Filter, Scan};
use crate::session::SessionState;

/// The atoms that are lifted while a trial runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lens {
    lifted: BTreeSet<Atom>,
}

impl Lens {
    pub(crate) fn new(lifted: &BTreeSet<Atom>) -> Self {
        Self { lifted: lifted.clone() }
    }

    /// True if the atom is lifted.
    pub(crate) fn lifts(&self, atom: &Atom) -> bool {
        self.lifted.contains(atom)
    }

    /// True if filters are lifted that a change of the pod's class does not lift.
    pub(crate) fn lifts_filters(&self) -> bool {
        let of_filter = |atom: &Atom| matches!(atom, Atom::Shard | Atom::Need(_) | Atom::Filter(_));
        self.lifted.iter().any(of_filter)
    }
}

/// A function that appends the atoms against a node.
type FindAtoms<'a> = Box<dyn Fn(NodeId, &mut BTreeSet<Atom>) + 'a>;

/// The rule by which a plugin refuses nodes for a task.
pub struct RefusalRule<'a> {
    find: FindAtoms<'a>,
    is_same: Option<Box<dyn Fn(NodeId, NodeId) -> bool + 'a>>,
}

impl<'a> RefusalRule<'a> {
    /// Returns the rule that appends the atoms against a node.
    pub fn new(find: impl Fn(NodeId, &mut BTreeSet<Atom>) + 'a) -> Self {
        Self { find: Box::new(find), is_same: None }
    }

    /// Returns the same rule. It has the same atoms against two nodes for which `is_same` is true.
    #[must_use]
    pub fn with_equality(self, is_same: impl Fn(NodeId, NodeId) -> bool + 'a) -> Self {
        Self { is_same: Some(Box::new(is_same)), ..self }
    }

    /// True if the rule is known to have the same atoms against both nodes.
    fn is_same(&self, l: NodeId, r: NodeId) -> bool {
        self.is_same.as_ref().is_some_and(|is_same| is_same(l, r))
    }
}

impl PluginSet {
    /// True if the plugin's vote does not count: the lens has lifted it.
    pub(crate) fn is_lifted(&self, atom: &Atom) -> bool {
        self.lens.as_ref().is_some_and(|lens| lens.lifts(atom))
    }

    /// Returns the plugins that refuse the task before any node is looked at. The rules are named
    /// as in [`Atom::Need`].
    pub fn needs(&self, view: SessionView<'_>, task: TaskId) -> BTreeSet<Atom> {
        let mut needs = BTreeSet::new();
        for &plugin in self.calls_of(Points::PRE_PREDICATE) {
            let object = self.plugin(plugin);
            match object.unmet_needs(view, task) {
                Some(unmet) => needs.extend(unmet),
                None if object.pre_predicate(view, task).is_err() => {
                    needs.insert(Atom::Need(self.name_of(plugin)));
                }
                None => {}
            }
        }
        needs
    }

    /// Returns the rules of all plugins by which nodes are refused for the task.
    fn refusal_rules<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Vec<RefusalRule<'a>> {
        let rule = |&plugin: &usize| -> RefusalRule<'a> {
            let (object, name) = (self.plugin(plugin), self.name_of(plugin));
            object.refusals(view, task).unwrap_or_else(|| {
                RefusalRule::new(move |node, atoms| {
                    let mut findings = Vec::new();
                    object.predicate(view, task, node, &mut findings);
                    if !findings.is_empty() {
                        atoms.insert(Atom::Filter(name));
                    }
                })
            })
        };
        self.calls_of(Points::PREDICATE).map(rule).collect()
    }
}

/// The atoms that refuse nodes for a task. Equal sets are stored once: clusters have many nodes and few
/// different sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusingAtoms {
    /// The different sets, in the order of the first node of each.
    pub sets: Vec<BTreeSet<Atom>>,
    /// Index into `sets` of each node, in the order in which the nodes were given.
    pub set_of: Vec<u32>,
}

impl RefusingAtoms {
    /// Adds the set of the next node. `by_set` has the index of each set.
    fn push(&mut self, atoms: BTreeSet<Atom>, by_set: &mut FxHashMap<BTreeSet<Atom>, u32>) {
        // Neighbours in name order are mostly refused alike.
        let last = self.set_of.last().copied();
        let set = match last.filter(|&set| self.sets[set as usize] == atoms) {
            Some(set) => set,
            None => *by_set.entry(atoms).or_insert_with_key(|atoms| {
                self.sets.push(atoms.clone());
                self.sets.len() as u32 - 1
            }),
        };
        self.set_of.push(set);
    }
}

impl SessionState<'_> {
    /// True if all rules are known to have the same atoms against both nodes for the task, whatever the lens.
    pub fn has_same_refusals(&self, task: TaskId, l: NodeId, r: NodeId) -> bool {
        let rules = self.plugins().refusal_rules(self.view(), task);
        self.is_outside_shard(l) == self.is_outside_shard(r)
            && rules.iter().all(|rule| rule.is_same(l, r))
    }

    /// Returns for each of `nodes` all atoms that refuse it for the task, whatever the lens.
    pub fn refusing_atoms(&self, task: TaskId, nodes: &[NodeId], filter: Filter) -> RefusingAtoms {
        let rules = self.plugins().refusal_rules(self.view(), task);
        let needs = self.plugins().needs(self.view(), task);
        let request = self.request(task);
        let dims = self.dims.in_report_order().iter().copied();
        let asked = dims.map(|dim| (dim, request.get(dim))).filter(|(_, amount)| 0 < *amount);
        let asked: Vec<(Dim, i64)> = asked.collect();
        let (mut found, mut by_set) = (RefusingAtoms::default(), FxHashMap::default());
        found.set_of.reserve(nodes.len());
        // The last node, and what is against it that no plugin reports.
        let mut last: Option<NodeId> = None;
        let (mut own, mut of_last) = (OwnRefusals::default(), OwnRefusals::default());
        for &node in nodes {
            own.is_outside_shard = self.is_outside_shard(node);
            own.lacking.clear();
            if filter == Filter::Allocate {
                own.add_lacking(&self.nodes[node], &asked);
            }
            let is_same = |last| rules.iter().all(|rule| rule.is_same(last, node));
            match own == of_last && last.is_some_and(is_same) {
                true => found.set_of.extend(found.set_of.last().copied()),
                false => {
                    let mut atoms = needs.clone();
                    atoms.extend(own.atoms());
                    rules.iter().for_each(|rule| (rule.find)(node, &mut atoms));
                    found.push(atoms, &mut by_set);
                }
            }
            last = Some(node);
            std::mem::swap(&mut own, &mut of_last);
        }
        found
    }

    /// Filters nodes while the lens lifts filters: a node passes if every atom against it is
    /// lifted. Returns `None` if the ordinary filter suffices.
    pub(crate) fn filter_lifted(
        &self,
        task: TaskId,
        nodes: &[NodeId],
        filter: Filter,
    ) -> Option<Scan> {
        let lens = self.plugins().lens.as_ref().filter(|lens| lens.lifts_filters())?;
        let mut scan = Scan::default();
        let RefusingAtoms { sets, set_of } = self.refusing_atoms(task, nodes, filter);
        let is_lifted = |atoms: &BTreeSet<Atom>| atoms.iter().all(|atom| lens.lifts(atom));
        let is_lifted: Vec<bool> = sets.iter().map(is_lifted).collect();
        for (&node, set) in nodes.iter().zip(set_of) {
            match is_lifted[set as usize] {
                true => scan.feasible.push(node),
                false => scan.errors.add(node, &[Finding::new(Code::Unschedulable, REFUSED)]),
            }
        }
        Some(scan)
    }
}

/// What refuses a node for a task that no plugin reports.
#[derive(Default, PartialEq)]
struct OwnRefusals {
    is_outside_shard: bool,
    /// Dimensions of which the node has too little. True if it has some.
    lacking: Vec<(Dim, bool)>,
}

impl OwnRefusals {
    fn add_lacking(&mut self, node: &vc_model::Node, asked: &[(Dim, i64)]) {
        let lacks = |(dim, amount): &&(Dim, i64)| node.future_idle_of(*dim) < *amount;
        for &(dim, _) in asked.iter().filter(lacks) {
            self.lacking.push((dim, 0 < node.allocatable.get(dim)));
        }
    }

    fn atoms(&self) -> impl Iterator<Item = Atom> {
        let lacking = self.lacking.iter().map(|&(dim, has_some)| lacking_atom(dim, has_some));
        self.is_outside_shard.then_some(Atom::Shard).into_iter().chain(lacking)
    }
}

/// Reason against a node in a trial. No user reads it.
const REFUSED: &str = "refused in a trial";

/// Returns the atom of a dimension of which a node has too little. `has_some` is true if the node has some of it.
fn lacking_atom(dim: Dim, has_some: bool) -> Atom {
    match has_some {
        true => Atom::Room(dim),
        false => Atom::Lacks(dim),
    }
}
