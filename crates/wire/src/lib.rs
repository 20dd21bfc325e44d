//! Kubernetes objects as slim types, and their way into cluster events (core.md 3.2-3.9).
//! One file per kind; reading is lenient, and what is malformed is named with its path.

use serde::Deserialize;
use serde_json::Value;
use vc_model::{
    ClusterEvent, DeviceKind, DeviceObject, SelectorKind, SelectorObject, StorageKind,
    StorageObject,
};

mod annotations;
mod brief;
mod budget;
mod claim_status;
mod container;
mod device;
mod extender;
mod hyper_node;
mod kind;
mod metadata;
mod namespace;
mod node;
mod node_group;
mod node_metric;
mod node_shard;
mod numa;
mod pod;
mod pod_group;
mod pod_terms;
mod pod_volume;
mod priority_class;
mod problems;
mod queue;
mod quota;
mod resource_strategy;
mod scan;
mod selecting;
mod selector;
mod soft;
mod storage;
mod time;
mod usage_state;
mod volume;
mod word;

pub use annotations::{
    Annotations, GroupAnnotations, KeptAnnotations, is_read as is_read_annotation,
};
pub use brief::{OwnKey, ShortText};
pub use budget::{SlimBudget, SlimBudgetSpec, SlimBudgetStatus};
pub use claim_status::{
    ClaimLost, DELETE_PROTECTION, allocation_json, check_claim, deallocate_claim, protect_claim,
    reserve_claim, unreserve_claim,
};
pub use container::{SlimContainer, SlimContainerStatus, SlimPort, SlimResources};
pub use device::{SlimDeviceClass, SlimPodClaim, SlimResourceClaim, SlimResourceSlice};
pub use extender::{
    ExtenderAnswerFields, ExtenderFields, UnreadableAnswer, extender_job, extender_node,
    extender_queue, extender_session, extender_task, read_extender_answer,
};
pub use hyper_node::SlimHyperNode;
pub use kind::{Kind, kind_of};
pub use metadata::{Metadata, SlimMetadata, SlimOwner};
pub use namespace::SlimNamespace;
pub use node::{SlimNode, SlimNodeSpec, SlimNodeStatus, node_record};
pub use node_group::{SlimNodeGroups, SlimQueueAffinity};
pub use node_metric::{NodeMetric, node_metrics};
pub use node_shard::{SlimNodeShard, SlimNodeShardSpec, SlimNodeShardStatus};
pub use numa::SlimNumaTopology;
pub use pod::{SlimNamed, SlimPod, SlimPodCondition, SlimPodSpec, SlimPodStatus, pod_record};
pub use pod_group::{
    SlimNetworkTopology, SlimPodGroup, SlimPodGroupCondition, SlimPodGroupSpec, SlimPodGroupStatus,
    SlimSubGroupPolicy, pod_group_record,
};
pub use pod_volume::{SlimClaimName, SlimDisk, SlimPodVolume};
pub use priority_class::{SlimPriorityClass, priority_class_record};
pub use queue::{SlimGuarantee, SlimQueue, SlimQueueSpec, SlimQueueStatus, queue_record};
pub use quota::{SlimQuota, SlimQuotaStatus};
pub use scan::scanned;
pub use selecting::{
    SlimByLabels, SlimBySelector, SlimReplicaSet, SlimReplicationController, SlimService,
    SlimStatefulSet,
};
pub use selector::{
    SlimAffinity, SlimLabelSelector, SlimNodeAffinity, SlimNodeSelector, SlimPreferred,
    SlimRequirement, SlimTaint, SlimTerm, SlimToleration,
};
pub use soft::{FieldShape, LenientField, LenientList, LenientMap, RawJson};
pub use storage::{
    SlimCsiDriver, SlimCsiDriverSpec, SlimCsiNode, SlimCsiNodeSpec, SlimStorageCapacity,
    SlimStorageClass, SlimVolumeAttachment,
};
pub use time::{Micros, format_time, parse_time};
pub use usage_state::{
    BAD_USAGE_KEY, EXACT_USAGE_KEY, ReadUsage, USAGE_KEY, UsageTexts, read_usage, usage_texts,
};
pub use volume::{
    SELECTED_NODE, SlimClaimSpec, SlimPersistentVolume, SlimPersistentVolumeClaim, SlimVolumeSpec,
};

use problems::Problems;

/// Why an object cannot be used at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// There is no saying which object this is.
    #[error("{}: {problem}", kind.noun())]
    Identity { kind: Kind, problem: String },
    /// Fields that are read are malformed; each text names object and path.
    #[error("{}", .0.join("\n"))]
    Malformed(Vec<String>),
}

/// A decoded object.
#[derive(Clone, Debug)]
pub struct DecodedEvent {
    pub event: ClusterEvent,
    /// Malformed parts, each with object and path. A pod that cannot be placed because of one is
    /// `invalid`.
    pub problems: Vec<String>,
}

/// The event of an object that was added or changed.
///
/// # Errors
/// The object cannot be identified, or it is not a pod and malformed.
pub fn decode(kind: Kind, object: &Value) -> Result<DecodedEvent, WireError> {
    use ClusterEvent as Event;
    let event = match kind {
        Kind::Pod => {
            let (pod, problems) = slim::<SlimPod>(kind, object)?.to_record()?;
            return Ok(DecodedEvent { event: Event::PodApplied(Box::new(pod)), problems });
        }
        Kind::Node => {
            let (node, problems) = slim::<SlimNode>(kind, object)?.to_record()?;
            return Ok(DecodedEvent { event: Event::NodeApplied(Box::new(node)), problems });
        }
        Kind::PodGroup => {
            let (group, problems) = slim::<SlimPodGroup>(kind, object)?.to_record()?;
            return Ok(DecodedEvent { event: Event::PodGroupApplied(Box::new(group)), problems });
        }
        Kind::Queue => Event::QueueApplied(Box::new(slim::<SlimQueue>(kind, object)?.to_record()?)),
        Kind::PriorityClass => {
            let record = slim::<SlimPriorityClass>(kind, object)?.to_record()?;
            Event::PriorityClassApplied(record)
        }
        Kind::NodeShard => {
            let record = slim::<SlimNodeShard>(kind, object)?.to_record()?;
            Event::NodeShardApplied(Box::new(record))
        }
        Kind::HyperNode => {
            let (record, problems) = slim::<SlimHyperNode>(kind, object)?.to_record()?;
            return Ok(DecodedEvent { event: Event::HyperNodeApplied(Box::new(record)), problems });
        }
        Kind::NumaTopology => {
            let (record, problems) = slim::<SlimNumaTopology>(kind, object)?.to_record()?;
            let event = Event::NumaTopologyApplied(Box::new(record));
            return Ok(DecodedEvent { event, problems });
        }
        Kind::PodDisruptionBudget => {
            let (budget, problems) = slim::<SlimBudget>(kind, object)?.to_record()?;
            return Ok(DecodedEvent { event: Event::BudgetApplied(Box::new(budget)), problems });
        }
        Kind::ResourceQuota => {
            let (quota, problems) = slim::<SlimQuota>(kind, object)?.to_record()?;
            return Ok(DecodedEvent { event: Event::QuotaApplied(Box::new(quota)), problems });
        }
        Kind::Namespace => {
            let metadata = slim::<SlimNamespace>(kind, object)?.to_record()?;
            Event::NamespaceApplied { name: metadata.name, labels: metadata.labels }
        }
        Kind::ResourceClaim => {
            let claim = slim::<SlimResourceClaim>(kind, object)?.to_record()?;
            Event::DeviceApplied(Box::new(DeviceObject::Claim(claim)))
        }
        Kind::DeviceClass => {
            let class = slim::<SlimDeviceClass>(kind, object)?.to_record()?;
            Event::DeviceApplied(Box::new(DeviceObject::Class(class)))
        }
        Kind::ResourceSlice => {
            let slice = slim::<SlimResourceSlice>(kind, object)?.to_record()?;
            Event::DeviceApplied(Box::new(DeviceObject::Slice(slice)))
        }
        Kind::Service => return Ok(selecting(slim::<SlimService>(kind, object)?.to_record()?)),
        Kind::ReplicationController => {
            return Ok(selecting(slim::<SlimReplicationController>(kind, object)?.to_record()?));
        }
        Kind::ReplicaSet => {
            return Ok(selecting(slim::<SlimReplicaSet>(kind, object)?.to_record()?));
        }
        Kind::StatefulSet => {
            return Ok(selecting(slim::<SlimStatefulSet>(kind, object)?.to_record()?));
        }
        _ => {
            let object = storage_object(kind, object)?;
            Event::StorageApplied(Box::new(object))
        }
    };
    Ok(DecodedEvent { event, problems: Vec::new() })
}

fn selecting((object, problems): (SelectorObject, Vec<String>)) -> DecodedEvent {
    DecodedEvent { event: ClusterEvent::SelectorApplied(Box::new(object)), problems }
}

fn storage_object(kind: Kind, object: &Value) -> Result<StorageObject, WireError> {
    use StorageObject as Object;
    Ok(match kind {
        Kind::PersistentVolume => {
            Object::Volume(slim::<SlimPersistentVolume>(kind, object)?.to_record()?)
        }
        Kind::PersistentVolumeClaim => {
            Object::Claim(slim::<SlimPersistentVolumeClaim>(kind, object)?.to_record()?)
        }
        Kind::StorageClass => Object::Class(slim::<SlimStorageClass>(kind, object)?.to_record()?),
        Kind::CsiNode => Object::CsiNode(slim::<SlimCsiNode>(kind, object)?.to_record()?),
        Kind::CsiDriver => Object::CsiDriver(slim::<SlimCsiDriver>(kind, object)?.to_record()?),
        Kind::StorageCapacity => {
            Object::Capacity(slim::<SlimStorageCapacity>(kind, object)?.to_record()?)
        }
        _ => Object::Attachment(slim::<SlimVolumeAttachment>(kind, object)?.to_record()?),
    })
}

/// The event of an object that is gone.
///
/// # Errors
/// The object cannot be identified.
pub fn decode_deleted(kind: Kind, object: &Value) -> Result<ClusterEvent, WireError> {
    let metadata = slim::<SlimNamespace>(kind, object)?.metadata;
    let metadata = metadata::read(kind, metadata, &mut Problems::default())?;
    Ok(deleted(kind, metadata))
}

/// The event of an object that is gone.
pub fn deleted(kind: Kind, metadata: Metadata) -> ClusterEvent {
    let key = metadata.key();
    let name = metadata.name;
    match kind {
        Kind::Pod => ClusterEvent::PodDeleted { key, uid: metadata.uid },
        Kind::PodGroup => ClusterEvent::PodGroupDeleted { key },
        Kind::PodDisruptionBudget => ClusterEvent::BudgetDeleted { key },
        Kind::ResourceQuota => ClusterEvent::QuotaDeleted { key },
        Kind::Node => ClusterEvent::NodeDeleted { name },
        Kind::Queue => ClusterEvent::QueueDeleted { name },
        Kind::PriorityClass => ClusterEvent::PriorityClassDeleted { name },
        Kind::Namespace => ClusterEvent::NamespaceDeleted { name },
        Kind::NodeShard => ClusterEvent::NodeShardDeleted { name },
        Kind::HyperNode => ClusterEvent::HyperNodeDeleted { name },
        Kind::NumaTopology => ClusterEvent::NumaTopologyDeleted { name },
        Kind::PersistentVolume => gone(StorageKind::Volume, key),
        Kind::PersistentVolumeClaim => gone(StorageKind::Claim, key),
        Kind::StorageClass => gone(StorageKind::Class, key),
        Kind::CsiNode => gone(StorageKind::CsiNode, key),
        Kind::CsiDriver => gone(StorageKind::CsiDriver, key),
        Kind::StorageCapacity => gone(StorageKind::Capacity, key),
        Kind::VolumeAttachment => gone(StorageKind::Attachment, key),
        Kind::ResourceClaim => no_device(DeviceKind::Claim, key),
        Kind::DeviceClass => no_device(DeviceKind::Class, key),
        Kind::ResourceSlice => no_device(DeviceKind::Slice, key),
        Kind::Service => no_selector(SelectorKind::Service, key),
        Kind::ReplicationController => no_selector(SelectorKind::ReplicationController, key),
        Kind::ReplicaSet => no_selector(SelectorKind::ReplicaSet, key),
        Kind::StatefulSet => no_selector(SelectorKind::StatefulSet, key),
    }
}

fn gone(kind: StorageKind, key: vc_model::ObjectKey) -> ClusterEvent {
    ClusterEvent::StorageDeleted { kind, key }
}

fn no_device(kind: DeviceKind, key: vc_model::ObjectKey) -> ClusterEvent {
    ClusterEvent::DeviceDeleted { kind, key }
}

fn no_selector(kind: SelectorKind, key: vc_model::ObjectKey) -> ClusterEvent {
    ClusterEvent::SelectorDeleted { kind, key }
}

/// Soft fields make the only possible failure that the whole is not an object.
fn slim<'de, T: Deserialize<'de>>(kind: Kind, object: &'de Value) -> Result<T, WireError> {
    T::deserialize(object).map_err(|error| WireError::Identity { kind, problem: error.to_string() })
}

/// `pod c1/p1` or `node n1`.
fn named(kind: Kind, namespace: &str, name: &str) -> String {
    match namespace {
        "" => format!("{} {name}", kind.noun()),
        _ => format!("{} {namespace}/{name}", kind.noun()),
    }
}

/// The record if nothing that it needs is malformed.
fn finish<T>(
    record: T,
    kind: Kind,
    namespace: &str,
    name: &str,
    problems: Problems,
) -> Result<T, WireError> {
    finish_noted(record, kind, namespace, name, problems).map(|(record, _)| record)
}

/// The record if nothing that it needs is malformed, and what is wrong with it besides.
fn finish_noted<T>(
    record: T,
    kind: Kind,
    namespace: &str,
    name: &str,
    problems: Problems,
) -> Result<(T, Vec<String>), WireError> {
    let is_usable = problems.worst().is_none();
    let problems = match problems.len() {
        0 => Vec::new(),
        _ => problems.of(&named(kind, namespace, name)),
    };
    if is_usable { Ok((record, problems)) } else { Err(WireError::Malformed(problems)) }
}
