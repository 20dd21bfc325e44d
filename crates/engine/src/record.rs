//! What a session leaves behind at its close: conditions and phases of PodGroups, conditions of pods, queue
//! status. Specification: core.md 7.4-7.7, actions.md 10.1-10.3.

mod phase;
mod pods;

use std::sync::Arc;

use vc_framework::{About, Effect, Session, job_text, rfc3339};
use vc_model::{
    JobId, PodGroupCondition, PodGroupPhase, PodGroupStatus, QueueState, TaskStatus,
};

use crate::engine::Memory;
use crate::queue_status;

/// Records everything; the operations of the session are still in place.
pub(crate) fn record(session: &mut Session<'_>, memory: &mut Memory) {
    name_closed_queues(session);
    session.close_plugins();
    let conditions = std::mem::take(&mut session.out.conditions);
    let mut by_job: std::collections::BTreeMap<JobId, Vec<PodGroupCondition>> = Default::default();
    for (job, condition) in conditions {
        by_job.entry(job).or_default().push(condition);
    }
    for job in session.facts().jobs.clone() {
        let fresh = by_job.remove(&job).unwrap_or_default();
        let written = write_status(session, job, fresh);
        announce(session, memory, job, written);
        pods::record(session, job);
    }
    record_missing_queues(session);
    queue_status::record(session, memory);
    memory.throttle.sweep(session);
}

/// A queue that is not open is named to the jobs that wait for it (C-33).
fn name_closed_queues(session: &mut Session<'_>) {
    for job in session.facts().jobs.clone() {
        let row = &session.jobs[job];
        let queue = &session.queues[row.queue];
        if queue.state == QueueState::Open || row.is_ready() {
            continue;
        }
        let text = format!("queue {} is {}", queue.name, queue.state.as_str());
        session.records.job_fit.insert(job, text);
    }
}

/// Phase, counts and conditions; a PUT if anything but times and transition ids changed (7.6). Whether.
fn write_status(session: &mut Session<'_>, job: JobId, fresh: Vec<PodGroupCondition>) -> bool {
    let before = session.phase_before(job);
    let row = &session.jobs[job];
    let Some(group) = &row.pod_group else { return false };
    let mut conditions = group.status.conditions.clone();
    fresh.into_iter().for_each(|condition| replace(&mut conditions, condition));
    let phase = phase::phase(row, &conditions, &session.facts().session_id);
    let count = |status| i32::try_from(row.counts.of(status)).unwrap_or(i32::MAX);
    let status = PodGroupStatus {
        phase,
        conditions,
        running: count(TaskStatus::Running),
        succeeded: count(TaskStatus::Succeeded),
        failed: count(TaskStatus::Failed),
    };
    let old = PodGroupStatus { phase: before, ..group.status.clone() };
    let changed = !phase::same(&old, &status);
    let effect = Effect::PodGroupStatus {
        pod_group: row.key.clone(),
        uid: group.uid.clone(),
        status: status.clone(),
    };
    let group = session.cluster_mut().jobs[job].pod_group.as_mut();
    if let Some(group) = group {
        group.status = if changed { status } else { old };
        group.status_in_flight |= changed;
    }
    if changed {
        session.out.effects.push(effect);
    }
    changed
}

/// A condition replaces the one of its type, or is appended.
fn replace(conditions: &mut Vec<PodGroupCondition>, condition: PodGroupCondition) {
    match conditions.iter_mut().find(|other| other.kind == condition.kind) {
        Some(other) => *other = condition,
        None => conditions.push(condition),
    }
}

/// The event of step 5: why the group waits, or that it is ready (C-30).
fn announce(session: &mut Session<'_>, memory: &mut Memory, job: JobId, written: bool) {
    let row = &session.jobs[job];
    let waits = matches!(
        row.phase(),
        PodGroupPhase::Unknown | PodGroupPhase::Pending | PodGroupPhase::Inqueue
    );
    if !waits {
        memory.throttle.forget(&row.key);
        if written {
            event(session, job, false, "Scheduled", "pod group is ready".into());
        }
        return;
    }
    if session.hooks().job_ready(session.ask(), job) && row.is_ready() {
        return;
    }
    let text = format!(
        "{}/{} tasks in gang unschedulable: {}",
        row.counts.of(TaskStatus::Pending),
        row.tasks.len(),
        job_text(session.ask(), &session.records, job)
    );
    if memory.throttle.admits(&row.key, &text, session.facts().now_micros) {
        event(session, job, true, "Unschedulable", text.into());
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
    let Some(group) = &row.pod_group else { return };
    let about = About::PodGroup { key: row.key.clone(), uid: group.uid.clone() };
    session.out.effects.push(Effect::Event { about, warning, reason, message });
}

/// A PodGroup whose queue does not exist is told so, once (C-21). Such jobs are not part of the session.
fn record_missing_queues(session: &mut Session<'_>) {
    let missing = |&job: &JobId| {
        let row = &session.jobs[job];
        row.pod_group.is_some() && !session.queues[row.queue].present
    };
    let jobs: Vec<JobId> = session.jobs_by_key().filter(missing).collect();
    for job in jobs {
        let queue = &session.queues[session.jobs[job].queue].name;
        let text = format!("queue {queue} does not exist");
        let condition = PodGroupCondition {
            kind: "Unschedulable".into(),
            status: "True".into(),
            transition_id: session.facts().session_id.as_str().into(),
            last_transition_time: rfc3339(session.facts().now_micros).into(),
            reason: "NotEnoughResources".into(),
            message: text.as_str().into(),
        };
        if write_status(session, job, vec![condition]) {
            event(session, job, true, "Unschedulable", text.into());
        }
    }
}
