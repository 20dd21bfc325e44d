//! Failures of allocate that stand from cycle to cycle: a job of which nothing is placed in the end is
//! not tried again as long as its attempt would be the same. That is a gang of which no task finds a
//! place, a job that has its minimum and of whose surplus no task finds one, and a gang that gives up
//! what some members found (`trials.rs`). Specification: actions.md 12.2 S7.
//!
//! Exact, because an attempt that places nothing changes nothing, and of all that it reads each is
//! either asked again or known not to have changed:
//! * the job, its tasks with their classes, its minimums, its phase, and by them JobValid, JobReady,
//!   TaskOrder and when the loop over the tasks ends: the log of changed jobs does not name the job.
//!   JobPipelined is asked again where it reads more than the row; of a job that has its minimum it
//!   is not asked.
//! * Overused and the order of jobs and queues: the job keeps its turn, at which they are asked.
//! * Allocatable, PrePredicate and the histogram over all nodes, in the state at its turn: asked
//!   again, but only once for all tasks of which plugins read the same (`kinds.rs`), and compared
//!   with what was found before. A node that gained or lost room or became another, a queue that
//!   filled up or was emptied, counts by what it changes. With members that find places every node
//!   counts: one gang of each shape is tried, in each state.
//! * other pods: a class with topology terms or meant by some, with volumes or claims, and a task
//!   with a nomination or a gate are tried in every cycle; so are jobs with sub-groups or a topology.
//!
//! What is recorded of such a job is what was recorded before, so that nothing comes of recording it
//! again before a text is due: it is listed as repeated (`Facts::repeated`). The plain evaluator
//! tries and records everything; the engine's `standing.rs` and random stories compare the two.

mod kinds;
mod trials;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_model::{
    ChangeReader, ClassId, Cluster, FitErrors, Gates, JobId, PodGroup, QueueState, Revision,
    TaskId, TaskStatus,
};

use crate::session::Session;
use kinds::Kinds;
use trials::{Trial, Trials};

/// The jobs whose failure may stand.
#[derive(Debug, Default)]
pub(crate) struct Standings {
    /// Counts sessions.
    session: u64,
    n_turns: u64,
    jobs: FxHashMap<JobId, Standing>,
    kinds: Kinds,
    trials: Trials,
    changed_jobs: ChangeReader<JobId>,
    queue_version: u64,
}

/// How a job failed.
#[derive(Clone, Debug)]
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

#[derive(Clone, Debug)]
enum Why {
    /// These tasks found no place; others were not tried.
    Tried(Vec<Visit>),
    /// It has its minimum, and these tasks, all that are left, found no place.
    Surplus(Vec<Visit>),
    /// Some found places, which were given up.
    GaveUp(Trial),
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
    /// How it failed in the last session.
    failed: Option<Standing>,
}

/// A job for which the attempt of an earlier session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It is neither ready nor waits for room.
    Fails,
    /// It has its minimum, and gets no more.
    Surplus,
}

/// Another one as soon as something was done, also if it was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    version: u64,
    node_changes: Revision,
    job_changes: Revision,
}

impl Standings {
    /// A session begins.
    pub(crate) fn begin(&mut self, cluster: &Cluster) {
        self.session += 1;
        self.kinds.begin();
        self.trials.begin();
        // What a queue that is not open is told by name (C-33) reads its row.
        if self.queue_version != cluster.queue_version() {
            self.queue_version = cluster.queue_version();
            self.jobs.clear();
        }
        self.follow(cluster);
    }

    /// Forgets the jobs that changed.
    fn follow(&mut self, cluster: &Cluster) {
        match self.changed_jobs.read(cluster.job_changes()) {
            Some(changed) => changed.for_each(|job| {
                self.jobs.remove(&job);
            }),
            None => self.jobs.clear(),
        }
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

    /// The job was tried, and ended so; it stands if that is how it ended in the last session.
    fn give_up(&mut self, job: JobId, trial: Trial, failed: Option<Standing>) {
        let is_as = |standing: &Standing| match &standing.why {
            Why::GaveUp(before) => before.is_as(&trial),
            _ => false,
        };
        match failed.filter(is_as) {
            Some(standing) => {
                self.jobs.insert(job, standing);
                self.hold(job);
            }
            None => self.make(job, Why::GaveUp(trial)),
        }
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
        if self.trials.are_many(self.jobs.len()) {
            self.jobs.clear();
            self.trials = Trials::default();
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

    /// Whether the job would end as it did, at its turn; then what it would record is recorded.
    /// `look` finds out why a task finds no place in the present state, without a trace; `None`: it
    /// may find one.
    pub fn stands(
        &mut self,
        job: JobId,
        look: impl Fn(&mut Session<'_>, TaskId) -> Option<FitErrors>,
    ) -> Option<Again> {
        let mut standings = self.standings.take()?;
        standings.follow(self.cluster);
        let again = self.ends_again(&mut standings, job, look);
        self.standings = Some(standings);
        self.hits.n_stood += u64::from(again.is_some());
        self.hits.n_surplus += u64::from(again == Some(Again::Surplus));
        again
    }

    fn ends_again(
        &mut self,
        standings: &mut Standings,
        job: JobId,
        look: impl Fn(&mut Session<'_>, TaskId) -> Option<FitErrors>,
    ) -> Option<Again> {
        let Standings { session, n_turns, jobs, kinds, trials, .. } = standings;
        let standing = jobs.get_mut(&job).filter(|standing| standing.is_of(*session))?;
        if self.has_claim(job) {
            return None;
        }
        let (stands, again) = match &standing.why {
            Why::Overused => return None,
            Why::Tried(visits) => {
                let pipelines = || self.hooks.job_pipelined(self.ask(), job);
                if !self.hooks.pipelines_rows() && pipelines() {
                    return None;
                }
                (self.finds_again(kinds, visits, look), Again::Fails)
            }
            Why::Surplus(visits) => (self.finds_again(kinds, visits, look), Again::Surplus),
            Why::GaveUp(trial) => (trials.repeat(self, job, trial), Again::Fails),
        };
        if !stands {
            return None;
        }
        self.hits.n_gave_up += u64::from(matches!(standing.why, Why::GaveUp(_)));
        *n_turns += 1;
        (standing.held, standing.turn) = (*session, *n_turns);
        Some(again)
    }

    /// Whether the same is found for all of these tasks; then it is recorded.
    fn finds_again(
        &mut self,
        kinds: &mut Kinds,
        visits: &[Visit],
        look: impl Fn(&mut Session<'_>, TaskId) -> Option<FitErrors>,
    ) -> bool {
        for &Visit { task, class, kind, finding } in visits {
            let is_alone = self.domains.is_alone(class);
            if !is_alone || kinds.finding(self, kind, |session| look(session, task)) != finding {
                return false;
            }
        }
        for &Visit { task, kind, .. } in visits {
            let errors = kinds.errors(kind);
            errors.into_iter().for_each(|errors| self.note_fit_errors(task, errors));
        }
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
        let standings = self.standings.as_mut()?;
        standings.follow(self.cluster);
        let failed = standings.jobs.remove(&job);
        let failed = failed.filter(|standing| standing.is_of(standings.session));
        // What was placed is bound or comes back as news of the job; its rest is walked once, not at each
        // turn of a job that grows task by task.
        if self.out.placed.contains_key(&job) {
            return None;
        }
        let tasks: Vec<TaskId> = tasks.collect();
        let is_clean = self.may_fail_for_long(job) && tasks.len() == self.n_open(job);
        is_clean.then(|| Before { tasks, state: self.state(), failed })
    }

    /// The tasks of the job that are to be placed, those that were passed over in this session too.
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

    fn state(&self) -> State {
        State {
            version: self.version(),
            node_changes: self.cluster.node_changes().revision(),
            job_changes: self.cluster.job_changes().revision(),
        }
    }

    /// The attempt has failed: neither is the job ready nor does it wait for room. The last so many
    /// tasks were not reached.
    pub fn note_failure(&mut self, job: JobId, before: Before, n_left: usize) {
        let is_untouched = before.state == self.state();
        let Some(mut standings) = self.standings.take() else { return };
        standings.follow(self.cluster);
        let Before { tasks, state, failed } = before;
        let n_tried = tasks.len() - n_left.min(tasks.len());
        if is_untouched {
            let visits = self.visits(&mut standings.kinds, &tasks[..n_tried]);
            visits.into_iter().for_each(|visits| standings.make(job, Why::Tried(visits)));
        } else if state.version == self.version() {
            // All that was placed was taken back.
            let Standings { kinds, trials, .. } = &mut *standings;
            let trial = trials.note(self, kinds, job, (&tasks, n_tried));
            trial.into_iter().for_each(|trial| standings.give_up(job, trial, failed.clone()));
        }
        self.standings = Some(standings);
    }

    /// The attempt has ended with a job that has its minimum, and has reached all tasks.
    pub fn note_surplus(&mut self, job: JobId, before: &Before) {
        if before.state != self.state() {
            return;
        }
        let Some(mut standings) = self.standings.take() else { return };
        standings.follow(self.cluster);
        if let Some(visits) = self.visits(&mut standings.kinds, &before.tasks) {
            standings.make(job, Why::Surplus(visits));
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
    pub(crate) fn is_plain(&self, task: TaskId) -> bool {
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

    /// What is told of the job is to be recorded again in this session, whatever it found.
    pub fn tell_again(&mut self, job: JobId) {
        let standings = self.standings.as_mut();
        if let Some(standing) = standings.and_then(|standings| standings.jobs.get_mut(&job)) {
            standing.told_until_micros = None;
        }
    }

    /// Forgets how the job failed before: this session has something else to tell of it.
    pub fn forget_failure(&mut self, job: JobId) {
        if let Some(standings) = &mut self.standings {
            standings.forget(job);
        }
        self.records.refusals.forget(job);
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
