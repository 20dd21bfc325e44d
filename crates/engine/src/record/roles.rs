//! Role minimums that add up to more than the gang's are not enforced (core.md 3.7); the PodGroup is
//! told so while it waits. Specification: actions.md C19.

use std::sync::Arc;

use vc_framework::{About, Effect, Session};
use vc_model::PodGroupPhase;

use crate::throttle::{Throttle, Told};

const REASON: &str = "RoleMinimumsNotEnforced";

pub(super) fn record(session: &mut Session<'_>, throttle: &mut Throttle) {
    let mut told = Vec::new();
    for &job in &session.facts().to_close {
        let row = &session.jobs[job];
        let waits =
            matches!(session.phase_before(job), PodGroupPhase::Pending | PodGroupPhase::Inqueue);
        let Some(group) = row.pod_group.as_ref().filter(|_| waits && !row.enforces_roles()) else {
            continue;
        };
        let (sum, minimum) = (row.task_min_available_total, row.min_available);
        let message: Arc<str> = format!(
            "minTaskMember sums to {sum}, above minMember {minimum}: role minimums are not enforced"
        )
        .into();
        if throttle.admits(&group.uid, Told::Roles, &message, session.facts().now_micros) {
            let about = About::PodGroup { key: row.key.clone(), uid: group.uid.clone() };
            told.push(Effect::Event { about, warning: true, reason: REASON, message });
        }
    }
    session.out.effects.append(&mut told);
}
