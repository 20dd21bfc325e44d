//! The classic search: groups are taken in order until the preemptor fits, then given back where it
//! fits without them. Specification: cohort.md A.6, A.7, A.8, B.7 (Q15).

use crate::amount::Slot;
use crate::candidates::{OtherQueueCandidates, others, own};
use crate::forest::Forest;
use crate::group::{GroupId, Groups, QuotaPreemptor};
use crate::node::QuotaNode;
use crate::policy::BorrowWithin;
use crate::returns::returning;
use crate::search::{
    Borrowing, EvictionTarget, PreemptionReason, SearchEnvironment, SearchOptions, SearchRefusal,
    check_hope, fits_quota, give_back,
};

/// A group that may be taken, and when.
#[derive(Clone, Copy, Debug)]
struct ClassicCandidate {
    target: EvictionTarget,
    /// Only if the preemptor does not borrow.
    without_borrowing: bool,
}

/// The first set of targets none of whom would at once come back.
pub(crate) fn search(
    how: &SearchOptions,
    groups: &mut Groups,
    preemptor: &QuotaPreemptor,
    need: &[Slot],
    around: &mut dyn SearchEnvironment,
) -> Result<Vec<EvictionTarget>, SearchRefusal> {
    by_attempts(how, groups, preemptor, need, around, |groups, targets| {
        returning(how, groups, preemptor, targets)
    })
}

/// The first set of targets.
pub(crate) fn by_quota(
    how: &SearchOptions,
    groups: &mut Groups,
    preemptor: &QuotaPreemptor,
    need: &[Slot],
    around: &mut dyn SearchEnvironment,
) -> Result<Vec<EvictionTarget>, SearchRefusal> {
    by_attempts(how, groups, preemptor, need, around, |_, _| None)
}

fn by_attempts(
    how: &SearchOptions,
    groups: &mut Groups,
    preemptor: &QuotaPreemptor,
    need: &[Slot],
    around: &mut dyn SearchEnvironment,
    mut returning: impl FnMut(&mut Groups, &[EvictionTarget]) -> Option<GroupId>,
) -> Result<Vec<EvictionTarget>, SearchRefusal> {
    groups.rank();
    let mut own = if how.own { own(groups, preemptor, need) } else { Vec::new() };
    let mut others =
        if how.others { others(groups, preemptor, need) } else { OtherQueueCandidates::default() };
    for list in [&mut own, &mut others.with_advantage, &mut others.without] {
        list.retain(|&group| around.may_take(&[], group));
    }
    let attempts = attempts(groups.forest(), preemptor.queue, &others, need);
    let candidates = in_order(groups, preemptor, own, others);
    let all: Vec<EvictionTarget> = candidates.iter().map(|candidate| candidate.target).collect();
    check_hope(groups, preemptor, &all, around)?;
    let mut run = ClassicSearch { groups, preemptor, need, around };
    let mut refusal = SearchRefusal::NotEnough(None);
    for &borrowing in attempts {
        let Some(targets) = run.attempt(&candidates, borrowing) else { continue };
        match returning(run.groups, &targets) {
            Some(group) => refusal = SearchRefusal::WouldReturn(group),
            None => return Ok(targets),
        }
    }
    Err(refusal)
}

/// Whether the preemptor's queue may borrow, in which order that is tried.
fn attempts(
    forest: &Forest,
    queue: QuotaNode,
    others: &OtherQueueCandidates,
    need: &[Slot],
) -> &'static [Borrowing] {
    let forbidden = forest.node(queue).policy.borrow_within == BorrowWithin::Never;
    let is_under = |&slot: &Slot| forest.usage(queue, slot) < forest.nominal(queue, slot);
    let no_others = others.with_advantage.is_empty() && others.without.is_empty();
    if no_others || forbidden && !need.iter().all(is_under) {
        &[Borrowing::Allowed]
    } else if forbidden && others.with_advantage.is_empty() {
        &[Borrowing::Forbidden, Borrowing::Allowed]
    } else {
        &[Borrowing::Allowed, Borrowing::Forbidden]
    }
}

/// Those that are being evicted first; of each of these halves those with the advantage, the other
/// ones of other queues, the own ones.
fn in_order(
    groups: &Groups,
    preemptor: &QuotaPreemptor,
    own: Vec<GroupId>,
    others: OtherQueueCandidates,
) -> Vec<ClassicCandidate> {
    let policy = groups.forest().node(preemptor.queue).policy.borrow_within;
    let with = |group: GroupId, reason: PreemptionReason| ClassicCandidate {
        target: EvictionTarget { group, reason },
        without_borrowing: false,
    };
    let without_advantage =
        |group: GroupId| match policy.allows(groups.get(group).priority, preemptor.priority) {
            true => with(group, PreemptionReason::InCohortReclaimWhileBorrowing),
            false => {
                let reclaimed = with(group, PreemptionReason::InCohortReclamation);
                ClassicCandidate { without_borrowing: true, ..reclaimed }
            }
        };
    let sorted = |mut list: Vec<GroupId>| {
        list.sort_by_cached_key(|&group| groups.precedence(preemptor.queue, group));
        list
    };
    let hierarchical = sorted(others.with_advantage).into_iter();
    let hierarchical = hierarchical.map(|group| with(group, PreemptionReason::InCohortReclamation));
    let by_priority = sorted(others.without).into_iter().map(without_advantage);
    let own = sorted(own).into_iter().map(|group| with(group, PreemptionReason::InClusterQueue));
    let mut all: Vec<ClassicCandidate> = hierarchical.chain(by_priority).chain(own).collect();
    all.sort_by_key(|candidate| !groups.get(candidate.target.group).evicting);
    all
}

struct ClassicSearch<'a> {
    groups: &'a mut Groups,
    preemptor: &'a QuotaPreemptor,
    need: &'a [Slot],
    around: &'a mut dyn SearchEnvironment,
}

impl ClassicSearch<'_> {
    /// `None`: the candidates do not suffice; everything is as before. In the end it is so in any
    /// case.
    fn attempt(
        &mut self,
        candidates: &[ClassicCandidate],
        borrowing: Borrowing,
    ) -> Option<Vec<EvictionTarget>> {
        let mut targets = Vec::new();
        for candidate in candidates {
            if !self.may_take(candidate, borrowing, &targets) {
                continue;
            }
            self.groups.take(candidate.target.group);
            targets.push(candidate.target);
            if self.fits(borrowing, &targets) {
                self.give_back(&mut targets, borrowing);
                self.put_back(&targets);
                return Some(targets);
            }
        }
        self.put_back(&targets);
        None
    }

    fn may_take(
        &mut self,
        candidate: &ClassicCandidate,
        borrowing: Borrowing,
        taken: &[EvictionTarget],
    ) -> bool {
        let group = candidate.target.group;
        let queue = self.groups.get(group).queue;
        if queue != self.preemptor.queue {
            if borrowing == Borrowing::Allowed && candidate.without_borrowing {
                return false;
            }
            if !self.exceeds_quota(queue) {
                return false;
            }
        }
        self.around.may_take(taken, group)
    }

    /// The queue, and every cohort below the lowest one that it has in common with the preemptor's,
    /// uses more than its quota still (A.4).
    fn exceeds_quota(&self, queue: QuotaNode) -> bool {
        let forest = self.groups.forest();
        let Some((_, last)) = forest.below_common(self.preemptor.queue, queue) else {
            return false;
        };
        for node in forest.path(queue) {
            if forest.is_within_nominal(node, self.need) {
                return false;
            }
            if node == last {
                break;
            }
        }
        true
    }

    fn fits(&mut self, borrowing: Borrowing, targets: &[EvictionTarget]) -> bool {
        fits_quota(self.groups.forest(), self.preemptor, borrowing)
            && self.around.has_place(targets)
    }

    fn give_back(&mut self, targets: &mut Vec<EvictionTarget>, borrowing: Borrowing) {
        let (preemptor, around) = (self.preemptor, &mut *self.around);
        give_back(self.groups, targets, |groups, fewer| {
            fits_quota(groups.forest(), preemptor, borrowing) && around.has_place(fewer)
        });
    }

    fn put_back(&mut self, targets: &[EvictionTarget]) {
        targets.iter().for_each(|target| self.groups.put_back(target.group));
    }
}
