//! Jobs and pods that the timeline alone still knows. Specification: answers.md 2 (ANS-5, `Gone`),
//! 8 (ANS-46).

use std::collections::BTreeMap;

use vc_model::{Cluster, GroupController, ObjectKey, TaskId};

use crate::job_spans::JobSpan;
use crate::pod_spans::PodSpan;
use crate::subject::{
    MOST_NAMES, NameFit, NameSource, Subject, SubjectError, SubjectQuery, find_fitting, unknown,
};
use crate::timeline::{EvictionEntry, Timeline};

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

/// What a name stands for: a job or pod of the cluster, or one that only the timeline still knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundSubject<'a> {
    /// The cluster has it.
    Present(Subject),
    /// It is gone.
    Gone(GoneSubject<'a>),
}

impl Timeline {
    /// Finds the job or pod that a user names, in the cluster or among those that are gone. What has
    /// the name itself, and be it gone, comes before what only may be meant by it.
    ///
    /// # Errors
    /// Nothing has the name, or several jobs or pods do.
    pub fn find(
        &self,
        cluster: &Cluster,
        query: SubjectQuery<'_>,
    ) -> Result<FoundSubject<'_>, SubjectError> {
        for fit in NameFit::ALL {
            let found = find_fitting(cluster, None, query, fit)?;
            if let Some(subject) = found.filter(|&subject| !is_over(cluster, subject)) {
                return Ok(FoundSubject::Present(subject));
            }
            if let Some(gone) = self.find_gone_fitting(query, fit)? {
                return Ok(FoundSubject::Gone(gone));
            }
            if let Some(subject) = found {
                return Ok(FoundSubject::Present(subject));
            }
        }
        Err(unknown(cluster, query))
    }

    /// Finds what became of a job or pod that the cluster does not know, by the rules of
    /// [`crate::find_subject`]. Returns `None` if nothing is remembered of it.
    ///
    /// # Errors
    /// Several PodGroups that are gone belonged to controllers of the name.
    pub fn find_gone(
        &self,
        query: SubjectQuery<'_>,
    ) -> Result<Option<GoneSubject<'_>>, SubjectError> {
        for fit in NameFit::ALL {
            if let Some(gone) = self.find_gone_fitting(query, fit)? {
                return Ok(Some(gone));
            }
        }
        Ok(None)
    }

    /// Finds what became of a job or pod that agrees with the name in this way.
    fn find_gone_fitting(
        &self,
        query: SubjectQuery<'_>,
        fit: NameFit,
    ) -> Result<Option<GoneSubject<'_>>, SubjectError> {
        let key = query.key();
        for source in query.kind.sources(fit) {
            let found = match source {
                NameSource::Group => {
                    let span = self.ended_groups().rev().find(|span| span.key == key);
                    span.map(GoneSubject::Job)
                }
                NameSource::Owner => self.gone_job_of_controller(query, fit)?.map(GoneSubject::Job),
                NameSource::Pod => self.gone_pod(&key),
                // Of pods that are gone no controllers are remembered.
                NameSource::PodController => None,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the PodGroup of the controller that the user names, as it was when it ended.
    fn gone_job_of_controller(
        &self,
        query: SubjectQuery<'_>,
        fit: NameFit,
    ) -> Result<Option<&JobSpan>, SubjectError> {
        let spans = self.ended_groups().filter(|span| *span.key.namespace == *query.namespace);
        let owned: Vec<(&JobSpan, GroupController<'_>)> =
            spans.filter_map(|span| Some((span, span.controller()?))).collect();
        let chosen = query.choose_owned(&owned, fit).into_iter();
        let last: BTreeMap<&ObjectKey, &JobSpan> = chosen.map(|span| (&span.key, span)).collect();
        if 1 < last.len() {
            let names = last.keys().map(|key| key.to_string());
            return Err(SubjectError::Several(names.take(MOST_NAMES).collect()));
        }
        Ok(last.into_values().next())
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

/// True for a job without a PodGroup, all of whose pods have ended.
fn is_over(cluster: &Cluster, subject: Subject) -> bool {
    let Some(job) = subject.job.filter(|_| subject.pod.is_none()) else { return false };
    let row = &cluster.jobs[job];
    let has_ended = |task: &TaskId| cluster.tasks[*task].status.is_terminated();
    row.pod_group.is_none() && row.tasks.iter().all(has_ended)
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
