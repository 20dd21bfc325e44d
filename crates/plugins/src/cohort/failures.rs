//! Searches that found nobody in one state of the book, so that equal and harder ones are not begun
//! there. Exact: whoever asks the same queue for as much, and is neither more important nor older, has
//! no more candidates and needs no less; the test shows who counts as such. Specification: cohort.md
//! B.11.

use vc_cohort::{Preemptor, Refusal, Slot};

/// What is known of the state with this number.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    version: u64,
    known: Vec<Failure>,
}

/// A search that found nobody.
#[derive(Clone, Debug)]
struct Failure {
    preemptor: Preemptor,
    need: Vec<Slot>,
    refusal: Refusal,
}

impl Failures {
    /// What a search for this preemptor has said in this state, or would say; only answers that no
    /// placement has a part in are remembered.
    pub(super) fn answer(
        &self,
        version: u64,
        preemptor: &Preemptor,
        need: &[Slot],
    ) -> Option<Refusal> {
        let known = self.find(version, preemptor, need)?;
        let is_same = known.preemptor.demand == preemptor.demand;
        // The amounts in the answer are those of another demand.
        Some(known.refusal).filter(|refusal| is_same || *refusal == Refusal::NoCandidates)
    }

    /// The same, where only the fact counts.
    pub(super) fn is_known(&self, version: u64, preemptor: &Preemptor, need: &[Slot]) -> bool {
        self.find(version, preemptor, need).is_some()
    }

    /// Remembers that nobody was found.
    pub(super) fn note(
        &mut self,
        version: u64,
        preemptor: &Preemptor,
        need: &[Slot],
        refusal: Refusal,
    ) {
        if !matches!(refusal, Refusal::NoCandidates | Refusal::NotEnough(Some(_))) {
            return;
        }
        if self.version != version {
            self.known.clear();
            self.version = version;
        }
        let (preemptor, need) = (preemptor.clone(), need.to_vec());
        self.known.push(Failure { preemptor, need, refusal });
    }

    fn find(&self, version: u64, preemptor: &Preemptor, need: &[Slot]) -> Option<&Failure> {
        let is_current = self.version == version;
        let mut known = self.known.iter().filter(|_| is_current);
        known.find(|failure| failure.covers(preemptor, need))
    }
}

impl Failure {
    /// Whoever asks for as much, and is neither more important nor older, finds nobody either.
    fn covers(&self, preemptor: &Preemptor, need: &[Slot]) -> bool {
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
    use vc_cohort::{Demand, Flavor, QuotaNode, Slots};
    use vc_resource::Dim;

    use super::*;

    #[test]
    fn who_asks_for_as_much_and_is_no_more_important_is_known_to_fail() {
        let mut slots = Slots::default();
        let cpu = slots.intern(Flavor::default(), Dim::CPU).unwrap();
        let memory = slots.intern(Flavor::default(), Dim::MEMORY).unwrap();
        let preemptor = |priority, created_micros, amount| {
            let demand = Demand::new([(cpu, amount)]);
            Preemptor { queue: QuotaNode::new(1), priority, created_micros, demand }
        };
        let mut failures = Failures::default();
        failures.note(7, &preemptor(5, 100, 10), &[cpu], Refusal::Unplaceable);
        assert!(!failures.is_known(7, &preemptor(5, 100, 10), &[cpu]), "a place is another matter");
        failures.note(7, &preemptor(5, 100, 10), &[cpu], Refusal::NoCandidates);
        let known =
            |version, preemptor, need: &[Slot]| failures.is_known(version, &preemptor, need);
        assert!(known(7, preemptor(5, 100, 10), &[cpu]));
        assert!(known(7, preemptor(4, 101, 11), &[cpu]));
        assert!(!known(8, preemptor(5, 100, 10), &[cpu]), "another state");
        assert!(!known(7, preemptor(6, 100, 10), &[cpu]), "more important");
        assert!(!known(7, preemptor(5, 99, 10), &[cpu]), "older");
        assert!(!known(7, preemptor(5, 100, 9), &[cpu]), "asks for less");
        assert!(!known(7, preemptor(5, 100, 10), &[cpu, memory]), "short of something else");
        let other = Preemptor { queue: QuotaNode::new(2), ..preemptor(5, 100, 10) };
        assert!(!known(7, other, &[cpu]), "of another queue");
        let answer = failures.answer(7, &preemptor(5, 100, 11), &[cpu]);
        assert_eq!(answer, Some(Refusal::NoCandidates));
    }
}
