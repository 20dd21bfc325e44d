//! A new core/v1 event as JSON, from borrowed texts: every pod costs one. The same as k8s-openapi's
//! type makes of it, without copies and with one time for both stamps. Specification: core.md 7.9.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use crate::correlate::{EventNote, EventSubject};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventText<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: EventMetadata<'a>,
    involved_object: ObjectReference<'a>,
    reason: &'static str,
    message: &'a str,
    #[serde(rename = "type")]
    severity: &'static str,
    source: EventSource<'a>,
    reporting_component: &'a str,
    count: u32,
    first_timestamp: &'a str,
    last_timestamp: &'a str,
}

#[derive(Serialize)]
struct EventMetadata<'a> {
    name: &'a str,
    namespace: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectReference<'a> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

#[derive(Serialize)]
struct EventSource<'a> {
    component: &'a str,
}

impl<'a> EventText<'a> {
    /// The event of that name, told by `component` at `time`, which is as the API writes times.
    pub(crate) fn of(
        note: &'a EventNote,
        name: &'a str,
        component: &'a str,
        time: &'a str,
    ) -> Self {
        let about = &note.about;
        Self {
            api_version: "v1",
            kind: "Event",
            metadata: EventMetadata { name, namespace: namespace(about) },
            involved_object: ObjectReference {
                api_version: about.api_version,
                kind: about.kind,
                namespace: &about.namespace,
                name: &about.name,
                uid: &about.uid,
            },
            reason: note.reason,
            message: &note.message,
            severity: if note.warning { "Warning" } else { "Normal" },
            source: EventSource { component },
            reporting_component: component,
            count: 1,
            first_timestamp: time,
            last_timestamp: time,
        }
    }
}

/// Where the event lives: that of an object without namespace in the default one.
pub(crate) fn namespace(about: &EventSubject) -> &str {
    if about.namespace.is_empty() { "default" } else { &about.namespace }
}

/// Unique by the time; a long name is cut, for the whole is at most 253 bytes and each part ends
/// alphanumeric.
pub(crate) fn event_name(object: &str, now: Timestamp) -> String {
    let mut end = object.len().min(230);
    while !object.is_char_boundary(end) {
        end -= 1;
    }
    let name = object[..end].trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    format!("{name}.{:x}", now.as_nanosecond())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::api::ObjectMeta;

    use super::*;

    #[test]
    fn names_of_events_stay_valid() {
        let at = |nanos| Timestamp::from_nanosecond(nanos).unwrap();
        assert_eq!(event_name("job-0", at(255)), "job-0.ff");
        let long = format!("{}-{}", "a".repeat(229), "b".repeat(23));
        assert_eq!(event_name(&long, at(i64::MAX.into())).len(), 229 + 17);
    }

    /// What k8s-openapi makes of the same.
    fn typed(note: &EventNote, name: &str, component: &str, now: Timestamp) -> Event {
        let about = &note.about;
        Event {
            metadata: ObjectMeta {
                name: Some(name.into()),
                namespace: Some(namespace(about).to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(about.api_version.into()),
                kind: Some(about.kind.into()),
                namespace: Some(about.namespace.to_string()).filter(|name| !name.is_empty()),
                name: Some(about.name.to_string()),
                uid: Some(about.uid.to_string()),
                ..ObjectReference::default()
            },
            type_: Some(if note.warning { "Warning" } else { "Normal" }.into()),
            reason: Some(note.reason.into()),
            message: Some(note.message.to_string()),
            source: Some(EventSource { component: Some(component.into()), host: None }),
            reporting_component: Some(component.into()),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            ..Event::default()
        }
    }

    #[test]
    fn an_event_is_that_of_the_typed_client() {
        let now = Timestamp::from_second(1_790_000_000).unwrap();
        for (kind, space, warning) in [("Pod", "ns", false), ("Queue", "", true)] {
            let (namespace, name, uid) = (space.into(), "a\"b".into(), "u-1".into());
            let about = EventSubject { api_version: "v1", kind, namespace, name, uid };
            let message = "0/3 nodes: \"x\"\n\u{e9}".into();
            let note = EventNote { about, warning, reason: "Scheduled", message };
            let time = now.to_string();
            let ours = serde_json::to_value(EventText::of(&note, "e.1", "volcano", &time)).unwrap();
            let wanted = serde_json::to_value(typed(&note, "e.1", "volcano", now)).unwrap();
            assert_eq!(ours, wanted);
        }
    }
}
