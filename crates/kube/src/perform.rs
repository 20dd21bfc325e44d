//! One write: what is sent, and what of it comes back as an event of a later cycle. Specification:
//! core.md 7, 4.5 (resync), 11.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use tokio::sync::mpsc;
use vc_engine::{About, Effect, Nomination, PreBindWrites};
use vc_model::{ClusterEvent, ObjectKey, PodGroupStatus, ResourceClaim, StorageObject};
use vc_wire::SlimPod;

use crate::call::{CallError, read};
use crate::correlate::Note;
use crate::direct::Direct;
use crate::events::Recorder;
use crate::evict::EvictTexts;
use crate::failed::caught;
use crate::inbox::Incoming;
use crate::kept::Kept;
use crate::observe::{Observer, since};
use crate::slim::Object;
use crate::{bind, devices, evict, pre_bind, status};

/// Of the server's answer to the binding of a bound pod.
const ASSIGNED: &str = "is already assigned to node";
const TWO_SCHEDULERS: &str = "hint: does another scheduler serve the same schedulerName? Several \
    replicas need --leader-elect=true and the same Lease";
/// First and longest pause between two attempts to look at a pod again.
const RESYNC_PAUSE: Duration = Duration::from_millis(5);
const RESYNC_PAUSE_MAX: Duration = Duration::from_secs(1000);

/// What a failed write leaves to be done, however long that takes. Its object stays taken meanwhile.
pub(crate) enum Rest {
    /// The pod is looked at again.
    Look { pod: ObjectKey, uid: Arc<str> },
    /// Its claims are freed.
    Free { pod: ObjectKey, uid: Arc<str>, claims: Vec<Arc<str>> },
}

/// A pod and when it was created, in microseconds since 1970, if that is known.
type Pod = (ObjectKey, Arc<str>, Option<i64>);

/// What writes need.
pub(crate) struct Writer {
    pub(crate) core: Client,
    pub(crate) volcano: Client,
    pub(crate) binds: Direct,
    pub(crate) pod_groups: Direct,
    pub(crate) recorder: Recorder,
    pub(crate) inbox: mpsc::Sender<Incoming>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) kept: Arc<Kept>,
}

impl Writer {
    /// Performs one write; answers what is left to be done. `created`: when a pod that
    /// is bound was created, in microseconds since 1970, if that is known.
    pub(crate) async fn perform(&self, effect: Effect, created: Option<i64>) -> Option<Rest> {
        match effect {
            Effect::Bind { pod, uid, node, annotations } => {
                return self.bind((pod, uid, created), node, &annotations).await;
            }
            Effect::PreBind { pod, uid, node, writes } => {
                self.prepare((pod, uid, created), &node, &writes).await;
            }
            Effect::UnreserveClaims { pod, uid, claims } => {
                let freed = self.unreserve(&pod, &uid, &claims).await;
                return (!freed).then_some(Rest::Free { pod, uid, claims });
            }
            Effect::DeallocateClaim { claim, uid, allocation, consumer } => {
                let of = (&claim, &*uid);
                let answer = devices::deallocate(&self.core, of, &allocation, &consumer).await;
                if let Err(error) = answer {
                    tracing::warn!(%claim, %error, "useless devices are not taken away");
                }
            }
            Effect::Resync { pod, uid } => return Some(Rest::Look { pod, uid }),
            Effect::Evict { pod, uid, pod_group, reason, for_pod_group, message, .. } => {
                let texts = EvictTexts::new(reason, for_pod_group.as_deref(), message.as_deref());
                return self.evict(pod, uid, pod_group, &texts).await;
            }
            Effect::PodCondition { pod, uid, reason, message, nomination } => {
                return self.tell_pod(pod, uid, (&reason, &message), &nomination).await;
            }
            Effect::ClearNomination { pod, uid } => {
                let answer = status::clear_nomination(&self.core, &pod, &uid).await;
                return self.pod_written(pod, uid, answer, true).await;
            }
            Effect::RemoveGate { pod, uid } => {
                if let Err(error) = status::remove_gate(&self.core, &pod, &uid).await {
                    tracing::warn!(%pod, %error, "scheduling gate not removed");
                    self.report(ClusterEvent::PodStatusFailed { uid }).await;
                }
            }
            Effect::PodGroupStatus { pod_group, uid, status, .. } => {
                self.set_pod_group(pod_group, &uid, &status).await;
            }
            Effect::QueueStatus { queue, allocated } => self.set_queue(queue, &allocated).await,
            Effect::QueueAnnotation { queue, key, value } => {
                self.annotate(&queue, key, &value).await;
            }
            Effect::NodeShardStatus { shard, nodes_in_use, nodes_to_remove, nodes_to_add } => {
                let nodes = [
                    ("nodesInUse", &*nodes_in_use),
                    ("nodesToRemove", &*nodes_to_remove),
                    ("nodesToAdd", &*nodes_to_add),
                ];
                self.set_node_shard(shard, nodes).await;
            }
            Effect::Event { .. } => {}
        }
        None
    }

    async fn bind(
        &self,
        (pod, uid, created): Pod,
        node: Arc<str>,
        annotations: &[(Arc<str>, Arc<str>)],
    ) -> Option<Rest> {
        let start = Instant::now();
        let answer = bind::bind(&self.binds, &pod, &uid, &node, annotations).await;
        if answer.is_ok() {
            self.observer.stage("Bind", start.elapsed());
            created.inspect(|&at| self.observer.task_stage("Bound", since(at)));
        }
        self.bound(pod, uid, node, answer).await
    }

    async fn prepare(&self, (pod, uid, created): Pod, node: &str, writes: &PreBindWrites) {
        let start = Instant::now();
        let event = match self.pre_bind((&pod, &uid), node, writes).await {
            Ok((objects, devices)) => {
                self.observer.stage("PreBind", start.elapsed());
                created.inspect(|&at| self.observer.task_stage("PreBound", since(at)));
                ClusterEvent::VolumesWritten { uid, objects, devices }
            }
            Err(error) => {
                tracing::warn!(%pod, %node, %error, "pre-bind failed");
                ClusterEvent::PreBindFailed { uid, error }
            }
        };
        self.report(event).await;
    }

    /// Volumes first, then devices (plugins-nodes.md 2.8).
    async fn pre_bind(
        &self,
        (pod, uid): (&ObjectKey, &str),
        node: &str,
        PreBindWrites { bindings, provisions, devices }: &PreBindWrites,
    ) -> Result<(Vec<StorageObject>, Vec<ResourceClaim>), String> {
        let volumes = pre_bind::write(&self.core, node, bindings, provisions).await;
        let volumes = volumes.map_err(|error| format!("binding volumes: {error}"))?;
        let claims = devices::reserve(&self.core, (pod, uid), devices).await;
        Ok((volumes, claims.map_err(|error| error.to_string())?))
    }

    async fn tell_pod(
        &self,
        pod: ObjectKey,
        uid: Arc<str>,
        (reason, message): (&str, &str),
        nomination: &Nomination,
    ) -> Option<Rest> {
        let about = About::Pod { key: pod.clone(), uid: uid.clone() };
        self.note(about, true, "FailedScheduling", message);
        let text = (reason, message);
        let answer = status::set_pod_scheduled(&self.core, &pod, &uid, text, nomination).await;
        self.pod_written(pod, uid, answer, *nomination != Nomination::Keep).await
    }

    async fn set_queue(&self, queue: Arc<str>, allocated: &[(String, String)]) {
        if let Err(error) = status::set_queue(&self.volcano, &queue, allocated).await {
            tracing::warn!(%queue, %error, "queue status not written");
            self.report(ClusterEvent::QueueFailed { name: queue }).await;
        }
    }

    /// Written again when the watch still shows another value.
    async fn annotate(&self, queue: &str, key: &str, value: &str) {
        if let Err(error) = status::annotate_queue(&self.volcano, queue, key, value).await {
            tracing::warn!(%queue, annotation = key, %error, "queue not annotated");
        }
    }

    async fn set_node_shard(&self, shard: Arc<str>, nodes: [(&str, &[Arc<str>]); 3]) {
        if let Err(error) = status::set_node_shard(&self.volcano, &shard, nodes).await {
            tracing::warn!(%shard, %error, "node shard status not written");
            self.report(ClusterEvent::NodeShardFailed { name: shard }).await;
        }
    }

    async fn bound(
        &self,
        pod: ObjectKey,
        uid: Arc<str>,
        node: Arc<str>,
        answer: Result<(), CallError>,
    ) -> Option<Rest> {
        match answer {
            Ok(()) => {
                tracing::debug!(v = 3, %pod, %node, "bound");
                let text = format!("Successfully assigned {pod} to {node}");
                self.note(About::Pod { key: pod, uid }, false, "Scheduled", &text);
                None
            }
            Err(error) => {
                tracing::warn!(%pod, %node, %error, "not bound");
                if error.is_conflict() && error.to_string().contains(ASSIGNED) {
                    self.observer.foreign_bind();
                    tracing::warn!("pod {pod}: bound by somebody else\n{TWO_SCHEDULERS}");
                }
                let (error, failed) = (error.to_string(), uid.clone());
                self.report(ClusterEvent::BindFailed { uid: failed, node, error }).await;
                Some(Rest::Look { pod, uid })
            }
        }
    }

    /// `nominates`: it was to change the nomination, of which nobody knows now what it is.
    async fn pod_written(
        &self,
        pod: ObjectKey,
        uid: Arc<str>,
        answer: Result<bool, CallError>,
        nominates: bool,
    ) -> Option<Rest> {
        let error = answer.err()?;
        tracing::warn!(%pod, %error, "pod status not written");
        self.report(ClusterEvent::PodStatusFailed { uid: uid.clone() }).await;
        nominates.then_some(Rest::Look { pod, uid })
    }

    /// Whether the claims are free.
    async fn unreserve(&self, pod: &ObjectKey, uid: &str, claims: &[Arc<str>]) -> bool {
        let answer = devices::unreserve(&self.core, pod, uid, claims).await;
        if let Err(error) = &answer {
            tracing::warn!(%pod, %error, "claims are still reserved for a pod that is not bound");
        }
        answer.is_ok()
    }

    async fn evict(
        &self,
        pod: ObjectKey,
        uid: Arc<str>,
        pod_group: Option<Box<(ObjectKey, Arc<str>)>>,
        texts: &EvictTexts,
    ) -> Option<Rest> {
        if let Some((key, uid)) = pod_group.map(|group| *group) {
            self.note(About::PodGroup { key, uid }, false, "Evict", &texts.of_group);
        }
        let about = About::Pod { key: pod.clone(), uid: uid.clone() };
        self.note(about, true, "Evict", &texts.of_pod);
        let error = evict::evict(&self.core, &pod, &uid, &texts.of_condition).await.err()?;
        tracing::warn!(%pod, %error, "not evicted cleanly");
        Some(Rest::Look { pod, uid })
    }

    async fn set_pod_group(&self, key: ObjectKey, uid: &str, status: &PodGroupStatus) {
        let to = (&self.volcano, &self.pod_groups);
        match status::set_pod_group(to, &self.kept, &key, uid, status).await {
            Ok(resource_version) => {
                self.report(ClusterEvent::PodGroupWritten { key, resource_version }).await;
            }
            Err(error) => {
                tracing::warn!(pod_group = %key, %error, "pod group status not written");
                self.report(ClusterEvent::PodGroupFailed { key }).await;
            }
        }
    }

    /// Tries until it is done.
    pub(crate) async fn finish(&self, rest: Rest) {
        let mut pause = RESYNC_PAUSE;
        while !caught(&*self.observer, "resync", self.try_to_finish(&rest)).await.unwrap_or(false) {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RESYNC_PAUSE_MAX);
        }
    }

    /// What the answer says about a pod is believed (core.md 4.5).
    async fn try_to_finish(&self, rest: &Rest) -> bool {
        let (key, uid) = match rest {
            Rest::Look { pod, uid } => (pod, uid),
            Rest::Free { pod, uid, claims } => return self.unreserve(pod, uid, claims).await,
        };
        let path = format!("/api/v1/namespaces/{}/pods/{}", key.namespace, key.name);
        match read::<SlimPod>(&self.core, &path).await {
            Ok(pod) => {
                let event = pod.and_then(|pod| Object::of(pod).event::<SlimPod>(&*self.observer));
                self.report(seen(key.clone(), uid.clone(), event)).await;
                true
            }
            Err(error) => {
                tracing::warn!(pod = %key, %error, "pod not read again");
                false
            }
        }
    }

    pub(crate) fn note(&self, about: About, warning: bool, reason: &'static str, message: &str) {
        self.recorder.record(Note {
            about: about.into(),
            warning,
            reason,
            message: message.into(),
        });
    }

    pub(crate) async fn report(&self, event: ClusterEvent) {
        // The engine is gone only when the process ends.
        let _ = self.inbox.send(Incoming::Event(event)).await;
    }
}

/// Another pod of that name will be told by the watch.
fn seen(key: ObjectKey, uid: Arc<str>, event: Option<ClusterEvent>) -> ClusterEvent {
    match event {
        Some(ClusterEvent::PodApplied(record)) if record.uid == uid => {
            ClusterEvent::PodResynced(record)
        }
        _ => ClusterEvent::PodDeleted { key, uid },
    }
}
