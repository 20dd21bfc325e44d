//! What a plugin is: the table of extension points as one trait with neutral defaults.
//! Specification: core.md 5.3, plugins-jobs-queues.md 1.

use std::cmp::Ordering;

use vc_conf::{PluginOption, Warning};
use vc_model::{Cluster, Finding, JobId, NodeId, QueueId, TaskId};
use vc_resource::Fractional;

use crate::outbox::Outbox;
use crate::points::Points;
use crate::records::Records;

/// What is fixed for a session.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Microseconds since 1970; stands still within a cycle.
    pub now_micros: i64,
    /// Known nodes in name order.
    pub nodes: Vec<NodeId>,
    /// Jobs that have a PodGroup and whose queue exists, by (namespace, name).
    pub jobs: Vec<JobId>,
    /// Known queues by name.
    pub queues: Vec<QueueId>,
    /// Σ allocatable of all session nodes.
    pub total: Fractional,
    /// The action `enqueue` is configured (core.md 2.2).
    pub enqueue_configured: bool,
    /// Transition id of the conditions of this session.
    pub session_id: String,
}

/// What a plugin may look at: the working state of the cluster and the facts of the session.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub cluster: &'a Cluster,
    pub facts: &'a Facts,
}

/// Answer of an evictable function (core.md 5.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Abstain,
    /// The candidates that may go, in the order given; empty ends the tier with nothing.
    Victims(Vec<TaskId>),
}

/// Answer of a voting function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    Permit,
    Abstain,
    Reject,
}

/// Answer of JobEnqueueable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    Permit,
    Abstain,
    /// With the message of the Normal event `Unschedulable` on the PodGroup, if there is one.
    Reject(Option<String>),
}

/// Why a job is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    pub reason: &'static str,
    pub message: String,
}

/// Who evicts, for UnifiedEvictable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GangEviction {
    Preempt,
    Reclaim,
}

/// Share of a queue, for reports.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueShare {
    pub deserved: Fractional,
    pub share: f64,
}

/// A scheduling policy. Every rule has a neutral default; a plugin overrides the rules it states and names
/// them in `points`: a rule that is not named there is never asked.
///
/// The object lives as long as its configuration; `open` starts a session from nothing.
pub trait Plugin: Send + Sync {
    /// The rules that this object states; may depend on its options.
    fn points(&self) -> Points;

    /// A session begins.
    fn open(&mut self, _ask: Ask<'_>) {}
    /// A session ends; everything uncommitted is still in place (core.md 5.1 step 8).
    fn close(&mut self, _ask: Ask<'_>, _records: &Records, _out: &mut Outbox) {}
    /// A task was allocated, pipelined, or its eviction taken back (plugins-jobs-queues.md 1.3). The task's
    /// status and node are the new ones.
    fn on_allocate(&mut self, _ask: Ask<'_>, _task: TaskId) {}
    /// A task was evicted, un-pipelined, or its allocation taken back; status and node are the new ones.
    fn on_deallocate(&mut self, _ask: Ask<'_>, _task: TaskId) {}

    fn queue_order(&self, _ask: Ask<'_>, _l: QueueId, _r: QueueId) -> Ordering {
        Ordering::Equal
    }
    fn job_order(&self, _ask: Ask<'_>, _l: JobId, _r: JobId) -> Ordering {
        Ordering::Equal
    }
    fn task_order(&self, _ask: Ask<'_>, _l: TaskId, _r: TaskId) -> Ordering {
        Ordering::Equal
    }
    /// Two sub-jobs of one job, by index.
    fn sub_job_order(&self, _ask: Ask<'_>, _job: JobId, _l: usize, _r: usize) -> Ordering {
        Ordering::Equal
    }
    /// Queues of two victims, given the preemptor's.
    fn victim_queue_order(&self, _: Ask<'_>, _l: QueueId, _r: QueueId, _own: QueueId) -> Ordering {
        Ordering::Equal
    }

    fn job_valid(&self, _ask: Ask<'_>, _job: JobId) -> Result<(), Invalid> {
        Ok(())
    }
    fn job_ready(&self, _ask: Ask<'_>, _job: JobId) -> bool {
        true
    }
    fn job_pipelined(&self, _ask: Ask<'_>, _job: JobId) -> Vote {
        Vote::Abstain
    }
    fn sub_job_ready(&self, _ask: Ask<'_>, _job: JobId, _sub_job: usize) -> bool {
        true
    }
    fn sub_job_pipelined(&self, _ask: Ask<'_>, _job: JobId, _sub_job: usize) -> Vote {
        Vote::Abstain
    }
    fn job_starving(&self, _ask: Ask<'_>, _job: JobId) -> bool {
        true
    }

    fn job_enqueueable(&self, _ask: Ask<'_>, _job: JobId) -> Admission {
        Admission::Abstain
    }
    fn job_enqueued(&mut self, _ask: Ask<'_>, _job: JobId) {}

    fn overused(&self, _ask: Ask<'_>, _queue: QueueId) -> bool {
        false
    }
    fn allocatable(&self, _ask: Ask<'_>, _queue: QueueId, _task: TaskId) -> bool {
        true
    }
    /// After `allocatable` said no: the dimensions that fail, for the message of A20, in report order.
    fn allocatable_lacks(&self, _: Ask<'_>, _: QueueId, _: TaskId) -> Vec<vc_resource::Dim> {
        Vec::new()
    }
    fn preemptive(&self, _ask: Ask<'_>, _queue: QueueId, _tasks: &[TaskId]) -> bool {
        true
    }

    fn preemptable(&self, _ask: Ask<'_>, _preemptor: TaskId, _candidates: &[TaskId]) -> Verdict {
        Verdict::Abstain
    }
    fn reclaimable(&self, _ask: Ask<'_>, _reclaimer: TaskId, _candidates: &[TaskId]) -> Verdict {
        Verdict::Abstain
    }
    fn unified_evictable(
        &self,
        _ask: Ask<'_>,
        _initiator: JobId,
        _kind: GangEviction,
        _candidates: &[TaskId],
    ) -> Verdict {
        Verdict::Abstain
    }
    /// A protective filter (D1): what it protects is taken out of the candidates before the tiers vote, where
    /// its Preemptable, Reclaimable switch is on; it must not vote there itself. Asked only if
    /// [`Plugin::is_victim_filter`].
    fn protects(&self, _ask: Ask<'_>, _candidate: TaskId) -> bool {
        false
    }
    /// Whether this plugin is a protective filter instead of a voter.
    fn is_victim_filter(&self) -> bool {
        false
    }
    fn victim_tasks(&self, _ask: Ask<'_>, _running: &[TaskId]) -> Vec<TaskId> {
        Vec::new()
    }

    /// Once per task before its nodes are filtered; an error fits nowhere.
    fn pre_predicate(&self, _ask: Ask<'_>, _task: TaskId) -> Result<(), String> {
        Ok(())
    }
    /// Whether the task may run on the node: findings are appended; none = fits.
    fn predicate(&self, _: Ask<'_>, _task: TaskId, _node: NodeId, _findings: &mut Vec<Finding>) {}
    /// Score of one node; an error leaves the node with 0 from this plugin.
    fn node_order(&self, _ask: Ask<'_>, _task: TaskId, _node: NodeId) -> Result<f64, String> {
        Ok(0.0)
    }
    /// Adds scores of all candidate nodes to `out`, which has the length of `nodes`. On an error `out` is
    /// discarded for this plugin.
    fn batch_node_order(
        &self,
        _ask: Ask<'_>,
        _task: TaskId,
        _nodes: &[NodeId],
        _out: &mut [f64],
    ) -> Result<(), String> {
        Ok(())
    }
    /// The node this plugin insists on, of `nodes` with their scores.
    fn best_node(&self, _ask: Ask<'_>, _task: TaskId, _scored: &[(NodeId, f64)]) -> Option<NodeId> {
        None
    }

    /// For reports: deserved and share of a queue, if this plugin divides the cluster.
    fn queue_share(&self, _ask: Ask<'_>, _queue: QueueId) -> Option<QueueShare> {
        None
    }
}

/// The only place where a plugin is named: one element of `vc_plugins::ALL`.
pub struct PluginEntry {
    pub name: &'static str,
    /// Builds the plugin from its entry in the configuration; problems of arguments become warnings and
    /// leave the default.
    pub build: fn(&PluginOption, &mut Vec<Warning>) -> Box<dyn Plugin>,
}
