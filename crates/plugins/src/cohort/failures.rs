//! Cache of target searches that failed in one state of the quota ledger.
//!
//! Exact because:
//! - A preemptor of the same queue with the same need, no higher priority and no earlier creation
//!   has no more candidates.
//! - A demand at least as large needs at least as much room.
//! - Only answers that do not depend on placement are cached.
//!
//! Specification: cohort.md B.11.

use vc_cohort::{QuotaPreemptor, SearchRefusal, Slot};

/// The failed searches in the state `version`.
#[derive(Clone, Debug, Default)]
pub(super) struct FailedTargetSearches {
    version: u64,
    known: Vec<FailedTargetSearch>,
}

/// A search that found no targets.
#[derive(Clone, Debug)]
struct FailedTargetSearch {
    preemptor: QuotaPreemptor,
    need: Vec<Slot>,
    refusal: SearchRefusal,
}

impl FailedTargetSearches {
    /// Returns the refusal that a search for this preemptor would give in this state. Returns
    /// `None` if it is unknown.
    pub(super) fn answer(
        &self,
        version: u64,
        preemptor: &QuotaPreemptor,
        need: &[Slot],
    ) -> Option<SearchRefusal> {
        let known = self.find(version, preemptor, need)?;
        let is_same = known.preemptor.demand == preemptor.demand;
        // Other refusals contain amounts of the cached demand.
        Some(known.refusal).filter(|refusal| is_same || *refusal == SearchRefusal::NoCandidates)
    }

    /// True if a search for this preemptor is known to fail in this state.
    pub(super) fn is_known(&self, version: u64, preemptor: &QuotaPreemptor, need: &[Slot]) -> bool {
        self.find(version, preemptor, need).is_some()
    }

    /// Caches the refusal of a search, unless it depends on placement. A new state clears the
    /// cache.
    pub(super) fn note(
        &mut self,
        version: u64,
        preemptor: &QuotaPreemptor,
        need: &[Slot],
        refusal: SearchRefusal,
    ) {
        if !matches!(refusal, SearchRefusal::NoCandidates | SearchRefusal::NotEnough(Some(_))) {
            return;
        }
        if self.version != version {
            self.known.clear();
            self.version = version;
        }
        let (preemptor, need) = (preemptor.clone(), need.to_vec());
        self.known.push(FailedTargetSearch { preemptor, need, refusal });
    }

    fn find(
        &self,
        version: u64,
        preemptor: &QuotaPreemptor,
        need: &[Slot],
    ) -> Option<&FailedTargetSearch> {
        let is_current = self.version == version;
        let mut known = self.known.iter().filter(|_| is_current);
        known.find(|failure| failure.covers(preemptor, need))
    }
}

impl FailedTargetSearch {
    /// True if this failure implies that a search for `preemptor` fails too.
    fn covers(&self, preemptor: &QuotaPreemptor, need: &[Slot]) -> bool {
        let known = &self.preemptor;
        let asks_as_much =
            || known.demand.iter().all(|(slot, amount)| amount <= preemptor.demand.get(slot));
        known.queue == preemptor.queue
            && self.need == need
            && preemptor.priority <= known.priority
            && known.created_micros <= preemptor.created_micros
            && asks_as_much()
    }
}

#[cfg(test)]
mod tests {
    use vc_cohort::{Flavor, QuotaDemand, QuotaNode, Slots};
    use vc_resource::Dim;

    use super::*;

    #[test]
    fn who_asks_for_as_much_and_is_no_more_important_is_known_to_fail() {
        let mut slots = Slots::default();
        let cpu = slots.intern(Flavor::default(), Dim::CPU).unwrap();
        let memory = slots.intern(Flavor::default(), Dim::MEMORY).unwrap();
        let preemptor = |priority, created_micros, amount| {
            let demand = QuotaDemand::new([(cpu, amount)]);
            QuotaPreemptor { queue: QuotaNode::new(1), priority, created_micros, demand }
        };
        let mut failures = FailedTargetSearches::default();
        failures.note(7, &preemptor(5, 100, 10), &[cpu], SearchRefusal::Unplaceable);
        assert!(!failures.is_known(7, &preemptor(5, 100, 10), &[cpu]), "a place is another matter");
        failures.note(7, &preemptor(5, 100, 10), &[cpu], SearchRefusal::NoCandidates);
        let known =
            |version, preemptor, need: &[Slot]| failures.is_known(version, &preemptor, need);
        assert!(known(7, preemptor(5, 100, 10), &[cpu]));
        assert!(known(7, preemptor(4, 101, 11), &[cpu]));
        assert!(!known(8, preemptor(5, 100, 10), &[cpu]), "another state");
        assert!(!known(7, preemptor(6, 100, 10), &[cpu]), "more important");
        assert!(!known(7, preemptor(5, 99, 10), &[cpu]), "older");
        assert!(!known(7, preemptor(5, 100, 9), &[cpu]), "asks for less");
        assert!(!known(7, preemptor(5, 100, 10), &[cpu, memory]), "short of something else");
        let other = QuotaPreemptor { queue: QuotaNode::new(2), ..preemptor(5, 100, 10) };
        assert!(!known(7, other, &[cpu]), "of another queue");
        let answer = failures.answer(7, &preemptor(5, 100, 11), &[cpu]);
        assert_eq!(answer, Some(SearchRefusal::NoCandidates));
    }
}
