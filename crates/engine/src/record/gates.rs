//! Which scheduling gates keep members of a PodGroup from being placed. A group that waits says so in
//! the text of its job; one that is ready without them in an event. Specification: core.md 7.8 (C-43).

use std::sync::Arc;

use vc_framework::{Session, gated_members};
use vc_model::JobId;

use crate::throttle::{Throttle, Told};

/// The event of a group that is ready.
pub(super) fn record(session: &mut Session<'_>, throttle: &mut Throttle, job: JobId) {
    let row = &session.jobs[job];
    let Some(group) = row.pod_group.as_ref().filter(|_| !row.bare && row.is_ready()) else {
        return;
    };
    if !session.hooks().job_ready(session.ask(), job) {
        return;
    }
    let Some(gated) = gated_members(session.ask(), row) else { return };
    let message: Arc<str> = gated.into();
    if throttle.admits(&group.uid, Told::Gated, &message, session.facts().now_micros) {
        super::event(session, job, false, "SchedulingGated", message);
    }
}
