//! A plugin is a trait with one method per extension point; each method has a neutral default.
//! Specification: core.md 5.3, plugins-jobs-queues.md 1.

mod answers;

mod cache_keys;
mod memory;
mod past_usage;
mod quota;
mod topology;
mod vectorized;
mod victim_filter;

use std::cmp::Ordering;
use std::sync::Arc;

use vc_conf::{
    DeclaredArgument, EnqueueVote, EntryCheck, PluginDeclaration, PluginOption, QueueRule, Warning,
};
use vc_model::reads::{self, Read};
use vc_model::{
    Cluster, Finding, HyperNodeTree, JobId, NodeId, QueueId, Reservation, TaskId, TaskStatus,
};
use vc_resource::{Fractional, Resource};

use crate::active_jobs::ActiveJobs;
use crate::atom::Atom;
use crate::depends::Depends;
use crate::effect::Effect;
use crate::extender::ExtenderClient;
use crate::lens::RefusalRule;
use crate::limit::{LimitFact, QueueLimit};
use crate::outbox::Outbox;
use crate::plugin_set::in_session;
use crate::points::Points;
use crate::quota::EvictionSides;
use crate::records::Records;

pub use cache_keys::{AdmissionKey, CacheKeys};
pub use memory::{EarlierMemory, PluginMemory};
pub use past_usage::PastUsage;
pub use quota::QuotaPlugin;
pub use topology::{
    Gradient, GradientProblem, GradientPurpose, GradientQuery, HyperNodeScore, TopologyPlugin,
};
pub use vectorized::VectorizedPlugin;
pub use victim_filter::VictimFilter;

pub use answers::{
    Admission, AdmissionMark, Clock, GangEviction, JobInvalid, QueueShare, VictimVote, Vote,
};

/// Constants of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionInfo {
    /// Microseconds since 1970; stands still within a cycle.
    pub now_micros: i64,
    /// Time of the cycle before, whether it had a session or not. It may be later than now, if the
    /// clock was set back. `None`: there was none.
    pub previous_micros: Option<i64>,
    /// The session time as the API writes it ([`crate::rfc3339`]), used in all conditions and
    /// events.
    pub now_text: Arc<str>,
    /// Known nodes in name order.
    pub nodes: Arc<[NodeId]>,
    /// Jobs that an action may have to look at, sorted by uid (`namespace/name`): they wait, or
    /// something may be owed to them. Running and complete jobs without a change are left out.
    /// [`SessionView::all_jobs`] lists every job; `active_jobs` has sums over all jobs. The plain
    /// evaluator puts all jobs here.
    pub jobs: Vec<JobId>,
    /// Jobs to look at when the session closes, sorted by uid: `jobs` without `repeated`, and every
    /// job that changed since the last session began.
    pub to_close: Vec<JobId>,
    /// Jobs of `jobs` that are not in `to_close`, sorted by uid. Nothing about them changed since a
    /// session close last wrote about them.
    pub repeated: Vec<JobId>,
    /// Index of all jobs and of those that need attention.
    pub active_jobs: ActiveJobs,
    /// Known queues by name.
    pub queues: Vec<QueueId>,
    /// Σ allocatable of all session nodes.
    pub total: Fractional,
    /// HyperNodes over the session nodes, below a virtual root.
    pub hyper_nodes: Arc<HyperNodeTree>,
    /// True if the action `enqueue` is configured (core.md 2.2).
    pub enqueue_configured: bool,
    /// Transition id that this session writes into conditions.
    pub session_id: Arc<str>,
    /// Which groups the configured actions may evict where a plugin decides targets.
    pub sides: EvictionSides,
    /// Jobs with an eviction hold, in key order, with their Pending tasks that have a planned node.
    pub claimed: Vec<(JobId, Vec<TaskId>)>,
}

/// The read-only state that a plugin gets: the tables and the constants of the session.
#[derive(Clone, Copy)]
pub struct SessionView<'a> {
    /// The tables, including all tentative operations that are not undone.
    pub cluster: &'a Cluster,
    /// The constants of the session.
    pub info: &'a SessionInfo,
}

impl<'a> SessionView<'a> {
    /// The time of the session in microseconds since 1970: [`crate::Inputs::CLOCK`].
    pub fn now_micros(self) -> i64 {
        reads::note(Read::Clock);
        self.info.now_micros
    }

    /// Σ allocatable of all nodes: [`crate::Inputs::CLUSTER_TOTAL`].
    pub fn total(self) -> &'a Fractional {
        reads::note(Read::Total);
        &self.info.total
    }

    /// True if the job exists and is part of the session.
    pub fn has_job(self, job: JobId) -> bool {
        self.cluster.jobs.get(job).is_some() && in_session(self.cluster, job)
    }

    /// Returns all jobs of the session by uid (`namespace/name`). They have a PodGroup, and their
    /// queue exists.
    pub fn all_jobs(self) -> impl Iterator<Item = JobId> + 'a {
        self.cluster.jobs_by_key().filter(move |&job| in_session(self.cluster, job))
    }

    /// Returns the same jobs by id, which costs less.
    pub fn all_jobs_by_id(self) -> impl Iterator<Item = JobId> + 'a {
        self.cluster.jobs.ids().filter(move |&job| in_session(self.cluster, job))
    }
}

/// Predicate for the nodes of one task. It appends its findings; if it appends none, the task may
/// run on the node. The closure borrows the state it was prepared from, so no operation can
/// invalidate it.
pub type NodeRule<'a> = Box<dyn Fn(NodeId, &mut Vec<Finding>) + Send + Sync + 'a>;

/// A scheduling policy. Every rule has a neutral default. A plugin overrides the rules that it
/// states and names them in `points`; rules that are not named there are never called. Order
/// methods return `Less` if `l` goes first.
///
/// The object lives as long as its configuration. `open` starts each session without state of
/// earlier ones; `hand_over` and `take_over` carry state across a reload.
pub trait Plugin: Send + Sync {
    /// Returns the extension points that this object implements; may depend on its options.
    fn points(&self) -> Points;
    /// Returns what the answers of each rule may read, fixed like the points. The default is
    /// correct and slow: no answer of the plugin is cached.
    fn depends(&self) -> Depends {
        Depends::EVERYTHING
    }
    /// Returns the cache keys for answers that read more than `depends` declares.
    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        None
    }
    /// Returns faster forms of the node rules.
    fn as_vectorized(&self) -> Option<&dyn VectorizedPlugin> {
        None
    }
    /// Returns the victim filter that this plugin implements.
    fn as_victim_filter(&self) -> Option<&dyn VictimFilter> {
        None
    }
    /// Returns the part of this plugin that orders HyperNodes.
    fn as_topology(&self) -> Option<&dyn TopologyPlugin> {
        None
    }
    /// Returns the part of this plugin that remembers past usage.
    fn as_past_usage(&self) -> Option<&dyn PastUsage> {
        None
    }
    /// Returns the part of this plugin that decides about quota between queues.
    fn as_quota(&self) -> Option<&dyn QuotaPlugin> {
        None
    }
    /// Returns the quota part of this plugin for notices that change its state.
    fn as_quota_mut(&mut self) -> Option<&mut dyn QuotaPlugin> {
        None
    }

    /// Returns a copy of the state that outlives this configuration: the plugin of the same name in
    /// the next one takes it over, and so do the plugins of a copy of the engine.
    fn memory(&self) -> Option<Box<dyn PluginMemory>> {
        None
    }
    /// Receives the state of an earlier plugin of the same name. Called before the first session.
    fn take_over(&mut self, _memory: EarlierMemory) {}

    /// Receives the way to services outside. Called before the first session, if there is one.
    fn connect(&mut self, _client: &Arc<dyn ExtenderClient>) {}

    /// Called when a session begins.
    fn open(&mut self, _view: SessionView<'_>) {}
    /// Called when a session ends, while uncommitted operations are still applied (core.md 5.1 step
    /// 8). What it writes about a job may depend only on the job's row, its records, and what was
    /// written before.
    fn close(&mut self, _view: SessionView<'_>, _records: &Records, _out: &mut Outbox) {}
    /// Returns the writes that keep the state of this plugin over a restart. Called once, when the
    /// process stops in order.
    fn last_writes(&mut self, _now_micros: i64) -> Vec<Effect> {
        Vec::new()
    }
    /// Returns by how much the shared devices of each job differ from what its pods request, with a
    /// job once for each node. Asked after `close`; the status of the queue adds it.
    fn device_corrections(&self) -> Vec<(JobId, Resource)> {
        Vec::new()
    }
    /// Called after a task was allocated or pipelined, or after its eviction was undone
    /// (plugins-jobs-queues.md 1.3). The task already has its new status and node.
    fn on_allocate(&mut self, _view: SessionView<'_>, _task: TaskId) {}
    /// Called after a task was evicted or unpipelined, or after its allocation was undone. The task
    /// already has its new status and node.
    fn on_deallocate(&mut self, _view: SessionView<'_>, _task: TaskId) {}
    /// Called when the queue allocation gate of a Pending task is about to be removed, because
    /// Allocatable found room (core.md 7.8). The task is placed in a later session.
    fn on_gate_lifted(&mut self, _view: SessionView<'_>, _task: TaskId) {}

    /// Reserve, an event handler: returns the volumes or devices to reserve for the task on the
    /// node it is about to get. Returns `None` if there is nothing to reserve. `status` is the
    /// status that the task gets: Allocated, or Pipelined if it waits there for other pods to leave.
    ///
    /// # Errors
    /// Why the task cannot have that node after all.
    fn reserve(
        &self,
        _: SessionView<'_>,
        _: TaskId,
        _: NodeId,
        _status: TaskStatus,
    ) -> Result<Option<Reservation>, String> {
        Ok(None)
    }

    /// QueueOrder: which queue is served first.
    fn queue_order(&self, _view: SessionView<'_>, _l: QueueId, _r: QueueId) -> Ordering {
        Ordering::Equal
    }
    /// JobOrder: which job of a queue is served first. An answer that reads more than the rows of
    /// the two jobs and the usage of their tasks is asked anew at each turn
    /// ([`CacheKeys::job_line`]).
    fn job_order(&self, _view: SessionView<'_>, _l: JobId, _r: JobId) -> Ordering {
        Ordering::Equal
    }
    /// TaskOrder: which task of a job is served first.
    fn task_order(&self, _view: SessionView<'_>, _l: TaskId, _r: TaskId) -> Ordering {
        Ordering::Equal
    }
    /// SubJobOrder: which of two sub-jobs of a job, given by index, is served first.
    fn sub_job_order(&self, _view: SessionView<'_>, _job: JobId, _l: usize, _r: usize) -> Ordering {
        Ordering::Equal
    }
    /// VictimQueueOrder: which queue loses its victims first, given the preemptor's queue `own`.
    /// `Less` means that victims of `l` go first.
    fn victim_queue_order(
        &self,
        _: SessionView<'_>,
        _l: QueueId,
        _r: QueueId,
        _own: QueueId,
    ) -> Ordering {
        Ordering::Equal
    }

    /// JobValid: whether actions may look at the job at all.
    ///
    /// # Errors
    /// Why the job is not valid.
    fn job_valid(&self, _view: SessionView<'_>, _job: JobId) -> Result<(), JobInvalid> {
        Ok(())
    }
    /// JobReady: whether the placed tasks of the job may be bound.
    fn job_ready(&self, _view: SessionView<'_>, _job: JobId) -> bool {
        true
    }
    /// JobPipelined: whether the placed tasks of the job may wait for room that is being released.
    fn job_pipelined(&self, _view: SessionView<'_>, _job: JobId) -> Vote {
        Vote::Abstain
    }
    /// SubJobReady: whether the placed tasks of a sub-job may be bound. Called only for jobs with
    /// policies.
    fn sub_job_ready(&self, _view: SessionView<'_>, _job: JobId, _sub_job: usize) -> bool {
        true
    }
    /// SubJobPipelined: whether the placed tasks of a sub-job may wait for room. Called only for
    /// jobs with policies.
    fn sub_job_pipelined(&self, _view: SessionView<'_>, _job: JobId, _sub_job: usize) -> Vote {
        Vote::Abstain
    }
    /// JobStarving: whether pods may be evicted for the job.
    fn job_starving(&self, _view: SessionView<'_>, _job: JobId) -> bool {
        true
    }

    /// JobEnqueueable: whether the job may be admitted to its queue now.
    fn job_enqueueable(&self, _view: SessionView<'_>, _job: JobId) -> Admission {
        Admission::Abstain
    }
    /// JobEnqueued: called after the job was admitted.
    fn job_enqueued(&mut self, _view: SessionView<'_>, _job: JobId) {}

    /// Overused: whether the queue has at least what it deserves.
    fn overused(&self, _view: SessionView<'_>, _queue: QueueId) -> bool {
        false
    }
    /// Allocatable: whether the queue has room for the task.
    fn allocatable(&self, _view: SessionView<'_>, _queue: QueueId, _task: TaskId) -> bool {
        true
    }
    /// Returns the dimensions in which `allocatable` failed, in report order, for the fit message
    /// (A20: a queue without room is reported on the task).
    fn allocatable_lacks(
        &self,
        _: SessionView<'_>,
        _: QueueId,
        _: TaskId,
    ) -> Vec<vc_resource::Dim> {
        Vec::new()
    }
    /// Returns the limit that these tasks of the queue together would exceed, for messages. Returns
    /// `None` if they exceed no limit.
    fn queue_limit(&self, _: SessionView<'_>, _: QueueId, _tasks: &[TaskId]) -> Option<QueueLimit> {
        None
    }
    /// Returns the limit that the job would exceed if it were admitted, for messages. Returns
    /// `None` if it would exceed no limit.
    fn admission_limit(&self, _: SessionView<'_>, _: JobId) -> Option<QueueLimit> {
        None
    }
    /// Returns the amounts on which `job_enqueueable` turned, for answers, if they are no
    /// [`QueueLimit`]. Empty if the plugin has none, or admits the job.
    fn admission_facts(&self, _: SessionView<'_>, _: JobId) -> Vec<LimitFact> {
        Vec::new()
    }
    /// Preemptive: whether the queue may reclaim from other queues for all these tasks together.
    fn preemptive(&self, _view: SessionView<'_>, _queue: QueueId, _tasks: &[TaskId]) -> bool {
        true
    }

    /// Preemptable: which candidates may be evicted for a task of the same queue. The candidates
    /// are in eviction order (actions.md 2.9).
    fn preemptable(
        &self,
        _view: SessionView<'_>,
        _preemptor: TaskId,
        _candidates: &[TaskId],
    ) -> VictimVote {
        VictimVote::Abstain
    }
    /// Reclaimable: which candidates may be evicted for a task of another queue.
    fn reclaimable(
        &self,
        _view: SessionView<'_>,
        _reclaimer: TaskId,
        _candidates: &[TaskId],
    ) -> VictimVote {
        VictimVote::Abstain
    }
    /// UnifiedEvictable: which candidates the gang actions may evict for a job. The candidates are
    /// in eviction order.
    fn unified_evictable(
        &self,
        _view: SessionView<'_>,
        _initiator: JobId,
        _kind: GangEviction,
        _candidates: &[TaskId],
    ) -> VictimVote {
        VictimVote::Abstain
    }
    /// VictimTasks: which running tasks to evict although no pod needs their room.
    fn victim_tasks(&self, _view: SessionView<'_>, _running: &[TaskId]) -> Vec<TaskId> {
        Vec::new()
    }

    /// PrePredicate: checks the task once, before its nodes are filtered.
    ///
    /// # Errors
    /// Why the task fits on no node.
    fn pre_predicate(&self, _view: SessionView<'_>, _task: TaskId) -> Result<(), String> {
        Ok(())
    }
    /// Predicate: whether the task may run on the node. Appends its findings; no finding means that
    /// the task may run there.
    fn predicate(
        &self,
        _: SessionView<'_>,
        _task: TaskId,
        _node: NodeId,
        _findings: &mut Vec<Finding>,
    ) {
    }
    /// Returns the rules by which this plugin refuses nodes for the task, all of them for each node
    /// and each by its own name, for answers. Returns `None` if its findings are one rule with the
    /// name of the plugin.
    fn refusals<'a>(&'a self, _: SessionView<'a>, _task: TaskId) -> Option<RefusalRule<'a>> {
        None
    }
    /// Returns the rules of `pre_predicate` that refuse the task, each by its own name, for
    /// answers. Returns `None` if they are one rule with the name of the plugin.
    fn unmet_needs(&self, _: SessionView<'_>, _task: TaskId) -> Option<Vec<Atom>> {
        None
    }
    /// Returns what JobOrder compares of this job, as text for answers. Returns `None` if the
    /// plugin has no such text.
    fn order_value(&self, _: SessionView<'_>, _job: JobId) -> Option<String> {
        None
    }
    /// Predicate for several nodes at once: returns the findings for each of `nodes`. Returns `None`
    /// if the plugin looks at one node at a time.
    fn predicate_all(
        &self,
        _: SessionView<'_>,
        _task: TaskId,
        _nodes: &[NodeId],
    ) -> Option<Vec<Vec<Finding>>> {
        None
    }
    /// NodeOrder: returns the score of one node.
    ///
    /// # Errors
    /// What went wrong, for the log. The node then scores 0 for NodeOrder as a whole, over all
    /// plugins.
    fn node_order(
        &self,
        _view: SessionView<'_>,
        _task: TaskId,
        _node: NodeId,
    ) -> Result<f64, String> {
        Ok(0.0)
    }
    /// BatchNodeOrder: adds the scores of all candidate nodes to `out`, which has the length of
    /// `nodes`.
    ///
    /// # Errors
    /// What went wrong, for the log. This plugin then contributes nothing (A13: a scorer that fails
    /// counts 0).
    fn batch_node_order(
        &self,
        _view: SessionView<'_>,
        _task: TaskId,
        _nodes: &[NodeId],
        _out: &mut [f64],
    ) -> Result<(), String> {
        Ok(())
    }
    /// NodeMap: returns this plugin's score of a node, before NodeReduce normalises it over all
    /// nodes.
    ///
    /// # Errors
    /// What went wrong, for the log. The node then keeps its other scores only.
    fn node_map(
        &self,
        _view: SessionView<'_>,
        _task: TaskId,
        _node: NodeId,
    ) -> Result<f64, String> {
        Ok(0.0)
    }
    /// NodeReduce: normalises the mapped scores, which were rounded down, over all candidate nodes.
    ///
    /// # Errors
    /// What went wrong, for the log. This plugin's scores are then left out.
    fn node_reduce(
        &self,
        _: SessionView<'_>,
        _task: TaskId,
        _scores: &mut [i64],
    ) -> Result<(), String> {
        Ok(())
    }
    /// ClusterOrder: which of two clusters, by name, goes first. No caller; kept because Volcano
    /// has this point.
    fn cluster_order(&self, _view: SessionView<'_>, _l: &str, _r: &str) -> Ordering {
        Ordering::Equal
    }
    /// TargetJob: the job to hold resources for. No caller; kept because Volcano has this point.
    fn target_job(&self, _view: SessionView<'_>, _jobs: &[JobId]) -> Option<JobId> {
        None
    }
    /// ReservedNodes: chooses the nodes to hold. No caller; kept because Volcano has this point.
    fn reserved_nodes(&mut self, _view: SessionView<'_>) {}
    /// BestNode: returns the node that this plugin insists on, out of the scored nodes. Returns
    /// `None` if it has no preference.
    fn best_node(
        &self,
        _view: SessionView<'_>,
        _task: TaskId,
        _scored: &[(NodeId, f64)],
    ) -> Option<NodeId> {
        None
    }
}

/// The only place where a plugin is named: one element of `vc_plugins::ALL`.
#[derive(Clone, Copy, Debug)]
pub struct PluginEntry {
    /// Name, arguments, and what the plugin decides.
    pub declaration: PluginDeclaration,
    /// Builds the plugin from its entry in the configuration; problems of arguments become warnings
    /// and leave the default.
    pub build: PluginBuilder,
}

/// Builds a plugin from its entry in the configuration.
pub type PluginBuilder = fn(&PluginOption, &mut Vec<Warning>) -> Box<dyn Plugin>;

impl PluginEntry {
    /// Declares a plugin without arguments.
    pub const fn new(name: &'static str, build: PluginBuilder) -> Self {
        PluginEntry { declaration: PluginDeclaration::new(name), build }
    }

    /// Declares the arguments of the plugin. Others give a warning.
    #[must_use]
    pub const fn arguments(self, arguments: &'static [&'static dyn DeclaredArgument]) -> Self {
        let declaration = PluginDeclaration { arguments, ..self.declaration };
        PluginEntry { declaration, ..self }
    }

    /// Declares arguments of older versions, and what to write now.
    #[must_use]
    pub const fn moved_arguments(
        self,
        moved_arguments: &'static [(&'static str, &'static str)],
    ) -> Self {
        let declaration = PluginDeclaration { moved_arguments, ..self.declaration };
        PluginEntry { declaration, ..self }
    }

    /// Declares pairs of boolean arguments that cannot both be true, each with the error of a file
    /// in which they are.
    #[must_use]
    pub const fn exclusive_arguments(
        self,
        exclusive_arguments: &'static [(&'static str, &'static str, &'static str)],
    ) -> Self {
        let declaration = PluginDeclaration { exclusive_arguments, ..self.declaration };
        PluginEntry { declaration, ..self }
    }

    /// Declares what the plugin answers when a job asks for admission.
    #[must_use]
    pub const fn enqueue_vote(self, enqueue_vote: EnqueueVote) -> Self {
        let declaration = PluginDeclaration { enqueue_vote, ..self.declaration };
        PluginEntry { declaration, ..self }
    }

    /// Declares how the plugin judges its entry beside all others.
    #[must_use]
    pub const fn check_entry(self, check_entry: EntryCheck) -> Self {
        let declaration = PluginDeclaration { check_entry, ..self.declaration };
        PluginEntry { declaration, ..self }
    }

    /// Declares what the plugin decides about queues.
    #[must_use]
    pub const fn queue_rule(self, queue_rule: QueueRule) -> Self {
        let declaration = PluginDeclaration { queue_rule, ..self.declaration };
        PluginEntry { declaration, ..self }
    }

    /// Returns the name in the configuration.
    pub const fn name(&self) -> &'static str {
        self.declaration.name
    }
}
