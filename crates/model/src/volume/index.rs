//! Who has promised which volume and which claim: derived from the reservations, so that two tasks
//! never get the same volume. Specification: plugins-nodes.md 5.6.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::TaskId;
use crate::record::ObjectKey;
use crate::volume::{Reservation, ReservedClaim, Volumes};

/// A volume that is promised to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedVolume {
    /// To which claim.
    pub claim: ReservedClaim,
    /// For which task.
    pub task: TaskId,
}

/// What the reservations say, by object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Promised {
    pub(super) volumes: BTreeMap<Arc<str>, ReservedVolume>,
    /// Claims that a task has provisioned for its node.
    pub(super) claims: BTreeMap<ObjectKey, TaskId>,
}

impl Promised {
    fn enter(&mut self, task: TaskId, reservation: &Reservation) {
        for (claim, volume) in &reservation.bindings {
            let claim = claim.clone();
            self.volumes.insert(volume.clone(), ReservedVolume { claim, task });
        }
        for claim in &reservation.provisions {
            self.claims.insert(claim.key.clone(), task);
        }
    }

    fn leave(&mut self, reservation: &Reservation) {
        for (_, volume) in &reservation.bindings {
            self.volumes.remove(volume);
        }
        for claim in &reservation.provisions {
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

    pub(crate) fn hold(&mut self, task: TaskId) {
        self.held.insert(task);
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
