//! The conditions that plugins wrote in this session, by job. Nearly all of them repeat conditions
//! that the PodGroup already has; these are stored without their texts. Specification: core.md 7.6.

use std::collections::BTreeMap;

use vc_framework::{Outbox, SessionState};
use vc_model::{JobId, PodGroupCondition};

/// The conditions of this session, taken from the outbox after the plugins have closed.
pub(super) struct NewConditions {
    written: BTreeMap<JobId, Vec<PodGroupCondition>>,
    /// Types of conditions that are confirmed unchanged, sorted by job. Of several types of one job
    /// the last one counts.
    confirmed: Vec<(JobId, &'static str)>,
}

/// The conditions of one job.
#[derive(Default)]
pub(super) struct JobConditions {
    pub(super) written: Vec<PodGroupCondition>,
    confirmed: Option<&'static str>,
}

impl NewConditions {
    pub(super) fn take(out: &mut Outbox) -> Self {
        let mut written: BTreeMap<JobId, Vec<PodGroupCondition>> = BTreeMap::new();
        for (job, condition) in std::mem::take(&mut out.conditions) {
            written.entry(job).or_default().push(condition);
        }
        let mut confirmed = std::mem::take(&mut out.confirmed);
        confirmed.sort_by_key(|(job, _)| *job);
        Self { written, confirmed }
    }

    pub(super) fn of(&mut self, job: JobId) -> JobConditions {
        let written = match self.written.is_empty() {
            true => Vec::new(),
            false => self.written.remove(&job).unwrap_or_default(),
        };
        let behind = self.confirmed.partition_point(|(other, _)| *other <= job);
        let last = behind.checked_sub(1).map(|last| self.confirmed[last]);
        let confirmed = last.filter(|(other, _)| *other == job).map(|(_, kind)| kind);
        JobConditions { written, confirmed }
    }
}

impl JobConditions {
    /// True if a condition of this type with status True was written in this session.
    pub(super) fn say(&self, kind: &str) -> bool {
        let says = |condition: &PodGroupCondition| {
            &*condition.kind == kind && &*condition.status == "True"
        };
        self.confirmed == Some(kind) || self.written.iter().any(says)
    }

    /// Returns all conditions with their texts. Confirmed conditions get the time and id of this
    /// session.
    pub(super) fn complete(
        self,
        session: &SessionState<'_>,
        old: &[PodGroupCondition],
    ) -> Vec<PodGroupCondition> {
        let stands = |kind: &str| old.iter().find(|condition| &*condition.kind == kind).cloned();
        let again = self.confirmed.and_then(stands).map(|condition| PodGroupCondition {
            transition_id: session.info().session_id.clone(),
            last_transition_time: session.info().now_text.clone(),
            ..condition
        });
        self.written.into_iter().chain(again).collect()
    }
}
