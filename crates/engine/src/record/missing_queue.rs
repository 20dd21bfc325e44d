//! PodGroups whose queue does not exist. They are not part of the session; all they get is told.
//! Specification: core.md 4.6, C-21; actions.md 3.2.

use vc_framework::{Session, rfc3339};
use vc_model::{JobId, PodGroupCondition, PodGroupStatus};

/// One condition and one Warning event when this state begins.
pub(super) fn record(session: &mut Session<'_>) {
    let lost = |&job: &JobId| {
        let row = &session.jobs[job];
        row.pod_group.is_some() && !session.queues[row.queue].present
    };
    let jobs: Vec<JobId> = session.jobs_by_key().filter(lost).collect();
    for job in jobs {
        tell(session, job);
    }
}

fn tell(session: &mut Session<'_>, job: JobId) {
    let row = &session.jobs[job];
    let Some(group) = &row.pod_group else { return };
    let queue = &session.queues[row.queue].name;
    let text = format!("queue {queue} does not exist");
    let condition = condition(session, &text);
    if group.status.conditions.iter().any(|known| known.same_content(&condition)) {
        return;
    }
    tracing::error!("Failed to find Queue <{queue}> for Job <{}>", row.key);
    let status = PodGroupStatus {
        conditions: super::merged(&group.status.conditions, [condition]),
        ..group.status.clone()
    };
    super::put_status(session, job, status, true);
    super::event(session, job, true, "Unschedulable", text.into());
}

fn condition(session: &Session<'_>, message: &str) -> PodGroupCondition {
    PodGroupCondition {
        kind: "Unschedulable".into(),
        status: "True".into(),
        transition_id: session.facts().session_id.as_str().into(),
        last_transition_time: rfc3339(session.facts().now_micros).into(),
        reason: "NotEnoughResources".into(),
        message: message.into(),
    }
}
