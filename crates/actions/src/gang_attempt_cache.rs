//! Failed attempts to make room for gangs, by gang shape. In the same state gangs of one shape end
//! alike, so one attempt serves all of them. This includes attempts that placed some members and
//! gave them up.
//!
//! Exact because:
//! - all that an attempt reads of a job is in its shape;
//! - the causes and counts that it leaves behind are repeated; only the log does not show the steps
//!   again;
//! - the engine's `gang_attempt_cache.rs` and the random stories compare with an attempt for every
//!   job.
//!
//! Specification: actions.md 12.2 S1, S7.

use rustc_hash::FxHashMap;
use vc_framework::{ClassSignature, GangShape, Session, SessionState, Tally};
use vc_model::{ClassId, JobId, TaskId};

use crate::starving::pending;

/// Attempts that failed in the present state.
#[derive(Debug, Default)]
pub(crate) struct GangAttemptCache {
    version: u64,
    /// The part of each class that filters and scorers read.
    classes: FxHashMap<ClassId, ClassSignature>,
    /// Shapes with their indices.
    shapes: FxHashMap<GangShape, usize>,
    /// Index of the shape of each job, since preempt tries each job twice. `None` if the job has no
    /// shape.
    jobs: FxHashMap<JobId, Option<usize>>,
    ended: FxHashMap<AttemptKey, AttemptOutcome>,
}

/// Key of an attempt.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AttemptKey {
    /// Index of the shape of the job.
    shape: usize,
    /// The part of the action.
    step: &'static str,
    /// True if the action has noted causes before.
    has_causes: bool,
}

/// Outcome of an attempt.
#[derive(Debug)]
struct AttemptOutcome {
    /// Causes that the action added. `None` if it added none.
    causes: Option<Tally>,
    n_attempts: u32,
    n_victims: Option<u32>,
}

impl GangAttemptCache {
    /// Runs `attempt` for the job, unless its outcome is cached.
    pub(crate) fn get_or_attempt(
        &mut self,
        session: &mut Session<'_>,
        job: JobId,
        (action, step): (&'static str, &'static str),
        attempt: impl FnOnce(&mut Session<'_>),
    ) {
        if self.version != session.version() {
            *self = Self { version: session.version(), ..Self::default() };
        }
        let Some(shape) = self.shape_of(session, job) else { return attempt(session) };
        let has_causes = session.outcome.causes.of(job).iter().any(|(name, _)| *name == action);
        let start = AttemptKey { shape, step, has_causes };
        if let Some(end) = self.ended.get(&start) {
            session.stats().n_equal_gangs += 1;
            return end.repeat(session, job, action);
        }
        let before = session.outcome.causes.of(job).to_vec();
        let n_attempts = session.outcome.out.n_preemption_attempts;
        let n_victims = session.outcome.out.preemption_victims.take();
        let n_draws = session.n_draws();
        attempt(session);
        // Random draws differ from attempt to attempt.
        let is_same = session.version() == self.version && session.n_draws() == n_draws;
        let causes = added(&before, session.outcome.causes.of(job), action);
        if let Some(causes) = causes.filter(|_| is_same) {
            let end = AttemptOutcome {
                causes,
                n_attempts: session.outcome.out.n_preemption_attempts - n_attempts,
                n_victims: session.outcome.out.preemption_victims,
            };
            self.ended.insert(start, end);
        }
        session.outcome.out.preemption_victims =
            session.outcome.out.preemption_victims.or(n_victims);
    }

    fn shape_of(&mut self, session: &SessionState<'_>, job: JobId) -> Option<usize> {
        if let Some(shape) = self.jobs.get(&job) {
            return *shape;
        }
        let tasks = pending(session, job);
        let classes = &mut self.classes;
        let mut signature = |task: TaskId| {
            let of_class =
                |class| *classes.entry(class).or_insert_with(|| session.class_signature(task));
            session.pod_signature(task, of_class)
        };
        let shape = session.gang_shape(job, &tasks, &mut signature);
        let n_shapes = self.shapes.len();
        let shape = shape.map(|shape| *self.shapes.entry(shape).or_insert(n_shapes));
        self.jobs.insert(job, shape);
        shape
    }
}

impl AttemptOutcome {
    fn repeat(&self, session: &mut Session<'_>, job: JobId, action: &'static str) {
        self.causes.iter().for_each(|noted| session.outcome.causes.repeat_job(job, action, noted));
        session.outcome.out.n_preemption_attempts += self.n_attempts;
        session.outcome.out.preemption_victims =
            self.n_victims.or(session.outcome.out.preemption_victims);
    }
}

/// Returns the causes that the action added to a job; the inner `None` means none. Returns `None`
/// if other causes changed.
fn added(
    before: &[(&'static str, Tally)],
    after: &[(&'static str, Tally)],
    action: &'static str,
) -> Option<Option<Tally>> {
    if before == after {
        return Some(None);
    }
    let (last, earlier) = after.split_last()?;
    (earlier == before && last.0 == action).then(|| Some(last.1.clone()))
}
