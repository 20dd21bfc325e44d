//! Pods as the demo sees them.

use std::time::Duration;

use serde_json::{Value, json};
use vc_model::{ClusterEvent, RequestGates, pod_request};
use vc_resource::{Dim, Dims};

use super::DemoState;
use crate::serve::{Change, Key, RUN_SECONDS};
use vc_objects::field::text;
use vc_objects::workload::{GROUP_NAME, SCHEDULER};

/// A pod.
#[derive(Clone, Debug)]
pub struct PodView {
    uid: String,
    /// The PodGroup that it names.
    pub gang: Option<Key>,
    /// Its request, in thousandths.
    pub cpu_milli: i64,
    /// Empty while it has none.
    pub node: String,
    /// `Pending`, `Running`, ...
    pub phase: String,
    /// When it was seen first.
    pub created: Duration,
    /// Why it has no node, as the scheduler says.
    pub reason: String,
    ends_by_itself: bool,
    is_leaving: bool,
}

impl PodView {
    fn of(object: &Value, at: Duration) -> PodView {
        let mut pod = PodView {
            uid: text(object, "/metadata/uid").to_owned(),
            gang: gang_of(object),
            cpu_milli: cpu_milli(object),
            node: String::new(),
            phase: String::new(),
            created: at,
            reason: String::new(),
            ends_by_itself: object["metadata"]["annotations"][RUN_SECONDS].is_string(),
            is_leaving: false,
        };
        pod.update(object);
        pod
    }

    /// Takes over what changes in the life of a pod.
    fn update(&mut self, object: &Value) {
        self.node = text(object, "/spec/nodeName").to_owned();
        self.phase = text(object, "/status/phase").to_owned();
        self.reason = reason(object);
        self.is_leaving = !object["metadata"]["deletionTimestamp"].is_null();
    }

    /// Whether it takes up room on a node.
    pub fn holds_node(&self) -> bool {
        !self.node.is_empty() && !self.has_ended()
    }

    /// Whether it waits for a node.
    pub fn waits(&self) -> bool {
        self.node.is_empty() && !self.has_ended()
    }

    /// Whether all its containers have ended.
    pub fn has_ended(&self) -> bool {
        matches!(&*self.phase, "Succeeded" | "Failed")
    }

    /// Whether its kubelet has something left to do with it.
    pub(super) fn will_change(&self) -> bool {
        self.is_leaving || (self.ends_by_itself && self.holds_node())
    }
}

impl DemoState {
    pub(super) fn observe_pod(&mut self, change: Change, object: &Value, at: Duration) {
        let key = Key::of(object);
        if change == Change::Deleted {
            if self.pods.remove(&key).is_some() {
                self.changed_at = at;
            }
            return;
        }
        let known = self.pods.get_mut(&key).filter(|pod| pod.uid == text(object, "/metadata/uid"));
        let Some(pod) = known else {
            let pod = PodView::of(object, at);
            let gang = pod.gang.clone();
            self.pods.insert(key, pod);
            self.pods_seen += 1;
            self.changed_at = at;
            // It may have come with its node.
            gang.iter().for_each(|gang| self.check_complete(gang, at));
            return;
        };
        let before = pod.clone();
        pod.update(object);
        if (&before.node, &before.phase) != (&pod.node, &pod.phase) {
            self.changed_at = at;
        }
        if before.node.is_empty() && !pod.node.is_empty() {
            self.bind_times.push(at.saturating_sub(pod.created));
            let (gang, node) = (pod.gang.clone(), pod.node.clone());
            self.bound(&key, gang, node, at);
        }
    }

    fn bound(&mut self, pod: &Key, gang: Option<Key>, node: String, at: Duration) {
        match gang.filter(|gang| self.gangs.contains_key(gang)) {
            Some(gang) => {
                self.answered(&gang, at);
                self.log.bound(&gang, node, at);
                self.check_complete(&gang, at);
            }
            None => self.log.bound_single(&pod.name, &node, at),
        }
    }
}

fn gang_of(object: &Value) -> Option<Key> {
    let name = object["metadata"]["annotations"][GROUP_NAME].as_str()?;
    Some(Key::new(text(object, "/metadata/namespace"), name))
}

/// What the scheduler reckons with: init and sidecar containers and overhead included.
fn cpu_milli(object: &Value) -> i64 {
    let mut object = object.clone();
    if object["metadata"]["uid"].is_null() {
        object["metadata"]["uid"] = json!("-");
    }
    match vc_wire::decode(vc_wire::Kind::Pod, &object).map(|decoded| decoded.event) {
        Ok(ClusterEvent::PodApplied(record)) => {
            pod_request(&record, RequestGates::default(), &mut Dims::new()).get(Dim::CPU)
        }
        _ => 0,
    }
}

fn reason(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut refused =
        conditions.filter(|it| it["type"] == "PodScheduled" && it["status"] == "False");
    match (refused.next(), text(object, "/spec/schedulerName")) {
        (Some(it), _) => text(it, "/message").to_owned(),
        (None, "" | SCHEDULER) => String::new(),
        (None, other) => format!("it is for the scheduler {other}"),
    }
}
