//! Gangs: PodGroups, under the name of the workload that they were made for.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::log::{count, span};
use super::{DemoState, PodView, Tone};
use crate::serve::{Change, Key};
use vc_objects::field::text;

/// A PodGroup.
#[derive(Clone, Debug)]
pub struct GangView {
    /// Of the PodGroup.
    pub key: Key,
    /// The name of its Job, with the namespace unless that is `default`.
    pub title: String,
    /// `spec.queue`.
    pub queue: String,
    /// `minMember`.
    pub min: usize,
    /// As the scheduler writes it: `Pending`, `Inqueue`, `Running`, `Completed`, `Unknown`.
    pub phase: String,
    /// When it was seen first.
    pub created: Duration,
    /// From its creation until `min` members were bound, once they were.
    pub completed: Option<Duration>,
    /// Why it waits, as the scheduler says, without what the view shows anyway; kept when it no
    /// longer waits.
    pub reason: String,
    pub(super) number: usize,
    /// Whether the scheduler has said or done anything about it.
    is_answered: bool,
}

/// How many members of a gang there are, by what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberCounts {
    /// Pods that name the gang.
    pub total: usize,
    /// With a node, not ended.
    pub running: usize,
    /// Succeeded or failed.
    pub ended: usize,
}

impl MemberCounts {
    /// Of every gang that has pods.
    pub(super) fn by_gang(pods: &BTreeMap<Key, PodView>) -> BTreeMap<&Key, MemberCounts> {
        let mut all: BTreeMap<&Key, MemberCounts> = BTreeMap::new();
        for pod in pods.values() {
            if let Some(gang) = &pod.gang {
                all.entry(gang).or_default().add(pod);
            }
        }
        all
    }

    fn add(&mut self, pod: &PodView) {
        self.total += 1;
        self.running += usize::from(pod.holds_node());
        self.ended += usize::from(pod.has_ended());
    }

    /// Those that have, or had, a node.
    pub fn placed(self) -> usize {
        self.running + self.ended
    }

    /// Those without a node.
    pub fn waiting(self) -> usize {
        self.total - self.placed()
    }
}

impl DemoState {
    pub(super) fn observe_gang(&mut self, change: Change, object: &Value, at: Duration) {
        let key = Key::of(object);
        if change == Change::Deleted {
            self.gangs.remove(&key);
            self.changed_at = at;
            return;
        }
        if !self.gangs.contains_key(&key) {
            self.add_gang(&key, object, at);
        }
        let Some(gang) = self.gangs.get_mut(&key) else {
            return;
        };
        let phase = text(object, "/status/phase");
        if gang.phase != phase {
            if let Some(line) = entered(gang, phase, at) {
                self.log.add(at, Tone::Plain, line);
            }
            gang.phase = phase.to_owned();
            self.changed_at = at;
        }
        let reason = reason(object);
        if gang.completed.is_none() && !reason.is_empty() && gang.reason != reason {
            let line = format!("gang {} waits: {reason}", gang.title);
            gang.reason = reason.to_owned();
            self.log.add(at, Tone::Waiting, line);
        }
        if gang.phase != "Pending" || !gang.reason.is_empty() {
            self.answered(&key, at);
        }
    }

    /// The scheduler has looked at a gang: the first time tells how fast it is.
    pub(super) fn answered(&mut self, key: &Key, at: Duration) {
        let Some(gang) = self.gangs.get_mut(key).filter(|gang| !gang.is_answered) else {
            return;
        };
        gang.is_answered = true;
        self.slowest_answer = self.slowest_answer.max(at.saturating_sub(gang.created));
    }

    fn add_gang(&mut self, key: &Key, object: &Value, at: Duration) {
        let min = object["spec"]["minMember"].as_u64().unwrap_or(0);
        let gang = GangView {
            key: key.clone(),
            title: title(object),
            queue: text(object, "/spec/queue").to_owned(),
            min: usize::try_from(min).unwrap_or(usize::MAX),
            phase: "Pending".to_owned(),
            created: at,
            completed: None,
            reason: String::new(),
            number: self.gangs.values().map(|gang| gang.number + 1).max().unwrap_or(0),
            is_answered: false,
        };
        let line = format!("gang {} created: min {min}, queue {}", gang.title, gang.queue);
        self.log.add(at, Tone::Plain, line);
        self.gangs.insert(key.clone(), gang);
        self.changed_at = at;
        self.check_complete(key, at);
    }

    /// A member has got a node: is that enough now?
    pub(super) fn check_complete(&mut self, key: &Key, at: Duration) {
        let Some(gang) = self.gangs.get_mut(key).filter(|gang| gang.completed.is_none()) else {
            return;
        };
        let mut members = MemberCounts::default();
        let is_member = |pod: &&PodView| pod.gang.as_ref() == Some(key);
        self.pods.values().filter(is_member).for_each(|pod| members.add(pod));
        if gang.min.max(1) <= members.placed() {
            let took = at.saturating_sub(gang.created);
            gang.completed = Some(took);
            let (pods, took) = (count(gang.min, "pod"), span(took));
            let line = format!("gang {} complete: {pods} in {took}", gang.title);
            self.log.add(at, Tone::Good, line);
        }
    }
}

fn entered(gang: &GangView, phase: &str, at: Duration) -> Option<String> {
    let took = span(at.saturating_sub(gang.created));
    match phase {
        // Admission and placement may be one cycle; then the placement is the news.
        "Inqueue" if gang.completed.is_none() => {
            Some(format!("gang {} admitted after {took}", gang.title))
        }
        "Completed" => Some(format!("gang {} done after {took}", gang.title)),
        "Unknown" => Some(format!("gang {} has lost members", gang.title)),
        _ => None,
    }
}

fn title(object: &Value) -> String {
    let name = match text(object, "/metadata/ownerReferences/0/name") {
        "" => text(object, "/metadata/name"),
        owner => owner,
    };
    match text(object, "/metadata/namespace") {
        "default" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    }
}

fn reason(object: &Value) -> &str {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut refused =
        conditions.filter(|it| it["type"] == "Unschedulable" && it["status"] == "True");
    refused.next().map(|it| origin(text(it, "/message"))).unwrap_or_default()
}

/// The message of a gang counts its pods by state and ends with the reason of the first pod, or of
/// the gang as a whole (core.md 3.10): that part, without the name of the pod.
fn origin(message: &str) -> &str {
    let Some((_, origin)) = message.split_once("Origin reason is") else {
        return message;
    };
    origin.split_once(": ").map_or(message, |(_pod, reason)| reason)
}
