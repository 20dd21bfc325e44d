//! What the plugin `extender` exchanges with its service, and the client that does it. The engine
//! knows neither HTTP nor JSON: the edge brings an [`ExtenderClient`].
//! Specification: plugins-jobs-queues.md 15.

use std::fmt;
use std::time::Duration;

use vc_model::{JobId, NodeId, QueueId, TaskId, TaskStatus};

use crate::plugin::SessionView;

/// One request to the service.
#[derive(Clone, Copy)]
pub struct ExtenderRequest<'a> {
    /// Address of the hook, complete.
    pub url: &'a str,
    /// Longest time of the whole exchange.
    pub timeout: Duration,
    /// The state that the body shows.
    pub view: SessionView<'a>,
    /// The question.
    pub query: ExtenderQuery<'a>,
}

/// The question of a request, by hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtenderQuery<'a> {
    /// A session begins.
    SessionOpen,
    /// A session ends.
    SessionClose,
    /// May the task run on the node?
    Predicate {
        /// The task.
        task: TaskId,
        /// The node.
        node: NodeId,
    },
    /// What are the nodes worth for the task?
    Prioritize {
        /// The task.
        task: TaskId,
        /// The nodes that can take it.
        nodes: &'a [NodeId],
    },
    /// Which candidates may be evicted for a task of the same queue?
    Preemptable {
        /// The task that needs room.
        evictor: TaskId,
        /// The candidates.
        evictees: &'a [TaskId],
    },
    /// Which candidates may be evicted for a task of another queue?
    Reclaimable {
        /// The task that needs room.
        evictor: TaskId,
        /// The candidates.
        evictees: &'a [TaskId],
    },
    /// May the job be admitted to its queue?
    JobEnqueueable(JobId),
    /// The job was admitted.
    JobEnqueued(JobId),
    /// Does the queue use more than it deserves?
    QueueOverused(QueueId),
    /// May the placed tasks of the job be bound?
    JobReady(JobId),
    /// The task gets a place, or gets its place back.
    Allocate {
        /// The task.
        task: TaskId,
        /// Status and node that the task is about to get. `None` if it has them already.
        placed: Option<(TaskStatus, NodeId)>,
    },
    /// The task loses its place.
    Deallocate(TaskId),
}

/// An answer of the service. A field that the hook does not have is zero, as is a missing one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtenderAnswer {
    /// `status` of predicate, and `errorMessage`.
    pub message: String,
    /// `code` of predicate, and `status` where it is a number.
    pub code: i64,
    /// `overused`, and `status` of jobReady.
    pub is_true: bool,
    /// `nodeScore`: names of nodes with their scores, which are finite.
    pub scores: Vec<(String, f64)>,
    /// `UID` of each of `victims`.
    pub victims: Vec<String>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtenderError {
    /// The service did not answer at all, or not in time.
    #[error("{0}")]
    Unreachable(String),
    /// The service answered with something that is no answer.
    #[error("{0}")]
    BadAnswer(String),
}

/// Way to the service. It blocks until there is an answer, or the time of the request is over.
pub trait ExtenderClient: fmt::Debug + Send + Sync {
    /// Exchanges one request for its answer.
    ///
    /// # Errors
    /// Why there is no answer.
    fn exchange(&self, request: &ExtenderRequest<'_>) -> Result<ExtenderAnswer, ExtenderError>;

    /// Exchanges requests that do not depend on each other, and returns one result for each, in
    /// order. Requests that follow after one without any answer need not be sent.
    fn exchange_all(
        &self,
        requests: &[ExtenderRequest<'_>],
    ) -> Vec<Result<ExtenderAnswer, ExtenderError>> {
        requests.iter().map(|request| self.exchange(request)).collect()
    }
}
