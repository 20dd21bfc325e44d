//! Samples for metrics as plain data, from plugins, the session and the engine. Only changes of a
//! value are emitted, so an idle cycle has next to none. Specification: core.md 9,
//! plugins-jobs-queues.md 2.3, 4.1, 5.4, actions.md 10.4.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_model::ObjectKey;
use vc_resource::{Dim, Dims, Fractional};

use crate::effect::EvictReason;

/// Amounts of a queue in internal units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Amounts {
    /// Millicores.
    pub cpu_milli: f64,
    /// Bytes.
    pub memory_bytes: f64,
    /// Amounts of the other existing resources, by name: `pods` as a count, all others in
    /// thousandths.
    pub scalars: Vec<(String, f64)>,
}

impl Amounts {
    /// Returns the amounts of a vector.
    pub fn of(vector: &Fractional, dims: &Dims) -> Self {
        let scalar = |dim: Dim| (dims.name(dim).to_owned(), vector.get(dim));
        let is_scalar = |&dim: &Dim| dim != Dim::CPU && dim != Dim::MEMORY && vector.has(dim);
        let in_order = dims.in_report_order().iter().copied().filter(is_scalar);
        Self {
            cpu_milli: vector.get(Dim::CPU),
            memory_bytes: vector.get(Dim::MEMORY),
            scalars: in_order.map(scalar).collect(),
        }
    }
}

/// Kind of an amount of a queue (core.md 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueAmount {
    /// Requests of tasks in allocated statuses.
    Allocated,
    /// Requests of tasks in allocated statuses and of Pending tasks.
    Request,
    /// Deserved share of the cluster.
    Deserved,
    /// `spec.capability`.
    Capability,
    /// `spec.capability` reduced to what the cluster can give.
    RealCapability,
    /// Amounts that admitted jobs reserve.
    Inqueue,
}

/// Changed gauges of one queue. An absent value is unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueGauges {
    /// Name of the queue.
    pub queue: Arc<str>,
    /// Amounts, at most one entry per kind.
    pub amounts: Vec<(QueueAmount, Amounts)>,
    /// `spec.weight`. `None` if it is not reported.
    pub weight: Option<i32>,
    /// Largest allocated / deserved over the dimensions. `None` if it is not reported.
    pub share: Option<f64>,
    /// True if the queue has all that it deserves. `None` if it is not reported.
    pub overused: Option<bool>,
}

/// State of a gang at the close of a session (plugins-jobs-queues.md 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GangState {
    /// The gang has all members that it needs.
    Ready,
    /// The gang lacks this many members; each session in this state counts as a retry.
    Unready(i64),
    /// No state is reported, and the gauge stays as it was. The job has no tasks, waits for
    /// terminating members, or is not in the session.
    Unsaid,
}

/// Reason why pods are pending: the first obstacle, in the order in which obstacles are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PendingReason {
    /// The pods have scheduling gates.
    Gated,
    /// Their PodGroup does not exist.
    NoPodGroup,
    /// The queue of their PodGroup does not exist.
    NoQueue,
    /// Their queue is not open.
    QueueNotOpen,
    /// Their PodGroup is not admitted to the queue.
    NotAdmitted,
    /// The gang lacks pods.
    GangIncomplete,
    /// The pods fit on no node.
    NoFit,
    /// The pods have a place that terminating pods have yet to leave.
    WaitsForRoom,
}

impl PendingReason {
    /// All reasons.
    pub const ALL: [Self; 8] = [
        Self::Gated,
        Self::NoPodGroup,
        Self::NoQueue,
        Self::QueueNotOpen,
        Self::NotAdmitted,
        Self::GangIncomplete,
        Self::NoFit,
        Self::WaitsForRoom,
    ];

    /// Returns the label value and its description.
    pub fn text(self) -> (&'static str, &'static str) {
        match self {
            Self::Gated => ("gated", "the pod has scheduling gates"),
            Self::NoPodGroup => ("no_pod_group", "the PodGroup that the pod names does not exist"),
            Self::NoQueue => ("no_queue", "the queue of the PodGroup does not exist"),
            Self::QueueNotOpen => ("queue_not_open", "the queue is closed or closing"),
            Self::NotAdmitted => ("not_admitted", "the PodGroup is not admitted to its queue"),
            Self::GangIncomplete => ("gang_incomplete", "the gang has fewer pods than it needs"),
            Self::NoFit => ("no_fit", "no place for the pod, or for enough of its gang"),
            Self::WaitsForRoom => {
                ("waits_for_room", "the pod has a place as soon as others have left it")
            }
        }
    }
}

/// Number of tasks of a queue that are pending for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPods {
    /// Name of the queue; empty if the queue does not exist.
    pub queue: Arc<str>,
    /// The reason.
    pub reason: PendingReason,
    /// Number of tasks.
    pub n_pods: u32,
}

/// Number of problems of one field of a HyperNode (core.md 4.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperNodeProblemCount {
    /// Name of the HyperNode.
    pub hyper_node: Arc<str>,
    /// Path of the field, for instance `spec.members`.
    pub field: Arc<str>,
    /// Problems of the field; at least 1.
    pub n_problems: u32,
}

/// Use of the shared devices of a node (core.md 9.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeDevices {
    /// Name of the node.
    pub node: Arc<str>,
    /// All its devices; none if it has no devices any more.
    pub devices: Vec<DeviceUse>,
}

/// Use of a shared device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// Id of the device.
    pub device: Arc<str>,
    /// Number of containers that share it.
    pub n_users: i64,
    /// Memory in use, in the unit of the device.
    pub memory: i64,
    /// Cores in use, in percent.
    pub cores: i64,
    /// All its memory.
    pub memory_limit: i64,
    /// Name of each pod with its memory and cores.
    pub pods: Vec<(Arc<str>, i64, i64)>,
}

/// Usage of a namespace in a queue, which fades with a half-life (fair-share.md 13).
#[derive(Clone, Debug, PartialEq)]
pub struct FairshareUsage {
    /// Name of the queue.
    pub queue: Arc<str>,
    /// The namespace.
    pub account: Arc<str>,
    /// Usage at `since_micros`, divided by half-life / ln 2, in units of the charge.
    pub level: f64,
    /// The charge of all its tasks since then.
    pub rate: f64,
    /// Microseconds since 1970.
    pub since_micros: i64,
    /// Half-life in microseconds.
    pub half_life_micros: i64,
}

/// One sample: a number, or a few numbers that belong together.
#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    /// Gauges of a queue have changed.
    Queue(Box<QueueGauges>),
    /// The Queue was deleted.
    QueueGone(Arc<str>),
    /// An event about a PodGroup.
    JobSeen {
        /// Namespace and name.
        job: ObjectKey,
        /// Name of its queue.
        queue: Arc<str>,
        /// Microseconds since 1970.
        created_micros: i64,
    },
    /// Allocate or backfill has found places for tasks of the job.
    JobPlaced {
        /// Namespace and name.
        job: ObjectKey,
        /// Name of its queue.
        queue: Arc<str>,
        /// Number of places found in this cycle, including discarded attempts.
        n_tasks: u32,
        /// Time since the creation of the PodGroup, in microseconds.
        waited_micros: i64,
        /// Time of the session, in microseconds since 1970.
        now_micros: i64,
    },
    /// The dominant share of the job has changed.
    JobShare {
        /// Namespace and name.
        job: ObjectKey,
        /// Dominant share; 1 is the whole cluster.
        share: f64,
    },
    /// The gang of the job changed its state since the last session close.
    JobGang {
        /// Namespace and name.
        job: ObjectKey,
        /// The new state.
        state: GangState,
    },
    /// The job is gone: its PodGroup and all its pods were deleted.
    JobGone(ObjectKey),
    /// Number of jobs that are [`GangState::Unready`]. Emitted once per session and gang plugin if
    /// it is not 0, after changes of gangs.
    UnreadyJobs(u64),
    /// Tasks were handed to the binder.
    Assumed {
        /// Time since the creation of the pods, in microseconds.
        waited_micros: i64,
        /// Number of tasks; members of a gang mostly have the same age.
        n_tasks: u32,
    },
    /// A statement with at least one eviction was committed.
    EvictionTransaction(EvictReason),
    /// A group is evicted for quota (cohort.md B.8).
    QuotaPreempted {
        /// Name of the queue that gets the quota.
        preempting: Arc<str>,
        /// Name of the queue that loses the group.
        preempted: Arc<str>,
        /// `InClusterQueue`, `InCohortReclamation`, `InCohortFairSharing`,
        /// `InCohortReclaimWhileBorrowing`.
        reason: &'static str,
    },
    /// No group was evicted for jobs of a queue.
    QuotaRefused {
        /// Name of the queue.
        queue: Arc<str>,
        /// `no_candidates`, `not_enough`, `unplaceable`, `would_return`, `backoff`, `nofit`.
        cause: &'static str,
        /// Number of jobs.
        count: u64,
    },
    /// The weighted share of a queue or cohort has changed.
    WeightedShare {
        /// Name of the queue or cohort.
        queue: Arc<str>,
        /// Name of its parent; empty if it has none.
        parent: Arc<str>,
        /// Weighted share in thousandths, not rounded; infinite for a borrower of weight 0.
        value: f64,
    },
    /// The usage of a namespace in a queue has changed its course.
    FairshareUsage(Box<FairshareUsage>),
    /// The part of a queue that a namespace may hold has changed.
    FairshareShare {
        /// Name of the queue.
        queue: Arc<str>,
        /// The namespace.
        account: Arc<str>,
        /// The part, in units of the charge.
        share: f64,
    },
    /// Parent or weight of a queue may have changed, by which its usage is compared.
    FairshareQueue {
        /// Name of the queue.
        queue: Arc<str>,
        /// Name of its parent; `root` if the Queue names none.
        parent: Arc<str>,
        /// `spec.weight`, at least 0.
        weight: i32,
    },
    /// Pods of a queue were evicted by usage.
    FairshareEvictions {
        /// Name of the queue.
        queue: Arc<str>,
        /// Number of pods.
        n_pods: u32,
    },
    /// The usage of a namespace in a queue is forgotten.
    FairshareGone {
        /// Name of the queue.
        queue: Arc<str>,
        /// The namespace.
        account: Arc<str>,
    },
    /// Number of candidate victims on the node that preempt tried last.
    PreemptionVictims(u32),
    /// Number of times that preempt tried evictions on a node or chose a candidate.
    PreemptionAttempts(u32),
    /// All counts of pending pods, emitted when one has changed. A combination that is absent is 0.
    PendingPods(Vec<PendingPods>),
    /// Assertions that failed; the value was clamped (C-03: a failed assertion does not end the
    /// process by default).
    InternalErrors {
        /// Kind of the assertion, out of a fixed list.
        kind: &'static str,
        /// Number of failures.
        n_errors: u32,
    },
    /// Conditions of this scheduler that another client has overwritten.
    ConditionsOverwritten {
        /// Kind of the objects: `Pod` or `PodGroup`.
        kind: &'static str,
        /// Number of conditions.
        n_conditions: u32,
    },
    /// Numbers of problems by field of a HyperNode, emitted when one has changed. A field that is
    /// absent has none.
    HyperNodeProblems(Vec<HyperNodeProblemCount>),
    /// Fields of network topologies that cannot mean what was wanted, or that leave no HyperNode which
    /// could hold the pods even when empty, by PodGroup, emitted when one has changed. A PodGroup that is absent has none.
    NetworkTopologyProblems(Vec<(ObjectKey, Arc<str>)>),
    /// The use of the shared devices of a node has changed.
    NodeDevices(Box<NodeDevices>),
}
