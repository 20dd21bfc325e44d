//! What a search for groups to evict is asked, asks back, and answers. Specification: cohort.md
//! A.6, A.9, B.6, B.7.

use crate::amount::{QuotaAmount, QuotaDemand, Slot};
use crate::fair::PreemptionStrategies;
use crate::forest::Forest;
use crate::group::{GroupId, Groups, QuotaPreemptor};
use crate::node::QuotaNode;
use crate::returns::returning;

/// Why a group may be taken; the reason of its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptionReason {
    /// Another group of the same queue.
    InClusterQueue,
    /// It uses quota that belongs to the preemptor's side.
    InCohortReclamation,
    /// Its side has the larger share.
    InCohortFairSharing,
    /// It has lower priority than a group that borrows, too.
    InCohortReclaimWhileBorrowing,
}

impl PreemptionReason {
    /// As written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InClusterQueue => "InClusterQueue",
            Self::InCohortReclamation => "InCohortReclamation",
            Self::InCohortFairSharing => "InCohortFairSharing",
            Self::InCohortReclaimWhileBorrowing => "InCohortReclaimWhileBorrowing",
        }
    }

    /// In a sentence (A.10).
    pub fn why(self) -> &'static str {
        match self {
            Self::InClusterQueue => "prioritization in the ClusterQueue",
            Self::InCohortReclamation => "reclamation within the cohort",
            Self::InCohortFairSharing => "Fair Sharing within the cohort",
            Self::InCohortReclaimWhileBorrowing => "reclamation within the cohort while borrowing",
        }
    }
}

/// A group that has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionTarget {
    /// The group.
    pub group: GroupId,
    /// Why it may be taken.
    pub reason: PreemptionReason,
}

/// What is missing with every candidate gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingQuota {
    /// The first resource that is missing.
    pub slot: Slot,
    /// How much of it.
    pub amount: QuotaAmount,
    /// How many candidates there are.
    pub n_candidates: usize,
}

/// Why nobody is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchRefusal {
    /// No policy allows to take anybody.
    NoCandidates,
    /// Whoever may be taken does not free enough; of what, if it does not even with all of them
    /// gone.
    NotEnough(Option<MissingQuota>),
    /// The quota would do, but there is no place.
    Unplaceable,
    /// This group would at once take the place back (Q13, Q15).
    WouldReturn(GroupId),
}

/// What a search asks those who know more than quotas.
pub trait SearchEnvironment {
    /// Whether the group may be taken together with those that are taken already. One that may not
    /// be taken alone is no candidate.
    fn may_take(&mut self, _taken: &[EvictionTarget], _group: GroupId) -> bool {
        true
    }

    /// Whether the preemptor has a place when these are gone. Asked only if the quota fits.
    fn has_place(&mut self, _taken: &[EvictionTarget]) -> bool {
        true
    }
}

/// Nobody objects, and there is a place for everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl SearchEnvironment for AllowAll {}

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// `None`: the classic search.
    pub fair_sharing: Option<PreemptionStrategies>,
    /// Groups of the preemptor's queue may be taken.
    pub own: bool,
    /// Groups of other queues may be taken.
    pub others: bool,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self { fair_sharing: None, own: true, others: true }
    }
}

impl SearchOptions {
    /// Groups to evict so that the preemptor fits, in the order in which they were taken. `need`:
    /// the resources that are contested. Everything in `groups` is as before afterwards.
    ///
    /// # Errors
    /// Why nobody is to be evicted.
    pub fn run(
        &self,
        groups: &mut Groups,
        preemptor: &QuotaPreemptor,
        need: &[Slot],
        around: &mut dyn SearchEnvironment,
    ) -> Result<Vec<EvictionTarget>, SearchRefusal> {
        match self.fair_sharing {
            None => crate::classic::search(self, groups, preemptor, need, around),
            Some(_) => {
                let found = self.by_quota(groups, preemptor, need, around)?;
                match returning(self, groups, preemptor, &found) {
                    Some(group) => Err(SearchRefusal::WouldReturn(group)),
                    None => Ok(found),
                }
            }
        }
    }

    /// The same without a look at what the targets would do afterwards.
    pub(crate) fn by_quota(
        &self,
        groups: &mut Groups,
        preemptor: &QuotaPreemptor,
        need: &[Slot],
        around: &mut dyn SearchEnvironment,
    ) -> Result<Vec<EvictionTarget>, SearchRefusal> {
        match self.fair_sharing {
            None => crate::classic::by_quota(self, groups, preemptor, need, around),
            Some(strategies) => {
                crate::fair::search(self, strategies, groups, preemptor, need, around)
            }
        }
    }
}

/// Whether the preemptor may use more than its queue's own quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Borrowing {
    Allowed,
    Forbidden,
}

/// Whether the demand fits the quota as it is.
pub(crate) fn fits_quota(
    forest: &Forest,
    preemptor: &QuotaPreemptor,
    borrowing: Borrowing,
) -> bool {
    preemptor.demand.iter().all(|(slot, amount)| {
        let queue = preemptor.queue;
        let within = forest.usage(queue, slot) + amount <= forest.nominal(queue, slot);
        (within || borrowing == Borrowing::Allowed) && amount <= forest.available(queue, slot)
    })
}

/// Whether it could fit at all if every candidate went: else none has to go (B.6).
pub(crate) fn check_hope(
    groups: &mut Groups,
    preemptor: &QuotaPreemptor,
    candidates: &[EvictionTarget],
    around: &mut dyn SearchEnvironment,
) -> Result<(), SearchRefusal> {
    if candidates.is_empty() {
        return Err(SearchRefusal::NoCandidates);
    }
    let freed = freed(groups, candidates);
    let forest = groups.forest_mut();
    freed.iter().for_each(|(queue, sum)| forest.remove(*queue, sum));
    let short = short(forest, preemptor, candidates.len());
    freed.iter().for_each(|(queue, sum)| forest.add(*queue, sum));
    match short {
        Some(short) => Err(SearchRefusal::NotEnough(Some(short))),
        None if around.has_place(candidates) => Ok(()),
        None => Err(SearchRefusal::Unplaceable),
    }
}

/// What the candidates of each queue hold together: to take it at once is the same as one group after
/// the other.
fn freed(groups: &Groups, candidates: &[EvictionTarget]) -> Vec<(QuotaNode, QuotaDemand)> {
    let mut sums = vec![QuotaDemand::default(); groups.forest().len()];
    for target in candidates {
        let group = groups.get(target.group);
        sums[group.queue.index()].add(&group.holds);
    }
    let sums = sums.into_iter().enumerate().filter(|(_, sum)| !sum.is_empty());
    sums.map(|(index, sum)| (QuotaNode::new(index), sum)).collect()
}

/// The first resource of which there is too little, borrowing allowed.
fn short(forest: &Forest, preemptor: &QuotaPreemptor, n_candidates: usize) -> Option<MissingQuota> {
    preemptor.demand.iter().find_map(|(slot, asked)| {
        let amount = asked - forest.available(preemptor.queue, slot);
        (0 < amount).then_some(MissingQuota { slot, amount, n_candidates })
    })
}

/// Puts back, last taken first, whom the preemptor does not need; the last one was needed (A.6).
pub(crate) fn give_back(
    groups: &mut Groups,
    targets: &mut Vec<EvictionTarget>,
    mut stays_good: impl FnMut(&mut Groups, &[EvictionTarget]) -> bool,
) {
    for index in (0..targets.len().saturating_sub(1)).rev() {
        let spared = targets.remove(index);
        groups.put_back(spared.group);
        if !stays_good(groups, targets) {
            groups.take(spared.group);
            targets.insert(index, spared);
        }
    }
}
