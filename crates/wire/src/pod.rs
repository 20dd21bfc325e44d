//! Pods: the fields that requests, filters and session read. Specification: core.md 3.2-3.5,
//! plugins-nodes.md 4.1-4.4.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{PodCondition, PodPhase, PodRecord};
use vc_resource::Quantity;

use crate::brief::ShortText;
use crate::container::{self, SlimContainer, SlimContainerStatus, SlimResources};
use crate::device::{SlimPodClaim, SlimPodClaimStatus, pod_claims};
use crate::metadata::{self, Metadata, SlimMetadata};
use crate::pod_terms::{SlimSpread, pod_affinity, spread};
use crate::pod_volume::{SlimPodVolume, volumes};
use crate::problems::{FieldPath, Problems};
use crate::resource_strategy::resource_strategy;
use crate::selector::{SlimAffinity, SlimToleration, node_affinity, tolerations};
use crate::soft::{LenientField, LenientList, LenientMap, object};
use crate::word::word;
use crate::{Kind, Micros, WireError, named};

/// A pod as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPod {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimPodSpec>,
    pub status: LenientField<SlimPodStatus>,
}

/// `spec` of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodSpec {
    pub scheduler_name: LenientField<Arc<str>>,
    pub node_name: LenientField<Arc<str>>,
    pub priority: LenientField<i32>,
    pub priority_class_name: LenientField<Arc<str>>,
    pub preemption_policy: LenientField<Arc<str>>,
    pub containers: LenientList<SlimContainer>,
    pub init_containers: LenientList<SlimContainer>,
    pub overhead: LenientField<LenientMap<Quantity>>,
    pub resources: LenientField<SlimResources>,
    pub node_selector: LenientField<LenientMap<Arc<str>>>,
    pub affinity: LenientField<SlimAffinity>,
    pub tolerations: LenientList<SlimToleration>,
    pub scheduling_gates: LenientList<SlimNamed>,
    pub active_deadline_seconds: LenientField<i64>,
    pub topology_spread_constraints: LenientList<SlimSpread>,
    pub volumes: LenientList<SlimPodVolume>,
    pub resource_claims: LenientList<SlimPodClaim>,
}

/// An object of which only the name is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNamed {
    pub name: LenientField<Arc<str>>,
}

/// `status` of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodStatus {
    pub phase: LenientField<ShortText>,
    pub nominated_node_name: LenientField<Arc<str>>,
    pub start_time: LenientField<Micros>,
    pub conditions: LenientList<SlimPodCondition>,
    pub container_statuses: LenientList<SlimContainerStatus>,
    pub init_container_statuses: LenientList<SlimContainerStatus>,
    pub resource_claim_statuses: LenientList<SlimPodClaimStatus>,
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPodCondition {
    #[serde(rename = "type")]
    pub kind: LenientField<ShortText>,
    pub status: LenientField<ShortText>,
    pub reason: LenientField<Arc<str>>,
    pub message: LenientField<Arc<str>>,
    #[serde(rename = "lastTransitionTime")]
    pub changed: LenientField<Micros>,
}

object!(
    SlimPod { "metadata" => metadata, "spec" => spec, "status" => status },
    SlimPodSpec {
        "schedulerName" => scheduler_name,
        "nodeName" => node_name,
        "priority" => priority,
        "priorityClassName" => priority_class_name,
        "preemptionPolicy" => preemption_policy,
        "containers" => containers,
        "initContainers" => init_containers,
        "overhead" => overhead,
        "resources" => resources,
        "nodeSelector" => node_selector,
        "affinity" => affinity,
        "tolerations" => tolerations,
        "schedulingGates" => scheduling_gates,
        "activeDeadlineSeconds" => active_deadline_seconds,
        "topologySpreadConstraints" => topology_spread_constraints,
        "volumes" => volumes,
        "resourceClaims" => resource_claims,
    },
    SlimNamed { "name" => name },
    SlimPodStatus {
        "phase" => phase,
        "nominatedNodeName" => nominated_node_name,
        "startTime" => start_time,
        "conditions" => conditions,
        "containerStatuses" => container_statuses,
        "initContainerStatuses" => init_container_statuses,
        "resourceClaimStatuses" => resource_claim_statuses,
    },
    SlimPodCondition {
        "type" => kind,
        "status" => status,
        "reason" => reason,
        "message" => message,
        "lastTransitionTime" => changed,
    },
);

impl SlimPod {
    /// The record and what is wrong with the object. Where that matters to scheduling, the record
    /// is `invalid` and never placed (C-20).
    ///
    /// # Errors
    /// Namespace, name or uid cannot be read.
    pub fn to_record(self) -> Result<(PodRecord, Vec<String>), WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::Pod, self.metadata, &mut problems)?;
        Ok(record(metadata, self.spec, self.status, problems))
    }
}

/// The record of a pod whose metadata were decoded elsewhere, and what is wrong with the object.
pub fn pod_record(
    metadata: Metadata,
    spec: LenientField<SlimPodSpec>,
    status: LenientField<SlimPodStatus>,
) -> (PodRecord, Vec<String>) {
    record(metadata, spec, status, Problems::default())
}

fn record(
    metadata: Metadata,
    spec: LenientField<SlimPodSpec>,
    status: LenientField<SlimPodStatus>,
    mut problems: Problems,
) -> (PodRecord, Vec<String>) {
    let mut pod = empty(metadata);
    let (spec_path, status_path) = (FieldPath::root("spec"), FieldPath::root("status"));
    let mut spec = problems.or_default(spec, &spec_path);
    let claims = std::mem::take(&mut spec.resource_claims);
    read_spec(&mut pod, spec, &spec_path, &mut problems);
    let mut status = problems.or_default(status, &status_path);
    let made = std::mem::take(&mut status.resource_claim_statuses);
    pod.resource_claims = pod_claims(claims, made, &mut problems);
    read_status(&mut pod, status, &status_path, &mut problems);
    pod.resource_strategy = resource_strategy(&pod.annotations, &mut problems);
    pod.invalid = problems.worst();
    let problems = problems.of(&named(Kind::Pod, &pod.key.namespace, &pod.key.name));
    (pod, problems)
}

fn empty(metadata: Metadata) -> PodRecord {
    PodRecord {
        key: metadata.key(),
        uid: metadata.uid,
        created_micros: metadata.created_micros,
        deleting: metadata.deleting,
        deletion_micros: metadata.deletion_micros,
        labels: metadata.labels,
        annotations: metadata.annotations,
        owner_name: metadata.owner_name,
        controller: metadata.controller,
        ..PodRecord::default()
    }
}

fn read_spec(
    pod: &mut PodRecord,
    spec: SlimPodSpec,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) {
    pod.scheduler_name = problems.text(spec.scheduler_name, &path.field("schedulerName"));
    pod.node_name = non_empty(problems.read(spec.node_name, &path.field("nodeName")));
    pod.priority = problems.read(spec.priority, &path.field("priority"));
    let class = path.field("priorityClassName");
    pod.priority_class_name = problems.text(spec.priority_class_name, &class);
    let policy = problems.text(spec.preemption_policy, &path.field("preemptionPolicy"));
    pod.never_preempts = &*policy == "Never";
    pod.containers = container::all(spec.containers, &path.field("containers"), problems);
    let init = path.field("initContainers");
    pod.init_containers = container::all(spec.init_containers, &init, problems);
    pod.overhead = problems.resources(spec.overhead, &path.field("overhead"));
    let resources = path.field("resources");
    (pod.pod_requests, pod.pod_limits) = container::amounts(spec.resources, &resources, problems);
    let selector = path.field("nodeSelector");
    pod.node_selector = match spec.node_selector {
        LenientField::Absent => None,
        present => Some(problems.labels(present, &selector)),
    };
    pod.volumes = volumes(spec.volumes, &pod.key.name, &path.field("volumes"), problems);
    let affinity_path = path.field("affinity");
    let affinity = problems.or_default(spec.affinity, &affinity_path);
    pod.node_affinity = node_affinity(affinity.node_affinity, &affinity_path, problems);
    let sides = [affinity.pod_affinity, affinity.pod_anti_affinity];
    pod.pod_affinity = pod_affinity(sides, pod, &affinity_path, problems);
    let spread_path = path.field("topologySpreadConstraints");
    pod.spread = spread(spec.topology_spread_constraints, &pod.labels, &spread_path, problems);
    pod.tolerations = tolerations(spec.tolerations, &path.field("tolerations"), problems);
    let deadline = path.field("activeDeadlineSeconds");
    // A pod without a known end is scheduled like any other.
    pod.active_deadline_seconds = match spec.active_deadline_seconds {
        LenientField::Good(seconds) => Some(seconds),
        LenientField::Absent => None,
        LenientField::Bad(message) => {
            problems.note(&deadline, &message);
            None
        }
    };
    let gates = path.field("schedulingGates");
    pod.scheduling_gates = problems.list(spec.scheduling_gates, &gates, |problems, gate, path| {
        problems.text(gate.name, &path.field("name"))
    });
}

fn read_status(
    pod: &mut PodRecord,
    status: SlimPodStatus,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) {
    pod.phase = match &*problems.or_default(status.phase, &path.field("phase")) {
        "" | "Pending" => PodPhase::Pending,
        "Running" => PodPhase::Running,
        "Succeeded" => PodPhase::Succeeded,
        "Failed" => PodPhase::Failed,
        _ => PodPhase::Unknown,
    };
    let nominated = path.field("nominatedNodeName");
    pod.nominated_node = non_empty(problems.read(status.nominated_node_name, &nominated));
    let started = problems.read(status.start_time, &path.field("startTime"));
    pod.started_micros = started.map(|micros: Micros| micros.0);
    let regular = path.field("containerStatuses");
    container::in_place(&mut pod.containers, status.container_statuses, &regular, problems);
    let sidecars = path.field("initContainerStatuses");
    container::in_place(
        &mut pod.init_containers,
        status.init_container_statuses,
        &sidecars,
        problems,
    );
    let conditions = path.field("conditions");
    let mut resize_seen = false;
    problems.list(status.conditions, &conditions, |problems, condition, path| {
        let kind = problems.or_default(condition.kind, &path.field("type"));
        let reason = problems.text(condition.reason, &path.field("reason"));
        match &*kind {
            "PodResizePending" if !resize_seen => {
                resize_seen = true;
                pod.resize_infeasible = &*reason == "Infeasible";
            }
            "DisruptionTarget" => {
                pod.evicted_by_scheduler |= &*reason == "PreemptionByScheduler";
            }
            "PodScheduled" => {
                let time = path.field("lastTransitionTime");
                pod.scheduled_micros = match (&condition.status, condition.changed) {
                    (LenientField::Good(status), LenientField::Good(micros))
                        if &**status == "True" =>
                    {
                        Some(micros.0)
                    }
                    // It only ends a cooldown: what cannot be read is said and does no harm.
                    (_, LenientField::Bad(problem)) => {
                        problems.note(&time, &problem);
                        None
                    }
                    _ => None,
                };
                pod.scheduled_condition = Some(PodCondition {
                    status: word(&problems.or_default(condition.status, &path.field("status"))),
                    reason,
                    message: problems.text(condition.message, &path.field("message")),
                });
            }
            _ => {}
        }
    });
}

fn non_empty(text: Option<Arc<str>>) -> Option<Arc<str>> {
    text.filter(|text| !text.is_empty())
}
