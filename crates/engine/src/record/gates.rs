//! Events about scheduling gates that keep members of a PodGroup from being placed. A waiting group
//! names them in the text of its job; a ready group gets an event. Specification: core.md 7.8
//! (C-43).

use std::sync::Arc;

use vc_framework::{Session, gated_members};
use vc_model::JobId;

use crate::report_throttle::{ReportKind, ReportThrottle};

/// Sends the event about gated members, if the group is ready.
pub(super) fn record(session: &mut Session<'_>, report_throttle: &mut ReportThrottle, job: JobId) {
    let row = &session.jobs[job];
    let Some(group) = row.pod_group.as_ref().filter(|_| !row.bare && row.is_ready()) else {
        return;
    };
    if !session.plugins().job_ready(session.view(), job) {
        return;
    }
    let Some(gated) = gated_members(session.view(), row) else { return };
    let message: Arc<str> = gated.into();
    if report_throttle.admits(&group.uid, ReportKind::Gated, &message, session.info().now_micros) {
        super::event(session, job, false, "SchedulingGated", message);
    }
}
