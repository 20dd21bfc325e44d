//! Nodes. Specification: core.md 3.8.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::NodeRecord;
use vc_resource::Quantity;

use crate::metadata::{self, Metadata, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::selector::{SlimTaint, taints};
use crate::soft::{LenientField, LenientList, LenientMap, object};
use crate::{Kind, WireError, finish_noted};

/// A node as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNode {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimNodeSpec>,
    pub status: LenientField<SlimNodeStatus>,
}

/// `spec` of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNodeSpec {
    pub unschedulable: LenientField<bool>,
    pub taints: LenientList<SlimTaint>,
}

/// `status` of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNodeStatus {
    pub allocatable: LenientField<LenientMap<Quantity>>,
    pub capacity: LenientField<LenientMap<Quantity>>,
    pub images: LenientList<SlimImage>,
}

/// A container image on a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimImage {
    pub names: LenientList<Arc<str>>,
    pub size_bytes: LenientField<i64>,
}

object!(
    SlimNode { "metadata" => metadata, "spec" => spec, "status" => status },
    SlimNodeSpec { "unschedulable" => unschedulable, "taints" => taints },
    SlimNodeStatus { "allocatable" => allocatable, "capacity" => capacity, "images" => images },
    SlimImage { "names" => names, "sizeBytes" => size_bytes },
);

impl SlimNode {
    /// The record, and what is wrong with the object besides.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<(NodeRecord, Vec<String>), WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::Node, self.metadata, &mut problems)?;
        record(metadata, self.spec, self.status, problems)
    }
}

/// The record of a node whose metadata were decoded elsewhere, and what is wrong with it besides.
///
/// # Errors
/// A field that is read is malformed.
pub fn node_record(
    metadata: Metadata,
    spec: LenientField<SlimNodeSpec>,
    status: LenientField<SlimNodeStatus>,
) -> Result<(NodeRecord, Vec<String>), WireError> {
    record(metadata, spec, status, Problems::default())
}

fn record(
    metadata: Metadata,
    spec: LenientField<SlimNodeSpec>,
    status: LenientField<SlimNodeStatus>,
    mut problems: Problems,
) -> Result<(NodeRecord, Vec<String>), WireError> {
    let (spec_path, status_path) = (FieldPath::root("spec"), FieldPath::root("status"));
    let spec = problems.or_default(spec, &spec_path);
    let status = problems.or_default(status, &status_path);
    let unschedulable = spec_path.field("unschedulable");
    let allocatable = status_path.field("allocatable");
    let node = NodeRecord {
        name: metadata.name.clone(),
        labels: metadata.labels,
        annotations: metadata.annotations,
        unschedulable: problems.or_default(spec.unschedulable, &unschedulable),
        taints: taints(spec.taints, &spec_path.field("taints"), &mut problems),
        allocatable: problems.resources(status.allocatable, &allocatable),
        capacity: problems.resources(status.capacity, &status_path.field("capacity")),
        images: images(status.images, &status_path.field("images"), &mut problems),
    };
    finish_noted(node, Kind::Node, "", &metadata.name, problems)
}

/// Each name with the size of its image in bytes.
fn images(
    slim: LenientList<SlimImage>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Vec<(Arc<str>, i64)> {
    let images = problems.list(slim, path, |problems, slim, path| {
        let size_bytes = problems.or_default(slim.size_bytes, &path.field("sizeBytes")).max(0);
        let names = problems.texts(slim.names, &path.field("names"));
        names.into_iter().map(move |name| (name, size_bytes))
    });
    images.into_iter().flatten().collect()
}
