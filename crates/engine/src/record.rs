//! Results that a session writes at its close: conditions and phases of PodGroups, conditions of
//! pods, and queue status. Specification: core.md 7.4-7.7, actions.md 10.1-10.3.

mod fresh;
mod gates;
pub(crate) mod held;
mod missing_queue;
mod outside;
mod phase;
mod pods;
mod roles;

use std::cell::OnceCell;
use std::sync::Arc;

use vc_framework::{
    About, Effect, Sentences, Session, SessionState, WaitCause, WaitTexts, admission,
};
use vc_model::{
    JobId, PodGroup, PodGroupCondition, PodGroupPhase, PodGroupStatus, QueueState, TaskStatus,
};

use crate::engine::EngineMemory;
use crate::queue_status;
use crate::report_throttle::{ReportKind, ReportThrottle};
use crate::shard;
use crate::skipped;
use fresh::{JobConditions, NewConditions};

/// Type of the condition that says why a PodGroup waits.
const UNSCHEDULABLE: &str = "Unschedulable";

/// Most effects of a job beside the conditions of its pods: its status and events.
const EFFECTS_PER_JOB: usize = 3;

/// The texts of why a job waits, computed at most once per cycle.
type JobWaitTexts = OnceCell<WaitTexts>;

/// Records all results. The operations of the session are still in place.
pub(crate) fn record(session: &mut Session<'_>, memory: &mut EngineMemory) {
    session.list_to_close();
    let mut skipped = skipped::DueReports::of(session, &mut memory.report_throttle);
    if !skipped.changed.is_empty() {
        skipped.changed.iter().for_each(|&job| session.report_again(job));
        session.list_to_close();
    }
    name_closed_queues(session);
    session.close_listed();
    let mut conditions = NewConditions::take(&mut session.outcome.out);
    silence_repeated_refusals(session, &mut memory.report_throttle);
    skipped.record(session);
    roles::record(session, &mut memory.report_throttle);
    let mut texts = std::mem::take(&mut session.outcome.out.job_texts);
    let mut sentences = Sentences::default();
    let n_waiting = session.info().to_close.iter().map(|&job| pods::n_waiting(&session.jobs[job]));
    let n_most = n_waiting.sum::<usize>() + EFFECTS_PER_JOB * session.info().to_close.len();
    session.outcome.out.effects.reserve(n_most);
    for job in session.info().to_close.clone() {
        let texts_of_job = texts.remove(&job).map_or_else(JobWaitTexts::new, JobWaitTexts::from);
        debug_assert!(is_right(session, job, &texts_of_job), "a text of another state");
        let written = write_status(session, job, conditions.of(job));
        announce(session, &mut memory.report_throttle, job, written, &texts_of_job);
        gates::record(session, &mut memory.report_throttle, job);
        let is_due = skipped.changed.contains(&job) | amounts_are_due(session, job, memory);
        pods::record(session, job, (&texts_of_job, &mut sentences), is_due);
        session.note_reported(job, |group| {
            let due_micros = |reported| memory.report_throttle.due_micros(&group.uid, reported);
            REPEATED.into_iter().filter_map(due_micros).min()
        });
    }
    missing_queue::record(session, memory);
    outside::record(session, memory);
    held::record(session, memory);
    queue_status::record(session, memory);
    shard::record(session, memory);
    memory.report_throttle.sweep(session.info().now_micros);
}

/// Kinds of reports that are repeated although nothing has changed.
const REPEATED: [ReportKind; 5] = [
    ReportKind::Waits,
    ReportKind::NotAdmitted,
    ReportKind::Skipped,
    ReportKind::Amounts,
    ReportKind::Gated,
];

/// True if amounts in the messages of the job's pods may be updated. They are updated not more
/// often than events are repeated.
fn amounts_are_due(session: &SessionState<'_>, job: JobId, memory: &mut EngineMemory) -> bool {
    let row = &session.jobs[job];
    let Some(group) = row.pod_group.as_ref().filter(|_| 0 < pods::n_waiting(row)) else {
        return false;
    };
    let nothing: Arc<str> = Arc::default();
    memory.report_throttle.admits(
        &group.uid,
        ReportKind::Amounts,
        &nothing,
        session.info().now_micros,
    )
}

fn is_right(session: &SessionState<'_>, job: JobId, texts: &JobWaitTexts) -> bool {
    let now = || WaitTexts::of(session.view(), &session.records, job);
    texts.get().is_none_or(|texts| *texts == now())
}

/// Names a queue that is not open to the jobs that wait for it (C-33).
fn name_closed_queues(session: &mut Session<'_>) {
    for job in session.info().to_close.clone() {
        let row = &session.jobs[job];
        let queue = &session.queues[row.queue];
        if queue.state == QueueState::Open || row.is_ready() {
            continue;
        }
        let text = format!("queue {} is {}", queue.name, queue.state.as_str());
        session.note_job_fit(job, WaitCause::QueueNotOpen, text);
    }
}

/// Drops repeated events about refused PodGroups. Enqueue states the reason in every cycle; only
/// new or due texts are sent (A44).
fn silence_repeated_refusals(session: &mut Session<'_>, report_throttle: &mut ReportThrottle) {
    if !session.outcome.out.has_refusals {
        return;
    }
    let now_micros = session.info().now_micros;
    let mut effects = std::mem::take(&mut session.outcome.out.effects);
    effects.retain_mut(|effect| match effect {
        Effect::Event {
            about: About::PodGroup { key, uid },
            reason: "Unschedulable",
            message,
            warning,
        } => {
            let is_due = report_throttle.admits(uid, ReportKind::NotAdmitted, message, now_micros);
            let job = session.job(key).filter(|_| is_due && !*warning);
            if let Some(amounts) = job.and_then(|job| admission(session, job)) {
                *message = format!("{message}. {amounts}").into();
            }
            is_due
        }
        _ => true,
    });
    session.outcome.out.effects = effects;
}

/// Updates phase, counts and conditions of a PodGroup. Returns true if anything but times and
/// transition ids changed, so that the status is written (core.md 7.6).
fn write_status(session: &mut Session<'_>, job: JobId, mut fresh: JobConditions) -> bool {
    let before = session.phase_before(job);
    fresh.written.extend(schedulable_again(session, job, &fresh));
    let row = &session.jobs[job];
    let Some(PodGroup { status: old, .. }) = &row.pod_group else { return false };
    let count = |status| i32::try_from(row.counts.of(status)).unwrap_or(i32::MAX);
    let counts = [TaskStatus::Running, TaskStatus::Succeeded, TaskStatus::Failed].map(count);
    let known = |condition| old.conditions.iter().any(|other| other.same_content(condition));
    let phase = phase::phase(row, fresh.say(UNSCHEDULABLE));
    if phase == before
        && !old.is_phase_empty
        && counts == [old.running, old.succeeded, old.failed]
        && fresh.written.iter().all(known)
    {
        session.restore_phase(job);
        return false;
    }
    let [running, succeeded, failed] = counts;
    let fresh = fresh.complete(session, &old.conditions);
    let conditions = merged(&old.conditions, fresh);
    let status =
        PodGroupStatus { phase, is_phase_empty: false, conditions, running, succeeded, failed };
    put_status(session, job, status);
    true
}

/// Returns the condition that revokes `Unschedulable` = True, if the group is ready or its missing
/// queue now exists (C-41). Returns `None` if there is nothing to revoke, or if the condition still
/// holds.
fn schedulable_again(
    session: &SessionState<'_>,
    job: JobId,
    fresh: &JobConditions,
) -> Option<PodGroupCondition> {
    let row = &session.jobs[job];
    let says = |old: &&PodGroupCondition| &*old.kind == UNSCHEDULABLE && &*old.status == "True";
    let old = row.pod_group.as_ref()?.status.conditions.iter().find(says)?;
    if fresh.say(UNSCHEDULABLE) {
        return None;
    }
    let is_ready = row.is_ready() && session.plugins().job_ready(session.view(), job);
    let (reason, message) = match (is_ready, missing_queue::is_said_by(old)) {
        (true, _) => ("Scheduled", "pod group is ready".into()),
        (false, true) => {
            ("QueueExists", format!("queue {} exists", session.queues[row.queue].name).into())
        }
        (false, false) => return None,
    };
    let status = "False".into();
    Some(PodGroupCondition { status, message, ..new_condition(session, reason) })
}

/// Returns a condition of this session that the group is unschedulable. The caller sets the
/// message.
fn new_condition(session: &SessionState<'_>, reason: &str) -> PodGroupCondition {
    PodGroupCondition {
        kind: UNSCHEDULABLE.into(),
        status: "True".into(),
        transition_id: session.info().session_id.clone(),
        last_transition_time: session.info().now_text.clone(),
        reason: reason.into(),
        message: Arc::default(),
    }
}

/// Returns the conditions with fresh ones merged in: each replaces the one of its type, or is
/// appended.
fn merged(
    old: &[PodGroupCondition],
    fresh: impl IntoIterator<Item = PodGroupCondition>,
) -> Arc<[PodGroupCondition]> {
    let mut conditions = old.to_vec();
    for condition in fresh {
        match conditions.iter_mut().find(|other| other.kind == condition.kind) {
            Some(other) => *other = condition,
            None => conditions.push(condition),
        }
    }
    conditions.into()
}

/// Sets the status of the PodGroup and sends it. The PodGroup of a bare pod is never written.
fn put_status(session: &mut Session<'_>, job: JobId, status: PodGroupStatus) {
    let is_other_phase = session.phase_before(job) != status.phase;
    if is_other_phase {
        session.leaves_trace();
    }
    session.cluster_mut().touch_job(job);
    let row = &mut session.cluster_mut().jobs[job];
    let Some(group) = &mut row.pod_group else { return };
    let phase_changed = is_other_phase || group.status.is_phase_empty;
    group.status = status.clone();
    if row.bare {
        return;
    }
    group.status_in_flight = true;
    let (pod_group, uid) = (row.key.clone(), group.uid.clone());
    session.outcome.out.effects.push(Effect::PodGroupStatus {
        pod_group,
        uid,
        status,
        phase_changed,
    });
}

/// Sends the event about the group: why it waits, or that it is ready (core.md 7.6 step 5, C-30).
fn announce(
    session: &mut Session<'_>,
    report_throttle: &mut ReportThrottle,
    job: JobId,
    written: bool,
    texts: &JobWaitTexts,
) {
    let row = &session.jobs[job];
    let Some(group) = row.pod_group.as_ref().filter(|_| !row.bare) else { return };
    match group.status.phase {
        PodGroupPhase::Unknown | PodGroupPhase::Pending | PodGroupPhase::Inqueue => {}
        PodGroupPhase::Running | PodGroupPhase::Completed => {
            report_throttle.forget(&group.uid);
            if written {
                event(session, job, false, "Scheduled", "pod group is ready".into());
            }
            return;
        }
    }
    if row.is_ready() && session.plugins().job_ready(session.view(), job) {
        return;
    }
    let texts = texts.get_or_init(|| WaitTexts::of(session.view(), &session.records, job));
    let message = texts.gang.as_str().into();
    if report_throttle.admits(&group.uid, ReportKind::Waits, &message, session.info().now_micros) {
        event(session, job, true, "Unschedulable", message);
    }
}

fn event(
    session: &mut Session<'_>,
    job: JobId,
    warning: bool,
    reason: &'static str,
    message: Arc<str>,
) {
    let row = &session.jobs[job];
    let Some(PodGroup { uid, .. }) = row.pod_group.as_ref().filter(|_| !row.bare) else { return };
    let about = About::PodGroup { key: row.key.clone(), uid: uid.clone() };
    session.outcome.out.effects.push(Effect::Event { about, warning, reason, message });
}
