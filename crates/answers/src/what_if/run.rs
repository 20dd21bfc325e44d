//! A second engine in which whole cycles are run and what they decide is done to the rows: pods run,
//! end and go, volumes are there at once. Specification: answers.md 9 (ANS-47, ANS-48).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_engine::{Certificate, CertifiedVictim, CycleTime, Effect, Engine, Report};
use vc_model::{
    ChangeReader, Cluster, ClusterEvent, JobId, NodeId, ObjectKey, QueueRecord, QueueState, Task,
    TaskId, TaskStatus,
};

use super::DecidedCycle;
use super::question::SupposedKubelet;
use super::volumes;
use crate::end_queue::{EndQueue, EndingPods};
use crate::ends::ExpectedEnds;
use crate::stop::StopSignal;

/// Time between two cycles, as `--schedule-period` has it.
const PERIOD_MICROS: i64 = 1_000_000;

/// A pod that got a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundPod {
    pub(crate) pod_group: Option<ObjectKey>,
    pub(crate) node: Arc<str>,
}

/// A pod that has to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GonePod {
    pub(crate) pod_group: Option<ObjectKey>,
    /// The action, or `drain` if its node is removed.
    pub(crate) action: &'static str,
    /// The PodGroup for which it goes. `None` if there is none.
    pub(crate) for_group: Option<ObjectKey>,
    /// The plugins that granted it.
    pub(crate) plugins: Vec<&'static str>,
}

/// A copy of an engine with the decisions of its cycles.
pub(crate) struct SupposedRun {
    engine: Engine,
    kubelet: SupposedKubelet,
    ends: ExpectedEnds,
    /// Queue of the ends to come. `None` until somebody asks for the next one, and after a change.
    end_queue: Option<EndQueue>,
    now_micros: i64,
    n_cycles: u32,
    report: Report,
    /// What has been read of the changes that pods make to their nodes and jobs.
    changes: (ChangeReader<NodeId>, ChangeReader<JobId>),
    /// Pods that had a node and no volume yet when kubelets were run last.
    held: BTreeSet<TaskId>,
    /// Pods that terminated at the beginning and are waited for, with their expected ends in microseconds
    /// since 1970. Others that terminate are gone after the next cycle.
    leaving: BTreeMap<TaskId, i64>,
    pub(crate) bound: BTreeMap<ObjectKey, BoundPod>,
    pub(crate) evicted: BTreeMap<ObjectKey, GonePod>,
    /// True if a volume was made for a claim.
    pub(crate) has_provisioned: bool,
    stop: StopSignal,
}

impl SupposedRun {
    /// Copies the engine.
    pub(crate) fn new(engine: &Engine, kubelet: SupposedKubelet, ends: ExpectedEnds) -> Self {
        Self {
            engine: engine.copy_for_questions(),
            kubelet,
            ends,
            end_queue: None,
            now_micros: engine.last_micros(),
            n_cycles: 0,
            report: Report::default(),
            changes: Default::default(),
            held: BTreeSet::new(),
            leaving: BTreeMap::new(),
            bound: BTreeMap::new(),
            evicted: BTreeMap::new(),
            has_provisioned: false,
            stop: StopSignal::default(),
        }
    }

    /// Returns a run of one cycle that was decided already.
    pub(crate) fn of_cycle(cycle: DecidedCycle<'_>) -> Self {
        let DecidedCycle { engine, effects, report } = cycle;
        let mut run = Self::new(engine, SupposedKubelet::None, ExpectedEnds::default());
        run.note(effects, &report.certificates);
        Self { n_cycles: 1, report, ..run }
    }

    /// Returns the run with a signal, which is read before each cycle: it may stop the question.
    pub(crate) fn stoppable(mut self, stop: &StopSignal) -> Self {
        self.stop = stop.clone();
        self
    }

    /// Returns the signal that ends the question.
    pub(super) fn stop(&self) -> &StopSignal {
        &self.stop
    }

    /// Returns what happens to pods between cycles.
    pub(super) fn kubelet(&self) -> SupposedKubelet {
        self.kubelet
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn engine_mut(&mut self) -> &mut Engine {
        self.end_queue = None;
        &mut self.engine
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        self.engine.cluster()
    }

    /// Returns the report of the last cycle.
    pub(crate) fn report(&self) -> &Report {
        &self.report
    }

    pub(crate) fn now_micros(&self) -> i64 {
        self.now_micros
    }

    pub(crate) fn n_cycles(&self) -> u32 {
        self.n_cycles
    }

    /// Lets the pods that terminate now stay until their expected ends. To be called before the first
    /// cycle.
    pub(crate) fn await_terminating(&mut self) {
        let cluster = self.engine.cluster();
        let terminates = |row: &Task| row.status == TaskStatus::Releasing && row.node.is_some();
        let tasks = cluster.tasks.iter().filter(|(_, row)| terminates(row));
        let end = |(task, _)| {
            let end = self.ends.end_of(cluster, task, self.now_micros)?;
            Some((task, end.at_micros))
        };
        self.leaving = tasks.filter_map(end).collect();
        self.end_queue = None;
    }

    /// Applies one event at once.
    pub(crate) fn apply(&mut self, event: ClusterEvent) {
        self.end_queue = None;
        self.engine.apply(vec![event]);
    }

    /// Moves the clock on, but never back.
    pub(crate) fn advance_to(&mut self, now_micros: i64) {
        self.now_micros = self.now_micros.max(now_micros);
    }

    /// Runs one cycle, one period later, and does what it decided. Returns true if it decided
    /// something.
    pub(crate) fn cycle(&mut self) -> bool {
        self.now_micros = self.now_micros.saturating_add(PERIOD_MICROS);
        self.cycle_now()
    }

    /// Runs one cycle without moving the clock on, and does what it decided. Returns true if it
    /// decided something.
    pub(crate) fn cycle_now(&mut self) -> bool {
        self.stop.check();
        self.n_cycles += 1;
        let now = CycleTime { unix_micros: self.now_micros };
        let (mut effects, report) = self.engine.cycle(Vec::new(), now);
        let mut batch = effects.clone();
        loop {
            let (events, has_provisioned) = volumes::written(self.engine.cluster(), &batch);
            if events.is_empty() {
                break;
            }
            self.has_provisioned |= has_provisioned;
            batch = self.engine.follow_up(events, now);
            effects.extend(batch.iter().cloned());
        }
        self.note(&effects, &report.certificates);
        self.perform(&effects);
        if self.kubelet == SupposedKubelet::Instant {
            self.run_kubelets();
        }
        self.report = report;
        effects.iter().any(is_decision)
    }

    /// Runs cycles until one decides nothing, at most so many. Returns true if one decided nothing.
    pub(crate) fn settle(&mut self, most: u32) -> bool {
        (0..most).any(|_| !self.cycle())
    }

    /// Returns the queue of the ends to come, with the cluster that it is about.
    fn ends_to_come(&mut self) -> (&mut EndQueue, &Cluster) {
        let cluster = self.engine.cluster();
        let made = || EndQueue::new(cluster, &self.ends, &self.leaving, self.now_micros);
        (self.end_queue.get_or_insert_with(made), cluster)
    }

    /// True if a pod is expected to end by this time.
    pub(super) fn has_end_by(&mut self, until_micros: i64) -> bool {
        let (queue, cluster) = self.ends_to_come();
        queue.next_micros(cluster).is_some_and(|next| next <= until_micros)
    }

    /// Moves the clock to the next expected end, up to a time, and ends the pods that end then, which
    /// are returned.
    ///
    /// # Errors
    /// No pod ends by then. It is true if one ends later.
    pub(crate) fn end_next(&mut self, until_micros: i64) -> Result<EndingPods, bool> {
        let (queue, cluster) = self.ends_to_come();
        let next = queue.next_micros(cluster).ok_or(false)?;
        if until_micros < next {
            return Err(true);
        }
        let ending = queue.take_next(cluster).ok_or(false)?;
        self.advance_to(ending.at_micros);
        let tasks = ending.tasks.iter().copied();
        let (gone, ended): (Vec<TaskId>, Vec<TaskId>) =
            tasks.partition(|task| self.leaving.remove(task).is_some());
        self.engine.suppose(|cluster| ended.iter().for_each(|&task| cluster.end_pod(task)));
        self.delete_pods(&gone);
        Ok(ending)
    }

    /// Takes note of pods that get a node or have to go.
    fn note(&mut self, effects: &[Effect], certificates: &[Certificate]) {
        for effect in effects {
            match effect {
                Effect::Bind { pod, uid, node, .. } => {
                    let cluster = self.engine.cluster();
                    let job = cluster.task(uid).and_then(|task| cluster.tasks[task].job);
                    let pod_group = job.and_then(|job| group_of(cluster, job));
                    self.bound.insert(pod.clone(), BoundPod { pod_group, node: node.clone() });
                }
                Effect::Evict { pod, uid, pod_group, reason, for_pod_group, .. } => {
                    let gone = GonePod {
                        pod_group: pod_group.as_ref().map(|group| group.0.clone()),
                        action: reason.as_str(),
                        for_group: for_pod_group.as_deref().cloned(),
                        plugins: granted_by(certificates, uid),
                    };
                    self.evicted.insert(pod.clone(), gone);
                }
                _ => {}
            }
        }
    }

    /// Does what concerns other rows than those of volumes.
    fn perform(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::RemoveGate { uid, .. } => self.change_pod(uid, Cluster::open_gates),
                Effect::Resync { uid, .. } => self.change_pod(uid, Cluster::requeue_pod),
                Effect::PodGroupStatus { pod_group, .. } => {
                    self.engine.suppose(|cluster| cluster.store_status(pod_group));
                }
                Effect::CreateQueue { queue, reclaimable } => {
                    let record = QueueRecord {
                        name: queue.clone(),
                        uid: queue.clone(),
                        weight: 1,
                        reclaimable: *reclaimable,
                        state: QueueState::Open,
                        ..QueueRecord::default()
                    };
                    self.apply(ClusterEvent::QueueApplied(Box::new(record)));
                }
                _ => {}
            }
        }
    }

    fn change_pod(&mut self, uid: &str, change: fn(&mut Cluster, TaskId)) {
        if let Some(task) = self.cluster().task(uid) {
            self.engine.suppose(|cluster| change(cluster, task));
        }
    }

    /// Returns the pods that may have got a node or may have to go since the last call, by id. Each such change
    /// is in the change log of the node or of the job, or ends that the pod is held.
    fn touched_pods(&mut self) -> Vec<TaskId> {
        let cluster = self.engine.cluster();
        let (nodes, jobs) = &mut self.changes;
        let (nodes, jobs) = (nodes.read(cluster.node_changes()), jobs.read(cluster.job_changes()));
        let (Some(nodes), Some(jobs)) = (nodes, jobs) else {
            return cluster.tasks.ids().collect();
        };
        let on_nodes = nodes.filter_map(|node| cluster.nodes.get(node)).flat_map(|row| &row.tasks);
        let of_jobs = jobs.filter_map(|job| cluster.jobs.get(job));
        let of_jobs = of_jobs.flat_map(|row| row.tasks.iter());
        let touched = on_nodes.chain(of_jobs).chain(&self.held).copied();
        let touched: BTreeSet<TaskId> = touched.collect();
        touched.into_iter().collect()
    }

    /// Starts pods that are bound, and removes those that terminate.
    fn run_kubelets(&mut self) {
        let touched = self.touched_pods();
        let cluster = self.engine.cluster();
        let held: BTreeSet<TaskId> = cluster.volumes.held().collect();
        let stay = (&held, &self.leaving);
        let work = kubelet_work(cluster, touched.into_iter(), stay);
        debug_assert_eq!(work, kubelet_work(cluster, cluster.tasks.ids(), stay), "of all pods");
        let (starting, gone) = work;
        self.held = held;
        let now_micros = self.now_micros;
        if !starting.is_empty() {
            let start = |cluster: &mut Cluster| {
                starting.iter().for_each(|&task| cluster.start_pod(task, now_micros));
            };
            self.engine.suppose(start);
            if let Some(queue) = &mut self.end_queue {
                let cluster = self.engine.cluster();
                starting.iter().for_each(|&task| queue.add(cluster, &self.ends, task, now_micros));
            }
        }
        self.delete_pods(&gone);
    }

    fn delete_pods(&mut self, pods: &[TaskId]) {
        if pods.is_empty() {
            return;
        }
        let cluster = self.engine.cluster();
        let deleted = |&task: &TaskId| {
            let row = &cluster.tasks[task];
            ClusterEvent::PodDeleted { key: row.key.clone(), uid: row.uid.clone() }
        };
        let deleted: Vec<ClusterEvent> = pods.iter().map(deleted).collect();
        self.engine.apply(deleted);
    }
}

/// Returns which of these pods start, as they are bound and have their volumes, and which are gone, as they
/// terminate. Pods that are held do not start, and leaving ones go later.
fn kubelet_work(
    cluster: &Cluster,
    pods: impl Iterator<Item = TaskId>,
    (held, leaving): (&BTreeSet<TaskId>, &BTreeMap<TaskId, i64>),
) -> (Vec<TaskId>, Vec<TaskId>) {
    let (mut starting, mut gone) = (Vec::new(), Vec::new());
    for task in pods {
        let Some(row) = cluster.tasks.get(task).filter(|row| row.node.is_some()) else { continue };
        match row.status {
            TaskStatus::Binding | TaskStatus::Bound if !held.contains(&task) => starting.push(task),
            TaskStatus::Releasing if !leaving.contains_key(&task) => gone.push(task),
            _ => {}
        }
    }
    (starting, gone)
}

/// True for an effect that lets the cluster differ in a later cycle. Conditions and events do not.
pub(super) fn is_decision(effect: &Effect) -> bool {
    match effect {
        Effect::Bind { .. }
        | Effect::PreBind { .. }
        | Effect::Evict { .. }
        | Effect::RemoveGate { .. }
        | Effect::CreateQueue { .. }
        | Effect::DeallocateClaim { .. } => true,
        Effect::PodGroupStatus { phase_changed, .. } => *phase_changed,
        _ => false,
    }
}

/// Returns the PodGroup of a job. Returns `None` if it has none of its own.
pub(crate) fn group_of(cluster: &Cluster, job: JobId) -> Option<ObjectKey> {
    let row = &cluster.jobs[job];
    (!row.bare).then(|| row.key.clone())
}

/// Returns the certificate of the eviction of a pod, and what it says of the pod. Returns `None` if
/// there is none.
pub(crate) fn certified<'a>(
    certificates: &'a [Certificate],
    uid: &str,
) -> Option<(&'a Certificate, &'a CertifiedVictim)> {
    certificates.iter().find_map(|certificate| {
        let victim = certificate.victims.iter().find(|victim| *victim.uid == *uid)?;
        Some((certificate, victim))
    })
}

/// Returns the plugins that granted the eviction of a pod.
pub(crate) fn granted_by(certificates: &[Certificate], uid: &str) -> Vec<&'static str> {
    let rule = certified(certificates, uid).and_then(|(_, victim)| victim.rule.as_ref());
    rule.map(|rule| rule.plugins.clone()).unwrap_or_default()
}
