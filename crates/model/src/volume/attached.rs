//! The volumes that the pods of a node use. A volume that several pods use counts once.
//! Specification: plugins-nodes.md 4.6, "Incremental".

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::volume::VolumeName;

/// The volumes that the pods of a node use, with counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeVolumes {
    /// Number of pods per volume.
    names: BTreeMap<VolumeName, u32>,
    /// Number of volumes per driver.
    n_by_driver: BTreeMap<Arc<str>, u32>,
}

impl NodeVolumes {
    /// True if a pod of the node uses the volume.
    pub fn has(&self, name: &VolumeName) -> bool {
        self.names.contains_key(name)
    }

    /// Returns the number of distinct volumes of a driver.
    pub fn count(&self, driver: &str) -> u32 {
        self.n_by_driver.get(driver).copied().unwrap_or(0)
    }

    /// Adds one pod that uses the volume.
    pub(crate) fn add(&mut self, name: VolumeName) {
        let pods = self.names.entry(name.clone()).or_default();
        *pods += 1;
        if *pods == 1 {
            *self.n_by_driver.entry(name.driver).or_default() += 1;
        }
    }

    /// Reverses [`NodeVolumes::add`].
    pub(crate) fn remove(&mut self, name: &VolumeName) {
        let Some(pods) = self.names.get_mut(name) else { return };
        *pods -= 1;
        if 0 < *pods {
            return;
        }
        self.names.remove(name);
        if let Some(volumes) = self.n_by_driver.get_mut(&name.driver) {
            *volumes -= 1;
            if *volumes == 0 {
                self.n_by_driver.remove(&name.driver);
            }
        }
    }
}
