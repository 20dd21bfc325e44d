//! What came from outside the scheduler in a recorded story: objects that others made, changed and deleted, and
//! how long pods ran. What only follows from its decisions is left out. Specification: answers.md 15 (ANS-106).

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
    /// How long each pod ran, in microseconds, by the UID of the first pod of its place in the job.
    pub(super) runs: BTreeMap<Arc<str>, i64>,
    /// When the story begins, in microseconds since 1970.
    pub(super) begin_micros: i64,
    /// Binds and evictions that were recorded.
    pub(super) n_binds: u64,
    pub(super) n_evictions: u64,
    pods: BTreeMap<Arc<str>, RecordedPod>,
    /// The pod that was evicted, by the UID of the one that came in its place.
    places: BTreeMap<Arc<str>, Arc<str>>,
    /// Evicted pods of each job in whose place no other has come yet.
    vacant: BTreeMap<ObjectKey, VecDeque<Arc<str>>>,
    groups: BTreeMap<ObjectKey, PodGroupRecord>,
}

/// What happened at one time.
#[derive(Debug)]
pub(super) struct OutsideStep {
    /// Microseconds since 1970.
    pub(super) now_micros: i64,
    pub(super) changes: Vec<OutsideChange>,
}

/// A change by others.
#[derive(Debug)]
pub(super) enum OutsideChange {
    /// What the engine is told as it was told then.
    Event(Box<ClusterEvent>),
    /// A pod that waits is deleted, whatever it does now.
    PodGone(Arc<str>),
    /// A pod is removed so many microseconds after its end.
    PodRemoved {
        uid: Arc<str>,
        after_micros: i64,
    },
    GatesOpened(Arc<str>),
    PodGroup(Box<PodGroupRecord>),
    /// A PodGroup is deleted, which waits for its pods.
    PodGroupGone(ObjectKey),
    Configure(Box<Config>),
    ServeDevices,
}

/// A pod of the recorded story.
#[derive(Debug, Default)]
struct RecordedPod {
    job: Option<ObjectKey>,
    /// It is another scheduler's, or had its node from the beginning.
    is_foreign: bool,
    has_gates: bool,
    /// When it was bound, in microseconds since 1970.
    bound_micros: Option<i64>,
    ended_micros: Option<i64>,
    is_evicted: bool,
}

impl OutsideStory {
    /// Begins with the state of an engine.
    pub fn new(engine: &Engine) -> Self {
        let cluster = engine.cluster();
        let begin_micros = engine.last_micros();
        let pod = |row: &Task| (row.uid.clone(), RecordedPod::known(cluster, row, begin_micros));
        let groups = cluster.jobs.iter().filter_map(|(job, _)| cluster.pod_group_record(job));
        Self {
            begin_micros,
            pods: cluster.tasks.iter().map(|(_, row)| pod(row)).collect(),
            groups: groups.map(|group| (group.key.clone(), group)).collect(),
            ..Self::default()
        }
    }

    /// Adds a command of the recorded story.
    pub fn add_command(&mut self, command: &EngineCommand) {
        match command {
            EngineCommand::Apply(events) => self.add_events(events, None),
            EngineCommand::Configure(config) => {
                self.push(OutsideChange::Configure(config.clone()));
            }
            EngineCommand::ServeDevices => self.push(OutsideChange::ServeDevices),
        }
    }

    /// Adds a batch of the recorded story with its effects. `cluster`: the state after it.
    pub fn add_batch(&mut self, batch: &EngineBatch, effects: &[Effect], cluster: &Cluster) {
        let now_micros = batch.now.unix_micros;
        if self.steps.is_empty() && self.begin_micros == i64::MIN {
            // No cycle came before.
            self.begin_micros = now_micros;
        }
        if batch.kind == BatchKind::Cycle || self.steps.is_empty() {
            self.steps.push(OutsideStep { now_micros, changes: Vec::new() });
        }
        self.add_events(&batch.events, Some(cluster));
        for effect in effects {
            match effect {
                Effect::Bind { uid, .. } => {
                    self.n_binds += 1;
                    let pod = self.pods.entry(self.place(uid)).or_default();
                    pod.bound_micros = Some(now_micros);
                }
                Effect::Evict { uid, .. } => {
                    self.n_evictions += 1;
                    self.pods.entry(self.place(uid)).or_default().is_evicted = true;
                }
                _ => {}
            }
        }
    }

    /// Adds events of the last step. `cluster`: the state after them.
    fn add_events(&mut self, events: &[ClusterEvent], cluster: Option<&Cluster>) {
        for event in events {
            match event {
                ClusterEvent::PodApplied(pod) | ClusterEvent::PodRead { pod, .. } => {
                    let job = cluster.and_then(|cluster| job_of(cluster, &pod.uid));
                    self.add_pod(pod, job);
                }
                ClusterEvent::PodDeleted { uid, .. } => self.remove_pod(uid, event),
                ClusterEvent::PodGroupApplied(group) => self.add_group(group),
                ClusterEvent::PodGroupDeleted { key } => {
                    self.groups.remove(key);
                    self.push(OutsideChange::PodGroupGone(key.clone()));
                }
                _ if is_answer(event) => {}
                _ => self.push(OutsideChange::Event(Box::new(event.clone()))),
            }
        }
    }

    fn add_pod(&mut self, pod: &PodRecord, job: Option<ObjectKey>) {
        let is_new = !self.pods.contains_key(&pod.uid) && !self.places.contains_key(&pod.uid);
        if is_new {
            self.add_new_pod(pod, job);
        }
        let (place, now_micros) = (self.place(&pod.uid), self.now_micros());
        let Some(known) = self.pods.get_mut(&place) else { return };
        if known.is_foreign {
            if !is_new {
                self.push(OutsideChange::Event(Box::new(ClusterEvent::PodApplied(
                    pod.clone().into(),
                ))));
            }
            return;
        }
        let has_gates = !pod.scheduling_gates.is_empty();
        let has_opened = std::mem::replace(&mut known.has_gates, has_gates) && !has_gates;
        if known.bound_micros.is_none() && pod.node_name.is_some() {
            known.bound_micros = Some(now_micros);
        }
        let is_over = matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed);
        if is_over && known.ended_micros.is_none() && !known.is_evicted {
            known.ended_micros = Some(now_micros);
            let run = known.bound_micros.map(|bound| now_micros - bound);
            self.runs.extend(run.map(|run| (place.clone(), run)));
        }
        if has_opened {
            self.push(OutsideChange::GatesOpened(place));
        }
    }

    fn add_new_pod(&mut self, pod: &PodRecord, job: Option<ObjectKey>) {
        let vacant = job.as_ref().and_then(|job| self.vacant.get_mut(job)?.pop_front());
        if let Some(evicted) = vacant {
            if let Some(known) = self.pods.get_mut(&evicted) {
                known.is_evicted = false;
                known.bound_micros = None;
            }
            self.places.insert(pod.uid.clone(), evicted);
            return;
        }
        let (is_foreign, has_gates) =
            (job.is_none() || pod.node_name.is_some(), !pod.scheduling_gates.is_empty());
        let known = RecordedPod { job, is_foreign, has_gates, ..RecordedPod::default() };
        self.pods.insert(pod.uid.clone(), known);
        self.push(OutsideChange::Event(Box::new(ClusterEvent::PodApplied(pod.clone().into()))));
    }

    fn remove_pod(&mut self, uid: &Arc<str>, event: &ClusterEvent) {
        let (place, now_micros) = (self.place(uid), self.now_micros());
        let Some(known) = self.pods.get_mut(&place) else { return };
        let change = match (known.is_evicted, known.ended_micros, known.bound_micros) {
            _ if known.is_foreign => OutsideChange::Event(Box::new(event.clone())),
            (true, ..) => {
                if let Some(job) = known.job.clone() {
                    self.vacant.entry(job).or_default().push_back(place);
                }
                return;
            }
            (_, Some(ended), _) => {
                OutsideChange::PodRemoved { uid: place, after_micros: now_micros - ended }
            }
            (_, None, Some(bound)) => {
                known.ended_micros = Some(now_micros);
                self.runs.insert(place.clone(), now_micros - bound);
                OutsideChange::PodRemoved { uid: place, after_micros: 0 }
            }
            (_, None, None) => OutsideChange::PodGone(place),
        };
        self.push(change);
    }

    fn add_group(&mut self, group: &PodGroupRecord) {
        let before = self.groups.insert(group.key.clone(), group.clone());
        match before {
            None => {
                let event = ClusterEvent::PodGroupApplied(Box::new(group.clone()));
                self.push(OutsideChange::Event(Box::new(event)));
            }
            Some(before) if is_same_spec(&before, group) => {}
            Some(_) => self.push(OutsideChange::PodGroup(Box::new(group.clone()))),
        }
    }

    /// Returns the UID of the first pod in the place of this one.
    fn place(&self, uid: &Arc<str>) -> Arc<str> {
        self.places.get(uid).unwrap_or(uid).clone()
    }

    fn now_micros(&self) -> i64 {
        self.steps.last().map_or(self.begin_micros, |step| step.now_micros)
    }

    fn push(&mut self, change: OutsideChange) {
        let now_micros = self.now_micros();
        if self.steps.is_empty() {
            self.steps.push(OutsideStep { now_micros, changes: Vec::new() });
        }
        if let Some(step) = self.steps.last_mut() {
            step.changes.push(change);
        }
    }
}

impl RecordedPod {
    /// The pod of a row at the beginning.
    fn known(cluster: &Cluster, row: &Task, begin_micros: i64) -> Self {
        let is_placed = row.node.is_some() && !row.status.is_terminated();
        let bound = row.scheduled_micros.or(row.started_micros).unwrap_or(begin_micros);
        Self {
            job: row.job.map(|job| cluster.jobs[job].key.clone()),
            is_foreign: row.job.is_none(),
            has_gates: row.gate_names.is_some(),
            bound_micros: (is_placed || row.status.is_terminated()).then_some(bound),
            ended_micros: row.status.is_terminated().then_some(begin_micros),
            is_evicted: row.status == TaskStatus::Releasing && (row.evicting || row.preempted),
        }
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

/// True for an answer to a write of the scheduler.
fn is_answer(event: &ClusterEvent) -> bool {
    matches!(
        event,
        ClusterEvent::BindFailed { .. }
            | ClusterEvent::EvictFailed { .. }
            | ClusterEvent::PodStatusFailed { .. }
            | ClusterEvent::PodGroupWritten { .. }
            | ClusterEvent::PodGroupFailed { .. }
            | ClusterEvent::QueueFailed { .. }
            | ClusterEvent::NodeShardFailed { .. }
            | ClusterEvent::VolumesWritten { .. }
            | ClusterEvent::PreBindFailed { .. }
            | ClusterEvent::UsageNotSaved
    )
}
