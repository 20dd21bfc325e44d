//! The remedies of a full explanation that cycles of the whole engine verify: `raisePriority`, and `together` where no
//! end is waited for. They are found once for each job and state. Specification: answers.md 5, 10 (ANS-66).

use vc_engine::Engine;
use vc_model::JobId;

use crate::explain::AnswerState;
use crate::explanation::{Explanation, Remedy};
use crate::subject::{Subject, name_of_job};
use crate::supposed_remedies::{raise_priority, together_at_once};
use crate::unblock::MOST_REMEDIES;
use crate::when::{is_not_by_time, waiting_tasks};

/// Adds the remedies that need cycles of the whole engine to a full explanation about the state after its last cycle:
/// a higher priority, and several changes at once. [`crate::add_start`] adds them, too.
pub fn add_cycle_remedies(
    engine: &Engine,
    state: &mut AnswerState,
    subject: Subject,
    explanation: &mut Explanation,
) {
    let found = cycle_remedies(engine, state, subject, explanation);
    if !found.is_empty() {
        explanation.unblock.extend(found);
        explanation.unblock.sort_by_key(|remedy| (remedy.who, remedy.kind));
        explanation.unblock.truncate(MOST_REMEDIES);
    }
}

/// Returns these remedies. There are none without blocking sets: nothing of the job waits for a change then.
pub(crate) fn cycle_remedies(
    engine: &Engine,
    state: &mut AnswerState,
    subject: Subject,
    explanation: &Explanation,
) -> Vec<Remedy> {
    let Some(blocking) = &explanation.blocking else { return Vec::new() };
    let Some(job) = subject.job.filter(|_| explanation.waits()) else { return Vec::new() };
    let known = state.kept_answers().and_then(|it| it.cycle_remedies(subject, blocking));
    known.unwrap_or_else(|| {
        let found = find_cycle_remedies(engine, state, job, explanation);
        if let Some(kept) = state.kept_answers() {
            kept.keep_cycle_remedies(subject, blocking, &found);
        }
        found
    })
}

fn find_cycle_remedies(
    engine: &Engine,
    state: &AnswerState,
    job: JobId,
    explanation: &Explanation,
) -> Vec<Remedy> {
    let cluster = state.cluster();
    let own = &cluster.jobs[job];
    // No cycle starts a job without pods, or without its queue.
    if waiting_tasks(cluster, job).next().is_none() || !cluster.queues[own.queue].present {
        return Vec::new();
    }
    // The priority of a pod without a PodGroup of its own cannot be changed.
    let raise = || raise_priority((engine, state.stop()), job, &own.key);
    let raised = (!own.bare).then(raise).flatten();
    let name = name_of_job(cluster, job).filter(|_| is_not_by_time(explanation));
    let together = name.and_then(|key| together_at_once((engine, state), (job, &key), explanation));
    raised.into_iter().chain(together).collect()
}
