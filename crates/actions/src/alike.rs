//! Attempts to make room that end in vain, be it that some members of a gang find places which are given
//! up again: in one and the same state gangs of one shape end alike, so that one of them is tried for
//! all. Exact, because all that an attempt reads of a job is in its shape, and what it leaves behind,
//! causes and counts, is repeated. Only the log does not show the steps again. The engine's `alike.rs`
//! and the random stories compare with an attempt for every job. Specification: actions.md 12.2 S1, S7.

use rustc_hash::FxHashMap;
use vc_framework::{AskerClass, GangShape, Session, Tally};
use vc_model::{ClassId, JobId, TaskId};

use crate::preempt::pending;

/// What ended in vain in the present state.
#[derive(Debug, Default)]
pub(crate) struct Alike {
    version: u64,
    /// What matters of the classes that were asked for.
    classes: FxHashMap<ClassId, AskerClass>,
    /// With their numbers.
    shapes: FxHashMap<GangShape, usize>,
    /// Number of the shape of jobs that were asked about before: preempt asks twice about each.
    /// `None`: it has none.
    jobs: FxHashMap<JobId, Option<usize>>,
    ended: FxHashMap<Start, End>,
}

/// Where an attempt begins.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Start {
    /// The number of the shape of its job.
    shape: usize,
    /// Which part of the action it is.
    step: &'static str,
    /// The action has noted causes before.
    has_causes: bool,
}

/// How it ended.
#[derive(Debug)]
struct End {
    /// Of the action; `None`: nothing was added.
    causes: Option<Tally>,
    n_attempts: u32,
    n_victims: Option<u32>,
}

impl Alike {
    /// Runs `attempt` for the job, unless it is known how it ends.
    pub(crate) fn or_attempt(
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
        let has_causes = session.causes.of(job).iter().any(|(name, _)| *name == action);
        let start = Start { shape, step, has_causes };
        if let Some(end) = self.ended.get(&start) {
            session.hits.n_alike += 1;
            return end.repeat(session, job, action);
        }
        let before = session.causes.of(job).to_vec();
        let n_attempts = session.out.n_preemption_attempts;
        let n_victims = session.out.preemption_victims.take();
        let n_draws = session.n_draws();
        attempt(session);
        // Whoever draws gets another number.
        let is_same = session.version() == self.version && session.n_draws() == n_draws;
        let causes = added(&before, session.causes.of(job), action);
        if let Some(causes) = causes.filter(|_| is_same) {
            let end = End {
                causes,
                n_attempts: session.out.n_preemption_attempts - n_attempts,
                n_victims: session.out.preemption_victims,
            };
            self.ended.insert(start, end);
        }
        session.out.preemption_victims = session.out.preemption_victims.or(n_victims);
    }

    fn shape_of(&mut self, session: &Session<'_>, job: JobId) -> Option<usize> {
        if let Some(shape) = self.jobs.get(&job) {
            return *shape;
        }
        let tasks = pending(session, job);
        let classes = &mut self.classes;
        let mut asker = |task: TaskId| {
            let of_class =
                |class| *classes.entry(class).or_insert_with(|| session.asker_class(task));
            session.asker(task, of_class)
        };
        let shape = session.gang_shape(job, &tasks, &mut asker);
        let n_shapes = self.shapes.len();
        let shape = shape.map(|shape| *self.shapes.entry(shape).or_insert(n_shapes));
        self.jobs.insert(job, shape);
        shape
    }
}

impl End {
    fn repeat(&self, session: &mut Session<'_>, job: JobId, action: &'static str) {
        self.causes.iter().for_each(|noted| session.causes.repeat_job(job, action, noted));
        session.out.n_preemption_attempts += self.n_attempts;
        session.out.preemption_victims = self.n_victims.or(session.out.preemption_victims);
    }
}

/// What the action has added to the causes of a job. `None`: something else was changed.
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
