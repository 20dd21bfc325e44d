//! The demand of a job: the tasks that would complete it.
//! Specification: cohort.md B.4 (demand).

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::SessionState;
use vc_model::{Gates, Job, JobId, Task, TaskId};

use crate::sub_job_tasks::{take_first, tasks_by_sub_job};

/// Returns the Pending tasks with a request and without gates, in placement order, until the gang
/// is complete. Returns the next task of a complete gang. Best-effort members count as placed.
pub fn needed(session: &SessionState<'_>, job: JobId) -> Vec<TaskId> {
    let mut sub_jobs = tasks_by_sub_job(session, job, |task| task.gates == Gates::None);
    let mut gang = GangDemand::of(&session.jobs[job]);
    let mut tasks = Vec::new();
    while let Some(entry) = take_first(session, job, &mut sub_jobs) {
        for task in entry.tasks {
            if !tasks.is_empty() && gang.is_complete() {
                return tasks;
            }
            gang.place(&session.tasks[task]);
            tasks.push(task);
        }
    }
    tasks
}

/// The minimums of a job with the tasks that count as placed.
struct GangDemand<'a> {
    job: &'a Job,
    n_more: u32,
    roles: BTreeMap<Arc<str>, u32>,
    sub_jobs: BTreeMap<usize, u32>,
    /// Number of sub-jobs that these tasks complete, by policy.
    completed: BTreeMap<usize, u32>,
}

impl<'a> GangDemand<'a> {
    fn of(job: &'a Job) -> Self {
        Self {
            job,
            n_more: 0,
            roles: BTreeMap::new(),
            sub_jobs: BTreeMap::new(),
            completed: BTreeMap::new(),
        }
    }

    fn place(&mut self, task: &Task) {
        self.n_more += 1;
        *self.roles.entry(task.role.clone()).or_default() += 1;
        let more = self.sub_jobs.entry(task.sub_job).or_default();
        *more += 1;
        let sub_job = &self.job.sub_jobs[task.sub_job];
        let counts = &sub_job.counts;
        let has = counts.ready() + counts.waiting() + counts.pending_best_effort + *more;
        // Counts only the sub-job that this task completes. The job counts those that were complete
        // before.
        if let Some(policy) = sub_job.policy
            && i64::from(sub_job.min_available) == i64::from(has)
        {
            *self.completed.entry(policy).or_default() += 1;
        }
    }

    /// True if JobPipelined would hold with these tasks placed.
    fn is_complete(&self) -> bool {
        let counts = &self.job.counts;
        let has = counts.ready() + counts.waiting() + counts.pending_best_effort + self.n_more;
        i64::from(self.job.min_available) <= i64::from(has)
            && self.has_roles()
            && self.has_sub_jobs()
    }

    fn has_roles(&self) -> bool {
        let enough = |(role, &minimum): (&Arc<str>, &i32)| {
            let of_role = self.job.roles.get(role);
            let placed = of_role
                .map_or(0, |counts| counts.ready() + counts.waiting() + counts.pending_best_effort);
            let more = self.roles.get(role).copied().unwrap_or(0);
            i64::from(minimum) <= i64::from(placed + more)
        };
        !self.job.enforces_roles() || self.job.task_min_available.iter().all(enough)
    }

    fn has_sub_jobs(&self) -> bool {
        self.job.policies().iter().enumerate().all(|(policy, of)| {
            let more = self.completed.get(&policy).copied().unwrap_or(0);
            let complete = self.job.n_pipelined_sub_jobs(policy) + more;
            i64::from(of.min_sub_groups) <= i64::from(complete)
        })
    }
}
