//! PodGroups whose queue does not exist. They are not part of the session; all they get is told.
//! Specification: core.md 4.6, C-21; actions.md 3.2.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_framework::{Sentences, Session};
use vc_model::{JobId, PodGroupCondition, PodGroupStatus};

use crate::engine::Memory;

/// One condition and one Warning event when this state begins.
pub(super) fn record(session: &mut Session<'_>, memory: &mut Memory) {
    let lost = |&job: &JobId| {
        let row = &session.jobs[job];
        row.pod_group.is_some() && !session.queues[row.queue].present
    };
    let outside = session.facts().roster.outside();
    let jobs: Vec<JobId> = outside.iter().copied().filter(lost).collect();
    let uid = |&job: &JobId| Some(session.jobs[job].pod_group.as_ref()?.uid.clone());
    let uids = jobs.iter().filter_map(uid).collect();
    let told = std::mem::replace(&mut memory.without_queue, uids);
    for job in jobs {
        tell(session, &told, job);
    }
}

fn tell(session: &mut Session<'_>, told: &BTreeSet<Arc<str>>, job: JobId) {
    let row = &session.jobs[job];
    let Some(group) = &row.pod_group else { return };
    let queue = &session.queues[row.queue].name;
    let text: Arc<str> = format!("queue {queue} does not exist").into();
    let (begins, condition) = (!told.contains(&group.uid), condition(session, &text));
    if begins {
        tracing::error!("Failed to find Queue <{queue}> for Job <{}>", row.key);
    }
    if !group.status.conditions.iter().any(|known| known.same_content(&condition)) {
        let status = PodGroupStatus {
            conditions: super::merged(&group.status.conditions, [condition]),
            ..group.status.clone()
        };
        super::put_status(session, job, status);
    }
    if session.jobs[job].bare {
        tell_pod(session, job, &text);
    } else if begins {
        super::event(session, job, true, "Unschedulable", text);
    }
}

/// A bare pod has no PodGroup to look at; its own condition says it.
fn tell_pod(session: &mut Session<'_>, job: JobId, text: &str) {
    session.records.job_fit.insert(job, text.into());
    super::pods::record(session, job, (&super::JobText::new(), &mut Sentences::default()), false);
}

fn condition(session: &Session<'_>, message: &Arc<str>) -> PodGroupCondition {
    PodGroupCondition {
        kind: "Unschedulable".into(),
        status: "True".into(),
        transition_id: session.facts().session_id.clone(),
        last_transition_time: session.facts().now_text.clone(),
        reason: "NotEnoughResources".into(),
        message: message.clone(),
    }
}
