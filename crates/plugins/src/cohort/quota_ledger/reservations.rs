//! Quota that is reserved for a waiting group, so that no other queue borrows it meanwhile. A queue
//! has at most one reservation, which does not restrict the queue's own groups. The reserved amount
//! is a function of the usage. Assignment mode and search ignore reservations; only the test for
//! room counts them.
//! Specification: cohort.md A.11 step 3, B.5.1, B.5.3, B.5.4.

use vc_cohort::{GroupId, QuotaAmount, QuotaDemand, QuotaNode, Slot};
use vc_model::{Cluster, JobId};

use super::QuotaLedger;

/// The reason of a reservation, which determines when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cohort) enum Reason {
    /// Enqueue refused the group, or preemption found no targets for it. It lasts until the session
    /// ends.
    Refused,
    /// Allocate did not place the group, at this borrowing level. It lasts until allocate ends.
    NotPlaced(u32),
    /// Enqueue admitted the group because other groups may be evicted for it. It lasts until
    /// allocate ends, or they are evicted.
    HasTargets,
}

#[derive(Clone, Debug)]
pub(super) struct QuotaReservation {
    job: JobId,
    reason: Reason,
    demand: QuotaDemand,
    /// The amount that is currently reserved.
    kept: QuotaDemand,
}

impl QuotaLedger {
    /// Reserves quota for a waiting group, unless its queue already has a reservation.
    pub(in crate::cohort) fn reserve(
        &mut self,
        node: QuotaNode,
        job: JobId,
        demand: QuotaDemand,
        reason: Reason,
    ) {
        if self.reservations.contains_key(&node) {
            return;
        }
        let kept = self.to_keep(node, job, &demand, reason);
        if kept.is_empty() {
            return;
        }
        let reservation = QuotaReservation { job, reason, demand, kept };
        if self.counts(&reservation) {
            self.groups.keep(node, &reservation.kept);
        }
        self.reservations.insert(node, reservation);
    }

    pub(in crate::cohort) fn has_reserved(&self, node: QuotaNode) -> bool {
        self.reservations.contains_key(&node)
    }

    /// Drops the reservations whose reason satisfies `drops`.
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

    /// Runs `query` as if nothing were reserved for this queue.
    pub(in crate::cohort) fn without_reservation<T>(
        &mut self,
        node: QuotaNode,
        query: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let counted = self.reservations.get(&node).filter(|it| self.counts(it));
        let Some(kept) = counted.map(|reservation| reservation.kept.clone()) else {
            return query(self);
        };
        self.groups.let_go(node, &kept);
        let answer = query(self);
        self.groups.keep(node, &kept);
        answer
    }

    /// Runs `query` as if nothing were reserved.
    pub(in crate::cohort) fn without_reservations<T>(
        &mut self,
        query: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let counted = self.reservations.iter().filter(|(_, it)| self.counts(it));
        let counted = counted.map(|(&node, reservation)| (node, reservation.kept.clone()));
        let counted: Vec<(QuotaNode, QuotaDemand)> = counted.collect();
        counted.iter().for_each(|(node, kept)| self.groups.let_go(*node, kept));
        let answer = query(self);
        counted.iter().rev().for_each(|(node, kept)| self.groups.keep(*node, kept));
        answer
    }

    /// True if the group has room once the targets are evicted, beside what is reserved for other
    /// queues.
    pub(in crate::cohort) fn has_room(
        &mut self,
        node: QuotaNode,
        demand: &QuotaDemand,
        targets: &[GroupId],
    ) -> bool {
        if self.reservations.is_empty() {
            return true;
        }
        self.without_reservation(node, |quota_ledger| {
            targets.iter().for_each(|&target| quota_ledger.groups.take(target));
            let forest = quota_ledger.groups.forest();
            let fits = |(slot, amount)| amount <= forest.available(node, slot);
            let has_room = demand.iter().all(fits);
            targets.iter().rev().for_each(|&target| quota_ledger.groups.put_back(target));
            has_room
        })
    }

    /// Recomputes the reservation of the job's queue after the job's held quota changed.
    pub(super) fn refresh_reservation(&mut self, cluster: &Cluster, job: JobId) {
        let Some(node) = self.node(cluster, job) else { return };
        let Some(mut reservation) = self.reservations.remove(&node) else { return };
        let counts = self.counts(&reservation);
        if counts {
            self.groups.let_go(node, &reservation.kept);
        }
        let QuotaReservation { job, reason, ref demand, .. } = reservation;
        reservation.kept = self.to_keep(node, job, demand, reason);
        if counts {
            self.groups.keep(node, &reservation.kept);
        }
        self.reservations.insert(node, reservation);
    }

    /// Removes all reservations from the trees, runs `change`, and recomputes them.
    pub(super) fn refresh_reservations(&mut self, change: impl FnOnce(&mut Self)) {
        let reservations = std::mem::take(&mut self.reservations);
        for (&node, reservation) in &reservations {
            if self.counts(reservation) {
                self.groups.let_go(node, &reservation.kept);
            }
        }
        change(self);
        for (node, mut reservation) in reservations {
            let QuotaReservation { job, reason, ref demand, .. } = reservation;
            reservation.kept = self.to_keep(node, job, demand, reason);
            if self.counts(&reservation) {
                self.groups.keep(node, &reservation.kept);
            }
            self.reservations.insert(node, reservation);
        }
    }

    /// True if the reservation counts in the trees. The state of enqueue already counts all that an
    /// admitted group still has to get.
    fn counts(&self, reservation: &QuotaReservation) -> bool {
        reservation.reason != Reason::HasTargets || self.ledger.is_none()
    }

    /// Returns the amount to reserve, provided that nothing is currently reserved for this queue.
    fn to_keep(
        &self,
        node: QuotaNode,
        job: JobId,
        demand: &QuotaDemand,
        reason: Reason,
    ) -> QuotaDemand {
        match reason {
            // Level 0: the queue reserves only its own idle quota and does not restrict that of
            // others.
            Reason::Refused => self.forest().reservation(node, demand, 0),
            Reason::NotPlaced(level) => self.forest().reservation(node, demand, level),
            Reason::HasTargets => {
                let held = self.group_of(job);
                let held = held.map(|group| self.demand(&self.held[group.index()]));
                let rest = |(slot, amount): (Slot, QuotaAmount)| {
                    let got = held.as_ref().map_or(0, |held| held.get(slot));
                    (slot, amount - got)
                };
                QuotaDemand::new(demand.iter().map(rest))
            }
        }
    }
}
