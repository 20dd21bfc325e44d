//! Tasks of which plugins read the same fail alike in one and the same state: why is looked up once
//! for all of them. Specification: actions.md 12.2 S1, S7.

use rustc_hash::FxHashMap;
use vc_model::{FitErrors, Revision, TaskId};

use super::Recorded;
use crate::asker::{Asker, AskerClass};
use crate::session::Session;

/// So many kinds may be known that no job is of any more.
const MOST_UNUSED: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    places: FxHashMap<Asker, usize>,
    kinds: Vec<Kind>,
    n_findings: u64,
    n_sessions: u64,
    /// Of this session: by the shape of the class whether rows of nodes are all that is read.
    shapes: FxHashMap<u64, bool>,
}

#[derive(Debug, Default)]
struct Kind {
    /// What was found last; `None`: there may be a place.
    errors: Option<Recorded>,
    /// Another number whenever that is another.
    finding: u64,
    state: State,
}

/// The state in which something was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    session: u64,
    version: u64,
    node_changes: Revision,
}

impl Kinds {
    /// A session begins.
    pub(super) fn begin(&mut self) {
        self.n_sessions += 1;
        self.shapes.clear();
    }

    /// The shape of the class of a task. `None`: filters or scorers read more than rows of nodes for
    /// it; for classes that have nothing to do with other pods their shape decides that.
    pub(super) fn shape_of(&mut self, session: &Session<'_>, task: TaskId) -> Option<AskerClass> {
        let serial = session.classes.serial(session.tasks[task].class);
        let is_shape = || matches!(session.asker_class(task), AskerClass::Shape(_));
        let reads_rows = *self.shapes.entry(serial).or_insert_with(is_shape);
        reads_rows.then_some(AskerClass::Shape(serial))
    }

    fn state(&self, session: &Session<'_>) -> State {
        let node_changes = session.node_changes().revision();
        State { session: self.n_sessions, version: session.version(), node_changes }
    }

    /// What was found in the present state for a task of the kind, by which it is known.
    pub(super) fn note(
        &mut self,
        session: &Session<'_>,
        asker: Asker,
        errors: &Recorded,
    ) -> (usize, u64) {
        let state = self.state(session);
        let next = self.kinds.len();
        let place = *self.places.entry(asker).or_insert(next);
        if place == next {
            self.kinds.push(Kind::default());
        }
        self.set(place, state, Some(errors.clone()));
        (place, self.kinds[place].finding)
    }

    /// The number of what is found now; asks if the state is another than when it was asked last.
    pub(super) fn finding(
        &mut self,
        session: &mut Session<'_>,
        place: usize,
        ask: impl FnOnce(&mut Session<'_>) -> Option<FitErrors>,
    ) -> u64 {
        if self.kinds[place].state != self.state(session) {
            let errors = ask(session).map(Recorded::new);
            let state = self.state(session);
            self.set(place, state, errors);
        }
        self.kinds[place].finding
    }

    fn set(&mut self, place: usize, state: State, errors: Option<Recorded>) {
        let kind = &mut self.kinds[place];
        kind.state = state;
        if kind.finding == 0 || kind.errors != errors {
            self.n_findings += 1;
            kind.finding = self.n_findings;
            kind.errors = errors;
        }
    }

    /// What was found last.
    pub(super) fn errors(&self, place: usize) -> Option<Recorded> {
        self.kinds[place].errors.clone()
    }

    /// Whether most of them are of no use beside so many jobs.
    pub(super) fn are_many(&self, n_jobs: usize) -> bool {
        2 * n_jobs + MOST_UNUSED < self.kinds.len()
    }
}
