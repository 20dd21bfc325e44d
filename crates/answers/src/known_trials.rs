//! Results of trials that are the same for all jobs of one shape, kept as long as the state is the
//! same. Specification: answers.md 19 (`list-10k`).
//!
//! Exact because:
//! - an attempt to place a job reads of it only what is in its shape ([`GangShape`]); of a job of which
//!   more is read nothing is kept;
//! - of trials only the attempt is kept. Validity, admission and order are asked anew for each job;
//! - a verdict reads besides what its admission reads ([`RefusalKey`]) and the job for which its queue stands still;
//!   of a job that is not valid none is kept;
//! - nothing is kept while jobs before it hold room, and of pods with gates, pauses or faults;
//! - a changed copy is the same for all jobs, and its trial is the attempt alone: of a job that is asked for its
//!   admission there nothing is kept, and validity reads the row of the job.
//!
//! Measured: 10,000 groups of 16 shapes that wait for 5,000 nodes take 100 s without it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_actions::first_tasks;
use vc_framework::{Atom, GangShape, JobChange, RefusalKey, RefusingAtoms, Session};
use vc_model::{ByteLruCache, Gates, JobId, NodeId, ObjectKey, QueueId, TaskId};

use crate::new_nodes::NodeShape;
use crate::remedy_change::RaisedQuota;
use crate::trial_counts::{TrialCounter, TrialShortcut};
use crate::trials::{AtomSet, HeldByOrder, TrialAnswer, TrialEnd, asks_admission, waiting_members};
use crate::verdict::{Judgement, RefusedTask};

/// Trials that are kept at most; a refusal takes up to 4 KiB. When there are more, all are forgotten.
const MOST_KEPT: usize = 4_096;
/// Budget of what refuses nodes, beyond which the least recently used one is forgotten.
const MOST_BYTES_OF_REFUSALS: usize = 4 << 20;
/// Bytes of the sets of atoms of one task, generously.
const BYTES_OF_REFUSALS: usize = 4 << 10;

/// Number of a shape, which no other shape of the same state has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShapeNumber(u64);

/// A trial of a shape with these atoms lifted and the job changed.
type ShapeTrial = (ShapeNumber, AtomSet, JobChange);

/// A trial, the place of the task among the tasks of its job, and the placed tasks.
type KnownRefusalsKey = (ShapeTrial, usize, Vec<(usize, NodeId)>);

/// What trials of earlier jobs have found in the same state.
#[derive(Default)]
pub(crate) struct KnownTrials {
    /// Numbers of the shapes. A shape is hashed once for each job.
    shapes: FxHashMap<GangShape, ShapeNumber>,
    n_shapes: u64,
    attempts: FxHashMap<ShapeTrial, KnownAttempt>,
    /// By the place of the refused task among the tasks of its job.
    refused: FxHashMap<(ShapeTrial, usize), RefusedTask>,
    /// Verdicts, with places among the tasks of the job instead of tasks.
    judgements: FxHashMap<JudgementKey, (Judgement, Vec<usize>)>,
    /// True if the attempt succeeds in a changed copy of the cluster.
    changed: FxHashMap<(ShapeNumber, SupposedChange), bool>,
    /// Changes of the cluster that are worth a trial, by the namespace of the job.
    worth_trying: FxHashMap<(ShapeNumber, Arc<str>), ChangesToTry>,
    /// What refuses the nodes.
    refusals: ByteLruCache<KnownRefusalsKey, Arc<RefusingAtoms>>,
    counter: TrialCounter,
}

/// All that decides about the verdict of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct JudgementKey {
    shape: ShapeNumber,
    /// Shapes of jobs without pods name none.
    queue: QueueId,
    /// `None` if the job needs no admission.
    admission: Option<RefusalKey>,
    /// The job for which its queue stands still.
    head: Option<ObjectKey>,
}

/// Changes of the cluster that are worth a trial.
#[derive(Clone, Default)]
pub(crate) struct ChangesToTry {
    /// Shapes of nodes that take the job's pods but for room, or might do so if they were empty.
    pub(crate) shapes: Vec<NodeShape>,
    /// Running jobs whose end would suffice by their amounts.
    pub(crate) ending: Vec<JobId>,
}

impl ChangesToTry {
    /// True if there is nothing to try.
    pub(crate) fn is_empty(&self) -> bool {
        self.shapes.is_empty() && self.ending.is_empty()
    }
}

/// A change of a copy of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SupposedChange {
    /// So many empty nodes like this one are added.
    AddedNodes(NodeId, usize),
    /// These jobs end.
    EndedJobs(Vec<JobId>),
    /// This queue has other fields.
    RaisedQuota(QueueId, RaisedQuota),
}

impl KnownTrials {
    /// Makes room for one more trial.
    fn make_room(&mut self) {
        let n_changes = self.changed.len() + self.worth_trying.len();
        let n_trials = self.attempts.len() + self.refused.len() + self.judgements.len();
        let n_kept = self.shapes.len() + n_trials + n_changes;
        if MOST_KEPT <= n_kept {
            let counter = self.counter.clone();
            *self = Self { n_shapes: self.n_shapes, counter, ..Self::default() };
        }
    }

    /// Returns the counter of the trials about this state.
    pub(crate) fn counter(&self) -> &TrialCounter {
        &self.counter
    }

    /// Returns the number of a shape.
    fn number_of(&mut self, shape: GangShape) -> ShapeNumber {
        if let Some(&number) = self.shapes.get(&shape) {
            return number;
        }
        self.make_room();
        self.n_shapes += 1;
        let number = ShapeNumber(self.n_shapes);
        self.shapes.insert(shape, number);
        number
    }

    /// Returns whether a job of this shape is placed in a copy with this change, which `is_placed`
    /// finds out if it is not known. `shape` is `None` if nothing may be kept of the job.
    pub(crate) fn is_placed(
        &mut self,
        shape: Option<ShapeNumber>,
        change: SupposedChange,
        is_placed: impl FnOnce() -> bool,
    ) -> bool {
        let Some(shape) = shape else {
            self.counter.add(TrialShortcut::None);
            return is_placed();
        };
        let key = (shape, change);
        if let Some(&known) = self.changed.get(&key) {
            self.counter.add(TrialShortcut::ChangedCopy);
            return known;
        }
        self.counter.add(TrialShortcut::None);
        let found = is_placed();
        self.make_room();
        self.changed.insert(key, found);
        found
    }

    /// Keeps which empty nodes admit the task that finds no node, if the changes that are worth a trial are kept.
    pub(crate) fn keep_admitting(
        &mut self,
        (shape, namespace): (Option<ShapeNumber>, Arc<str>),
        admit: &BTreeMap<NodeId, bool>,
    ) {
        let key = shape.map(|shape| (shape, namespace));
        let Some(known) = key.and_then(|key| self.worth_trying.get_mut(&key)) else { return };
        for shape in known.shapes.iter_mut().filter(|shape| shape.admits.is_none()) {
            shape.admits = admit.get(&shape.first).copied();
        }
    }
}

/// A [`TrialAnswer`] with places among the tasks of the job in the stead of tasks.
struct KnownAttempt {
    end: TrialEnd,
    placed: Vec<(usize, NodeId)>,
    failed: Option<usize>,
}

/// What is known of the shape of one job.
pub(crate) struct KnownOfShape<'k> {
    known: &'k mut KnownTrials,
    shape: ShapeNumber,
    /// The tasks of the job in the order in which allocate tries them.
    tasks: Vec<TaskId>,
}

impl<'k> KnownOfShape<'k> {
    /// Returns `None` if nothing can be kept of the job.
    pub(crate) fn of(
        known: &'k mut KnownTrials,
        session: &Session<'_>,
        job: JobId,
        held: &HeldByOrder,
    ) -> Option<Self> {
        if !session.is_trial_cached() || !held.pipelined.is_empty() {
            return None;
        }
        let waiting = waiting_members(session, job);
        let is_plain = |&task: &TaskId| {
            let row = &session.tasks[task];
            row.gates == Gates::None && row.pause.is_none() && row.invalid.is_none()
        };
        let tasks = first_tasks(session, job);
        if tasks.len() != waiting.len() || !waiting.iter().all(is_plain) {
            return None;
        }
        let shape = known.number_of(session.trial_shape(job, &tasks)?);
        Some(Self { known, shape, tasks })
    }

    /// Returns the shape, if a trial in a changed copy of the cluster is the attempt alone. `base` is the trial
    /// without a change.
    pub(crate) fn of_changed_copies(
        &self,
        session: &Session<'_>,
        job: JobId,
        base: &TrialAnswer,
    ) -> Option<ShapeNumber> {
        let is_attempt = match base.end {
            TrialEnd::Placed | TrialEnd::Pipelined | TrialEnd::NoTurn | TrialEnd::Unplaced => true,
            TrialEnd::NotValid(_) | TrialEnd::NotAdmitted(..) | TrialEnd::BehindHead => false,
        };
        let is_alone = is_attempt && !asks_admission(session, job) && !self.tasks.is_empty();
        is_alone.then_some(self.shape)
    }

    fn trial(&self, lifted: &AtomSet, change: JobChange) -> Option<ShapeTrial> {
        // What the merged atom stands for depends on the job.
        let is_merged = lifted.contains(&Atom::OtherFilters);
        (!is_merged).then(|| (self.shape, lifted.clone(), change))
    }

    fn place_of(&self, task: TaskId) -> Option<usize> {
        self.tasks.iter().position(|&other| other == task)
    }

    /// Returns places in the stead of tasks. The tasks mostly come in the order of the job, so that each is found near
    /// the one before it.
    fn places_of(&self, placed: &[(TaskId, NodeId)]) -> Option<Vec<(usize, NodeId)>> {
        let mut next = 0;
        let place = |&(task, node): &(TaskId, NodeId)| {
            let mut places = (next..self.tasks.len()).chain(0..next);
            let place = places.find(|&place| self.tasks[place] == task)?;
            next = place + 1;
            Some((place, node))
        };
        placed.iter().map(place).collect()
    }

    /// Returns the known result of the attempt with these atoms lifted and the job changed.
    pub(crate) fn attempt(&self, lifted: &AtomSet, change: JobChange) -> Option<TrialAnswer> {
        let trial = self.trial(lifted, change)?;
        let KnownAttempt { end, placed, failed } = self.known.attempts.get(&trial)?;
        Some(TrialAnswer {
            end: end.clone(),
            placed: placed.iter().map(|&(place, node)| (self.tasks[place], node)).collect(),
            failed: failed.map(|place| self.tasks[place]),
        })
    }

    /// Keeps the result of the attempt with these atoms lifted and the job changed.
    pub(crate) fn keep_attempt(
        &mut self,
        (lifted, change): (&AtomSet, JobChange),
        answer: &TrialAnswer,
    ) {
        let Some(trial) = self.trial(lifted, change) else { return };
        let failed = answer.failed.map(|task| self.place_of(task));
        let (Some(placed), false) = (self.places_of(&answer.placed), failed == Some(None)) else {
            return;
        };
        let attempt = KnownAttempt { end: answer.end.clone(), placed, failed: failed.flatten() };
        self.known.make_room();
        self.known.attempts.insert(trial, attempt);
    }

    /// Returns `None` if more decides about the job.
    fn judgement_key(
        &self,
        session: &Session<'_>,
        job: JobId,
        held: &HeldByOrder,
    ) -> Option<JudgementKey> {
        session.plugins().job_valid(session.view(), job).ok()?;
        let admission = match asks_admission(session, job) {
            true => Some(session.refusal_key(job)?.0),
            false => None,
        };
        let queue = session.jobs[job].queue;
        Some(JudgementKey { shape: self.shape, queue, admission, head: held.head.clone() })
    }

    /// Returns what was found out about an earlier job of which all that decides is the same.
    pub(crate) fn judgement(
        &self,
        session: &Session<'_>,
        job: JobId,
        held: &HeldByOrder,
    ) -> Option<Judgement> {
        let key = self.judgement_key(session, job, held)?;
        let (known, places) = self.known.judgements.get(&key)?;
        let placed = places.iter().map(|&place| self.tasks[place]).collect();
        Some(Judgement { placed, ..known.clone() })
    }

    /// Keeps what was found out about the job.
    pub(crate) fn keep_judgement(
        &mut self,
        (session, job): (&Session<'_>, JobId),
        held: &HeldByOrder,
        judged: &Judgement,
    ) {
        let key = self.judgement_key(session, job, held);
        let places = judged.placed.iter().map(|&task| self.place_of(task)).collect();
        let (Some(key), Some(places)) = (key, places) else { return };
        self.known.make_room();
        let kept = Judgement { placed: Vec::new(), ..judged.clone() };
        self.known.judgements.insert(key, (kept, places));
    }

    /// Returns the changes that are worth a trial for a job of this shape and namespace. Returns `None` if
    /// they are not known.
    pub(crate) fn changes_to_try(
        &self,
        shape: ShapeNumber,
        namespace: &Arc<str>,
    ) -> Option<ChangesToTry> {
        self.known.worth_trying.get(&(shape, namespace.clone())).cloned()
    }

    /// Keeps the changes that are worth a trial. The job must hold no node: jobs that do are among those that
    /// may end, but for the own one.
    pub(crate) fn keep_changes_to_try(
        &mut self,
        (shape, namespace): (ShapeNumber, &Arc<str>),
        changes: &ChangesToTry,
    ) {
        self.known.make_room();
        self.known.worth_trying.insert((shape, namespace.clone()), changes.clone());
    }

    /// Returns what refuses the nodes for this task with these atoms lifted and these tasks placed.
    pub(crate) fn refusing_atoms(
        &mut self,
        lifted: &AtomSet,
        (task, placed): (TaskId, &[(TaskId, NodeId)]),
    ) -> Option<Arc<RefusingAtoms>> {
        let key = self.refusals_key(lifted, (task, placed))?;
        self.known.refusals.get_mut(&key).map(|known| known.clone())
    }

    /// Keeps what refuses the nodes for this task.
    pub(crate) fn keep_refusing_atoms(
        &mut self,
        lifted: &AtomSet,
        (task, placed): (TaskId, &[(TaskId, NodeId)]),
        atoms: &Arc<RefusingAtoms>,
    ) {
        let Some(key) = self.refusals_key(lifted, (task, placed)) else { return };
        let ((_, lifted, _), _, places) = &key;
        let of_key = lifted.len() * size_of::<Atom>() + size_of_val(&**places);
        let n_bytes = BYTES_OF_REFUSALS + of_key + size_of_val(&*atoms.set_of);
        self.known.refusals.put(key, atoms.clone(), n_bytes);
        while MOST_BYTES_OF_REFUSALS < self.known.refusals.n_bytes() {
            self.known.refusals.pop_oldest();
        }
    }

    fn refusals_key(
        &self,
        lifted: &AtomSet,
        (task, placed): (TaskId, &[(TaskId, NodeId)]),
    ) -> Option<KnownRefusalsKey> {
        let trial = self.trial(lifted, JobChange::default())?;
        Some((trial, self.place_of(task)?, self.places_of(placed)?))
    }

    /// Returns why this task finds no node with these atoms lifted.
    pub(crate) fn refused(&self, lifted: &AtomSet, task: TaskId) -> Option<RefusedTask> {
        let key = (self.trial(lifted, JobChange::default())?, self.place_of(task)?);
        self.known.refused.get(&key).cloned()
    }

    /// Keeps why this task finds no node with these atoms lifted.
    pub(crate) fn keep_refused(&mut self, lifted: &AtomSet, task: TaskId, refused: &RefusedTask) {
        if let (Some(trial), Some(place)) =
            (self.trial(lifted, JobChange::default()), self.place_of(task))
        {
            self.known.make_room();
            self.known.refused.insert((trial, place), refused.clone());
        }
    }
}
