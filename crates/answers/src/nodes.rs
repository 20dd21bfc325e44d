//! The nodes as one waiting pod sees them: a partition by all atoms that refuse them, and those
//! that come closest. Specification: answers.md 3 (ANS-11, ANS-12).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use vc_framework::{Atom, Filter, RefusingAtoms, SessionState};
use vc_model::{Node, NodeId, TaskId};
use vc_resource::{Dim, Dims};

use crate::amounts::quantity_of;
use crate::explanation::{NearestNode, NodeNumbers, RefusedNodes};
use crate::trials::AtomSet;

/// Groups that are shown; the others are one group.
const MOST_GROUPS: usize = 12;
/// Names that are shown of a group.
const MOST_NAMES: usize = 5;
/// Nodes that come closest.
const MOST_NEAREST: usize = 3;
/// Name of the group of all other nodes.
const OTHERS: &str = "others";

/// What refuses each node of the session for one task.
#[derive(Clone)]
pub(crate) struct NodeRefusals {
    pub(crate) task: TaskId,
    /// The nodes in name order.
    nodes: Arc<[NodeId]>,
    /// The sets of atoms, and the set that refuses each node.
    atoms: Arc<RefusingAtoms>,
}

/// Neighbours in name order that are alike for the task: the same atoms refuse them, and of what the task asks
/// for they have the same amounts in total and free.
pub(crate) struct NodeRun {
    /// Their places among the nodes in name order.
    places: Range<usize>,
    /// The index of the set of atoms.
    set: u32,
    /// What each of them lacks, in report order.
    lacks: Vec<(Dim, i128)>,
}

impl NodeRefusals {
    /// Asks all rules about all nodes.
    pub(crate) fn find(session: &SessionState<'_>, task: TaskId) -> Self {
        Self::on(session, task, session.info().nodes.clone())
    }

    /// Asks all rules about these nodes.
    pub(crate) fn on(session: &SessionState<'_>, task: TaskId, nodes: Arc<[NodeId]>) -> Self {
        let filter = match session.tasks[task].best_effort {
            true => Filter::BestEffort,
            false => Filter::Allocate,
        };
        let atoms = Arc::new(session.refusing_atoms(task, &nodes, filter));
        Self { task, nodes, atoms }
    }

    /// Returns the same for a task of which it is known what refuses the nodes.
    pub(crate) fn known(
        session: &SessionState<'_>,
        task: TaskId,
        atoms: Arc<RefusingAtoms>,
    ) -> Self {
        Self { task, nodes: session.info().nodes.clone(), atoms }
    }

    /// Returns the sets of atoms, and the set that refuses each node.
    pub(crate) fn atoms(&self) -> &Arc<RefusingAtoms> {
        &self.atoms
    }

    /// Returns the same as if the atoms of `lifted` did not count.
    pub(crate) fn without(&self, lifted: &AtomSet) -> Self {
        let mut refusals = self.clone();
        for atoms in &mut Arc::make_mut(&mut refusals.atoms).sets {
            atoms.retain(|atom| !lifted.contains(atom));
        }
        refusals
    }

    /// Returns the nodes in runs of those that are alike.
    pub(crate) fn runs(&self, session: &SessionState<'_>) -> Vec<NodeRun> {
        let request = session.request(self.task);
        let of_atoms = |dim: Dim| {
            let is_of = |atom: &Atom| *atom == Atom::Room(dim) || *atom == Atom::Lacks(dim);
            self.atoms.sets.iter().flatten().any(is_of)
        };
        let dims = session.dims.in_report_order().iter().copied();
        let dims: Vec<Dim> = dims.filter(|&dim| 0 < request.get(dim) || of_atoms(dim)).collect();
        let amounts_of = |row: &Node, amounts: &mut Vec<(i128, i128)>| {
            amounts.clear();
            amounts.extend(dims.iter().map(|&dim| (row.allocatable.exact(dim), free(row, dim))));
        };
        let mut runs: Vec<NodeRun> = Vec::new();
        let (mut before, mut amounts) = (Vec::new(), Vec::new());
        for (at, (&node, &set)) in self.nodes.iter().zip(&self.atoms.set_of).enumerate() {
            amounts_of(&session.nodes[node], &mut amounts);
            match runs.last_mut().filter(|last| last.set == set && before == amounts) {
                Some(last) => last.places.end = at + 1,
                None => {
                    let lacks = self.lacks(session, node, &self.atoms.sets[set as usize]);
                    runs.push(NodeRun { places: at..at + 1, set, lacks });
                }
            }
            std::mem::swap(&mut before, &mut amounts);
        }
        runs
    }

    /// Returns the first node of a run.
    pub(crate) fn first_of(&self, run: &NodeRun) -> NodeId {
        self.nodes[run.places.start]
    }

    /// Returns the atoms that refuse the nodes of a run.
    pub(crate) fn atoms_of(&self, run: &NodeRun) -> &AtomSet {
        &self.atoms.sets[run.set as usize]
    }

    /// Returns the nodes of a run in name order.
    pub(crate) fn nodes_of(&self, run: &NodeRun) -> &[NodeId] {
        &self.nodes[run.places.clone()]
    }

    /// Returns the sets of atoms that refuse nodes, each with the number of its nodes. A set may come several
    /// times.
    pub(crate) fn sets(&self) -> impl Iterator<Item = (&AtomSet, usize)> {
        let mut counts = vec![0; self.atoms.sets.len()];
        self.atoms.set_of.iter().for_each(|&set| counts[set as usize] += 1);
        self.atoms.sets.iter().zip(counts)
    }

    /// Returns of each node, in order, whether nothing refuses it.
    pub(crate) fn admitting(&self) -> Vec<bool> {
        let admits = |&set: &u32| self.atoms.sets[set as usize].is_empty();
        self.atoms.set_of.iter().map(admits).collect()
    }

    /// Returns the runs of nodes that only lack room, or lack nothing.
    pub(crate) fn eligible<'r>(
        &self,
        runs: &'r [NodeRun],
    ) -> impl Iterator<Item = &'r NodeRun> + use<'r> {
        let is_eligible = |atoms: &AtomSet| atoms.iter().all(Atom::is_room);
        let is_eligible: Vec<bool> = self.atoms.sets.iter().map(is_eligible).collect();
        runs.iter().filter(move |run| is_eligible[run.set as usize])
    }

    /// Returns all atoms but amounts that refuse a node which has what the task asks for.
    pub(crate) fn rules(&self) -> AtomSet {
        let has_all = |atoms: &&AtomSet| !atoms.iter().any(|atom| matches!(atom, Atom::Lacks(_)));
        let sets = self.atoms.sets.iter().filter(has_all);
        sets.flatten().filter(|atom| !atom.is_room()).cloned().collect()
    }

    /// Returns how much of each dimension the node lacks for the task, in report order.
    fn lacks(&self, session: &SessionState<'_>, node: NodeId, atoms: &AtomSet) -> Vec<(Dim, i128)> {
        let has_amounts = |atom: &Atom| matches!(atom, Atom::Room(_) | Atom::Lacks(_));
        if !atoms.iter().any(has_amounts) {
            return Vec::new();
        }
        let (request, free) = (session.request(self.task), session.nodes[node].future_idle());
        let lacks = |dim: Dim| {
            let is_lacking = atoms.contains(&Atom::Room(dim)) || atoms.contains(&Atom::Lacks(dim));
            // The pod limit may be reached although the amounts are not.
            let lack = request.exact(dim) - free.exact(dim).max(0);
            is_lacking.then(|| (dim, lack.max(if dim == Dim::PODS { 1 } else { 0 })))
        };
        session.dims.in_report_order().iter().filter_map(|&dim| lacks(dim)).collect()
    }

    /// Returns the partition and the nearest nodes.
    pub(crate) fn numbers(&self, session: &SessionState<'_>, runs: &[NodeRun]) -> NodeNumbers {
        NodeNumbers {
            total: self.nodes.len(),
            eligible: self.eligible(runs).map(NodeRun::len).sum(),
            groups: self.groups(session, runs),
            nearest: self.nearest(session, runs),
        }
    }

    fn groups(&self, session: &SessionState<'_>, runs: &[NodeRun]) -> Vec<RefusedNodes> {
        let mut by_atoms: BTreeMap<&AtomSet, Vec<&NodeRun>> = BTreeMap::new();
        for run in runs {
            by_atoms.entry(self.atoms_of(run)).or_default().push(run);
        }
        let count = |runs: &[&NodeRun]| runs.iter().map(|run| run.len()).sum::<usize>();
        let mut groups: Vec<(&AtomSet, usize, Vec<&NodeRun>)> =
            by_atoms.into_iter().map(|(atoms, runs)| (atoms, count(&runs), runs)).collect();
        // The nodes are in name order.
        let place = |runs: &[&NodeRun]| runs.first().map(|run| run.places.start);
        groups.sort_by(|(l, l_count, l_runs), (r, r_count, r_runs)| {
            let by_size = l.len().cmp(&r.len()).then(r_count.cmp(l_count));
            by_size.then_with(|| place(l_runs).cmp(&place(r_runs)))
        });
        let rest = groups.split_off(groups.len().min(MOST_GROUPS));
        let group = |(atoms, count, runs): (&AtomSet, usize, Vec<&NodeRun>)| {
            let first = &runs[0].lacks;
            let is_same = runs.iter().all(|run| run.lacks == *first);
            RefusedNodes {
                atoms: atom_texts(atoms, &session.dims),
                count,
                names: self.names(session, &runs),
                lacks: if is_same { amounts(first, &session.dims) } else { Vec::new() },
            }
        };
        let mut shown: Vec<RefusedNodes> = groups.into_iter().map(group).collect();
        let mut rest: Vec<&NodeRun> = rest.into_iter().flat_map(|(.., runs)| runs).collect();
        if !rest.is_empty() {
            rest.sort_by_key(|run| run.places.start);
            shown.push(RefusedNodes {
                atoms: vec![OTHERS.to_owned()],
                count: count(&rest),
                names: self.names(session, &rest),
                lacks: Vec::new(),
            });
        }
        shown
    }

    fn names(&self, session: &SessionState<'_>, runs: &[&NodeRun]) -> Vec<Arc<str>> {
        let nodes = runs.iter().flat_map(|run| self.nodes_of(run)).take(MOST_NAMES);
        nodes.map(|&node| session.nodes[node].name.clone()).collect()
    }

    fn nearest(&self, session: &SessionState<'_>, runs: &[NodeRun]) -> Vec<NearestNode> {
        let request = session.request(self.task);
        let ratio = |lacks: &[(Dim, i128)]| {
            let ratios = lacks.iter().map(|&(dim, lack)| {
                // Both are exact; the ratio only orders nodes.
                lack as f64 / request.to_f64(dim).max(1.0)
            });
            ratios.fold(0.0, f64::max)
        };
        let is_refused = |run: &&NodeRun| {
            let atoms = self.atoms_of(run);
            !atoms.is_empty() && !atoms.iter().any(|atom| matches!(atom, Atom::Lacks(_)))
        };
        let refused = runs.iter().filter(is_refused);
        let mut ranked: Vec<(usize, f64, &NodeRun)> =
            refused.map(|run| (self.atoms_of(run).len(), ratio(&run.lacks), run)).collect();
        // The runs are in name order and the sort is stable.
        ranked.sort_by(|l, r| l.0.cmp(&r.0).then(l.1.total_cmp(&r.1)));
        let nodes = ranked.into_iter().flat_map(|(.., run)| {
            self.nodes_of(run).iter().take(MOST_NEAREST).map(move |&node| (node, run))
        });
        let nearest = |(node, run): (NodeId, &NodeRun)| NearestNode {
            name: session.nodes[node].name.clone(),
            atoms: atom_texts(self.atoms_of(run), &session.dims),
            lacks: amounts(&run.lacks, &session.dims),
        };
        nodes.take(MOST_NEAREST).map(nearest).collect()
    }
}

/// Returns what is free of a dimension on a node once what terminates has left.
fn free(node: &Node, dim: Dim) -> i128 {
    node.idle.exact(dim) + node.releasing.exact(dim) - node.pipelined.exact(dim)
}

impl NodeRun {
    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
}

/// Returns the names of atoms in rank order.
pub(crate) fn atom_texts(atoms: &AtomSet, dims: &Dims) -> Vec<String> {
    let mut atoms: Vec<&Atom> = atoms.iter().collect();
    atoms.sort_by(|l, r| l.order(r, dims));
    atoms.into_iter().map(|atom| atom.text(dims)).collect()
}

fn amounts(lacks: &[(Dim, i128)], dims: &Dims) -> Vec<(String, String)> {
    let amount =
        |&(dim, lack): &(Dim, i128)| (dims.name(dim).to_owned(), quantity_of(lack, dim, dims));
    lacks.iter().map(amount).collect()
}

impl RefusedNodes {
    /// Returns what refuses the nodes, as a phrase after `6 nodes` or `1 node`.
    pub fn phrase(&self) -> String {
        let is_one = self.count == 1;
        let verb = |one: &'static str, many: &'static str| if is_one { one } else { many };
        if self.atoms.is_empty() {
            return format!("{} room for one pod", verb("has", "have"));
        }
        let mut parts: Vec<String> = Vec::new();
        let (lacks, rooms) = (self.named("lacks/"), self.named("room/"));
        if !lacks.is_empty() {
            parts.push(format!("{} no {}", verb("has", "have"), lacks.join(", ")));
        }
        if !rooms.is_empty() {
            let each = if self.lacks.is_empty() || is_one { "" } else { " each" };
            let amounts: Vec<String> = rooms.iter().map(|name| self.lacking(name)).collect();
            parts.push(format!("{} room: {}{each}", verb("lacks", "lack"), amounts.join(", ")));
        }
        let is_amount = |atom: &str| atom.starts_with("lacks/") || atom.starts_with("room/");
        let others = self.atoms.iter().filter(|atom| !is_amount(atom));
        parts.extend(others.map(|atom| atom.replacen('/', " ", 1)));
        parts.join(", ")
    }

    /// Returns the rests of the names of atoms that begin like this.
    fn named(&self, prefix: &str) -> Vec<&str> {
        self.atoms.iter().filter_map(|atom| atom.strip_prefix(prefix)).collect()
    }

    /// Returns the resource with the amount that all nodes lack. Without one, the resource alone.
    fn lacking(&self, resource: &str) -> String {
        match self.lacks.iter().find(|(name, _)| name == resource) {
            Some((name, amount)) => format!("{amount} {name}"),
            None => resource.to_owned(),
        }
    }
}
