//! Numbers for metrics as plain data, handed out by plugins, the session and the engine. A value
//! that stays is handed out once, so that an idle cycle has next to none. Specification: core.md 9,
//! plugins-jobs-queues.md 2.3, 4.1, 5.4, actions.md 10.4.

use std::sync::Arc;

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
    /// The others that exist, by name: `pods` whole, the rest in thousandths.
    pub scalars: Vec<(String, f64)>,
}

impl Amounts {
    /// The amounts of a vector.
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

/// Which amounts of a queue (core.md 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueAmount {
    /// Of tasks in allocated statuses.
    Allocated,
    /// Of those and the Pending ones.
    Request,
    /// The share of the cluster.
    Deserved,
    /// `spec.capability`.
    Capability,
    /// What the cluster leaves of it.
    RealCapability,
    /// What admitted jobs hold back.
    Inqueue,
}

/// Numbers of one queue. What is absent stays as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueGauges {
    /// Name.
    pub queue: Arc<str>,
    /// One entry per kind at most.
    pub amounts: Vec<(QueueAmount, Amounts)>,
    /// `spec.weight`; `None`: the plugin does not tell.
    pub weight: Option<i32>,
    /// Largest allocated / deserved; `None`: likewise.
    pub share: Option<f64>,
    /// The last answer of Overused; `None`: nobody asked.
    pub overused: Option<bool>,
}

/// How a job stands with its gang at the close of a session (plugins-jobs-queues.md 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GangState {
    /// It has what it needs.
    Ready,
    /// So many members are missing; each session in this state counts as a retry.
    Unready(i64),
    /// Nothing is said about it: it has no tasks, waits for leaving members, or is not in the
    /// session. Its gauge stays as it was.
    Unsaid,
}

/// What pods wait for: the first thing that keeps them out, in the order in which it would be
/// asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PendingReason {
    /// Scheduling gates.
    Gated,
    /// The PodGroup that they name.
    NoPodGroup,
    /// The queue of their PodGroup.
    NoQueue,
    /// The queue to be open.
    QueueNotOpen,
    /// Admission to the queue.
    NotAdmitted,
    /// Further pods of the gang.
    GangIncomplete,
    /// A place.
    NoFit,
    /// Pods to leave the place that they have.
    WaitsForRoom,
}

impl PendingReason {
    /// All of them.
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

    /// The label value, and what it means.
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

/// Tasks of a queue that wait for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPods {
    /// Name; empty: the queue does not exist.
    pub queue: Arc<str>,
    /// What they wait for.
    pub reason: PendingReason,
    /// How many.
    pub n_pods: u32,
}

/// One number, or a few that belong together.
#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    /// The numbers of a queue have changed.
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
        /// How often in this cycle; attempts that were discarded count.
        n_tasks: u32,
        /// Since the PodGroup was created.
        waited_micros: i64,
        /// Microseconds since 1970.
        now_micros: i64,
    },
    /// The dominant share of the job has changed.
    JobShare {
        /// Namespace and name.
        job: ObjectKey,
        /// 1 is all of the cluster.
        share: f64,
    },
    /// The gang of the job stands otherwise than at the close of the last session.
    JobGang {
        /// Namespace and name.
        job: ObjectKey,
        /// How.
        state: GangState,
    },
    /// Neither the PodGroup nor pods of it are left.
    JobGone(ObjectKey),
    /// Jobs that are [`GangState::Unready`] now. Once per session and gang plugin as long as there are
    /// any, and behind news of gangs.
    UnreadyJobs(u64),
    /// Tasks were handed to the binder so long after their creation.
    Assumed {
        /// Since the pods were created.
        waited_micros: i64,
        /// How many of them; those of a gang are mostly of the same age.
        n_tasks: u32,
    },
    /// A statement with at least one eviction was committed.
    EvictionTransaction(EvictReason),
    /// A group goes for another one (cohort.md B.8).
    QuotaPreempted {
        /// Name of the queue that gets the quota.
        preempting: Arc<str>,
        /// Name of the queue of the group that goes.
        preempted: Arc<str>,
        /// `InClusterQueue`, `InCohortReclamation`, `InCohortFairSharing`,
        /// `InCohortReclaimWhileBorrowing`.
        reason: &'static str,
    },
    /// Nobody goes for jobs of a queue.
    QuotaRefused {
        /// Name.
        queue: Arc<str>,
        /// `no_candidates`, `not_enough`, `unplaceable`, `would_return`, `backoff`, `nofit`.
        cause: &'static str,
        /// How many of them.
        count: u64,
    },
    /// The weighted share of a queue or cohort has changed.
    WeightedShare {
        /// Name.
        queue: Arc<str>,
        /// Name of its parent; empty: it has none.
        parent: Arc<str>,
        /// In thousandths, not rounded; infinite for a borrower of weight 0.
        value: f64,
    },
    /// Preempt had so many candidate victims on the node that it tried last.
    PreemptionVictims(u32),
    /// So often preempt has tried evictions on a node or chosen a candidate.
    PreemptionAttempts(u32),
    /// All of them, whenever one has changed; what is not named is 0.
    PendingPods(Vec<PendingPods>),
    /// Assertions that failed and were clamped (C-03).
    InternalErrors {
        /// One of a fixed list.
        kind: &'static str,
        /// How many.
        n_errors: u32,
    },
    /// Conditions that this scheduler has written and somebody else has overwritten.
    ConditionsOverwritten {
        /// Of the objects: `Pod` or `PodGroup`.
        kind: &'static str,
        /// How many.
        n_conditions: u32,
    },
}
