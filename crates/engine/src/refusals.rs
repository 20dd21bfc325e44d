//! Events of refused writes: what the pods are told, and how long they pause. Specification:
//! core.md 7.2, 7.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::Effect;
use vc_model::{Cluster, ClusterEvent, Pause, TaskId};

use crate::pauses::Pauses;
use crate::pre_bind;

/// Refusals that wait for the time of the next cycle, and those before.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    news: Vec<Refusal>,
    pauses: Pauses,
}

/// A refused write of the pod with this uid.
#[derive(Debug)]
enum Refusal {
    /// The bind to this node, with the answer of the API server.
    Bind {
        uid: Arc<str>,
        node: Arc<str>,
        error: String,
    },
    /// What is written before a bind.
    PreBind {
        uid: Arc<str>,
    },
    Eviction {
        uid: Arc<str>,
    },
}

impl Refusals {
    /// Applies an event to the state. A pod whose write was refused pauses at once, so that an
    /// event behind this one can end the pause by changing the pod.
    pub(crate) fn apply(&mut self, cluster: &mut Cluster, event: ClusterEvent) {
        match &event {
            ClusterEvent::BindFailed { uid, node, error, pauses } => {
                pause(cluster, uid, pauses.then(|| Pause::Bind(Arc::default())));
                let (uid, node, error) = (uid.clone(), node.clone(), error.clone());
                self.news.push(Refusal::Bind { uid, node, error });
            }
            ClusterEvent::PreBindFailed { uid, pauses, .. } => {
                pause(cluster, uid, pauses.then(|| Pause::Bind(Arc::default())));
                self.news.push(Refusal::PreBind { uid: uid.clone() });
            }
            ClusterEvent::EvictFailed { uid, .. } => {
                pause(cluster, uid, Some(Pause::Eviction));
                self.news.push(Refusal::Eviction { uid: uid.clone() });
            }
            _ => {}
        }
        let changed_node = match &event {
            ClusterEvent::NodeApplied(node) => Some(&node.name),
            ClusterEvent::NodeDeleted { name } => Some(name),
            _ => None,
        };
        let changed_node = changed_node.filter(|_| !self.pauses.is_empty()).cloned();
        let version = cluster.version();
        cluster.apply(event);
        if let Some(name) = changed_node
            && version != cluster.version()
        {
            self.pauses.node_changed(cluster, &name);
        }
    }

    /// Tells the pods of refused binds, starts their pauses and ends those that are over. Answers
    /// by uid of pods for which something was refused before the bind: the sentence that says when
    /// it is repeated.
    pub(crate) fn take(
        &mut self,
        cluster: &mut Cluster,
        now_micros: i64,
        effects: &mut Vec<Effect>,
    ) -> BTreeMap<Arc<str>, String> {
        let mut sentences = BTreeMap::new();
        for refusal in std::mem::take(&mut self.news) {
            let Some(task) = cluster.task(refusal.uid()) else { continue };
            let node = refusal.node(cluster, task);
            let sentence = self.pauses.refuse(cluster, task, node, now_micros);
            match refusal {
                Refusal::Bind { node, error, .. } => {
                    let sentence = sentence.unwrap_or_default();
                    let message = format!("failed to bind to node {node}: {error}{sentence}");
                    tell(cluster, task, message.into(), effects);
                }
                Refusal::PreBind { uid } => sentences.extend(sentence.map(|text| (uid, text))),
                Refusal::Eviction { .. } => {}
            }
        }
        self.pauses.end(cluster, now_micros);
        sentences
    }

    /// Forgets all refusals and ends all pauses.
    pub(crate) fn forget(&mut self, cluster: &mut Cluster) {
        self.pauses.end_all(cluster);
    }

    /// When the next pause ends, in microseconds since 1970; `None`: no pod pauses.
    pub(crate) fn due_micros(&self) -> Option<i64> {
        self.pauses.next_end_micros()
    }
}

impl Refusal {
    fn uid(&self) -> &str {
        match self {
            Self::Bind { uid, .. } | Self::PreBind { uid } | Self::Eviction { uid } => uid,
        }
    }

    /// The node that was chosen; `None`: it is an eviction.
    fn node(&self, cluster: &Cluster, task: TaskId) -> Option<Arc<str>> {
        match self {
            Self::Bind { node, .. } => Some(node.clone()),
            Self::PreBind { .. } => {
                let node = cluster.tasks[task].node.map(|node| cluster.nodes[node].name.clone());
                Some(node.unwrap_or_default())
            }
            Self::Eviction { .. } => None,
        }
    }
}

/// `None`: the write may be repeated at once.
fn pause(cluster: &mut Cluster, uid: &str, pause: Option<Pause>) {
    let task = cluster.task(uid).filter(|&task| cluster.tasks[task].pause != pause);
    task.into_iter().for_each(|task| cluster.set_pause(task, pause.clone()));
}

/// The pod learns why its bind failed (core.md 7.3); the edge looks at the pod and reports it
/// again.
fn tell(cluster: &mut Cluster, task: TaskId, message: Arc<str>, effects: &mut Vec<Effect>) {
    if cluster.tasks[task].pause.is_some() {
        cluster.set_pause(task, Some(Pause::Bind(message.clone())));
    }
    effects.push(pre_bind::scheduler_error(cluster, task, message));
    effects.extend(pre_bind::unreserve(cluster, task));
}
