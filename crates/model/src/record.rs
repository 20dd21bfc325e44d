//! Objects as the watch delivers them: plain data with exact quantities. The edge decodes them from
//! the API's JSON; `cluster` decides what they mean for the tables. Specification: core.md 3.2-3.9.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_resource::Quantity;

use crate::default_spread::Controller;
use crate::device::PodResourceClaim;
use crate::group_controller::GroupController;
use crate::node_group::{NodeGroupAffinity, NodeGroupLimits};
use crate::pod_affinity::{PodAffinity, SpreadConstraint};
use crate::resource_strategy::PodResourceStrategy;
use crate::selector::{HostPort, LabelSelector, Labels, NodeAffinity, Taint, Toleration};
use crate::volume::PodVolume;

/// Namespace and name. The order is that of the text `namespace/name`, the uid of a job (A10: jobs
/// are visited in uid order).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.namespace == other.namespace {
            return self.name.cmp(&other.name);
        }
        // If one namespace is a prefix of the other, the slash decides.
        let (l, r) = (self.namespace.as_bytes(), other.namespace.as_bytes());
        let common = l.len().min(r.len());
        let next = |namespace: &[u8]| namespace.get(common).copied().unwrap_or(b'/');
        l[..common].cmp(&r[..common]).then_with(|| next(l).cmp(&next(r))).then_with(|| l.cmp(r))
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ObjectKey {
    /// Returns the key for `namespace/name`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.namespace)?;
        out.write_str("/")?;
        out.write_str(&self.name)
    }
}

/// A Kubernetes resource list, in the order of the object.
pub type ResourceList = Vec<(Arc<str>, Quantity)>;

/// `status.phase` of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodPhase {
    /// The pod is accepted and not all containers run; also the phase if the field is empty.
    #[default]
    Pending,
    /// At least one container runs.
    Running,
    /// All containers have ended successfully.
    Succeeded,
    /// All containers have ended, at least one with a failure.
    Failed,
    /// `Unknown` or any other text.
    Unknown,
}

/// The fields of a container that requests and filters read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerRecord {
    /// Name, unique in the pod.
    pub name: Arc<str>,
    /// `image`.
    pub image: Arc<str>,
    /// `resources.requests`.
    pub requests: ResourceList,
    /// `resources.limits` of cpu and memory.
    pub limits: ResourceList,
    /// True if the limits of cpu and memory are given, above 0 and equal to the requests.
    pub is_guaranteed: bool,
    /// True for an init container with `restartPolicy: Always`.
    pub restartable: bool,
    /// `ports` that have a host port.
    pub host_ports: Vec<HostPort>,
    /// Amounts in the container's status (core.md 3.5: in-place resize). `None` if the status has
    /// no `resources`.
    pub in_place: Option<InPlace>,
}

/// Amounts that a resized container holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InPlace {
    /// `resources.requests` of the status.
    pub requests: ResourceList,
    /// `allocatedResources` of the status.
    pub allocated: ResourceList,
}

/// The `PodScheduled` condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodCondition {
    /// `True`, `False` or `Unknown`.
    pub status: Arc<str>,
    /// Reason, one word in CamelCase.
    pub reason: Arc<str>,
    /// Message for users.
    pub message: Arc<str>,
}

/// A pod as the watch delivers it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PodRecord {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// True if a deletionTimestamp is set.
    pub deleting: bool,
    /// `metadata.deletionTimestamp`, at which the grace period ends, in microseconds since 1970. `None`
    /// if it is absent or unreadable.
    pub deletion_micros: Option<i64>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations`. The edge may omit annotations that the scheduler does not read.
    pub annotations: Labels,
    /// Name of the first owner reference, by which work is divided (core.md 4.4). `None` if there
    /// is no owner.
    pub owner_name: Option<Arc<str>>,
    /// `spec.schedulerName`.
    pub scheduler_name: Arc<str>,
    /// `spec.nodeName`. `None` if it is empty: the pod is not placed.
    pub node_name: Option<Arc<str>>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// `spec.priority`. `None` if absent, which counts as 1.
    pub priority: Option<i32>,
    /// `spec.priorityClassName`; empty if none.
    pub priority_class_name: Arc<str>,
    /// True for `preemptionPolicy: Never`.
    pub never_preempts: bool,
    /// `spec.containers`.
    pub containers: Vec<ContainerRecord>,
    /// `spec.initContainers`, in order.
    pub init_containers: Vec<ContainerRecord>,
    /// `spec.overhead`.
    pub overhead: ResourceList,
    /// `spec.resources.requests`.
    pub pod_requests: ResourceList,
    /// `spec.resources.limits` of cpu and memory.
    pub pod_limits: ResourceList,
    /// `spec.nodeSelector`. `None` if absent, which differs from an empty map (plugins-nodes.md
    /// 4.2).
    pub node_selector: Option<Labels>,
    /// `spec.affinity.nodeAffinity`.
    pub node_affinity: NodeAffinity,
    /// `spec.tolerations`.
    pub tolerations: Vec<Toleration>,
    /// `spec.affinity.podAffinity` and `podAntiAffinity`. `None` if the pod has no such term.
    pub pod_affinity: Option<Arc<PodAffinity>>,
    /// `spec.topologySpreadConstraints`.
    pub spread: Vec<SpreadConstraint>,
    /// Names in `spec.schedulingGates`.
    pub scheduling_gates: Vec<Arc<str>>,
    /// True if the first `PodResizePending` condition has reason `Infeasible`.
    pub resize_infeasible: bool,
    /// True if condition `DisruptionTarget` has reason `PreemptionByScheduler` (A46: an evicted pod
    /// that ends is Failed).
    pub evicted_by_scheduler: bool,
    /// `spec.activeDeadlineSeconds`. `None` if absent.
    pub active_deadline_seconds: Option<i64>,
    /// `status.startTime`, microseconds since 1970.
    pub started_micros: Option<i64>,
    /// PersistentVolumeClaims and disks, in the order of `spec.volumes`.
    pub volumes: Vec<PodVolume>,
    /// Claims for devices in the order of `spec.resourceClaims`, with the claim names of the
    /// status.
    pub resource_claims: Vec<PodResourceClaim>,
    /// The controlling owner, if its kind has a pod selector (plugins-nodes.md 7.8).
    pub controller: Option<Controller>,
    /// Condition `PodScheduled`. `None` if absent.
    pub scheduled_condition: Option<PodCondition>,
    /// Time when condition `PodScheduled` became True, in microseconds since 1970. `None` if it is
    /// not True, or has no time.
    pub scheduled_micros: Option<i64>,
    /// `status.nominatedNodeName`. `None` if it is empty.
    pub nominated_node: Option<Arc<str>>,
    /// How the pod wants its resources to be scored. `None` without the annotations
    /// (plugins-nodes.md 10.2).
    pub resource_strategy: Option<Arc<PodResourceStrategy>>,
    /// Why the object is invalid (C-20: such a pod is never placed). `None` if the object could be
    /// read completely.
    pub invalid: Option<Arc<str>>,
}

/// A node as the watch delivers it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeRecord {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations`. The edge may omit annotations that the scheduler does not read.
    pub annotations: Labels,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `status.allocatable`.
    pub allocatable: ResourceList,
    /// `status.capacity`.
    pub capacity: ResourceList,
    /// Image names of `status.images`, with the size of the image in bytes.
    pub images: Vec<(Arc<str>, i64)>,
}

/// `status.phase` of a PodGroup; empty counts as Pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodGroupPhase {
    /// Not admitted to its queue.
    #[default]
    Pending,
    /// Admitted; its pods may be placed.
    Inqueue,
    /// At least `minMember` pods are placed.
    Running,
    /// Some pods run, and the others cannot be placed.
    Unknown,
    /// All pods have ended.
    Completed,
}

impl PodGroupPhase {
    /// Returns the text of the API.
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

/// A condition of a PodGroup. Equality compares all fields; see
/// [`PodGroupCondition::same_content`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodGroupCondition {
    /// `type`: `Unschedulable`, `Scheduled`.
    pub kind: Arc<str>,
    /// `True`, `False` or `Unknown`.
    pub status: Arc<str>,
    /// Id of the session that wrote it.
    pub transition_id: Arc<str>,
    /// RFC 3339, as in the API.
    pub last_transition_time: Arc<str>,
    /// Reason, one word or a few.
    pub reason: Arc<str>,
    /// Message for users.
    pub message: Arc<str>,
}

impl PodGroupCondition {
    /// True if both are equal except for time and transition id (core.md 7.6).
    pub fn same_content(&self, other: &Self) -> bool {
        (&self.kind, &self.status, &self.reason, &self.message)
            == (&other.kind, &other.status, &other.reason, &other.message)
    }
}

/// `status` of a PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodGroupStatus {
    /// `status.phase`.
    pub phase: PodGroupPhase,
    /// True if the API shows no phase yet. The phase then counts as Pending, and is written once
    /// (core.md 7.5).
    pub is_phase_empty: bool,
    /// Conditions in order of first appearance, one per type. The list is shared between observed
    /// and shown status.
    pub conditions: Arc<[PodGroupCondition]>,
    /// Number of running tasks.
    pub running: i32,
    /// Number of succeeded tasks.
    pub succeeded: i32,
    /// Number of failed tasks.
    pub failed: i32,
}

impl PodGroupStatus {
    /// True if both are equal except for times and transition ids of conditions (core.md 7.6).
    pub fn same_content(&self, other: &Self) -> bool {
        let numbers =
            |of: &Self| (of.phase, of.is_phase_empty, of.running, of.succeeded, of.failed);
        let (l, r) = (&self.conditions, &other.conditions);
        numbers(self) == numbers(other)
            && l.len() == r.len()
            && l.iter().zip(&**r).all(|(l, r)| l.same_content(r))
    }

    /// Returns the status without times and transition ids of conditions.
    pub fn without_times(&self) -> Self {
        let timeless = |condition: &PodGroupCondition| PodGroupCondition {
            transition_id: Arc::default(),
            last_transition_time: Arc::default(),
            ..condition.clone()
        };
        Self { conditions: self.conditions.iter().map(timeless).collect(), ..self.clone() }
    }
}

/// `spec.networkTopology` of a PodGroup or sub-group policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NetworkTopology {
    /// True for mode `soft`, false for `hard`.
    pub soft: bool,
    /// `highestTierAllowed`. `None` if absent.
    pub highest_tier_allowed: Option<i32>,
    /// Name of the highest tier; empty if absent.
    pub highest_tier_name: Arc<str>,
}

/// One entry of `spec.subGroupPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubGroupPolicy {
    /// Name, unique in the PodGroup.
    pub name: Arc<str>,
    /// `networkTopology`. `None` if absent.
    pub network_topology: Option<NetworkTopology>,
    /// `subGroupSize`. `None` if absent, which means 1.
    pub sub_group_size: Option<i32>,
    /// `minSubGroups`; 0 if absent.
    pub min_sub_groups: i32,
    /// Selector of the pods of this policy. `None` if absent: `match_label_keys` alone decide.
    pub label_selector: Option<LabelSelector>,
    /// Labels whose values distinguish the sub-groups.
    pub match_label_keys: Vec<Arc<str>>,
}

/// A PodGroup as the watch delivers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodGroupRecord {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`. It is opaque, and compared as a number if both texts are
    /// numbers.
    pub resource_version: Arc<str>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations`. The edge may omit annotations that the scheduler does not read.
    pub annotations: Labels,
    /// Name of the first owner reference, by which work is divided (core.md 4.4). `None` if there
    /// is no owner.
    pub owner_name: Option<Arc<str>>,
    /// Uid of the controlling owner. `None` if there is none.
    pub controller_uid: Option<Arc<str>>,
    /// Kind of the controlling owner, as in `ReplicaSet`, if that is the first owner, whose name is
    /// known. `None` otherwise.
    pub controller_kind: Option<Arc<str>>,
    /// `spec.minMember`.
    pub min_member: i32,
    /// `spec.minTaskMember`: minimum per role.
    pub min_task_member: BTreeMap<Arc<str>, i32>,
    /// `spec.queue`; empty means the default queue.
    pub queue: Arc<str>,
    /// `spec.priorityClassName`; empty if none.
    pub priority_class_name: Arc<str>,
    /// `spec.minResources`. `None` if absent.
    pub min_resources: Option<ResourceList>,
    /// `spec.networkTopology`. `None` if absent.
    pub network_topology: Option<NetworkTopology>,
    /// `spec.subGroupPolicy`.
    pub sub_group_policies: Vec<SubGroupPolicy>,
    /// `status` as stored, by any writer.
    pub status: PodGroupStatus,
}

impl PodGroupRecord {
    /// Returns the controlling owner. Returns `None` if there is none.
    pub fn controller(&self) -> Option<GroupController<'_>> {
        let uid = self.controller_uid.as_deref()?;
        let stated = (self.controller_kind.as_deref(), self.owner_name.as_deref());
        Some(GroupController::new(&self.key, uid, stated))
    }
}

/// `status.state` of a queue. An empty state counts as Open (C-33).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueState {
    /// The queue admits and places jobs; also the state if the field is empty.
    #[default]
    Open,
    /// The queue is closed.
    Closed,
    /// The queue is being closed and still in use.
    Closing,
    /// Any other text.
    Unknown,
}

impl QueueState {
    /// Returns the text of the API.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Open => "Open",
            Self::Closed => "Closed",
            Self::Closing => "Closing",
            Self::Unknown => "Unknown",
        }
    }
}

/// A queue as the watch delivers it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct QueueRecord {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// `spec.weight`; 1 if absent.
    pub weight: i32,
    /// `spec.priority`; 0 if absent.
    pub priority: i32,
    /// `spec.reclaimable`; true if absent.
    pub reclaimable: bool,
    /// `spec.capability`.
    pub capability: ResourceList,
    /// `spec.deserved`.
    pub deserved: ResourceList,
    /// `spec.guarantee.resource`.
    pub guarantee: ResourceList,
    /// `spec.parent`; empty means `root`.
    pub parent: Arc<str>,
    /// True for `dequeueStrategy: fifo` (D38: dequeue strategy).
    pub fifo: bool,
    /// `spec.affinity`. `None` if it is absent; an empty one counts as present.
    pub node_group_affinity: Option<NodeGroupAffinity>,
    /// Annotation `volcano.sh/nodegroup-resource-limits`.
    pub node_group_limits: NodeGroupLimits<ResourceList>,
    /// `status.state`.
    pub state: QueueState,
    /// `metadata.annotations`. The edge may omit annotations that the scheduler does not read.
    pub annotations: Labels,
    /// `status.allocated` as stored, by any writer.
    pub status_allocated: ResourceList,
}

/// A PriorityClass.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PriorityClassRecord {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// Priority; a higher value is served first.
    pub value: i32,
    /// True if pods without a class get this one. Of several defaults the smallest counts (C-13).
    pub global_default: bool,
}

/// A NodeShard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeShardRecord {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `spec.nodesDesired`.
    pub nodes_desired: Vec<Arc<str>>,
    /// `status.nodesInUse`.
    pub nodes_in_use: Vec<Arc<str>>,
    /// `status.nodesToRemove`.
    pub nodes_to_remove: Vec<Arc<str>>,
    /// `status.nodesToAdd`.
    pub nodes_to_add: Vec<Arc<str>>,
}
