//! A cluster as JSON objects with an engine beside it: what the engine wants done is done to the
//! objects, and what changes comes back to it through the same decoding as from an API server.

mod from_lines;
mod object_table;
mod observed;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};
use vc_answers::{AnswerState, Timeline, TimelineStep};
use vc_engine::{BatchKind, CycleTime, Effect, Engine, EngineOptions, PreBindWrites, Report};
use vc_model::{Cluster, ClusterEvent, ObjectKey, PodRecord, ReadAfter, ReservedClaim};
use vc_wire::{DecodedEvent, Kind, kind_of};

use crate::effects;
use crate::node_metrics::{self, LoadTimes, is_node_metrics};
use crate::recorded::SimulationHistory;
use crate::storage;
use vc_objects::field::{object_mut, text};
use vc_objects::input::{InputObject, Source};

use object_table::ObjectTable;

pub(crate) use from_lines::ListedSimulation;
pub(crate) use observed::ObservedStep;

/// What happens to pods between cycles (tests/scenarios/README.md, "Cycles and kubelet").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KubeletMode {
    /// Bound pods stay Pending, evicted pods stay with a deletionTimestamp.
    #[default]
    None,
    /// Bound pods are Running, evicted pods are gone.
    Instant,
}

/// What a simulation starts from.
pub struct Setup<'a> {
    pub options: EngineOptions,
    pub config: &'a vc_conf::Config,
    pub objects: Vec<InputObject>,
    /// Microseconds since 1970.
    pub now_micros: i64,
    pub kubelet: KubeletMode,
}

/// Something wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub source: Source,
    pub message: String,
    /// The object is used as it is; otherwise it is left out, or its pod never placed.
    pub usable: bool,
}

/// What one cycle decided.
#[derive(Clone, Debug)]
pub struct Cycle {
    pub effects: Vec<Effect>,
    pub report: Report,
    /// What is wrong with the state or with a certificate; filled only when asked for:
    /// [`Simulation::verify`].
    pub faults: Vec<String>,
}

impl Cycle {
    /// Whether nothing was decided or written; events do not count.
    pub fn is_quiet(&self) -> bool {
        self.effects.iter().all(|effect| matches!(effect, Effect::Event { .. }))
    }
}

/// Kind, namespace and name.
pub(crate) type Id = (Kind, String, String);

/// A simulated cluster.
pub struct Simulation {
    engine: Engine,
    objects: ObjectTable,
    changes: Vec<ClusterEvent>,
    /// Events of the next cycle that the engine was given before it.
    n_applied: usize,
    now_micros: i64,
    version: u64,
    kubelet: KubeletMode,
    verifies: bool,
    /// What happened, if somebody wants to know it.
    timeline: Option<Timeline>,
    /// What the engine was given, if somebody wants to have it.
    history: Option<SimulationHistory>,
}

impl Simulation {
    /// Takes in the objects and adds the queues `root` and the default queue (core.md 4.7). Also
    /// returns what is wrong with objects, and the warnings of the configuration.
    pub fn new(mut setup: Setup<'_>) -> (Self, Vec<Finding>, Vec<vc_conf::Warning>) {
        let default_queue = setup.options.settings.default_queue.to_string();
        let interval_micros = vc_engine::load_interval_micros(setup.config);
        let times = LoadTimes { now_micros: setup.now_micros, interval_micros };
        let is_metrics = |object: &InputObject| is_node_metrics(&object.value);
        let (metrics, objects): (Vec<_>, Vec<_>) =
            std::mem::take(&mut setup.objects).into_iter().partition(is_metrics);
        let (mut simulation, warnings) = Self::empty(setup);
        let mut findings = Vec::new();
        for object in objects {
            simulation.add(object, &mut findings);
        }
        simulation.add_loads(&metrics, times, &mut findings);
        simulation.end_objects(&default_queue);
        (simulation, findings, warnings)
    }

    /// Returns a simulation without objects, and the warnings of the configuration.
    fn empty(setup: Setup<'_>) -> (Self, Vec<vc_conf::Warning>) {
        let (mut engine, warnings) = Engine::new(setup.options, setup.config);
        engine.explain(true);
        let simulation = Self {
            engine,
            objects: ObjectTable::default(),
            changes: Vec::new(),
            n_applied: 0,
            now_micros: setup.now_micros,
            version: 0,
            kubelet: setup.kubelet,
            verifies: false,
            timeline: None,
            history: None,
        };
        (simulation, warnings)
    }

    /// Takes in that all objects were added, and adds the queues that are always there.
    fn end_objects(&mut self, default_queue: &str) {
        // A file holds all of them.
        self.changes.push(ClusterEvent::HyperNodesListed { is_complete: true });
        self.add_queue("root", false);
        self.add_queue(default_queue, true);
    }

    /// Every cycle checks the state and the certificates of its evictions.
    pub fn verify(&mut self) {
        self.verifies = true;
        self.engine.witness(true);
    }

    /// Keeps what happens from now on.
    pub(crate) fn keep_timeline(&mut self) {
        self.timeline = Some(Timeline::default());
    }

    /// Keeps what the engine is given from now on.
    pub(crate) fn keep_history(&mut self) {
        self.history = SimulationHistory::new(&self.engine, self.now_micros);
    }

    /// Returns a bundle of what the engine was given since [`Simulation::keep_history`]. Returns `None`
    /// if nothing was kept.
    pub(crate) fn bundle(&self) -> Option<Result<Vec<u8>, String>> {
        self.history.as_ref().map(|history| history.bundle(self.engine.cluster()))
    }

    /// Lets the engine know of something at its next cycle that is no object.
    pub(crate) fn send(&mut self, event: ClusterEvent) {
        self.changes.push(event);
    }

    /// Tells the engine what has changed, without a cycle.
    fn apply_changes(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        if let Some(history) = &mut self.history {
            history.applied(changes.clone(), &self.engine);
        }
        self.engine.apply(changes);
    }

    /// Returns what happened since [`Simulation::keep_timeline`].
    pub(crate) fn timeline(&self) -> Timeline {
        self.timeline.clone().unwrap_or_default()
    }

    /// Returns the state that the engine knows.
    pub fn cluster(&self) -> &Cluster {
        self.engine.cluster()
    }

    /// Returns the state after this cycle for questions, with what the cycle has changed.
    pub fn answer_state(&mut self, cycle: &Cycle) -> AnswerState {
        self.apply_changes();
        AnswerState::new(&self.engine, &cycle.report)
    }

    /// Applies what the last cycle has changed, and returns the engine for questions.
    pub(crate) fn engine_after_cycle(&mut self) -> &Engine {
        self.apply_changes();
        &self.engine
    }

    /// Returns all objects.
    pub(crate) fn all_objects(&self) -> impl Iterator<Item = Cow<'_, Value>> {
        self.objects.values()
    }

    /// Returns the clock, in microseconds since 1970.
    pub(crate) fn now_micros(&self) -> i64 {
        self.now_micros
    }

    fn faults(&self, report: &Report, now: CycleTime) -> Vec<String> {
        let state = self.engine.cluster().check().err().into_iter();
        state.chain(self.engine.verify(report, now)).collect()
    }

    /// Runs one cycle and does what it decided.
    pub fn cycle(&mut self) -> Cycle {
        let now = CycleTime { unix_micros: self.now_micros };
        let events = std::mem::take(&mut self.changes);
        let n_events = events.len() + std::mem::take(&mut self.n_applied);
        let kept = self.history.as_ref().map(|_| events.clone());
        let (mut effects, report) = self.engine.cycle(events, now);
        self.keep((BatchKind::Cycle, kept), now, &effects);
        let faults = if self.verifies { self.faults(&report, now) } else { Vec::new() };
        let mut changed = BTreeSet::new();
        let mut batch = effects.clone();
        while !batch.is_empty() {
            self.perform(&batch, &mut changed);
            let volumes = self.bind_volumes(&batch);
            // Volumes are there at once, and what waits for them goes on in the same cycle.
            batch = match volumes.is_empty() {
                true => Vec::new(),
                false => {
                    let kept = self.history.as_ref().map(|_| volumes.clone());
                    let effects = self.engine.follow_up(volumes, now);
                    self.keep((BatchKind::FollowUp, kept), now, &effects);
                    effects
                }
            };
            effects.extend(batch.iter().cloned());
        }
        self.record(&effects, &report, n_events);
        if self.kubelet == KubeletMode::Instant {
            self.run_kubelets(&mut changed);
        }
        for id in changed {
            self.announce(&id);
        }
        Cycle { effects, report, faults }
    }

    fn keep(
        &mut self,
        (kind, events): (BatchKind, Option<Vec<ClusterEvent>>),
        now: CycleTime,
        effects: &[Effect],
    ) {
        if let (Some(history), Some(events)) = (&mut self.history, events) {
            history.called((kind, events), now, effects, &self.engine);
        }
    }

    fn record(&mut self, effects: &[Effect], report: &Report, n_events: usize) {
        let Some(timeline) = &mut self.timeline else { return };
        timeline.record(&TimelineStep {
            cluster: self.engine.cluster(),
            effects,
            report: Some(report),
            cycle: self.engine.n_cycles(),
            now_micros: self.now_micros,
            // The same files give the same answer.
            took_micros: 0,
            n_events,
        });
    }

    fn perform(&mut self, effects: &[Effect], changed: &mut BTreeSet<Id>) {
        for effect in effects {
            if let Some(id) = effects::target(effect) {
                let now_micros = self.now_micros;
                let apply = |object: &mut Value| effects::apply(effect, object, now_micros);
                if self.objects.change(&id, apply).is_some() {
                    changed.insert(id);
                }
            }
            if let Effect::Resync { pod, .. } = effect
                && let Some(pod) = self.decoded_pod(pod)
            {
                self.changes.push(ClusterEvent::PodRead { pod, after: ReadAfter::Bind });
            }
        }
    }

    /// Returns a pod as the engine is told of it. Returns `None` if it is gone or cannot be used.
    fn decoded_pod(&self, key: &ObjectKey) -> Option<Box<PodRecord>> {
        let object = self.object(Kind::Pod, &key.namespace, &key.name)?;
        match vc_wire::decode(Kind::Pod, &object) {
            Ok(DecodedEvent { event: ClusterEvent::PodApplied(pod), .. }) => Some(pod),
            _ => None,
        }
    }

    /// Binds and provisions what pods wait for; what the API server would tell.
    fn bind_volumes(&mut self, effects: &[Effect]) -> Vec<ClusterEvent> {
        let reported = std::mem::take(&mut self.changes);
        for effect in effects {
            let Effect::PreBind { pod, uid, node, writes } = effect else { continue };
            let PreBindWrites { bindings, provisions, devices } = &**writes;
            for (claim, volume) in bindings {
                self.bind_claim(&claim_id(claim), volume);
            }
            for claim in provisions {
                self.provision(&claim_id(claim), node);
            }
            for promise in devices {
                let key = &promise.key;
                let id = (Kind::ResourceClaim, key.namespace.to_string(), key.name.to_string());
                let reserved = self.objects.change(&id, |claim| {
                    vc_wire::protect_claim(claim, promise);
                    vc_wire::reserve_claim(claim, promise, &pod.name, uid);
                });
                if reserved.is_some() {
                    self.announce(&id);
                }
            }
            let uid = uid.clone();
            let (objects, devices) = (Vec::new(), Vec::new());
            self.changes.push(ClusterEvent::VolumesWritten { uid, objects, devices });
        }
        std::mem::replace(&mut self.changes, reported)
    }

    fn bind_claim(&mut self, claim_id: &Id, volume: &str) {
        let volume_id = (Kind::PersistentVolume, String::new(), volume.to_owned());
        let Some(claim) = self.objects.get(claim_id).map(Cow::into_owned) else { return };
        self.objects.change(&volume_id, |object| {
            storage::refer(object, &claim);
            storage::set_volume_bound(object);
        });
        self.objects.change(claim_id, |object| storage::set_claim_bound(object, volume));
        self.announce(&volume_id);
        self.announce(claim_id);
    }

    fn provision(&mut self, claim_id: &Id, node: &str) {
        let annotated = self.objects.change(claim_id, |claim| {
            storage::annotate(claim, storage::SELECTED_NODE, node);
            claim.clone()
        });
        let Some(claim) = annotated else { return };
        let class = self.object(Kind::StorageClass, "", text(&claim, "/spec/storageClassName"));
        let provisioner = class.map(|class| text(&class, "/provisioner").to_owned());
        let provisioner = provisioner.unwrap_or_default();
        let volume = storage::provisioned(&claim, &provisioner, None);
        let id = id_of(Kind::PersistentVolume, &volume);
        let name = id.2.clone();
        self.objects.insert(id, volume);
        self.bind_claim(claim_id, &name);
    }

    /// Moves the clock on.
    pub fn tick(&mut self, micros: i64) {
        self.now_micros = self.now_micros.saturating_add(micros);
    }

    /// The objects of a kind, by namespace and name.
    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = Cow<'_, Value>> {
        self.objects.of_kind(kind)
    }

    /// Returns the namespaces of the objects of a kind, each as often as it has one.
    pub(crate) fn namespaces(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.objects.namespaces(kind)
    }

    /// The object of that kind, namespace (empty for cluster scope) and name.
    pub fn object(&self, kind: Kind, namespace: &str, name: &str) -> Option<Cow<'_, Value>> {
        self.objects.get(&(kind, namespace.to_owned(), name.to_owned()))
    }

    fn add(&mut self, object: InputObject, findings: &mut Vec<Finding>) {
        if let Some(id) = self.learn(&object, findings) {
            self.objects.insert(id, object.value);
        }
    }

    /// Tells the engine of an object. Returns its identity, or `None` if it cannot be used or nobody reads it.
    fn learn(&mut self, object: &InputObject, findings: &mut Vec<Finding>) -> Option<Id> {
        let InputObject { value, source } = object;
        let kind = kind_of(text(value, "/apiVersion"), text(value, "/kind"))?;
        let mut finding = |message: String, usable| {
            findings.push(Finding { source: source.clone(), message, usable });
        };
        match vc_wire::decode(kind, value) {
            Err(error) => {
                finding(error.to_string(), false);
                None
            }
            Ok(decoded) => {
                let usable = !matches!(
                    &decoded.event,
                    ClusterEvent::PodApplied(pod) if pod.invalid.is_some()
                );
                decoded.problems.into_iter().for_each(|problem| finding(problem, usable));
                self.changes.push(decoded.event);
                Some(id_of(kind, value))
            }
        }
    }

    /// Takes in what monitoring says of the nodes.
    fn add_loads(
        &mut self,
        metrics: &[InputObject],
        times: LoadTimes,
        findings: &mut Vec<Finding>,
    ) {
        let mut loads = Vec::new();
        for object in metrics {
            let node = self.object(Kind::Node, "", text(&object.value, "/metadata/name"));
            match node_metrics::load(object, node.as_deref(), times) {
                Ok(load) => loads.push(load),
                Err(message) => {
                    let source = object.source.clone();
                    findings.push(Finding { source, message, usable: false });
                }
            }
        }
        if !loads.is_empty() {
            self.changes.push(ClusterEvent::NodeLoadsRead(loads));
        }
    }

    fn add_queue(&mut self, name: &str, reclaimable: bool) {
        if self.object(Kind::Queue, "", name).is_none() {
            let value = json!({
                "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                "metadata": { "name": name, "uid": name },
                "spec": { "weight": 1, "reclaimable": reclaimable },
                "status": { "state": "Open" },
            });
            let id = id_of(Kind::Queue, &value);
            self.objects.insert(id.clone(), value);
            self.announce(&id);
        }
    }

    /// Starts bound pods and ends those that are being deleted.
    fn run_kubelets(&mut self, changed: &mut BTreeSet<Id>) {
        let pods = self.objects.of_kind_mut(Kind::Pod);
        let mut gone = Vec::new();
        for (id, pod) in pods.filter(|(_, pod)| !text(pod, "/spec/nodeName").is_empty()) {
            if !text(pod, "/metadata/deletionTimestamp").is_empty() {
                gone.push(id.clone());
            } else if matches!(text(pod, "/status/phase"), "" | "Pending")
                && let Some(status) = object_mut(pod, &["status"])
            {
                status.insert("phase".to_owned(), "Running".into());
                changed.insert(id.clone());
            }
        }
        for id in gone {
            changed.remove(&id);
            if let Some(pod) = self.objects.remove(&id) {
                self.changes.extend(vc_wire::decode_deleted(Kind::Pod, &pod));
            }
        }
    }

    /// Tells the engine what an object is now.
    fn announce(&mut self, id: &Id) {
        let version = self.version + 1;
        let decoded = self.objects.change(id, |object| {
            if let Some(metadata) = object_mut(object, &["metadata"]) {
                metadata.insert("resourceVersion".to_owned(), version.to_string().into());
            }
            vc_wire::decode(id.0, object)
        });
        let Some(decoded) = decoded else { return };
        self.version = version;
        // What was decoded before can be decoded again: only known fields were changed.
        if let Ok(decoded) = decoded {
            if let ClusterEvent::PodGroupApplied(group) = &decoded.event {
                self.changes.push(ClusterEvent::PodGroupWritten {
                    key: group.key.clone(),
                    resource_version: group.resource_version.clone(),
                    status: Box::new(group.status.clone()),
                });
            }
            self.changes.push(decoded.event);
        }
    }
}

fn claim_id(claim: &ReservedClaim) -> Id {
    let (namespace, name) = (claim.key.namespace.to_string(), claim.key.name.to_string());
    (Kind::PersistentVolumeClaim, namespace, name)
}

fn id_of(kind: Kind, value: &Value) -> Id {
    let namespace = if kind.is_namespaced() { text(value, "/metadata/namespace") } else { "" };
    (kind, namespace.to_owned(), text(value, "/metadata/name").to_owned())
}
