//! Conditions and events of PodGroups whose queue does not exist. Such PodGroups are not part of
//! the session. Their pods get conditions in `outside.rs`. Specification: core.md 4.6, C-21;
//! actions.md 3.2.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_framework::{Session, SessionState};
use vc_model::{JobId, PodGroupCondition, PodGroupStatus};

use crate::engine::EngineMemory;

/// Writes one condition and one Warning event per PodGroup when its queue is found missing.
pub(super) fn record(session: &mut Session<'_>, memory: &mut EngineMemory) {
    let lost = |&job: &JobId| {
        let row = &session.jobs[job];
        row.pod_group.is_some() && !session.queues[row.queue].present
    };
    let outside = session.info().active_jobs.outside();
    let jobs: Vec<JobId> = outside.iter().copied().filter(lost).collect();
    let uid = |&job: &JobId| Some(session.jobs[job].pod_group.as_ref()?.uid.clone());
    let uids = jobs.iter().filter_map(uid).collect();
    let reported = std::mem::replace(&mut memory.without_queue, uids);
    for job in jobs {
        report_missing_queue(session, &reported, job);
    }
}

fn report_missing_queue(session: &mut Session<'_>, reported: &BTreeSet<Arc<str>>, job: JobId) {
    let row = &session.jobs[job];
    let Some(group) = &row.pod_group else { return };
    let queue = &session.queues[row.queue].name;
    let text: Arc<str> = format!("queue {queue} does not exist").into();
    let (begins, condition) = (!reported.contains(&group.uid), condition(session, &text));
    if begins {
        tracing::error!("Failed to find Queue <{queue}> for Job <{}>", row.key);
    }
    let is_known = group.status.conditions.iter().any(|known| known.same_content(&condition));
    if group.status.is_phase_empty || !is_known {
        let status = PodGroupStatus {
            is_phase_empty: false,
            conditions: super::merged(&group.status.conditions, [condition]),
            ..group.status.clone()
        };
        super::put_status(session, job, status);
    }
    if begins {
        super::event(session, job, true, "Unschedulable", text);
    }
}

fn condition(session: &SessionState<'_>, message: &Arc<str>) -> PodGroupCondition {
    let message = message.clone();
    PodGroupCondition { message, ..super::new_condition(session, "NotEnoughResources") }
}

/// True if the condition was written by this module.
pub(super) fn is_said_by(condition: &PodGroupCondition) -> bool {
    condition.message.starts_with("queue ") && condition.message.ends_with(" does not exist")
}
