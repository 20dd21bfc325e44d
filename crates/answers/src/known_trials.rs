//! Results of trials that are the same for all jobs of one shape, kept as long as the state is the
//! same. Specification: answers.md 19 (`list-10k`).
//!
//! Exact because:
//! - an attempt to place a job reads of it only what is in its shape ([`GangShape`]); of a job of which
//!   more is read nothing is kept;
//! - only the attempt is kept. Validity, admission and order are asked anew for each job;
//! - nothing is kept while jobs before it hold room, and of pods with gates, pauses or faults.
//!
//! Measured: 10,000 groups of 16 shapes that wait for 5,000 nodes take 100 s without it.

use std::collections::HashMap;
use std::sync::Arc;

use vc_actions::first_tasks;
use vc_framework::{Atom, GangShape, Session};
use vc_model::{Gates, JobId, NodeId, TaskId};

use crate::trials::{AtomSet, HeldByOrder, TrialAnswer, TrialEnd, waiting_members};
use crate::verdict::RefusedTask;

/// Trials that are kept at most; a refusal takes up to 4 KiB. When there are more, all are forgotten.
const MOST_KEPT: usize = 4_096;

/// A trial of a shape with these atoms lifted.
type ShapeTrial = (Arc<GangShape>, AtomSet);

/// What trials of earlier jobs have found in the same state.
#[derive(Default)]
pub(crate) struct KnownTrials {
    attempts: HashMap<ShapeTrial, KnownAttempt>,
    /// By the place of the refused task among the tasks of its job.
    refused: HashMap<(ShapeTrial, usize), RefusedTask>,
}

impl KnownTrials {
    /// Makes room for one more trial.
    fn make_room(&mut self) {
        if MOST_KEPT <= self.attempts.len() + self.refused.len() {
            *self = Self::default();
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
    shape: Arc<GangShape>,
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
        let shape = Arc::new(session.trial_shape(job, &tasks)?);
        Some(Self { known, shape, tasks })
    }

    fn trial(&self, lifted: &AtomSet) -> Option<ShapeTrial> {
        // What the merged atom stands for depends on the job.
        let is_merged = lifted.contains(&Atom::OtherFilters);
        (!is_merged).then(|| (self.shape.clone(), lifted.clone()))
    }

    fn place_of(&self, task: TaskId) -> Option<usize> {
        self.tasks.iter().position(|&other| other == task)
    }

    /// Returns the result of the attempt with these atoms lifted.
    pub(crate) fn attempt(&self, lifted: &AtomSet) -> Option<TrialAnswer> {
        let KnownAttempt { end, placed, failed } = self.known.attempts.get(&self.trial(lifted)?)?;
        Some(TrialAnswer {
            end: end.clone(),
            placed: placed.iter().map(|&(place, node)| (self.tasks[place], node)).collect(),
            failed: failed.map(|place| self.tasks[place]),
        })
    }

    /// Keeps the result of the attempt with these atoms lifted.
    pub(crate) fn keep_attempt(&mut self, lifted: &AtomSet, answer: &TrialAnswer) {
        let Some(trial) = self.trial(lifted) else { return };
        let places = answer.placed.iter().map(|&(task, node)| Some((self.place_of(task)?, node)));
        let failed = answer.failed.map(|task| self.place_of(task));
        let (Some(placed), false) = (places.collect(), failed == Some(None)) else { return };
        let attempt = KnownAttempt { end: answer.end.clone(), placed, failed: failed.flatten() };
        self.known.make_room();
        self.known.attempts.insert(trial, attempt);
    }

    /// Returns why this task finds no node with these atoms lifted.
    pub(crate) fn refused(&self, lifted: &AtomSet, task: TaskId) -> Option<RefusedTask> {
        let key = (self.trial(lifted)?, self.place_of(task)?);
        self.known.refused.get(&key).cloned()
    }

    /// Keeps why this task finds no node with these atoms lifted.
    pub(crate) fn keep_refused(&mut self, lifted: &AtomSet, task: TaskId, refused: &RefusedTask) {
        if let (Some(trial), Some(place)) = (self.trial(lifted), self.place_of(task)) {
            self.known.make_room();
            self.known.refused.insert((trial, place), refused.clone());
        }
    }
}
