//! Attempts that found nodes for some members of a gang and gave them up, because other members
//! found none. In the same state gangs of one shape end alike, so one attempt serves all of them.
//! The node of each member is kept, since messages of the pods name it (core.md 3.10).
//! Specification: actions.md 12.2 S1, S7.
//!
//! Exact because:
//! - an attempt reads of its job only what is in the shape ([`GangShape`]), also about HyperNodes;
//! - it reads of the cluster only the state, which has a number, and no other pod's terms select
//!   its members;
//! - in another state or session one gang of the shape is tried again, and its outcome is compared.

use rustc_hash::FxHashMap;
use vc_model::{JobId, TaskId};

use super::CachedFitErrors;
use super::signature_failures::SignatureFailures;
use crate::gang_shape::GangShape;
use crate::records::LastTransaction;
use crate::session::{Outcome, SessionState};
use crate::wait_cause::JobFit;

/// Upper bound of the shapes that no gang uses any more.
const MOST_UNUSED: usize = 1024;

/// Upper bound of the members of all shapes, in addition to four per task. A gang that is tried
/// while its pods arrive has another shape each time, with all pods so far.
const MOST_UNUSED_MEMBERS: usize = 1 << 14;

/// Outcomes of gangs by shape.
#[derive(Debug, Default)]
pub(super) struct GangOutcomes {
    places: FxHashMap<GangShape, usize>,
    shapes: Vec<GangOutcome>,
    /// Number of members of all shapes.
    n_members: usize,
    /// Number of tasks of the cluster when the last shape was added.
    n_tasks: usize,
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
    shape: usize,
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
        self.places.len() + self.shapes.len() + self.n_members
    }

    /// Begins a session.
    pub(super) fn begin(&mut self) {
        self.n_sessions += 1;
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
        let job_fit = session.records.job_fit.get(&job).cloned();
        let marks = shape.marks();
        let state = self.state(session);
        let next = self.shapes.len();
        let place = *self.places.entry(shape).or_insert(next);
        if place == next {
            let (found, job_fit) = (Vec::new(), None);
            self.shapes.push(GangOutcome { found, job_fit, outcome_revision: 0, state });
            self.n_members += tasks.len();
            self.n_tasks = session.tasks.len();
        }
        let known = &mut self.shapes[place];
        known.state = state;
        let is_as_before = known.found == found && known.job_fit == job_fit;
        if known.outcome_revision == 0 || !is_as_before {
            self.n_outcomes += 1;
            (known.found, known.job_fit) = (found, job_fit);
            known.outcome_revision = self.n_outcomes;
        }
        Some(GangAttempt {
            tasks: tried.to_vec(),
            shape: place,
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
        let place = *self.places.get(&shape)?;
        let known = &self.shapes[place];
        (known.state == self.state(session)).then(|| GangAttempt {
            tasks: tasks[..known.found.len()].to_vec(),
            shape: place,
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
        let known = &self.shapes[attempt.shape];
        if session.plugins().pipeline_marks(session.view(), job) != Some(attempt.marks) {
            return false;
        }
        if known.outcome_revision != attempt.outcome_revision || known.state != self.state(session)
        {
            return false;
        }
        // Pod affinity terms of other pods may select the members by now, without a change of the
        // job.
        if !attempt.tasks.iter().all(|&task| session.is_plain(task)) {
            return false;
        }
        let is_in_hyper_nodes = session.view().is_in_hyper_nodes(job);
        for (&task, member_outcome) in attempt.tasks.iter().zip(&known.found) {
            match member_outcome {
                MemberOutcome::Placed(last) => {
                    session.clear_fit_errors(task);
                    session.records.last_transaction.insert(task, *last);
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
        if let Some(JobFit { cause, text }) = &known.job_fit {
            session.note_job_fit(job, *cause, text.clone());
        }
        true
    }

    /// True if most shapes are unused by so many jobs, or if the shapes have too many members.
    pub(super) fn are_many(&self, n_jobs: usize) -> bool {
        2 * n_jobs + MOST_UNUSED < self.shapes.len()
            || 4 * self.n_tasks + MOST_UNUSED_MEMBERS < self.n_members
    }
}

fn member_outcome(session: &SessionState<'_>, task: TaskId) -> Option<MemberOutcome> {
    let records = &session.records;
    match (records.last_transaction.get(&task), records.fit_errors.get(&task)) {
        (Some(&last), None) => Some(MemberOutcome::Placed(last)),
        (None, Some(errors)) => Some(MemberOutcome::Failed(errors.clone())),
        (None, None) => Some(MemberOutcome::NotReached),
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_beyond_four_for_each_task_are_many() {
        let (n_tasks, n_jobs) = (5_000, 1);
        let most = 4 * n_tasks + MOST_UNUSED_MEMBERS;
        let known = |n_members| GangOutcomes { n_members, n_tasks, ..GangOutcomes::default() };
        assert!(!known(most).are_many(n_jobs));
        // However few the shapes are.
        assert!(known(most + 1).are_many(n_jobs));
    }
}
