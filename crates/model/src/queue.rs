//! A queue. Specification: core.md 3.9, plugins-jobs-queues.md 16.2.

use std::sync::Arc;

use vc_resource::{Dim, Resource};

use crate::record::QueueState;
use crate::selector::Labels;

/// A queue. Rows exist for names that only PodGroups know, too; those are not [`Queue::present`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    /// `metadata.name`, which is the queue's id.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// The Queue object is known.
    pub present: bool,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// `spec.weight`.
    pub weight: i32,
    /// `spec.priority`.
    pub priority: i32,
    /// `spec.reclaimable`: other queues may take back what this one has too much.
    pub reclaimable: bool,
    /// `spec.capability`; empty: unlimited.
    pub capability: Resource,
    /// `spec.deserved`.
    pub deserved: Resource,
    /// `spec.guarantee.resource`.
    pub guarantee: Resource,
    /// cpu and memory, if deserved or guarantee list them, be it as 0: of these the queue has a quota
    /// (cohort.md B.2). Other resources exist only where they are listed.
    pub listed: Vec<Dim>,
    /// Empty: `root`.
    pub parent: Arc<str>,
    /// `spec.dequeueStrategy` is `fifo` (D38).
    pub fifo: bool,
    /// `status.state`; empty counts as Open (C-33).
    pub state: QueueState,
    /// `volcano.sh/hierarchy` and `volcano.sh/hierarchy-weights`, if any.
    pub annotations: Labels,
    /// `status.allocated` as quantity texts by name, as last seen or written by us; `None`: must be
    /// written again.
    pub written_allocated: Option<Vec<(Arc<str>, vc_resource::Quantity)>>,
    /// Jobs that name it, those that are part of no session too.
    pub n_jobs: u32,
}

impl Queue {
    /// It does not exist, and no job names it.
    pub(crate) fn is_unused(&self) -> bool {
        !self.present && self.n_jobs == 0
    }

    /// Open, or empty (C-33).
    pub fn is_open(&self) -> bool {
        self.state == QueueState::Open
    }
}
