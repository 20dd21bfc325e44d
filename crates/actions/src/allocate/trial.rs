//! An attempt of allocate for one job whose result is looked at and undone.
//! Specification: answers.md 4.2 (ANS-21).

use vc_framework::{Op, Session};
use vc_model::{JobId, NodeId, TaskId};

use super::pending_tasks::open_tasks;
use super::place::{self, PlacementOutcome};
use crate::sub_job_tasks::SubJobTasks;

use super::pending_tasks::PendingTasks;

/// How an attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobTrialOutcome {
    /// The job gets its nodes at once.
    Ready,
    /// The job waits for room that is being released.
    Pipelined,
    /// The queue is overused, so that the job gets no turn.
    NoTurn,
    /// The job is not placed.
    Neither,
}

impl JobTrialOutcome {
    /// True if the job gets its places, now or when room is released.
    pub fn succeeds(self) -> bool {
        matches!(self, Self::Ready | Self::Pipelined)
    }
}

/// Result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobTrial {
    /// How it ended.
    pub outcome: JobTrialOutcome,
    /// The tasks that found a node, in the order of the tasks. If the attempt fails, they lose it
    /// again.
    pub placed: Vec<(TaskId, NodeId)>,
    /// The first task in task order that found no node. `None` if the attempt succeeds.
    pub failed: Option<TaskId>,
    /// Number of tasks that were tried.
    pub n_tried: usize,
}

/// Returns the tasks of the job that allocate tries, in order.
pub fn first_tasks(session: &Session<'_>, job: JobId) -> Vec<TaskId> {
    let sub_jobs: Vec<SubJobTasks> = open_tasks(session, job);
    sub_jobs.into_iter().rev().flat_map(|entry| entry.tasks).collect()
}

/// Tries to place the job as allocate does, and undoes everything.
pub fn try_job(session: &mut Session<'_>, job: JobId) -> JobTrial {
    let tasks = first_tasks(session, job);
    for &task in &tasks {
        session.clear_fit_errors(task);
        session.forget_transaction(task);
    }
    let queue = session.jobs[job].queue;
    if session.plugins().overused(session.view(), queue) {
        let failed = tasks.first().copied();
        return JobTrial {
            outcome: JobTrialOutcome::NoTurn,
            placed: Vec::new(),
            failed,
            n_tried: 0,
        };
    }
    let mut rest = PendingTasks { sub_jobs: open_tasks(session, job), is_clear: true };
    let (outcome, ops) = session.try_out(|session| place::attempt(session, job, &mut rest));
    let outcome = match outcome {
        PlacementOutcome::Ready => JobTrialOutcome::Ready,
        PlacementOutcome::Pipelined => JobTrialOutcome::Pipelined,
        PlacementOutcome::Neither => JobTrialOutcome::Neither,
    };
    let place_of = |&task: &TaskId| {
        let in_statement = ops.iter().find(|op| op.task() == task).and_then(node_of);
        let records = &session.records;
        let last = || records.last_transaction.get(task).and_then(|last| last.node);
        Some((task, in_statement.or_else(last)?))
    };
    let placed: Vec<(TaskId, NodeId)> = tasks.iter().filter_map(place_of).collect();
    let is_placed = |task: &TaskId| placed.iter().any(|(other, _)| other == task);
    let failed = tasks.iter().find(|task| !is_placed(task) && !outcome.succeeds()).copied();
    let was_tried = |task: &&TaskId| session.records.fit_errors.get(**task).is_some();
    let n_tried = placed.len() + tasks.iter().filter(was_tried).count();
    JobTrial { outcome, placed, failed, n_tried }
}

fn node_of(op: &Op) -> Option<NodeId> {
    match *op {
        Op::Allocate { node, .. } | Op::Pipeline { node, .. } => Some(node),
        Op::Evict { .. } => None,
    }
}
