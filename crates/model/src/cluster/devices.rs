//! Events of ResourceClaims, DeviceClasses and ResourceSlices. Specification: plugins-nodes.md 6.7.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::device::{DeviceObject, ResourceClaim};
use crate::ids::TaskId;
use crate::record::ObjectKey;

impl Cluster {
    /// Returns the ResourceClaims of a pod. A claim that the pod lists twice is returned once.
    pub fn resource_claims(&self, task: TaskId) -> BTreeSet<ObjectKey> {
        let entries = &self.class(task).resource_claims;
        if entries.is_empty() {
            return BTreeSet::new();
        }
        let namespace = &self.tasks[task].key.namespace;
        let key = |name: &Arc<str>| ObjectKey { namespace: namespace.clone(), name: name.clone() };
        entries.iter().filter_map(|entry| entry.claim_name().map(key)).collect()
    }

    pub(super) fn device_applied(&mut self, object: DeviceObject) {
        if let DeviceObject::Claim(claim) = &object
            && self.devices.claim(&claim.key).is_some_and(|stored| is_newer(stored, claim))
        {
            // The event is older than our write.
            return;
        }
        self.devices.put(object);
    }

    /// Applies the claims that were stored for a task. The watch may already have delivered newer
    /// versions, or that the claim is gone.
    pub(super) fn devices_written(&mut self, claims: Vec<ResourceClaim>) {
        for claim in claims {
            let stored = self.devices.claim(&claim.key);
            if stored.is_none_or(|stored| stored.uid != claim.uid) {
                continue;
            }
            self.device_applied(DeviceObject::Claim(claim));
        }
    }
}

/// True if the known version of the same object is newer. Versions compare as numbers; versions
/// that are no numbers are never newer.
fn is_newer(known: &ResourceClaim, told: &ResourceClaim) -> bool {
    let number = |claim: &ResourceClaim| claim.resource_version.parse::<u64>().ok();
    let versions = number(told).zip(number(known));
    known.uid == told.uid && versions.is_some_and(|(told, known)| told < known)
}
