//! A queue. Specification: core.md 3.9, plugins-jobs-queues.md 16.2.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_resource::{Dim, Resource};

use crate::node_group::{NodeGroupAffinity, NodeGroupLimits};
use crate::record::QueueState;
use crate::selector::Labels;

/// A queue. A queue that only PodGroups name has a row, too, but is not [`Queue::present`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// `metadata.name`, which is the queue's id.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// True if the Queue object is known.
    pub present: bool,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// `spec.weight`.
    pub weight: i32,
    /// `spec.priority`.
    pub priority: i32,
    /// `spec.reclaimable`: true if other queues may reclaim what this queue uses beyond its share.
    pub reclaimable: bool,
    /// `spec.capability`; empty: unlimited.
    pub capability: Resource,
    /// `spec.deserved`.
    pub deserved: Resource,
    /// `spec.guarantee.resource`.
    pub guarantee: Resource,
    /// cpu and memory, if deserved or guarantee lists them, even with 0. The queue has a quota of
    /// listed resources (cohort.md B.2). Other resources have a quota exactly if they are listed.
    pub listed: Vec<Dim>,
    /// `spec.parent`; empty means `root`.
    pub parent: Arc<str>,
    /// True if `spec.dequeueStrategy` is `fifo` (D38: dequeue strategy).
    pub fifo: bool,
    /// `spec.affinity`. `None` if it is absent; an empty one counts as present.
    pub node_group_affinity: Option<NodeGroupAffinity>,
    /// Annotation `volcano.sh/nodegroup-resource-limits`: limits of the named resources by group.
    pub node_group_limits: NodeGroupLimits<Vec<(Dim, i64)>>,
    /// `status.state`; an empty state counts as Open (C-33).
    pub state: QueueState,
    /// Annotations `volcano.sh/hierarchy` and `volcano.sh/hierarchy-weights`.
    pub annotations: Labels,
    /// `status.allocated` as quantities by name, as last seen or written by us. `None` if it must
    /// be written again.
    pub written_allocated: Option<Vec<(Arc<str>, vc_resource::Quantity)>>,
    /// Number of jobs that name the queue, including jobs that are in no session.
    pub n_jobs: u32,
}

impl Queue {
    /// True if the queue does not exist and no job names it.
    pub(crate) fn is_unused(&self) -> bool {
        !self.present && self.n_jobs == 0
    }

    /// True if the state is Open or empty (C-33: an empty state counts as Open).
    pub fn is_open(&self) -> bool {
        self.state == QueueState::Open
    }
}
