//! The atoms that are present for a job: whatever stands in the way of a trial, found by lifting
//! all that is known so far until the trial succeeds or nothing new is found.
//! Specification: answers.md 4.1, ANS-18.

use std::collections::{BTreeMap, BTreeSet};

use vc_actions::first_tasks;
use vc_framework::{Atom, Session, SessionState};
use vc_model::{ClassId, Gates, TaskId};

use crate::nodes::NodeRefusals;
use crate::trials::{AtomSet, JobTrials, TrialAnswer, TrialEnd, waiting_members};

/// Atoms of a job; beyond, some are one.
const MOST_ATOMS: usize = 24;
/// Rounds of lifting; there are fewer kinds of atoms.
const MOST_ROUNDS: usize = 32;

/// The atoms of a job, and how many nodes each refuses.
#[derive(Default)]
pub(crate) struct PresentAtoms {
    pub(crate) atoms: AtomSet,
    pub(crate) n_nodes: BTreeMap<Atom, usize>,
}

/// Finds the atoms that are present. Returns `None` if the budget does not suffice.
pub(crate) fn find_present(trials: &mut JobTrials<'_, '_>) -> Option<PresentAtoms> {
    let mut present = PresentAtoms::default();
    for _ in 0..MOST_ROUNDS {
        let answer = trials.try_run(&present.atoms)?;
        if answer.succeeds() {
            break;
        }
        let before = present.atoms.len();
        find_obstacles(trials, &answer, &mut present);
        if present.atoms.len() == before {
            break;
        }
    }
    merge_beyond(trials, &mut present);
    Some(present)
}

/// Adds what stands in the way of a trial that failed.
fn find_obstacles(
    trials: &mut JobTrials<'_, '_>,
    answer: &TrialAnswer,
    present: &mut PresentAtoms,
) {
    let session = trials.session();
    let job = trials.job();
    let is_gated = |task: &TaskId| session.tasks[*task].gates != Gates::None;
    if !trials.has_own_gates_only() && waiting_members(session, job).iter().any(is_gated) {
        present.atoms.insert(Atom::Gates);
    }
    if !session.queues[trials.row().queue].is_open() {
        present.atoms.insert(Atom::Queue);
    }
    match answer.end {
        TrialEnd::Placed | TrialEnd::Pipelined => {}
        TrialEnd::NotValid(_) => drop(present.atoms.insert(Atom::Members)),
        TrialEnd::NotAdmitted(by, _) => drop(present.atoms.insert(Atom::Admission(by))),
        TrialEnd::BehindHead => drop(present.atoms.insert(Atom::Order)),
        TrialEnd::NoTurn => {
            let queue = trials.row().queue;
            let lifted = present.atoms.clone();
            let by = trials.with_lifted(&lifted, |session| {
                session.plugins().overused_by(session.view(), queue)
            });
            present.atoms.extend(by.map(Atom::Share));
        }
        TrialEnd::Unplaced => find_node_obstacles(trials, answer, present),
    }
}

fn find_node_obstacles(
    trials: &mut JobTrials<'_, '_>,
    answer: &TrialAnswer,
    present: &mut PresentAtoms,
) {
    let (session, job) = (trials.session(), trials.job());
    let lifted = present.atoms.clone();
    if trials.is_held() {
        present.atoms.insert(Atom::Order);
    }
    if session.view().is_in_hyper_nodes(job) {
        present.atoms.insert(Atom::Topology);
    }
    // A minimum below the pods of one sub-group would be another job.
    if !answer.placed.is_empty() && trials.row().policies().is_empty() {
        present.atoms.insert(Atom::Minimum);
    }
    let tasks = trials.with_lifted(&lifted, |session| classes_left(session, job, answer));
    for task in tasks {
        let refusals = trials.refusals(task, &lifted, &answer.placed);
        let share = trials.with_placed(&lifted, &answer.placed, |session| share_of(session, task));
        present.atoms.extend(share.map(Atom::Share));
        count_nodes(&refusals, present);
    }
}

/// Returns the first task of each class that found no node.
fn classes_left(session: &Session<'_>, job: vc_model::JobId, answer: &TrialAnswer) -> Vec<TaskId> {
    let mut seen: BTreeSet<ClassId> = BTreeSet::new();
    let placed = answer.placed_tasks();
    let mut tasks = first_tasks(session, job);
    if tasks.is_empty() {
        tasks.extend(answer.failed);
    }
    tasks.retain(|task| !placed.contains(task) && seen.insert(session.tasks[*task].class));
    tasks
}

fn share_of(session: &SessionState<'_>, task: TaskId) -> Option<&'static str> {
    let queue = session.job_of(task)?.queue;
    if session.tasks[task].best_effort {
        return None;
    }
    Some(session.plugins().share_refusal(session.view(), queue, task)?.by)
}

/// Adds the atoms of nodes that have all that the task asks for, and counts the nodes of each.
fn count_nodes(refusals: &NodeRefusals, present: &mut PresentAtoms) {
    let mut counts: BTreeMap<&Atom, usize> = BTreeMap::new();
    for (atoms, n_nodes) in refusals.sets() {
        if !atoms.iter().any(|atom| matches!(atom, Atom::Lacks(_))) {
            atoms.iter().for_each(|atom| *counts.entry(atom).or_default() += n_nodes);
        }
    }
    for (atom, count) in counts {
        present.atoms.insert(atom.clone());
        let most = present.n_nodes.entry(atom.clone()).or_default();
        *most = count.max(*most);
    }
}

/// Makes the labels, taints and filters that refuse the fewest nodes one atom, if there are too
/// many atoms.
fn merge_beyond(trials: &mut JobTrials<'_, '_>, present: &mut PresentAtoms) {
    if present.atoms.len() <= MOST_ATOMS {
        return;
    }
    let may_merge =
        |atom: &&Atom| matches!(atom, Atom::Label(_) | Atom::Taint(..) | Atom::Filter(_));
    let mut others: Vec<Atom> = present.atoms.iter().filter(may_merge).cloned().collect();
    let n_nodes = |atom: &Atom| present.n_nodes.get(atom).copied().unwrap_or(0);
    others.sort_by_key(|atom| n_nodes(atom));
    // One more than the surplus, because the merged atom counts, too.
    others.truncate(present.atoms.len() - MOST_ATOMS + 1);
    let most = others.iter().map(n_nodes).sum();
    for atom in &others {
        present.atoms.remove(atom);
    }
    present.atoms.insert(Atom::OtherFilters);
    present.n_nodes.insert(Atom::OtherFilters, most);
    trials.merge(others.into_iter().collect());
}
