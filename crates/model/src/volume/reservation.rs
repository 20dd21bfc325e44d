//! Reservations: the volumes, provisioned claims and devices that a task is promised with its node.
//! A reservation lasts as long as the task has that node by our decision. Specification:
//! plugins-nodes.md 5.6-5.8.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::device::ClaimPromise;
use crate::numa::CpuSet;
use crate::record::ObjectKey;
use crate::selector::Labels;

/// A claim with its uid, which distinguishes it from a later claim with the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedClaim {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
}

/// Progress of the binding of a task's volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindingStage {
    /// Nothing has left the scheduler.
    #[default]
    Tentative,
    /// The writes were sent and not answered yet.
    Sent {
        /// Time of sending, in microseconds since 1970.
        since_micros: i64,
    },
    /// The writes were stored.
    Written {
        /// Time of sending, in microseconds since 1970.
        since_micros: i64,
        /// Volumes by name, with the resource version of the write.
        volumes: Vec<(Arc<str>, Arc<str>)>,
        /// Claims by key, with the resource version of the write.
        claims: Vec<(ObjectKey, Arc<str>)>,
    },
}

/// The volumes, claims and devices that a task is promised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Volumes that the task binds to its claims.
    pub bindings: Vec<(ReservedClaim, Arc<str>)>,
    /// Claims for which a volume is provisioned for the node of the task.
    pub provisions: Vec<ReservedClaim>,
    /// Claims that another task, or an earlier attempt, has decided about. The task waits for them.
    pub awaited: Vec<ReservedClaim>,
    /// ResourceClaims of the task, and the devices that it chose for them.
    pub devices: Vec<ClaimPromise>,
    /// Annotations that name the shared devices of the task, which go out with its bind. `None` if
    /// it has none. The task keeps them as [`crate::Task::devices`].
    pub shares: Option<Arc<Labels>>,
    /// The CPUs that the task gets to itself. `None` if there are none. The task keeps them as
    /// [`crate::Task::cpus`].
    pub cpus: Option<Arc<CpuSet>>,
    /// The annotation that locks the node before the bind. The task keeps it as
    /// [`crate::Task::node_lock`].
    pub node_lock: Option<Arc<str>>,
    /// `volumebinding.bindTimeoutSeconds`, in microseconds.
    pub timeout_micros: i64,
    /// Progress of the binding.
    pub stage: BindingStage,
}

impl Reservation {
    /// Returns all claims of the reservation that are not bound yet.
    pub fn claims(&self) -> impl Iterator<Item = &ReservedClaim> {
        let bound = self.bindings.iter().map(|(claim, _)| claim);
        bound.chain(&self.provisions).chain(&self.awaited)
    }

    /// Returns the claims about which this task decides, with their volumes. `None` if a volume is
    /// provisioned.
    pub fn decided(&self) -> impl Iterator<Item = (&ReservedClaim, Option<&Arc<str>>)> {
        let bindings = self.bindings.iter().map(|(claim, volume)| (claim, Some(volume)));
        bindings.chain(self.provisions.iter().map(|claim| (claim, None)))
    }

    /// Moves a claim to the awaited ones: another task decides about it now.
    pub(super) fn rely(&mut self, claim: &ReservedClaim) {
        self.bindings.retain(|(other, _)| other.key != claim.key);
        self.provisions.retain(|other| other.key != claim.key);
        self.awaited.push(claim.clone());
    }

    /// Moves a claim from the awaited ones to those that this task decides about.
    pub(super) fn decide(&mut self, claim: &ReservedClaim, volume: Option<Arc<str>>) {
        self.awaited.retain(|other| other.key != claim.key);
        match volume {
            Some(volume) => self.bindings.push((claim.clone(), volume)),
            None => self.provisions.push(claim.clone()),
        }
    }

    /// Returns one reservation with what two plugins have reserved for a task.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.bindings.extend(other.bindings);
        self.provisions.extend(other.provisions);
        self.awaited.extend(other.awaited);
        self.devices.extend(other.devices);
        self.shares = self.shares.or(other.shares);
        self.cpus = self.cpus.or(other.cpus);
        self.node_lock = self.node_lock.or(other.node_lock);
        self.timeout_micros = self.timeout_micros.max(other.timeout_micros);
        self
    }

    /// True if there is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.claims().next().is_none()
    }
}
