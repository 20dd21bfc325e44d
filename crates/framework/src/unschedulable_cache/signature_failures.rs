//! Fit errors by pod signature. Tasks with equal signatures fail alike in the same state, so the
//! errors are computed once for all of them.
//! Specification: actions.md 12.2 S1, S7.

use rustc_hash::FxHashMap;
use vc_model::{FitErrors, QueueId, Revision, TaskId};

use super::CachedFitErrors;
use crate::pod_signature::{ClassSignature, PodSignature};
use crate::session::SessionState;

/// Upper bound of the signatures that no job uses any more.
const MOST_UNUSED: usize = 1024;

/// Failures by pod signature.
#[derive(Debug, Default)]
pub(super) struct SignatureFailures {
    places: FxHashMap<PodSignature, usize>,
    kinds: Vec<SignatureFailure>,
    n_outcomes: u64,
    n_sessions: u64,
    /// Per shape id and queue, in this session: true if filters and scorers read only rows of
    /// nodes.
    shapes: FxHashMap<(u64, Option<QueueId>), bool>,
}

#[derive(Debug, Default)]
struct SignatureFailure {
    /// The last fit errors. `None` if a node may fit.
    errors: Option<CachedFitErrors>,
    /// Changes whenever `errors` changes.
    outcome_revision: u64,
    state: SignatureStamp,
}

/// The state in which the errors were computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SignatureStamp {
    session: u64,
    version: u64,
    node_changes: Revision,
}

impl SignatureFailures {
    /// Returns the number of signatures and of shapes that are told apart.
    pub(super) fn len(&self) -> usize {
        self.places.len() + self.kinds.len() + self.shapes.len()
    }

    /// Begins a session.
    pub(super) fn begin(&mut self) {
        self.n_sessions += 1;
        self.shapes.clear();
    }

    /// Returns the shape of a task's class. Returns `None` if filters or scorers read more than
    /// rows of nodes. For classes without relation to other pods, shape and queue decide that.
    pub(super) fn shape_of(
        &mut self,
        session: &SessionState<'_>,
        task: TaskId,
    ) -> Option<ClassSignature> {
        let shape_id = session.classes.shape_id(session.tasks[task].class);
        let is_shape = || matches!(session.class_signature(task), ClassSignature::Shape(_));
        let queue = session.tasks[task].job.map(|job| session.jobs[job].queue);
        let reads_rows = *self.shapes.entry((shape_id, queue)).or_insert_with(is_shape);
        reads_rows.then_some(ClassSignature::Shape(shape_id))
    }

    fn state(&self, session: &SessionState<'_>) -> SignatureStamp {
        let node_changes = session.node_changes().revision();
        SignatureStamp { session: self.n_sessions, version: session.version(), node_changes }
    }

    /// Records the errors of a task in the present state. Returns the index of the signature and
    /// the revision of its outcome.
    pub(super) fn note(
        &mut self,
        session: &SessionState<'_>,
        signature: PodSignature,
        errors: &CachedFitErrors,
    ) -> (usize, u64) {
        let state = self.state(session);
        let next = self.kinds.len();
        let place = *self.places.entry(signature).or_insert(next);
        if place == next {
            self.kinds.push(SignatureFailure::default());
        }
        self.set(place, state, Some(errors.clone()));
        (place, self.kinds[place].outcome_revision)
    }

    /// Returns the revision of the outcome in the present state. Calls `query` if the state has
    /// changed since the last call.
    pub(super) fn outcome_revision(
        &mut self,
        session: &SessionState<'_>,
        place: usize,
        query: impl FnOnce(&SessionState<'_>) -> Option<FitErrors>,
    ) -> u64 {
        if self.kinds[place].state != self.state(session) {
            let errors = query(session).map(CachedFitErrors::new);
            let state = self.state(session);
            self.set(place, state, errors);
        }
        self.kinds[place].outcome_revision
    }

    fn set(&mut self, place: usize, state: SignatureStamp, errors: Option<CachedFitErrors>) {
        let kind = &mut self.kinds[place];
        kind.state = state;
        if kind.outcome_revision == 0 || kind.errors != errors {
            self.n_outcomes += 1;
            kind.outcome_revision = self.n_outcomes;
            kind.errors = errors;
        }
    }

    /// Returns the last fit errors.
    pub(super) fn errors(&self, place: usize) -> Option<CachedFitErrors> {
        self.kinds[place].errors.clone()
    }

    /// True if most signatures are unused by so many jobs.
    pub(super) fn are_many(&self, n_jobs: usize) -> bool {
        2 * n_jobs + MOST_UNUSED < self.kinds.len()
    }
}
