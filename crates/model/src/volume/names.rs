//! Names under which volumes count against the limits of their drivers, and the resources that
//! count them. Specification: plugins-nodes.md 4.6 step 1, core.md 3.5.1.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::record::ObjectKey;
use crate::volume::{InTree, PodVolume, VolumeSource, Volumes};

/// A volume by driver and handle. A volume that does not exist yet has an invented handle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VolumeName {
    /// Name of the CSI driver.
    pub driver: Arc<str>,
    /// Volume handle.
    pub handle: Arc<str>,
}

/// Prefix of invented handles, which no real handle has.
const UNBOUND: &str = "unbound volume of ";

/// Drivers whose volumes are not counted, in addition to `--ignored-provisioners`.
const UNCOUNTED: [&str; 2] = ["rancher.io/local-path", "hostpath.csi.k8s.io"];

/// Returns the name of the resource that counts the volumes of a driver.
pub fn csi_dimension(driver: &str) -> String {
    format!("attachable-volumes-csi-{}", driver.replace('/', "-"))
}

/// Returns the CSI driver that serves an in-tree volume type now.
fn migrated(provisioner: &str) -> Option<&'static str> {
    InTree::of_plugin(provisioner).map(InTree::driver)
}

impl Volumes {
    /// Returns the volumes of a pod of this class, as they count on the node with this name.
    pub fn names_on<'a>(
        &'a self,
        class: &'a Class,
        node: &str,
    ) -> impl Iterator<Item = VolumeName> + use<'a> {
        let migrates = self.csi_node(node).is_some();
        class.volumes.iter().filter_map(move |volume| match volume {
            PodVolume::Claim(claim) => self.name_of(&claim.key(&class.namespace), migrates),
            PodVolume::Disk(disk) => counted(&disk.migrated(), migrates),
        })
    }

    /// Returns the name of the volume of a claim. Returns `None` if the claim is missing, or its
    /// volume is not limited.
    fn name_of(&self, key: &ObjectKey, migrates: bool) -> Option<VolumeName> {
        let claim = self.claim(key)?;
        if let Some(volume) = self.volume(&claim.volume_name) {
            return counted(&volume.source, migrates);
        }
        let provisioner = &self.class(&claim.class)?.provisioner;
        let driver = match migrated(provisioner).filter(|_| migrates) {
            Some(driver) => driver.into(),
            None => provisioner.clone(),
        };
        Some(VolumeName { driver, handle: format!("{UNBOUND}{key}").into() })
    }

    /// Returns the volume of an attachment. Returns `None` if it is not a CSI volume.
    pub(crate) fn attached_name(&self, attacher: &Arc<str>, volume: &str) -> Option<VolumeName> {
        match &self.volume(volume)?.source {
            VolumeSource::Csi { handle, .. } => {
                Some(VolumeName { driver: attacher.clone(), handle: handle.clone() })
            }
            _ => None,
        }
    }

    /// Returns the resource that a claim requests from its node: one attachment of its driver.
    /// Returns `None` if the claim is not counted. A class without CSI driver has no volume limit.
    pub(crate) fn resource_of(&self, key: &ObjectKey, ignored: &[Arc<str>]) -> Option<String> {
        let claim = self.claim(key)?;
        let volume = self.volume(&claim.volume_name).map(|volume| &volume.source);
        let driver = match volume {
            Some(VolumeSource::Csi { driver, .. }) => &**driver,
            Some(_) => return None,
            None => {
                let class = self.class(&claim.class)?;
                let named = class.driver.as_ref().unwrap_or(&class.provisioner);
                migrated(named).unwrap_or(named)
            }
        };
        let ours = UNCOUNTED.contains(&driver) || ignored.iter().any(|other| **other == *driver);
        let is_driver = !driver.is_empty() && !driver.starts_with("kubernetes.io/");
        (is_driver && !ours).then(|| csi_dimension(driver))
    }
}

fn counted(source: &VolumeSource, migrates: bool) -> Option<VolumeName> {
    match source {
        VolumeSource::Csi { driver, handle } => {
            Some(VolumeName { driver: driver.clone(), handle: handle.clone() })
        }
        VolumeSource::Migrated { of, handle } if migrates => {
            Some(VolumeName { driver: of.driver().into(), handle: handle.clone() })
        }
        _ => None,
    }
}
