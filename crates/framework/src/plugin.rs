//! What a plugin is: the table of extension points as one trait with neutral defaults.
//! Specification: core.md 5.3, plugins-jobs-queues.md 1.

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use vc_conf::{PluginOption, Warning};
use vc_model::{Cluster, Finding, JobId, NodeId, QueueId, Reservation, TaskId};
use vc_resource::Fractional;

use crate::dead_ends::Stake;
use crate::dispatch::{Dispatch, in_session};
use crate::fast::{Column, Fill, NodeTests, Reads};
use crate::limit::QueueLimit;
use crate::outbox::Outbox;
use crate::points::Points;
use crate::quota::{Heads, Notice, QuotaRefusal, Sides, Surroundings, Targets, Wanted};
use crate::records::Records;
use crate::report::QuotaUse;
use crate::roster::Roster;

/// What is fixed for a session.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Microseconds since 1970; stands still within a cycle.
    pub now_micros: i64,
    /// The same as the API writes it ([`crate::rfc3339`]): one text for all that is told.
    pub now_text: Arc<str>,
    /// Known nodes in name order.
    pub nodes: Arc<[NodeId]>,
    /// By uid (`namespace/name`): the jobs of the session that wait or to which something may be owed.
    /// The others run or are complete, no action has business with them, and nothing about them has
    /// changed: who needs them too asks [`Ask::all_jobs`], or what they hold together from `roster`.
    /// With the plain evaluator all jobs.
    pub jobs: Vec<JobId>,
    /// By uid, when the session closes: those of `jobs` but for `repeated`, and whatever changed since
    /// the last session began.
    pub to_close: Vec<JobId>,
    /// Likewise jobs of `jobs` that are not in `to_close`, because nothing about them has changed since
    /// all that a session has to say of them at its close was said.
    pub repeated: Vec<JobId>,
    /// All jobs together.
    pub roster: Roster,
    /// Known queues by name.
    pub queues: Vec<QueueId>,
    /// Σ allocatable of all session nodes.
    pub total: Fractional,
    /// The action `enqueue` is configured (core.md 2.2).
    pub enqueue_configured: bool,
    /// Transition id of the conditions of this session.
    pub session_id: Arc<str>,
    /// Whose groups the configured actions may take where a plugin decides targets.
    pub sides: Sides,
    /// Jobs for which room was made, by key, with the tasks that have yet to get it.
    pub claimed: Vec<(JobId, Vec<TaskId>)>,
}

/// What a plugin may look at: the working state of the cluster and the facts of the session.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// With everything that was tried and not undone.
    pub cluster: &'a Cluster,
    /// What stands still within the session.
    pub facts: &'a Facts,
}

impl<'a> Ask<'a> {
    /// Whether there is such a job, and it is part of the session.
    pub fn has_job(self, job: JobId) -> bool {
        self.cluster.jobs.get(job).is_some() && in_session(self.cluster, job)
    }

    /// All jobs of the session, by uid (`namespace/name`): those that have a PodGroup and whose
    /// queue exists.
    pub fn all_jobs(self) -> impl Iterator<Item = JobId> + 'a {
        self.cluster.jobs_by_key().filter(move |&job| in_session(self.cluster, job))
    }
}

/// Answer of an evictable function (core.md 5.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The plugin has no opinion.
    Abstain,
    /// The candidates that may go, in the order given; empty ends the tier with nothing.
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
    /// With the message of the Normal event `Unschedulable` on the PodGroup, if there is one.
    Reject(Option<String>),
}

/// What JobEnqueueable reads of a job besides queue, namespace and `minResources`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// The answer may be another one where this is.
    pub mark: bool,
    /// When that turns, in microseconds since 1970; `None`: not before the row of the job changes.
    pub until_micros: Option<i64>,
}

/// Why a job is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// One word.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// Who evicts, for UnifiedEvictable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GangEviction {
    /// `gangpreempt`: inside a queue.
    Preempt,
    /// `gangreclaim`: from other queues.
    Reclaim,
}

/// When a plugin may answer otherwise although no object has changed, and nothing was decided.
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
    /// In the units of amounts.
    pub deserved: Fractional,
    /// Largest allocated / deserved over the dimensions; 1 is all of it.
    pub share: f64,
}

/// Predicate for the nodes of one task: findings are appended, none: the task may run there. It
/// borrows the state that it was prepared from, so that no operation can outdate it.
pub type NodeRule<'a> = Box<dyn Fn(NodeId, &mut Vec<Finding>) + Send + Sync + 'a>;

/// A scheduling policy. Every rule has a neutral default; a plugin overrides the rules it states
/// and names them in `points`: a rule that is not named there is never asked. Orders answer Less if
/// `l` goes first.
///
/// The object lives as long as its configuration; `open` starts a session from nothing. What must
/// outlive a reload is handed over.
pub trait Plugin: Send + Sync {
    /// The rules that this object states; may depend on its options.
    fn points(&self) -> Points;

    /// The configuration ends: what the object of the same name in the next one must know.
    fn hand_over(&mut self) -> Option<Box<dyn Any + Send>> {
        None
    }
    /// Before its first session: what the object of the same name in the last configuration knew.
    fn take_over(&mut self, _memory: Box<dyn Any + Send>) {}

    /// A session begins.
    fn open(&mut self, _ask: Ask<'_>) {}
    /// A session ends; everything uncommitted is still in place (core.md 5.1 step 8). What is said of
    /// a job follows from its row, what is recorded of it, and what was said before.
    fn close(&mut self, _ask: Ask<'_>, _records: &Records, _out: &mut Outbox) {}
    /// JobValid, JobReady, JobPipelined and JobStarving are answered from the row of the job alone, also
    /// before the session has begun, so that a job that needs nothing is not asked about until it
    /// changes.
    fn judges_rows(&self) -> bool {
        false
    }
    /// JobPipelined of jobs with equal rows is the same in one session where this is. `None`: it reads
    /// more.
    fn pipeline_mark(&self, _ask: Ask<'_>, _job: JobId) -> Option<bool> {
        self.judges_rows().then_some(false)
    }
    /// What its answers depend on besides the objects, asked when a session has ended.
    fn clock(&self, _ask: Ask<'_>) -> Clock {
        Clock::Reads
    }
    /// A task was allocated, pipelined, or its eviction taken back (plugins-jobs-queues.md 1.3).
    /// The task's status and node are the new ones.
    fn on_allocate(&mut self, _ask: Ask<'_>, _task: TaskId) {}
    /// A task was evicted, un-pipelined, or its allocation taken back; status and node are the new
    /// ones.
    fn on_deallocate(&mut self, _ask: Ask<'_>, _task: TaskId) {}
    /// The queue allocation gate of a Pending task is on its way out, because Allocatable found room
    /// for it (core.md 7.8). It is placed in a later session.
    fn on_gate_lifted(&mut self, _ask: Ask<'_>, _task: TaskId) {}

    /// What an action tells, an event handler too.
    fn on_notice(&mut self, _ask: Ask<'_>, _notice: &Notice<'_>) {}

    /// Reserve, an event handler too: what the task is promised along with the node that it is
    /// about to get. `None`: nothing.
    ///
    /// # Errors
    /// It cannot have that node after all.
    fn reserve(&self, _: Ask<'_>, _: TaskId, _: NodeId) -> Result<Option<Reservation>, String> {
        Ok(None)
    }

    /// QueueOrder: which queue is served first.
    fn queue_order(&self, _ask: Ask<'_>, _l: QueueId, _r: QueueId) -> Ordering {
        Ordering::Equal
    }
    /// Whether the place of this queue in QueueOrder, among queues of which the same is said, is a value
    /// of its own, which only placements and removals of its own tasks change.
    fn stands_alone(&self, _ask: Ask<'_>, _queue: QueueId) -> bool {
        false
    }
    /// NextQueue: which of these queues is served next, each with the first of its jobs; asked in
    /// place of QueueOrder. `wanted`: the tasks that would complete a job. `None`: the pairs decide.
    fn next_queue(
        &self,
        _ask: Ask<'_>,
        _heads: &Heads<'_>,
        _wanted: &dyn Fn(JobId) -> Vec<TaskId>,
    ) -> Option<QueueId> {
        None
    }
    /// JobOrder: which job of a queue is served first. It reads the two jobs alone: what they are,
    /// and what their tasks hold.
    fn job_order(&self, _ask: Ask<'_>, _l: JobId, _r: JobId) -> Ordering {
        Ordering::Equal
    }
    /// TaskOrder: which task of a job is served first.
    fn task_order(&self, _ask: Ask<'_>, _l: TaskId, _r: TaskId) -> Ordering {
        Ordering::Equal
    }
    /// SubJobOrder: two sub-jobs of one job, by index.
    fn sub_job_order(&self, _ask: Ask<'_>, _job: JobId, _l: usize, _r: usize) -> Ordering {
        Ordering::Equal
    }
    /// VictimQueueOrder: queues of two victims, given the preemptor's; Less: victims of `l` go
    /// first.
    fn victim_queue_order(&self, _: Ask<'_>, _l: QueueId, _r: QueueId, _own: QueueId) -> Ordering {
        Ordering::Equal
    }

    /// JobValid: whether the job can be looked at at all.
    ///
    /// # Errors
    /// Why not.
    fn job_valid(&self, _ask: Ask<'_>, _job: JobId) -> Result<(), Invalid> {
        Ok(())
    }
    /// JobReady: whether what is placed may be bound.
    fn job_ready(&self, _ask: Ask<'_>, _job: JobId) -> bool {
        true
    }
    /// JobPipelined: whether what is placed may wait for room that becomes free.
    fn job_pipelined(&self, _ask: Ask<'_>, _job: JobId) -> Vote {
        Vote::Abstain
    }
    /// SubJobReady, of a job with policies.
    fn sub_job_ready(&self, _ask: Ask<'_>, _job: JobId, _sub_job: usize) -> bool {
        true
    }
    /// SubJobPipelined, of a job with policies.
    fn sub_job_pipelined(&self, _ask: Ask<'_>, _job: JobId, _sub_job: usize) -> Vote {
        Vote::Abstain
    }
    /// JobStarving: whether pods may be evicted for the job.
    fn job_starving(&self, _ask: Ask<'_>, _job: JobId) -> bool {
        true
    }

    /// JobEnqueueable: whether the job may be admitted to its queue now.
    fn job_enqueueable(&self, _ask: Ask<'_>, _job: JobId) -> Admission {
        Admission::Abstain
    }
    /// The same for a plugin whose answer depends on what others protect.
    fn job_enqueueable_among(&self, ask: Ask<'_>, job: JobId, _hooks: &Dispatch) -> Admission {
        self.job_enqueueable(ask, job)
    }
    /// Whether JobEnqueueable answers alike, in one and the same state, for all jobs of a queue and a
    /// namespace that ask for the same and are marked alike, and without a trace. `None`: it reads
    /// more of this job, or leaves a trace now.
    fn admits_alike(&self, _ask: Ask<'_>, _job: JobId) -> Option<Marked> {
        None
    }
    /// JobEnqueued: the job was admitted.
    fn job_enqueued(&mut self, _ask: Ask<'_>, _job: JobId) {}

    /// Overused: whether the queue has at least what it deserves.
    fn overused(&self, _ask: Ask<'_>, _queue: QueueId) -> bool {
        false
    }
    /// Allocatable: whether the queue has room for the task.
    fn allocatable(&self, _ask: Ask<'_>, _queue: QueueId, _task: TaskId) -> bool {
        true
    }
    /// After `allocatable` said no: the dimensions that fail, for the message of A20, in report
    /// order.
    fn allocatable_lacks(&self, _: Ask<'_>, _: QueueId, _: TaskId) -> Vec<vc_resource::Dim> {
        Vec::new()
    }
    /// The limit that these tasks of the queue together would exceed, for messages; `None`: none.
    fn queue_limit(&self, _: Ask<'_>, _: QueueId, _tasks: &[TaskId]) -> Option<QueueLimit> {
        None
    }
    /// The limit that the job would exceed if it was admitted, for messages; `None`: none.
    fn admission_limit(&self, _: Ask<'_>, _: JobId) -> Option<QueueLimit> {
        None
    }
    /// Preemptive: whether the queue may take from others for all these tasks together.
    fn preemptive(&self, _ask: Ask<'_>, _queue: QueueId, _tasks: &[TaskId]) -> bool {
        true
    }

    /// Preemptable: which candidates may go for a task of the same queue. The candidates come in
    /// the order of eviction (actions.md 2.9).
    fn preemptable(&self, _ask: Ask<'_>, _preemptor: TaskId, _candidates: &[TaskId]) -> Verdict {
        Verdict::Abstain
    }
    /// Reclaimable: which candidates may go for a task of another queue.
    fn reclaimable(&self, _ask: Ask<'_>, _reclaimer: TaskId, _candidates: &[TaskId]) -> Verdict {
        Verdict::Abstain
    }
    /// UnifiedEvictable: which candidates the gang actions may evict for a job. The candidates come
    /// in the order of eviction.
    fn unified_evictable(
        &self,
        _ask: Ask<'_>,
        _initiator: JobId,
        _kind: GangEviction,
        _candidates: &[TaskId],
    ) -> Verdict {
        Verdict::Abstain
    }
    /// PreemptTargets: which groups go, as a whole, so that a job is accommodated; decides in place of
    /// Preemptable and Reclaimable between jobs (cohort.md B.5.4).
    ///
    /// # Errors
    /// Why nobody goes.
    fn preempt_targets(
        &mut self,
        _wanted: &Wanted<'_>,
        _around: &mut dyn Surroundings,
    ) -> Result<Targets, QuotaRefusal> {
        Ok(Targets::default())
    }
    /// A protective filter (D1): what it protects is taken out of the candidates before the tiers
    /// vote, where its Preemptable or Reclaimable switch is on. Asked only if
    /// [`Plugin::is_victim_filter`].
    fn protects(&self, _ask: Ask<'_>, _candidate: TaskId) -> bool {
        false
    }
    /// Of candidates that no filter protects: those that a filter which allows only so many leaves
    /// together. They come in the order of eviction. Asked only if [`Plugin::is_victim_filter`];
    /// where [`Plugin::has_budgets`] is false all of them are left.
    fn within_budget(&self, _ask: Ask<'_>, candidates: &[TaskId]) -> Vec<TaskId> {
        candidates.to_vec()
    }
    /// Whether this protective filter allows only so many together.
    fn has_budgets(&self) -> bool {
        false
    }
    /// Whether this plugin is a protective filter; then it is not asked for its vote.
    fn is_victim_filter(&self) -> bool {
        false
    }
    /// Whether the plugin protects shares of queues (D3): what its UnifiedEvictable refuses is taken
    /// out of the candidates of the gang actions before the tiers vote, and the plugin has no vote.
    fn is_share_filter(&self) -> bool {
        false
    }
    /// Whether VictimTasks may name anybody in this session; otherwise it is not asked.
    fn selects_victims(&self) -> bool {
        !self.is_victim_filter()
    }
    /// VictimTasks: which running tasks should go without anybody asking for their room.
    fn victim_tasks(&self, _ask: Ask<'_>, _running: &[TaskId]) -> Vec<TaskId> {
        Vec::new()
    }

    /// PrePredicate: once per task before its nodes are filtered.
    ///
    /// # Errors
    /// Why the task fits on no node.
    fn pre_predicate(&self, _ask: Ask<'_>, _task: TaskId) -> Result<(), String> {
        Ok(())
    }
    /// Predicate: whether the task may run on the node; findings are appended, none: it may.
    fn predicate(&self, _: Ask<'_>, _task: TaskId, _node: NodeId, _findings: &mut Vec<Finding>) {}
    /// Predicate with what holds for all nodes worked out once; asked in place of
    /// [`Plugin::predicate`], before the nodes of a task are filtered. `None`: there is nothing to
    /// work out, each node is asked by itself.
    fn node_rule<'a>(&'a self, _ask: Ask<'a>, _task: TaskId) -> Option<NodeRule<'a>> {
        None
    }
    /// NodeOrder: score of one node.
    ///
    /// # Errors
    /// What went wrong, for the log; the node gets 0 from this point as a whole.
    fn node_order(&self, _ask: Ask<'_>, _task: TaskId, _node: NodeId) -> Result<f64, String> {
        Ok(0.0)
    }
    /// BatchNodeOrder: adds scores of all candidate nodes to `out`, which has the length of
    /// `nodes`.
    ///
    /// # Errors
    /// What went wrong, for the log; this plugin contributes nothing (A13).
    fn batch_node_order(
        &self,
        _ask: Ask<'_>,
        _task: TaskId,
        _nodes: &[NodeId],
        _out: &mut [f64],
    ) -> Result<(), String> {
        Ok(())
    }
    /// NodeMap: this plugin's own score of a node, before it is reduced over all of them.
    ///
    /// # Errors
    /// The node keeps its other parts only.
    fn node_map(&self, _ask: Ask<'_>, _task: TaskId, _node: NodeId) -> Result<f64, String> {
        Ok(0.0)
    }
    /// NodeReduce: normalises the mapped scores, rounded down, over all candidate nodes.
    ///
    /// # Errors
    /// This plugin's scores are left out.
    fn node_reduce(&self, _: Ask<'_>, _task: TaskId, _scores: &mut [i64]) -> Result<(), String> {
        Ok(())
    }
    /// ClusterOrder: which of two clusters, by name, goes first. No action asks.
    fn cluster_order(&self, _ask: Ask<'_>, _l: &str, _r: &str) -> Ordering {
        Ordering::Equal
    }
    /// TargetJob: the job to hold resources for. No action asks.
    fn target_job(&self, _ask: Ask<'_>, _jobs: &[JobId]) -> Option<JobId> {
        None
    }
    /// ReservedNodes: told to choose the nodes to hold. No action tells.
    fn reserved_nodes(&mut self, _ask: Ask<'_>) {}
    /// BestNode: the node this plugin insists on, of those with their scores.
    fn best_node(&self, _ask: Ask<'_>, _task: TaskId, _scored: &[(NodeId, f64)]) -> Option<NodeId> {
        None
    }

    /// Predicate as tests. `None`: it is not of that form; [`Plugin::reads`] tells about the whole.
    fn node_tests<'a>(&'a self, _ask: Ask<'a>, _task: TaskId) -> Option<NodeTests<'a>> {
        None
    }
    /// NodeOrder over columns: adds the scores of [`Plugin::node_order`], which never fails for the
    /// task. `None`: each node is asked by itself.
    fn node_order_fill<'a>(&'a self, _ask: Ask<'a>, _task: TaskId) -> Option<Fill<'a, f64>> {
        None
    }
    /// What the answers of Predicate and NodeOrder about this task depend on; asked with one of the
    /// two points.
    fn reads(&self, _ask: Ask<'_>, _task: TaskId, _point: Points) -> Reads {
        Reads::Anything
    }
    /// A greater number in every session in which Predicate or NodeOrder may answer otherwise about the
    /// same row and class than in the one before: because of the clock.
    fn edition(&self) -> u64 {
        0
    }
    /// Whether what this plugin says about a task that looks for victims, at any point, follows from
    /// its [`crate::Asker`] and the state. The answer stays as long as the rows of the task and its job.
    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        false
    }
    /// Whether it reads more of a job that holds nothing than other parts of an asker say: then the
    /// asker names the job.
    fn reads_jobs(&self, _ask: Ask<'_>) -> bool {
        false
    }
    /// Whether Preemptable, Reclaimable and the protective filter of this plugin read, of the state,
    /// the rows of the candidates and the counts of their jobs alone, answer for the candidates of
    /// each job without a look at those of others, and read of the task nothing of its class but
    /// `any_revocable_zone`.
    fn votes_by_job(&self, _ask: Ask<'_>) -> bool {
        false
    }
    /// Whether this plugin's votes about candidates of which it concerns none are as
    /// [`Plugin::votes_by_job`] says, as long as [`vc_model::Budgets::coverage`] stays; whom it concerns
    /// follows from these too.
    fn concerns(&self, _ask: Ask<'_>, _candidate: TaskId) -> bool {
        true
    }
    /// Whether they read, besides what [`Plugin::votes_by_job`] allows, the objects of queues, Σ
    /// allocatable and the class of the task that asks, no more than [`Plugin::stake`] of the queues of
    /// the candidates and [`Plugin::own_stake`].
    fn votes_by_queue(&self, ask: Ask<'_>) -> bool {
        self.votes_by_job(ask)
    }
    /// What these votes read of the queue of a candidate. In a session it changes with placements and
    /// removals of tasks of the queue itself alone; `None`: with others, too. Asked only if
    /// [`Plugin::votes_by_queue`].
    fn stake(&self, _ask: Ask<'_>, _queue: QueueId) -> Option<Stake> {
        Some(Stake::Within)
    }
    /// What they read of the queues above the task that asks. Asked only if
    /// [`Plugin::votes_by_queue`].
    fn own_stake(&self, _ask: Ask<'_>, _task: TaskId) -> Stake {
        Stake::Within
    }
    /// Whether Preemptable, Reclaimable and the protective filter of this plugin read of the task that
    /// asks nothing of its class: in one state they say the same to tasks that ask for more or less.
    fn votes_for_any_class(&self, ask: Ask<'_>) -> bool {
        self.votes_by_job(ask)
    }
    /// Whether no answer of Overused, Allocatable, PrePredicate or Reserve turns to no because a
    /// further pod was evicted, for tasks that this plugin filters by the row of the node alone.
    fn eases_by_evictions(&self) -> bool {
        false
    }
    /// BatchNodeOrder as a sum of scorers that say what they read.
    /// `None`: it is not of that form.
    fn columns<'a>(&'a self, _ask: Ask<'a>, _task: TaskId) -> Option<Vec<Column<'a>>> {
        None
    }

    /// For reports: deserved and share of a queue, if this plugin divides the cluster.
    fn queue_share(&self, _ask: Ask<'_>, _queue: QueueId) -> Option<QueueShare> {
        None
    }
    /// For reports: the quota trees with what is in use, by path; nothing if this plugin has none.
    fn quota_use(&self, _ask: Ask<'_>) -> Vec<QuotaUse> {
        Vec::new()
    }
}

/// The only place where a plugin is named: one element of `vc_plugins::ALL`.
#[derive(Clone, Copy, Debug)]
pub struct PluginEntry {
    /// The name in the configuration.
    pub name: &'static str,
    /// Builds the plugin from its entry in the configuration; problems of arguments become warnings
    /// and leave the default.
    pub build: fn(&PluginOption, &mut Vec<Warning>) -> Box<dyn Plugin>,
}
