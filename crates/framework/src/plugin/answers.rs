//! Answers of plugins at the extension points.
//! Specification: core.md 5.3, 5.5.

use vc_model::TaskId;
use vc_resource::Fractional;

/// Answer of an evictable function (core.md 5.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VictimVote {
    /// The plugin has no opinion.
    Abstain,
    /// The candidates that may be evicted, in the order given. An empty list means that the tier
    /// grants no victim.
    Victims(Vec<TaskId>),
}

/// Answer of a voting function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Yes, for this tier.
    Permit,
    /// No opinion.
    Abstain,
    /// No, at once.
    Reject,
}

/// Answer of JobEnqueueable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Yes, for this tier.
    Permit,
    /// No opinion.
    Abstain,
    /// No, at once. The string is the message of the Normal event `Unschedulable` on the PodGroup;
    /// `None` sends no event.
    Reject(Option<String>),
}

/// A mark for what JobEnqueueable reads of a job besides queue, namespace and `minResources`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionMark {
    /// A value on which the answer may depend: jobs with equal requests and marks get equal
    /// answers.
    pub mark: bool,
    /// Time at which the mark may change, in microseconds since 1970. `None` if it changes only
    /// with the job's row.
    pub until_micros: Option<i64>,
}

/// Reason and message for a job that is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInvalid {
    /// Reason of the condition, one word.
    pub reason: &'static str,
    /// Message of the condition.
    pub message: String,
}

/// The gang action that evicts, for UnifiedEvictable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GangEviction {
    /// `gangpreempt`: inside a queue.
    Preempt,
    /// `gangreclaim`: from other queues.
    Reclaim,
}

/// Time at which an answer of a plugin may change although no object changed and nothing was
/// decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clock {
    /// At any time.
    Reads,
    /// Not before this time, in microseconds since 1970.
    Until(i64),
    /// Never.
    Ignores,
}

/// Share of a queue, for reports.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueShare {
    /// The deserved amounts, in the units of [`Fractional`].
    pub deserved: Fractional,
    /// Largest allocated / deserved over the dimensions; 1 means that all of the deserved amount is
    /// used.
    pub share: f64,
}
