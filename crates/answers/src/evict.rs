//! Why nobody was evicted for a job, from what the last cycle has recorded. Specification: answers.md
//! 8 (ANS-43).

use vc_engine::{SkippedAction, SkippedCycle};
use vc_framework::SessionState;
use vc_model::{Job, JobId, TaskStatus};

use crate::amounts::count;

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
        compared: tried.iter().flat_map(|action| compared(session, action, job)).collect(),
        actions: tried,
        not_configured,
        text,
        remedy: skipped.map(|skipped| skipped.remedy).filter(|remedy| !remedy.is_empty()),
    }
}

/// Returns what the plugins that refused victims of an action have compared.
fn compared(session: &SessionState<'_>, action: &SkippedAction, job: JobId) -> Vec<String> {
    let own = &session.jobs[job];
    let is_of_queue = OF_QUEUE.contains(&action.action);
    let is_candidate = |other: &Job| {
        let held = other.counts.of(TaskStatus::Running) + other.counts.of(TaskStatus::Bound);
        (other.queue == own.queue) == is_of_queue && other.key != own.key && 0 < held
    };
    let jobs = session.view().cluster.jobs_by_key().map(|job| &session.jobs[job]);
    let candidates: Vec<&Job> = jobs.filter(|other| is_candidate(other)).collect();
    let plugins = action.causes.iter().filter_map(|cause| cause.plugin);
    let texts = plugins.filter_map(|plugin| match plugin {
        "gang" => {
            let is_at_minimum =
                |other: &&&Job| i64::from(other.counts.ready()) <= i64::from(other.min_available);
            let n_jobs = candidates.iter().filter(is_at_minimum).count();
            let are = if n_jobs == 1 { "is at its" } else { "are at their" };
            Some(format!("gang: {} {are} minimum", count(n_jobs, "candidate job")))
        }
        "priority" => {
            let lowest = candidates.iter().map(|other| other.priority).min()?;
            Some(format!("priority: the job has {}, the lowest candidate {lowest}", own.priority))
        }
        _ => None,
    });
    texts.collect()
}
