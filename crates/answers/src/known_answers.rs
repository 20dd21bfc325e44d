//! A cache of the answers about one state. It is dropped when the state changes. Specification: answers.md 10
//! (ANS-66).
//!
//! Exact because:
//! - an answer is a function of the state and the question (ANS-1), and the cache belongs to one state;
//! - of a start the question is also what was expected of ends, and what it reads of the explanation of the job:
//!   both are compared;
//! - of an explanation with the start the question is also the one without: both are compared, too;
//! - the remedies that whole cycles verify read the blocking sets of the explanation beside the state;
//! - `ans_29_what_is_kept_changes_no_answer` compares with the plain evaluator, with which nothing is kept.

use std::sync::Arc;

use vc_model::ByteLruCache;

use crate::ends::ExpectedEnds;
use crate::explain::Depth;
use crate::explanation::{BlockingSets, Explanation, Remedy};
use crate::remedy_change::RemedyChange;
use crate::subject::Subject;
use crate::when::{StartAnswer, StartBasis};

/// Budget of the explanations, of the starts, of explanations with starts, and of the remedies that whole cycles
/// verify. An explanation takes some KiB.
const MOST_BYTES: usize = 4 << 20;
/// Bytes of one row of an explanation with its texts, generously.
const BYTES_OF_ROW: usize = 512;

/// The least recently asked questions are forgotten beyond the budget.
#[derive(Default)]
pub(crate) struct KnownAnswers {
    explanations: ByteLruCache<(Subject, Depth), Explanation>,
    starts: ByteLruCache<Subject, KnownStart>,
    with_starts: ByteLruCache<Subject, ExplainedStart>,
    cycle_remedies: ByteLruCache<Subject, KnownCycleRemedies>,
    /// All jobs that wait.
    pub(crate) waiting: Option<Arc<Vec<Explanation>>>,
}

/// A start with what it was found by.
struct KnownStart {
    ends: ExpectedEnds,
    basis: StartBasis,
    start: StartAnswer,
}

/// An explanation before and after the start of the job and the remedies that belong to it were added.
struct ExplainedStart {
    ends: ExpectedEnds,
    before: Explanation,
    after: Explanation,
}

/// The remedies of a job that whole cycles verify, with the sets by which they were found.
struct KnownCycleRemedies {
    blocking: BlockingSets,
    remedies: Vec<Remedy>,
}

impl KnownAnswers {
    /// Returns the explanation. Returns `None` if it was not asked for, or is forgotten.
    pub(crate) fn explanation(&mut self, subject: Subject, depth: Depth) -> Option<Explanation> {
        self.explanations.get_mut(&(subject, depth)).map(|known| known.clone())
    }

    /// Keeps an explanation.
    pub(crate) fn keep_explanation(&mut self, subject: Subject, depth: Depth, it: &Explanation) {
        self.explanations.put((subject, depth), it.clone(), n_bytes(it));
        make_room(&mut self.explanations);
    }

    /// Returns the start of a job. Returns `None` if it was not found by the same, or is forgotten.
    pub(crate) fn start(
        &mut self,
        subject: Subject,
        ends: &ExpectedEnds,
        basis: &StartBasis,
    ) -> Option<StartAnswer> {
        let known = self.starts.get_mut(&subject)?;
        let is_same = known.ends == *ends && known.basis == *basis;
        is_same.then(|| known.start.clone())
    }

    /// Keeps a start.
    pub(crate) fn keep_start(
        &mut self,
        subject: Subject,
        ends: &ExpectedEnds,
        (basis, start): (StartBasis, &StartAnswer),
    ) {
        let n_bytes = size_of::<KnownStart>() + n_bytes_of_start(start);
        let known = KnownStart { ends: ends.clone(), basis, start: start.clone() };
        self.starts.put(subject, known, n_bytes);
        make_room(&mut self.starts);
    }

    /// Returns this explanation with the start of the job. Returns `None` if the same was not asked for, or is
    /// forgotten.
    pub(crate) fn with_start(
        &mut self,
        subject: Subject,
        ends: &ExpectedEnds,
        explanation: &Explanation,
    ) -> Option<Explanation> {
        let known = self.with_starts.get_mut(&subject)?;
        let is_same = known.ends == *ends && known.before == *explanation;
        is_same.then(|| known.after.clone())
    }

    /// Keeps an explanation to which a start was added.
    pub(crate) fn keep_with_start(
        &mut self,
        subject: Subject,
        ends: &ExpectedEnds,
        (before, after): (Explanation, Explanation),
    ) {
        let n_bytes = n_bytes(&before) + n_bytes(&after);
        let known = ExplainedStart { ends: ends.clone(), before, after };
        self.with_starts.put(subject, known, n_bytes);
        make_room(&mut self.with_starts);
    }

    /// Returns the remedies of a job that whole cycles verify. Returns `None` if they were not found by the same sets,
    /// or are forgotten.
    pub(crate) fn cycle_remedies(
        &mut self,
        subject: Subject,
        blocking: &BlockingSets,
    ) -> Option<Vec<Remedy>> {
        let known = self.cycle_remedies.get_mut(&subject)?;
        (known.blocking == *blocking).then(|| known.remedies.clone())
    }

    /// Keeps the remedies of a job that whole cycles verify.
    pub(crate) fn keep_cycle_remedies(
        &mut self,
        subject: Subject,
        blocking: &BlockingSets,
        remedies: &[Remedy],
    ) {
        let n_names: usize = remedies.iter().map(n_names).sum();
        let n_rows = 1 + n_rows_of_sets(blocking) + remedies.len();
        let n_bytes = BYTES_OF_ROW * n_rows + n_names * size_of::<Arc<str>>();
        let known = KnownCycleRemedies { blocking: blocking.clone(), remedies: remedies.to_vec() };
        self.cycle_remedies.put(subject, known, n_bytes);
        make_room(&mut self.cycle_remedies);
    }
}

fn make_room<K: std::hash::Hash + Eq, V>(cache: &mut ByteLruCache<K, V>) {
    while MOST_BYTES < cache.n_bytes() {
        cache.pop_oldest();
    }
}

/// Returns roughly the size of an explanation in memory.
fn n_bytes(it: &Explanation) -> usize {
    let gang = it
        .gang
        .as_ref()
        .map_or(0, |gang| gang.roles.len() + gang.sub_groups.len() + gang.pods.len());
    let nodes = it.nodes.as_ref().map_or(0, |nodes| nodes.groups.len() + nodes.nearest.len());
    let blocking = it.blocking.as_deref().map_or(0, n_rows_of_sets);
    let evict = it.evict.as_ref().map_or(0, |evict| evict.actions.len() + evict.compared.len() + 1);
    let limits = it.short.len() + it.classes.len() + it.quota.len();
    let rows = gang + nodes + limits + blocking + evict;
    let names: usize = it.unblock.iter().map(n_names).sum();
    size_of::<Explanation>()
        + BYTES_OF_ROW * (1 + rows + it.unblock.len())
        + names * size_of::<Arc<str>>()
        + it.start.as_deref().map_or(0, n_bytes_of_start)
}

fn n_rows_of_sets(blocking: &BlockingSets) -> usize {
    let in_sets: usize = blocking.sets.iter().map(|set| set.atoms.len()).sum();
    blocking.atoms.len() + in_sets
}

/// Returns roughly the size of the rows of a start in memory.
fn n_bytes_of_start(start: &StartAnswer) -> usize {
    let n_nodes: usize = start.waits_for.iter().map(|job| job.nodes.len()).sum();
    BYTES_OF_ROW * (1 + start.waits_for.len()) + n_nodes * size_of::<Arc<str>>()
}

/// Returns the number of names in a remedy, of which there may be many.
fn n_names(remedy: &Remedy) -> usize {
    remedy.nodes.len() + remedy.change.as_ref().map_or(0, n_names_of)
}

fn n_names_of(change: &RemedyChange) -> usize {
    match change {
        RemedyChange::Uncordon { nodes } => nodes.len(),
        RemedyChange::Finish { jobs } => 2 * jobs.len(),
        RemedyChange::Several(changes) => changes.iter().map(n_names_of).sum(),
        _ => 0,
    }
}
