//! The volumes of a pod that filters read: claims, and disks that only one node may use at a time.
//! Specification: plugins-nodes.md 3.5, 4.6, 4.9.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::record::ObjectKey;
use crate::selector::Labels;
use crate::volume::{InTree, VolumeSource, aws_ebs, gce_pd};

/// A volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PodVolume {
    /// `persistentVolumeClaim`, or the claim made for an `ephemeral` volume.
    Claim(PodClaim),
    /// A disk named in the pod itself.
    Disk(Disk),
}

/// A PersistentVolumeClaim as a pod names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodClaim {
    /// `claimName`, or `<pod>-<volume>` for an ephemeral volume; in the namespace of the pod.
    pub name: Arc<str>,
    /// True if the claim was made for this pod, which must be its controller.
    pub ephemeral: bool,
}

impl PodClaim {
    /// Returns the key of the claim for a pod in this namespace.
    pub fn key(&self, namespace: &Arc<str>) -> ObjectKey {
        ObjectKey { namespace: namespace.clone(), name: self.name.clone() }
    }
}

/// A disk named in the pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Disk {
    /// `gcePersistentDisk`.
    GcePd {
        /// `pdName`.
        name: Arc<str>,
        /// `readOnly`.
        read_only: bool,
    },
    /// `awsElasticBlockStore`.
    AwsEbs {
        /// `volumeID`.
        id: Arc<str>,
    },
    /// `azureDisk`.
    AzureDisk {
        /// `diskURI`.
        uri: Arc<str>,
    },
    /// `cinder`.
    Cinder {
        /// `volumeID`.
        id: Arc<str>,
    },
    /// `iscsi`.
    Iscsi {
        /// `iqn`.
        iqn: Arc<str>,
        /// `readOnly`.
        read_only: bool,
    },
    /// `rbd`.
    Rbd {
        /// `monitors`.
        monitors: Vec<Arc<str>>,
        /// `pool`.
        pool: Arc<str>,
        /// `image`.
        image: Arc<str>,
        /// `readOnly`.
        read_only: bool,
    },
}

impl Disk {
    /// Returns the disk as a volume of the CSI driver that serves its type now (plugins-nodes.md
    /// 4.6).
    pub fn migrated(&self) -> VolumeSource {
        let handled = |of, handle: &Arc<str>| VolumeSource::Migrated { of, handle: handle.clone() };
        match self {
            Self::GcePd { name, .. } => gce_pd(name, &Labels::new()),
            Self::AwsEbs { id } => aws_ebs(id),
            Self::AzureDisk { uri } => handled(InTree::AzureDisk, uri),
            Self::Cinder { id } => handled(InTree::Cinder, id),
            Self::Iscsi { .. } | Self::Rbd { .. } => VolumeSource::Other,
        }
    }
}
