//! Keys with which caches revalidate answers of a plugin where the declared inputs
//! ([`crate::Depends`]) are not enough. Specification: core.md 5.3, actions.md 12.2.

use vc_model::{JobId, QueueId, TaskId};

use super::{AdmissionMark, Clock, SessionView};
use crate::failed_preemption_cache::QueueUsageStamp;

/// Keys of a plugin's answers. Each default means "no key": the answer is then not cached.
pub trait CacheKeys {
    /// Returns when the time may change an answer. Called after a session, for plugins that declare
    /// [`crate::Inputs::CLOCK`].
    fn clock(&self, _view: SessionView<'_>) -> Clock {
        Clock::Reads
    }
    /// Returns a number that grows when the time or an object of a queue has changed answers of
    /// Predicate or NodeOrder about the same node, pod shape and queue. `None` means that any
    /// session may have changed them.
    fn revision(&self) -> Option<u64> {
        None
    }
    /// True if the plugin keeps state for this pod or its job alone. Called for plugins that
    /// declare [`crate::Inputs::IDENTITY`].
    fn has_own_state(&self, _view: SessionView<'_>, _task: TaskId) -> bool {
        true
    }
    /// True if QueueOrder compares this queue by a sort key, which depends only on its pods, on
    /// those of the queues that [`CacheKeys::queues_that_move`] names, and on what
    /// [`CacheKeys::queue_order_revision`] stands for. Called for plugins whose QueueOrder declares
    /// usage of other queues.
    fn has_total_order_key(&self, _view: SessionView<'_>, _queue: QueueId) -> bool {
        false
    }
    /// Returns a number that stands for what sort keys in QueueOrder depend on besides the pods of
    /// queues: equal numbers in one session, equal content.
    fn queue_order_revision(&self) -> u64 {
        0
    }
    /// True if [`CacheKeys::job_line`] may be called. Called for plugins whose JobOrder declares
    /// usage of queues.
    fn has_job_lines(&self) -> bool {
        false
    }
    /// Returns the line of a job within its queue. JobOrder has no opinion about two jobs of one
    /// line, and the usage that it compares is one of lines.
    fn job_line(&self, _view: SessionView<'_>, _job: JobId) -> u64 {
        0
    }
    /// Returns what JobEnqueueable reads of a job besides its request.
    fn admission_mark(&self, _view: SessionView<'_>, _job: JobId) -> AdmissionKey {
        AdmissionKey::AsDeclared
    }
    /// Returns what JobPipelined reads besides the job's row: in one session, equal rows and marks
    /// give equal answers. `None` means that it reads more. Called for plugins whose JobPipelined
    /// declares the job's row and the clock.
    fn pipeline_mark(&self, _view: SessionView<'_>, _job: JobId) -> Option<bool> {
        None
    }
    /// True if VictimTasks may name a pod in this session. If false, it is not called.
    fn has_victim_tasks(&self) -> bool {
        true
    }
    /// True if votes on victims read more of this candidate than its row and its job. The answer
    /// holds while [`vc_model::Budgets::coverage`] is unchanged.
    fn concerns(&self, _view: SessionView<'_>, _candidate: TaskId) -> bool {
        true
    }
    /// Returns what votes on victims read of a candidate's queue. Within a session only placements
    /// and removals of that queue's pods change it, and of those that
    /// [`CacheKeys::queues_that_move`] names. `None` means that other queues change it too.
    fn queue_usage(&self, _view: SessionView<'_>, _queue: QueueId) -> Option<QueueUsageStamp> {
        None
    }
    /// Returns the group of queues whose [`CacheKeys::queue_usage`] or sort key in QueueOrder changes
    /// when a pod of this queue is placed or removed. All queues of a group return the same group. An empty list
    /// stands for this queue alone.
    fn queues_that_move(&self, _queue: QueueId) -> Vec<QueueId> {
        Vec::new()
    }
    /// Returns what votes on victims read of the preemptor's job and of the queues above it,
    /// together with its request. `None` means that it is not known. Called for plugins that
    /// declare [`crate::Inputs::OWN_QUEUE_USAGE`]. If the plugin does not declare to read the pod
    /// row, reclaimers of different queues with equal requests and equal results get equal votes
    /// about pods of third queues.
    fn own_queue_usage(&self, _view: SessionView<'_>, _task: TaskId) -> Option<QueueUsageStamp> {
        None
    }
}

/// Key for what JobEnqueueable reads of a job besides its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionKey {
    /// The answer reads only the declared inputs.
    AsDeclared,
    /// The answer reads the declared inputs and this mark.
    Marked(AdmissionMark),
    /// The answer reads more than a mark, or it changes state; it is not cached.
    None,
}
