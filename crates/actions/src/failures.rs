//! Failures of tasks, to be repeated without trying: a task fails as another one did if plugins
//! read the same of both, in one and the same state. Exact, because then every step of the search
//! is the same; only the log does not show the steps again. The engine's `evictions` tests compare
//! it with the plain search and count how often it is taken. Specification: actions.md 12.2 S1, S7.

use std::borrow::Cow;
use std::hash::Hash;
use std::ops::DerefMut;

use rustc_hash::FxHashMap;
use vc_framework::{Asker, AskerClass, Session, Tally};
use vc_model::{ClassId, TaskId};

/// The outcome of a search that placed nothing; the error says why no node was looked at.
pub(crate) type Outcome = Result<bool, Cow<'static, str>>;

/// What failed in the present state.
#[derive(Debug)]
pub(crate) struct Failures<K> {
    version: u64,
    /// What matters of the classes that were asked for.
    classes: FxHashMap<ClassId, AskerClass>,
    known: FxHashMap<(Asker, K), Failure>,
}

#[derive(Debug)]
struct Failure {
    causes: Tally,
    n_attempts: u32,
    n_victims: Option<u32>,
    outcome: Outcome,
}

impl<K> Default for Failures<K> {
    fn default() -> Self {
        Self { version: 0, classes: FxHashMap::default(), known: FxHashMap::default() }
    }
}

impl<K: Copy + Eq + Hash> Failures<K> {
    /// Runs `search`, unless it is known how it fails. `kind` tells searches for equal tasks apart;
    /// of the task at hand nothing is noted before.
    pub(crate) fn or_search<'c, S: DerefMut<Target = Session<'c>>>(
        &mut self,
        session: &mut S,
        task: TaskId,
        kind: K,
        search: impl FnOnce(&mut S) -> Outcome,
    ) -> Outcome {
        self.or_search_alike(session, task, (kind, |asker| asker), search)
    }

    /// The same for a search that reads no more of the task than what `alike` leaves of it.
    pub(crate) fn or_search_alike<'c, S: DerefMut<Target = Session<'c>>>(
        &mut self,
        session: &mut S,
        task: TaskId,
        (kind, alike): (K, impl FnOnce(Asker) -> Asker),
        search: impl FnOnce(&mut S) -> Outcome,
    ) -> Outcome {
        if self.version != session.version() {
            self.known.clear();
            self.classes.clear();
            self.version = session.version();
        }
        let classes = &mut self.classes;
        let asker_class =
            |class| *classes.entry(class).or_insert_with(|| session.asker_class(task));
        let Some(asker) = session.asker(task, asker_class) else { return search(session) };
        let key = (alike(asker), kind);
        if let Some(failure) = self.known.get(&key) {
            session.hits.n_repeated += 1;
            return failure.repeat(session);
        }
        let n_attempts = session.out.n_preemption_attempts;
        let n_victims = session.out.preemption_victims.take();
        let outcome = search(session);
        if !matches!(outcome, Ok(true)) && session.version() == self.version {
            let failure = Failure {
                causes: session.causes.of_task().clone(),
                n_attempts: session.out.n_preemption_attempts - n_attempts,
                n_victims: session.out.preemption_victims,
                outcome: outcome.clone(),
            };
            self.known.insert(key, failure);
        }
        session.out.preemption_victims = session.out.preemption_victims.or(n_victims);
        outcome
    }
}

impl Failure {
    fn repeat(&self, session: &mut Session<'_>) -> Outcome {
        session.causes.repeat(&self.causes);
        session.out.n_preemption_attempts += self.n_attempts;
        session.out.preemption_victims = self.n_victims.or(session.out.preemption_victims);
        self.outcome.clone()
    }
}
