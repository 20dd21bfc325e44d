//! Attempts that found nodes for some members of a gang and gave them up, because other members
//! found none. In the same state gangs of one shape end alike, so one attempt serves all of them.
//! The node of each member is kept, since messages of the pods name it (core.md 3.10).
//! Specification: actions.md 12.2 S1, S7.
//!
//! Exact because:
//! - an attempt reads of its job only what is in the shape ([`GangShape`]), also about HyperNodes;
//! - it reads of the cluster only the state, which has a number, and no other pod's terms select
//!   its members;
//! - what makes a member plain is part of its pod, whose changes end the attempt, but for the terms
//!   of other pods, which are compared each time;
//! - in another state or session one gang of the shape is tried again, and its outcome is compared.

use rustc_hash::FxHashMap;
use vc_model::{ClassId, JobId, TaskId};

use super::CachedFitErrors;
use super::signature_failures::SignatureFailures;
use crate::gang_shape::GangShape;
use crate::records::LastTransaction;
use crate::session::{Outcome, SessionState};
use crate::wait_cause::JobFit;

/// Outcomes of the gangs of this session and of the last one, by shape.
#[derive(Debug, Default)]
pub(super) struct GangOutcomes {
    ids: FxHashMap<GangShape, u64>,
    outcomes: FxHashMap<u64, GangOutcome>,
    /// Number of shapes so far, with those that were dropped.
    n_shapes: u64,
    n_outcomes: u64,
    n_sessions: u64,
}

#[derive(Debug)]
struct GangOutcome {
    found: Vec<MemberOutcome>,
    /// Why all its pods wait, if the attempt found out.
    job_fit: Option<JobFit>,
    /// Changes whenever `found` or `job_fit` changes.
    outcome_revision: u64,
    state: GangStamp,
}

/// The session and the version of its state.
type GangStamp = (u64, u64);

/// Outcome of one member.
#[derive(Clone, Debug, PartialEq)]
enum MemberOutcome {
    Placed(LastTransaction),
    Failed(CachedFitErrors),
    /// Nothing is recorded: another member had found no node before.
    NotReached,
}

/// Outcome of an attempt at a gang.
#[derive(Clone, Debug)]
pub(super) struct GangAttempt {
    /// The members that were tried.
    tasks: Vec<TaskId>,
    /// Their classes.
    classes: Vec<ClassId>,
    /// Id of the shape.
    shape: u64,
    /// Marks of the shape, which may change without a change of the job.
    marks: u64,
    outcome_revision: u64,
}

impl GangAttempt {
    /// True if both attempts ended alike.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        (self.shape, self.outcome_revision) == (other.shape, other.outcome_revision)
            && self.tasks == other.tasks
    }
}

impl GangOutcomes {
    /// Returns the number of gang shapes and of their members.
    pub(super) fn len(&self) -> usize {
        let n_members: usize = self.outcomes.values().map(|known| known.found.len()).sum();
        self.ids.len() + self.outcomes.len() + n_members
    }

    /// Begins a session.
    pub(super) fn begin(&mut self) {
        self.n_sessions += 1;
    }

    /// Ends a session. Drops the shapes that no attempt of this session had. Exact because the caller
    /// has dropped the failures that were not made or revalidated in this session, and both stamp the
    /// shape.
    pub(super) fn end(&mut self) {
        let Self { ids, outcomes, n_sessions, .. } = self;
        outcomes.retain(|_, known| known.state.0 == *n_sessions);
        ids.retain(|_, id| outcomes.contains_key(id));
    }

    fn state(&self, session: &SessionState<'_>) -> GangStamp {
        (self.n_sessions, session.version())
    }

    /// Records the outcome of an attempt in the present state; the first `n_tried` tasks were
    /// tried. Returns `None` if the gang has no shape, or if a member has no recorded outcome.
    pub(super) fn note(
        &mut self,
        session: &SessionState<'_>,
        kinds: &mut SignatureFailures,
        job: JobId,
        (tasks, n_tried): (&[TaskId], usize),
    ) -> Option<GangAttempt> {
        let tried = &tasks[..n_tried];
        let found: Option<Vec<MemberOutcome>> =
            tried.iter().map(|&task| member_outcome(session, task)).collect();
        let (found, shape) = (found?, shape(session, kinds, job, tasks)?);
        let classes = plain_classes(session, tried)?;
        let job_fit = session.records.job_fit.get(&job).cloned();
        let marks = shape.marks();
        let state = self.state(session);
        let id = *self.ids.entry(shape).or_insert_with(|| {
            self.n_shapes += 1;
            self.n_shapes
        });
        let known = self.outcomes.entry(id).or_insert_with(|| GangOutcome::unknown(state));
        known.state = state;
        let is_as_before = known.found == found && known.job_fit == job_fit;
        if known.outcome_revision == 0 || !is_as_before {
            self.n_outcomes += 1;
            (known.found, known.job_fit) = (found, job_fit);
            known.outcome_revision = self.n_outcomes;
        }
        Some(GangAttempt {
            tasks: tried.to_vec(),
            classes,
            shape: id,
            marks,
            outcome_revision: known.outcome_revision,
        })
    }

    /// Returns the attempt at a gang with these tasks, if one of its shape was tried in this state.
    /// An attempt of which nothing is known returns `None`.
    pub(super) fn known(
        &self,
        session: &SessionState<'_>,
        kinds: &mut SignatureFailures,
        job: JobId,
        tasks: &[TaskId],
    ) -> Option<GangAttempt> {
        let shape = shape(session, kinds, job, tasks)?;
        let id = *self.ids.get(&shape)?;
        let known = self.outcomes.get(&id)?;
        if known.state != self.state(session) {
            return None;
        }
        let tasks = &tasks[..known.found.len()];
        Some(GangAttempt {
            tasks: tasks.to_vec(),
            classes: plain_classes(session, tasks)?,
            shape: id,
            marks: shape.marks(),
            outcome_revision: known.outcome_revision,
        })
    }

    /// True if the gang would end as before in this state. The outcomes of its members are then
    /// recorded again.
    pub(super) fn repeat(
        &self,
        (session, outcome): (&mut SessionState<'_>, &mut Outcome),
        job: JobId,
        attempt: &GangAttempt,
    ) -> bool {
        let Some(known) = self.outcomes.get(&attempt.shape) else { return false };
        if session.plugins().pipeline_marks(session.view(), job) != Some(attempt.marks) {
            return false;
        }
        if known.outcome_revision != attempt.outcome_revision || known.state != self.state(session)
        {
            return false;
        }
        // Pod affinity terms of other pods may select the members by now, without a change of the
        // job.
        if !attempt.classes.iter().all(|&class| session.domains.is_alone(class)) {
            return false;
        }
        let is_in_hyper_nodes = session.view().is_in_hyper_nodes(job);
        for (&task, member_outcome) in attempt.tasks.iter().zip(&known.found) {
            match member_outcome {
                MemberOutcome::Placed(last) => {
                    session.clear_fit_errors(task);
                    session.records.last_transaction.place(task).replace(*last);
                    // Trials in HyperNodes count no placements.
                    if !is_in_hyper_nodes {
                        outcome.note_placed(session, task);
                    }
                }
                MemberOutcome::Failed(errors) => {
                    session.note_fit_errors(task, errors.clone());
                }
                MemberOutcome::NotReached => {}
            }
        }
        if let Some(fit) = &known.job_fit {
            session.records.job_fit.insert(job, fit.clone());
        }
        true
    }
}

impl GangOutcome {
    /// Returns the row of a shape that no gang has had so far.
    fn unknown(state: GangStamp) -> Self {
        Self { found: Vec::new(), job_fit: None, outcome_revision: 0, state }
    }
}

fn member_outcome(session: &SessionState<'_>, task: TaskId) -> Option<MemberOutcome> {
    let records = &session.records;
    match (records.last_transaction.get(task), records.fit_errors.get(task)) {
        (Some(&last), None) => Some(MemberOutcome::Placed(last)),
        (None, Some(errors)) => Some(MemberOutcome::Failed(errors.clone())),
        (None, None) => Some(MemberOutcome::NotReached),
        _ => None,
    }
}

/// Returns the classes of these tasks, each once. Returns `None` if one of the tasks is not plain.
fn plain_classes(session: &SessionState<'_>, tasks: &[TaskId]) -> Option<Vec<ClassId>> {
    let mut classes: Vec<ClassId> = Vec::new();
    for &task in tasks {
        let class = session.is_plain(task).then(|| session.tasks[task].class)?;
        // Neighbours mostly have one class.
        if classes.last() != Some(&class) {
            classes.push(class);
        }
    }
    classes.sort_unstable();
    classes.dedup();
    Some(classes)
}

fn shape(
    session: &SessionState<'_>,
    kinds: &mut SignatureFailures,
    job: JobId,
    tasks: &[TaskId],
) -> Option<GangShape> {
    GangShape::of(session, job, tasks, |task| {
        let class = kinds.shape_of(session, task)?;
        Some(session.pod_signature(task, |_| class)?.before_attempt())
    })
}
