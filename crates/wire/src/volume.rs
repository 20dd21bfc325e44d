//! PersistentVolumes and their claims. Specification: plugins-nodes.md 3.5, 4.6, 5.1.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{
    AccessModes, ClaimRef, InTree, Labels, ObjectKey, PersistentVolume, PersistentVolumeClaim,
    VolumeMode, VolumePhase, VolumeSource,
};
use vc_resource::Quantity;

use crate::metadata::{self, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::selector::{SlimLabelSelector, SlimNodeSelector, label_selector, node_selector};
use crate::soft::{LenientField, LenientList, LenientMap, object};
use crate::{Kind, WireError, finish};

/// Annotation that names the class in place of the field, also when it is empty.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// Annotation of a claim whose volume is bound to it as well.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Annotation of a claim that is to be provisioned for a node.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A PersistentVolume as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPersistentVolume {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimVolumeSpec>,
    pub status: LenientField<SlimPhase>,
}

/// `spec` of a PersistentVolume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimVolumeSpec {
    pub storage_class_name: LenientField<Arc<str>>,
    pub capacity: LenientField<LenientMap<Quantity>>,
    pub volume_mode: LenientField<Arc<str>>,
    pub volume_attributes_class_name: LenientField<Arc<str>>,
    pub access_modes: LenientList<Arc<str>>,
    pub claim_ref: LenientField<SlimClaimRef>,
    pub node_affinity: LenientField<SlimVolumeAffinity>,
    pub csi: LenientField<SlimSource>,
    pub gce_persistent_disk: LenientField<SlimSource>,
    pub aws_elastic_block_store: LenientField<SlimSource>,
    pub azure_disk: LenientField<SlimSource>,
    pub cinder: LenientField<SlimSource>,
}

/// `spec.nodeAffinity` of a PersistentVolume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimVolumeAffinity {
    pub required: LenientField<SlimNodeSelector>,
}

/// What is read of the sources that have CSI drivers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimSource {
    pub driver: LenientField<Arc<str>>,
    #[serde(rename = "volumeHandle")]
    pub volume_handle: LenientField<Arc<str>>,
    #[serde(rename = "pdName")]
    pub pd_name: LenientField<Arc<str>>,
    #[serde(rename = "volumeID")]
    pub volume_id: LenientField<Arc<str>>,
    #[serde(rename = "diskURI")]
    pub disk_uri: LenientField<Arc<str>>,
}

/// `spec.claimRef` of a PersistentVolume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimClaimRef {
    pub namespace: LenientField<Arc<str>>,
    pub name: LenientField<Arc<str>>,
    pub uid: LenientField<Arc<str>>,
}

/// `status`, of which only the phase is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPhase {
    pub phase: LenientField<Arc<str>>,
}

/// A PersistentVolumeClaim as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPersistentVolumeClaim {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimClaimSpec>,
    pub status: LenientField<SlimPhase>,
}

/// `spec` of a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimClaimSpec {
    pub storage_class_name: LenientField<Arc<str>>,
    pub resources: LenientField<SlimClaimResources>,
    pub volume_mode: LenientField<Arc<str>>,
    pub volume_attributes_class_name: LenientField<Arc<str>>,
    pub access_modes: LenientList<Arc<str>>,
    pub selector: LenientField<SlimLabelSelector>,
    pub volume_name: LenientField<Arc<str>>,
}

/// `spec.resources` of a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimClaimResources {
    pub requests: LenientField<LenientMap<Quantity>>,
}

object!(
    SlimVolumeSpec,
    SlimVolumeAffinity,
    SlimSource,
    SlimClaimRef,
    SlimPhase,
    SlimClaimSpec,
    SlimClaimResources,
);

impl SlimPersistentVolume {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<PersistentVolume, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::PersistentVolume, self.metadata, &mut problems)?;
        let path = FieldPath::root("spec");
        let spec = problems.or_default(self.spec, &path);
        let named = problems.text(spec.storage_class_name, &path.field("storageClassName"));
        let attributes = path.field("volumeAttributesClassName");
        let affinity_path = path.field("nodeAffinity");
        let affinity = problems.or_default(spec.node_affinity, &affinity_path);
        let required = affinity_path.field("required");
        let claim_path = path.field("claimRef");
        let claim = problems.read(spec.claim_ref, &claim_path);
        let mode = problems.text(spec.volume_mode, &path.field("volumeMode"));
        let sources = [
            (spec.csi, "csi", csi as VolumeSourceReader),
            (spec.gce_persistent_disk, "gcePersistentDisk", gce_pd),
            (spec.aws_elastic_block_store, "awsElasticBlockStore", aws_ebs),
            (spec.azure_disk, "azureDisk", azure_disk),
            (spec.cinder, "cinder", cinder),
        ];
        let volume = PersistentVolume {
            name: metadata.name.clone(),
            resource_version: metadata.resource_version.clone(),
            deleting: metadata.deleting,
            class: class_of(named, &metadata.annotations),
            capacity_bytes: storage(spec.capacity, &path.field("capacity"), &mut problems)
                .unwrap_or(0),
            mode: volume_mode(&mode),
            attributes_class: problems.text(spec.volume_attributes_class_name, &attributes),
            access_modes: access_modes(spec.access_modes, &path, &mut problems),
            claim: claim.map(|claim| claim_ref(claim, &claim_path, &mut problems)),
            node_affinity: { problems.read(affinity.required, &required) }
                .map(|selector| node_selector(selector, &required, &mut problems)),
            source: source(sources, &path, &metadata.labels, &mut problems),
            phase: match &*phase(self.status, &mut problems) {
                "Available" => VolumePhase::Available,
                _ => VolumePhase::Other,
            },
            labels: metadata.labels,
        };
        finish(volume, Kind::PersistentVolume, "", &metadata.name, problems)
    }
}

impl SlimPersistentVolumeClaim {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<PersistentVolumeClaim, WireError> {
        let mut problems = Problems::default();
        let has_annotations = match &self.metadata {
            LenientField::Good(metadata) => !matches!(metadata.annotations, LenientField::Absent),
            LenientField::Absent | LenientField::Bad(_) => false,
        };
        let metadata = metadata::read(Kind::PersistentVolumeClaim, self.metadata, &mut problems)?;
        let path = FieldPath::root("spec");
        let spec = problems.or_default(self.spec, &path);
        let named = problems.text(spec.storage_class_name, &path.field("storageClassName"));
        let attributes = path.field("volumeAttributesClassName");
        let resources_path = path.field("resources");
        let resources = problems.or_default(spec.resources, &resources_path);
        let requests = resources_path.field("requests");
        let mode = problems.text(spec.volume_mode, &path.field("volumeMode"));
        let selector = path.field("selector");
        let claim = PersistentVolumeClaim {
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            deleting: metadata.deleting,
            controller_uid: metadata.controller_uid.clone(),
            class: class_of(named, &metadata.annotations),
            request_bytes: storage(resources.requests, &requests, &mut problems),
            mode: volume_mode(&mode),
            attributes_class: problems.text(spec.volume_attributes_class_name, &attributes),
            access_modes: access_modes(spec.access_modes, &path, &mut problems),
            selector: { problems.read(spec.selector, &selector) }
                .map(|slim| label_selector(slim, &selector, &mut problems)),
            volume_name: problems.text(spec.volume_name, &path.field("volumeName")),
            bind_completed: metadata.annotations.contains_key(BIND_COMPLETED),
            selected_node: metadata.annotations.get(SELECTED_NODE).cloned(),
            has_annotations,
            lost: &*phase(self.status, &mut problems) == "Lost",
            key: metadata.key(),
        };
        let kind = Kind::PersistentVolumeClaim;
        finish(claim, kind, &metadata.namespace, &metadata.name, problems)
    }
}

fn class_of(named: Arc<str>, annotations: &Labels) -> Arc<str> {
    annotations.get(CLASS).cloned().unwrap_or(named)
}

fn phase(status: LenientField<SlimPhase>, problems: &mut Problems) -> Arc<str> {
    let path = FieldPath::root("status");
    let status = problems.or_default(status, &path);
    problems.text(status.phase, &path.field("phase"))
}

/// The amount called `storage`.
fn storage(
    list: LenientField<LenientMap<Quantity>>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<i64> {
    let list = problems.resources(list, path);
    list.iter().find(|(name, _)| &**name == "storage").map(|(_, quantity)| quantity.value())
}

fn volume_mode(text: &str) -> VolumeMode {
    if text == "Block" { VolumeMode::Block } else { VolumeMode::Filesystem }
}

fn access_modes(
    list: LenientList<Arc<str>>,
    spec: &FieldPath<'_>,
    problems: &mut Problems,
) -> AccessModes {
    let names = problems.texts(list, &spec.field("accessModes"));
    AccessModes::of(names.iter().map(|name| &**name))
}

fn claim_ref(slim: SlimClaimRef, path: &FieldPath<'_>, problems: &mut Problems) -> ClaimRef {
    let namespace = problems.text(slim.namespace, &path.field("namespace"));
    let name = problems.text(slim.name, &path.field("name"));
    let uid = problems.text(slim.uid, &path.field("uid"));
    ClaimRef { claim: ObjectKey { namespace, name }, uid }
}

type VolumeSourceReader = fn(SlimSource, &FieldPath<'_>, &Labels, &mut Problems) -> VolumeSource;

fn source(
    sources: [(LenientField<SlimSource>, &'static str, VolumeSourceReader); 5],
    spec: &FieldPath<'_>,
    labels: &Labels,
    problems: &mut Problems,
) -> VolumeSource {
    let mut sources = sources.into_iter();
    let found = sources.find_map(|(slim, field, make)| {
        let path = spec.field(field);
        Some(make(problems.read(slim, &path)?, &path, labels, problems))
    });
    found.unwrap_or_default()
}

fn csi(
    slim: SlimSource,
    path: &FieldPath<'_>,
    _: &Labels,
    problems: &mut Problems,
) -> VolumeSource {
    let driver = problems.text(slim.driver, &path.field("driver"));
    let handle = problems.text(slim.volume_handle, &path.field("volumeHandle"));
    VolumeSource::Csi { driver, handle }
}

fn gce_pd(
    slim: SlimSource,
    path: &FieldPath<'_>,
    labels: &Labels,
    problems: &mut Problems,
) -> VolumeSource {
    vc_model::gce_pd(&problems.text(slim.pd_name, &path.field("pdName")), labels)
}

fn aws_ebs(
    slim: SlimSource,
    path: &FieldPath<'_>,
    _: &Labels,
    problems: &mut Problems,
) -> VolumeSource {
    vc_model::aws_ebs(&problems.text(slim.volume_id, &path.field("volumeID")))
}

fn azure_disk(
    slim: SlimSource,
    path: &FieldPath<'_>,
    _: &Labels,
    problems: &mut Problems,
) -> VolumeSource {
    let handle = problems.text(slim.disk_uri, &path.field("diskURI"));
    VolumeSource::Migrated { of: InTree::AzureDisk, handle }
}

fn cinder(
    slim: SlimSource,
    path: &FieldPath<'_>,
    _: &Labels,
    problems: &mut Problems,
) -> VolumeSource {
    let handle = problems.text(slim.volume_id, &path.field("volumeID"));
    VolumeSource::Migrated { of: InTree::Cinder, handle }
}
