//! What a task was promised along with its node: volumes to bind to its claims, claims to provision
//! there, devices. It lasts as long as the task has that node by our decision. Specification:
//! plugins-nodes.md 5.6-5.8.

use std::sync::Arc;

use crate::device::ClaimPromise;
use crate::record::ObjectKey;

/// A claim and its uid, which keeps a successor of the same name from being taken for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedClaim {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
}

/// How far the binding of its volumes has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Nothing has left the scheduler.
    #[default]
    Tentative,
    /// The writes were sent.
    Sent {
        /// Microseconds since 1970.
        since_micros: i64,
    },
    /// They were stored; volumes, then claims, with the version they have since.
    Written {
        /// Microseconds since 1970, of the sending.
        since_micros: i64,
        /// Volume name and resource version.
        volumes: Vec<(Arc<str>, Arc<str>)>,
        /// Claim and resource version.
        claims: Vec<(ObjectKey, Arc<str>)>,
    },
}

/// What a task was promised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Volumes that the task binds to its claims.
    pub bindings: Vec<(ReservedClaim, Arc<str>)>,
    /// Claims that the task has provisioned for its node.
    pub provisions: Vec<ReservedClaim>,
    /// Claims about which another task, or an earlier attempt, has decided: waited for.
    pub awaited: Vec<ReservedClaim>,
    /// Resource claims of the task, and the devices that it chose for them.
    pub devices: Vec<ClaimPromise>,
    /// `volumebinding.bindTimeoutSeconds`, in microseconds.
    pub timeout_micros: i64,
    /// How far it has come.
    pub stage: Stage,
}

impl Reservation {
    /// All claims that are not bound yet.
    pub fn claims(&self) -> impl Iterator<Item = &ReservedClaim> {
        let bound = self.bindings.iter().map(|(claim, _)| claim);
        bound.chain(&self.provisions).chain(&self.awaited)
    }

    /// Claims about which this task decides, and the volumes that they get; `None`: they are
    /// provisioned.
    pub fn decided(&self) -> impl Iterator<Item = (&ReservedClaim, Option<&Arc<str>>)> {
        let bindings = self.bindings.iter().map(|(claim, volume)| (claim, Some(volume)));
        bindings.chain(self.provisions.iter().map(|claim| (claim, None)))
    }

    /// Another task decides about the claim; this one awaits it.
    pub(super) fn rely(&mut self, claim: &ReservedClaim) {
        self.bindings.retain(|(other, _)| other.key != claim.key);
        self.provisions.retain(|other| other.key != claim.key);
        self.awaited.push(claim.clone());
    }

    /// The other way round.
    pub(super) fn decide(&mut self, claim: &ReservedClaim, volume: Option<Arc<str>>) {
        self.awaited.retain(|other| other.key != claim.key);
        match volume {
            Some(volume) => self.bindings.push((claim.clone(), volume)),
            None => self.provisions.push(claim.clone()),
        }
    }

    /// Whether there is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.claims().next().is_none()
    }
}
