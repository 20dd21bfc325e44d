//! Quota that is kept for a waiting group, so that no borrower of another queue takes it meanwhile.
//! There is one reservation per queue at most, and it does not concern the queue's own groups. How much
//! is kept is a function of what is in use. Mode and search do not see reservations, only the question
//! whether there is room does. Specification: cohort.md A.11 step 3, B.5.1, B.5.3, B.5.4.

use vc_cohort::{Amount, Demand, GroupId, QuotaNode, Slot};
use vc_model::{Cluster, JobId};

use super::Book;

/// Why quota is kept for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cohort) enum Reason {
    /// Enqueue has refused it, or the preemption pass has found nobody for it: until the session ends.
    Refused,
    /// Allocate has not placed it, at this borrowing level: until allocate ends.
    NotPlaced(u32),
    /// Enqueue has admitted it because others may go for it: until allocate ends, or they go.
    HasTargets,
}

#[derive(Clone, Debug)]
pub(super) struct Reservation {
    job: JobId,
    reason: Reason,
    demand: Demand,
    /// What is kept at the moment.
    kept: Demand,
}

impl Book {
    /// Keeps quota for a group that waits, unless some is kept for its queue already.
    pub(in crate::cohort) fn reserve(
        &mut self,
        node: QuotaNode,
        job: JobId,
        demand: Demand,
        reason: Reason,
    ) {
        if self.reservations.contains_key(&node) {
            return;
        }
        let kept = self.to_keep(node, job, &demand, reason);
        if kept.is_empty() {
            return;
        }
        let reservation = Reservation { job, reason, demand, kept };
        if self.counts(&reservation) {
            self.groups.keep(node, &reservation.kept);
        }
        self.reservations.insert(node, reservation);
    }

    pub(in crate::cohort) fn has_reserved(&self, node: QuotaNode) -> bool {
        self.reservations.contains_key(&node)
    }

    /// Drops the reservations for these reasons.
    pub(in crate::cohort) fn drop_reservations(&mut self, drops: impl Fn(Reason) -> bool) {
        let mut reservations = std::mem::take(&mut self.reservations);
        reservations.retain(|&node, reservation| {
            let is_dropped = drops(reservation.reason);
            if is_dropped && self.counts(reservation) {
                self.groups.let_go(node, &reservation.kept);
            }
            !is_dropped
        });
        self.reservations = reservations;
    }

    /// Answers a question of a group of this queue, which what is kept for the queue does not concern.
    pub(in crate::cohort) fn without_reservation<T>(
        &mut self,
        node: QuotaNode,
        ask: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let counted = self.reservations.get(&node).filter(|it| self.counts(it));
        let Some(kept) = counted.map(|reservation| reservation.kept.clone()) else {
            return ask(self);
        };
        self.groups.let_go(node, &kept);
        let answer = ask(self);
        self.groups.keep(node, &kept);
        answer
    }

    /// Answers a question about usage as if nothing were reserved.
    pub(in crate::cohort) fn without_reservations<T>(
        &mut self,
        ask: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let counted = self.reservations.iter().filter(|(_, it)| self.counts(it));
        let counted = counted.map(|(&node, reservation)| (node, reservation.kept.clone()));
        let counted: Vec<(QuotaNode, Demand)> = counted.collect();
        counted.iter().for_each(|(node, kept)| self.groups.let_go(*node, kept));
        let answer = ask(self);
        counted.iter().rev().for_each(|(node, kept)| self.groups.keep(*node, kept));
        answer
    }

    /// True if the group finds room once these are gone, beside what is kept for other queues.
    pub(in crate::cohort) fn has_room(
        &mut self,
        node: QuotaNode,
        demand: &Demand,
        targets: &[GroupId],
    ) -> bool {
        if self.reservations.is_empty() {
            return true;
        }
        self.without_reservation(node, |book| {
            targets.iter().for_each(|&target| book.groups.take(target));
            let forest = book.groups.forest();
            let fits = |(slot, amount)| amount <= forest.available(node, slot);
            let has_room = demand.iter().all(fits);
            targets.iter().rev().for_each(|&target| book.groups.put_back(target));
            has_room
        })
    }

    /// Works out anew how much is kept for the queue of a group that holds something else than before.
    pub(super) fn refresh_reservation(&mut self, cluster: &Cluster, job: JobId) {
        let Some(node) = self.node(cluster, job) else { return };
        let Some(mut reservation) = self.reservations.remove(&node) else { return };
        let counts = self.counts(&reservation);
        if counts {
            self.groups.let_go(node, &reservation.kept);
        }
        let Reservation { job, reason, ref demand, .. } = reservation;
        reservation.kept = self.to_keep(node, job, demand, reason);
        if counts {
            self.groups.keep(node, &reservation.kept);
        }
        self.reservations.insert(node, reservation);
    }

    /// Takes everything that is kept out of the trees, or puts it in, around a change of what they show.
    pub(super) fn refresh_reservations(&mut self, change: impl FnOnce(&mut Self)) {
        let reservations = std::mem::take(&mut self.reservations);
        for (&node, reservation) in &reservations {
            if self.counts(reservation) {
                self.groups.let_go(node, &reservation.kept);
            }
        }
        change(self);
        for (node, mut reservation) in reservations {
            let Reservation { job, reason, ref demand, .. } = reservation;
            reservation.kept = self.to_keep(node, job, demand, reason);
            if self.counts(&reservation) {
                self.groups.keep(node, &reservation.kept);
            }
            self.reservations.insert(node, reservation);
        }
    }

    /// Whether it counts in what the trees show: the ledger of enqueue counts all that an admitted
    /// group has yet to get.
    fn counts(&self, reservation: &Reservation) -> bool {
        reservation.reason != Reason::HasTargets || self.ledger.is_none()
    }

    /// How much is to be kept, with nothing kept for this queue at the moment.
    fn to_keep(&self, node: QuotaNode, job: JobId, demand: &Demand, reason: Reason) -> Demand {
        match reason {
            // No more than what is idle of its own: others are not kept from theirs.
            Reason::Refused => self.forest().reservation(node, demand, 0),
            Reason::NotPlaced(level) => self.forest().reservation(node, demand, level),
            Reason::HasTargets => {
                let held = self.group_of(job);
                let held = held.map(|group| self.demand(&self.held[group.index()]));
                let rest = |(slot, amount): (Slot, Amount)| {
                    let got = held.as_ref().map_or(0, |held| held.get(slot));
                    (slot, amount - got)
                };
                Demand::new(demand.iter().map(rest))
            }
        }
    }
}
