//! Who may take back from whom, by the queue of the group that wants room. Specification: cohort.md
//! A.4.

/// Which groups of its own queue a group may replace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithinQueue {
    /// None.
    #[default]
    Never,
    /// Those of lower priority.
    LowerPriority,
    /// Those, and newer ones of the same priority.
    LowerOrNewerEqualPriority,
}

/// Which groups of other queues, which use more than their quota, may be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReclaimWithin {
    /// None.
    #[default]
    Never,
    /// Those of lower priority.
    LowerPriority,
    /// All.
    Any,
}

/// Which groups of other queues may be taken while the own queue borrows; not asked under fair
/// sharing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BorrowWithin {
    /// None.
    #[default]
    Never,
    /// Those of lower priority.
    LowerPriority {
        /// And of at most this one; `None`: there is no such limit.
        max_priority: Option<i32>,
    },
}

impl BorrowWithin {
    /// Whether a group of this priority may be taken for one of that priority.
    pub(crate) fn allows(self, target: i32, preemptor: i32) -> bool {
        match self {
            Self::Never => false,
            Self::LowerPriority { max_priority } => {
                target < preemptor && max_priority.is_none_or(|limit| target <= limit)
            }
        }
    }
}

/// The policies of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// `withinClusterQueue`.
    pub within_queue: WithinQueue,
    /// `reclaimWithinCohort`.
    pub reclaim_within: ReclaimWithin,
    /// `borrowWithinCohort`.
    pub borrow_within: BorrowWithin,
}
