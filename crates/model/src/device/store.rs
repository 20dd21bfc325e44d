//! The tables of ResourceClaims, DeviceClasses and ResourceSlices, overlaid with the allocations
//! that tasks are promised (in-flight allocations). Specification: plugins-nodes.md 6.3, 6.7.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::device::{
    Allocation, ClaimPromise, DeviceClass, DeviceId, DeviceKind, DeviceObject, ResourceClaim,
    ResourceSlice,
};
use crate::ids::TaskId;
use crate::reads::{self, Read};
use crate::record::ObjectKey;

/// ResourceClaims, DeviceClasses and ResourceSlices of the cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Devices {
    claims: CopyOnWrite<BTreeMap<ObjectKey, ResourceClaim>>,
    classes: BTreeMap<Arc<str>, DeviceClass>,
    slices: CopyOnWrite<BTreeMap<Arc<str>, Arc<ResourceSlice>>>,
    /// In-flight allocations by claim.
    in_flight: CopyOnWrite<BTreeMap<ObjectKey, InFlight>>,
    /// Devices that are allocated, each with the number of claims that have it. Admin access does
    /// not count.
    taken: CopyOnWrite<BTreeMap<DeviceId, u32>>,
    /// Number of changes of slices and classes.
    version: u64,
    /// Number of changes of what claims ask for.
    request_version: u64,
    /// Number of times that a device became free.
    n_freed: u64,
}

// There are few DeviceClasses.
copy_on_write_members! { Devices:
    shared in_flight, taken, claims, slices;
    copied classes, version, request_version, n_freed;
}

/// The promises to tasks for one claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// Tasks that the claim is to be reserved for, each with the devices that one of them chose.
    /// `None` if the claim had devices before.
    pub tasks: BTreeMap<TaskId, Option<Arc<Allocation>>>,
}

impl InFlight {
    /// Returns the chosen devices, and a task that relies on them. The choice holds as long as one
    /// task relies on it (deviation of plugins-nodes.md 2.6).
    pub fn chosen(&self) -> Option<(TaskId, &Arc<Allocation>)> {
        self.tasks.iter().find_map(|(&task, chosen)| Some((task, chosen.as_ref()?)))
    }
}

impl Devices {
    /// Returns the claim with this key.
    pub fn claim(&self, key: &ObjectKey) -> Option<&ResourceClaim> {
        reads::note(Read::OtherObjects);
        self.claims.get().get(key)
    }

    /// Returns all claims by key.
    pub fn claims(&self) -> impl Iterator<Item = &ResourceClaim> {
        self.claims.get().values()
    }

    /// Returns the class with this name.
    pub fn class(&self, name: &str) -> Option<&DeviceClass> {
        reads::note(Read::OtherObjects);
        self.classes.get(name)
    }

    /// Returns all slices by name.
    pub fn slices(&self) -> impl Iterator<Item = &Arc<ResourceSlice>> {
        reads::note(Read::OtherObjects);
        self.slices.get().values()
    }

    /// Returns the in-flight allocation of a claim.
    pub fn in_flight(&self, key: &ObjectKey) -> Option<&InFlight> {
        self.in_flight.get().get(key)
    }

    /// True if a claim has the device, whether stored or in flight.
    pub fn is_taken(&self, device: &DeviceId) -> bool {
        self.taken.get().contains_key(device)
    }

    /// Returns a counter that increases with every change of slices or classes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns a counter that increases when a claim appears, disappears or asks for something else.
    pub fn request_version(&self) -> u64 {
        self.request_version
    }

    /// Returns a counter that increases when a device becomes free. While it is unchanged, a failed
    /// search for devices need not be repeated.
    pub fn n_freed(&self) -> u64 {
        self.n_freed
    }

    pub(crate) fn put(&mut self, object: DeviceObject) {
        match object {
            DeviceObject::Claim(claim) => {
                let key = claim.key.clone();
                let known = self.claims.get().get(&key).map(|known| &known.requests);
                self.request_version += u64::from(known != Some(&claim.requests));
                self.change(&key, |all| drop(all.claims.get_mut().insert(key.clone(), claim)));
            }
            DeviceObject::Class(class) => {
                self.version += 1;
                self.classes.insert(class.name.clone(), class);
            }
            DeviceObject::Slice(slice) => {
                self.version += 1;
                self.slices.get_mut().insert(slice.name.clone(), Arc::new(slice));
            }
        }
    }

    pub(crate) fn remove(&mut self, kind: DeviceKind, key: &ObjectKey) {
        match kind {
            DeviceKind::Claim => {
                self.request_version += 1;
                self.change(key, |all| drop(all.claims.remove(key)));
            }
            DeviceKind::Class => {
                self.version += 1;
                self.classes.remove(&key.name);
            }
            DeviceKind::Slice => {
                self.version += 1;
                self.slices.remove(&key.name);
            }
        }
    }

    /// Records the promises that a task gets with its node.
    pub(crate) fn promise(&mut self, task: TaskId, promises: &[ClaimPromise]) {
        for promise in promises {
            self.change(&promise.key, |all| {
                let entry = all.in_flight.get_mut().entry(promise.key.clone()).or_default();
                entry.tasks.insert(task, promise.allocation.clone());
            });
        }
    }

    /// Reverses [`Devices::promise`].
    pub(crate) fn withdraw(&mut self, task: TaskId, promises: &[ClaimPromise]) {
        for promise in promises {
            self.change(&promise.key, |all| {
                let Some(entry) = all.in_flight.get_mut().get_mut(&promise.key) else { return };
                entry.tasks.remove(&task);
                if entry.tasks.is_empty() {
                    all.in_flight.remove(&promise.key);
                }
            });
        }
    }

    /// Changes the devices of a claim, and updates the set of devices that are allocated.
    fn change(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Self)) {
        let before = self.has(key);
        change(self);
        let after = self.has(key);
        if before != after {
            before.iter().for_each(|allocation| self.count(allocation, -1));
            after.iter().for_each(|allocation| self.count(allocation, 1));
        }
    }

    /// Returns the allocation of a claim: the stored one, else the one in flight.
    fn has(&self, key: &ObjectKey) -> Option<Arc<Allocation>> {
        let stored = self.claims.get().get(key).and_then(|claim| claim.allocation.clone());
        stored.or_else(|| self.in_flight.get().get(key)?.chosen().map(|(_, chosen)| chosen.clone()))
    }

    fn count(&mut self, allocation: &Allocation, change: i32) {
        let devices = allocation.results.iter().filter(|result| !result.admin_access);
        for result in devices {
            let count = self.taken.get_mut().entry(result.device.clone()).or_default();
            *count = count.saturating_add_signed(change);
            if *count == 0 {
                self.n_freed += 1;
                self.taken.remove(&result.device);
            }
        }
    }

    /// Checks the derived maps against the rows and the promises of tasks.
    pub(crate) fn check<'a>(
        &self,
        promised: impl Iterator<Item = (TaskId, &'a [ClaimPromise])>,
    ) -> Result<(), String> {
        let mut fresh = Self::default();
        for (task, promises) in promised {
            fresh.promise(task, promises);
        }
        for claim in self.claims.get().values() {
            fresh.put(DeviceObject::Claim(claim.clone()));
        }
        let is_same =
            fresh.taken.get() == self.taken.get() && fresh.in_flight.get() == self.in_flight.get();
        match is_same {
            true => Ok(()),
            false => Err("devices that are taken are not those of the claims".into()),
        }
    }
}
