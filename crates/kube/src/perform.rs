//! One write: what is sent, and what of it comes back as an event of a later cycle. Specification:
//! core.md 7, 4.5 (resync), 11.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kube::Client;
use tokio::sync::mpsc;
use vc_engine::{About, Effect, NodeLock, Nomination, PreBindWrites};
use vc_model::{
    ClusterEvent, ObjectKey, PodGroupStatus, ReadAfter, ResourceClaim, SavedUsage, StorageObject,
};
use vc_wire::SlimPod;

use crate::call::{CallError, read};
use crate::correlate::EventNote;
use crate::direct::DirectClient;
use crate::event_batch::EventCopies;
use crate::events::EventRecorder;
use crate::evict::EvictTexts;
use crate::failed::caught;
use crate::failure_log::FailureLog;
use crate::inbox::EngineMessage;
use crate::observe::Observer;
use crate::pod_group_cache::PodGroupCache;
use crate::slim::DecodedObject;
use crate::usage_store::{UsageStore, save_usage};
use crate::wall_clock::since;
use crate::{bind, devices, evict, node_lock, pauses, pre_bind, queues, status};

/// Of the server's answer to the binding of a bound pod.
const ASSIGNED: &str = "is already assigned to node";
const TWO_SCHEDULERS: &str = "hint: does another scheduler serve the same schedulerName? Several \
    replicas need --leader-elect=true and the same Lease";
/// Of the server's answer when the right to write the status of queues is missing.
const CANNOT_UPDATE_QUEUE_STATUS: &str = "cannot update resource \"queues/status\"";
/// What is logged then.
const QUEUE_STATUS_REFUSED: &str = "the status of queues cannot be written: no right to update \
    queues/status in API group scheduling.volcano.sh (403). status.allocated of queues stays as it \
    is, in kubectl get queue and in dashboards; what is scheduled does not depend on it\n\
    hint: add to the ClusterRole of the scheduler: {apiGroups: [\"scheduling.volcano.sh\"], \
    resources: [queues/status], verbs: [update]}";
/// How much longer than we wait for an answer a server may still do what it was asked: it gives up a
/// request after 60 s.
const STILL_POSSIBLE: Duration = Duration::from_secs(35);
/// First pause between two attempts to look at a pod again; a refused write has one of its own.
const RESYNC_PAUSE: Duration = Duration::from_millis(5);

/// What a failed write leaves to be done, however long that takes. Its object stays taken meanwhile.
pub(crate) enum FollowUp {
    /// The pod is read again, since nobody knows how this write of it has ended.
    Read { pod: ObjectKey, uid: Arc<str>, after: ReadAfter },
    /// Its claims are freed.
    Free { pod: ObjectKey, uid: Arc<str>, claims: Vec<Arc<str>> },
    /// The queue is made again.
    Create { queue: Arc<str>, reclaimable: bool },
}

/// How a write has ended.
#[derive(Default)]
pub(crate) struct WriteOutcome {
    pub(crate) rest: Option<FollowUp>,
    /// The same write would fail again, so that it is repeated after a pause.
    pub(crate) is_refused: bool,
}

impl From<Option<FollowUp>> for WriteOutcome {
    fn from(rest: Option<FollowUp>) -> Self {
        Self { rest, is_refused: false }
    }
}

impl WriteOutcome {
    fn refused_by(error: &CallError) -> Self {
        Self { rest: None, is_refused: error.pauses() }
    }
}

/// A pod and when it was created, in microseconds since 1970, if that is known.
type PodRef = (ObjectKey, Arc<str>, Option<i64>);

/// What writes need.
pub(crate) struct EffectWriter {
    pub(crate) core: Client,
    pub(crate) volcano: Client,
    pub(crate) binds: DirectClient,
    pub(crate) pod_groups: DirectClient,
    pub(crate) recorder: EventRecorder,
    pub(crate) inbox: mpsc::Sender<EngineMessage>,
    pub(crate) event_copies: EventCopies,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) pod_group_cache: Arc<PodGroupCache>,
    pub(crate) usage_store: Arc<UsageStore>,
    pub(crate) failures: Arc<FailureLog>,
    /// The status of queues was refused, which is logged once: the role of Volcano 1.12.0 lacks the
    /// right.
    pub(crate) queue_status_refused: AtomicBool,
}

impl EffectWriter {
    /// Performs one write; answers how it has ended. `created`: when a pod that
    /// is bound was created, in microseconds since 1970, if that is known.
    pub(crate) async fn perform(&self, effect: Effect, created: Option<i64>) -> WriteOutcome {
        match effect {
            Effect::Bind { pod, uid, node, annotations, node_lock } => {
                let lock = node_lock.as_deref();
                self.bind((pod, uid, created), node, &annotations, lock).await.into()
            }
            Effect::PreBind { pod, uid, node, writes } => {
                self.prepare((pod, uid, created), &node, &writes).await;
                WriteOutcome::default()
            }
            Effect::UnreserveClaims { pod, uid, claims } => {
                let freed = self.unreserve(&pod, &uid, &claims).await;
                (!freed).then_some(FollowUp::Free { pod, uid, claims }).into()
            }
            Effect::DeallocateClaim { claim, uid, allocation, consumer } => {
                let of = (&claim, &*uid);
                let answer = devices::deallocate(&self.core, of, &allocation, &consumer).await;
                let Err(error) = answer else { return WriteOutcome::default() };
                self.failures.warn("useless devices not taken away", &claim, &error);
                WriteOutcome { rest: None, is_refused: error.pauses() }
            }
            Effect::Resync { pod, uid } => {
                Some(FollowUp::Read { pod, uid, after: ReadAfter::Bind }).into()
            }
            Effect::Evict { pod, uid, pod_group, reason, for_pod_group, message, .. } => {
                let texts = EvictTexts::new(reason, for_pod_group.as_deref(), message.as_deref());
                self.evict(pod, uid, pod_group, &texts).await.into()
            }
            Effect::PodCondition { pod, uid, condition, nomination } => {
                let (reason, message) = (&condition.reason, &condition.message);
                self.tell_pod(pod, uid, (reason, message), &nomination).await
            }
            Effect::ClearNomination { pod, uid } => {
                let answer = status::clear_nomination(&self.core, &pod, &uid).await;
                self.pod_written(pod, uid, answer, true).await
            }
            Effect::RemoveGate { pod, uid } => {
                let answer = status::remove_gate(&self.core, &pod, &uid).await;
                let event = ClusterEvent::PodStatusFailed { uid };
                self.done(answer, "scheduling gate not removed", &pod, Some(event)).await
            }
            Effect::PodGroupStatus { pod_group, uid, status, .. } => {
                self.set_pod_group(pod_group, &uid, &status).await
            }
            Effect::QueueStatus { queue, allocated } => self.set_queue(queue, &allocated).await,
            // Written again when the watch still shows another value.
            Effect::QueueAnnotation { queue, key, value } => {
                let answer = status::annotate_queue(&self.volcano, &queue, key, &value).await;
                self.done(answer, "queue not annotated", format!("{queue}, {key}"), None).await
            }
            Effect::NodeShardStatus { shard, nodes_in_use, nodes_to_remove, nodes_to_add } => {
                let nodes = [
                    ("nodesInUse", &*nodes_in_use),
                    ("nodesToRemove", &*nodes_to_remove),
                    ("nodesToAdd", &*nodes_to_add),
                ];
                let answer = status::set_node_shard(&self.volcano, &shard, nodes).await;
                let event = ClusterEvent::NodeShardFailed { name: shard.clone() };
                self.done(answer, "node shard status not written", &shard, Some(event)).await
            }
            Effect::SaveUsage { config_map, usage } => {
                self.save_usage(&config_map, &usage).await;
                WriteOutcome::default()
            }
            Effect::CreateQueue { queue, reclaimable } => {
                tracing::warn!("queue {queue} was deleted by somebody: it is made again");
                Some(FollowUp::Create { queue, reclaimable }).into()
            }
            Effect::Event { .. } => WriteOutcome::default(),
        }
    }

    /// A missing right is logged once, for all queues.
    async fn set_queue(&self, queue: Arc<str>, allocated: &[(String, String)]) -> WriteOutcome {
        let answer = status::set_queue(&self.volcano, &queue, allocated).await;
        let lacks_right = |error: &CallError| {
            error.code() == 403 && error.to_string().contains(CANNOT_UPDATE_QUEUE_STATUS)
        };
        let event = ClusterEvent::QueueFailed { name: queue.clone() };
        match answer {
            Err(error) if lacks_right(&error) => {
                if !self.queue_status_refused.swap(true, Ordering::Relaxed) {
                    tracing::warn!("{QUEUE_STATUS_REFUSED}");
                }
                self.report(event).await;
                WriteOutcome::refused_by(&error)
            }
            answer => {
                if answer.is_ok() {
                    self.queue_status_refused.store(false, Ordering::Relaxed);
                }
                self.done(answer, "queue status not written", &queue, Some(event)).await
            }
        }
    }

    /// A write of which nothing is left to be done. A failure is logged and reported as the event.
    async fn done(
        &self,
        answer: Result<(), CallError>,
        what: &'static str,
        object: impl Display,
        event: Option<ClusterEvent>,
    ) -> WriteOutcome {
        let Err(error) = answer else { return WriteOutcome::default() };
        self.failures.warn(what, object, &error);
        if let Some(event) = event {
            self.report(event).await;
        }
        WriteOutcome::refused_by(&error)
    }

    /// What was not saved is saved again after the interval of the configuration.
    async fn save_usage(&self, config_map: &ObjectKey, usage: &SavedUsage) {
        let (result, failure) =
            match save_usage(&self.core, &self.usage_store, config_map, usage).await {
                Ok(0) => ("written", None),
                Ok(n_left_out) => {
                    let text = format!("no room for {n_left_out} accounts with the least usage");
                    ("written", Some(text))
                }
                Err(error) if error.is_conflict() => {
                    ("conflict", Some("somebody else has written it since".to_owned()))
                }
                Err(error) => ("failed", Some(error.to_string())),
            };
        self.observer.usage_saved(result);
        if let Some(failure) = failure {
            self.failures.warn("usage of fairshare not saved", config_map, failure);
        }
        if result != "written" {
            self.report(ClusterEvent::UsageNotSaved).await;
        }
    }

    async fn bind(
        &self,
        (pod, uid, created): PodRef,
        node: Arc<str>,
        annotations: &[(Arc<str>, Arc<str>)],
        lock: Option<&NodeLock>,
    ) -> Option<FollowUp> {
        let start = Instant::now();
        if let Some(lock) = lock
            && let Err(error) = node_lock::lock(&self.core, &node, lock).await
        {
            return self.bound(pod, uid, node, Err(error)).await;
        }
        let answer = bind::bind(&self.binds, &pod, &uid, &node, annotations).await;
        // Without an answer the pod may be bound all the same, and as long as that is possible the room
        // is nobody else's.
        if matches!(answer, Err(CallError::TimedOut(_))) {
            tokio::time::sleep(STILL_POSSIBLE).await;
        }
        let is_refused =
            answer.as_ref().err().is_some_and(|error| !matches!(error, CallError::TimedOut(_)));
        if let Some(lock) = lock.filter(|_| is_refused)
            && let Err(error) = node_lock::unlock(&self.core, &node, lock).await
        {
            self.failures.warn("node not unlocked", &node, &error);
        }
        if answer.is_ok() {
            self.observer.stage("Bind", start.elapsed());
            created.inspect(|&at| self.observer.task_stage("Bound", since(at)));
        }
        self.bound(pod, uid, node, answer).await
    }

    async fn prepare(&self, (pod, uid, created): PodRef, node: &str, writes: &PreBindWrites) {
        let start = Instant::now();
        let event = match self.pre_bind((&pod, &uid), node, writes).await {
            Ok((objects, devices)) => {
                self.observer.stage("PreBind", start.elapsed());
                created.inspect(|&at| self.observer.task_stage("PreBound", since(at)));
                ClusterEvent::VolumesWritten { uid, objects, devices }
            }
            Err((error, pauses)) => {
                self.failures.warn("pre-bind failed", format!("{pod} for node {node}"), &error);
                ClusterEvent::PreBindFailed { uid, error, pauses }
            }
        };
        self.report(event).await;
    }

    /// Volumes first, then devices (plugins-nodes.md 2.8). A failure comes with whether it pauses.
    async fn pre_bind(
        &self,
        (pod, uid): (&ObjectKey, &str),
        node: &str,
        PreBindWrites { bindings, provisions, devices }: &PreBindWrites,
    ) -> Result<(Vec<StorageObject>, Vec<ResourceClaim>), (String, bool)> {
        let volumes = pre_bind::write(&self.core, node, bindings, provisions).await;
        let volumes =
            volumes.map_err(|error| (format!("binding volumes: {error}"), error.pauses()))?;
        let claims = devices::reserve(&self.core, (pod, uid), devices).await;
        Ok((volumes, claims.map_err(|error| (error.to_string(), error.pauses()))?))
    }

    async fn tell_pod(
        &self,
        pod: ObjectKey,
        uid: Arc<str>,
        (reason, message): (&str, &str),
        nomination: &Nomination,
    ) -> WriteOutcome {
        let about = About::Pod { key: pod.clone(), uid: uid.clone() };
        self.note(about, true, "FailedScheduling", message);
        let text = (reason, message);
        let answer = status::set_pod_scheduled(&self.core, &pod, &uid, text, nomination).await;
        self.pod_written(pod, uid, answer, *nomination != Nomination::Keep).await
    }

    async fn bound(
        &self,
        pod: ObjectKey,
        uid: Arc<str>,
        node: Arc<str>,
        answer: Result<(), CallError>,
    ) -> Option<FollowUp> {
        match answer {
            Ok(()) => {
                tracing::debug!(v = 3, %pod, %node, "bound");
                let text = format!("Successfully assigned {pod} to {node}");
                self.note(About::Pod { key: pod, uid }, false, "Scheduled", &text);
                None
            }
            Err(error) => {
                self.failures.warn("pod not bound", format!("{pod} to node {node}"), &error);
                if error.is_conflict() && error.to_string().contains(ASSIGNED) {
                    self.observer.foreign_bind();
                    tracing::warn!("pod {pod}: bound by somebody else\n{TWO_SCHEDULERS}");
                }
                let (pauses, error, failed) = (error.pauses(), error.to_string(), uid.clone());
                let event = ClusterEvent::BindFailed { uid: failed, node, error, pauses };
                self.report(event).await;
                Some(FollowUp::Read { pod, uid, after: ReadAfter::Bind })
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
    ) -> WriteOutcome {
        let event = ClusterEvent::PodStatusFailed { uid: uid.clone() };
        let is_written = answer.is_ok();
        let answer = answer.map(drop);
        let done = self.done(answer, "pod status not written", &pod, Some(event)).await;
        let read = FollowUp::Read { pod, uid, after: ReadAfter::Nomination };
        let rest = (nominates && !is_written).then_some(read);
        WriteOutcome { rest, ..done }
    }

    /// Whether the claims are free.
    async fn unreserve(&self, pod: &ObjectKey, uid: &str, claims: &[Arc<str>]) -> bool {
        let answer = devices::unreserve(&self.core, pod, uid, claims).await;
        if let Err(error) = &answer {
            self.failures.warn("claims still reserved for a pod that is not bound", pod, error);
        }
        answer.is_ok()
    }

    async fn evict(
        &self,
        pod: ObjectKey,
        uid: Arc<str>,
        pod_group: Option<Box<(ObjectKey, Arc<str>)>>,
        texts: &EvictTexts,
    ) -> Option<FollowUp> {
        if let Some((key, uid)) = pod_group.map(|group| *group) {
            self.note(About::PodGroup { key, uid }, false, "Evict", &texts.of_group);
        }
        let about = About::Pod { key: pod.clone(), uid: uid.clone() };
        self.note(about, true, "Evict", &texts.of_pod);
        let error = evict::evict(&self.core, &pod, &uid, &texts.of_condition).await.err()?;
        self.failures.warn("pod not evicted", &pod, &error);
        if error.pauses() {
            let (uid, error) = (uid.clone(), error.to_string());
            self.report(ClusterEvent::EvictFailed { uid, error }).await;
        }
        Some(FollowUp::Read { pod, uid, after: ReadAfter::Eviction })
    }

    async fn set_pod_group(
        &self,
        key: ObjectKey,
        uid: &str,
        status: &PodGroupStatus,
    ) -> WriteOutcome {
        let to = (&self.volcano, &self.pod_groups);
        match status::set_pod_group(to, &self.pod_group_cache, &key, uid, status).await {
            Ok(resource_version) => {
                let status = Box::new(status.clone());
                self.report(ClusterEvent::PodGroupWritten { key, resource_version, status }).await;
                WriteOutcome::default()
            }
            Err(error) => {
                match error.is_gone() {
                    // The watch has not shown that yet.
                    true => tracing::debug!(v = 3, pod_group = %key, "pod group is gone"),
                    false => self.failures.warn("pod group status not written", &key, &error),
                }
                let status = Box::new(status.clone());
                self.report(ClusterEvent::PodGroupFailed { key, status }).await;
                WriteOutcome::refused_by(&error)
            }
        }
    }

    /// Tries until it is done. A pod is looked at again sooner than a refused write is repeated.
    pub(crate) async fn finish(&self, rest: FollowUp) {
        let mut pause = match rest {
            FollowUp::Read { .. } => RESYNC_PAUSE,
            FollowUp::Free { .. } | FollowUp::Create { .. } => pauses::FIRST,
        };
        while !caught(&*self.observer, "resync", self.try_to_finish(&rest)).await.unwrap_or(false) {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(pauses::LONGEST);
        }
    }

    /// What the answer says about a pod is believed (core.md 4.5).
    async fn try_to_finish(&self, rest: &FollowUp) -> bool {
        let (key, uid, after) = match rest {
            FollowUp::Read { pod, uid, after } => (pod, uid, *after),
            FollowUp::Free { pod, uid, claims } => return self.unreserve(pod, uid, claims).await,
            FollowUp::Create { queue, reclaimable } => {
                return self.create_queue(queue, *reclaimable).await;
            }
        };
        let path = format!("/api/v1/namespaces/{}/pods/{}", key.namespace, key.name);
        match read::<SlimPod>(&self.core, &path).await {
            Ok(pod) => {
                let event =
                    pod.and_then(|pod| DecodedObject::of(pod).event::<SlimPod>(&*self.observer));
                self.report(seen((key.clone(), uid.clone()), event, after)).await;
                true
            }
            Err(error) => {
                self.failures.warn("pod not read again", key, &error);
                false
            }
        }
    }

    /// Whether the queue exists.
    async fn create_queue(&self, name: &str, reclaimable: bool) -> bool {
        let answer = queues::create(&self.volcano, name, reclaimable).await;
        if let Err(error) = &answer {
            self.failures.warn("queue not created", name, error);
        }
        answer.is_ok()
    }

    pub(crate) fn note(&self, about: About, warning: bool, reason: &'static str, message: &str) {
        self.recorder.record(EventNote {
            about: about.into(),
            warning,
            reason,
            message: message.into(),
        });
    }

    pub(crate) async fn report(&self, event: ClusterEvent) {
        // The engine is gone only when the process ends.
        let _ = self.inbox.send(self.event_copies.message(event)).await;
    }
}

/// Another pod of that name will be told by the watch.
fn seen(
    (key, uid): (ObjectKey, Arc<str>),
    event: Option<ClusterEvent>,
    after: ReadAfter,
) -> ClusterEvent {
    match event {
        Some(ClusterEvent::PodApplied(pod)) if pod.uid == uid => {
            ClusterEvent::PodRead { pod, after }
        }
        _ => ClusterEvent::PodDeleted { key, uid },
    }
}
