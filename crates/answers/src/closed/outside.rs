//! Extracts from a recorded story what others did, and how long pods ran. What only follows from decisions of the
//! scheduler is left out. Specification: answers.md 15 (ANS-106).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use vc_conf::Config;
use vc_engine::{BatchKind, Effect, Engine, EngineBatch, EngineCommand};
use vc_model::{
    Cluster, ClusterEvent, ObjectKey, PodGroupRecord, PodGroupStatus, PodPhase, PodRecord, Task,
    TaskStatus,
};

/// A recorded story without what follows from decisions.
#[derive(Debug, Default)]
pub struct OutsideStory {
    pub(super) steps: Vec<OutsideStep>,
    /// How long each pod ran, in microseconds, by the UID of the first pod of its succession.
    pub(super) runs: BTreeMap<Arc<str>, i64>,
    /// When the story begins, in microseconds since 1970.
    pub(super) begin_micros: i64,
    /// Changes since the last cycle, which the next one is given.
    pending: Vec<OutsideChange>,
    /// Time of the last batch, in microseconds since 1970.
    now_micros: i64,
    /// Names of this scheduler.
    scheduler_names: Vec<Arc<str>>,
    /// Pods by the UID of the first one of their succession: an evicted pod, and the one in its stead.
    pods: BTreeMap<Arc<str>, RecordedPod>,
    /// The first pod of a succession, by the UID of a later one.
    successions: BTreeMap<Arc<str>, Arc<str>>,
    /// Evicted pods of each job in whose stead no other has come yet.
    vacancies: BTreeMap<ObjectKey, VecDeque<Arc<str>>>,
    /// Waiting pods that were deleted since the last cycle.
    deleted_pods: BTreeMap<Arc<str>, RecordedPod>,
    groups: BTreeMap<ObjectKey, PodGroupRecord>,
}

/// A cycle of the recorded story.
#[derive(Debug)]
pub(super) struct OutsideStep {
    /// Microseconds since 1970.
    pub(super) now_micros: i64,
    /// Changes before it.
    pub(super) changes: Vec<OutsideChange>,
}

/// A change by others.
#[derive(Debug)]
pub(super) enum OutsideChange {
    /// The engine is given this event.
    Event(Box<ClusterEvent>),
    /// An own pod is new, or its object is another one. It has no node.
    Pod(Box<PodRecord>),
    /// A waiting pod is deleted, whatever it does now.
    DeletePod(Arc<str>),
    /// A pod is removed so many microseconds after its end.
    RemovePod {
        uid: Arc<str>,
        after_micros: i64,
    },
    PodGroup(Box<PodGroupRecord>),
    /// A PodGroup is deleted, which waits for its pods.
    DeletePodGroup(ObjectKey),
    Configure(Box<Config>),
    ServeDevices,
}

/// An own or foreign pod of the recorded story.
#[derive(Debug, Default)]
struct RecordedPod {
    /// UID of the last pod of the succession.
    current: Arc<str>,
    job: Option<ObjectKey>,
    /// It is another scheduler's, or had its node from the beginning.
    is_foreign: bool,
    /// The object as others made it. `None`: it was not told since the beginning.
    object: Option<Box<PodRecord>>,
    /// The scheduler has removed its gate.
    is_ungated: bool,
    /// When it was bound, in microseconds since 1970.
    bound_micros: Option<i64>,
    ended_micros: Option<i64>,
    is_evicted: bool,
}

impl OutsideStory {
    /// Begins with the state of an engine at a time in microseconds since 1970.
    pub fn new(engine: &Engine, begin_micros: i64) -> Self {
        let cluster = engine.cluster();
        let pod = |row: &Task| (row.uid.clone(), RecordedPod::known(cluster, row, begin_micros));
        let groups = cluster.jobs.iter().filter_map(|(job, _)| cluster.pod_group_record(job));
        Self {
            begin_micros,
            now_micros: begin_micros,
            scheduler_names: cluster.settings.scheduler_names.clone(),
            pods: cluster.tasks.iter().map(|(_, row)| pod(row)).collect(),
            groups: groups.map(|group| (group.key.clone(), group)).collect(),
            ..Self::default()
        }
    }

    /// Adds a command of the recorded story. `cluster`: the state after it.
    pub fn add_command(&mut self, command: &EngineCommand, cluster: &Cluster) {
        match command {
            EngineCommand::Apply(events) => self.add_events(events, cluster),
            EngineCommand::Configure(config) => {
                self.pending.push(OutsideChange::Configure(config.clone()));
            }
            EngineCommand::ServeDevices => self.pending.push(OutsideChange::ServeDevices),
        }
    }

    /// Adds a batch of the recorded story with its effects. `cluster`: the state after it.
    pub fn add_batch(&mut self, batch: &EngineBatch, effects: &[Effect], cluster: &Cluster) {
        self.now_micros = batch.now.unix_micros;
        self.add_events(&batch.events, cluster);
        if batch.kind == BatchKind::Cycle {
            let (now_micros, changes) = (self.now_micros, std::mem::take(&mut self.pending));
            self.steps.push(OutsideStep { now_micros, changes });
            self.deleted_pods.clear();
        }
        for effect in effects {
            match effect {
                Effect::Bind { uid, .. } => {
                    let now_micros = self.now_micros;
                    self.change_pod(uid, |pod| pod.bound_micros = Some(now_micros));
                }
                Effect::Evict { uid, .. } => self.evict(uid),
                Effect::RemoveGate { uid, .. } => {
                    self.change_pod(uid, |pod| pod.is_ungated = true);
                }
                _ => {}
            }
        }
    }

    fn add_events(&mut self, events: &[ClusterEvent], cluster: &Cluster) {
        for event in events {
            match event {
                ClusterEvent::PodApplied(pod) | ClusterEvent::PodRead { pod, .. } => {
                    self.add_pod(pod, job_of(cluster, &pod.uid));
                }
                ClusterEvent::PodDeleted { uid, .. } => self.delete_pod(uid, event),
                ClusterEvent::PodGroupApplied(group) => self.add_group(group),
                ClusterEvent::PodGroupDeleted { key } => {
                    self.groups.remove(key);
                    self.pending.push(OutsideChange::DeletePodGroup(key.clone()));
                }
                ClusterEvent::BindFailed { uid, .. } => {
                    self.change_pod(uid, |pod| pod.bound_micros = None);
                }
                ClusterEvent::EvictFailed { uid, .. } => self.withdraw_eviction(uid),
                _ if is_answer(event) => {}
                _ => self.pending.push(OutsideChange::Event(Box::new(event.clone()))),
            }
        }
    }

    fn add_pod(&mut self, pod: &PodRecord, job: Option<ObjectKey>) {
        let first = self.first_of(&pod.uid);
        if !self.pods.contains_key(&first) {
            return self.add_new_pod(pod, job);
        }
        let now_micros = self.now_micros;
        let Some(known) = self.pods.get_mut(&first).filter(|known| known.current == pod.uid) else {
            // It was evicted, and has a successor.
            return;
        };
        let gets_job = known.job.is_none() && job.is_some();
        known.job = job.or(known.job.take());
        if known.is_foreign {
            return self.pending.push(applied(pod));
        }
        if known.bound_micros.is_none() && pod.node_name.is_some() {
            known.bound_micros = Some(now_micros);
        }
        let is_over = matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed);
        if is_over && known.ended_micros.is_none() && !known.is_evicted {
            known.ended_micros = Some(now_micros);
            let run = known.bound_micros.map(|bound| now_micros.saturating_sub(bound));
            self.runs.extend(run.map(|run| (first.clone(), run)));
        }
        let mut object = without_decisions(pod);
        if known.is_ungated {
            let gates = known.object.as_ref().map(|object| object.scheduling_gates.clone());
            object.scheduling_gates = gates.unwrap_or_default();
        }
        // A successor comes in the stead of a pod whose object is known.
        let is_first = *first == *pod.uid;
        let is_changed = known.object.as_ref().is_some_and(|before| **before != object);
        known.object = Some(Box::new(object.clone()));
        if is_first && (is_changed || gets_job) {
            self.pending.push(OutsideChange::Pod(Box::new(object)));
        }
    }

    fn add_new_pod(&mut self, pod: &PodRecord, job: Option<ObjectKey>) {
        if let Some(known) = self.deleted_pods.remove(&pod.uid) {
            // It was only forgotten, as after a restore of the API server.
            self.pending
                .retain(|it| !matches!(it, OutsideChange::DeletePod(uid) if *uid == pod.uid));
            self.pods.insert(pod.uid.clone(), known);
            return;
        }
        let evicted = job.as_ref().and_then(|job| self.vacancies.get_mut(job)?.pop_front());
        if let Some(first) = evicted {
            self.change_pod(&first, |known| {
                known.current = pod.uid.clone();
                (known.is_evicted, known.is_ungated, known.bound_micros) = (false, false, None);
                known.object = None;
            });
            self.successions.insert(pod.uid.clone(), first);
            return;
        }
        let is_own = self.scheduler_names.contains(&pod.scheduler_name);
        let is_foreign = pod.node_name.is_some() || !is_own;
        let object = (!is_foreign).then(|| Box::new(without_decisions(pod)));
        self.pending.push(match &object {
            Some(object) => OutsideChange::Pod(object.clone()),
            None => applied(pod),
        });
        let current = pod.uid.clone();
        let known = RecordedPod { current, job, is_foreign, object, ..RecordedPod::default() };
        self.pods.insert(pod.uid.clone(), known);
    }

    fn evict(&mut self, uid: &Arc<str>) {
        let first = self.first_of(uid);
        let Some(known) = self.pods.get_mut(&first) else { return };
        let was_evicted = std::mem::replace(&mut known.is_evicted, true);
        if let Some(job) = known.job.clone().filter(|_| !was_evicted) {
            self.vacancies.entry(job).or_default().push_back(first);
        }
    }

    fn withdraw_eviction(&mut self, uid: &Arc<str>) {
        let first = self.first_of(uid);
        let Some(known) = self.pods.get_mut(&first).filter(|known| known.current == *uid) else {
            return;
        };
        known.is_evicted = false;
        let vacancies = known.job.as_ref().and_then(|job| self.vacancies.get_mut(job));
        vacancies.into_iter().for_each(|vacancies| vacancies.retain(|it| *it != first));
    }

    fn delete_pod(&mut self, uid: &Arc<str>, event: &ClusterEvent) {
        let (first, now_micros) = (self.first_of(uid), self.now_micros);
        let Some(known) = self.pods.get_mut(&first).filter(|known| known.current == *uid) else {
            return;
        };
        let change = match (known.ended_micros, known.bound_micros) {
            _ if known.is_foreign => OutsideChange::Event(Box::new(event.clone())),
            _ if known.is_evicted => return,
            (Some(ended), _) => {
                let after_micros = now_micros.saturating_sub(ended);
                OutsideChange::RemovePod { uid: first.clone(), after_micros }
            }
            (None, Some(bound)) => {
                self.runs.insert(first.clone(), now_micros.saturating_sub(bound));
                OutsideChange::RemovePod { uid: first.clone(), after_micros: 0 }
            }
            (None, None) => OutsideChange::DeletePod(first.clone()),
        };
        let known = self.pods.remove(&first);
        if matches!(change, OutsideChange::DeletePod(_)) {
            self.deleted_pods.extend(known.map(|known| (first, known)));
        }
        self.pending.push(change);
    }

    fn add_group(&mut self, group: &PodGroupRecord) {
        let is_deletion = |it: &OutsideChange| matches!(it, OutsideChange::DeletePodGroup(key) if *key == group.key);
        let n_before = self.pending.len();
        self.pending.retain(|change| !is_deletion(change));
        // It was only forgotten, as after a restore of the API server, or is another one of its name.
        let is_forgotten = self.pending.len() < n_before;
        match self.groups.insert(group.key.clone(), group.clone()) {
            None if !is_forgotten => {
                let event = ClusterEvent::PodGroupApplied(Box::new(group.clone()));
                self.pending.push(OutsideChange::Event(Box::new(event)));
            }
            Some(before) if is_same_spec(&before, group) => {}
            _ => self.pending.push(OutsideChange::PodGroup(Box::new(group.clone()))),
        }
    }

    fn change_pod(&mut self, uid: &Arc<str>, change: impl FnOnce(&mut RecordedPod)) {
        let first = self.first_of(uid);
        if let Some(pod) = self.pods.get_mut(&first) {
            change(pod);
        }
    }

    /// Returns the UID of the first pod in the succession of this one.
    fn first_of(&self, uid: &Arc<str>) -> Arc<str> {
        self.successions.get(uid).unwrap_or(uid).clone()
    }
}

impl RecordedPod {
    /// Returns the pod of a row at the beginning.
    fn known(cluster: &Cluster, row: &Task, begin_micros: i64) -> Self {
        let has_ended = row.status.is_terminated();
        let bound = row.scheduled_micros.or(row.started_micros).unwrap_or(begin_micros);
        Self {
            current: row.uid.clone(),
            job: row.job.map(|job| cluster.jobs[job].key.clone()),
            is_foreign: row.job.is_none() && row.node.is_some(),
            object: None,
            is_ungated: false,
            bound_micros: (row.node.is_some() || has_ended).then_some(bound),
            ended_micros: has_ended.then_some(begin_micros),
            is_evicted: is_evicted(row),
        }
    }
}

/// True if a scheduler has evicted the pod, and it is still there.
pub(super) fn is_evicted(row: &Task) -> bool {
    row.status == TaskStatus::Releasing && (row.evicting || row.preempted)
}

fn applied(pod: &PodRecord) -> OutsideChange {
    OutsideChange::Event(Box::new(ClusterEvent::PodApplied(Box::new(pod.clone()))))
}

/// Returns the object without what follows from decisions.
fn without_decisions(pod: &PodRecord) -> PodRecord {
    PodRecord {
        deleting: false,
        deletion_micros: None,
        node_name: None,
        phase: PodPhase::Pending,
        evicted_by_scheduler: false,
        started_micros: None,
        scheduled_condition: None,
        scheduled_micros: None,
        nominated_node: None,
        ..pod.clone()
    }
}

fn job_of(cluster: &Cluster, uid: &str) -> Option<ObjectKey> {
    let row = &cluster.tasks[cluster.task(uid)?];
    row.job.map(|job| cluster.jobs[job].key.clone())
}

/// True if nobody has changed what the scheduler reads of the PodGroup, but its status.
fn is_same_spec(before: &PodGroupRecord, after: &PodGroupRecord) -> bool {
    let spec = |group: &PodGroupRecord| PodGroupRecord {
        resource_version: Arc::default(),
        status: PodGroupStatus::default(),
        ..group.clone()
    };
    spec(before) == spec(after)
}

/// True for an answer to a write of the scheduler, but to those of volumes, of which some may be on their way at
/// the beginning.
fn is_answer(event: &ClusterEvent) -> bool {
    matches!(
        event,
        ClusterEvent::PodStatusFailed { .. }
            | ClusterEvent::PodGroupWritten { .. }
            | ClusterEvent::PodGroupFailed { .. }
            | ClusterEvent::QueueFailed { .. }
            | ClusterEvent::NodeShardFailed { .. }
            | ClusterEvent::PreBindFailed { .. }
            | ClusterEvent::UsageNotSaved
    )
}
