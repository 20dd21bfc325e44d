//! A queue. Specification: core.md 3.9, plugins-jobs-queues.md 16.2.

use std::sync::Arc;

use vc_resource::Resource;

use crate::record::QueueState;
use crate::selector::Labels;

/// A queue. Rows exist for names that only PodGroups know, too; those are not [`Queue::present`].
#[derive(Clone, Debug, Default)]
pub struct Queue {
    pub name: Arc<str>,
    /// The Queue object is known.
    pub present: bool,
    /// Microseconds since 1970.
    pub created_micros: i64,
    pub weight: i32,
    pub priority: i32,
    pub reclaimable: bool,
    pub capability: Resource,
    pub deserved: Resource,
    pub guarantee: Resource,
    /// Empty: `root`.
    pub parent: Arc<str>,
    pub fifo: bool,
    pub state: QueueState,
    /// `volcano.sh/hierarchy` and `volcano.sh/hierarchy-weights`, if any.
    pub annotations: Labels,
    /// `status.allocated` as quantity texts by name, as last seen or written by us; `None`: must be
    /// written again.
    pub written_allocated: Option<Vec<(Arc<str>, vc_resource::Quantity)>>,
}

impl Queue {
    /// Open, or empty (C-33).
    pub fn is_open(&self) -> bool {
        self.state == QueueState::Open
    }
}
