//! The jobs that take part in allocate, with their tasks that are still to be placed.
//! Specification: actions.md 4.2, 4.3.

use std::borrow::Cow;
use std::collections::BTreeMap;

use vc_framework::{Session, SessionState, WaitCause, klog};
use vc_model::{Gates, JobId, TaskId, TaskStatus};

use crate::sub_job_tasks::{SubJobTasks, is_open, sort, tasks_by_sub_job};
use crate::topology;

/// The pending tasks by job. A job without any is not in the map.
pub(super) struct PendingTasksByJob {
    made: BTreeMap<JobId, PendingTasks>,
    /// Jobs whose pending tasks are collected at their turn. Some failed in the last session and
    /// will probably not be tried. For the others collecting late keeps their tasks in the CPU
    /// caches for placement.
    others: Vec<JobId>,
}

/// The tasks of a job that are still to be placed.
#[derive(Debug, Default)]
pub(super) struct PendingTasks {
    /// Sub-jobs, the first one last, as [`tasks_by_sub_job`] returns them.
    pub(super) sub_jobs: Vec<SubJobTasks>,
    /// True if these tasks have no recorded fit errors. An attempt removes every task that it
    /// visits.
    pub(super) is_clear: bool,
}

impl PendingTasks {
    fn of(session: &SessionState<'_>, job: JobId) -> Self {
        Self { sub_jobs: open_tasks(session, job), is_clear: false }
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.sub_jobs.iter().flat_map(|entry| entry.tasks.iter().copied())
    }
}

impl PendingTasksByJob {
    /// Selects the jobs of the session that pass the table of actions.md 4.2.
    pub(super) fn select(session: &mut Session<'_>) -> Self {
        let (mut made, mut others, mut n_tasks) = (BTreeMap::new(), Vec::new(), 0);
        for job in session.info().jobs.clone() {
            if session.was_unschedulable(job) {
                others.push(job);
                continue;
            }
            if let Err(reason) = takes_part(session, job) {
                let row = &session.jobs[job];
                let queue = &session.queues[row.queue].name;
                klog!(4; "Job <{}> Queue <{queue}> skip allocate, reason: {reason}", row.key);
                continue;
            }
            if !has_open_tasks(session, job) {
                continue;
            }
            n_tasks += session.jobs[job].counts.of(TaskStatus::Pending);
            match session.is_tried_in_turn(job) {
                true => others.push(job),
                false => drop(made.insert(job, PendingTasks::of(session, job))),
            }
        }
        // Growing the list step by step would cost more than the binds in it.
        session.outcome.out.effects.reserve(n_tasks as usize);
        session.sort_by_turn(&mut others);
        Self { made, others }
    }

    /// Returns the jobs, in no particular order.
    pub(super) fn jobs(&self) -> Vec<JobId> {
        self.others.iter().chain(self.made.keys()).copied().collect()
    }

    /// Returns the pending tasks of a job. Yields nothing if they are not collected yet.
    pub(super) fn get(&self, job: JobId) -> impl Iterator<Item = TaskId> + '_ {
        self.made.get(&job).into_iter().flat_map(PendingTasks::tasks)
    }

    /// Returns the pending tasks of a job, empty if they are not collected yet.
    pub(super) fn of(&mut self, job: JobId) -> &mut PendingTasks {
        self.made.entry(job).or_default()
    }

    /// Returns the pending tasks of a job, and collects them if necessary.
    pub(super) fn made(&mut self, session: &SessionState<'_>, job: JobId) -> &mut PendingTasks {
        self.made.entry(job).or_insert_with(|| PendingTasks::of(session, job))
    }

    /// Removes a job for this cycle.
    pub(super) fn strike(&mut self, job: JobId) {
        self.made.remove(&job);
    }

    /// Removes the tasks of a job that are placed.
    pub(super) fn strike_placed(&mut self, session: &SessionState<'_>, job: JobId) {
        let PendingTasks { sub_jobs, is_clear } = self.of(job);
        for entry in sub_jobs.iter_mut() {
            entry.tasks.retain(|&task| session.tasks[task].status == TaskStatus::Pending);
        }
        sub_jobs.retain(|entry| !entry.tasks.is_empty());
        sort(session, job, sub_jobs);
        *is_clear = false;
        if sub_jobs.is_empty() {
            self.strike(job);
        }
    }
}

fn takes_part(session: &mut Session<'_>, job: JobId) -> Result<(), Cow<'static, str>> {
    if session.jobs[job].is_pending() {
        if session.info().enqueue_configured {
            return Err("job status is pending".into());
        }
        session.admit(job);
    }
    if let Err(invalid) = session.plugins().job_valid(session.view(), job) {
        return Err(format!("{}: {}", invalid.reason, invalid.message).into());
    }
    // A job with a network topology is not placed as if it had none (4.2, row 4).
    if has_open_tasks(session, job)
        && let Some(text) = topology::message(session, job)
    {
        session.note_job_fit(job, WaitCause::Topology, text.as_str());
        return Err(text.into());
    }
    Ok(())
}

/// Returns the Pending tasks with a request and without a foreign gate (actions.md 4.3).
pub(super) fn open_tasks(session: &SessionState<'_>, job: JobId) -> Vec<SubJobTasks> {
    tasks_by_sub_job(session, job, |task| task.gates != Gates::Foreign)
}

/// True if the job has such tasks. Mostly its first task decides.
fn has_open_tasks(session: &SessionState<'_>, job: JobId) -> bool {
    let row = &session.jobs[job];
    let is_open = |&task: &TaskId| {
        let task = &session.tasks[task];
        is_open(task) && task.gates != Gates::Foreign
    };
    row.counts.of(TaskStatus::Pending) != row.counts.pending_best_effort
        && row.tasks.iter().any(is_open)
}
