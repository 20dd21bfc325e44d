//! Failures of allocate that still hold in later cycles. A job whose attempt placed nothing is not
//! tried again while its attempt would be the same. There are three kinds:
//! - a gang of which no task finds a node;
//! - a job that has its minimum, while no further task finds a node;
//! - a gang that gives up the placements of some members (`gang_outcomes.rs`).
//!
//! Specification: actions.md 12.2 S7.
//!
//! Exact because an attempt that places nothing changes nothing, and each of its inputs is either
//! read again or known not to have changed:
//! - The log of changed jobs does not name the job. This covers its tasks with their classes, its
//!   minimums, its phase, and with them JobValid, JobReady, TaskOrder and the end of the task loop.
//! - JobPipelined is asked again if it reads more than the row. For a job with its minimum it is
//!   not asked at all.
//! - Overused and the order of jobs and queues are asked at the job's turn, which it keeps.
//! - Allocatable, PrePredicate and the histogram over all nodes are computed again in the state of
//!   its turn, once per pod signature (`signature_failures.rs`), and compared. Changed nodes and
//!   queues matter only through that result.
//! - If some members find nodes, every node matters. One gang of each shape is then tried in each
//!   state.
//! - Other pods: tasks with topology terms, volumes, claims, a nomination or a gate are tried in
//!   every cycle. The same holds for pods that terms of others select, and for jobs with sub-groups.
//! - Jobs with a network topology are cached as gangs only (`gang_outcomes.rs`).
//!
//! Such a job records what it recorded before. Recording it again has no effect before a message is
//! due, so the job is listed as repeated (`SessionInfo::repeated`). The plain evaluator tries and
//! records everything; the engine's `unschedulable_cache.rs` and random stories compare the two.

mod gang_outcomes;
mod signature_failures;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_model::{
    ChangeReader, ClassId, Cluster, FitErrors, Gates, Job, JobId, PodGroup, QueueState, Revision,
    TaskId, TaskStatus,
};

use crate::node_score_cache::NodeScoreCache;
use crate::session::{CacheStats, Caches, Outcome, Session, SessionState};
use gang_outcomes::{GangAttempt, GangOutcomes};
use signature_failures::SignatureFailures;

/// Jobs whose failure may still hold.
#[derive(Debug, Default)]
pub(crate) struct UnschedulableCache {
    /// Number of sessions so far.
    session: u64,
    n_turns: u64,
    jobs: FxHashMap<JobId, UnschedulableJob>,
    kinds: SignatureFailures,
    gang_outcomes: GangOutcomes,
    changed_jobs: ChangeReader<JobId>,
    objects: ObjectStamp,
}

/// Objects that messages about waiting jobs read: the rows of queues that are not open (C-33), and
/// the HyperNodes.
type ObjectStamp = (u64, Revision);

/// The failure of a job.
#[derive(Clone, Debug)]
struct UnschedulableJob {
    kind: FailureKind,
    /// The session in which the job was tried.
    made: u64,
    /// The last session in which the failure was revalidated.
    held: u64,
    /// Number of the last turn. A later turn has a greater number.
    turn: u64,
    /// All messages about the job are written until this time, in microseconds since 1970. `None`
    /// if some are still to be written.
    reported_until_micros: Option<i64>,
}

#[derive(Clone, Debug)]
enum FailureKind {
    /// These tasks found no node; the other tasks were not tried.
    Tried(Vec<FailedTask>),
    /// The job has its minimum. These are all its other tasks, and none found a node.
    Surplus(Vec<FailedTask>),
    /// Some members found nodes, and their placements were given up.
    GaveUp(GangAttempt),
    /// The queue of the job was overused.
    Overused,
}

/// A failed task with the revision of the outcome of its signature.
#[derive(Clone, Copy, Debug)]
struct FailedTask {
    task: TaskId,
    class: ClassId,
    kind: usize,
    outcome_revision: u64,
}

/// The state before an attempt whose failure may be cached.
#[derive(Clone, Debug)]
pub struct PreviousAttempt {
    /// The tasks in the order in which they are tried.
    tasks: Vec<TaskId>,
    state: AttemptStamp,
    /// The failure of the last session.
    failed: Option<UnschedulableJob>,
}

/// The outcome of an earlier attempt that still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedFailure {
    /// The job is neither ready nor pipelined.
    Fails,
    /// The job has its minimum, and no further task is placed.
    Surplus,
}

/// A stamp that changes with every operation, also if the operation was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AttemptStamp {
    version: u64,
    node_changes: Revision,
    job_changes: Revision,
}

impl UnschedulableCache {
    /// Returns the sizes of the parts.
    pub(crate) fn sizes(&self) -> [(&'static str, usize); 3] {
        [
            ("unschedulable_jobs", self.jobs.len()),
            ("signature_failures", self.kinds.len()),
            ("gang_outcomes", self.gang_outcomes.len()),
        ]
    }

    /// Begins a session. Drops the failures of changed jobs.
    pub(crate) fn begin(&mut self, cluster: &Cluster) {
        self.session += 1;
        self.kinds.begin();
        self.gang_outcomes.begin();
        let objects = (cluster.queue_version(), cluster.hyper_nodes.revision());
        if self.objects != objects {
            self.objects = objects;
            self.jobs.clear();
        }
        self.follow(cluster);
    }

    /// Drops the failures of jobs that changed.
    fn follow(&mut self, cluster: &Cluster) {
        match self.changed_jobs.read(cluster.job_changes()) {
            Some(changed) => changed.for_each(|job| {
                self.jobs.remove(&job);
            }),
            None => self.jobs.clear(),
        }
    }

    /// Returns the failure of a job if it is of the last session or of this one.
    fn of(&self, job: JobId) -> Option<&UnschedulableJob> {
        self.jobs.get(&job).filter(|failure| failure.is_of(self.session))
    }

    fn make(&mut self, job: JobId, kind: FailureKind) {
        self.n_turns += 1;
        let (made, turn) = (self.session, self.n_turns);
        let failure = UnschedulableJob { kind, made, held: 0, turn, reported_until_micros: None };
        self.jobs.insert(job, failure);
    }

    /// Records an attempt that gave up placements. It counts as revalidated if the last session
    /// ended in the same way.
    fn give_up(&mut self, job: JobId, attempt: GangAttempt, failed: Option<UnschedulableJob>) {
        let is_as = |failure: &UnschedulableJob| match &failure.kind {
            FailureKind::GaveUp(before) => before.is_as(&attempt),
            _ => false,
        };
        match failed.filter(is_as) {
            Some(failure) => {
                self.jobs.insert(job, failure);
                self.hold(job);
            }
            None => self.make(job, FailureKind::GaveUp(attempt)),
        }
    }

    fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    fn hold(&mut self, job: JobId) {
        self.n_turns += 1;
        if let Some(failure) = self.jobs.get_mut(&job) {
            (failure.held, failure.turn) = (self.session, self.n_turns);
        }
    }

    /// Ends the session. Drops failures that did not hold in it, and tables with too many unused
    /// entries.
    pub(crate) fn end(&mut self) {
        let session = self.session;
        self.jobs.retain(|_, failure| failure.last() == session);
        if self.kinds.are_many(self.jobs.len()) {
            self.jobs.clear();
            self.kinds = SignatureFailures::default();
        }
        // After the jobs, whose failures name shapes.
        self.gang_outcomes.end();
    }
}

impl UnschedulableJob {
    fn last(&self) -> u64 {
        self.made.max(self.held)
    }

    /// True if all messages about the job are written and none is due at this time.
    fn is_reported_at(&self, now_micros: i64) -> bool {
        self.reported_until_micros.is_some_and(|until_micros| now_micros < until_micros)
    }

    /// True if the failure is of this session or of the one before.
    fn is_of(&self, session: u64) -> bool {
        session <= 1 + self.last()
    }
}

impl Session<'_> {
    /// Returns the cache of failures, brought up to date, beside the state. Returns `None` if no
    /// failure may be cached.
    fn failures(&mut self) -> Option<&mut UnschedulableCache> {
        let Self { state, caches, .. } = self;
        let cache = state.may_cache_failures.then_some(&mut caches.unschedulable)?;
        cache.follow(state);
        Some(cache)
    }

    /// True if the job failed in the last session and has not changed since. The failure is
    /// revalidated at the job's turn.
    pub fn was_unschedulable(&mut self, job: JobId) -> bool {
        let has_failed = self.failures().is_some_and(|cache| cache.of(job).is_some());
        has_failed && !self.has_eviction_hold(job)
    }

    /// Sorts the jobs by their last turns. This is nearly the order of the next turns, which speeds
    /// up the later sort.
    pub fn sort_by_turn(&self, jobs: &mut [JobId]) {
        if !self.may_cache_failures {
            return;
        }
        let Caches { unschedulable, refusals, .. } = &self.caches;
        jobs.sort_by_cached_key(|job| {
            (unschedulable.jobs.get(job).map(|failure| failure.turn), refusals.turn(*job))
        });
    }

    /// Revalidates the failure of a job at its turn, and records again what the attempt would
    /// record. Returns `None` if the job has to be tried. `look` returns the current fit errors of
    /// a task, or `None` if it may find a node.
    pub fn revalidate(
        &mut self,
        job: JobId,
        look: impl Fn(&SessionState<'_>, &mut NodeScoreCache, TaskId) -> Option<FitErrors>,
    ) -> Option<RepeatedFailure> {
        self.failures()?;
        let Self { state, caches, outcome } = self;
        let Caches { score_cache, unschedulable, stats, .. } = caches;
        let score_cache = score_cache.as_mut()?;
        let look = |state: &SessionState<'_>, task| look(state, score_cache, task);
        let repeated = unschedulable.revalidate((state, outcome), job, look, stats)?;
        stats.n_revalidated += 1;
        stats.n_surplus += u64::from(repeated == RepeatedFailure::Surplus);
        Some(repeated)
    }

    /// Caches a job that is skipped because its queue is overused. The caller records the fact in
    /// the session afterwards.
    pub fn stays_out(&mut self, job: JobId) {
        let is_clean = self.may_fail_for_long(job);
        let Some(cache) = self.failures() else { return };
        match cache.of(job) {
            _ if !is_clean => cache.forget(job),
            Some(UnschedulableJob { kind: FailureKind::Overused, .. }) => cache.hold(job),
            _ => cache.make(job, FailureKind::Overused),
        }
    }

    /// Prepares an attempt at a job with these pending tasks. Returns `None` if its failure cannot
    /// be cached.
    pub fn before_attempt(
        &mut self,
        job: JobId,
        tasks: impl Iterator<Item = TaskId>,
    ) -> Option<PreviousAttempt> {
        let cache = self.failures()?;
        let failed = cache.jobs.remove(&job);
        let failed = failed.filter(|failure| failure.is_of(cache.session));
        // A job with placements changes anyway. Its pending tasks are counted once, not at each
        // turn of a job that grows task by task.
        if self.outcome.out.placed.contains_key(&job) {
            return None;
        }
        let tasks: Vec<TaskId> = tasks.collect();
        let is_clean = self.may_fail_for_long(job)
            && tasks.len() == self.n_open(job)
            // Whoever has placed pods looks for places near them.
            && (!has_topology(&self.jobs[job]) || tasks.len() == self.jobs[job].tasks.len());
        is_clean.then(|| PreviousAttempt { tasks, state: self.attempt_stamp(), failed })
    }

    /// Ends the turn of a gang as that of another gang of its shape ended in this state. Returns false
    /// if there was none, so that the job has to be tried.
    pub fn fails_as_another(&mut self, job: JobId, before: &PreviousAttempt) -> bool {
        if self.failures().is_none() {
            return false;
        }
        let Self { state, caches, outcome } = self;
        let Caches { unschedulable: cache, stats, .. } = caches;
        let UnschedulableCache { kinds, gang_outcomes, .. } = cache;
        let Some(attempt) = gang_outcomes.known(state, kinds, job, &before.tasks) else {
            return false;
        };
        let is_repeated = gang_outcomes.repeat((state, outcome), job, &attempt);
        if is_repeated {
            stats.n_failed_alike += 1;
            cache.give_up(job, attempt, before.failed.clone());
        }
        is_repeated
    }

    /// Caches a failed attempt: the job is neither ready nor pipelined. The last `n_left` tasks
    /// were not reached.
    pub fn note_failure(&mut self, job: JobId, before: PreviousAttempt, n_left: usize) {
        let is_untouched = before.state == self.attempt_stamp();
        if self.failures().is_none() {
            return;
        }
        let (state, cache) = (&self.state, &mut self.caches.unschedulable);
        let PreviousAttempt { tasks, state: stamp, failed } = before;
        let n_tried = tasks.len() - n_left.min(tasks.len());
        if is_untouched && !has_topology(&state.jobs[job]) {
            let failed_tasks = failed_tasks(state, &mut cache.kinds, &tasks[..n_tried]);
            failed_tasks
                .into_iter()
                .for_each(|failed_tasks| cache.make(job, FailureKind::Tried(failed_tasks)));
        } else if stamp.version == state.version() {
            // All placements of the attempt were rolled back.
            let UnschedulableCache { kinds, gang_outcomes, .. } = cache;
            let attempt = gang_outcomes.note(state, kinds, job, (&tasks, n_tried));
            attempt.into_iter().for_each(|attempt| cache.give_up(job, attempt, failed.clone()));
        }
    }

    /// Caches an attempt after which the job has its minimum and no further task found a node. The
    /// attempt reached all tasks.
    pub fn note_surplus(&mut self, job: JobId, before: &PreviousAttempt) {
        if before.state != self.attempt_stamp() || self.failures().is_none() {
            return;
        }
        let (state, cache) = (&self.state, &mut self.caches.unschedulable);
        if has_topology(&state.jobs[job]) {
            return;
        }
        if let Some(failed_tasks) = failed_tasks(state, &mut cache.kinds, &before.tasks) {
            cache.make(job, FailureKind::Surplus(failed_tasks));
        }
    }

    /// Notes that all messages about the job are recorded. `due_micros` returns when a message is
    /// due again, in microseconds since 1970. It returns `None` if that is never the case.
    pub fn note_reported(&mut self, job: JobId, due_micros: impl FnOnce(&PodGroup) -> Option<i64>) {
        if self.failures().is_none() {
            return;
        }
        let Self { state, caches, .. } = self;
        let row = &state.jobs[job];
        // Other jobs have messages with a due time of their own.
        let is_reported = row.enforces_roles() && state.queues[row.queue].state == QueueState::Open;
        let group = row.pod_group.as_ref().filter(|_| is_reported);
        let reported_until_micros = group.map(|group| due_micros(group).unwrap_or(i64::MAX));
        if let Some(failure) = caches.unschedulable.jobs.get_mut(&job) {
            failure.reported_until_micros = reported_until_micros;
        }
        caches.refusals.note_reported(state, job, reported_until_micros);
    }

    /// Has the messages about the job recorded again in this session.
    pub fn report_again(&mut self, job: JobId) {
        if let Some(failure) = self.caches.unschedulable.jobs.get_mut(&job) {
            failure.reported_until_micros = None;
        }
    }

    /// Forgets the cached failure of a job, because this session has another message about it.
    pub fn forget_failure(&mut self, job: JobId) {
        self.caches.unschedulable.forget(job);
        self.caches.refusals.forget(job);
    }

    /// Removes from `jobs` those whose messages are the same as before and not due. Returns the
    /// removed jobs.
    pub(crate) fn take_repeated(&mut self, jobs: &mut Vec<JobId>) -> Vec<JobId> {
        if self.failures().is_none() {
            return Vec::new();
        }
        let Self { state, caches: Caches { unschedulable: cache, refusals, .. }, .. } = self;
        refusals.follow(state);
        let now_micros = state.info.now_micros;
        let is_repeated = |job: &mut JobId| {
            refusals.is_repeated(*job, now_micros)
                || cache.jobs.get(job).is_some_and(|failure| {
                    failure.held == cache.session && failure.is_reported_at(now_micros)
                })
        };
        jobs.extract_if(.., is_repeated).collect()
    }
}

impl UnschedulableCache {
    /// Returns whether the failure of a job still holds, and of which kind it is. What the attempt
    /// would record is then recorded again.
    fn revalidate(
        &mut self,
        (state, outcome): (&mut SessionState<'_>, &mut Outcome),
        job: JobId,
        look: impl FnMut(&SessionState<'_>, TaskId) -> Option<FitErrors>,
        stats: &mut CacheStats,
    ) -> Option<RepeatedFailure> {
        let Self { session, n_turns, jobs, kinds, gang_outcomes, .. } = self;
        let failure = jobs.get_mut(&job).filter(|failure| failure.is_of(*session))?;
        if state.has_eviction_hold(job) {
            return None;
        }
        let (stands, repeated) = match &failure.kind {
            FailureKind::Overused => return None,
            FailureKind::Tried(failed_tasks) => {
                let pipelines = || state.plugins.job_pipelined(state.view(), job);
                if !state.plugins.pipelines_rows() && pipelines() {
                    return None;
                }
                (revalidate_tasks(state, kinds, failed_tasks, look), RepeatedFailure::Fails)
            }
            FailureKind::Surplus(failed_tasks) => {
                (revalidate_tasks(state, kinds, failed_tasks, look), RepeatedFailure::Surplus)
            }
            FailureKind::GaveUp(attempt) => {
                (gang_outcomes.repeat((state, outcome), job, attempt), RepeatedFailure::Fails)
            }
        };
        if !stands {
            return None;
        }
        stats.n_gave_up += u64::from(matches!(failure.kind, FailureKind::GaveUp(_)));
        *n_turns += 1;
        (failure.held, failure.turn) = (*session, *n_turns);
        Some(repeated)
    }
}

/// True if all of these tasks fail as before. Their fit errors are then recorded again.
fn revalidate_tasks(
    state: &mut SessionState<'_>,
    kinds: &mut SignatureFailures,
    failed_tasks: &[FailedTask],
    mut look: impl FnMut(&SessionState<'_>, TaskId) -> Option<FitErrors>,
) -> bool {
    for &FailedTask { task, class, kind, outcome_revision } in failed_tasks {
        let is_alone = state.domains.is_alone(class);
        if !is_alone
            || kinds.outcome_revision(state, kind, |state| look(state, task)) != outcome_revision
        {
            return false;
        }
    }
    for &FailedTask { task, kind, .. } in failed_tasks {
        let errors = kinds.errors(kind);
        errors.into_iter().for_each(|errors| state.note_fit_errors(task, errors));
    }
    true
}

/// Returns the failures of the tasks. Returns `None` if a task has no signature, or has no fit
/// errors.
fn failed_tasks(
    state: &SessionState<'_>,
    kinds: &mut SignatureFailures,
    tasks: &[TaskId],
) -> Option<Vec<FailedTask>> {
    let visit = |&task: &TaskId| {
        let errors = state.records.fit_errors.get(task).filter(|_| state.is_plain(task))?;
        let shape = kinds.shape_of(state, task)?;
        let signature = state.pod_signature(task, |_| shape)?.before_attempt();
        let (kind, outcome_revision) = kinds.note(state, signature, errors);
        Some(FailedTask { task, class: state.tasks[task].class, kind, outcome_revision })
    };
    let failed_tasks: Option<Vec<FailedTask>> = tasks.iter().map(visit).collect();
    failed_tasks.filter(|failed_tasks| !failed_tasks.is_empty())
}

impl SessionState<'_> {
    /// True if only the job's turn decides when it is tried, so that its pending tasks need not be
    /// collected before.
    pub fn is_tried_in_turn(&self, job: JobId) -> bool {
        self.may_cache_failures && !self.has_eviction_hold(job)
    }

    /// Returns the number of the job's tasks that are to be placed, including tasks that this
    /// session skipped.
    fn n_open(&self, job: JobId) -> usize {
        let is_open = |task: &&TaskId| {
            let row = &self.tasks[**task];
            row.status == TaskStatus::Pending
                && !row.best_effort
                && row.can_be_placed()
                && row.gates != Gates::Foreign
        };
        self.jobs[job].tasks.iter().filter(is_open).count()
    }

    fn attempt_stamp(&self) -> AttemptStamp {
        AttemptStamp {
            version: self.version(),
            node_changes: self.cluster.node_changes().revision(),
            job_changes: self.cluster.job_changes().revision(),
        }
    }

    pub(crate) fn has_eviction_hold(&self, job: JobId) -> bool {
        !self.eviction_holds.is_empty() && self.eviction_holds.of(self.cluster, job).is_some()
    }

    /// True if the task has no volumes, claims, gates or nomination, and no relation to other pods.
    pub fn is_plain(&self, task: TaskId) -> bool {
        let (row, class) = (&self.tasks[task], self.class(task));
        row.nominated_node.is_none()
            && row.gates == Gates::None
            && class.volumes.is_empty()
            && class.resource_claims.is_empty()
            && self.domains.is_alone(row.class)
    }

    /// True if the failure of the job can be cached (see the module), and the session has recorded
    /// nothing about the job yet.
    pub(crate) fn may_fail_for_long(&self, job: JobId) -> bool {
        let row = &self.jobs[job];
        let records = &self.records;
        let is_recorded = |task: &TaskId| records.has(*task);
        self.may_cache_failures
            && !row.bare
            && row.policies().is_empty()
            && (!has_topology(row) || self.plugins.order_hyper_nodes_by_shape())
            && row.counts.pending_best_effort == 0
            && !self.has_eviction_hold(job)
            && !records.job_fit.contains_key(&job)
            && !row.tasks.iter().any(is_recorded)
    }
}

/// True if the job has a network topology. HyperNodes may change without a change of nodes or jobs,
/// so only its outcome as a gang is cached, which is compared in every session.
fn has_topology(job: &Job) -> bool {
    job.pod_group.as_ref().is_some_and(|group| group.network_topology.is_some())
}

/// Fit errors as they are recorded.
pub(crate) type CachedFitErrors = Arc<FitErrors>;
