//! What happens without changes: the outcome of a supposed run, which what-ifs about one state share.
//! Specification: answers.md 9 (ANS-49), 10 (ANS-66).
//!
//! Exact because:
//! - such a run follows from the state, from what happens to pods between cycles, and from the number of cycles. No
//!   expected end happens in it, so what is expected of ends does not count;
//! - a run that has settled is the same if it may have more cycles: it ends with the first one that decides nothing;
//! - the outcomes belong to one state, and whoever keeps them drops them when the state changes;
//! - some rules follow the clock alone, which moves on without a change: an outcome is found at its own time only;
//! - `ans_49_a_kept_outcome_changes_no_answer` compares with questions that share nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vc_engine::QueueUse;
use vc_model::ObjectKey;

use super::question::SupposedKubelet;
use super::run::{BoundPod, GonePod, SupposedRun};
use super::waiting_keys;

/// Outcomes that are kept of a state. Nearly all questions settle with instant kubelets, and share one.
const MOST_KEPT: usize = 4;

/// What has happened at the end of a run without changes.
#[derive(Default)]
pub(super) struct Baseline {
    pub(super) bound: BTreeMap<ObjectKey, BoundPod>,
    pub(super) evicted: BTreeMap<ObjectKey, GonePod>,
    /// PodGroups and pods of which something waits.
    pub(super) waiting: BTreeSet<ObjectKey>,
    pub(super) queues: Vec<QueueUse>,
}

impl Baseline {
    /// Returns the outcome of a run, whose copy of the engine is dropped.
    pub(super) fn of(run: SupposedRun) -> Self {
        let (waiting, queues) = (waiting_keys(run.cluster()), run.report().queues.clone());
        let SupposedRun { bound, evicted, .. } = run;
        Self { bound, evicted, waiting, queues }
    }
}

/// Kubelets and length of a run without changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BaselineRun {
    pub(super) kubelet: SupposedKubelet,
    pub(super) n_cycles: u32,
    /// True if the last cycle decided nothing.
    pub(super) is_settled: bool,
}

impl BaselineRun {
    /// True if a run with these kubelets and so many cycles at most is the same.
    fn is_run_of(self, kubelet: SupposedKubelet, most_cycles: u32) -> bool {
        let has_as_many = match self.is_settled {
            true => self.n_cycles <= most_cycles,
            false => self.n_cycles == most_cycles,
        };
        self.kubelet == kubelet && has_as_many
    }
}

/// The outcomes without changes that what-ifs about one state have found so far. Clones share them.
#[derive(Clone, Default)]
pub struct KnownBaselines {
    list: Arc<Mutex<Vec<KnownBaseline>>>,
    /// Time of the state, in microseconds since 1970.
    at_micros: i64,
}

/// The outcome of a run that begins with the state at one time.
struct KnownBaseline {
    run: BaselineRun,
    at_micros: i64,
    outcome: Arc<Baseline>,
}

impl KnownBaselines {
    fn list(&self) -> MutexGuard<'_, Vec<KnownBaseline>> {
        // Nothing is half done after a panic: outcomes are made before they are added.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the same outcomes for a state whose last cycle was at this time, in microseconds since 1970. Outcomes of
    /// other times are not found there.
    #[must_use]
    pub fn at_time(self, at_micros: i64) -> Self {
        Self { at_micros, ..self }
    }

    /// Returns the outcome with these kubelets and so many cycles at most. Returns `None` if it is not known.
    pub(super) fn find(&self, kubelet: SupposedKubelet, most_cycles: u32) -> Option<Arc<Baseline>> {
        let list = self.list();
        let mut of_now = list.iter().filter(|known| known.at_micros == self.at_micros);
        let known = of_now.find(|known| known.run.is_run_of(kubelet, most_cycles));
        known.map(|known| known.outcome.clone())
    }

    /// Keeps an outcome. The oldest one goes if there are too many.
    pub(super) fn keep(&self, run: BaselineRun, outcome: Arc<Baseline>) {
        let mut list = self.list();
        if MOST_KEPT <= list.len() {
            list.remove(0);
        }
        list.push(KnownBaseline { run, at_micros: self.at_micros, outcome });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSTANT: SupposedKubelet = SupposedKubelet::Instant;

    fn keep(known: &KnownBaselines, n_cycles: u32, is_settled: bool) {
        let run = BaselineRun { kubelet: INSTANT, n_cycles, is_settled };
        known.keep(run, Arc::default());
    }

    #[test]
    fn ans_49_a_settled_outcome_is_that_of_longer_runs_too() {
        let known = KnownBaselines::default();
        assert!(known.find(INSTANT, 3).is_none(), "nothing is known yet");
        keep(&known, 3, true);
        let found = |most: u32| known.clone().find(INSTANT, most).is_some();
        assert_eq!([2, 3, 4, 20].map(found), [false, true, true, true]);
        assert!(known.find(SupposedKubelet::None, 3).is_none(), "other kubelets");
    }

    #[test]
    fn ans_49_an_unsettled_outcome_is_that_of_its_number_of_cycles() {
        let known = KnownBaselines::default();
        keep(&known, 2, false);
        assert_eq!([1, 2, 3].map(|most| known.find(INSTANT, most).is_some()), [false, true, false]);
    }

    #[test]
    fn ans_49_an_outcome_is_that_of_its_time() {
        let known = KnownBaselines::default();
        keep(&known.clone().at_time(1), 3, true);
        let found = [1, 2].map(|time| known.clone().at_time(time).find(INSTANT, 3).is_some());
        assert_eq!(found, [true, false], "rules may follow the clock alone");
    }

    #[test]
    fn ans_49_the_oldest_outcome_is_forgotten() {
        let known = KnownBaselines::default();
        (1..=5).for_each(|n_cycles| keep(&known, n_cycles, false));
        let found = [1, 2, 3, 4, 5].map(|most| known.find(INSTANT, most).is_some());
        assert_eq!(found, [false, true, true, true, true]);
    }
}
