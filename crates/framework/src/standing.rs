//! Failures of allocate that stand from cycle to cycle: a job of which nothing was placed is not
//! tried again as long as its attempt would be the same. Specification: actions.md 12.2 S7.
//!
//! Exact, because an attempt that places nothing changes nothing, and of all that it reads each is
//! either asked again or known not to have changed:
//! * the job, its tasks with their classes, its minimums, its phase, and by them JobValid, JobReady,
//!   TaskOrder and when the loop over the tasks ends: the log of changed jobs does not name the job.
//!   JobPipelined is asked again where it reads more than the row.
//! * Overused and the order of jobs and queues: the job keeps its turn, at which they are asked.
//! * Allocatable, PrePredicate and the histogram over all nodes, in the state at its turn: asked
//!   again, but only once for all tasks of which plugins read the same (`kinds.rs`), and compared
//!   with what was found before. A node that gained or lost room or became another, a queue that
//!   filled up or was emptied, counts by what it changes.
//! * other pods: a class with topology terms or meant by some, with volumes or claims, and a task
//!   with a nomination or a gate are tried in every cycle; so are jobs with sub-groups or a topology.
//!
//! What is recorded of such a job is what was recorded before, so that nothing comes of recording it
//! again before a text is due: it is listed as repeated (`Facts::repeated`). The plain evaluator
//! tries and records everything; the engine's `standing.rs` and random stories compare the two.

mod kinds;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_model::{ClassId, Cluster, FitErrors, Gates, JobId, PodGroup, QueueState, TaskId};

use crate::session::Session;
use kinds::Kinds;

/// The jobs whose failure may stand.
#[derive(Debug, Default)]
pub(crate) struct Standings {
    /// Counts sessions.
    session: u64,
    n_turns: u64,
    jobs: FxHashMap<JobId, Standing>,
    kinds: Kinds,
    /// In the log of changed jobs.
    seen_until: u64,
    queue_version: u64,
}

/// How a job failed.
#[derive(Debug)]
struct Standing {
    why: Why,
    /// The session that tried it.
    made: u64,
    /// The last session in which it held.
    held: u64,
    /// A later turn has a greater number.
    turn: u64,
    /// All that is told of it was told, until this time in microseconds since 1970. `None`: not yet.
    told_until_micros: Option<i64>,
}

#[derive(Debug)]
enum Why {
    /// These tasks found no place; others were not tried.
    Tried(Vec<Visit>),
    /// Its queue was overused.
    Overused,
}

/// A task with what was found for all tasks of its kind.
#[derive(Clone, Copy, Debug)]
struct Visit {
    task: TaskId,
    class: ClassId,
    kind: usize,
    finding: u64,
}

/// What an attempt found, whose failure may stand.
#[derive(Clone, Debug)]
pub struct Before {
    /// In the order in which they are tried.
    tasks: Vec<TaskId>,
    state: State,
}

/// Another one as soon as something was done, also if it was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    version: u64,
    node_changes: u64,
    job_changes: u64,
}

impl Standings {
    /// A session begins.
    pub(crate) fn begin(&mut self, cluster: &Cluster) {
        self.session += 1;
        self.kinds.begin();
        // What a queue that is not open is told by name (C-33) reads its row.
        if self.queue_version != cluster.queue_version() {
            self.queue_version = cluster.queue_version();
            self.jobs.clear();
        }
        self.follow(cluster);
    }

    /// Forgets the jobs that changed.
    fn follow(&mut self, cluster: &Cluster) {
        let changes = cluster.job_changes();
        match changes.since(self.seen_until) {
            Some(changed) => changed.iter().for_each(|job| {
                self.jobs.remove(job);
            }),
            None => self.jobs.clear(),
        }
        self.seen_until = changes.end();
    }

    /// The failure of the last session, or of this one.
    fn of(&self, job: JobId) -> Option<&Standing> {
        self.jobs.get(&job).filter(|standing| standing.is_of(self.session))
    }

    fn make(&mut self, job: JobId, why: Why) {
        self.n_turns += 1;
        let (made, turn) = (self.session, self.n_turns);
        let standing = Standing { why, made, held: 0, turn, told_until_micros: None };
        self.jobs.insert(job, standing);
    }

    fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    fn hold(&mut self, job: JobId) {
        self.n_turns += 1;
        if let Some(standing) = self.jobs.get_mut(&job) {
            (standing.held, standing.turn) = (self.session, self.n_turns);
        }
    }

    /// The session ends.
    pub(crate) fn end(&mut self) {
        let session = self.session;
        self.jobs.retain(|_, standing| standing.last() == session);
        if self.kinds.are_many(self.jobs.len()) {
            self.jobs.clear();
            self.kinds = Kinds::default();
        }
    }
}

impl Standing {
    fn last(&self) -> u64 {
        self.made.max(self.held)
    }

    /// Whether all that is told of it was told, and is not due at this time.
    fn is_told_at(&self, now_micros: i64) -> bool {
        self.told_until_micros.is_some_and(|until_micros| now_micros < until_micros)
    }

    /// Of this session, or the one before.
    fn is_of(&self, session: u64) -> bool {
        session <= 1 + self.last()
    }
}

impl Session<'_> {
    /// Whether the job failed in the last session and has not changed since: whether its failure
    /// stands is to be asked at its turn.
    pub fn may_stand(&mut self, job: JobId) -> bool {
        let Some(standings) = &mut self.standings else { return false };
        standings.follow(self.cluster);
        standings.of(job).is_some() && !self.has_claim(job)
    }

    /// Whether nothing but its turn decides when the job is tried, and nobody looks at what is left of
    /// it before.
    pub fn is_tried_in_turn(&self, job: JobId) -> bool {
        self.standings.is_some() && !self.has_claim(job)
    }

    /// Puts the jobs in the order of their last turns, which is nearly that of the next ones.
    pub fn sort_by_turn(&self, jobs: &mut [JobId]) {
        let Some(standings) = &self.standings else { return };
        jobs.sort_by_cached_key(|job| {
            let tried = standings.jobs.get(job).map(|standing| standing.turn);
            (tried, self.records.refusals.turn(*job))
        });
    }

    /// Whether the job would fail as it did, at its turn; then what it would record is recorded.
    /// `look` finds out why a task finds no place in the present state, without a trace; `None`: it
    /// may find one.
    pub fn stands(
        &mut self,
        job: JobId,
        look: impl Fn(&mut Session<'_>, TaskId) -> Option<FitErrors>,
    ) -> bool {
        let Some(mut standings) = self.standings.take() else { return false };
        standings.follow(self.cluster);
        let stands = self.fails_again(&mut standings, job, look);
        self.hits.n_stood += u64::from(stands);
        self.standings = Some(standings);
        stands
    }

    fn fails_again(
        &mut self,
        standings: &mut Standings,
        job: JobId,
        look: impl Fn(&mut Session<'_>, TaskId) -> Option<FitErrors>,
    ) -> bool {
        let Standings { session, n_turns, jobs, kinds, .. } = standings;
        let standing = jobs.get_mut(&job).filter(|standing| standing.is_of(*session));
        let Some(standing) = standing.filter(|_| !self.has_claim(job)) else { return false };
        let Why::Tried(visits) = &standing.why else { return false };
        if !self.hooks.pipelines_rows() && self.hooks.job_pipelined(self.ask(), job) {
            return false;
        }
        for &Visit { task, class, kind, finding } in visits {
            let is_alone = self.domains.is_alone(class);
            if !is_alone || kinds.finding(self, kind, |session| look(session, task)) != finding {
                return false;
            }
        }
        for &Visit { task, kind, .. } in visits {
            let errors = kinds.errors(kind);
            self.records.fit_errors.extend(errors.map(|errors| (task, errors)));
        }
        *n_turns += 1;
        (standing.held, standing.turn) = (*session, *n_turns);
        true
    }

    pub(crate) fn has_claim(&self, job: JobId) -> bool {
        !self.claims.is_empty() && self.claims.of(self.cluster, job).is_some()
    }

    /// The job is left out because its queue is overused, as in the last session or for the first
    /// time; that is not recorded yet.
    pub fn stays_out(&mut self, job: JobId) {
        let is_clean = self.may_fail_for_long(job);
        let Some(standings) = &mut self.standings else { return };
        standings.follow(self.cluster);
        match standings.of(job) {
            _ if !is_clean => standings.forget(job),
            Some(Standing { why: Why::Overused, .. }) => standings.hold(job),
            _ => standings.make(job, Why::Overused),
        }
    }

    /// Before a job is tried, with the tasks that are left of it. `None`: its failure will not stand.
    pub fn before_attempt(
        &mut self,
        job: JobId,
        tasks: impl Iterator<Item = TaskId>,
    ) -> Option<Before> {
        self.standings.as_mut()?.forget(job);
        self.may_fail_for_long(job).then(|| Before { tasks: tasks.collect(), state: self.state() })
    }

    fn state(&self) -> State {
        State {
            version: self.version(),
            node_changes: self.cluster.node_changes().end(),
            job_changes: self.cluster.job_changes().end(),
        }
    }

    /// The attempt has failed: neither is the job ready nor does it wait for room. The last so many
    /// tasks were not reached.
    pub fn note_failure(&mut self, job: JobId, before: &Before, n_left: usize) {
        if before.state != self.state() {
            return;
        }
        let Some(mut standings) = self.standings.take() else { return };
        standings.follow(self.cluster);
        let n_tried = before.tasks.len() - n_left.min(before.tasks.len());
        if let Some(visits) = self.visits(&mut standings.kinds, &before.tasks[..n_tried]) {
            standings.make(job, Why::Tried(visits));
        }
        self.standings = Some(standings);
    }

    /// What was found for the tasks. `None`: more is read of one than of others of its kind, or it was
    /// passed over without a word.
    fn visits(&self, kinds: &mut Kinds, tasks: &[TaskId]) -> Option<Vec<Visit>> {
        let visit = |&task: &TaskId| {
            let errors = self.records.fit_errors.get(&task).filter(|_| self.is_plain(task))?;
            let shape = kinds.shape_of(self, task)?;
            let asker = self.asker(task, |_| shape)?.of_attempt();
            let (kind, finding) = kinds.note(self, asker, errors);
            Some(Visit { task, class: self.tasks[task].class, kind, finding })
        };
        let visits: Option<Vec<Visit>> = tasks.iter().map(visit).collect();
        visits.filter(|visits| !visits.is_empty())
    }

    /// Whether of other pods, volumes and devices nothing matters for the task, and it may go to any
    /// node.
    fn is_plain(&self, task: TaskId) -> bool {
        let (row, class) = (&self.tasks[task], self.class(task));
        row.nominated_node.is_none()
            && row.gates == Gates::None
            && class.volumes.is_empty()
            && class.resource_claims.is_empty()
            && self.domains.is_alone(row.class)
    }

    /// Whether all that is read of the job is listed above, and nothing was recorded of it yet.
    pub(crate) fn may_fail_for_long(&self, job: JobId) -> bool {
        let row = &self.jobs[job];
        let records = &self.records;
        let is_recorded = |task: &TaskId| {
            records.fit_errors.contains_key(task) || records.last_transaction.contains_key(task)
        };
        self.standings.is_some()
            && !row.bare
            && row.policies().is_empty()
            && row.counts.pending_best_effort == 0
            && !self.has_claim(job)
            && !records.job_fit.contains_key(&job)
            && !row.tasks.iter().any(is_recorded)
    }

    /// All that is to be told of the job was recorded; `due_micros` says when a text may be told
    /// again, in microseconds since 1970; `None`: never.
    pub fn note_told(&mut self, job: JobId, due_micros: impl FnOnce(&PodGroup) -> Option<i64>) {
        let Some(standings) = &mut self.standings else { return };
        standings.follow(self.cluster);
        let row = &self.cluster.jobs[job];
        // Else there are texts about it that have a time of their own.
        let is_told =
            row.enforces_roles() && self.cluster.queues[row.queue].state == QueueState::Open;
        let group = row.pod_group.as_ref().filter(|_| is_told);
        let told_until_micros = group.map(|group| due_micros(group).unwrap_or(i64::MAX));
        if let Some(standing) = standings.jobs.get_mut(&job) {
            standing.told_until_micros = told_until_micros;
        }
        self.records.refusals.note_told(self.cluster, job, told_until_micros);
    }

    /// Takes the jobs out of the list of which this session found what was told before.
    pub(crate) fn take_repeated(&mut self, jobs: &mut Vec<JobId>) -> Vec<JobId> {
        let Some(standings) = &mut self.standings else { return Vec::new() };
        standings.follow(self.cluster);
        let now_micros = self.facts.now_micros;
        let refusals = &mut self.records.refusals;
        refusals.follow(self.cluster);
        let is_repeated = |job: &mut JobId| {
            refusals.is_repeated(*job, now_micros)
                || standings.jobs.get(job).is_some_and(|standing| {
                    standing.held == standings.session && standing.is_told_at(now_micros)
                })
        };
        jobs.extract_if(.., is_repeated).collect()
    }
}

/// Errors as they are recorded.
pub(crate) type Recorded = Arc<FitErrors>;
