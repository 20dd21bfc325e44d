//! Answers about jobs and pods that the timeline alone still knows. Specification: answers.md 2
//! (`Gone`), 8 (ANS-46).

use vc_answers::{GoneSubject, JobSpan, PodSpan, Timeline, time_text};
use vc_model::ObjectKey;

use crate::convert::{Owner, OwnerOf};
use crate::explanation::{AsOfJson, ExplanationJson, SubjectJson};
use crate::timeline::{evicted_pod, evictions_about};

/// Returns the answer about a job or pod that is gone.
pub(crate) fn gone_explanation(
    found: GoneSubject<'_>,
    timeline: &Timeline,
    owner: OwnerOf<'_>,
    as_of: AsOfJson,
) -> ExplanationJson {
    match found {
        GoneSubject::Evicted(entry) => ExplanationJson::gone(evicted_pod(entry, owner), as_of),
        GoneSubject::Pod(span) => {
            ExplanationJson::without_numbers(pod_subject(&span.pod), pod_text(span), as_of)
        }
        GoneSubject::Job(span) => {
            let at_micros = span.end_micros.unwrap_or(span.start_micros);
            let text = end_text(span.is_deleted, at_micros);
            if span.is_bare {
                return ExplanationJson::without_numbers(pod_subject(&span.key), text, as_of);
            }
            let subject = job_subject(span, owner);
            ExplanationJson {
                evictions: evictions_about(timeline, &span.key, owner),
                ..ExplanationJson::without_numbers(subject, text, as_of)
            }
        }
    }
}

/// Returns `ended at 2026-11-23T10:31:00Z`, or that it was deleted then.
fn end_text(is_deleted: bool, at_micros: i64) -> String {
    let how = if is_deleted { "deleted" } else { "ended" };
    format!("{how} at {}", time_text(at_micros))
}

fn pod_text(span: &PodSpan) -> String {
    let text = end_text(span.is_deleted, span.end_micros);
    match &span.pod_group {
        Some(group) => format!("{text}, pod of PodGroup {group}"),
        None => text,
    }
}

fn pod_subject(pod: &ObjectKey) -> SubjectJson {
    SubjectJson {
        kind: "Pod".to_owned(),
        namespace: pod.namespace.to_string(),
        name: pod.name.to_string(),
        ..SubjectJson::default()
    }
}

fn job_subject(span: &JobSpan, owner: OwnerOf<'_>) -> SubjectJson {
    let of_span = || Some(Owner::of(span.controller()?.name?, true));
    let (job_kind, job) = match owner(&span.key).or_else(of_span) {
        Some(Owner { kind, name, .. }) => (Some(kind), Some(name)),
        None => (None, None),
    };
    SubjectJson {
        kind: "PodGroup".to_owned(),
        namespace: span.key.namespace.to_string(),
        name: span.key.name.to_string(),
        job,
        job_kind,
        ..SubjectJson::default()
    }
}
