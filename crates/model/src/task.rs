//! A task: a pod as the scheduler sees it. Specification: core.md 3.2.

use std::sync::Arc;

use crate::ids::{ClassId, JobId, NodeId};
use crate::record::{ObjectKey, PodCondition};
use crate::status::TaskStatus;

/// The gate that queues lift, and the annotation that lets them (core.md 7.8).
pub const QUEUE_GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";

/// The scheduling gates of a pod (core.md 7.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gates {
    /// No gate.
    None,
    /// The single gate `scheduling.volcano.sh/queue-allocation-gate`.
    QueueAllocationOnly,
    /// Any other combination.
    Foreign,
}

/// A pod as the scheduler sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Namespace and name of the pod.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `None`: no group annotation; such a pod occupies its node and is never scheduled by us,
    /// unless bare pods are jobs of their own ([`crate::Settings::bare_pods`]).
    pub job: Option<JobId>,
    /// Index into the job's sub-jobs; 0 without a job.
    pub sub_job: usize,
    /// What filters and scorers read of the pod, its request included.
    pub class: ClassId,
    /// Annotation, else label `volcano.sh/task-spec`; empty if none.
    pub role: Arc<str>,
    /// Annotation `volcano.sh/task-priority`, else `spec.priority`, else 1.
    pub priority: i32,
    /// As the pod says, or as decided in this session or handed to the edge.
    pub status: TaskStatus,
    /// `spec.nodeName`, or the node decided on; kept when the pod ends. `None`: on no node.
    pub node: Option<NodeId>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// The request is empty but for `pods`.
    pub best_effort: bool,
    /// Annotation, else label `volcano.sh/preemptable`; absent: true.
    pub preemptable: bool,
    /// The same is there and true.
    pub marked_preemptable: bool,
    /// `spec.schedulingGates`.
    pub gates: Gates,
    /// The names of them, joined by `, `; `None`: there are none.
    pub gate_names: Option<Arc<str>>,
    /// Annotation `scheduling.volcano.sh/queue-allocation-gate: "true"`.
    pub manages_queue_gate: bool,
    /// `spec.priorityClassName`; empty if none.
    pub priority_class_name: Arc<str>,
    /// `spec.preemptionPolicy` is `Never`.
    pub never_preempts: bool,
    /// Last part of the pod's name where the name has at least three parts and that is a number
    /// (core.md 5.4).
    pub index: Option<i64>,
    /// The pod's `PodScheduled` condition, or what we wrote and the watch has not shown yet;
    /// `None`: there is none, or it must be written again.
    pub condition: Option<Arc<PodCondition>>,
    /// `status.nominatedNodeName`, likewise; `None`: no nomination.
    pub nominated_node: Option<Arc<str>>,
    /// `spec.priority`, 0 if unset; what preemption compares besides [`Task::priority`] (actions.md 6.5).
    pub pod_priority: i32,
    /// Microseconds since 1970; `None` before the pod starts.
    pub started_micros: Option<i64>,
    /// When condition `PodScheduled` became True, microseconds since 1970; `None`: it is not, or says
    /// no time.
    pub scheduled_micros: Option<i64>,
    /// Until when the pod is not evicted: `volcano.sh/cooldown-time` after it was scheduled, in
    /// microseconds since 1970; `None`: it names no such time, or is not scheduled.
    pub cooling_until_micros: Option<i64>,
    /// The pod is terminating because a scheduler preempted it (actions.md 6.5).
    pub preempted: bool,
    /// An eviction was sent and the watch has not shown it yet (core.md 11 (b)).
    pub evicting: bool,
    /// The removal of its gate was sent and the watch has not shown it yet.
    pub ungating: bool,
    /// Evicted in this session: out of the node's view, still in its sums.
    pub hidden: bool,
    /// A deletionTimestamp is set.
    pub deleting: bool,
    /// The object is not complete; never placed, this is why (C-20). `None`: it is.
    pub invalid: Option<Arc<str>>,
    /// A refused bind or eviction is not repeated yet (core.md 7.2). `None`: no write was refused, or
    /// the pause is over.
    pub pause: Option<Pause>,
}

/// Why the refused write of a pod is not repeated yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The pod is not placed. What people are told: the refusal and when the bind is repeated.
    Bind(Arc<str>),
    /// The pod is no victim.
    Eviction,
}

impl Task {
    /// Nothing about the pod itself keeps it from being placed: its object is complete, and no refused
    /// bind pauses.
    pub fn can_be_placed(&self) -> bool {
        self.invalid.is_none() && self.pause.is_none()
    }

    /// The pod may be evicted as far as it says itself: it is preemptable, and no refused eviction
    /// pauses.
    pub fn can_be_evicted(&self) -> bool {
        self.preemptable && self.pause.is_none()
    }

    /// Both rows say the same but for their status: what a user can change is equal.
    pub(crate) fn has_same_object(&self, other: &Self) -> bool {
        self.uid == other.uid
            && (self.class, self.job, self.sub_job) == (other.class, other.job, other.sub_job)
            && (&self.role, self.priority) == (&other.role, other.priority)
            && (self.pod_priority, self.never_preempts)
                == (other.pod_priority, other.never_preempts)
            && (self.preemptable, self.marked_preemptable)
                == (other.preemptable, other.marked_preemptable)
            && (self.gates, self.manages_queue_gate) == (other.gates, other.manages_queue_gate)
            && self.priority_class_name == other.priority_class_name
            && self.invalid == other.invalid
    }

    /// The pause of the row before, if it goes on: the object is the same, and what was refused has
    /// not happened meanwhile.
    pub(crate) fn pause_after(&self, before: &Self) -> Option<Pause> {
        let pause = before.pause.as_ref().filter(|_| self.has_same_object(before))?;
        let goes_on = match pause {
            Pause::Bind(_) => self.node.is_none(),
            Pause::Eviction => self.node.is_some() && !self.deleting,
        };
        goes_on.then(|| pause.clone())
    }

    /// Filters see it on its node, if it has one (plugins-nodes.md 1.5).
    pub(crate) fn is_in_view(&self) -> bool {
        !self.hidden && !self.status.is_terminated()
    }

    /// It counts for topology spread (plugins-nodes.md 4.8).
    pub(crate) fn is_live(&self) -> bool {
        !self.deleting && self.status != TaskStatus::Releasing
    }
}
