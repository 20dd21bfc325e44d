//! A scheduling session: the cluster snapshot, the plugins, the journal of tentative operations,
//! and the decisions so far. Specification: core.md 5.1, 6.

mod caches;
mod commit;
mod operations;
mod pause;
mod pre_bind;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_conf::{ActionSettings, HeadOfLine};
use vc_model::{
    Cluster, FitErrors, Gates, JobId, NodeId, PodGroupPhase, QUEUE_GATE, QueueId, TaskId,
    TaskStatus,
};

use crate::active_jobs::ActiveJobs;
use crate::cause::Causes;
use crate::effect::{About, Effect, Nomination};
use crate::eviction_hold::EvictionHolds;
use crate::journal::Journal;
use crate::outbox::Outbox;
use crate::plugin::{GradientProblem, SessionInfo, SessionView};
use crate::plugin_set::PluginSet;
use crate::quota::{EvictionSides, Notice};
use crate::records::Records;
use crate::statement::{Op, Statement};
use crate::time::rfc3339;
use crate::victim_selection::{EvictionRule, EvictionRules, Question, VictimSelection};
use crate::wait_cause::WaitCause;

pub use caches::{CacheStats, Caches};
pub use pause::PausedSession;

/// The working state of a cycle, in three parts: the state that decisions read, the caches of
/// answers about it, and the outcome. It dereferences to the [`SessionState`].
pub struct Session<'c> {
    pub(crate) state: SessionState<'c>,
    pub(crate) caches: Caches,
    /// What the session has decided, and the causes why it evicted nothing.
    pub outcome: Outcome,
}

/// The tables, the plugins, and the operations of the session. It dereferences to the [`Cluster`]
/// that it holds. Inside a cycle only operations of a [`Statement`] and methods of the [`Session`]
/// change it.
pub struct SessionState<'c> {
    pub(crate) cluster: &'c mut Cluster,
    pub(crate) plugins: &'c mut PluginSet,
    /// Arguments of the actions.
    pub settings: &'c ActionSettings,
    pub(crate) info: SessionInfo,
    /// Records from which messages are built. Later attempts of the session read them.
    pub records: Records,
    /// Room that is kept for jobs after evictions.
    pub eviction_holds: EvictionHolds,
    /// Byte budget of [`crate::VictimNodeIndexCache`] and of the cached search failures.
    pub victim_index_bytes: usize,
    /// True if caches may be used; false with the plain evaluator.
    pub(crate) is_fast: bool,
    /// True if failures of allocate may be cached across cycles.
    pub(crate) may_cache_failures: bool,
    /// The rule that allowed each victim.
    pub(crate) rules: EvictionRules,
    /// Operations of the open statements.
    pub(crate) journal: Journal,
    /// Operations that hold until the session ends: kept, or pipelined by a committed statement.
    pub(crate) held: Vec<Op>,
    /// Tasks whose eviction was sent in this session.
    pub(crate) evicted: Vec<TaskId>,
    /// Original phases of the jobs whose phase this session changed (core.md 5.1 step 3).
    phase_before: BTreeMap<JobId, PodGroupPhase>,
    n_draws: u64,
    /// The operations of the trial that runs. `None` outside of trials.
    pub(crate) trial: Option<Vec<Op>>,
    /// True if trials may cache what they find.
    pub(crate) is_trial_cached: bool,
}

/// What a session has decided and found out.
#[derive(Default)]
pub struct Outcome {
    /// Decisions of the session so far.
    pub out: Outbox,
    /// Causes why nothing was evicted for starving jobs.
    pub causes: Causes,
    /// True if targets were decided in this session; they are decided once (cohort.md B.5.4).
    pub targets_decided: bool,
    /// True if each certificate comes with a witness: the state after its operations, for the
    /// verifier.
    pub with_witnesses: bool,
    /// Event texts for victims that are evicted for quota; looked up by id only.
    pub(crate) evict_texts: FxHashMap<TaskId, Arc<str>>,
    /// Jobs in the order of their turns in allocate, with repetitions. `None` if nobody asks.
    pub turns: Option<Vec<JobId>>,
    /// True if the session wrote something that decisions of later sessions read.
    traced: bool,
}

impl Outcome {
    /// Records that allocate gives a job its turn.
    pub fn note_turn(&mut self, job: JobId) {
        if let Some(turns) = &mut self.turns {
            turns.push(job);
        }
    }

    /// Counts a placed task of its job; the job's time in the queue is measured by it (actions.md
    /// 4.10).
    pub fn note_placed(&mut self, cluster: &Cluster, task: TaskId) {
        if let Some(job) = cluster.tasks[task].job {
            *self.out.placed.entry(job).or_default() += 1;
        }
    }
}

impl<'c> Deref for Session<'c> {
    type Target = SessionState<'c>;
    fn deref(&self) -> &SessionState<'c> {
        &self.state
    }
}

impl Deref for SessionState<'_> {
    type Target = Cluster;
    fn deref(&self) -> &Cluster {
        self.cluster
    }
}

/// Input of the engine to a new session.
pub struct Opening {
    /// Microseconds since 1970.
    pub now_micros: i64,
    /// Time of the cycle before, in microseconds since 1970. It may be later than now, if the clock
    /// was set back. `None`: there was none.
    pub previous_micros: Option<i64>,
    /// Transition id that this session writes into conditions.
    pub session_id: String,
    /// True if the action `enqueue` is configured.
    pub enqueue_configured: bool,
    /// Which groups the configured actions may evict where a plugin decides targets.
    pub sides: EvictionSides,
    /// Eviction holds of earlier cycles.
    pub eviction_holds: EvictionHolds,
    /// Caches of earlier cycles with the same configuration, or new ones.
    pub caches: Caches,
    /// Active jobs of earlier cycles with the same configuration, or a new index.
    pub active_jobs: ActiveJobs,
}

impl<'c> Session<'c> {
    /// Opens a session, and every plugin on the current state.
    pub fn open(
        cluster: &'c mut Cluster,
        plugins: &'c mut PluginSet,
        settings: &'c ActionSettings,
        mut opening: Opening,
    ) -> Self {
        let hyper_nodes = cluster.hyper_node_tree();
        let info = SessionInfo { hyper_nodes, ..info(cluster, plugins, &mut opening) };
        plugins.open(SessionView { cluster, info: &info });
        let mut caches = opening.caches;
        caches.begin(cluster, info.now_micros);
        let is_fast = caches.is_fast();
        let state = SessionState {
            may_cache_failures: is_fast && may_cache_failures(plugins, settings),
            is_fast,
            cluster,
            plugins,
            settings,
            info,
            records: Records::default(),
            eviction_holds: opening.eviction_holds,
            victim_index_bytes: crate::victim_node_index::MOST_BYTES,
            rules: EvictionRules::default(),
            journal: Journal::default(),
            held: Vec::new(),
            evicted: Vec::new(),
            phase_before: BTreeMap::new(),
            n_draws: 0,
            trial: None,
            is_trial_cached: false,
        };
        Self { state, caches, outcome: Outcome::default() }
    }

    /// Sets the bytes of the victim index, for tests.
    pub fn set_victim_index_bytes(&mut self, most_bytes: usize) {
        self.state.victim_index_bytes = most_bytes;
    }

    /// Returns the counters of the caches, for tests.
    pub fn stats(&mut self) -> &mut CacheStats {
        &mut self.caches.stats
    }

    /// Draws a number below `limit` (0 for 0) from a sequence that the session id determines
    /// (actions.md 6.7.1).
    pub fn draw(&mut self, limit: usize) -> usize {
        self.state.draw(limit)
    }

    /// Returns which candidates may be evicted and why. Evictions of these victims are then
    /// recorded under this rule.
    pub fn select_victims(&mut self, question: Question, candidates: &[TaskId]) -> VictimSelection {
        self.state.select_victims(question, candidates)
    }

    /// Records the fit errors of a task that fits on no node.
    pub fn note_fit_errors(&mut self, task: TaskId, errors: Arc<FitErrors>) {
        self.state.note_fit_errors(task, errors);
    }

    /// Removes the fit errors of a task.
    pub fn clear_fit_errors(&mut self, task: TaskId) {
        self.state.clear_fit_errors(task);
    }

    /// Counts the tasks that fit on no node by role, for [`Records::failed_roles`].
    pub fn know_failed_roles(&mut self, job: JobId) {
        self.state.know_failed_roles(job);
    }

    /// Records why all pods of the job wait, where the cause is not one of single pods or nodes.
    pub fn note_job_fit(&mut self, job: JobId, cause: WaitCause, text: impl Into<Arc<str>>) {
        self.state.note_job_fit(job, cause, text);
    }

    /// Records that the network topology leaves no HyperNode for the job.
    pub fn note_topology_problem(&mut self, job: JobId, problem: GradientProblem) {
        self.state.note_topology_problem(job, problem);
    }

    /// Records which fields of the PodGroup cannot mean what was wanted. The text of the job says so.
    pub fn note_field_problems(&mut self, job: JobId, text: impl Into<Arc<str>>) {
        self.state.records.field_problems.insert(job, text.into());
    }

    /// Counts a placed task of its job ([`Outcome::note_placed`]).
    pub fn note_placed(&mut self, task: TaskId) {
        self.outcome.note_placed(&self.state, task);
    }

    /// Drops the last transaction of a task, because it is tried anew.
    pub fn forget_transaction(&mut self, task: TaskId) {
        self.state.records.last_transaction.take(task);
    }

    /// Returns the plugin set, to lend a plugin out of it.
    pub fn plugins_mut(&mut self) -> &mut PluginSet {
        self.state.plugins
    }

    /// Records the rule and the event text with which these tasks are evicted, if they are.
    pub fn allow(&mut self, victims: &[TaskId], rule: EvictionRule, message: &Arc<str>) {
        let selection =
            VictimSelection { victims: victims.to_vec(), rule: Some(rule), refused_by: None };
        self.state.rules.note(&selection);
        let texts = victims.iter().map(|&victim| (victim, message.clone()));
        self.outcome.evict_texts.extend(texts);
    }

    /// Opens a statement. It borrows the session, so while it is open all operations go through it.
    pub fn statement(&mut self) -> Statement<'_, 'c> {
        Statement::open(self, true)
    }

    /// Opens a statement of an action that evicts. Its rollback records no last transaction: the
    /// pod's message stays what allocate and backfill found (core.md 3.10).
    pub fn evicting_statement(&mut self) -> Statement<'_, 'c> {
        Statement::open(self, false)
    }

    /// Makes a job Inqueue and calls JobEnqueued of all plugins (actions.md 3.1).
    pub fn enqueue(&mut self, job: JobId) {
        self.state.journal.touch();
        let view = SessionView { cluster: self.state.cluster, info: &self.state.info };
        self.state.plugins.job_enqueued(view, job);
        self.admit(job);
    }

    /// Makes a job Inqueue without a call to any plugin, because `enqueue` is not configured
    /// (actions.md 4.2).
    pub fn admit(&mut self, job: JobId) {
        self.state.journal.touch();
        self.state.phase_before.entry(job).or_insert(self.state.cluster.jobs[job].phase());
        self.state.cluster.set_phase(job, PodGroupPhase::Inqueue);
    }

    /// Emits a Normal event `Unschedulable` on a PodGroup (core.md 7.9).
    pub fn pod_group_event(&mut self, job: JobId, message: String) {
        let row = &self.state.cluster.jobs[job];
        let Some(group) = row.pod_group.as_ref().filter(|_| !row.bare) else { return };
        let about = About::PodGroup { key: row.key.clone(), uid: group.uid.clone() };
        let reason = "Unschedulable";
        self.outcome.out.has_refusals = true;
        self.outcome.out.effects.push(Effect::Event {
            about,
            warning: false,
            reason,
            message: message.into(),
        });
    }

    /// Requests the removal of the queue allocation gate of a task for which its queue has room
    /// (core.md 7.8). A22: it is requested at most once until the pod changes. Without the
    /// annotation that hands the gate to this scheduler the gate stays, and a warning says so.
    pub fn remove_gate(&mut self, task: TaskId) {
        let row = &self.state.cluster.tasks[task];
        if self.state.is_trial()
            || !self.state.cluster.settings.queue_gate_admission
            || row.gates != Gates::QueueAllocationOnly
        {
            return;
        }
        if !row.manages_queue_gate {
            let hint = format!("hint: annotate it with {QUEUE_GATE}: \"true\"");
            let warning = format!("pod {}: gate is not ours to lift: {QUEUE_GATE}", row.key);
            return self.outcome.out.warnings.push(format!("{warning}\n{hint}"));
        }
        if !row.ungating {
            let (pod, uid) = (row.key.clone(), row.uid.clone());
            self.outcome.out.effects.push(Effect::RemoveGate { pod, uid });
            self.state.cluster.tasks[task].ungating = true;
        }
        self.state.journal.touch();
        let view = SessionView { cluster: self.state.cluster, info: &self.state.info };
        self.state.plugins.on_gate_lifted(view, task);
    }

    /// Passes a notice of an action to the plugins.
    pub fn tell(&mut self, notice: &Notice<'_>) {
        let view = SessionView { cluster: self.state.cluster, info: &self.state.info };
        self.state.plugins.on_notice(view, notice);
    }

    /// Ends the eviction hold of a job that found no place, unless victims have yet to leave.
    pub fn end_eviction_hold(&mut self, job: JobId) {
        if self.state.eviction_holds.end_unless_victims_remain(self.state.cluster, job) {
            self.tell(&Notice::EvictionHoldEnds(job));
        }
    }

    /// Undoes the pipeline of a task: it is Pending and off its node (actions.md 5, step 1).
    /// Returns its former node and the operation for [`Session::repipeline`]. Returns `None` if no
    /// operation of this session pipelined the task.
    pub fn unpipeline(&mut self, task: TaskId) -> Option<(NodeId, Op)> {
        let op = self.undo_held(|op| matches!(op, Op::Pipeline { .. }) && op.task() == task)?;
        let Op::Pipeline { node, .. } = op else { return None };
        Some((node, op))
    }

    /// Undoes an allocation that holds until the session ends and is not bound: the task is Pending
    /// and off its node.
    pub fn unallocate(&mut self, task: TaskId) {
        self.undo_held(|op| matches!(op, Op::Allocate { .. }) && op.task() == task);
    }

    fn undo_held(&mut self, is_it: impl Fn(&Op) -> bool) -> Option<Op> {
        let place = self.state.held.iter().position(is_it)?;
        let op = self.state.held.remove(place);
        self.state.journal.touch();
        self.state.undo(op);
        Some(op)
    }

    /// Redoes the pipeline that [`Session::unpipeline`] has undone (A26: the task gets its former
    /// place back).
    pub fn repipeline(&mut self, op: Op) {
        if let Op::Pipeline { task, node, .. } = op
            && self.state.place(task, TaskStatus::Pipelined, node).is_ok()
        {
            self.state.journal.touch();
            self.state.held.push(op);
        }
    }

    /// Runs a query while filters do not see these terminating tasks.
    pub fn without<T>(
        &mut self,
        leaving: &[TaskId],
        query: impl FnOnce(&SessionState<'_>) -> T,
    ) -> T {
        let is_seen = |task: &&TaskId| {
            let row = &self.state.cluster.tasks[**task];
            row.status == TaskStatus::Releasing && !row.hidden
        };
        let leaving: Vec<TaskId> = leaving.iter().filter(is_seen).copied().collect();
        leaving.iter().for_each(|&task| self.state.cluster.hide_task(task));
        let answer = query(self);
        leaving.iter().for_each(|&task| self.state.cluster.reveal_task(task));
        answer
    }

    /// Calls `close` of the plugins, while everything tentative and kept is still applied.
    pub fn close_plugins(&mut self) {
        self.list_to_close();
        self.close_listed();
    }

    /// Closes the plugins for the jobs in `to_close`.
    pub fn close_listed(&mut self) {
        if self.state.info.active_jobs.changed().is_none() {
            // Each job writes up to three samples; reserving them avoids moving a list that grows
            // long.
            self.outcome.out.samples.reserve(3 * self.state.info.to_close.len() + 1_000);
        }
        let view = SessionView { cluster: self.state.cluster, info: &self.state.info };
        self.state.plugins.close(view, &self.state.records, &mut self.outcome.out);
    }

    /// Sets `to_close` and `repeated` of the session info.
    pub fn list_to_close(&mut self) {
        let mut jobs = self.state.info.active_jobs.to_close(self.state.cluster);
        self.state.info.repeated = self.take_repeated(&mut jobs);
        self.state.info.to_close = jobs;
    }

    /// Returns the tables for the recording at session close.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        self.state.journal.touch();
        self.state.cluster
    }

    /// Restores the phase that a job had when the session began.
    pub fn restore_phase(&mut self, job: JobId) {
        if let Some(&before) = self.state.phase_before.get(&job) {
            self.state.cluster.set_phase(job, before);
        }
    }

    /// Marks that this session wrote something that decisions of later sessions read.
    pub fn leaves_trace(&mut self) {
        self.outcome.traced = true;
    }

    /// True if a session on the same state would decide the same. That holds if nothing was decided
    /// or drawn, and only conditions, events and status texts were written.
    pub fn left_no_trace(&self) -> bool {
        let recorded = |effect: &Effect| match effect {
            Effect::Event { .. } | Effect::QueueStatus { .. } | Effect::SaveUsage { .. } => true,
            Effect::PodGroupStatus { phase_changed, .. } => !phase_changed,
            Effect::PodCondition { nomination, .. } => *nomination == Nomination::Keep,
            _ => false,
        };
        !self.outcome.traced
            && self.state.n_draws == 0
            && self.outcome.out.effects.iter().all(recorded)
    }

    /// Undoes everything uncommitted. Returns the decisions, the remaining eviction holds, the
    /// caches and the active jobs.
    pub fn finish(self) -> (Outbox, EvictionHolds, Caches, ActiveJobs) {
        let Self { mut state, mut caches, outcome } = self;
        for op in std::mem::take(&mut state.held).into_iter().rev() {
            state.undo(op);
        }
        for task in std::mem::take(&mut state.evicted) {
            state.cluster.reveal_task(task);
        }
        caches.end(|| state.votes_until_micros());
        (outcome.out, state.eviction_holds, caches, state.info.active_jobs)
    }
}

impl SessionState<'_> {
    /// The state as plugins see it.
    pub fn view(&self) -> SessionView<'_> {
        SessionView { cluster: self.cluster, info: &self.info }
    }

    /// Returns the plugin set.
    pub fn plugins(&self) -> &PluginSet {
        self.plugins
    }

    /// Returns the constants of the session.
    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// Returns the version of the state: different states have different versions, and a rollback
    /// restores the earlier version.
    pub fn version(&self) -> u64 {
        self.journal.version()
    }

    /// Returns an empty cache for an action. Returns `None` with the plain evaluator, which has no
    /// caches.
    pub fn cache<T: Default>(&self) -> Option<T> {
        self.is_fast.then(T::default)
    }

    /// Tasks whose eviction was sent in this session, in order.
    pub fn evicted(&self) -> &[TaskId] {
        &self.evicted
    }

    /// Returns how many numbers were drawn.
    pub fn n_draws(&self) -> u64 {
        self.n_draws
    }

    /// Returns the phase of a job when the session began.
    pub fn phase_before(&self, job: JobId) -> PodGroupPhase {
        self.phase_before.get(&job).copied().unwrap_or_else(|| self.cluster.jobs[job].phase())
    }

    /// Returns which candidates may be evicted and why. Evictions of these victims are then
    /// recorded under this rule.
    pub(crate) fn select_victims(
        &mut self,
        question: Question,
        candidates: &[TaskId],
    ) -> VictimSelection {
        let selection = self.plugins.select_victims(self.view(), question, candidates);
        self.rules.note(&selection);
        selection
    }

    /// Draws a number below `limit` (0 for 0) from a sequence that the session id determines
    /// (actions.md 6.7.1).
    pub(crate) fn draw(&mut self, limit: usize) -> usize {
        self.n_draws += 1;
        let text = format!("{} {}", self.info.session_id, self.n_draws);
        let fold =
            |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
        usize::try_from((hash >> 16) % limit.max(1) as u64).unwrap_or(0)
    }

    /// Returns the job of a task if it has a PodGroup.
    pub(crate) fn job_of_group(&self, task: TaskId) -> Option<JobId> {
        self.tasks[task].job.filter(|&job| self.jobs[job].pod_group.is_some())
    }
}

/// True if nothing beyond the cached inputs decides whether allocate tries a job.
fn may_cache_failures(plugins: &PluginSet, settings: &ActionSettings) -> bool {
    let settings = &settings.allocate;
    let in_turn = settings.head_of_line == HeadOfLine::Off && !settings.gang_repair_first;
    let of_quota = plugins.has_next_queue() || plugins.has_targets();
    in_turn && !of_quota && plugins.reads_job_rows_only()
}

fn info(cluster: &Cluster, plugins: &PluginSet, opening: &mut Opening) -> SessionInfo {
    let queue_known = |queue: QueueId| cluster.queues[queue].present;
    let mut info = SessionInfo {
        now_micros: opening.now_micros,
        previous_micros: opening.previous_micros,
        nodes: cluster.nodes_by_name().into(),
        queues: cluster.queues_by_name().filter(|&queue| queue_known(queue)).collect(),
        total: cluster.total_allocatable(),
        enqueue_configured: opening.enqueue_configured,
        now_text: rfc3339(opening.now_micros).into(),
        session_id: opening.session_id.as_str().into(),
        sides: opening.sides,
        claimed: opening.eviction_holds.waiting(cluster),
        ..SessionInfo::default()
    };
    let mut active_jobs = std::mem::take(&mut opening.active_jobs);
    info.jobs = active_jobs.follow(cluster, plugins, &info);
    info.active_jobs = active_jobs;
    info
}
