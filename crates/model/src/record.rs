//! Objects as they come in: plain data with exact quantities, made by the edge from the API's JSON. What an
//! object means for the tables is decided in `cluster`. Specification: core.md 3.2-3.9.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use vc_resource::Quantity;

use crate::selector::{HostPort, LabelSelector, Labels, NodeAffinity, Taint, Toleration};

/// Namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The key of `namespace/name`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// A Kubernetes resource list, in the order of the object.
pub type ResourceList = Vec<(Arc<str>, Quantity)>;

/// `status.phase` of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodPhase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

/// What requests and filters read of a container.
#[derive(Clone, Debug, Default)]
pub struct ContainerRecord {
    pub name: Arc<str>,
    pub requests: ResourceList,
    /// An init container with `restartPolicy: Always`.
    pub restartable: bool,
    pub host_ports: Vec<HostPort>,
    /// Of the container's status, when it has `.resources`: the amounts in place (in-place resize, 3.5).
    pub in_place: Option<InPlace>,
}

/// Amounts that a resized container holds.
#[derive(Clone, Debug, Default)]
pub struct InPlace {
    pub requests: ResourceList,
    pub allocated: ResourceList,
}

/// The `PodScheduled` condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCondition {
    pub status: Arc<str>,
    pub reason: Arc<str>,
    pub message: Arc<str>,
}

/// A pod.
#[derive(Clone, Debug)]
pub struct PodRecord {
    pub key: ObjectKey,
    pub uid: Arc<str>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// A deletionTimestamp is set.
    pub deleting: bool,
    pub labels: Labels,
    /// Those that something reads; the edge may leave out the others.
    pub annotations: Labels,
    pub scheduler_name: Arc<str>,
    pub node_name: Option<Arc<str>>,
    pub phase: PodPhase,
    pub priority: Option<i32>,
    pub priority_class_name: Arc<str>,
    /// `preemptionPolicy: Never`.
    pub never_preempts: bool,
    pub containers: Vec<ContainerRecord>,
    pub init_containers: Vec<ContainerRecord>,
    pub overhead: ResourceList,
    /// `spec.resources.requests`.
    pub pod_requests: ResourceList,
    /// `None`: absent; an empty map matches every node but is not absent (plugins-nodes.md 4.2).
    pub node_selector: Option<BTreeMap<Arc<str>, Arc<str>>>,
    pub node_affinity: NodeAffinity,
    pub tolerations: Vec<Toleration>,
    pub scheduling_gates: Vec<Arc<str>>,
    /// The first `PodResizePending` condition has reason `Infeasible`.
    pub resize_infeasible: bool,
    /// Condition `DisruptionTarget` with reason `PreemptionByScheduler` is present (A46).
    pub evicted_by_scheduler: bool,
    pub scheduled_condition: Option<PodCondition>,
    pub nominated_node: Option<Arc<str>>,
    /// The object could not be read completely; the pod is never placed and carries this reason (C-20).
    pub invalid: Option<Arc<str>>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct NodeRecord {
    pub name: Arc<str>,
    pub labels: Labels,
    /// Those that something reads.
    pub annotations: Labels,
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
    pub allocatable: ResourceList,
    pub capacity: ResourceList,
}

/// `status.phase` of a PodGroup; empty counts as Pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodGroupPhase {
    #[default]
    Pending,
    Inqueue,
    Running,
    Unknown,
    Completed,
}

impl PodGroupPhase {
    /// The text of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Inqueue => "Inqueue",
            Self::Running => "Running",
            Self::Unknown => "Unknown",
            Self::Completed => "Completed",
        }
    }
}

/// A condition of a PodGroup. Equality ignores nothing; see [`PodGroupCondition::same_content`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodGroupCondition {
    pub kind: Arc<str>,
    pub status: Arc<str>,
    pub transition_id: Arc<str>,
    /// RFC 3339, as in the API.
    pub last_transition_time: Arc<str>,
    pub reason: Arc<str>,
    pub message: Arc<str>,
}

impl PodGroupCondition {
    /// Equal but for time and transition id (core.md 7.6).
    pub fn same_content(&self, other: &Self) -> bool {
        (&self.kind, &self.status, &self.reason, &self.message)
            == (&other.kind, &other.status, &other.reason, &other.message)
    }
}

/// `status` of a PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodGroupStatus {
    pub phase: PodGroupPhase,
    pub conditions: Vec<PodGroupCondition>,
    pub running: i32,
    pub succeeded: i32,
    pub failed: i32,
}

/// `spec.networkTopology` of a PodGroup or sub-group policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkTopology {
    pub soft: bool,
    pub highest_tier_allowed: Option<i32>,
    pub highest_tier_name: Arc<str>,
}

/// One entry of `spec.subGroupPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubGroupPolicy {
    pub name: Arc<str>,
    pub network_topology: Option<NetworkTopology>,
    /// Absent: 1.
    pub sub_group_size: Option<i32>,
    /// Absent: 0.
    pub min_sub_groups: i32,
    pub label_selector: Option<LabelSelector>,
    pub match_label_keys: Vec<Arc<str>>,
}

/// A PodGroup.
#[derive(Clone, Debug)]
pub struct PodGroupRecord {
    pub key: ObjectKey,
    pub uid: Arc<str>,
    /// Opaque; compared as a number where both are one.
    pub resource_version: Arc<str>,
    pub created_micros: i64,
    pub labels: Labels,
    pub annotations: Labels,
    pub min_member: i32,
    pub min_task_member: BTreeMap<Arc<str>, i32>,
    /// Empty: the default queue.
    pub queue: Arc<str>,
    pub priority_class_name: Arc<str>,
    pub min_resources: Option<ResourceList>,
    pub network_topology: Option<NetworkTopology>,
    pub sub_group_policies: Vec<SubGroupPolicy>,
    pub status: PodGroupStatus,
}

/// `status.state` of a queue. An empty state is Open (C-33).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueueState {
    #[default]
    Open,
    Closed,
    Closing,
    Unknown,
}

impl QueueState {
    /// The text of the API.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Open => "Open",
            Self::Closed => "Closed",
            Self::Closing => "Closing",
            Self::Unknown => "Unknown",
        }
    }
}

/// A queue.
#[derive(Clone, Debug, Default)]
pub struct QueueRecord {
    pub name: Arc<str>,
    pub created_micros: i64,
    /// Absent: 1.
    pub weight: i32,
    pub priority: i32,
    /// Absent: true.
    pub reclaimable: bool,
    pub capability: ResourceList,
    pub deserved: ResourceList,
    pub guarantee: ResourceList,
    /// Empty: `root`.
    pub parent: Arc<str>,
    /// `dequeueStrategy: fifo` (D38).
    pub fifo: bool,
    pub state: QueueState,
    pub annotations: Labels,
    /// `status.allocated` as last written by anyone.
    pub status_allocated: ResourceList,
}

/// A PriorityClass.
#[derive(Clone, Debug)]
pub struct PriorityClassRecord {
    pub name: Arc<str>,
    pub value: i32,
    pub global_default: bool,
}
