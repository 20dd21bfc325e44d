//! Which jobs take part in allocate, and which of their tasks. Specification: actions.md 4.2, 4.3.

use std::borrow::Cow;
use std::collections::BTreeMap;

use vc_framework::{Session, WaitCause, klog};
use vc_model::{Gates, JobId, TaskId, TaskStatus};

use crate::topology;
use crate::worksheet::{SubSheet, is_open, sort, worksheet};

/// What of each job is still to be placed. A job of which nothing is is not in.
pub(super) struct Sheets {
    made: BTreeMap<JobId, Rest>,
    /// Jobs whose sheet is made at their turn: they will probably not be tried, and the rest of the
    /// table held for them and does still; or their tasks are to be in the caches when they are
    /// placed, and nobody looks at the sheet before.
    others: Vec<JobId>,
}

/// What is left of a job.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// The first one last, as [`worksheet`] and its neighbours leave them.
    pub(super) sheets: Vec<SubSheet>,
    /// Nothing keeps a task out that is in them: an attempt takes out every task that it visits.
    pub(super) is_clear: bool,
}

impl Rest {
    fn of(session: &Session<'_>, job: JobId) -> Self {
        Self { sheets: open_tasks(session, job), is_clear: false }
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.sheets.iter().flat_map(|sheet| sheet.tasks.iter().copied())
    }
}

impl Sheets {
    /// The jobs of the session that pass the table of 4.2.
    pub(super) fn select(session: &mut Session<'_>) -> Self {
        let (mut made, mut others, mut n_tasks) = (BTreeMap::new(), Vec::new(), 0);
        for job in session.facts().jobs.clone() {
            if session.may_stand(job) {
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
                false => drop(made.insert(job, Rest::of(session, job))),
            }
        }
        // A list that grows is copied again and again, which costs more than the binds in it.
        session.out.effects.reserve(n_tasks as usize);
        session.sort_by_turn(&mut others);
        Self { made, others }
    }

    /// The jobs, in no particular order.
    pub(super) fn jobs(&self) -> Vec<JobId> {
        self.others.iter().chain(self.made.keys()).copied().collect()
    }

    /// What is left of a job, to look at.
    pub(super) fn get(&self, job: JobId) -> impl Iterator<Item = TaskId> + '_ {
        self.made.get(&job).into_iter().flat_map(Rest::tasks)
    }

    /// What is left of a job.
    pub(super) fn of(&mut self, job: JobId) -> &mut Rest {
        self.made.entry(job).or_default()
    }

    /// The same of any job.
    pub(super) fn made(&mut self, session: &Session<'_>, job: JobId) -> &mut Rest {
        self.made.entry(job).or_insert_with(|| Rest::of(session, job))
    }

    /// Takes a job out: it is kept as it is for this cycle.
    pub(super) fn strike(&mut self, job: JobId) {
        self.made.remove(&job);
    }

    /// Leaves only what is not placed yet.
    pub(super) fn strike_placed(&mut self, session: &Session<'_>, job: JobId) {
        let Rest { sheets, is_clear } = self.of(job);
        for sheet in sheets.iter_mut() {
            sheet.tasks.retain(|&task| session.tasks[task].status == TaskStatus::Pending);
        }
        sheets.retain(|sheet| !sheet.tasks.is_empty());
        sort(session, job, sheets);
        *is_clear = false;
        if sheets.is_empty() {
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
    // A job that asks for a topology is not placed as if it did not (4.2, row 4).
    if let Some(text) = topology::message(&session.hyper_nodes, &session.jobs[job]) {
        session.note_job_fit(job, WaitCause::Topology, text.as_str());
        return Err(text.into());
    }
    Ok(())
}

/// Pending tasks with a request and without a foreign gate (4.3).
fn open_tasks(session: &Session<'_>, job: JobId) -> Vec<SubSheet> {
    worksheet(session, job, |task| task.gates != Gates::Foreign)
}

/// Whether there are any; mostly the first one that is looked at tells.
fn has_open_tasks(session: &Session<'_>, job: JobId) -> bool {
    let row = &session.jobs[job];
    let is_open = |&task: &TaskId| {
        let task = &session.tasks[task];
        is_open(task) && task.gates != Gates::Foreign
    };
    row.counts.of(TaskStatus::Pending) != row.counts.pending_best_effort
        && row.tasks.iter().any(is_open)
}
