//! Events of waiting PodGroups whose role minimums sum to more than the gang's minimum. Such role
//! minimums are not enforced (core.md 3.7). Specification: actions.md C19.

use std::sync::Arc;

use vc_framework::{About, Effect, Session};
use vc_model::PodGroupPhase;

use crate::report_throttle::{ReportKind, ReportThrottle};

const REASON: &str = "RoleMinimumsNotEnforced";

pub(super) fn record(session: &mut Session<'_>, report_throttle: &mut ReportThrottle) {
    let mut reported = Vec::new();
    for &job in &session.info().to_close {
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
        if report_throttle.admits(
            &group.uid,
            ReportKind::Roles,
            &message,
            session.info().now_micros,
        ) {
            let about = About::PodGroup { key: row.key.clone(), uid: group.uid.clone() };
            reported.push(Effect::Event { about, warning: true, reason: REASON, message });
        }
    }
    session.outcome.out.effects.append(&mut reported);
}
