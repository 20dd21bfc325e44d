//! Recorder of what a piece of code reads of the cluster, for tests. It shows whether a rule reads
//! more than it declares. Tables report the rows that are read; [`crate::Column`] reports reads of
//! state that is kept per queue or job. Programs without debug assertions have no recorder. With
//! debug assertions it records only once it is switched on.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{JobId, NodeId, QueueId, TaskId};

/// One thing that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// The row of a node.
    Node(NodeId),
    /// The row of a pod.
    Task(TaskId),
    /// The class of a pod: its request, labels and all else that filters read.
    Class(TaskId),
    /// The row of a PodGroup.
    Job(JobId),
    /// The row of a queue.
    Queue(QueueId),
    /// State that a plugin keeps of the resources that a PodGroup holds.
    JobUsage(JobId),
    /// State that a plugin keeps of the resources that a queue holds.
    QueueUsage(QueueId),
    /// State that a plugin keeps of the resources that many queues hold together.
    QueueUsages,
    /// State that a plugin keeps for one pod or PodGroup alone.
    OwnState,
    /// Counts of pods by topology domain.
    OtherPods,
    /// Volumes, devices, images or ResourceQuotas.
    OtherObjects,
    /// PodDisruptionBudgets.
    Budgets,
    /// The time.
    Clock,
    /// The sum of the allocatable amounts of all nodes.
    Total,
}

impl Read {
    /// Returns the read of state that a plugin keeps for this row. Returns `None` if such reads are
    /// not recorded.
    #[inline]
    pub(crate) fn of_usage(self) -> Option<Self> {
        match self {
            Read::Job(job) => Some(Read::JobUsage(job)),
            Read::Queue(queue) => Some(Read::QueueUsage(queue)),
            _ => None,
        }
    }
}

static IS_ON: AtomicBool = AtomicBool::new(false);

thread_local! {
    static READS: RefCell<Option<BTreeSet<Read>>> = const { RefCell::new(None) };
}

/// Switches the recorder on for the rest of the process.
pub fn switch_on() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// True if the recorder is switched on. Always false without debug assertions.
#[inline]
pub fn is_on() -> bool {
    cfg!(debug_assertions) && IS_ON.load(Ordering::Relaxed)
}

/// Records a read, if the recorder is switched on.
#[inline]
pub fn note(read: Read) {
    if is_on() {
        add(read);
    }
}

#[cold]
fn add(read: Read) {
    READS.with_borrow_mut(|reads| {
        if let Some(reads) = reads {
            reads.insert(read);
        }
    });
}

/// Runs the code, and returns its result with the set of its reads in this thread. Reads inside a
/// nested `record` count for the nested call only.
pub fn record<T>(code: impl FnOnce() -> T) -> (T, BTreeSet<Read>) {
    let outer = READS.replace(Some(BTreeSet::new()));
    let result = code();
    let reads = READS.replace(outer);
    (result, reads.unwrap_or_default())
}
