//! Which jobs take part in allocate, and which of their tasks. Specification: actions.md 4.2, 4.3.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use vc_framework::{Session, klog};
use vc_model::{Gates, JobId, TaskId, TaskStatus};

/// The tasks of each job that are still to be placed, in task order. A job without any is not in.
pub(super) struct Sheets(BTreeMap<JobId, VecDeque<TaskId>>);

impl Sheets {
    /// The jobs of the session that pass the table of 4.2.
    pub(super) fn select(session: &mut Session<'_>) -> Self {
        let mut sheets = BTreeMap::new();
        for job in session.facts().jobs.clone() {
            if let Err(reason) = takes_part(session, job) {
                let row = &session.jobs[job];
                let queue = &session.queues[row.queue].name;
                klog!(4; "Job <{}> Queue <{queue}> skip allocate, reason: {reason}", row.key);
                continue;
            }
            let tasks = worksheet(session, job);
            if !tasks.is_empty() {
                sheets.insert(job, tasks);
            }
        }
        Self(sheets)
    }

    /// The jobs, in no particular order.
    pub(super) fn jobs(&self) -> Vec<JobId> {
        self.0.keys().copied().collect()
    }

    /// What is left of a job, to look at.
    pub(super) fn get(&self, job: JobId) -> impl Iterator<Item = TaskId> + '_ {
        self.0.get(&job).into_iter().flatten().copied()
    }

    /// What is left of a job.
    pub(super) fn of(&mut self, job: JobId) -> &mut VecDeque<TaskId> {
        self.0.entry(job).or_default()
    }

    /// Takes a job out: it is kept as it is for this cycle.
    pub(super) fn strike(&mut self, job: JobId) {
        self.0.remove(&job);
    }

    /// Leaves only what is not placed yet.
    pub(super) fn strike_placed(&mut self, session: &Session<'_>, job: JobId) {
        let tasks = self.of(job);
        tasks.retain(|&task| session.tasks[task].status == TaskStatus::Pending);
        if tasks.is_empty() {
            self.strike(job);
        }
    }
}

fn takes_part(session: &mut Session<'_>, job: JobId) -> Result<(), Cow<'static, str>> {
    if session.jobs[job].is_pending() {
        if session.facts().enqueue_configured {
            return Err("job status is pending".into());
        }
        session.admit(job);
    }
    if let Err(invalid) = session.hooks().job_valid(session.ask(), job) {
        return Err(format!("{}: {}", invalid.reason, invalid.message).into());
    }
    if let Some(missing) = needs_what_is_not_built(session, job) {
        session.records.job_fit.insert(job, missing.to_owned());
        return Err(missing.into());
    }
    Ok(())
}

/// A job that asks for a topology is not placed as if it did not (4.2, row 4).
fn needs_what_is_not_built(session: &Session<'_>, job: JobId) -> Option<&'static str> {
    let group = session.jobs[job].pod_group.as_ref()?;
    if group.network_topology.is_some() {
        return Some("network topology: hyperNodes are not ready");
    }
    if !group.policies.is_empty() {
        return Some("sub-group policies are not scheduled by this version");
    }
    None
}

/// Pending tasks with a request and without a foreign gate (4.3).
fn worksheet(session: &Session<'_>, job: JobId) -> VecDeque<TaskId> {
    let row = &session.jobs[job];
    if row.counts.of(TaskStatus::Pending) == row.counts.pending_best_effort {
        return VecDeque::new();
    }
    let wanted = |&task: &TaskId| {
        let row = &session.tasks[task];
        row.status == TaskStatus::Pending
            && !row.best_effort
            && row.gates != Gates::Foreign
            && row.invalid.is_none()
    };
    let mut tasks: Vec<TaskId> = row.tasks.iter().copied().filter(wanted).collect();
    tasks.sort_by(|&l, &r| session.hooks().task_order(session.ask(), l, r));
    tasks.into()
}
