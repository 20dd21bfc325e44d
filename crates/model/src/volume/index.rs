//! Which volume is promised to which claim, and by whom: derived from the reservations, so that two
//! tasks never get the same volume, and about a claim one task decides for all that rely on it.
//! Specification: plugins-nodes.md 5.6, 5.8.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::TaskId;
use crate::record::ObjectKey;
use crate::volume::{Reservation, ReservedClaim, Stage, Volumes};

/// What a task has decided about a claim that is not bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Which task.
    pub task: TaskId,
    /// It gets this volume; `None`: it is provisioned for the node of the task.
    pub volume: Option<Arc<str>>,
}

/// What the reservations say, by object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Promised {
    /// Volumes and the claims that get them.
    pub(super) volumes: BTreeMap<Arc<str>, ReservedClaim>,
    pub(super) claims: BTreeMap<ObjectKey, Decision>,
}

impl Promised {
    fn enter(&mut self, task: TaskId, reservation: &Reservation) {
        for (claim, volume) in reservation.decided() {
            if let Some(volume) = volume {
                self.volumes.insert(volume.clone(), claim.clone());
            }
            self.claims.insert(claim.key.clone(), Decision { task, volume: volume.cloned() });
        }
    }

    fn leave(&mut self, reservation: &Reservation) {
        for (claim, volume) in reservation.decided() {
            if let Some(volume) = volume {
                self.volumes.remove(volume);
            }
            self.claims.remove(&claim.key);
        }
    }
}

impl Volumes {
    /// What the task was promised, if anything.
    pub fn reservation(&self, task: TaskId) -> Option<&Reservation> {
        self.reservations.get(&task)
    }

    /// All that was promised, by task.
    pub fn reservations(&self) -> impl Iterator<Item = (TaskId, &Reservation)> {
        self.reservations.iter().map(|(&task, reservation)| (task, reservation))
    }

    pub(crate) fn reserve(&mut self, task: TaskId, reservation: Reservation) {
        self.release(task);
        self.promised.enter(task, &reservation);
        self.reservations.insert(task, reservation);
    }

    /// Tasks whose bind was decided and waits for volumes of their gang.
    pub fn held(&self) -> impl Iterator<Item = TaskId> {
        self.held.iter().copied()
    }

    /// True if the bind of the task was decided and waits for volumes of its gang.
    pub fn is_held(&self, task: TaskId) -> bool {
        self.held.contains(&task)
    }

    /// What is decided about a claim, if anything.
    pub fn decision(&self, claim: &ObjectKey) -> Option<&Decision> {
        self.promised.claims.get(claim)
    }

    /// The bind is decided and waits. Now the task decides about its claims, too, if until now somebody
    /// has done so whose promises may end with the session, unwritten (deviation of 5.8).
    pub(crate) fn hold(&mut self, task: TaskId) {
        self.held.insert(task);
        let Some(reservation) = self.reservations.get(&task) else { return };
        for claim in reservation.awaited.clone() {
            let decision = self.decision(&claim.key).cloned();
            let Some(Decision { task: other, volume }) =
                decision.filter(|decision| self.is_tentative(decision.task))
            else {
                continue;
            };
            if let Some(other) = self.reservations.get_mut(&other) {
                other.rely(&claim);
            }
            self.decide(task, &claim, volume);
        }
    }

    /// The task, which awaits the claim, decides about it from now on.
    pub(crate) fn decide(&mut self, task: TaskId, claim: &ReservedClaim, volume: Option<Arc<str>>) {
        let Some(reservation) = self.reservations.get_mut(&task) else { return };
        reservation.decide(claim, volume);
        self.promised.enter(task, reservation);
    }

    /// Whether the task was promised something of which nothing has left the scheduler.
    fn is_tentative(&self, task: TaskId) -> bool {
        self.reservation(task).is_some_and(|promised| promised.stage == Stage::Tentative)
    }

    /// Tasks that rely on what is decided about the claim, as long as their session lasts.
    pub(crate) fn relying<'a>(&'a self, claim: &'a ReservedClaim) -> impl Iterator<Item = TaskId> {
        let awaits = |task: &TaskId| {
            self.reservation(*task).is_some_and(|promised| promised.awaited.contains(claim))
        };
        self.users(&claim.key).filter(|&task| self.is_tentative(task)).filter(awaits)
    }

    /// Forgets what the task was promised, and that its bind waits.
    pub(crate) fn release(&mut self, task: TaskId) -> Option<Reservation> {
        self.held.remove(&task);
        let reservation = self.reservations.remove(&task)?;
        self.promised.leave(&reservation);
        Some(reservation)
    }

    /// How far the binding of the task's volumes has come.
    pub(crate) fn stage_mut(&mut self, task: TaskId) -> Option<&mut crate::volume::Stage> {
        self.reservations.get_mut(&task).map(|reservation| &mut reservation.stage)
    }

    /// Whether the derived maps are those of the reservations.
    pub(crate) fn check_promised(&self) -> Result<(), String> {
        let mut fresh = Promised::default();
        for (&task, reservation) in &self.reservations {
            fresh.enter(task, reservation);
        }
        match fresh == self.promised {
            true => Ok(()),
            false => Err(format!("promised is {:?}, should be {fresh:?}", self.promised)),
        }
    }
}
