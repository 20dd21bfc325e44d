//! A task: a pod as the scheduler sees it. Specification: core.md 3.2.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{ClassId, JobId, NodeId};
use crate::numa::CpuSet;
use crate::other_scheduler::SchedulerNumber;
use crate::record::{ObjectKey, PodCondition};
use crate::run_template::RunTemplate;
use crate::selector::Labels;
use crate::stated_run::StatedRun;
use crate::status::TaskStatus;

/// The scheduling gate that is removed when the queue has room. The annotation of the same name
/// permits this (core.md 7.8).
pub const QUEUE_GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";

/// The scheduling gates of a pod (core.md 7.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gates {
    /// No gate.
    None,
    /// The single gate `scheduling.volcano.sh/queue-allocation-gate`.
    QueueAllocationOnly,
    /// Any other combination.
    Foreign,
}

/// A pod as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Namespace and name of the pod.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Job of the task. `None` without a group annotation: the pod occupies its node and is never
    /// scheduled by us. With [`crate::Settings::bare_pods`] such a pod has a job of its own.
    pub job: Option<JobId>,
    /// Index into the job's sub-jobs; 0 without a job.
    pub sub_job: usize,
    /// The class: all that filters and scorers read of the pod, including its request.
    pub class: ClassId,
    /// Annotation, else label `volcano.sh/task-spec`; empty if absent.
    pub role: Arc<str>,
    /// Annotation `volcano.sh/task-priority`, else `spec.priority`, else 1.
    pub priority: i32,
    /// Status that follows from the pod, or from a decision of this session or a write in flight.
    pub status: TaskStatus,
    /// `spec.nodeName`, or the node decided on. It is kept when the pod ends. `None` if the pod has
    /// no node.
    pub node: Option<NodeId>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// True if the request is empty except for `pods`.
    pub best_effort: bool,
    /// Annotation, else label `volcano.sh/preemptable`; absent: true.
    pub preemptable: bool,
    /// True if annotation or label `volcano.sh/preemptable` is present and true.
    pub marked_preemptable: bool,
    /// `spec.schedulingGates`.
    pub gates: Gates,
    /// The names in `spec.schedulingGates`, joined by `, `. `None` if there is no gate.
    pub gate_names: Option<Arc<str>>,
    /// Annotation `scheduling.volcano.sh/queue-allocation-gate: "true"`.
    pub manages_queue_gate: bool,
    /// `spec.priorityClassName`; empty if none.
    pub priority_class_name: Arc<str>,
    /// `spec.preemptionPolicy` is `Never`.
    pub never_preempts: bool,
    /// Last part of the pod's name, if the name has at least three parts and the last is a number
    /// (core.md 5.4).
    pub index: Option<i64>,
    /// The pod's `PodScheduled` condition as last seen or written by us. `None` if there is none,
    /// or if it must be written again.
    pub condition: Option<Arc<PodCondition>>,
    /// `status.nominatedNodeName` as last seen or written by us. `None` if there is none, or if it
    /// must be written again.
    pub nominated_node: Option<Arc<str>>,
    /// `spec.priority`, 0 if absent. Preemption compares it besides [`Task::priority`] (actions.md
    /// 6.5).
    pub pod_priority: i32,
    /// How long the pod runs, as it says itself, and by when it is gone if it terminates. `None` if
    /// nothing is stated.
    pub stated_run: Option<Box<StatedRun>>,
    /// Under which name its run time is learned, as the pod has it. `None` if it has neither an
    /// annotation for it nor an owner.
    pub run_template: Option<Arc<RunTemplate>>,
    /// Start time in microseconds since 1970. `None` before the pod starts.
    pub started_micros: Option<i64>,
    /// Time when condition `PodScheduled` became True, in microseconds since 1970. `None` if it is
    /// not True, or has no time.
    pub scheduled_micros: Option<i64>,
    /// End of the time in which the pod is not evicted, in microseconds since 1970. It is
    /// `volcano.sh/cooldown-time` after the pod was scheduled. `None` without that annotation, or
    /// if the pod is not scheduled.
    pub cooling_until_micros: Option<i64>,
    /// True if the pod is terminating because a scheduler preempted it (actions.md 6.5).
    pub preempted: bool,
    /// True if an eviction was sent and the watch has not shown it yet (core.md 11 (b)).
    pub evicting: bool,
    /// True if the removal of the pod's gate was sent and the watch has not shown it yet.
    pub ungating: bool,
    /// True if the pod was evicted in this session. Its request is still in the node's sums, but
    /// not in the node's view.
    pub hidden: bool,
    /// True if a deletionTimestamp is set.
    pub deleting: bool,
    /// Why the object is invalid; such a pod is never placed (C-20). `None` if the object is
    /// complete.
    pub invalid: Option<Arc<str>>,
    /// Why a refused bind or eviction is not repeated yet (core.md 7.2). `None` if no write was
    /// refused, or if the pause is over.
    pub pause: Option<Pause>,
    /// True if a refused bind pauses and the pod keeps its room on the node meanwhile, since its gang
    /// would otherwise stay broken. The pod is then Binding, and no bind of it is on its way.
    pub keeps_place: bool,
    /// The annotations that name the shared devices of the pod: its own, or those that go out with
    /// its bind. `None` if it has no such devices, or no node.
    pub devices: Option<Arc<Labels>>,
    /// The CPUs that the task gets to itself by a decision of ours. `None` if there are none, or if
    /// the task has no node.
    pub cpus: Option<Arc<CpuSet>>,
    /// The annotation that locks the node before the bind of this task. `None` if its node is not
    /// locked for it.
    pub node_lock: Option<Arc<str>>,
    /// The PodGroup that the pod names, as `namespace/name`, if it requests an extended resource.
    pub device_group: Option<Arc<str>>,
    /// Number of the scheduler that decides about the pod. States of earlier versions do not have
    /// it.
    #[serde(default)]
    pub(crate) scheduler: SchedulerNumber,
}

// There are as many tasks as pods.
const _: () = assert!(size_of::<Task>() <= 352);

/// Why the refused write of a pod is not repeated yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pause {
    /// The pod is not placed. The text for users states the refusal and when the bind is repeated.
    Bind(Arc<str>),
    /// The pod is not a victim.
    Eviction,
}

impl Task {
    /// True if nothing about the pod itself prevents its placement. Its object is complete, and no
    /// refused bind pauses.
    pub fn can_be_placed(&self) -> bool {
        self.invalid.is_none() && self.pause.is_none()
    }

    /// True if the pod itself permits eviction. It is preemptable, and no refused eviction pauses.
    pub fn can_be_evicted(&self) -> bool {
        self.preemptable && self.pause.is_none()
    }

    /// True if both rows agree in everything that a user can change.
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

    /// Returns the pause of the row before, if it continues. Returns `None` if the object changed,
    /// or if the refused write has happened meanwhile.
    pub(crate) fn pause_after(&self, before: &Self) -> Option<Pause> {
        let pause = before.pause.as_ref().filter(|_| self.has_same_object(before))?;
        let goes_on = match pause {
            Pause::Bind(_) => self.node.is_none(),
            Pause::Eviction => self.node.is_some() && !self.deleting,
        };
        goes_on.then(|| pause.clone())
    }

    /// True if filters see the pod on its node (plugins-nodes.md 1.5).
    pub(crate) fn is_in_view(&self) -> bool {
        !self.hidden && !self.status.is_terminated()
    }

    /// True if the pod counts for topology spread (plugins-nodes.md 4.8).
    pub(crate) fn is_live(&self) -> bool {
        !self.deleting && self.status != TaskStatus::Releasing
    }
}
