//! I10: at rest the scheduler writes nothing. It goes on renewing the Lease, and it repeats the
//! events that say why a PodGroup waits.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::witness::SentWrite;
use crate::serve::{EVENTS, Store};

/// Events of one reason about one PodGroup in the 330 s for which a story is at rest. An unchanged
/// text is repeated every five minutes at most (core.md C-30).
const MOST_REPEATED: u64 = 2;
/// The same of events about a refusal by enqueue, each 30 s at most (actions.md A44).
const MOST_REFUSALS: u64 = 12;

/// Writes that the server got at rest, whether it has done them or not.
#[derive(Default)]
pub(super) struct RestWrites {
    /// Writes that must not be.
    unwanted: Vec<String>,
    /// How often each event was written.
    events: BTreeMap<WrittenEvent, u64>,
}

/// The object of an event, its type and its reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WrittenEvent {
    pub(super) object_kind: String,
    /// Name of the object.
    pub(super) object: String,
    severity: String,
    reason: String,
}

impl RestWrites {
    /// Takes note of a write, which was answered with this code.
    pub(super) fn note(&mut self, sent: &SentWrite, code: u16, store: &Store) {
        let SentWrite { process, method, path, .. } = sent;
        let renews_lease = method == "PUT" && path.contains("/leases/");
        // A restore may have taken the event. Then it is written anew, which counts.
        let finds_no_event = method == "PATCH" && path.contains("/events/") && code == 404;
        if renews_lease || finds_no_event {
            return;
        }
        match WrittenEvent::of(sent, store).filter(|_| code < 300) {
            Some(event) => *self.events.entry(event).or_default() += 1,
            None => self.unwanted.push(format!("{process}: {method} {path}: {code}")),
        }
    }

    /// Returns one text for all writes that must not be, and one for each event that comes too
    /// often.
    pub(super) fn violations(&self) -> Vec<String> {
        let n_unwanted = self.unwanted.len();
        let unwanted = self.unwanted.first();
        let unwanted =
            unwanted.map(|first| format!("I10: {n_unwanted} writes at rest, first {first}"));
        let too_often = self.events.iter().filter(|(event, count)| event.most() < **count);
        let too_often = too_often.map(|(event, count)| {
            let most = event.most();
            format!("I10: {count} writes at rest, at most {most} are right: {event}")
        });
        unwanted.into_iter().chain(too_often).collect()
    }
}

impl WrittenEvent {
    /// Returns the event that a write creates or repeats. `None`: it writes something else, or
    /// there is no such event.
    pub(super) fn of(sent: &SentWrite, store: &Store) -> Option<Self> {
        let (namespace, rest) = sent.path.split_once("/namespaces/")?.1.split_once('/')?;
        match rest.strip_prefix("events")?.strip_prefix('/') {
            Some(name) => Some(Self::read(&store.get(&EVENTS, namespace, name)?.value)),
            None => (rest == "events").then(|| Self::read(&sent.body)),
        }
    }

    fn read(event: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &event["involvedObject"];
        Self {
            object_kind: text(&object["kind"]),
            object: text(&object["name"]),
            severity: text(&event["type"]),
            reason: text(&event["reason"]),
        }
    }

    /// Returns how often the event may be written at rest.
    fn most(&self) -> u64 {
        let Self { object_kind, severity, reason, .. } = self;
        match (object_kind.as_str(), severity.as_str(), reason.as_str()) {
            ("PodGroup", "Normal", "Unschedulable") => MOST_REFUSALS,
            ("PodGroup", _, "Unschedulable" | "PreemptionSkipped") => MOST_REPEATED,
            _ => 0,
        }
    }
}

impl fmt::Display for WrittenEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object_kind, object, severity, reason } = self;
        write!(out, "event {severity} {reason} of {object_kind} {object}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::serve::{LOG_CAPACITY, in_process};

    const EVENTS_PATH: &str = "/api/v1/namespaces/default/events";

    fn event(object_kind: &str, severity: &str, reason: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": { "name": "e", "namespace": "default" },
            "involvedObject": { "kind": object_kind, "name": "j", "namespace": "default" },
            "type": severity, "reason": reason,
        })
    }

    fn sent(method: &str, path: &str, body: Value) -> SentWrite {
        let (method, path) = (method.to_owned(), path.to_owned());
        SentWrite { process: "a".into(), method, path, body, pod_group: String::new() }
    }

    /// Returns what is found after a write that comes so often.
    fn found(write: &SentWrite, code: u16, count: usize, store: &Store) -> Vec<String> {
        let mut writes = RestWrites::default();
        (0..count).for_each(|_| writes.note(write, code, store));
        writes.violations()
    }

    #[tokio::test]
    async fn only_renewals_and_repetitions_are_right_at_rest() {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        let new = |kind, severity, reason| sent("POST", EVENTS_PATH, event(kind, severity, reason));
        let lease = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/vc-scheduler";
        let status = "/api/v1/namespaces/default/pods/j-0/status";
        for (write, code, count, n_found) in [
            (sent("PUT", lease, Value::Null), 200, 165, 0),
            (sent("PUT", status, Value::Null), 200, 1, 1),
            (sent("PUT", status, Value::Null), 409, 3, 1),
            (new("PodGroup", "Warning", "Unschedulable"), 201, 2, 0),
            (new("PodGroup", "Warning", "Unschedulable"), 201, 3, 1),
            (new("PodGroup", "Warning", "Unschedulable"), 403, 1, 1),
            (new("PodGroup", "Normal", "Unschedulable"), 201, 12, 0),
            (new("Pod", "Warning", "FailedScheduling"), 201, 1, 1),
            (sent("PATCH", &format!("{EVENTS_PATH}/gone"), Value::Null), 404, 9, 0),
        ] {
            let found = found(&write, code, count, &store);
            assert_eq!(found.len(), n_found, "{write:?}: {found:?}");
        }
    }

    #[tokio::test]
    async fn a_repetition_is_known_by_its_event() {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        store.create(&EVENTS, &event("Pod", "Warning", "FailedScheduling")).unwrap();
        let write = sent("PATCH", &format!("{EVENTS_PATH}/e"), json!({ "count": 2 }));
        let expected =
            "I10: 1 writes at rest, at most 0 are right: event Warning FailedScheduling of Pod j";
        assert_eq!(found(&write, 200, 1, &store), [expected]);
    }
}
