//! Blocking sets: atoms that suffice to be lifted, none of which could be left out. Found by
//! deletion, verified by trial. Specification: answers.md 4.3 (ANS-23 to ANS-27).

use std::collections::BTreeMap;

use vc_framework::Atom;
use vc_model::NodeSelectorTerm;
use vc_resource::Dims;

use crate::explanation::{BlockingAtom, BlockingSet, BlockingSets, LeftOut, Responsible};
use crate::limit_places::limit_places;
use crate::obstacles::{PresentAtoms, find_present};
use crate::trials::{AtomSet, JobTrials, waiting_members};

/// Sets that are looked for where no single atom suffices.
const MOST_SETS: usize = 3;
/// Largest set of which all proper subsets are tried.
const MOST_FOR_ALL: usize = 4;

/// A search for sets that ends when the budget is spent.
struct SetSearch<'t, 's, 'c> {
    trials: &'t mut JobTrials<'s, 'c>,
    /// The present atoms in rank order.
    ranked: Vec<Atom>,
}

/// The blocking sets for users and as atoms, with all atoms that are present.
#[derive(Default)]
pub(crate) struct FoundSets {
    pub(crate) blocking: BlockingSets,
    pub(crate) sets: Vec<AtomSet>,
    pub(crate) present: AtomSet,
}

/// Finds the blocking sets of a job that is not placed.
pub(crate) fn find_sets(trials: &mut JobTrials<'_, '_>) -> FoundSets {
    let Some(present) = find_present(trials) else {
        let left_out = vec![LeftOut::EvenEmpty, LeftOut::Sets];
        let blocking = BlockingSets { left_out, ..BlockingSets::default() };
        return FoundSets { blocking, ..FoundSets::default() };
    };
    let dims = trials.session().dims.clone();
    let mut ranked: Vec<Atom> = present.atoms.iter().cloned().collect();
    ranked.sort_by(|l, r| l.order(r, &dims));
    let mut search = SetSearch { trials, ranked };
    let mut found = Vec::new();
    let even_empty = search.even_empty();
    let mut has_all_sets = search.search(&mut found).is_some();
    let places = limit_places(search.trials, &present.atoms);
    let mut sets = Vec::new();
    let mut kept = Vec::new();
    for set in found {
        match search.certify(set) {
            Some((set, _)) if kept.contains(&set) => {}
            Some((set, certified)) => {
                sets.push(to_set(search.trials, (&present, &places), (&set, certified), &dims));
                kept.push(set);
            }
            None => has_all_sets = false,
        }
    }
    let atoms = search.ranked.iter().map(|atom| atom.text(&dims)).collect();
    let is_unknown = even_empty.is_none();
    let parts = [(is_unknown, LeftOut::EvenEmpty), (!has_all_sets, LeftOut::Sets)];
    let left_out = parts.into_iter().filter_map(|(is_left, part)| is_left.then_some(part));
    let blocking = BlockingSets { even_empty, left_out: left_out.collect(), atoms, sets };
    FoundSets { blocking, sets: kept, present: present.atoms }
}

impl SetSearch<'_, '_, '_> {
    /// True if the trial succeeds. Returns `None` if the budget is spent.
    fn succeeds(&mut self, lifted: &AtomSet) -> Option<bool> {
        self.trials.try_succeeds(lifted)
    }

    /// True if the job would be placed on empty nodes, with nobody before it.
    fn even_empty(&mut self) -> Option<bool> {
        let by_time = |atom: &&Atom| atom.is_room() || **atom == Atom::Order;
        let rooms: AtomSet = self.ranked.iter().filter(by_time).cloned().collect();
        self.succeeds(&rooms)
    }

    /// Adds the sets, the first ones first. Returns `None` if the budget is spent.
    fn search(&mut self, found: &mut Vec<AtomSet>) -> Option<()> {
        let all: AtomSet = self.ranked.iter().cloned().collect();
        if self.succeeds(&AtomSet::new())? || !self.succeeds(&all)? {
            return Some(());
        }
        for atom in self.ranked.clone() {
            let single = AtomSet::from([atom]);
            if self.succeeds(&single)? {
                found.push(single);
            }
        }
        if !found.is_empty() {
            return Some(());
        }
        let first = self.reduce(all.clone())?;
        let ranked: Vec<Atom> =
            self.ranked.iter().filter(|atom| first.contains(*atom)).cloned().collect();
        found.push(first);
        for atom in ranked {
            let without = minus(&all, &atom);
            if MOST_SETS <= found.len() || !self.succeeds(&without)? {
                continue;
            }
            let further = self.reduce(without)?;
            if !found.contains(&further) {
                found.push(further);
            }
        }
        Some(())
    }

    /// Leaves out atoms of a set that suffices, in rank order, until none can be left out.
    fn reduce(&mut self, mut set: AtomSet) -> Option<AtomSet> {
        loop {
            let before = set.len();
            for atom in self.ranked.clone() {
                let without = minus(&set, &atom);
                if set.contains(&atom) && self.succeeds(&without)? {
                    set = without;
                }
            }
            if set.len() == before {
                return Some(set);
            }
        }
    }

    /// Returns the set with what was tried of it: `all` proper subsets, or those with one atom
    /// less. A subset that suffices takes its place, since the placement of pods is greedy.
    fn certify(&mut self, set: AtomSet) -> Option<(AtomSet, &'static str)> {
        if MOST_FOR_ALL < set.len() {
            return Some((set, "one-less"));
        }
        for subset in proper_subsets(&set) {
            if self.succeeds(&subset)? {
                return Some((subset, "all"));
            }
        }
        Some((set, "all"))
    }
}

/// Returns the proper subsets that are not empty, the smallest first.
fn proper_subsets(set: &AtomSet) -> Vec<AtomSet> {
    let atoms: Vec<&Atom> = set.iter().collect();
    let subset = |bits: usize| -> AtomSet {
        let chosen = (0..atoms.len()).filter(|at| bits & (1 << at) != 0);
        chosen.map(|at| atoms[at].clone()).collect()
    };
    let mut subsets: Vec<AtomSet> = (1..(1_usize << atoms.len()) - 1).map(subset).collect();
    subsets.sort_by_key(AtomSet::len);
    subsets
}

fn minus(set: &AtomSet, atom: &Atom) -> AtomSet {
    set.iter().filter(|other| *other != atom).cloned().collect()
}

fn to_set(
    trials: &JobTrials<'_, '_>,
    (present, places): (&PresentAtoms, &BTreeMap<Atom, String>),
    (set, certified): (&AtomSet, &'static str),
    dims: &Dims,
) -> BlockingSet {
    let mut atoms: Vec<&Atom> = set.iter().collect();
    atoms.sort_by(|l, r| l.order(r, dims));
    let row = |atom: &&Atom| {
        let (place, who) = origin(trials, atom, places);
        let n_nodes = present.n_nodes.get(*atom).copied();
        BlockingAtom { atom: atom.text(dims), place, n_nodes, who }
    };
    BlockingSet { atoms: atoms.iter().map(row).collect(), certified }
}

/// Returns what the atom is in the user's objects, and whose it is to change. `places` are those of limits.
fn origin(
    trials: &JobTrials<'_, '_>,
    atom: &Atom,
    places: &BTreeMap<Atom, String>,
) -> (String, Responsible) {
    use Responsible::{Admin, Time, You};
    let queue = &trials.session().queues[trials.row().queue].name;
    let (place, who) = match atom {
        Atom::Gates => ("spec.schedulingGates", You),
        Atom::Members => ("pods of the job", You),
        Atom::Queue => return (format!("Queue {queue}, status.state"), Admin),
        Atom::Admission(_) | Atom::Share(_) => {
            let unknown = || format!("limits of Queue {queue}");
            return (places.get(atom).cloned().unwrap_or_else(unknown), Admin);
        }
        Atom::Order => ("jobs before it", Time),
        Atom::Shard => ("NodeShard", Admin),
        Atom::Need(_) => ("spec.volumes and spec.resourceClaims", You),
        Atom::Label(key) => return (label_place(trials, key), You),
        Atom::Taint(..) => ("spec.tolerations", You),
        Atom::Cordon => ("spec.unschedulable of nodes", Admin),
        Atom::Filter("AntiAffinityOfOthers") => {
            ("spec.affinity.podAntiAffinity of other pods", Time)
        }
        Atom::Filter(name) => (filter_place(name), You),
        Atom::OtherFilters => ("labels, taints and filters that refuse few nodes", You),
        Atom::Topology => ("PodGroup, spec.networkTopology", You),
        Atom::Room(_) => ("running pods", Time),
        Atom::Minimum => ("PodGroup, spec.minMember", You),
        Atom::Lacks(_) => ("nodes", Admin),
    };
    (place.to_owned(), who)
}

fn filter_place(filter: &str) -> &'static str {
    match filter {
        "NodePorts" => "ports of containers",
        "PodAffinity" => "spec.affinity.podAffinity",
        "PodAntiAffinity" => "spec.affinity.podAntiAffinity",
        "TopologySpread" => "spec.topologySpreadConstraints",
        "NodeAffinity" => "spec.affinity.nodeAffinity",
        "Devices" => "spec.resourceClaims",
        name if name.starts_with("Volume") => "spec.volumes",
        _ => "spec of the pods",
    }
}

/// Returns the field that names the label.
fn label_place(trials: &JobTrials<'_, '_>, key: &str) -> String {
    let session = trials.session();
    let waiting = waiting_members(session, trials.job());
    let names = |term: &NodeSelectorTerm| term.match_expressions.iter().any(|it| &*it.key == key);
    let is_in_affinity = waiting.iter().any(|&task| {
        let required = session.class(task).node_affinity.required.as_deref();
        required.unwrap_or_default().iter().any(names)
    });
    match is_in_affinity {
        true => format!("spec.affinity.nodeAffinity, key {key}"),
        false => format!("spec.nodeSelector[{key:?}]"),
    }
}
