//! Failed victim searches in one state, by pod signature.
//!
//! Exact because:
//! - equal signatures in one state make every step of the search the same; only the log does not
//!   repeat the steps;
//! - the engine's `evictions` tests compare with the plain search and count the cache hits.
//!
//! Specification: actions.md 12.2 S1, S7.

use rustc_hash::FxHashMap;
use vc_framework::{ClassSignature, PodSignature, PreemptionKind, Statement, Tally};
use vc_model::{ClassId, TaskId};

use super::SearchOutcome;

/// Searches that failed in the present state.
#[derive(Debug, Default)]
pub(super) struct SearchFailureCache {
    version: u64,
    /// The part of each class that filters and scorers read.
    classes: FxHashMap<ClassId, ClassSignature>,
    known: FxHashMap<(PodSignature, PreemptionKind), SearchFailure>,
}

#[derive(Debug)]
struct SearchFailure {
    causes: Tally,
    n_attempts: u32,
    outcome: SearchOutcome,
}

impl SearchFailureCache {
    /// Runs `search`, unless an equal search has failed in this state. No causes of the task may be
    /// noted before.
    pub(super) fn get_or_search<'s, 'c>(
        &mut self,
        statement: &mut Statement<'s, 'c>,
        task: TaskId,
        kind: PreemptionKind,
        search: impl FnOnce(&mut Statement<'s, 'c>) -> SearchOutcome,
    ) -> SearchOutcome {
        if self.version != statement.version() {
            self.known.clear();
            self.classes.clear();
            self.version = statement.version();
        }
        let classes = &mut self.classes;
        let class_signature =
            |class| *classes.entry(class).or_insert_with(|| statement.class_signature(task));
        let Some(signature) = statement.pod_signature(task, class_signature) else {
            return search(statement);
        };
        let key = (signature, kind);
        if let Some(failure) = self.known.get(&key) {
            statement.stats().n_repeated += 1;
            statement.outcome().causes.repeat(&failure.causes);
            statement.outcome().out.n_preemption_attempts += failure.n_attempts;
            return failure.outcome.clone();
        }
        let n_attempts = statement.outcome().out.n_preemption_attempts;
        let outcome = search(statement);
        if !matches!(outcome, Ok(true)) && statement.version() == self.version {
            let causes = statement.outcome().causes.of_task().clone();
            let n_attempts = statement.outcome().out.n_preemption_attempts - n_attempts;
            self.known.insert(key, SearchFailure { causes, n_attempts, outcome: outcome.clone() });
        }
        outcome
    }
}
