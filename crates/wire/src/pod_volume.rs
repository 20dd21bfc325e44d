//! Volumes of a pod that something judges: claims, and disks that one node has at a time.
//! Specification: plugins-nodes.md 3.5, 4.6, 4.9.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess};
use vc_model::{Disk, PodClaim, PodVolume};

use crate::problems::{FieldPath, Problems};
use crate::soft::{FieldShape, LenientField, LenientList, object};

/// A volume of a pod. Sources that nothing judges are skipped.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodVolume {
    pub name: LenientField<Arc<str>>,
    pub persistent_volume_claim: LenientField<SlimClaimName>,
    pub ephemeral: LenientField<PresenceOnly>,
    pub gce_persistent_disk: LenientField<Box<SlimDisk>>,
    pub aws_elastic_block_store: LenientField<Box<SlimDisk>>,
    pub azure_disk: LenientField<Box<SlimDisk>>,
    pub cinder: LenientField<Box<SlimDisk>>,
    pub iscsi: LenientField<Box<SlimDisk>>,
    pub rbd: LenientField<Box<SlimDisk>>,
}

/// An object of which only matters that it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceOnly;

impl FieldShape for PresenceOnly {
    const WANTED: &'static str = "an object";
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Some(Self))
    }
}

/// `persistentVolumeClaim`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimClaimName {
    pub claim_name: LenientField<Arc<str>>,
}

/// What is read of the disks that a pod may name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimDisk {
    #[serde(rename = "pdName")]
    pub pd_name: LenientField<Arc<str>>,
    #[serde(rename = "volumeID")]
    pub volume_id: LenientField<Arc<str>>,
    #[serde(rename = "diskURI")]
    pub disk_uri: LenientField<Arc<str>>,
    pub iqn: LenientField<Arc<str>>,
    pub monitors: LenientList<Arc<str>>,
    pub pool: LenientField<Arc<str>>,
    pub image: LenientField<Arc<str>>,
    #[serde(rename = "readOnly")]
    pub read_only: LenientField<bool>,
}

object!(
    SlimPodVolume {
        "name" => name,
        "persistentVolumeClaim" => persistent_volume_claim,
        "ephemeral" => ephemeral,
        "gcePersistentDisk" => gce_persistent_disk,
        "awsElasticBlockStore" => aws_elastic_block_store,
        "azureDisk" => azure_disk,
        "cinder" => cinder,
        "iscsi" => iscsi,
        "rbd" => rbd,
    },
    SlimClaimName { "claimName" => claim_name },
);

/// On the heap: hardly any volume is one, and each has room for all of them.
impl FieldShape for Box<SlimDisk> {
    const WANTED: &'static str = "an object";
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        let access = MapAccessDeserializer::new(map);
        Deserialize::deserialize(access).map(|disk| Some(Box::new(disk)))
    }
}

/// The volumes that something judges, in order.
pub(crate) fn volumes(
    slim: LenientList<SlimPodVolume>,
    pod: &Arc<str>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Vec<PodVolume> {
    let read = problems.list(slim, path, |problems, slim, path| volume(slim, pod, path, problems));
    read.into_iter().flatten().collect()
}

fn volume(
    slim: SlimPodVolume,
    pod: &Arc<str>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<PodVolume> {
    let claim_path = path.field("persistentVolumeClaim");
    if let Some(claim) = problems.read(slim.persistent_volume_claim, &claim_path) {
        let name = problems.text(claim.claim_name, &claim_path.field("claimName"));
        return Some(PodVolume::Claim(PodClaim { name, ephemeral: false }));
    }
    if !matches!(slim.ephemeral, LenientField::Absent) {
        problems.read(slim.ephemeral, &path.field("ephemeral"))?;
        let volume = problems.text(slim.name, &path.field("name"));
        let name = format!("{pod}-{volume}").into();
        return Some(PodVolume::Claim(PodClaim { name, ephemeral: true }));
    }
    let sources: [(_, &'static str, DiskReader); 6] = [
        (slim.gce_persistent_disk, "gcePersistentDisk", gce_pd),
        (slim.aws_elastic_block_store, "awsElasticBlockStore", aws_ebs),
        (slim.azure_disk, "azureDisk", azure_disk),
        (slim.cinder, "cinder", cinder),
        (slim.iscsi, "iscsi", iscsi),
        (slim.rbd, "rbd", rbd),
    ];
    let disk = sources.into_iter().find_map(|(slim, field, make)| {
        let path = path.field(field);
        Some(make(*problems.read(slim, &path)?, &path, problems))
    })?;
    Some(PodVolume::Disk(disk))
}

type DiskReader = fn(SlimDisk, &FieldPath<'_>, &mut Problems) -> Disk;

fn gce_pd(slim: SlimDisk, path: &FieldPath<'_>, problems: &mut Problems) -> Disk {
    let name = problems.text(slim.pd_name, &path.field("pdName"));
    Disk::GcePd { name, read_only: read_only(slim.read_only, path, problems) }
}

fn aws_ebs(slim: SlimDisk, path: &FieldPath<'_>, problems: &mut Problems) -> Disk {
    Disk::AwsEbs { id: problems.text(slim.volume_id, &path.field("volumeID")) }
}

fn azure_disk(slim: SlimDisk, path: &FieldPath<'_>, problems: &mut Problems) -> Disk {
    Disk::AzureDisk { uri: problems.text(slim.disk_uri, &path.field("diskURI")) }
}

fn cinder(slim: SlimDisk, path: &FieldPath<'_>, problems: &mut Problems) -> Disk {
    Disk::Cinder { id: problems.text(slim.volume_id, &path.field("volumeID")) }
}

fn iscsi(slim: SlimDisk, path: &FieldPath<'_>, problems: &mut Problems) -> Disk {
    let iqn = problems.text(slim.iqn, &path.field("iqn"));
    Disk::Iscsi { iqn, read_only: read_only(slim.read_only, path, problems) }
}

fn rbd(slim: SlimDisk, path: &FieldPath<'_>, problems: &mut Problems) -> Disk {
    Disk::Rbd {
        monitors: problems.texts(slim.monitors, &path.field("monitors")),
        pool: problems.text(slim.pool, &path.field("pool")),
        image: problems.text(slim.image, &path.field("image")),
        read_only: read_only(slim.read_only, path, problems),
    }
}

fn read_only(slim: LenientField<bool>, path: &FieldPath<'_>, problems: &mut Problems) -> bool {
    problems.or_default(slim, &path.field("readOnly"))
}
