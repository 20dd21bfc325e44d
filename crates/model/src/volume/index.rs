//! Decisions about volumes and claims by object, derived from the reservations. No two tasks get
//! the same volume, and one task decides about a claim for all tasks that rely on it.
//! Specification: plugins-nodes.md 5.6, 5.8.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::record::ObjectKey;
use crate::volume::{BindingStage, Reservation, ReservedClaim, Volumes};

/// The decision of a task about a claim that is not bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The task that decided.
    pub task: TaskId,
    /// Volume that the claim gets. `None` if a volume is provisioned for the node of the task.
    pub volume: Option<Arc<str>>,
}

/// The decisions of all reservations, by object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReservedObjects {
    /// Volumes with the claims that get them.
    pub(super) volumes: BTreeMap<Arc<str>, ReservedClaim>,
    pub(super) claims: BTreeMap<ObjectKey, Decision>,
}

impl ReservedObjects {
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
    /// Returns the reservation of the task. Returns `None` if there is none.
    pub fn reservation(&self, task: TaskId) -> Option<&Reservation> {
        self.reservations.get().get(&task)
    }

    /// Returns all reservations by task.
    pub fn reservations(&self) -> impl Iterator<Item = (TaskId, &Reservation)> {
        self.reservations.get().iter().map(|(&task, reservation)| (task, reservation))
    }

    pub(crate) fn reserve(&mut self, task: TaskId, reservation: Reservation) {
        self.release(task);
        self.promised.get_mut().enter(task, &reservation);
        self.reservations.get_mut().insert(task, reservation);
    }

    /// Returns the tasks whose bind was decided and waits for volumes of their gang.
    pub fn held(&self) -> impl Iterator<Item = TaskId> {
        self.held.get().iter().copied()
    }

    /// True if the bind of the task was decided and waits for volumes of its gang.
    pub fn is_held(&self, task: TaskId) -> bool {
        self.held.get().contains(&task)
    }

    /// Returns the decision about a claim. Returns `None` if there is none.
    pub fn decision(&self, claim: &ObjectKey) -> Option<&Decision> {
        self.promised.get().claims.get(claim)
    }

    /// Records that the bind of the task is decided and waits. The task takes over decisions about
    /// its claims that are only tentative, because those may end with the session (deviation of
    /// plugins-nodes.md 5.8).
    pub(crate) fn hold(&mut self, task: TaskId) {
        self.held.get_mut().insert(task);
        let Some(reservation) = self.reservations.get().get(&task) else { return };
        for claim in reservation.awaited.clone() {
            let decision = self.decision(&claim.key).cloned();
            let Some(Decision { task: other, volume }) =
                decision.filter(|decision| self.is_tentative(decision.task))
            else {
                continue;
            };
            if let Some(other) = self.reservations.get_mut().get_mut(&other) {
                other.rely(&claim);
            }
            self.decide(task, &claim, volume);
        }
    }

    /// Makes the task decide about a claim that it awaited.
    pub(crate) fn decide(&mut self, task: TaskId, claim: &ReservedClaim, volume: Option<Arc<str>>) {
        let Some(reservation) = self.reservations.get_mut().get_mut(&task) else { return };
        reservation.decide(claim, volume);
        self.promised.get_mut().enter(task, reservation);
    }

    /// True if the task has a reservation of which nothing has been sent yet.
    fn is_tentative(&self, task: TaskId) -> bool {
        self.reservation(task).is_some_and(|promised| promised.stage == BindingStage::Tentative)
    }

    /// Returns the tasks of the session that rely on the decision about the claim.
    pub(crate) fn relying<'a>(&'a self, claim: &'a ReservedClaim) -> impl Iterator<Item = TaskId> {
        let awaits = |task: &TaskId| {
            self.reservation(*task).is_some_and(|promised| promised.awaited.contains(claim))
        };
        self.users(&claim.key).filter(|&task| self.is_tentative(task)).filter(awaits)
    }

    /// Removes and returns the reservation of the task, and ends its wait for a bind.
    pub(crate) fn release(&mut self, task: TaskId) -> Option<Reservation> {
        self.held.remove(&task);
        let reservation = self.reservations.remove(&task)?;
        self.promised.get_mut().leave(&reservation);
        Some(reservation)
    }

    /// Returns the binding stage of the task's volumes.
    pub(crate) fn stage_mut(&mut self, task: TaskId) -> Option<&mut crate::volume::BindingStage> {
        self.reservations.get_mut().get_mut(&task).map(|reservation| &mut reservation.stage)
    }

    /// Checks that the derived maps agree with the reservations.
    pub(crate) fn check_promised(&self) -> Result<(), String> {
        let mut fresh = ReservedObjects::default();
        for (&task, reservation) in self.reservations.get() {
            fresh.enter(task, reservation);
        }
        match fresh == *self.promised.get() {
            true => Ok(()),
            false => Err(format!("promised is {:?}, should be {fresh:?}", self.promised.get())),
        }
    }
}
