//! A growing list of victims, tried out as it grows. Once a trial has failed, those are spared that
//! must fail as well, because too few members could find room. Specification: actions.md 9.5, 12.2
//! S15.

use vc_framework::{Session, Statement};
use vc_model::TaskId;
use vc_resource::Resource;

use super::Attempt;
use super::bound::Bound;
use super::select::Domain;
use super::simulate::{Places, simulate};

/// What is known of trials that fail.
enum Known {
    /// None has failed yet.
    Nothing,
    /// One has.
    Failure,
    /// Each has to be run.
    Unbounded,
    Bounded(Bound),
}

pub(super) struct Trials<'a> {
    attempt: &'a Attempt,
    domain: &'a Domain,
    victims: Vec<TaskId>,
    /// Σ Idle + Releasing of the domain once the victims are gone.
    room: Resource,
    /// Sub-jobs without which the job is not complete, as far as trials have shown.
    n_sub_jobs: usize,
    known: Known,
}

impl<'a> Trials<'a> {
    /// With nobody to go.
    pub(super) fn new(attempt: &'a Attempt, domain: &'a Domain) -> Self {
        let (victims, room) = (Vec::new(), domain.room.clone());
        Self { attempt, domain, victims, room, n_sub_jobs: 1, known: Known::Nothing }
    }

    pub(super) fn add(&mut self, session: &Session<'_>, victims: &[TaskId]) {
        victims.iter().for_each(|&victim| self.room.add(session.request(victim)));
        self.victims.extend(victims);
        if let Known::Bounded(bound) = &mut self.known {
            bound.add(session, victims);
        }
    }

    pub(super) fn victims(&self) -> &[TaskId] {
        &self.victims
    }

    /// Places for all members, if there is room enough in sum.
    pub(super) fn run(&mut self, statement: &mut Statement<'_, '_>) -> Option<Places> {
        if !self.attempt.need.fits(&self.room) {
            return None;
        }
        let domain = &self.domain.nodes;
        let n_complete = match simulate(statement, self.attempt, domain, &self.victims) {
            Ok(places) => return Some(places),
            Err(n_complete) => n_complete,
        };
        // What the job lacks with these sub-jobs placed is the same wherever they are.
        if statement.hooks().pipelines_rows() {
            self.n_sub_jobs = self.n_sub_jobs.max(n_complete + 1);
        }
        if let Known::Nothing = self.known {
            self.known = Known::Failure;
        }
        None
    }

    /// The same, but a trial that must fail is not run.
    pub(super) fn run_unless_vain(&mut self, statement: &mut Statement<'_, '_>) -> Option<Places> {
        let has_room = self.attempt.need.fits(&self.room);
        if has_room && self.is_vain(statement) {
            statement.hits.n_bounded += 1;
            return None;
        }
        self.run(statement)
    }

    fn is_vain(&mut self, session: &Session<'_>) -> bool {
        if let Known::Failure = self.known {
            let bound = Bound::new(session, self.attempt, &self.domain.nodes);
            self.known = bound.map_or(Known::Unbounded, |mut bound| {
                bound.add(session, &self.victims);
                Known::Bounded(bound)
            });
        }
        match &self.known {
            Known::Bounded(bound) => bound.excludes(self.n_sub_jobs),
            Known::Nothing | Known::Failure | Known::Unbounded => false,
        }
    }
}
