//! Why nobody was evicted for a job, from what the last cycle has recorded. Specification: answers.md
//! 8 (ANS-43).

use vc_engine::{SkippedAction, SkippedCycle};
use vc_framework::SessionState;
use vc_model::JobId;

use crate::comparisons::describe_comparisons;
use crate::state_tables::StateTables;

/// Actions that evict pods of the same queue, and of other queues.
pub(crate) const OF_QUEUE: [&str; 2] = ["preempt", "gangpreempt"];
pub(crate) const OF_OTHERS: [&str; 2] = ["reclaim", "gangreclaim"];

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
    let compared = tried.iter().flat_map(|it| describe_comparisons(session, tables, (it, job)));
    EvictionAnswer {
        compared: compared.collect(),
        actions: tried,
        not_configured,
        text,
        remedy: skipped.map(|skipped| skipped.remedy).filter(|remedy| !remedy.is_empty()),
    }
}
