//! Performs the effects of cycles, at most 64 calls at a time; what fails comes back as an event of
//! a later cycle. Specification: core.md 7, 4.5 (resync), 11; rust-ecosystem.md 3 (K-03).

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use rustc_hash::FxHashMap;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use vc_engine::{About, Effect};
use vc_model::{
    ClaimPromise, ClusterEvent, ObjectKey, PodGroupStatus, ReservedClaim, ResourceClaim,
    StorageObject,
};
use vc_wire::SlimPod;

use crate::backlog::Backlog;
use crate::call::{CallError, read};
use crate::client::Clients;
use crate::correlate::Note;
use crate::events::Recorder;
use crate::evict::EvictTexts;
use crate::inbox::Incoming;
use crate::kept::Kept;
use crate::lanes::{Lanes, Target};
use crate::observe::{Observer, since};
use crate::pump::Decisions;
use crate::slim::Object;
use crate::{bind, devices, evict, pre_bind, status};

/// Calls in flight, each on a connection of its own (K-03).
const IN_FLIGHT: usize = 64;
/// Of the server's answer to the binding of a bound pod.
const ASSIGNED: &str = "is already assigned to node";
const TWO_SCHEDULERS: &str = "hint: does another scheduler serve the same schedulerName? Several \
    replicas need --leader-elect=true and the same Lease";
/// First and longest pause between two attempts to look at a pod again.
const RESYNC_PAUSE: Duration = Duration::from_millis(5);
const RESYNC_PAUSE_MAX: Duration = Duration::from_secs(1000);

/// Performs what arrives until the sender is gone and everything is done; events get a little time
/// at the end.
pub async fn write(
    clients: Clients,
    component: String,
    inbox: mpsc::Sender<Incoming>,
    mut decisions: mpsc::Receiver<Decisions>,
    observer: Arc<dyn Observer>,
) {
    let (busy, yields) = watch::channel(false);
    let (recorder, events) = Recorder::new(clients.events, component, yields);
    let events = tokio::spawn(events);
    let Clients { core, volcano, backlog, kept, .. } = clients;
    let observed = observer.clone();
    let writer = Writer { core, volcano, recorder, inbox, observer: observed, kept };
    let mut pool = Pool {
        writer: Arc::new(writer),
        created_micros: FxHashMap::default(),
        lanes: Lanes::default(),
        in_flight: JoinSet::new(),
        resyncs: JoinSet::new(),
        busy,
        backlog,
    };
    let mut open = true;
    while open || !pool.in_flight.is_empty() {
        tokio::select! {
            batch = decisions.recv(), if open => match batch {
                Some(batch) => pool.accept(batch),
                // Nothing rests at the end.
                None => {
                    open = false;
                    pool.lanes.wake(None);
                }
            },
            () = rested(pool.lanes.rested_at()), if open => pool.lanes.wake(Some(now())),
            Some(done) = pool.in_flight.join_next() => pool.finished(done),
            Some(done) = pool.resyncs.join_next() => pool.resynced(done),
        }
        pool.start();
    }
    drop(pool);
    if events.await.is_err() {
        observer.internal_error("event");
        tracing::error!("the writer of events has failed");
    }
}

async fn rested(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// A pod that has to be looked at again after a failed write.
/// Volumes to bind to claims, claims to provision, claims of devices to reserve.
type Promised<'a> = (&'a [(ReservedClaim, Arc<str>)], &'a [ReservedClaim], &'a [ClaimPromise]);
type Resync = (ObjectKey, Arc<str>);
type Joined<T> = Result<T, tokio::task::JoinError>;

struct Pool {
    writer: Arc<Writer>,
    /// Of the pods whose bind waits.
    created_micros: FxHashMap<Arc<str>, i64>,
    lanes: Lanes,
    in_flight: JoinSet<(Target, Option<Resync>)>,
    /// They wait between attempts, so they do not count.
    resyncs: JoinSet<Target>,
    /// Whether calls are in flight, for which events make room.
    busy: watch::Sender<bool>,
    backlog: Backlog,
}

impl Pool {
    fn accept(&mut self, decisions: Decisions) {
        self.created_micros.extend(decisions.created_micros);
        for effect in decisions.effects {
            match (Target::of(&effect), effect) {
                (Some(target), effect) => self.lanes.push(target, effect, now()),
                (None, Effect::Event { about, warning, reason, message }) => {
                    self.writer.note(about, warning, reason, &message);
                }
                (None, _) => {}
            }
        }
    }

    fn start(&mut self) {
        while self.in_flight.len() < IN_FLIGHT
            && let Some((target, effect)) = self.lanes.next()
        {
            let writer = self.writer.clone();
            let created = match &effect {
                Effect::Bind { uid, .. } | Effect::PreBind { uid, .. } => {
                    self.backlog.started();
                    self.created_micros.remove(uid)
                }
                _ => None,
            };
            self.in_flight.spawn(async move { (target, writer.perform(effect, created).await) });
        }
        let busy = !self.in_flight.is_empty();
        self.busy.send_if_modified(|before| std::mem::replace(before, busy) != busy);
    }

    /// The object stays taken while it is looked at again.
    fn finished(&mut self, done: Joined<(Target, Option<Resync>)>) {
        match done {
            Ok((target, None)) => self.lanes.finish(target, now()),
            Ok((target, Some((key, uid)))) => {
                let writer = self.writer.clone();
                self.resyncs.spawn(async move {
                    writer.resync(key, uid).await;
                    target
                });
            }
            Err(error) => {
                self.writer.observer.internal_error("write");
                tracing::error!(%error, "a write has failed inside");
            }
        }
    }

    fn resynced(&mut self, done: Joined<Target>) {
        match done {
            Ok(target) => self.lanes.finish(target, now()),
            Err(error) => {
                self.writer.observer.internal_error("resync");
                tracing::error!(%error, "a resync has failed inside");
            }
        }
    }
}

struct Writer {
    core: Client,
    volcano: Client,
    recorder: Recorder,
    inbox: mpsc::Sender<Incoming>,
    observer: Arc<dyn Observer>,
    kept: Arc<Kept>,
}

impl Writer {
    /// Volumes first, then devices (plugins-nodes.md 2.8).
    async fn pre_bind(
        &self,
        (pod, uid): (&ObjectKey, &str),
        node: &str,
        (bindings, provisions, devices): Promised<'_>,
    ) -> Result<(Vec<StorageObject>, Vec<ResourceClaim>), String> {
        let volumes = pre_bind::write(&self.core, node, bindings, provisions).await;
        let volumes = volumes.map_err(|error| format!("binding volumes: {error}"))?;
        let claims = devices::reserve(&self.core, (pod, uid), devices).await;
        Ok((volumes, claims.map_err(|error| error.to_string())?))
    }

    /// One write; answers the pod that has to be looked at again. `created`: when a pod that is
    /// bound was created, in microseconds since 1970, if that is known.
    async fn perform(&self, effect: Effect, created: Option<i64>) -> Option<Resync> {
        match effect {
            Effect::Bind { pod, uid, node, annotations } => {
                let start = Instant::now();
                let answer = bind::bind(&self.core, &pod, &uid, &node, &annotations).await;
                if answer.is_ok() {
                    self.observer.stage("Bind", start.elapsed());
                    created.inspect(|&at| self.observer.task_stage("Bound", since(at)));
                }
                self.bound(pod, uid, node, answer).await
            }
            Effect::PreBind { pod, uid, node, bindings, provisions, devices } => {
                let start = Instant::now();
                let promised = (&bindings[..], &provisions[..], &devices[..]);
                let event = match self.pre_bind((&pod, &uid), &node, promised).await {
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
                None
            }
            Effect::UnreserveClaims { pod, uid, claims } => {
                if let Err(error) = devices::unreserve(&self.core, &pod, &uid, &claims).await {
                    tracing::warn!(%pod, %error, "claims stay reserved for a pod that is not bound");
                }
                None
            }
            Effect::DeallocateClaim { claim, uid } => {
                if let Err(error) = devices::deallocate(&self.core, &claim, &uid).await {
                    tracing::warn!(%claim, %error, "useless devices are not taken away");
                }
                None
            }
            Effect::Resync { pod, uid } => Some((pod, uid)),
            Effect::Evict { pod, uid, pod_group, reason, for_pod_group, message, .. } => {
                let texts = EvictTexts::new(reason, for_pod_group.as_ref(), message.as_deref());
                self.evict(pod, uid, pod_group, &texts).await
            }
            Effect::PodCondition { pod, uid, reason, message, nomination } => {
                let about = About::Pod { key: pod.clone(), uid: uid.clone() };
                self.note(about, true, "FailedScheduling", &message);
                let text = (&*reason, &*message);
                let write = status::set_pod_scheduled(&self.core, &pod, &uid, text, &nomination);
                let answer = write.await;
                self.pod_written(pod, uid, answer).await;
                None
            }
            Effect::ClearNomination { pod, uid } => {
                let answer = status::clear_nomination(&self.core, &pod, &uid).await;
                self.pod_written(pod, uid, answer).await;
                None
            }
            Effect::PodGroupStatus { pod_group, uid, status, .. } => {
                self.set_pod_group(pod_group, &uid, &status).await;
                None
            }
            Effect::QueueStatus { queue, allocated } => {
                let write = status::set_queue(&self.volcano, &queue, &allocated);
                if let Err(error) = write.await {
                    tracing::warn!(%queue, %error, "queue status not written");
                    self.report(ClusterEvent::QueueFailed { name: queue }).await;
                }
                None
            }
            Effect::QueueAnnotation { queue, key, value } => {
                // Written again when the watch still shows another value.
                if let Err(error) = status::annotate_queue(&self.volcano, &queue, key, &value).await
                {
                    tracing::warn!(%queue, annotation = key, %error, "queue not annotated");
                }
                None
            }
            Effect::NodeShardStatus { shard, nodes_in_use, nodes_to_remove, nodes_to_add } => {
                let nodes = [
                    ("nodesInUse", &*nodes_in_use),
                    ("nodesToRemove", &*nodes_to_remove),
                    ("nodesToAdd", &*nodes_to_add),
                ];
                let write = status::set_node_shard(&self.volcano, &shard, nodes);
                if let Err(error) = write.await {
                    tracing::warn!(%shard, %error, "node shard status not written");
                    self.report(ClusterEvent::NodeShardFailed { name: shard }).await;
                }
                None
            }
            Effect::RemoveGate { pod, uid } => {
                if let Err(error) = status::remove_gate(&self.core, &pod, &uid).await {
                    tracing::warn!(%pod, %error, "scheduling gate not removed");
                    self.report(ClusterEvent::PodStatusFailed { uid }).await;
                }
                None
            }
            Effect::Event { .. } => None,
        }
    }

    async fn bound(
        &self,
        pod: ObjectKey,
        uid: Arc<str>,
        node: Arc<str>,
        answer: Result<(), CallError>,
    ) -> Option<Resync> {
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
                Some((pod, uid))
            }
        }
    }

    async fn pod_written(&self, pod: ObjectKey, uid: Arc<str>, answer: Result<bool, CallError>) {
        if let Err(error) = answer {
            tracing::warn!(%pod, %error, "pod status not written");
            self.report(ClusterEvent::PodStatusFailed { uid }).await;
        }
    }

    async fn evict(
        &self,
        pod: ObjectKey,
        uid: Arc<str>,
        pod_group: Option<(ObjectKey, Arc<str>)>,
        texts: &EvictTexts,
    ) -> Option<Resync> {
        if let Some((key, uid)) = pod_group {
            self.note(About::PodGroup { key, uid }, false, "Evict", &texts.of_group);
        }
        let about = About::Pod { key: pod.clone(), uid: uid.clone() };
        self.note(about, true, "Evict", &texts.of_pod);
        let error = evict::evict(&self.core, &pod, &uid, &texts.of_condition).await.err()?;
        tracing::warn!(%pod, %error, "not evicted cleanly");
        Some((pod, uid))
    }

    async fn set_pod_group(&self, key: ObjectKey, uid: &str, status: &PodGroupStatus) {
        match status::set_pod_group(&self.volcano, &self.kept, &key, uid, status).await {
            Ok(resource_version) => {
                self.report(ClusterEvent::PodGroupWritten { key, resource_version }).await;
            }
            Err(error) => {
                tracing::warn!(pod_group = %key, %error, "pod group status not written");
                self.report(ClusterEvent::PodGroupFailed { key }).await;
            }
        }
    }

    /// GET the pod until there is an answer; what it says is believed (core.md 4.5).
    async fn resync(&self, key: ObjectKey, uid: Arc<str>) {
        let path = format!("/api/v1/namespaces/{}/pods/{}", key.namespace, key.name);
        let mut pause = RESYNC_PAUSE;
        loop {
            match read::<SlimPod>(&self.core, &path).await {
                Ok(pod) => {
                    let event =
                        pod.and_then(|pod| Object::of(pod).event::<SlimPod>(&*self.observer));
                    return self.report(seen(key, uid, event)).await;
                }
                Err(error) => tracing::warn!(pod = %key, %error, "pod not read again"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RESYNC_PAUSE_MAX);
        }
    }

    fn note(&self, about: About, warning: bool, reason: &'static str, message: &str) {
        self.recorder.record(Note {
            about: about.into(),
            warning,
            reason,
            message: message.into(),
        });
    }

    async fn report(&self, event: ClusterEvent) {
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
