//! PodGroups. Specification: core.md 3.9.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{
    NetworkTopology, PodGroupCondition, PodGroupPhase, PodGroupRecord, PodGroupStatus,
    SubGroupPolicy,
};
use vc_resource::Quantity;

use crate::annotations::GroupAnnotations;
use crate::metadata::{self, Metadata, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::selector::{SlimLabelSelector, label_selector};
use crate::soft::{LenientField, LenientList, LenientMap, object};
use crate::{Kind, WireError, finish_noted};

/// A PodGroup as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPodGroup {
    pub metadata: LenientField<SlimMetadata<GroupAnnotations>>,
    pub spec: LenientField<SlimPodGroupSpec>,
    pub status: LenientField<SlimPodGroupStatus>,
}

/// `spec` of a PodGroup.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodGroupSpec {
    pub min_member: LenientField<i32>,
    pub min_task_member: LenientField<LenientMap<i32>>,
    pub queue: LenientField<Arc<str>>,
    pub priority_class_name: LenientField<Arc<str>>,
    pub min_resources: LenientField<LenientMap<Quantity>>,
    pub network_topology: LenientField<SlimNetworkTopology>,
    pub sub_group_policy: LenientList<SlimSubGroupPolicy>,
}

/// `networkTopology` of a PodGroup or a sub-group policy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimNetworkTopology {
    pub mode: LenientField<Arc<str>>,
    pub highest_tier_allowed: LenientField<i32>,
    pub highest_tier_name: LenientField<Arc<str>>,
}

/// An entry of `subGroupPolicy`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimSubGroupPolicy {
    pub name: LenientField<Arc<str>>,
    pub network_topology: LenientField<SlimNetworkTopology>,
    pub sub_group_size: LenientField<i32>,
    pub min_sub_groups: LenientField<i32>,
    pub label_selector: LenientField<SlimLabelSelector>,
    pub match_label_keys: LenientList<Arc<str>>,
}

/// `status` of a PodGroup.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPodGroupStatus {
    pub phase: LenientField<Arc<str>>,
    pub conditions: LenientList<SlimPodGroupCondition>,
    pub running: LenientField<i32>,
    pub succeeded: LenientField<i32>,
    pub failed: LenientField<i32>,
}

/// A condition of a PodGroup.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodGroupCondition {
    #[serde(rename = "type")]
    pub kind: LenientField<Arc<str>>,
    pub status: LenientField<Arc<str>>,
    #[serde(rename = "transitionID")]
    pub transition_id: LenientField<Arc<str>>,
    pub last_transition_time: LenientField<Arc<str>>,
    pub reason: LenientField<Arc<str>>,
    pub message: LenientField<Arc<str>>,
}

object!(
    SlimPodGroup { "metadata" => metadata, "spec" => spec, "status" => status },
    SlimPodGroupSpec {
        "minMember" => min_member,
        "minTaskMember" => min_task_member,
        "queue" => queue,
        "priorityClassName" => priority_class_name,
        "minResources" => min_resources,
        "networkTopology" => network_topology,
        "subGroupPolicy" => sub_group_policy,
    },
    SlimNetworkTopology,
    SlimSubGroupPolicy,
    SlimPodGroupStatus {
        "phase" => phase,
        "conditions" => conditions,
        "running" => running,
        "succeeded" => succeeded,
        "failed" => failed,
    },
    SlimPodGroupCondition {
        "type" => kind,
        "status" => status,
        "transitionID" => transition_id,
        "lastTransitionTime" => last_transition_time,
        "reason" => reason,
        "message" => message,
    },
);

impl SlimPodGroup {
    /// The record, and what is wrong with the object besides.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<(PodGroupRecord, Vec<String>), WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::PodGroup, self.metadata, &mut problems)?;
        record(metadata, self.spec, self.status, problems)
    }
}

/// The record of a PodGroup whose metadata were decoded elsewhere, and what is wrong with it besides.
///
/// # Errors
/// A field that is read is malformed.
pub fn pod_group_record(
    metadata: Metadata,
    spec: LenientField<SlimPodGroupSpec>,
    status: LenientField<SlimPodGroupStatus>,
) -> Result<(PodGroupRecord, Vec<String>), WireError> {
    record(metadata, spec, status, Problems::default())
}

fn record(
    metadata: Metadata,
    spec: LenientField<SlimPodGroupSpec>,
    status: LenientField<SlimPodGroupStatus>,
    mut problems: Problems,
) -> Result<(PodGroupRecord, Vec<String>), WireError> {
    let path = FieldPath::root("spec");
    let spec = problems.or_default(spec, &path);
    let min_resources = path.field("minResources");
    let key = metadata.key();
    let pod_group = PodGroupRecord {
        key: key.clone(),
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        created_micros: metadata.created_micros,
        labels: metadata.labels,
        annotations: metadata.annotations,
        owner_name: metadata.owner_name,
        controller_uid: metadata.controller_uid,
        controller_kind: metadata.controller_kind,
        min_member: problems.or_default(spec.min_member, &path.field("minMember")),
        min_task_member: problems
            .map(spec.min_task_member, &path.field("minTaskMember"))
            .into_iter()
            .collect(),
        queue: problems.name(spec.queue, &path.field("queue")),
        priority_class_name: problems
            .name(spec.priority_class_name, &path.field("priorityClassName")),
        min_resources: match spec.min_resources {
            LenientField::Absent => None,
            present => Some(problems.resources(present, &min_resources)),
        },
        network_topology: topology(spec.network_topology, &path, &mut problems),
        sub_group_policies: problems.list(
            spec.sub_group_policy,
            &path.field("subGroupPolicy"),
            sub_group,
        ),
        status: status_record(status, &mut problems),
    };
    finish_noted(pod_group, Kind::PodGroup, &key.namespace, &key.name, problems)
}

fn topology(
    slim: LenientField<SlimNetworkTopology>,
    parent: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<NetworkTopology> {
    let path = parent.field("networkTopology");
    let slim = problems.read(slim, &path)?;
    let mode = problems.text(slim.mode, &path.field("mode"));
    let tier = path.field("highestTierAllowed");
    Some(NetworkTopology {
        soft: &*mode == "soft",
        highest_tier_allowed: problems.read(slim.highest_tier_allowed, &tier),
        highest_tier_name: problems.name(slim.highest_tier_name, &path.field("highestTierName")),
    })
}

fn sub_group(
    problems: &mut Problems,
    slim: SlimSubGroupPolicy,
    path: &FieldPath<'_>,
) -> SubGroupPolicy {
    let selector = path.field("labelSelector");
    SubGroupPolicy {
        name: problems.name(slim.name, &path.field("name")),
        network_topology: topology(slim.network_topology, path, problems),
        sub_group_size: problems.read(slim.sub_group_size, &path.field("subGroupSize")),
        min_sub_groups: problems.or_default(slim.min_sub_groups, &path.field("minSubGroups")),
        label_selector: problems
            .read(slim.label_selector, &selector)
            .map(|slim| label_selector(slim, &selector, problems)),
        match_label_keys: problems.texts(slim.match_label_keys, &path.field("matchLabelKeys")),
    }
}

fn status_record(
    slim: LenientField<SlimPodGroupStatus>,
    problems: &mut Problems,
) -> PodGroupStatus {
    let path = FieldPath::root("status");
    let slim = problems.or_default(slim, &path);
    let phase = path.field("phase");
    let text = problems.text(slim.phase, &phase);
    PodGroupStatus {
        is_phase_empty: text.is_empty(),
        phase: match &*text {
            "Inqueue" => PodGroupPhase::Inqueue,
            "Running" => PodGroupPhase::Running,
            "Unknown" => PodGroupPhase::Unknown,
            "Completed" => PodGroupPhase::Completed,
            "" | "Pending" => PodGroupPhase::Pending,
            other => {
                problems.add(&phase, &format!("unknown phase: {other:?}"));
                PodGroupPhase::Pending
            }
        },
        conditions: problems.list(slim.conditions, &path.field("conditions"), condition).into(),
        running: problems.or_default(slim.running, &path.field("running")),
        succeeded: problems.or_default(slim.succeeded, &path.field("succeeded")),
        failed: problems.or_default(slim.failed, &path.field("failed")),
    }
}

fn condition(
    problems: &mut Problems,
    slim: SlimPodGroupCondition,
    path: &FieldPath<'_>,
) -> PodGroupCondition {
    let time = path.field("lastTransitionTime");
    PodGroupCondition {
        kind: problems.text(slim.kind, &path.field("type")),
        status: problems.text(slim.status, &path.field("status")),
        transition_id: problems.text(slim.transition_id, &path.field("transitionID")),
        last_transition_time: problems.text(slim.last_transition_time, &time),
        reason: problems.text(slim.reason, &path.field("reason")),
        message: problems.text(slim.message, &path.field("message")),
    }
}
