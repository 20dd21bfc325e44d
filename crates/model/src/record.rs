//! Objects as they come in: plain data with exact quantities, made by the edge from the API's JSON.
//! What an object means for the tables is decided in `cluster`. Specification: core.md 3.2-3.9.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use vc_resource::Quantity;

use crate::default_spread::Controller;
use crate::device::PodResourceClaim;
use crate::pod_affinity::{PodAffinity, SpreadConstraint};
use crate::selector::{HostPort, LabelSelector, Labels, NodeAffinity, Taint, Toleration};
use crate::volume::PodVolume;

/// Namespace and name. Ordered as the text `namespace/name`, which is the uid of a job (actions.md
/// A10).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        // Of two namespaces that begin alike the shorter one meets the slash.
        let (l, r) = (self.namespace.as_bytes(), other.namespace.as_bytes());
        let common = l.len().min(r.len());
        let next = |namespace: &[u8]| namespace.get(common).copied().unwrap_or(b'/');
        l[..common]
            .cmp(&r[..common])
            .then_with(|| next(l).cmp(&next(r)))
            .then_with(|| l.cmp(r))
            .then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
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
    /// Accepted, not all containers run; also when empty.
    #[default]
    Pending,
    /// At least one container runs.
    Running,
    /// All containers have ended well.
    Succeeded,
    /// All containers have ended, one badly.
    Failed,
    /// `Unknown` or any other text.
    Unknown,
}

/// What requests and filters read of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerRecord {
    /// Unique in its pod.
    pub name: Arc<str>,
    /// `image`.
    pub image: Arc<str>,
    /// `resources.requests`.
    pub requests: ResourceList,
    /// An init container with `restartPolicy: Always`.
    pub restartable: bool,
    /// `ports` that have a host port.
    pub host_ports: Vec<HostPort>,
    /// Of the container's status, when it has `.resources`: the amounts in place (in-place resize,
    /// 3.5).
    /// `None`: it has none.
    pub in_place: Option<InPlace>,
}

/// Amounts that a resized container holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InPlace {
    /// `resources.requests` of the status.
    pub requests: ResourceList,
    /// `allocatedResources` of the status.
    pub allocated: ResourceList,
}

/// The `PodScheduled` condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCondition {
    /// `True`, `False` or `Unknown`.
    pub status: Arc<str>,
    /// One word.
    pub reason: Arc<str>,
    /// For people.
    pub message: Arc<str>,
}

/// A pod.
#[derive(Clone, Debug, Default)]
pub struct PodRecord {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// A deletionTimestamp is set.
    pub deleting: bool,
    /// `metadata.labels`.
    pub labels: Labels,
    /// Those that something reads; the edge may leave out the others.
    pub annotations: Labels,
    /// Name of the first owner reference, which divides work (core.md 4.4); `None`: no owner.
    pub owner_name: Option<Arc<str>>,
    /// `spec.schedulerName`.
    pub scheduler_name: Arc<str>,
    /// `spec.nodeName`; `None`: empty, the pod is not placed.
    pub node_name: Option<Arc<str>>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// `spec.priority`; `None`: absent, which counts 1.
    pub priority: Option<i32>,
    /// `spec.priorityClassName`; empty if none.
    pub priority_class_name: Arc<str>,
    /// `preemptionPolicy: Never`.
    pub never_preempts: bool,
    /// `spec.containers`.
    pub containers: Vec<ContainerRecord>,
    /// `spec.initContainers`, in order.
    pub init_containers: Vec<ContainerRecord>,
    /// `spec.overhead`.
    pub overhead: ResourceList,
    /// `spec.resources.requests`.
    pub pod_requests: ResourceList,
    /// `None`: absent; an empty map matches every node but is not absent (plugins-nodes.md 4.2).
    pub node_selector: Option<Labels>,
    /// `spec.affinity.nodeAffinity`.
    pub node_affinity: NodeAffinity,
    /// `spec.tolerations`.
    pub tolerations: Vec<Toleration>,
    /// `spec.affinity.podAffinity` and `podAntiAffinity`; `None`: no term.
    pub pod_affinity: Option<Arc<PodAffinity>>,
    /// `spec.topologySpreadConstraints`.
    pub spread: Vec<SpreadConstraint>,
    /// Names in `spec.schedulingGates`.
    pub scheduling_gates: Vec<Arc<str>>,
    /// The first `PodResizePending` condition has reason `Infeasible`.
    pub resize_infeasible: bool,
    /// Condition `DisruptionTarget` with reason `PreemptionByScheduler` is present (A46).
    pub evicted_by_scheduler: bool,
    /// `status.startTime`, microseconds since 1970.
    pub started_micros: Option<i64>,
    /// Claims and disks, in the order of `spec.volumes`.
    pub volumes: Vec<PodVolume>,
    /// In the order of `spec.resourceClaims`, resolved by the status.
    pub resource_claims: Vec<PodResourceClaim>,
    /// The controlling owner, if it is of a kind that selects pods (plugins-nodes.md 7.8).
    pub controller: Option<Controller>,
    /// Condition `PodScheduled`; `None`: absent.
    pub scheduled_condition: Option<PodCondition>,
    /// When condition `PodScheduled` became True, microseconds since 1970; `None`: it is not, or says
    /// no time.
    pub scheduled_micros: Option<i64>,
    /// `status.nominatedNodeName`; `None`: empty.
    pub nominated_node: Option<Arc<str>>,
    /// The object could not be read completely; the pod is never placed and carries this reason
    /// (C-20).
    /// `None`: it could.
    pub invalid: Option<Arc<str>>,
}

/// A node.
#[derive(Clone, Debug, Default)]
pub struct NodeRecord {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// Those that something reads.
    pub annotations: Labels,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `status.allocatable`.
    pub allocatable: ResourceList,
    /// `status.capacity`.
    pub capacity: ResourceList,
    /// Names of `status.images` with the size of the image in bytes.
    pub images: Vec<(Arc<str>, i64)>,
}

/// `status.phase` of a PodGroup; empty counts as Pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// `type`: `Unschedulable`, `Scheduled`.
    pub kind: Arc<str>,
    /// `True`, `False` or `Unknown`.
    pub status: Arc<str>,
    /// Id of the session that wrote it.
    pub transition_id: Arc<str>,
    /// RFC 3339, as in the API.
    pub last_transition_time: Arc<str>,
    /// One word, or a few.
    pub reason: Arc<str>,
    /// For people.
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
    /// `status.phase`.
    pub phase: PodGroupPhase,
    /// The API shows no phase yet. It counts as Pending, and is written once (core.md 7.5).
    pub is_phase_empty: bool,
    /// In order of first appearance, one per type. Kept once for what was seen and what is shown.
    pub conditions: Arc<[PodGroupCondition]>,
    /// Running tasks.
    pub running: i32,
    /// Succeeded tasks.
    pub succeeded: i32,
    /// Failed tasks.
    pub failed: i32,
}

impl PodGroupStatus {
    /// Equal but for times and transition ids of conditions (core.md 7.6).
    pub fn same_content(&self, other: &Self) -> bool {
        let numbers =
            |of: &Self| (of.phase, of.is_phase_empty, of.running, of.succeeded, of.failed);
        let (l, r) = (&self.conditions, &other.conditions);
        numbers(self) == numbers(other)
            && l.len() == r.len()
            && l.iter().zip(&**r).all(|(l, r)| l.same_content(r))
    }

    /// The same without times and transition ids of conditions.
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkTopology {
    /// Mode `soft`; `hard` otherwise.
    pub soft: bool,
    /// `None`: no tier is named.
    pub highest_tier_allowed: Option<i32>,
    /// Empty if none.
    pub highest_tier_name: Arc<str>,
}

/// One entry of `spec.subGroupPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubGroupPolicy {
    /// Unique in its PodGroup.
    pub name: Arc<str>,
    /// `None`: absent.
    pub network_topology: Option<NetworkTopology>,
    /// `None`: absent, 1.
    pub sub_group_size: Option<i32>,
    /// Absent: 0.
    pub min_sub_groups: i32,
    /// Which pods belong here; `None`: absent, `match_label_keys` alone decide.
    pub label_selector: Option<LabelSelector>,
    /// Labels whose values tell sub-groups apart.
    pub match_label_keys: Vec<Arc<str>>,
}

/// A PodGroup.
#[derive(Clone, Debug)]
pub struct PodGroupRecord {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Opaque; compared as a number where both are one.
    pub resource_version: Arc<str>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// `metadata.labels`.
    pub labels: Labels,
    /// Those that something reads.
    pub annotations: Labels,
    /// Name of the first owner reference, which divides work (core.md 4.4); `None`: no owner.
    pub owner_name: Option<Arc<str>>,
    /// Uid of the controlling owner; `None`: there is none.
    pub controller_uid: Option<Arc<str>>,
    /// `spec.minMember`.
    pub min_member: i32,
    /// `spec.minTaskMember`: minimum per role.
    pub min_task_member: BTreeMap<Arc<str>, i32>,
    /// Empty: the default queue.
    pub queue: Arc<str>,
    /// `spec.priorityClassName`; empty if none.
    pub priority_class_name: Arc<str>,
    /// `spec.minResources`; `None`: absent.
    pub min_resources: Option<ResourceList>,
    /// `spec.networkTopology`; `None`: absent.
    pub network_topology: Option<NetworkTopology>,
    /// `spec.subGroupPolicy`.
    pub sub_group_policies: Vec<SubGroupPolicy>,
    /// As last written by anyone.
    pub status: PodGroupStatus,
}

/// `status.state` of a queue. An empty state is Open (C-33).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueueState {
    /// Admits and places; also when empty.
    #[default]
    Open,
    /// Shut.
    Closed,
    /// To be shut, still in use.
    Closing,
    /// Any other text.
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
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// Absent: 1.
    pub weight: i32,
    /// Absent: 0.
    pub priority: i32,
    /// Absent: true.
    pub reclaimable: bool,
    /// `spec.capability`.
    pub capability: ResourceList,
    /// `spec.deserved`.
    pub deserved: ResourceList,
    /// `spec.guarantee.resource`.
    pub guarantee: ResourceList,
    /// Empty: `root`.
    pub parent: Arc<str>,
    /// `dequeueStrategy: fifo` (D38).
    pub fifo: bool,
    /// `status.state`.
    pub state: QueueState,
    /// Those that something reads.
    pub annotations: Labels,
    /// `status.allocated` as last written by anyone.
    pub status_allocated: ResourceList,
}

/// A PriorityClass.
#[derive(Clone, Debug)]
pub struct PriorityClassRecord {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// Higher goes first.
    pub value: i32,
    /// Is that of everybody who names none; the smallest counts (C-13).
    pub global_default: bool,
}

/// A NodeShard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
