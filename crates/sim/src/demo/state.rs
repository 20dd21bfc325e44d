//! What the demo has seen of the cluster, kept up by the API server's events: queues and their use,
//! gangs, pods, nodes, and a log of what happened. Times are spans since the start of the workload.

mod gang;
mod hyper_nodes;
mod log;
mod pod;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use vc_resource::Quantity;

use crate::serve::{Change, HYPER_NODES, Key, NODES, POD_GROUPS, PODS, QUEUES, ServedKind};
use vc_objects::field::text;

pub use gang::{GangView, MemberCounts};
pub use hyper_nodes::HyperNodeLoad;
use hyper_nodes::HyperNodesSeen;
pub use log::{LogNote, Tone};
pub(super) use log::{count, span};
pub use pod::PodView;

use log::NoteLog;

/// How much longer than its slowest answer a scheduler may take before it has no answer.
const PATIENCE: u32 = 4;

/// The cluster as a viewer sees it.
#[derive(Debug, Default)]
pub struct DemoState {
    /// Allocatable cpu in thousandths by node; shorter names first, so that `node-10` comes late.
    nodes: BTreeMap<(usize, String), i64>,
    /// Weights of queues.
    queues: BTreeMap<String, i64>,
    hyper_nodes: HyperNodesSeen,
    gangs: BTreeMap<Key, GangView>,
    pods: BTreeMap<Key, PodView>,
    log: NoteLog,
    /// From creation to bind of every pod that was bound, in the order of the binds.
    pub bind_times: Vec<Duration>,
    /// How many pods there have been.
    pub pods_seen: usize,
    /// When a pod, a gang's phase or a node changed last.
    pub changed_at: Duration,
    /// The longest time that the scheduler has taken to say or do anything about a new gang.
    slowest_answer: Duration,
}

/// A queue's use of cpu against its share, in thousandths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueLoad {
    /// Of the queue.
    pub name: String,
    /// `spec.weight`.
    pub weight: i64,
    /// Of the pods that hold a node.
    pub used: i64,
    /// The part of the cluster that its weight stands for, among the queues that are shown.
    pub share: i64,
}

/// A node's use of cpu, in thousandths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLoad {
    /// Of the node.
    pub name: String,
    /// Of the pods that it holds.
    pub used: i64,
    /// Allocatable.
    pub total: i64,
}

impl DemoState {
    /// Takes in one event of the API server.
    pub fn observe(&mut self, kind: &ServedKind, change: Change, object: &Value, at: Duration) {
        match kind {
            kind if *kind == PODS => self.observe_pod(change, object, at),
            kind if *kind == POD_GROUPS => self.observe_gang(change, object, at),
            kind if *kind == QUEUES => self.observe_queue(change, object, at),
            kind if *kind == NODES => {
                self.hyper_nodes.observe(kind, change, object);
                self.observe_node(change, object, at);
            }
            kind if *kind == HYPER_NODES => self.hyper_nodes.observe(kind, change, object),
            _ => {}
        }
    }

    /// Adds a line that is about no object.
    pub fn note(&mut self, at: Duration, tone: Tone, text: String) {
        self.log.add(at, tone, text);
    }

    /// The lines since the last call, in the order of their times. Binds of a gang between two
    /// calls are one line.
    pub fn take_notes(&mut self) -> Vec<LogNote> {
        let members = MemberCounts::by_gang(&self.pods);
        let known = |key: &Key| Some((self.gangs.get(key)?.title.as_str(), members.get(key)?));
        self.log.take(known)
    }

    /// The last lines that were taken.
    pub fn recent(&self) -> &[LogNote] {
        self.log.recent()
    }

    /// Gangs in the order in which they came.
    pub fn gangs(&self) -> Vec<(&GangView, MemberCounts)> {
        let members = MemberCounts::by_gang(&self.pods);
        let members = |gang: &GangView| members.get(&gang.key).copied().unwrap_or_default();
        let mut gangs: Vec<_> = self.gangs.values().map(|gang| (gang, members(gang))).collect();
        gangs.sort_by_key(|(gang, _)| gang.number);
        gangs
    }

    /// Pods that are not part of a known gang.
    pub fn single_pods(&self) -> impl Iterator<Item = (&Key, &PodView)> {
        let is_single =
            |pod: &PodView| !pod.gang.as_ref().is_some_and(|it| self.gangs.contains_key(it));
        self.pods.iter().filter(move |(_, pod)| is_single(pod))
    }

    /// Why the first pod of a gang that is not placed waits.
    pub fn reason_of_member(&self, gang: &GangView) -> Option<&str> {
        let is_member = |pod: &&PodView| pod.gang.as_ref() == Some(&gang.key) && pod.waits();
        let pod = self.pods.values().filter(is_member).find(|pod| !pod.reason.is_empty())?;
        Some(&pod.reason)
    }

    /// Use against share. `root` is the whole, and `default` is shown once it has a gang.
    pub fn queues(&self) -> Vec<QueueLoad> {
        let has_gang = |name: &str| self.gangs.values().any(|gang| gang.queue == name);
        let is_shown = |name: &str| name != "root" && (name != "default" || has_gang(name));
        let shown: Vec<_> = self.queues.iter().filter(|(name, _)| is_shown(name)).collect();
        let weights: i64 = shown.iter().map(|(_, weight)| **weight).sum();
        let total = self.total_cpu();
        let queue = |(name, &weight): (&String, &i64)| QueueLoad {
            name: name.clone(),
            weight,
            used: self.used(|pod| self.queue_of(pod) == Some(name)),
            share: total * weight / weights.max(1),
        };
        shown.into_iter().map(queue).collect()
    }

    /// Nodes by name, short names first.
    pub fn nodes(&self) -> Vec<NodeLoad> {
        let node = |((_, name), &total): (&(usize, String), &i64)| NodeLoad {
            name: name.clone(),
            used: self.used(|pod| pod.node == *name),
            total,
        };
        self.nodes.iter().map(node).collect()
    }

    /// Cpu of all nodes, in thousandths.
    pub fn total_cpu(&self) -> i64 {
        self.nodes.values().sum()
    }

    /// Whether nothing more is to be expected: for `quiet` nothing has changed (longer where the
    /// scheduler is slow), no pod ends by itself, and every gang that waits has been told why.
    pub fn is_settled(&self, now: Duration, quiet: Duration) -> bool {
        let members = MemberCounts::by_gang(&self.pods);
        let is_explained = |gang: &GangView| {
            let is_empty = !members.contains_key(&gang.key);
            is_empty || gang.completed.is_some() || !gang.reason.is_empty()
        };
        quiet.max(self.slowest_answer * PATIENCE) <= now.saturating_sub(self.changed_at)
            && !self.pods.values().any(PodView::will_change)
            && self.gangs.values().all(is_explained)
    }

    fn used(&self, counts: impl Fn(&PodView) -> bool) -> i64 {
        let holding = self.pods.values().filter(|pod| pod.holds_node() && counts(pod));
        holding.map(|pod| pod.cpu_milli).sum()
    }

    fn queue_of(&self, pod: &PodView) -> Option<&String> {
        Some(&self.gangs.get(pod.gang.as_ref()?)?.queue)
    }

    fn observe_queue(&mut self, change: Change, object: &Value, at: Duration) {
        let name = text(object, "/metadata/name").to_owned();
        if change == Change::Deleted {
            self.queues.remove(&name);
            return;
        }
        let weight = object["spec"]["weight"].as_i64().unwrap_or(1);
        if self.queues.insert(name.clone(), weight).is_none() && name != "root" {
            self.log.add(at, Tone::Plain, format!("queue {name}: weight {weight}"));
        }
    }

    fn observe_node(&mut self, change: Change, object: &Value, at: Duration) {
        let name = text(object, "/metadata/name");
        let key = (name.len(), name.to_owned());
        let cpu = text(object, "/status/allocatable/cpu").parse::<Quantity>();
        let cpu = cpu.map_or(0, Quantity::milli);
        let before = match change {
            Change::Deleted => self.nodes.remove(&key),
            Change::Added | Change::Modified => self.nodes.insert(key, cpu),
        };
        if before != Some(cpu) || change == Change::Deleted {
            self.changed_at = at;
        }
    }
}
