//! A task: a pod as the scheduler sees it. Specification: core.md 3.2.

use std::sync::Arc;

use crate::ids::{ClassId, JobId, NodeId};
use crate::record::{ObjectKey, PodCondition};
use crate::status::TaskStatus;

/// The scheduling gates of a pod (core.md 7.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gates {
    None,
    /// The single gate `scheduling.volcano.sh/queue-allocation-gate`.
    QueueAllocationOnly,
    /// Any other combination.
    Foreign,
}

/// A pod as the scheduler sees it.
#[derive(Clone, Debug)]
pub struct Task {
    pub key: ObjectKey,
    pub uid: Arc<str>,
    /// `None`: no group annotation; such a pod occupies its node and is never scheduled by us.
    pub job: Option<JobId>,
    /// Index into the job's sub-jobs; 0 without a job.
    pub sub_job: usize,
    pub class: ClassId,
    /// Empty if none.
    pub role: Arc<str>,
    pub priority: i32,
    pub status: TaskStatus,
    pub node: Option<NodeId>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// The request is empty but for `pods`.
    pub best_effort: bool,
    pub preemptable: bool,
    /// Annotation `volcano.sh/revocable-zone: "*"` or its stand-in (core.md 3.2).
    pub any_revocable_zone: bool,
    pub gates: Gates,
    /// Annotation `scheduling.volcano.sh/queue-allocation-gate: "true"`.
    pub manages_queue_gate: bool,
    pub priority_class_name: Arc<str>,
    pub never_preempts: bool,
    /// Last part of the pod's name where that is a number of a name of three parts (core.md 5.4).
    pub index: Option<i64>,
    /// The pod's `PodScheduled` condition, or what we wrote and the watch has not shown yet.
    pub condition: Option<PodCondition>,
    /// `status.nominatedNodeName`, likewise.
    pub nominated_node: Option<Arc<str>>,
    /// An eviction was sent and the watch has not shown it yet (core.md 11 (b)).
    pub evicting: bool,
    /// Evicted in this session: out of the node's view, still in its sums.
    pub hidden: bool,
    /// The object is not complete; never placed, this is why (C-20).
    pub invalid: Option<Arc<str>>,
}
