//! The search under fair sharing: one group at a time from the side with the largest share, as long
//! as that does not turn the imbalance round. Specification: cohort.md A.9.2-A.9.4, B.7 (Q12).

mod order;

use crate::amount::Slot;
use crate::candidates::{own, reclaimable};
use crate::forest::Forest;
use crate::group::{GroupId, Groups, QuotaPreemptor};
use crate::node::QuotaNode;
use crate::search::{
    Borrowing, EvictionTarget, PreemptionReason, SearchEnvironment, SearchOptions, SearchRefusal,
    check_hope, fits_quota, give_back,
};
use crate::share::Share;
use order::{FairOrder, NodeShares, WaitingCandidates};

/// The lists of `preemptionStrategies` that exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreemptionStrategies {
    /// `LessThanOrEqualToFinalShare`, then `LessThanInitialShare`.
    #[default]
    Both,
    /// The first alone.
    FinalShare,
    /// The second alone.
    InitialShare,
}

pub(crate) fn search(
    how: &SearchOptions,
    strategies: PreemptionStrategies,
    groups: &mut Groups,
    preemptor: &QuotaPreemptor,
    need: &[Slot],
    around: &mut dyn SearchEnvironment,
) -> Result<Vec<EvictionTarget>, SearchRefusal> {
    groups.rank();
    let mut candidates = candidates(how, groups, preemptor, need);
    candidates.retain(|candidate| around.may_take(&[], candidate.group));
    check_hope(groups, preemptor, &candidates, around)?;
    groups.forest_mut().add(preemptor.queue, &preemptor.demand);
    let mut run = FairSearch::new(groups, preemptor, need, around);
    let mut found = run.first_pass(strategies, &candidates);
    if !found && strategies == PreemptionStrategies::Both {
        found = run.second_pass();
    }
    if found {
        run.give_back();
    }
    let taken = std::mem::take(&mut run.taken);
    taken.iter().for_each(|target| groups.put_back(target.group));
    groups.forest_mut().remove(preemptor.queue, &preemptor.demand);
    if found { Ok(taken) } else { Err(SearchRefusal::NotEnough(None)) }
}

/// In order (A.5); reasons are set when they are taken.
fn candidates(
    how: &SearchOptions,
    groups: &Groups,
    preemptor: &QuotaPreemptor,
    need: &[Slot],
) -> Vec<EvictionTarget> {
    let forest = groups.forest();
    let mut found = if how.own { own(groups, preemptor, need) } else { Vec::new() };
    let mut open = vec![forest.top(preemptor.queue)];
    while let Some(node) = open.pop().filter(|_| how.others) {
        let row = forest.node(node);
        open.extend(&row.children);
        let is_other = row.is_queue && node != preemptor.queue;
        if is_other && !forest.is_within_nominal(node, need) {
            found.extend(reclaimable(groups, preemptor, node, need));
        }
    }
    found.sort_by_cached_key(|&group| groups.precedence(preemptor.queue, group));
    let reason = PreemptionReason::InCohortFairSharing;
    found.into_iter().map(|group| EvictionTarget { group, reason }).collect()
}

struct FairSearch<'a> {
    groups: &'a mut Groups,
    preemptor: &'a QuotaPreemptor,
    need: &'a [Slot],
    around: &'a mut dyn SearchEnvironment,
    /// By node, with the preemptor counted; kept up to date.
    shares: Vec<Share>,
    /// Likewise: whether the node uses more than its quota.
    borrows: Vec<bool>,
    /// Shares before anything was taken.
    initial: Vec<Share>,
    taken: Vec<EvictionTarget>,
    /// What the first strategy left.
    retry: Vec<(usize, GroupId)>,
}

impl<'a> FairSearch<'a> {
    /// The demand of the preemptor is in use already.
    fn new(
        groups: &'a mut Groups,
        preemptor: &'a QuotaPreemptor,
        need: &'a [Slot],
        around: &'a mut dyn SearchEnvironment,
    ) -> Self {
        let forest = groups.forest();
        let shares: Vec<Share> = forest.nodes().map(|node| forest.share(node)).collect();
        let borrows = forest.nodes().map(|node| forest.borrows(node)).collect();
        let initial = shares.clone();
        let (taken, retry) = (Vec::new(), Vec::new());
        Self { shares, borrows, initial, groups, preemptor, need, around, taken, retry }
    }

    fn forest(&self) -> &Forest {
        self.groups.forest()
    }

    fn now(&self) -> NodeShares<'_> {
        NodeShares { forest: self.forest(), shares: &self.shares, borrows: &self.borrows }
    }

    fn share(&self, node: QuotaNode) -> &Share {
        &self.shares[node.index()]
    }

    /// The preemptor's side and the queue's, just below what they have in common.
    fn sides(&self, queue: QuotaNode) -> Option<(QuotaNode, QuotaNode)> {
        self.forest().below_common(self.preemptor.queue, queue)
    }

    fn refresh(&mut self, group: GroupId) {
        let mut at = Some(self.groups.get(group).queue);
        while let Some(node) = at {
            self.shares[node.index()] = self.forest().share(node);
            self.borrows[node.index()] = self.forest().borrows(node);
            at = self.forest().parent(node);
        }
    }

    /// Whether the preemptor fits now; `None`: somebody objects, and the group stays.
    fn take(&mut self, group: GroupId, reason: PreemptionReason) -> Option<bool> {
        if !self.around.may_take(&self.taken, group) {
            return None;
        }
        self.groups.take(group);
        self.refresh(group);
        self.taken.push(EvictionTarget { group, reason });
        Some(fits(self.groups, self.preemptor, self.around, &self.taken))
    }

    fn take_first(
        &mut self,
        waiting: &mut WaitingCandidates,
        queue: QuotaNode,
        reason: PreemptionReason,
    ) -> bool {
        let first = waiting.pop(queue);
        first.and_then(|(_, group)| self.take(group, reason)).unwrap_or(false)
    }

    fn is_within_nominal(&self) -> bool {
        let (forest, queue) = (self.forest(), self.preemptor.queue);
        let within = |&slot: &Slot| {
            forest.usage(queue, slot) <= forest.nominal(queue, slot) || forest.is_free(queue, slot)
        };
        self.need.iter().all(within)
    }

    /// Whether the preemptor fits in the end.
    fn first_pass(
        &mut self,
        strategies: PreemptionStrategies,
        candidates: &[EvictionTarget],
    ) -> bool {
        let ranked = candidates.iter().enumerate().map(|(rank, target)| (rank, target.group));
        let mut waiting = WaitingCandidates::new(self.groups, ranked);
        let mut order = FairOrder::new(self.forest(), self.preemptor.queue);
        // Taking others does not change what the own queue uses, and own groups only lessen it.
        let within = self.is_within_nominal();
        while let Some(queue) = order.next(&self.now(), &waiting) {
            let fits = if queue == self.preemptor.queue {
                self.take_first(&mut waiting, queue, PreemptionReason::InClusterQueue)
            } else if within {
                self.take_first(&mut waiting, queue, PreemptionReason::InCohortReclamation)
            } else {
                self.by_strategy(strategies, queue, &mut waiting)
            };
            if fits {
                return true;
            }
        }
        false
    }

    /// Takes the first group of the queue that passes the first strategy.
    fn by_strategy(
        &mut self,
        strategies: PreemptionStrategies,
        queue: QuotaNode,
        waiting: &mut WaitingCandidates,
    ) -> bool {
        let Some((mine, theirs)) = self.sides(queue) else {
            waiting.drop_queue(queue);
            return false;
        };
        let (new, old) = (*self.share(mine), *self.share(theirs));
        if new.is_infinite() && !old.is_infinite() {
            self.retry.extend(waiting.drop_queue(queue));
            return false;
        }
        while let Some((rank, group)) = waiting.pop(queue) {
            let passes = match strategies {
                PreemptionStrategies::InitialShare => new.compare(&old).is_lt(),
                PreemptionStrategies::Both | PreemptionStrategies::FinalShare => {
                    new.compare(&self.share_without(theirs, group)).is_le()
                }
            };
            if !passes {
                self.retry.push((rank, group));
                continue;
            }
            if let Some(fits) = self.take(group, PreemptionReason::InCohortFairSharing) {
                return fits;
            }
        }
        false
    }

    /// Share of a node if the group was gone.
    fn share_without(&mut self, node: QuotaNode, group: GroupId) -> Share {
        self.groups.take(group);
        let share = self.forest().share(node);
        self.groups.put_back(group);
        share
    }

    /// One group of each queue whose side still has the larger share.
    fn second_pass(&mut self) -> bool {
        let retry = std::mem::take(&mut self.retry);
        let mut waiting = WaitingCandidates::new(self.groups, retry.into_iter());
        let mut order = FairOrder::new(self.forest(), self.preemptor.queue);
        while let Some(queue) = order.next(&self.now(), &waiting) {
            let first = waiting.drop_queue(queue).into_iter().next();
            let (Some((_, group)), Some((mine, theirs))) = (first, self.sides(queue)) else {
                continue;
            };
            let is_smaller = self.share(mine).compare(self.share(theirs)).is_lt();
            if is_smaller && self.take(group, PreemptionReason::InCohortFairSharing) == Some(true) {
                return true;
            }
        }
        false
    }

    /// A group goes back only if those that remain were still taken from the larger share (Q12).
    fn give_back(&mut self) {
        let mut taken = std::mem::take(&mut self.taken);
        let (preemptor, initial) = (self.preemptor, &self.initial);
        let around = &mut *self.around;
        give_back(self.groups, &mut taken, |groups, fewer| {
            fits(groups, preemptor, around, fewer)
                && fewer.iter().all(|target| is_legal(groups, preemptor, initial, target))
        });
        self.taken = taken;
    }
}

/// The preemptor's side has a smaller share now than the target's had.
fn is_legal(
    groups: &Groups,
    preemptor: &QuotaPreemptor,
    initial: &[Share],
    target: &EvictionTarget,
) -> bool {
    if target.reason != PreemptionReason::InCohortFairSharing {
        return true;
    }
    let forest = groups.forest();
    let sides = forest.below_common(preemptor.queue, groups.get(target.group).queue);
    sides.is_some_and(|(mine, theirs)| forest.share(mine).compare(&initial[theirs.index()]).is_lt())
}

/// Whether the preemptor, which counts as in use, fits.
fn fits(
    groups: &mut Groups,
    preemptor: &QuotaPreemptor,
    around: &mut dyn SearchEnvironment,
    taken: &[EvictionTarget],
) -> bool {
    groups.forest_mut().remove(preemptor.queue, &preemptor.demand);
    let fits = fits_quota(groups.forest(), preemptor, Borrowing::Allowed);
    groups.forest_mut().add(preemptor.queue, &preemptor.demand);
    fits && around.has_place(taken)
}
