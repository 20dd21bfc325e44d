//! Which jobs take part in allocate, and which of their tasks. Specification: actions.md 4.2, 4.3.

use std::collections::{BTreeMap, VecDeque};

use vc_framework::{Session, klog};
use vc_model::{Gates, JobId, TaskId, TaskStatus};

/// The tasks of each job that are still to be placed, in task order.
pub(super) struct Sheets {
    by_job: BTreeMap<JobId, VecDeque<TaskId>>,
    /// By (namespace, name).
    jobs: Vec<JobId>,
}

impl Sheets {
    /// The jobs of the session that pass the table of 4.2.
    pub(super) fn select(session: &mut Session<'_>) -> Self {
        let mut sheets = Self { by_job: BTreeMap::new(), jobs: Vec::new() };
        for job in session.facts().jobs.clone() {
            if let Err(reason) = takes_part(session, job) {
                let row = &session.jobs[job];
                let queue = &session.queues[row.queue].name;
                klog!(4; "Job <{}> Queue <{queue}> skip allocate, reason: {reason}", row.key);
                continue;
            }
            let tasks = worksheet(session, job);
            if !tasks.is_empty() {
                sheets.by_job.insert(job, tasks);
                sheets.jobs.push(job);
            }
        }
        sheets
    }

    /// The jobs by (namespace, name).
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.jobs.iter().copied()
    }

    /// What is left of a job.
    pub(super) fn of(&mut self, job: JobId) -> &mut VecDeque<TaskId> {
        self.by_job.entry(job).or_default()
    }

    /// Whether the claim pass left nothing to do: the job is pipelined and stays as it is.
    pub(super) fn is_kept(&self, session: &Session<'_>, job: JobId) -> bool {
        let emptied = self.by_job.get(&job).is_none_or(VecDeque::is_empty);
        let waits = 0 < session.jobs[job].counts.waiting();
        let hooks = session.hooks();
        let ready = hooks.job_ready(session.ask(), job);
        emptied || (waits && !ready && hooks.job_pipelined(session.ask(), job))
    }
}

fn takes_part(session: &mut Session<'_>, job: JobId) -> Result<(), String> {
    if session.jobs[job].is_pending() {
        if session.facts().enqueue_configured {
            return Err("job status is pending".to_owned());
        }
        session.admit(job);
    }
    if let Err(invalid) = session.hooks().job_valid(session.ask(), job) {
        return Err(format!("{}: {}", invalid.reason, invalid.message));
    }
    if let Some(missing) = needs_what_is_not_built(session, job) {
        session.records.job_fit.insert(job, missing.to_owned());
        return Err(missing.to_owned());
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
    let wanted = |&task: &TaskId| {
        let row = &session.tasks[task];
        row.status == TaskStatus::Pending
            && !row.best_effort
            && row.gates != Gates::Foreign
            && row.invalid.is_none()
    };
    let mut tasks: Vec<TaskId> =
        session.jobs[job].tasks.iter().copied().filter(wanted).collect();
    tasks.sort_by(|&l, &r| session.hooks().task_order(session.ask(), l, r));
    tasks.into()
}
