//! Jobs and pods that the timeline alone still knows. Specification: answers.md 2 (ANS-5, `Gone`),
//! 8 (ANS-46).

use std::collections::BTreeMap;

use vc_model::{GroupController, ObjectKey};

use crate::pod_spans::PodSpan;
use crate::subject::{MOST_NAMES, SubjectError, SubjectKind, SubjectQuery};
use crate::timeline::{EvictionEntry, JobSpan, Timeline};

/// What became of a job or pod that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneSubject<'a> {
    /// The job, or the pod without a PodGroup, holds no node any more.
    Job(&'a JobSpan),
    /// The pod has ended or was deleted.
    Pod(&'a PodSpan),
    /// The pod was evicted.
    Evicted(&'a EvictionEntry),
}

impl Timeline {
    /// Finds what became of a job or pod that the cluster does not know, by the rules of
    /// [`crate::find_subject`]. Returns `None` if nothing is remembered of it.
    ///
    /// # Errors
    /// Several PodGroups that are gone belonged to controllers of the name.
    pub fn find_gone(
        &self,
        query: SubjectQuery<'_>,
    ) -> Result<Option<GoneSubject<'_>>, SubjectError> {
        let key = ObjectKey::new(query.namespace, query.name);
        if query.kind != SubjectKind::Pod
            && let Some(span) = self.gone_job(&key, query)?
        {
            return Ok(Some(GoneSubject::Job(span)));
        }
        match query.kind {
            SubjectKind::Group | SubjectKind::Controller(_) => Ok(None),
            SubjectKind::Any | SubjectKind::Pod => Ok(self.gone_pod(&key)),
        }
    }

    /// Returns the last time in which the PodGroup of this name held nodes, or the PodGroup of a
    /// controller. Where a kind of controllers is asked for, these come first.
    fn gone_job(
        &self,
        key: &ObjectKey,
        query: SubjectQuery<'_>,
    ) -> Result<Option<&JobSpan>, SubjectError> {
        let group = || self.ended_groups().rev().find(|span| span.key == *key);
        let is_first = matches!(query.kind, SubjectKind::Any | SubjectKind::Group);
        if let Some(span) = group().filter(|_| is_first) {
            return Ok(Some(span));
        }
        let owned = self.gone_jobs_of_controller(query);
        if 1 < owned.len() {
            let names = owned.keys().map(|key| key.to_string());
            return Err(SubjectError::Several(names.take(MOST_NAMES).collect()));
        }
        let owned = owned.into_values().next();
        Ok(owned.or_else(|| group().filter(|_| query.kind.means_group())))
    }

    /// Returns the last time of each PodGroup that controllers have owned which a user means.
    fn gone_jobs_of_controller(&self, query: SubjectQuery<'_>) -> BTreeMap<&ObjectKey, &JobSpan> {
        let spans = self.ended_groups().filter(|span| *span.key.namespace == *query.namespace);
        let owned: Vec<(&JobSpan, GroupController<'_>)> =
            spans.filter_map(|span| Some((span, span.controller()?))).collect();
        query.choose_owned(&owned).into_iter().map(|span| (&span.key, span)).collect()
    }

    fn ended_groups(&self) -> impl DoubleEndedIterator<Item = &JobSpan> {
        self.ended_jobs().filter(|span| !span.is_bare)
    }

    /// Returns what became of the last pod of this name.
    fn gone_pod(&self, pod: &ObjectKey) -> Option<GoneSubject<'_>> {
        let own = self.pod_span(pod);
        let job = self.ended_jobs().rev().find(|span| span.is_bare && span.key == *pod);
        // A pod without a PodGroup may have both: its own end is to the microsecond.
        let job = job.filter(|job| own.is_none_or(|own| own.end_micros < job.start_micros));
        let left = match (job, own) {
            (Some(span), _) => Some(LeftPod {
                begin_micros: span.start_micros,
                end_micros: span.end_micros.unwrap_or(span.start_micros),
                is_deleted: span.is_deleted,
                subject: GoneSubject::Job(span),
            }),
            (None, Some(span)) => Some(LeftPod {
                begin_micros: span.created_micros,
                end_micros: span.end_micros,
                is_deleted: span.is_deleted,
                subject: GoneSubject::Pod(span),
            }),
            (None, None) => None,
        };
        match (left, self.eviction_of(pod)) {
            (left, None) => left.map(|left| left.subject),
            (Some(left), Some(eviction)) if left.outlasts(eviction) => Some(left.subject),
            (_, Some(eviction)) => Some(GoneSubject::Evicted(eviction)),
        }
    }
}

/// A pod that has left its node.
struct LeftPod<'a> {
    begin_micros: i64,
    end_micros: i64,
    is_deleted: bool,
    subject: GoneSubject<'a>,
}

impl LeftPod<'_> {
    /// True if the last eviction of a pod of the name is not why this pod is gone: an earlier pod
    /// was evicted, or this one has ended by itself all the same.
    fn outlasts(&self, eviction: &EvictionEntry) -> bool {
        let has_ended = !self.is_deleted && eviction.at_micros <= self.end_micros;
        has_ended || eviction.at_micros < self.begin_micros
    }
}
