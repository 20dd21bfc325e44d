//! Trials of one job: the admission question, then an attempt of allocate for the job alone, with
//! some atoms lifted and undone afterwards. The base state holds what jobs before it have
//! pipelined. Specification: answers.md 4.2 (ANS-20, ANS-21).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_actions::{JobTrial, JobTrialOutcome, first_tasks, try_best_effort, try_job};
use vc_framework::{Atom, JobChange, Room, Session};
use vc_model::{Job, JobId, NodeId, ObjectKey, TaskId, TaskStatus};

use crate::known_trials::{KnownOfShape, KnownTrials, ShapeNumber};
use crate::nodes::NodeRefusals;
use crate::stage_rows::has_own_gates_only;
use crate::stop::StopSignal;
use crate::trial_counts::{TrialCounter, TrialShortcut};
use crate::verdict::Judgement;

/// Atoms that are lifted together.
pub(crate) type AtomSet = BTreeSet<Atom>;

/// Units of work per explanation and [`NODES_PER_UNITS`] nodes.
const UNITS: u64 = 4_000_000;
const NODES_PER_UNITS: u64 = 5_000;
/// Units of one placement. One look at a node is one unit.
const UNITS_PER_PLACEMENT: u64 = 1_000;

/// What jobs before the asked one hold: rooms of pipelined tasks, or the turn of the queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldByOrder {
    /// Tasks that ended the last cycle pipelined, with their nodes.
    pub(crate) pipelined: Vec<(TaskId, NodeId)>,
    /// The job for which its queue stands still. `None` if the queue does not.
    pub(crate) head: Option<ObjectKey>,
}

/// Where a trial ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrialEnd {
    /// All is granted: the job gets its places, or is admitted if it has no pods.
    Placed,
    /// It gets places that terminating pods have yet to leave.
    Pipelined,
    /// JobValid refuses it.
    NotValid(String),
    /// A plugin does not admit it.
    NotAdmitted(&'static str, Option<String>),
    /// The queue stands still for another job.
    BehindHead,
    /// The queue is overused.
    NoTurn,
    /// Too few members find places.
    Unplaced,
}

/// Result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrialAnswer {
    pub(crate) end: TrialEnd,
    /// The members that found nodes, in task order.
    pub(crate) placed: Vec<(TaskId, NodeId)>,
    /// The first member in task order that found none. `None` if no member was refused.
    pub(crate) failed: Option<TaskId>,
}

impl TrialAnswer {
    fn without_places(end: TrialEnd) -> Self {
        Self { end, placed: Vec::new(), failed: None }
    }

    /// True if the job gets its places, now or when room is released.
    pub(crate) fn succeeds(&self) -> bool {
        matches!(self.end, TrialEnd::Placed | TrialEnd::Pipelined)
    }

    /// Returns the members that found nodes.
    pub(crate) fn placed_tasks(&self) -> BTreeSet<TaskId> {
        self.placed.iter().map(|(task, _)| *task).collect()
    }
}

/// The trials of one job. Answers are kept, since trials change nothing.
pub(crate) struct JobTrials<'s, 'c> {
    session: &'s mut Session<'c>,
    job: JobId,
    held: HeldByOrder,
    known: BTreeMap<AtomSet, Arc<TrialAnswer>>,
    /// Sets of atoms with which a trial fails that was not run.
    known_failures: BTreeSet<AtomSet>,
    /// What is known of jobs of the same shape. `None` if nothing can be kept of this one.
    of_shape: Option<KnownOfShape<'s>>,
    /// Atoms that are lifted together as [`Atom::OtherFilters`].
    others: AtomSet,
    /// What refuses nodes for a task while atoms are lifted and members have their places. Kept, since trials
    /// change nothing.
    refusals: BTreeMap<RefusalsKey, Arc<NodeRefusals>>,
    /// Units of work that may still be spent (ANS-3).
    left_units: u64,
    stop: StopSignal,
    counter: TrialCounter,
}

/// The budget of a question is spent (ANS-3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct BudgetSpent;

/// What is left of the budget for trials in changed copies of the cluster.
#[derive(Clone, Copy)]
pub(crate) struct CopyBudget {
    left_units: u64,
    units_per_trial: u64,
}

impl CopyBudget {
    /// Charges one more trial, also one whose result is known.
    ///
    /// # Errors
    /// Nothing is left.
    pub(crate) fn charge(&mut self) -> Result<(), BudgetSpent> {
        if self.left_units == 0 {
            return Err(BudgetSpent);
        }
        self.left_units = self.left_units.saturating_sub(self.units_per_trial);
        Ok(())
    }
}

/// The task, the lifted atoms and the placed members.
type RefusalsKey = (TaskId, AtomSet, Vec<(TaskId, NodeId)>);

impl<'s, 'c> JobTrials<'s, 'c> {
    pub(crate) fn new(session: &'s mut Session<'c>, job: JobId, held: HeldByOrder) -> Self {
        let n_nodes = session.info().nodes.len() as u64;
        let left_units = UNITS * n_nodes.div_ceil(NODES_PER_UNITS).max(1);
        Self {
            session,
            job,
            held,
            known: BTreeMap::new(),
            known_failures: BTreeSet::new(),
            of_shape: None,
            others: AtomSet::new(),
            refusals: BTreeMap::new(),
            left_units,
            stop: StopSignal::default(),
            counter: TrialCounter::default(),
        }
    }

    /// Returns the trials of a job that keeps what it finds for jobs of the same shape.
    pub(crate) fn with_known(
        session: &'s mut Session<'c>,
        job: JobId,
        held: HeldByOrder,
        known: &'s mut KnownTrials,
    ) -> Self {
        let counter = known.counter().clone();
        let of_shape = KnownOfShape::of(known, session, job, &held);
        Self { of_shape, counter, ..Self::new(session, job, held) }
    }

    /// Returns these trials, of which none begins once the question is to be stopped.
    pub(crate) fn stoppable(self, stop: &StopSignal) -> Self {
        Self { stop: stop.clone(), ..self }
    }

    /// Returns the signal that ends the question.
    pub(crate) fn stop(&self) -> &StopSignal {
        &self.stop
    }

    /// Returns what is known of jobs of the same shape.
    pub(crate) fn of_shape(&mut self) -> Option<&mut KnownOfShape<'s>> {
        self.of_shape.as_mut()
    }

    /// Returns what was found out about an earlier job of which all that decides is the same.
    pub(crate) fn known_judgement(&self) -> Option<Judgement> {
        let known = self.of_shape.as_ref()?.judgement(self.session, self.job, &self.held)?;
        self.counter.add(TrialShortcut::KnownVerdicts);
        Some(known)
    }

    /// Keeps what was found out about the job.
    pub(crate) fn keep_judgement(&mut self, judged: &Judgement) {
        if let Some(of_shape) = &mut self.of_shape {
            of_shape.keep_judgement((self.session, self.job), &self.held, judged);
        }
    }

    /// Returns the shape by which trials in changed copies of the cluster are kept. `base` is the trial without a
    /// change. Returns `None` if none is kept.
    pub(crate) fn shape_of_copies(&self, base: &TrialAnswer) -> Option<ShapeNumber> {
        self.of_shape.as_ref()?.of_changed_copies(self.session, self.job, base)
    }

    /// Limits the work of [`JobTrials::try_run`].
    pub(crate) fn limit(&mut self, units: u64) {
        self.left_units = units;
    }

    /// Makes these atoms one, [`Atom::OtherFilters`].
    pub(crate) fn merge(&mut self, others: AtomSet) {
        self.others = others;
        self.known.clear();
        self.known_failures.clear();
        self.refusals.clear();
    }

    /// Runs the trial with these atoms lifted, if the budget permits it. Returns `None` if it is
    /// spent.
    pub(crate) fn try_run(&mut self, lifted: &AtomSet) -> Option<Arc<TrialAnswer>> {
        if let Some(answer) = self.known.get(lifted) {
            return Some(answer.clone());
        }
        if self.left_units == 0 {
            return None;
        }
        let answer = self.run(lifted);
        self.spend(answer.placed.len());
        Some(answer)
    }

    /// Returns true if the trial with these atoms lifted succeeds. A trial that is known to fail is not run.
    /// Returns `None` if the budget is spent.
    pub(crate) fn try_succeeds(&mut self, lifted: &AtomSet) -> Option<bool> {
        if let Some(answer) = self.known.get(lifted) {
            return Some(answer.succeeds());
        }
        if self.known_failures.contains(lifted) {
            return Some(false);
        }
        if self.left_units == 0 || !self.is_known_to_fail(lifted) {
            return Some(self.try_run(lifted)?.succeeds());
        }
        self.counter.add(TrialShortcut::KnownFailures);
        debug_assert!(!self.run(lifted).succeeds(), "known to fail");
        self.spend(0);
        self.known_failures.insert(lifted.clone());
        Some(false)
    }

    /// Returns the answer of the trial with these atoms lifted, if it was run.
    pub(crate) fn known(&self, lifted: &AtomSet) -> Option<&TrialAnswer> {
        self.known.get(lifted).map(|answer| &**answer)
    }

    /// Returns the atoms with those that are merged in place of the merged one.
    pub(crate) fn without_merged(&self, lifted: &AtomSet) -> AtomSet {
        let mut lifted = lifted.clone();
        if lifted.remove(&Atom::OtherFilters) {
            lifted.extend(self.others.iter().cloned());
        }
        lifted
    }

    /// Returns the session, without anything lifted.
    pub(crate) fn session(&self) -> &Session<'c> {
        self.session
    }

    pub(crate) fn job(&self) -> JobId {
        self.job
    }

    pub(crate) fn row(&self) -> &Job {
        &self.session.jobs[self.job]
    }

    pub(crate) fn held(&self) -> &HeldByOrder {
        &self.held
    }

    /// True if jobs before this one hold something.
    pub(crate) fn is_held(&self) -> bool {
        self.held.head.is_some() || !self.held.pipelined.is_empty()
    }

    /// Runs the trial with these atoms lifted.
    pub(crate) fn run(&mut self, lifted: &AtomSet) -> Arc<TrialAnswer> {
        if let Some(answer) = self.known.get(lifted) {
            return answer.clone();
        }
        let answer = Arc::new(self.run_anew(lifted, JobChange::default()));
        self.known.insert(lifted.clone(), answer.clone());
        answer
    }

    /// Runs the trial, or repeats the attempt of a job of the same shape.
    fn run_anew(&mut self, lifted: &AtomSet, change: JobChange) -> TrialAnswer {
        self.stop.check();
        let (job, is_held) = (self.job, !lifted.contains(&Atom::Order));
        let is_behind = is_held && self.held.head.is_some();
        let known = self.of_shape.as_ref().and_then(|of_shape| of_shape.attempt(lifted, change));
        // Only admission reads what nodes hold. Making all nodes empty costs more than an attempt.
        let mut lifted_before = lifted.clone();
        if known.is_some() && !asks_admission(self.session, job) {
            lifted_before.retain(|atom| !atom.is_room());
        }
        let (mut is_new, mut shortcut) = (false, TrialShortcut::None);
        let answer = self.with_changed((&lifted_before, change), |session| {
            before_attempt(session, job, is_behind).unwrap_or_else(|| {
                match known {
                    Some(_) => shortcut = TrialShortcut::KnownTrials,
                    None => is_new = true,
                }
                known.unwrap_or_else(|| attempt(session, job))
            })
        });
        self.counter.add(shortcut);
        if let Some(of_shape) = self.of_shape.as_mut().filter(|_| is_new) {
            of_shape.keep_attempt((lifted, change), &answer);
        }
        answer
    }

    /// Runs the trial of the changed job. Returns `None` if the budget is spent.
    pub(crate) fn run_changed(&mut self, change: JobChange) -> Option<TrialAnswer> {
        if self.left_units == 0 {
            return None;
        }
        let answer = self.run_anew(&AtomSet::new(), change);
        self.spend(answer.placed.len());
        Some(answer)
    }

    fn spend(&mut self, n_placed: usize) {
        self.left_units = self.left_units.saturating_sub(self.units_of_trial(n_placed));
    }

    fn units_of_trial(&self, n_placed: usize) -> u64 {
        let n_looks = self.session.info().nodes.len() as u64;
        (n_looks + UNITS_PER_PLACEMENT * n_placed as u64).max(1)
    }

    /// Returns what is left for trials in changed copies. Each costs as much as one that places all needed members.
    pub(crate) fn budget_of_copies(&self, n_needed: usize) -> CopyBudget {
        let units_per_trial = self.units_of_trial(n_needed);
        CopyBudget { left_units: self.left_units, units_per_trial }
    }

    /// Asks about the base state with these atoms lifted. Everything is restored afterwards.
    pub(crate) fn with_lifted<T>(
        &mut self,
        lifted: &AtomSet,
        question: impl FnOnce(&mut Session<'c>) -> T,
    ) -> T {
        self.with_changed((lifted, JobChange::default()), question)
    }

    /// Asks about the base state with these atoms lifted and the job changed. Everything is
    /// restored afterwards.
    pub(crate) fn with_changed<T>(
        &mut self,
        (lifted, change): (&AtomSet, JobChange),
        question: impl FnOnce(&mut Session<'c>) -> T,
    ) -> T {
        let held = match lifted.contains(&Atom::Order) {
            true => Vec::new(),
            false => pipeline(self.session, &self.held.pipelined),
        };
        // Our own gate is no obstacle: it is removed as soon as the queue has room.
        let mut lifted = self.without_merged(lifted);
        if self.has_own_gates_only() {
            lifted.insert(Atom::Gates);
        }
        let rows = self.session.lift(self.job, &lifted, change);
        let answer = question(self.session);
        self.session.restore(rows);
        for task in held.into_iter().rev() {
            self.session.unpipeline(task);
        }
        answer
    }

    /// Asks about the base state while these members have their places.
    pub(crate) fn with_placed<T>(
        &mut self,
        lifted: &AtomSet,
        placed: &[(TaskId, NodeId)],
        question: impl FnOnce(&Session<'c>) -> T,
    ) -> T {
        self.with_lifted(lifted, |session| {
            let held = pipeline(session, placed);
            let answer = question(session);
            for task in held.into_iter().rev() {
                session.unpipeline(task);
            }
            answer
        })
    }

    /// Returns all atoms that refuse nodes for a task, the lifted ones too, in the base state with these atoms
    /// lifted, while these members have their places.
    pub(crate) fn refusals(
        &mut self,
        task: TaskId,
        lifted: &AtomSet,
        placed: &[(TaskId, NodeId)],
    ) -> Arc<NodeRefusals> {
        let key = (task, lifted.clone(), placed.to_vec());
        if let Some(known) = self.refusals.get(&key) {
            return known.clone();
        }
        let of_shape = self.of_shape.as_mut();
        let atoms = of_shape.and_then(|it| it.refusing_atoms(lifted, (task, placed)));
        let refusals = Arc::new(match atoms {
            Some(atoms) => NodeRefusals::known(self.session, task, atoms),
            None => self.find_refusals(task, lifted, placed),
        });
        self.refusals.insert(key, refusals.clone());
        refusals
    }

    fn find_refusals(
        &mut self,
        task: TaskId,
        lifted: &AtomSet,
        placed: &[(TaskId, NodeId)],
    ) -> NodeRefusals {
        let find = |session: &Session<'_>| NodeRefusals::find(session, task);
        let refusals = self.with_placed(lifted, placed, find);
        if let Some(of_shape) = &mut self.of_shape {
            of_shape.keep_refusing_atoms(lifted, (task, placed), refusals.atoms());
        }
        refusals
    }

    /// True if all gates of the waiting members are the one that this scheduler removes itself.
    pub(crate) fn has_own_gates_only(&self) -> bool {
        has_own_gates_only(self.session, &self.row().tasks)
    }
}

/// Pipelines tasks for the length of a question. Returns those that could be.
fn pipeline(session: &mut Session<'_>, tasks: &[(TaskId, NodeId)]) -> Vec<TaskId> {
    let mut statement = session.statement();
    let mut held = Vec::new();
    for &(task, node) in tasks {
        if statement.pipeline(task, node, Room::Releasing).is_ok() {
            held.push(task);
        }
    }
    statement.keep();
    held
}

/// True if enqueue decides about the job before allocate tries it.
pub(crate) fn asks_admission(session: &Session<'_>, job: JobId) -> bool {
    session.jobs[job].is_pending() && session.info().enqueue_configured
}

/// Asks what allocate asks before it places the job. Returns the answer if the trial ends here; so it
/// does for a job of best-effort pods, which are placed one by one.
fn before_attempt(session: &mut Session<'_>, job: JobId, is_behind: bool) -> Option<TrialAnswer> {
    let ended = |end| Some(TrialAnswer::without_places(end));
    let row = &session.jobs[job];
    let asks_admission = asks_admission(session, job);
    // Controllers may create the pods once the job is admitted.
    let has_pods = !row.tasks.is_empty() || !asks_admission;
    if has_pods && let Err(invalid) = session.plugins().job_valid(session.view(), job) {
        return ended(TrialEnd::NotValid(invalid.message));
    }
    let group = row.pod_group.as_ref();
    let asks_for_room = group.is_some_and(|group| group.min_resources.is_some());
    if asks_admission
        && asks_for_room
        && let Err(refusal) = session.plugins().job_enqueueable(session.view(), job)
    {
        return ended(TrialEnd::NotAdmitted(refusal.by, refusal.message));
    }
    if is_behind {
        return ended(TrialEnd::BehindHead);
    }
    if !has_pods {
        return ended(TrialEnd::Placed);
    }
    first_tasks(session, job).is_empty().then(|| attempt_best_effort(session, job))
}

/// Tries to place the job.
fn attempt(session: &mut Session<'_>, job: JobId) -> TrialAnswer {
    let JobTrial { outcome, placed, failed, .. } = try_job(session, job);
    let end = match outcome {
        // A complete gang is ready without a further member. Its waiting members still wait.
        JobTrialOutcome::Ready if placed.is_empty() => TrialEnd::Unplaced,
        JobTrialOutcome::Ready => TrialEnd::Placed,
        JobTrialOutcome::Pipelined => TrialEnd::Pipelined,
        JobTrialOutcome::NoTurn => TrialEnd::NoTurn,
        JobTrialOutcome::Neither => TrialEnd::Unplaced,
    };
    let failed = match end {
        TrialEnd::Unplaced => failed.or_else(|| first_tasks(session, job).first().copied()),
        _ => failed,
    };
    TrialAnswer { end, placed, failed }
}

/// Backfill places single pods, whether or not others find a node.
fn attempt_best_effort(session: &mut Session<'_>, job: JobId) -> TrialAnswer {
    let (placed, failed) = try_best_effort(session, job);
    let end = if placed.is_empty() { TrialEnd::Unplaced } else { TrialEnd::Placed };
    TrialAnswer { end, placed, failed }
}

/// Returns the members that wait for a node, in the order of the job.
pub(crate) fn waiting_members(session: &Session<'_>, job: JobId) -> Vec<TaskId> {
    let waits = |task: &&TaskId| session.tasks[**task].status == TaskStatus::Pending;
    session.jobs[job].tasks.iter().filter(waits).copied().collect()
}
