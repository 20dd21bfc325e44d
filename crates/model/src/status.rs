//! Task statuses and the counters over them. Specification: core.md 3.4, 3.7.

use serde::{Deserialize, Serialize};

/// Status of a task. [`TaskStatus::number`] returns its number in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskStatus {
    /// The pod waits: it has no node and is not being deleted.
    Pending,
    /// The task was placed in this cycle and is not dispatched yet.
    Allocated,
    /// The task was placed on resources that are still being released.
    Pipelined,
    /// The task was handed to the binder.
    Binding,
    /// The pod has a node and does not run yet.
    Bound,
    /// The pod runs.
    Running,
    /// The pod was evicted or is being deleted.
    Releasing,
    /// The pod ended successfully.
    Succeeded,
    /// The pod failed, or we evicted it and it has ended (A46).
    Failed,
    /// The pod's phase is Unknown or none of the others.
    Unknown,
}

/// All statuses in the order of their numbers.
pub const STATUSES: [TaskStatus; 10] = [
    TaskStatus::Pending,
    TaskStatus::Allocated,
    TaskStatus::Pipelined,
    TaskStatus::Binding,
    TaskStatus::Bound,
    TaskStatus::Running,
    TaskStatus::Releasing,
    TaskStatus::Succeeded,
    TaskStatus::Failed,
    TaskStatus::Unknown,
];

impl TaskStatus {
    /// Returns the number in core.md 3.4: 1, 2, 4 … 512.
    pub fn number(self) -> u32 {
        1 << (self as u32)
    }

    /// Returns the name that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Allocated => "Allocated",
            Self::Pipelined => "Pipelined",
            Self::Binding => "Binding",
            Self::Bound => "Bound",
            Self::Running => "Running",
            Self::Releasing => "Releasing",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }

    /// True for Allocated, Binding, Bound and Running.
    pub fn is_allocated(self) -> bool {
        matches!(self, Self::Allocated | Self::Binding | Self::Bound | Self::Running)
    }

    /// True for Bound and Running: the task may be evicted.
    pub fn is_preemptable(self) -> bool {
        matches!(self, Self::Bound | Self::Running)
    }

    /// True for Succeeded and Failed: the task holds no resources of its node.
    pub fn is_terminated(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// True for Running, Bound, Succeeded and Failed.
    pub fn is_scheduled(self) -> bool {
        matches!(self, Self::Running | Self::Bound | Self::Succeeded | Self::Failed)
    }
}

/// Number of tasks of a job, role or sub-job per status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    by_status: [u32; 10],
    /// Number of Pending tasks whose request is empty.
    pub pending_best_effort: u32,
    /// Number of Releasing tasks that have a node.
    pub releasing_on_node: u32,
}

impl Counts {
    /// Returns the number of tasks in this status.
    pub fn of(&self, status: TaskStatus) -> u32 {
        self.by_status[status as usize]
    }

    pub(crate) fn add(&mut self, status: TaskStatus, best_effort: bool, on_node: bool) {
        self.by_status[status as usize] += 1;
        self.pending_best_effort += u32::from(status == TaskStatus::Pending && best_effort);
        self.releasing_on_node += u32::from(status == TaskStatus::Releasing && on_node);
    }

    pub(crate) fn sub(&mut self, status: TaskStatus, best_effort: bool, on_node: bool) {
        self.by_status[status as usize] -= 1;
        self.pending_best_effort -= u32::from(status == TaskStatus::Pending && best_effort);
        self.releasing_on_node -= u32::from(status == TaskStatus::Releasing && on_node);
    }

    /// Returns the number of all tasks.
    pub fn total(&self) -> u32 {
        self.by_status.iter().sum()
    }

    /// Returns Allocated + Binding + Bound + Running.
    pub fn allocated(&self) -> u32 {
        STATUSES.iter().filter(|status| status.is_allocated()).map(|&status| self.of(status)).sum()
    }

    /// Returns Allocated + Binding + Bound + Running + Succeeded.
    pub fn ready(&self) -> u32 {
        self.allocated() + self.of(TaskStatus::Succeeded)
    }

    /// Returns the number of tasks that may be evicted.
    pub fn preemptable(&self) -> u32 {
        let preemptable = STATUSES.into_iter().filter(|status| status.is_preemptable());
        preemptable.map(|status| self.of(status)).sum()
    }

    /// Returns the number of Pipelined tasks.
    pub fn waiting(&self) -> u32 {
        self.of(TaskStatus::Pipelined)
    }

    /// Returns ready + waiting + Pending.
    pub fn valid(&self) -> u32 {
        self.ready() + self.waiting() + self.of(TaskStatus::Pending)
    }

    /// Returns Running + Bound + Succeeded + Failed.
    pub fn scheduled(&self) -> u32 {
        STATUSES.iter().filter(|status| status.is_scheduled()).map(|&status| self.of(status)).sum()
    }

    /// True if ready + pending best effort ≥ `min_available`.
    pub fn is_ready(&self, min_available: i32) -> bool {
        min_available <= as_i32(self.ready() + self.pending_best_effort)
    }

    /// True if waiting + ready + pending best effort ≥ `min_available`.
    pub fn is_pipelined(&self, min_available: i32) -> bool {
        min_available <= as_i32(self.waiting() + self.ready() + self.pending_best_effort)
    }

    /// Returns how many more tasks have to be placed until [`Counts::is_pipelined`] holds.
    pub fn lacks(&self, min_available: i32) -> i64 {
        let placed = self.waiting() + self.ready() + self.pending_best_effort;
        (i64::from(min_available) - i64::from(placed)).max(0)
    }

    /// True if waiting + ready < `min_available`. Pending best-effort tasks do not count here.
    pub fn is_starving(&self, min_available: i32) -> bool {
        as_i32(self.waiting() + self.ready()) < min_available
    }
}

fn as_i32(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
