//! Trials that are known to fail, because what is not lifted refuses every node for each waiting member.
//! Specification: answers.md 4.2, 4.3.
//!
//! Exact because:
//! - the first member that a trial places is placed while all others wait, so if every node refuses every waiting
//!   member, nobody is placed;
//! - lifted atoms make a job ready only through members that are placed, so a trial that places nobody fails if
//!   the trial without lifted atoms has placed nobody and failed;
//! - amounts, taints, cordons, shards and labels refuse a node whatever else is lifted. Exceptions are in
//!   [`StillRefusing`]; other filters read what other atoms change;
//! - a trial that is known to fail costs as many units as one that is run;
//! - debug builds run the trial all the same, and `ans_29_what_is_kept_changes_no_answer` compares with the plain
//!   evaluator, with which every trial is run.

use std::collections::BTreeSet;

use vc_framework::{Atom, UNSCHEDULABLE_TAINT};
use vc_model::{ClassId, TaintEffect, TaskId};

use crate::trials::{AtomSet, JobTrials, TrialEnd, waiting_members};

impl JobTrials<'_, '_> {
    /// True if the trial with these atoms lifted is known to fail without being run. Nothing is known before the
    /// trial without lifted atoms was run.
    pub(crate) fn is_known_to_fail(&mut self, lifted: &AtomSet) -> bool {
        let places_nobody = self
            .known(&AtomSet::new())
            .is_some_and(|base| base.end == TrialEnd::Unplaced && base.placed.is_empty());
        // What jobs before this one hold is read with the base state.
        let is_other_state = lifted.contains(&Atom::Members) || self.is_held();
        if !self.session().is_trial_cached() || !places_nobody || is_other_state {
            return false;
        }
        self.is_refused_everywhere(lifted)
    }

    /// True if every node is known to refuse each waiting member with these atoms lifted, while no member is placed.
    pub(crate) fn is_refused_everywhere(&mut self, lifted: &AtomSet) -> bool {
        let lifted = self.without_merged(lifted);
        let Some(still_refusing) = StillRefusing::of(&lifted) else { return false };
        first_of_classes(self).into_iter().all(|task| {
            let refusals = self.refusals(task, &AtomSet::new(), &[]);
            let mut sets = refusals.sets().filter(|(_, n_nodes)| 0 < *n_nodes);
            sets.all(|(atoms, _)| atoms.iter().any(|atom| still_refusing.contains(atom)))
        })
    }
}

/// Returns the first waiting member of each class.
pub(crate) fn first_of_classes(trials: &JobTrials<'_, '_>) -> Vec<TaskId> {
    let session = trials.session();
    let mut seen: BTreeSet<ClassId> = BTreeSet::new();
    let mut members = waiting_members(session, trials.job());
    members.retain(|&task| seen.insert(session.tasks[task].class));
    members
}

/// The atoms that refuse a node while others are lifted, whatever these are.
struct StillRefusing<'a> {
    lifted: &'a AtomSet,
    /// True if a label is lifted: of alternative terms, a node may then meet one.
    lifts_labels: bool,
    /// True if cordons are lifted, or the taint that comes with them: both are tolerated alike.
    lifts_cordons: bool,
}

impl<'a> StillRefusing<'a> {
    /// Returns `None` if a lifted taint has no key: its toleration is one of all taints.
    fn of(lifted: &'a AtomSet) -> Option<Self> {
        if lifted.iter().any(|atom| matches!(atom, Atom::Taint(key, ..) if key.is_empty())) {
            return None;
        }
        let lifts_labels = lifted.iter().any(|atom| matches!(atom, Atom::Label(_)));
        Some(Self { lifted, lifts_labels, lifts_cordons: lifted.iter().any(is_cordon) })
    }

    fn contains(&self, atom: &Atom) -> bool {
        match atom {
            Atom::Lacks(_) => true,
            Atom::Label(_) => !self.lifts_labels,
            atom if is_cordon(atom) => !self.lifts_cordons,
            Atom::Shard | Atom::Taint(..) | Atom::Room(_) => !self.lifted.contains(atom),
            _ => false,
        }
    }
}

fn is_cordon(atom: &Atom) -> bool {
    match atom {
        Atom::Cordon => true,
        Atom::Taint(key, _, effect) => {
            **key == *UNSCHEDULABLE_TAINT && *effect == TaintEffect::NoSchedule
        }
        _ => false,
    }
}
