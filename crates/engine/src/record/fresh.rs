//! The conditions that plugins wrote in this session, by job. Nearly all of them repeat what the
//! PodGroup says already; those are kept without their texts. Specification: core.md 7.6.

use std::collections::BTreeMap;

use vc_framework::{Outbox, Session};
use vc_model::{JobId, PodGroupCondition};

/// Taken from the outbox after the plugins have closed.
pub(super) struct Fresh {
    written: BTreeMap<JobId, Vec<PodGroupCondition>>,
    /// By id: the type of a condition that stands as it is; of several the last one counts.
    confirmed: Vec<(JobId, &'static str)>,
}

/// Those of one job.
#[derive(Default)]
pub(super) struct Conditions {
    pub(super) written: Vec<PodGroupCondition>,
    confirmed: Option<&'static str>,
}

impl Fresh {
    pub(super) fn take(out: &mut Outbox) -> Self {
        let mut written: BTreeMap<JobId, Vec<PodGroupCondition>> = BTreeMap::new();
        for (job, condition) in std::mem::take(&mut out.conditions) {
            written.entry(job).or_default().push(condition);
        }
        let mut confirmed = std::mem::take(&mut out.confirmed);
        confirmed.sort_by_key(|(job, _)| *job);
        Self { written, confirmed }
    }

    pub(super) fn of(&mut self, job: JobId) -> Conditions {
        let written = match self.written.is_empty() {
            true => Vec::new(),
            false => self.written.remove(&job).unwrap_or_default(),
        };
        let behind = self.confirmed.partition_point(|(other, _)| *other <= job);
        let last = behind.checked_sub(1).map(|last| self.confirmed[last]);
        let confirmed = last.filter(|(other, _)| *other == job).map(|(_, kind)| kind);
        Conditions { written, confirmed }
    }
}

impl Conditions {
    /// A condition of this type, status True, was written in this session.
    pub(super) fn say(&self, kind: &str) -> bool {
        let says = |condition: &PodGroupCondition| {
            &*condition.kind == kind && &*condition.status == "True"
        };
        self.confirmed == Some(kind) || self.written.iter().any(says)
    }

    /// All of them with their texts, those that stand with the time and id of this session.
    pub(super) fn complete(
        self,
        session: &Session<'_>,
        old: &[PodGroupCondition],
    ) -> Vec<PodGroupCondition> {
        let stands = |kind: &str| old.iter().find(|condition| &*condition.kind == kind).cloned();
        let again = self.confirmed.and_then(stands).map(|condition| PodGroupCondition {
            transition_id: session.facts().session_id.clone(),
            last_transition_time: session.facts().now_text.clone(),
            ..condition
        });
        self.written.into_iter().chain(again).collect()
    }
}
