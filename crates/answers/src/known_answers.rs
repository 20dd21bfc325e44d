//! A cache of the answers about one state. It is dropped when the state changes. Specification: answers.md 10
//! (ANS-66).
//!
//! Exact because:
//! - an answer is a function of the state and the question (ANS-1), and the cache belongs to one state;
//! - of a start the question is also what was expected of ends and the explanation that it was added to: both
//!   are compared;
//! - `ans_29_what_is_kept_changes_no_answer` compares with the plain evaluator, with which nothing is kept.

use std::sync::Arc;

use vc_model::ByteLruCache;

use crate::ends::ExpectedEnds;
use crate::explain::Depth;
use crate::explanation::{Explanation, Remedy};
use crate::remedy_change::RemedyChange;
use crate::subject::Subject;

/// Budget of the explanations, and of the starts. An explanation takes some KiB.
const MOST_BYTES: usize = 4 << 20;
/// Bytes of one row of an explanation with its texts, generously.
const BYTES_OF_ROW: usize = 512;

/// The least recently asked questions are forgotten beyond the budget.
#[derive(Default)]
pub(crate) struct KnownAnswers {
    explanations: ByteLruCache<(Subject, Depth), Explanation>,
    starts: ByteLruCache<Subject, KnownStart>,
    /// All jobs that wait.
    pub(crate) waiting: Option<Arc<Vec<Explanation>>>,
}

/// An explanation before and after the start of the job was added.
struct KnownStart {
    ends: ExpectedEnds,
    before: Explanation,
    after: Explanation,
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

    /// Returns this explanation with the start of the job. Returns `None` if the same was not asked for, or is
    /// forgotten.
    pub(crate) fn start(
        &mut self,
        subject: Subject,
        ends: &ExpectedEnds,
        explanation: &Explanation,
    ) -> Option<Explanation> {
        let known = self.starts.get_mut(&subject)?;
        let is_same = known.ends == *ends && known.before == *explanation;
        is_same.then(|| known.after.clone())
    }

    /// Keeps an explanation to which a start was added.
    pub(crate) fn keep_start(
        &mut self,
        subject: Subject,
        ends: &ExpectedEnds,
        (before, after): (Explanation, Explanation),
    ) {
        let n_bytes = n_bytes(&before) + n_bytes(&after);
        self.starts.put(subject, KnownStart { ends: ends.clone(), before, after }, n_bytes);
        make_room(&mut self.starts);
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
    let blocking = it.blocking.as_ref().map_or(0, |blocking| {
        let in_sets: usize = blocking.sets.iter().map(|set| set.atoms.len()).sum();
        blocking.atoms.len() + in_sets
    });
    let evict = it.evict.as_ref().map_or(0, |evict| evict.actions.len() + evict.compared.len() + 1);
    let awaited = it.start.as_ref().map_or(0, |start| start.waits_for.len());
    let limits = it.short.len() + it.classes.len() + it.quota.len();
    let rows = gang + nodes + limits + blocking + evict + awaited;
    let awaited_nodes = it.start.iter().flat_map(|start| &start.waits_for);
    let awaited_nodes: usize = awaited_nodes.map(|job| job.nodes.len()).sum();
    let names: usize = it.unblock.iter().map(n_names).sum::<usize>() + awaited_nodes;
    size_of::<Explanation>()
        + BYTES_OF_ROW * (1 + rows + it.unblock.len())
        + names * size_of::<Arc<str>>()
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
