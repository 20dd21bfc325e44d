//! Queues. Specification: core.md 3.9, C-33 for the state.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{QueueRecord, QueueState};
use vc_resource::Quantity;

use crate::metadata::{self, Metadata, SlimMetadata};
use crate::node_group::{SlimQueueAffinity, affinity, limits};
use crate::problems::{FieldPath, Problems};
use crate::soft::{LenientField, LenientMap, object};
use crate::{Kind, WireError, finish};

/// A queue as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimQueue {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimQueueSpec>,
    pub status: LenientField<SlimQueueStatus>,
}

/// `spec` of a queue.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimQueueSpec {
    pub weight: LenientField<i32>,
    pub priority: LenientField<i32>,
    pub reclaimable: LenientField<bool>,
    pub capability: LenientField<LenientMap<Quantity>>,
    pub deserved: LenientField<LenientMap<Quantity>>,
    pub guarantee: LenientField<SlimGuarantee>,
    pub parent: LenientField<Arc<str>>,
    pub dequeue_strategy: LenientField<Arc<str>>,
    pub affinity: LenientField<SlimQueueAffinity>,
}

/// `spec.guarantee` of a queue.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimGuarantee {
    pub resource: LenientField<LenientMap<Quantity>>,
}

/// `status` of a queue.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimQueueStatus {
    pub state: LenientField<Arc<str>>,
    pub allocated: LenientField<LenientMap<Quantity>>,
}

object!(SlimQueueSpec, SlimGuarantee, SlimQueueStatus);

impl SlimQueue {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<QueueRecord, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::Queue, self.metadata, &mut problems)?;
        record(metadata, self.spec, self.status, problems)
    }
}

/// The record of a queue whose metadata were decoded elsewhere.
///
/// # Errors
/// A field that is read is malformed.
pub fn queue_record(
    metadata: Metadata,
    spec: LenientField<SlimQueueSpec>,
    status: LenientField<SlimQueueStatus>,
) -> Result<QueueRecord, WireError> {
    record(metadata, spec, status, Problems::default())
}

fn record(
    metadata: Metadata,
    spec: LenientField<SlimQueueSpec>,
    status: LenientField<SlimQueueStatus>,
    mut problems: Problems,
) -> Result<QueueRecord, WireError> {
    let (path, status_path) = (FieldPath::root("spec"), FieldPath::root("status"));
    let spec = problems.or_default(spec, &path);
    let status = problems.or_default(status, &status_path);
    let guarantee = path.field("guarantee");
    let held = problems.or_default(spec.guarantee, &guarantee);
    let strategy = problems.text(spec.dequeue_strategy, &path.field("dequeueStrategy"));
    let state = problems.text(status.state, &status_path.field("state"));
    let allocated = status_path.field("allocated");
    // Amounts below zero stay: the plugins that read them say what they count as.
    let queue = QueueRecord {
        uid: metadata.uid.clone(),
        name: metadata.name.clone(),
        created_micros: metadata.created_micros,
        weight: problems.read(spec.weight, &path.field("weight")).unwrap_or(1),
        priority: problems.or_default(spec.priority, &path.field("priority")),
        reclaimable: problems.read(spec.reclaimable, &path.field("reclaimable")).unwrap_or(true),
        capability: problems.map(spec.capability, &path.field("capability")),
        deserved: problems.map(spec.deserved, &path.field("deserved")),
        guarantee: problems.map(held.resource, &guarantee.field("resource")),
        parent: problems.text(spec.parent, &path.field("parent")),
        fifo: &*strategy == "fifo",
        node_group_affinity: affinity(spec.affinity, &path.field("affinity"), &mut problems),
        node_group_limits: limits(&metadata.annotations),
        state: state_of(&state),
        annotations: metadata.annotations,
        status_allocated: problems.map(status.allocated, &allocated),
    };
    finish(queue, Kind::Queue, "", &metadata.name, problems)
}

fn state_of(text: &str) -> QueueState {
    match text {
        "" | "Open" => QueueState::Open,
        "Closed" => QueueState::Closed,
        "Closing" => QueueState::Closing,
        _ => QueueState::Unknown,
    }
}
