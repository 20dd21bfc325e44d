//! The world of a test: the objects as an API server keeps them, the engine that watches them, and
//! what it decided as text.

mod conf;
mod extender;
mod followers;
mod fuzz;
pub(crate) mod gang;
mod log;
mod session;
mod show;
mod silent;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_bundle::{History, RecordedInput};
use vc_conf::Config;
use vc_engine::{
    BatchKind, CycleTime, Effect, Engine, EngineCommand, EngineOptions, Evaluator, Nomination,
    Report,
};
use vc_model::*;

pub(crate) use conf::{TA, conf, known, ta, with_arguments};
pub(crate) use extender::DrawnExtender;
pub(crate) use followers::{digest, sorted, stored};
pub(crate) use fuzz::{FuzzRequest, check_at_once, n_cores};
pub(crate) use log::log_of;
pub(crate) use session::{Stage, State, is_refused_by_queue, node, run, task};
pub(crate) use show::lines;
pub(crate) use silent::beside_silent;
pub(crate) use text::{Object, START_MICROS, key, objects};

/// Objects and engine. Writes succeed at once; nothing starts or ends by itself. A second engine
/// sees the same and finds nodes with the plain evaluator: every test compares the two.
pub(crate) struct World {
    pub(crate) engine: Engine,
    /// `None`: it is not compared.
    plain: Option<Engine>,
    /// A twin of the engine, made in the middle of the story. `None`: nobody follows.
    twin: Option<Engine>,
    /// The rows of the twin are compared, too.
    compares_rows: bool,
    /// What the engine was given. `None`: nobody records it.
    history: Option<History>,
    options: EngineOptions,
    nodes: BTreeMap<Arc<str>, NodeRecord>,
    classes: BTreeMap<Arc<str>, PriorityClassRecord>,
    pods: BTreeMap<ObjectKey, PodRecord>,
    groups: BTreeMap<ObjectKey, PodGroupRecord>,
    queues: BTreeMap<Arc<str>, QueueRecord>,
    /// Events of HyperNodes so far.
    hyper_nodes: Vec<ClusterEvent>,
    /// What the watches deliver before the next cycle.
    inbox: Vec<ClusterEvent>,
    now_micros: i64,
    version: u64,
}

/// What one cycle did.
pub(crate) struct Cycle {
    pub(crate) effects: Vec<Effect>,
    pub(crate) report: Report,
    pub(crate) lines: Vec<String>,
}

/// True for a warning about a service that did not answer. The fast evaluator leaves out questions
/// whose answers change nothing, so it does not see all failures that the plain one sees.
fn is_of_service(warning: &str) -> bool {
    warning.starts_with("plugin extender: ")
}

/// The decisions of the first cycle.
pub(crate) fn decide(config: &Config, text: &str) -> String {
    World::new(config, text).cycle().decisions()
}

impl World {
    /// The objects of the text; queue `default` exists.
    pub(crate) fn new(config: &Config, text: &str) -> Self {
        let mut all = objects("queue default");
        all.extend(objects(text));
        Self::of(config, all)
    }

    pub(crate) fn of(config: &Config, objects: Vec<Object>) -> Self {
        Self::with(EngineOptions::default(), config, objects)
    }

    /// The same with flags.
    pub(crate) fn with(
        options: impl Into<EngineOptions>,
        config: &Config,
        objects: Vec<Object>,
    ) -> Self {
        log::install();
        vc_framework::check_reads();
        let options = options.into();
        let (mut engine, warnings) = Engine::new(options.clone(), config);
        assert_eq!(warnings, []);
        engine.explain(true);
        engine.witness(true);
        let plain = EngineOptions { evaluator: Evaluator::Plain, ..options.clone() };
        let (mut plain, _) = Engine::new(plain, config);
        plain.explain(true);
        let mut world = Self {
            engine,
            plain: Some(plain),
            twin: None,
            compares_rows: false,
            history: None,
            options,
            nodes: BTreeMap::new(),
            classes: BTreeMap::new(),
            pods: BTreeMap::new(),
            groups: BTreeMap::new(),
            queues: BTreeMap::new(),
            hyper_nodes: Vec::new(),
            inbox: Vec::new(),
            now_micros: START_MICROS + 3_600_000_000,
            version: 1,
        };
        objects.into_iter().for_each(|object| world.put(object));
        world
    }

    /// Only one engine, where so many worlds are run that it counts.
    pub(crate) fn alone(self) -> Self {
        Self { plain: None, ..self }
    }

    /// Adds or replaces objects.
    pub(crate) fn add(&mut self, text: &str) {
        objects(text).into_iter().for_each(|object| self.put(object));
    }

    fn put(&mut self, object: Object) {
        let event = match object {
            Object::Node(node) => {
                self.nodes.insert(node.name.clone(), node.clone());
                ClusterEvent::NodeApplied(Box::new(node))
            }
            Object::Class(class) => {
                self.classes.insert(class.name.clone(), class.clone());
                ClusterEvent::PriorityClassApplied(class)
            }
            Object::Queue(queue) => {
                self.queues.insert(queue.name.clone(), queue.clone());
                ClusterEvent::QueueApplied(Box::new(queue))
            }
            Object::Group(mut group) => {
                group.resource_version = self.next_version();
                self.groups.insert(group.key.clone(), group.clone());
                ClusterEvent::PodGroupApplied(Box::new(group))
            }
            // No controller looks after it.
            Object::Budget(budget) => ClusterEvent::BudgetApplied(Box::new(budget)),
            Object::Quota(quota) => ClusterEvent::QuotaApplied(Box::new(quota)),
            Object::Pod(pod) => {
                self.pods.insert(pod.key.clone(), (*pod).clone());
                ClusterEvent::PodApplied(pod)
            }
        };
        self.inbox.push(event);
    }

    fn next_version(&mut self) -> Arc<str> {
        self.version += 1;
        self.version.to_string().into()
    }

    /// An event that follows from no object of the world. Those of HyperNodes are sent again after a
    /// restart.
    pub(crate) fn send(&mut self, event: ClusterEvent) {
        let is_of_hyper_nodes = matches!(
            event,
            ClusterEvent::HyperNodeApplied(_)
                | ClusterEvent::HyperNodeDeleted { .. }
                | ClusterEvent::HyperNodesListed { .. }
        );
        if is_of_hyper_nodes {
            self.hyper_nodes.push(event.clone());
        }
        self.inbox.push(event);
    }

    /// What the next cycle learns.
    pub(crate) fn inbox(&self) -> Vec<ClusterEvent> {
        self.inbox.clone()
    }

    pub(crate) fn now_micros(&self) -> i64 {
        self.now_micros
    }

    pub(crate) fn tick(&mut self, seconds: i64) {
        self.now_micros += seconds * 1_000_000;
    }

    /// What the watches have, without a cycle.
    pub(crate) fn deliver(&mut self) {
        if let Some(plain) = &mut self.plain {
            plain.apply(self.inbox.clone());
        }
        if let Some(twin) = &mut self.twin {
            twin.apply(self.inbox.clone());
        }
        self.engine.apply(std::mem::take(&mut self.inbox));
    }

    /// The API server has claims for devices from now on.
    pub(crate) fn serve_devices(&mut self) {
        self.record(&RecordedInput::Command(EngineCommand::ServeDevices));
        self.plain.iter_mut().for_each(Engine::serve_devices);
        self.twin.iter_mut().for_each(Engine::serve_devices);
        self.engine.serve_devices();
    }

    /// Another configuration, without anything to warn of.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.record(&RecordedInput::Command(EngineCommand::Configure(Box::new(config.clone()))));
        if let Some(plain) = &mut self.plain {
            plain.configure(config);
        }
        if let Some(twin) = &mut self.twin {
            twin.configure(config);
        }
        assert_eq!(self.engine.configure(config), []);
    }

    /// One cycle; its writes are stored and come back through the watches before the next one.
    pub(crate) fn cycle(&mut self) -> Cycle {
        let cycle = self.cycle_unanswered();
        for effect in &cycle.effects {
            self.store(effect);
        }
        cycle
    }

    /// One cycle of whose binds every so many fail; 0: none.
    pub(crate) fn cycle_refusing(&mut self, every: usize) -> Cycle {
        let cycle = self.cycle_unanswered();
        let mut n_binds = 0;
        for effect in &cycle.effects {
            match effect {
                Effect::Bind { pod, uid, node, .. }
                    if every != 0 && self.pods.contains_key(pod) =>
                {
                    n_binds += 1;
                    match n_binds % every {
                        0 => self.refuse(pod, uid, node, false),
                        _ => self.store(effect),
                    }
                }
                _ => self.store(effect),
            }
        }
        cycle
    }

    /// `pauses`: not because of a conflict.
    pub(crate) fn refuse(
        &mut self,
        pod: &ObjectKey,
        uid: &Arc<str>,
        node: &Arc<str>,
        pauses: bool,
    ) {
        let (uid, node, error) = (uid.clone(), node.clone(), "refused".to_owned());
        self.inbox.push(ClusterEvent::BindFailed { uid, node, error, pauses });
        let pod = Box::new(self.pods[pod].clone());
        self.inbox.push(ClusterEvent::PodRead { pod, after: ReadAfter::Bind });
    }

    /// The status of the PodGroup that was written last was not stored.
    pub(crate) fn refuse_group_status(&mut self, name: &str) {
        let (cluster, key) = (self.engine.cluster(), text::key(name));
        let group = cluster.job(&key).and_then(|job| cluster.jobs[job].pod_group.as_ref());
        let status = group.expect("the job has a PodGroup").status.clone().into();
        self.send(ClusterEvent::PodGroupFailed { key, status });
    }

    /// One cycle whose writes are neither stored nor answered.
    pub(crate) fn cycle_unanswered(&mut self) -> Cycle {
        let now = CycleTime { unix_micros: self.now_micros };
        let plain = self.plain.as_mut();
        let plain = plain.map(|plain| log::quietly(|| plain.cycle(self.inbox.clone(), now)));
        let twin = self.twin.as_mut().map(|twin| twin.cycle(self.inbox.clone(), now).0);
        let events = self.history.as_ref().map(|_| self.inbox.clone());
        let (effects, mut report) = self.engine.cycle(std::mem::take(&mut self.inbox), now);
        if let Some(events) = events {
            self.record_batch(BatchKind::Cycle, events, now, &effects);
            self.begin_segment();
        }
        self.compare_with_twin(&effects, twin);
        assert_eq!((self.engine.cluster().check(), &*report.broken_invariants), (Ok(()), &[][..]));
        assert_eq!(self.engine.verify(&report, now), [""; 0], "{:#?}", report.certificates);
        report.witnesses.clear();
        if let Some(mut plain) = plain {
            let differ = effects.iter().zip(&plain.0).find(|(fast, plain)| fast != plain);
            assert_eq!(differ, None, "fast and plain evaluator decide differently");
            assert_eq!(effects, plain.0, "fast and plain evaluator decide differently");
            for report in [&mut report, &mut plain.1] {
                report.warnings.retain(|warning| !is_of_service(warning));
                // A skipped cycle repeats the usage of an earlier one.
                report.usages.clear();
            }
            assert_eq!(format!("{report:?}"), format!("{:?}", plain.1), "fast and plain evaluator");
        }
        let lines = lines(&effects, &report);
        Cycle { effects, report, lines }
    }

    /// Whether the object that it changes is still there.
    pub(crate) fn can_store(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Bind { pod, .. }
            | Effect::Evict { pod, .. }
            | Effect::PodCondition { pod, .. }
            | Effect::ClearNomination { pod, .. }
            | Effect::RemoveGate { pod, .. }
            | Effect::Resync { pod, .. } => self.pods.contains_key(pod),
            Effect::PodGroupStatus { pod_group, .. } => self.groups.contains_key(pod_group),
            Effect::QueueStatus { queue, .. } | Effect::QueueAnnotation { queue, .. } => {
                self.queues.contains_key(queue)
            }
            _ => true,
        }
    }

    pub(crate) fn store(&mut self, effect: &Effect) {
        match effect {
            Effect::Bind { pod, node, annotations, .. } => {
                let now_micros = self.now_micros;
                self.change(pod, |pod| {
                    pod.annotations.extend(annotations.iter().cloned());
                    pod.node_name = Some(node.clone());
                    pod.scheduled_micros = Some(now_micros);
                });
            }
            Effect::Evict { pod, .. } => self.change(pod, |pod| {
                pod.deleting = true;
                pod.evicted_by_scheduler = true;
            }),
            Effect::PodCondition { pod, condition, nomination, .. } => {
                self.change(pod, |pod| {
                    pod.scheduled_condition = Some(PodCondition::clone(condition));
                    match nomination {
                        Nomination::Keep => {}
                        Nomination::Set(node) => pod.nominated_node = Some(node.clone()),
                        Nomination::Clear => pod.nominated_node = None,
                    }
                });
            }
            Effect::ClearNomination { pod, .. } => {
                self.change(pod, |pod| pod.nominated_node = None);
            }
            Effect::PodGroupStatus { pod_group, status, .. } => {
                let resource_version = self.next_version();
                let group = self.groups.get_mut(pod_group).expect("the group is known");
                group.status = status.clone();
                group.resource_version = resource_version.clone();
                let applied = ClusterEvent::PodGroupApplied(Box::new(group.clone()));
                let (key, status) = (pod_group.clone(), Box::new(status.clone()));
                self.inbox.push(ClusterEvent::PodGroupWritten { key, resource_version, status });
                self.inbox.push(applied);
            }
            Effect::QueueStatus { queue, allocated } => {
                let queue = self.queues.get_mut(queue).expect("the queue is known");
                let entry = |(name, text): &(String, String)| {
                    (name.as_str().into(), text.parse().expect("the engine writes quantities"))
                };
                queue.status_allocated = allocated.iter().map(entry).collect();
                self.inbox.push(ClusterEvent::QueueApplied(Box::new(queue.clone())));
            }
            Effect::QueueAnnotation { queue, key, value } => {
                let queue = self.queues.get_mut(queue).expect("the queue is known");
                queue.annotations.insert((*key).into(), value.as_str().into());
                self.inbox.push(ClusterEvent::QueueApplied(Box::new(queue.clone())));
            }
            Effect::RemoveGate { pod, .. } => {
                self.change(pod, |pod| pod.scheduling_gates.retain(|gate| **gate != *QUEUE_GATE));
            }
            Effect::Resync { pod, .. } => {
                let pod = Box::new(self.pods[pod].clone());
                self.inbox.push(ClusterEvent::PodRead { pod, after: ReadAfter::Bind });
            }
            // Tests of shards and of volumes bring their own.
            Effect::PreBind { .. }
            | Effect::UnreserveClaims { .. }
            | Effect::DeallocateClaim { .. }
            | Effect::NodeShardStatus { .. }
            | Effect::CreateQueue { .. }
            | Effect::SaveUsage { .. }
            | Effect::Event { .. } => {}
        }
    }

    fn change(&mut self, pod: &ObjectKey, change: impl FnOnce(&mut PodRecord)) {
        let pod = self.pods.get_mut(pod).expect("the pod is known");
        change(pod);
        self.inbox.push(ClusterEvent::PodApplied(Box::new(pod.clone())));
    }

    /// Changes a pod; the task `a` of job `j1` is the pod `j1-a`.
    pub(crate) fn edit(&mut self, pod: &str, change: impl FnOnce(&mut PodRecord)) {
        self.change(&key(pod), change);
    }

    pub(crate) fn pod(&self, pod: &str) -> &PodRecord {
        &self.pods[&key(pod)]
    }

    pub(crate) fn has_pod(&self, pod: &str) -> bool {
        self.pods.contains_key(&key(pod))
    }

    pub(crate) fn group(&self, job: &str) -> &PodGroupRecord {
        &self.groups[&key(job)]
    }

    pub(crate) fn delete_pod(&mut self, pod: &str) {
        let pod = self.pods.remove(&key(pod)).expect("the pod is known");
        self.inbox.push(ClusterEvent::PodDeleted { key: pod.key, uid: pod.uid });
    }

    /// `namespace/name` of the pod of this place in their order, if there are so many.
    pub(crate) fn nth_pod(&self, place: usize) -> Option<String> {
        self.pods.keys().nth(place).map(ToString::to_string)
    }

    /// Events that the watches keep back; [`World::catch_up`] delivers them before all others.
    pub(crate) fn keep_back(
        &mut self,
        is_late: impl Fn(&ClusterEvent) -> bool,
    ) -> Vec<ClusterEvent> {
        self.inbox.extract_if(.., |event| is_late(event)).collect()
    }

    pub(crate) fn catch_up(&mut self, late: Vec<ClusterEvent>) {
        self.inbox.splice(0..0, late);
    }

    /// Changes a PodGroup, if there is one of this name.
    pub(crate) fn edit_group(&mut self, name: &str, change: impl FnOnce(&mut PodGroupRecord)) {
        if let Some(mut group) = self.groups.get(&key(name)).cloned() {
            change(&mut group);
            self.put(Object::Group(group));
        }
    }

    pub(crate) fn delete_group(&mut self, name: &str) {
        if let Some(group) = self.groups.remove(&key(name)) {
            self.inbox.push(ClusterEvent::PodGroupDeleted { key: group.key });
        }
    }

    pub(crate) fn delete_node(&mut self, name: &str) {
        self.nodes.remove(name);
        self.inbox.push(ClusterEvent::NodeDeleted { name: name.into() });
    }

    pub(crate) fn delete_queue(&mut self, name: &str) {
        self.queues.remove(name);
        self.inbox.push(ClusterEvent::QueueDeleted { name: name.into() });
    }

    /// What kubelets do: bound pods run, deleted pods go.
    pub(crate) fn kubelets(&mut self) {
        let pods: Vec<PodRecord> = self.pods.values().cloned().collect();
        for pod in pods {
            if pod.deleting {
                self.pods.remove(&pod.key);
                self.inbox.push(ClusterEvent::PodDeleted { key: pod.key, uid: pod.uid });
            } else if pod.node_name.is_some() && pod.phase == PodPhase::Pending {
                let now_micros = self.now_micros;
                self.change(&pod.key, |pod| {
                    pod.phase = PodPhase::Running;
                    pod.started_micros = Some(now_micros);
                });
            }
        }
    }

    /// Kubelets, and controllers that replace every pod that was deleted.
    pub(crate) fn kubelets_and_controllers(&mut self) {
        let leaving: Vec<PodRecord> =
            self.pods.values().filter(|pod| pod.deleting).cloned().collect();
        self.kubelets();
        for mut pod in leaving {
            pod.key = ObjectKey::new(&pod.key.namespace, &format!("{}r", pod.key.name));
            pod.uid = format!("{}r", pod.uid).into();
            (pod.deleting, pod.evicted_by_scheduler) = (false, false);
            (pod.node_name, pod.nominated_node, pod.scheduled_condition) = (None, None, None);
            (pod.scheduled_micros, pod.started_micros) = (None, None);
            pod.phase = PodPhase::Pending;
            self.put(Object::Pod(Box::new(pod)));
        }
    }

    /// Another process reads the same objects.
    pub(crate) fn restart(&mut self, config: &Config) {
        let nodes = self.nodes.values().cloned().map(Object::Node);
        let classes = self.classes.values().cloned().map(Object::Class);
        let queues = self.queues.values().cloned().map(Object::Queue);
        let groups = self.groups.values().cloned().map(Object::Group);
        let pods = self.pods.values().cloned().map(|pod| Object::Pod(Box::new(pod)));
        let objects = nodes.chain(classes).chain(queues).chain(groups).chain(pods).collect();
        let now_micros = self.now_micros;
        self.twin = None;
        let options = self.options.clone();
        let hyper_nodes = std::mem::take(&mut self.hyper_nodes);
        *self = Self { now_micros, ..Self::with(options, config, objects) };
        hyper_nodes.into_iter().for_each(|event| self.send(event));
    }
}

impl Cycle {
    /// Binds and evictions in their order, then what is pipelined.
    pub(crate) fn decisions(&self) -> String {
        self.only(&["bind", "evict", "pipeline"])
    }

    /// The lines that begin with one of these words.
    pub(crate) fn only(&self, kinds: &[&str]) -> String {
        let wanted = |line: &&String| kinds.contains(&line.split(' ').next().unwrap_or_default());
        self.lines.iter().filter(wanted).map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// All effects and what is pipelined.
    pub(crate) fn all(&self) -> String {
        self.lines.join("\n")
    }
}
