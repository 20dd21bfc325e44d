//! Conditions and nominations of the pods that wait. Specification: core.md 7.4, 7.6 step 5,
//! actions.md 2.11, 10.2.

use std::cell::OnceCell;
use std::sync::Arc;

use vc_framework::{
    Effect, EvictionHold, Nomination, Sentences, Session, SessionState, WaitTexts,
    begins_with_text, write_task_message,
};
use vc_model::{Gates, Job, JobId, PodCondition, Task, TaskId, TaskStatus};

use super::JobWaitTexts;
use crate::wait_cause::job_sentence;

/// Returns the number of the job's tasks in a status of [`REPORTED`].
pub(super) fn n_waiting(row: &Job) -> usize {
    REPORTED.iter().map(|&status| row.counts.of(status) as usize).sum()
}

/// Writes the conditions and nominations that changed for the tasks of a job. If `is_due`, our own
/// sentences may be renewed although Volcano's text is unchanged (A48).
pub(super) fn record(
    session: &mut Session<'_>,
    job: JobId,
    (texts, sentences): (&JobWaitTexts, &mut Sentences),
    is_due: bool,
) {
    if n_waiting(&session.jobs[job]) == 0 {
        return;
    }
    let whole = OnceCell::new();
    let hold = session.eviction_holds.of(session, job).cloned();
    let mut last = None;
    // Holds the text of one task after the other, so that it is allocated once.
    let mut text = String::new();
    for task in session.jobs[job].tasks.clone() {
        let row = &session.tasks[task];
        if row.status == TaskStatus::Binding {
            clear_other_nomination(session, task);
        } else if REPORTED.contains(&row.status) && row.gates == Gates::None {
            text.clear();
            let reason = write_task_message(session.view(), &session.records, task, &mut text);
            if text.is_empty() {
                text.push_str(whole.get_or_init(|| text_of_job(session, job, texts)));
            }
            let nomination = nomination(session, hold.as_ref(), row);
            // C-50: a refused bind has its own sentence, which has no amounts.
            let is_refused = row.pause.is_some();
            let is_due = is_due && !is_refused;
            if is_due || nomination != Nomination::Keep || !stands(row, reason, &text) {
                if !is_refused {
                    sentences.append(session, job, task, &mut text);
                }
                report_condition(session, task, (reason, &text), nomination, &mut last);
            }
        }
    }
}

/// Returns the text for a pod without a record of its own.
fn text_of_job(session: &SessionState<'_>, job: JobId, texts: &JobWaitTexts) -> String {
    let texts = texts.get_or_init(|| WaitTexts::of(session.view(), &session.records, job));
    match job_sentence(session, job) {
        Some(sentence) => format!("{}. {sentence}", texts.why.trim_end_matches('.')),
        None => texts.why.clone(),
    }
}

/// Statuses in which a pod gets a condition. A pod in status Binding only loses a nomination to
/// another node.
const REPORTED: [TaskStatus; 4] =
    [TaskStatus::Pending, TaskStatus::Allocated, TaskStatus::Pipelined, TaskStatus::Binding];

/// True if the pod's condition has this reason and this text of Volcano.
fn stands(row: &Task, reason: &str, volcano: &str) -> bool {
    row.condition.as_ref().is_some_and(|condition| {
        &*condition.status == "False"
            && &*condition.reason == reason
            && begins_with_text(&condition.message, volcano)
    })
}

/// Writes the condition of a pod and its nomination, if one of them changed. `last` is the condition
/// that was written before: pods of a gang mostly have equal ones, and share it in memory.
pub(super) fn report_condition(
    session: &mut Session<'_>,
    task: TaskId,
    (reason, message): (&str, &str),
    nomination: Nomination,
    last: &mut Option<Arc<PodCondition>>,
) {
    let row = &session.tasks[task];
    let is_kept = nomination == Nomination::Keep;
    if is_kept && row.condition.as_ref().is_some_and(|old| is_equal(old, reason, message)) {
        return;
    }
    let condition = match last.take() {
        Some(last) if is_equal(&last, reason, message) => last,
        last => new_condition(reason, message, last.as_deref()),
    };
    *last = Some(condition.clone());
    session.outcome.out.effects.push(Effect::PodCondition {
        pod: row.key.clone(),
        uid: row.uid.clone(),
        condition: condition.clone(),
        nomination: nomination.clone(),
    });
    let row = &mut session.cluster_mut().tasks[task];
    row.condition = Some(condition);
    match nomination {
        Nomination::Keep => {}
        Nomination::Set(node) => row.nominated_node = Some(node),
        Nomination::Clear => row.nominated_node = None,
    }
}

fn is_equal(condition: &PodCondition, reason: &str, message: &str) -> bool {
    &*condition.status == "False" && &*condition.reason == reason && &*condition.message == message
}

/// Returns a condition with status `False`. It shares the texts in memory that `last` has too.
fn new_condition(reason: &str, message: &str, last: Option<&PodCondition>) -> Arc<PodCondition> {
    let shared = |text: &str, of_last: Option<&Arc<str>>| {
        of_last.filter(|of_last| &***of_last == text).cloned().unwrap_or_else(|| text.into())
    };
    Arc::new(PodCondition {
        status: shared("False", last.map(|last| &last.status)),
        reason: shared(reason, last.map(|last| &last.reason)),
        message: message.into(),
    })
}

/// Returns the change of a pod's nomination. The nominated node is the one that the eviction hold
/// of its job plans, as long as hold and node exist (A15, C-27).
fn nomination(session: &SessionState<'_>, hold: Option<&EvictionHold>, row: &Task) -> Nomination {
    let is_known =
        |name: &&Arc<str>| session.node(name).is_some_and(|node| session.nodes[node].present);
    let planned = hold.and_then(|hold| hold.planned.get(&row.uid)).filter(is_known);
    match planned {
        _ if planned == row.nominated_node.as_ref() => Nomination::Keep,
        Some(node) => Nomination::Set(node.clone()),
        None => Nomination::Clear,
    }
}

/// Clears the nomination of a pod that is bound to another node.
fn clear_other_nomination(session: &mut Session<'_>, task: TaskId) {
    let row = &session.tasks[task];
    let Some(nominated) = &row.nominated_node else { return };
    if row.node.is_some_and(|node| session.nodes[node].name == *nominated) {
        return;
    }
    let effect = Effect::ClearNomination { pod: row.key.clone(), uid: row.uid.clone() };
    session.outcome.out.effects.push(effect);
    session.cluster_mut().tasks[task].nominated_node = None;
}
