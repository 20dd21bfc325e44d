//! Why nobody was evicted for a job, from what the last cycle has recorded. Specification: answers.md
//! 8 (ANS-43).

use std::collections::BTreeMap;

use vc_engine::{SkippedAction, SkippedCycle};
use vc_framework::SessionState;
use vc_model::{Job, JobId, QueueId, TaskStatus};

use crate::amounts::count;
use crate::state_tables::StateTables;

/// Actions that evict pods of the same queue, and of other queues.
const OF_QUEUE: [&str; 2] = ["preempt", "gangpreempt"];
const OF_OTHERS: [&str; 2] = ["reclaim", "gangreclaim"];

/// Why nobody was evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionAnswer {
    /// The configured actions that evict and have tried, with their causes.
    pub actions: Vec<SkippedAction>,
    /// Actions that evict and are not configured.
    pub not_configured: Vec<&'static str>,
    /// What plugins that refused have compared, one text each.
    pub compared: Vec<String>,
    /// The answer in one line.
    pub text: String,
    /// What would help. `None` if nothing was recorded.
    pub remedy: Option<&'static str>,
}

/// Answers for a job that waits. `actions` are configured, `skipped` is what the last cycle has
/// recorded of the job.
pub(crate) fn eviction_answer(
    session: &SessionState<'_>,
    tables: &StateTables,
    actions: &[&'static str],
    (job, skipped): (JobId, Option<&SkippedCycle>),
) -> EvictionAnswer {
    let has = |names: &[&str]| names.iter().any(|name| actions.contains(name));
    let all = OF_QUEUE.into_iter().chain(OF_OTHERS);
    let not_configured = all.filter(|name| !actions.contains(name)).collect();
    let tried = skipped.map(|skipped| skipped.actions.clone()).unwrap_or_default();
    let mut text = match skipped {
        _ if !has(&OF_QUEUE) && !has(&OF_OTHERS) => {
            "nobody: neither preempt nor reclaim is among the actions".to_owned()
        }
        Some(skipped) => format!("nobody: {}", skipped.message),
        None if !session.plugins().job_starving(session.view(), job) => {
            "nobody: the job has its minimum, or no pod that could be placed".to_owned()
        }
        None => "nobody: no action has looked for victims".to_owned(),
    };
    match (has(&OF_QUEUE), has(&OF_OTHERS)) {
        (true, false) => text.push_str("; reclaim is not among the actions"),
        (false, true) => text.push_str("; preempt is not among the actions"),
        _ => {}
    }
    EvictionAnswer {
        compared: tried.iter().flat_map(|it| compared(session, tables, (it, job))).collect(),
        actions: tried,
        not_configured,
        text,
        remedy: skipped.map(|skipped| skipped.remedy).filter(|remedy| !remedy.is_empty()),
    }
}

/// The jobs of one queue with pods that run.
#[derive(Default)]
pub(crate) struct RunningJobs {
    /// Number of jobs that have no pod beyond their minimum.
    n_at_minimum: usize,
    /// Number of jobs by priority.
    by_priority: BTreeMap<i32, usize>,
}

impl RunningJobs {
    /// Counts the jobs of each queue.
    pub(crate) fn by_queue(session: &SessionState<'_>) -> BTreeMap<QueueId, Self> {
        let mut found: BTreeMap<QueueId, Self> = BTreeMap::new();
        let jobs = session.view().cluster.jobs_by_key().map(|job| &session.jobs[job]);
        for job in jobs.filter(|job| has_running(job)) {
            let of_queue = found.entry(job.queue).or_default();
            of_queue.n_at_minimum += usize::from(is_at_minimum(job));
            *of_queue.by_priority.entry(job.priority).or_default() += 1;
        }
        found
    }

    /// Returns the lowest priority. A job that does not count may be one of these jobs.
    fn lowest_but(&self, own: Option<&Job>) -> Option<i32> {
        let is_own = |priority: i32| own.is_some_and(|own| own.priority == priority);
        let others = self
            .by_priority
            .iter()
            .filter(|(priority, n_jobs)| usize::from(is_own(**priority)) < **n_jobs);
        others.map(|(priority, _)| *priority).next()
    }
}

fn has_running(job: &Job) -> bool {
    0 < job.counts.of(TaskStatus::Running) + job.counts.of(TaskStatus::Bound)
}

fn is_at_minimum(job: &Job) -> bool {
    i64::from(job.counts.ready()) <= i64::from(job.min_available)
}

/// Returns what the plugins that refused victims of an action have compared. Candidates are the jobs with
/// pods that run, of the same queue or of others, without the job itself.
fn compared(
    session: &SessionState<'_>,
    tables: &StateTables,
    (action, job): (&SkippedAction, JobId),
) -> Vec<String> {
    let own = &session.jobs[job];
    let is_of_queue = OF_QUEUE.contains(&action.action);
    let counted_own = Some(own).filter(|own| is_of_queue && has_running(own));
    let running = tables.running_jobs(session);
    let queues = || running.iter().filter(|(queue, _)| (**queue == own.queue) == is_of_queue);
    let plugins = action.causes.iter().filter_map(|cause| cause.plugin);
    let texts = plugins.filter_map(|plugin| match plugin {
        "gang" => {
            let n_jobs: usize = queues().map(|(_, jobs)| jobs.n_at_minimum).sum();
            let n_jobs = n_jobs - usize::from(counted_own.is_some_and(is_at_minimum));
            let are = if n_jobs == 1 { "is at its" } else { "are at their" };
            Some(format!("gang: {} {are} minimum", count(n_jobs, "candidate job")))
        }
        "priority" => {
            let lowest = queues().filter_map(|(_, jobs)| jobs.lowest_but(counted_own)).min()?;
            Some(format!("priority: the job has {}, the lowest candidate {lowest}", own.priority))
        }
        _ => None,
    });
    texts.collect()
}
