//! A growing list of victims with trial placements. Once a trial has failed, later trials are
//! skipped if too few members could find room.
//! Specification: actions.md 9.5, 12.2 S15.

use vc_framework::{SessionState, Statement};
use vc_model::TaskId;
use vc_resource::Resource;

use super::GangEvictionAttempt;
use super::bound::MemberBound;
use super::domains::EvictionDomain;
use super::simulate::{PlannedNodes, simulate};

/// The bound by which failing trials are skipped.
enum FailureBound {
    /// No trial has failed yet.
    Nothing,
    /// A trial has failed, and the bound is not computed yet.
    Failure,
    /// There is no bound; each trial has to run.
    Unbounded,
    Bounded(MemberBound),
}

pub(super) struct VictimTrials<'a> {
    attempt: &'a GangEvictionAttempt,
    domain: &'a EvictionDomain,
    victims: Vec<TaskId>,
    /// Σ Idle + Releasing of the domain with the victims gone.
    room: Resource,
    /// Number of sub-jobs that the job needs at least, as far as trials have shown.
    n_sub_jobs: usize,
    known: FailureBound,
}

impl<'a> VictimTrials<'a> {
    /// Creates an empty list of victims.
    pub(super) fn new(attempt: &'a GangEvictionAttempt, domain: &'a EvictionDomain) -> Self {
        let (victims, room) = (Vec::new(), domain.room.clone());
        Self { attempt, domain, victims, room, n_sub_jobs: 1, known: FailureBound::Nothing }
    }

    pub(super) fn add(&mut self, session: &SessionState<'_>, victims: &[TaskId]) {
        victims.iter().for_each(|&victim| self.room.add(session.request(victim)));
        self.victims.extend(victims);
        if let FailureBound::Bounded(bound) = &mut self.known {
            bound.add(session, victims);
        }
    }

    pub(super) fn victims(&self) -> &[TaskId] {
        &self.victims
    }

    /// Runs a trial if the total room suffices. Returns the nodes of all members, or `None` if the
    /// trial fails.
    pub(super) fn run(&mut self, statement: &mut Statement<'_, '_>) -> Option<PlannedNodes> {
        if !self.attempt.need.fits(&self.room) {
            return None;
        }
        let n_complete = match simulate(statement, self.attempt, self.domain, &self.victims) {
            Ok(places) => return Some(places),
            Err(n_complete) => n_complete,
        };
        // The job's rules read rows only, so it is incomplete with these sub-jobs on any nodes.
        if statement.plugins().pipelines_rows() {
            self.n_sub_jobs = self.n_sub_jobs.max(n_complete + 1);
        }
        if let FailureBound::Nothing = self.known {
            self.known = FailureBound::Failure;
        }
        None
    }

    /// Runs a trial as [`VictimTrials::run`] does, unless the bound shows that it fails.
    pub(super) fn run_unless_infeasible(
        &mut self,
        statement: &mut Statement<'_, '_>,
    ) -> Option<PlannedNodes> {
        let has_room = self.attempt.need.fits(&self.room);
        if has_room && self.is_infeasible(statement) {
            statement.stats().n_bounded += 1;
            return None;
        }
        self.run(statement)
    }

    fn is_infeasible(&mut self, session: &SessionState<'_>) -> bool {
        if let FailureBound::Failure = self.known {
            let bound = MemberBound::new(session, self.attempt, &self.domain.nodes);
            self.known = bound.map_or(FailureBound::Unbounded, |mut bound| {
                bound.add(session, &self.victims);
                FailureBound::Bounded(bound)
            });
        }
        match &self.known {
            FailureBound::Bounded(bound) => bound.excludes(self.n_sub_jobs),
            FailureBound::Nothing | FailureBound::Failure | FailureBound::Unbounded => false,
        }
    }
}
