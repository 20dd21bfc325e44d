//! Events of refused writes: the conditions that pods get, and the start of their pauses.
//! Specification: core.md 7.2, 7.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_framework::Effect;
use vc_model::{Cluster, ClusterEvent, Pause, ReadAfter, TaskId, TaskStatus};

use crate::pauses::{KeptPlace, PodPauses, is_gang_broken};
use crate::pre_bind;

/// Refusals that wait for the time of the next cycle, and the pauses of earlier ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WriteRefusals {
    news: Vec<WriteRefusal>,
    pauses: PodPauses,
    /// Uids of the waiting pods whose bind, as a read has shown, did not happen, with the names of the
    /// nodes of these binds.
    unbound: Vec<(Arc<str>, Arc<str>)>,
    /// Reads that are awaited after refused writes, by the uid of the pod.
    #[serde(default)]
    awaited_reads: BTreeMap<Arc<str>, AwaitedRead>,
}

/// What has become of a pod since a write of it was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum AwaitedRead {
    /// Nothing: the answer to the read says how the write has ended.
    OfTheWrite,
    /// The pod was forgotten: the answer undoes nothing that was decided after that.
    OfBefore,
}

/// A refused write of the pod with this uid.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum WriteRefusal {
    /// The bind to this node was refused, with the answer of the API server.
    Bind {
        uid: Arc<str>,
        node: Arc<str>,
        error: String,
    },
    /// A write that must precede a bind was refused.
    PreBind {
        uid: Arc<str>,
    },
    Eviction {
        uid: Arc<str>,
    },
}

impl WriteRefusals {
    /// Applies an event to the state. A pod whose write was refused pauses at once. A later event
    /// that changes the pod can thus end the pause.
    pub(crate) fn apply(&mut self, cluster: &mut Cluster, event: ClusterEvent) {
        let event = self.note_reads(cluster, event);
        match &event {
            ClusterEvent::BindFailed { uid, node, error, pauses } => {
                pause(cluster, uid, pauses.then(|| Pause::Bind(Arc::default())));
                let (uid, node, error) = (uid.clone(), node.clone(), error.clone());
                self.news.push(WriteRefusal::Bind { uid, node, error });
            }
            ClusterEvent::PreBindFailed { uid, pauses, .. } => {
                pause(cluster, uid, pauses.then(|| Pause::Bind(Arc::default())));
                self.news.push(WriteRefusal::PreBind { uid: uid.clone() });
            }
            ClusterEvent::EvictFailed { uid, .. } => {
                pause(cluster, uid, Some(Pause::Eviction));
                self.news.push(WriteRefusal::Eviction { uid: uid.clone() });
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
        let binding = read_after_bind(cluster, &event);
        cluster.apply(event);
        self.unbound.extend(binding.filter(|(uid, _)| is_pending(cluster, uid)));
        if let Some(name) = changed_node
            && version != cluster.version()
        {
            self.pauses.node_changed(cluster, &name);
        }
    }

    /// Takes note of the reads that are awaited. Returns the event as it is to be applied: the answer to a read counts as
    /// the event of a watch if the pod was forgotten since its write was refused, as after a restore of the
    /// API server. A pod that is gone stays gone.
    fn note_reads(&mut self, cluster: &Cluster, event: ClusterEvent) -> ClusterEvent {
        match event {
            ClusterEvent::BindFailed { ref uid, .. }
            | ClusterEvent::EvictFailed { ref uid, .. }
                if cluster.task(uid).is_some() =>
            {
                self.awaited_reads.insert(uid.clone(), AwaitedRead::OfTheWrite);
            }
            ClusterEvent::PodDeleted { ref uid, .. } => self.note_deletion(uid),
            ClusterEvent::PodRead { pod, after: ReadAfter::Bind | ReadAfter::Eviction }
                if self.awaited_reads.remove(&pod.uid) == Some(AwaitedRead::OfBefore)
                    && cluster.task(&pod.uid).is_some() =>
            {
                return ClusterEvent::PodApplied(pod);
            }
            _ => {}
        }
        event
    }

    /// Takes note of a pod that was forgotten, or is known to be gone once more.
    fn note_deletion(&mut self, uid: &Arc<str>) {
        if self.awaited_reads.remove(uid) == Some(AwaitedRead::OfTheWrite) {
            self.awaited_reads.insert(uid.clone(), AwaitedRead::OfBefore);
        }
    }

    /// Writes the conditions of refused binds, starts pauses, and ends those that are over. Returns
    /// sentences by uid of pods with a refused write before the bind. Each says when the bind is
    /// repeated. Returns the places that pods have kept until now, too.
    pub(crate) fn take(
        &mut self,
        cluster: &mut Cluster,
        now_micros: i64,
        effects: &mut Vec<Effect>,
    ) -> (BTreeMap<Arc<str>, String>, Vec<KeptPlace>) {
        let mut sentences = BTreeMap::new();
        for refusal in std::mem::take(&mut self.news) {
            let Some(task) = cluster.task(refusal.uid()) else { continue };
            let node = refusal.node(cluster, task);
            let sentence = self.pauses.refuse(cluster, task, node, now_micros);
            match refusal {
                WriteRefusal::Bind { node, error, .. } => {
                    let sentence = sentence.unwrap_or_default();
                    let message = format!("failed to bind to node {node}: {error}{sentence}");
                    report_refusal(cluster, task, message.into(), effects);
                }
                WriteRefusal::PreBind { uid } => sentences.extend(sentence.map(|text| (uid, text))),
                WriteRefusal::Eviction { .. } => {}
            }
        }
        let mut kept = self.pauses.end(cluster, now_micros);
        self.pauses.give_up_places(cluster);
        // The pause of such a pod was over before the answer to the read, or there was none.
        for (uid, node) in std::mem::take(&mut self.unbound) {
            let task = cluster.task(&uid).filter(|_| is_pending(cluster, &uid));
            let task = task.filter(|&task| is_gang_broken(cluster, task));
            kept.extend(task.map(|task| KeptPlace { task, node }));
        }
        (sentences, kept)
    }

    /// Drops all refusals and ends all pauses.
    pub(crate) fn forget(&mut self, cluster: &mut Cluster) {
        self.pauses.end_all(cluster);
    }

    /// Returns the end of the next pause, in microseconds since 1970. Returns `None` if no pod
    /// pauses.
    pub(crate) fn due_micros(&self) -> Option<i64> {
        self.pauses.next_end_micros()
    }
}

impl WriteRefusal {
    fn uid(&self) -> &str {
        match self {
            Self::Bind { uid, .. } | Self::PreBind { uid } | Self::Eviction { uid } => uid,
        }
    }

    /// Returns the chosen node. Returns `None` for an eviction.
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

/// Returns the uid of a pod that is read again after a bind, and the name of the node of that bind.
/// Returns `None` for other events, or if the bind is no longer awaited.
fn read_after_bind(cluster: &Cluster, event: &ClusterEvent) -> Option<(Arc<str>, Arc<str>)> {
    let ClusterEvent::PodRead { pod, after: ReadAfter::Bind } = event else { return None };
    let row = cluster.task(&pod.uid).map(|task| &cluster.tasks[task])?;
    let node = row.node.filter(|_| row.status == TaskStatus::Binding)?;
    Some((pod.uid.clone(), cluster.nodes[node].name.clone()))
}

fn is_pending(cluster: &Cluster, uid: &str) -> bool {
    cluster.task(uid).is_some_and(|task| cluster.tasks[task].status == TaskStatus::Pending)
}

/// Sets the pause of a pod. With `None` the write may be repeated at once.
fn pause(cluster: &mut Cluster, uid: &str, pause: Option<Pause>) {
    let task = cluster.task(uid).filter(|&task| cluster.tasks[task].pause != pause);
    task.into_iter().for_each(|task| cluster.set_pause(task, pause.clone()));
}

/// Writes the reason of a failed bind to the pod (core.md 7.3). The edge reads the pod again and
/// reports its state.
fn report_refusal(
    cluster: &mut Cluster,
    task: TaskId,
    message: Arc<str>,
    effects: &mut Vec<Effect>,
) {
    if cluster.tasks[task].pause.is_some() {
        cluster.set_pause(task, Some(Pause::Bind(message.clone())));
    }
    effects.push(pre_bind::scheduler_error(cluster, task, message));
    effects.extend(pre_bind::unreserve(cluster, task));
}
