//! Counters of trials, and of the shortcuts that know their results. Specification: answers.md 17.
//!
//! No answer reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What has told the result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrialShortcut {
    /// Nothing: the trial was run.
    None,
    /// The attempt of a job of the same shape.
    KnownTrials,
    /// The verdict of a job of which all that decides is the same.
    KnownVerdicts,
    /// What is not lifted refuses every node.
    KnownFailures,
    /// The same change of a copy of the cluster.
    ChangedCopy,
}

/// Names of the shortcuts, in the order of [`TrialShortcut`].
const NAMES: [&str; 5] =
    ["none", "known_trials", "known_verdicts", "known_failures", "changed_copy"];

/// Numbers of trials about one state. Clones are the same counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrialCounter(Arc<[AtomicU64; NAMES.len()]>);

impl TrialCounter {
    pub(crate) fn add(&self, shortcut: TrialShortcut) {
        self.0[shortcut as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the numbers since the last call by name, without those that are 0.
    pub(crate) fn take(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let taken = self.0.iter().map(|number| number.swap(0, Ordering::Relaxed));
        NAMES.into_iter().zip(taken).filter(|(_, number)| 0 < *number)
    }
}
