//! Runs a recorded story once more in a world that answers to what is decided: pods run as soon as they are bound,
//! and for as long as they ran. Specification: answers.md 15 (ANS-106).

mod figures;
mod outside;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_conf::Config;
use vc_engine::Engine;
use vc_model::{
    ClusterEvent, JobId, ObjectKey, PodGroupRecord, PodPhase, PodRecord, StorageObject, TaskId,
    TaskStatus,
};

use crate::ends::ExpectedEnds;
use crate::what_if::SupposedKubelet;
use crate::what_if::run::SupposedRun;
use figures::FigureNotes;
pub use figures::{ClosedFigures, WaitTimes};
pub use outside::OutsideStory;
use outside::{OutsideChange, is_evicted};

/// Time from a cycle that decides something between two recorded ones to the next.
const PERIOD_MICROS: i64 = 1_000_000;

/// Runs a recorded story in a closed world. `engine`: the state with which it begins. `config`: another
/// configuration, which then stays in force. `None`: that of the story.
pub fn closed_run(engine: &Engine, story: &OutsideStory, config: Option<&Config>) -> ClosedFigures {
    let mut world = ClosedWorld::new(engine, story);
    if let Some(config) = config {
        world.has_own_config = true;
        drop(world.run.engine_mut().configure(config));
    }
    world.finish_what_has_begun();
    for (at, step) in story.steps.iter().enumerate() {
        world.advance_to(step.now_micros);
        world.apply_changes(&step.changes);
        world.run_cycle();
        let next = story.steps.get(at + 1).map(|next| next.now_micros);
        next.into_iter().for_each(|next| world.run_until(next));
    }
    world.notes.figures(world.run.cluster())
}

/// Something to do to a pod later.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DueAction {
    /// A pod ends that was bound then, in microseconds since 1970.
    End(Arc<str>, i64),
    Remove(Arc<str>),
}

struct ClosedWorld<'a> {
    run: SupposedRun,
    story: &'a OutsideStory,
    has_own_config: bool,
    due: BTreeSet<(i64, DueAction)>,
    /// When pods were bound that have a node, in microseconds since 1970, by UID.
    bound: BTreeMap<Arc<str>, i64>,
    /// When pods ended that are still there, in microseconds since 1970, by UID.
    ended: BTreeMap<Arc<str>, i64>,
    /// How long after its end a pod is removed, in microseconds.
    removals: BTreeMap<Arc<str>, i64>,
    /// PodGroups that go with their last pod.
    leaving: BTreeSet<ObjectKey>,
    /// Pods that wait for volumes which are on their way.
    held: BTreeSet<TaskId>,
    notes: FigureNotes,
}

impl<'a> ClosedWorld<'a> {
    fn new(engine: &Engine, story: &'a OutsideStory) -> Self {
        let mut run = SupposedRun::new(engine, SupposedKubelet::None, ExpectedEnds::default());
        // Nobody reads why jobs wait.
        run.engine_mut().explain(false);
        let held = run.cluster().volumes.held().collect();
        Self {
            run,
            story,
            has_own_config: false,
            due: BTreeSet::new(),
            bound: BTreeMap::new(),
            ended: BTreeMap::new(),
            removals: BTreeMap::new(),
            leaving: BTreeSet::new(),
            held,
            notes: FigureNotes::default(),
        }
    }

    /// Lets the writes that are on their way be done, starts bound pods, and takes note of those that run.
    fn finish_what_has_begun(&mut self) {
        let begin_micros = self.story.begin_micros;
        self.run.advance_to(begin_micros);
        let cluster = self.run.cluster();
        let groups: Vec<ObjectKey> = cluster.jobs.iter().map(|(_, job)| job.key.clone()).collect();
        let has_started = |job: JobId| {
            cluster.jobs[job].tasks.iter().any(|&task| cluster.tasks[task].node.is_some())
        };
        let started: Vec<JobId> =
            cluster.jobs.iter().map(|(job, _)| job).filter(|&job| has_started(job)).collect();
        self.notes.leave_out(cluster, &started);
        let mut touched = Vec::new();
        for (task, row) in cluster.tasks.iter().filter(|(_, row)| row.job.is_some()) {
            let bound = row.scheduled_micros.or(row.started_micros).unwrap_or(begin_micros);
            match row.status {
                status if status.is_terminated() => {
                    self.ended.insert(row.uid.clone(), begin_micros);
                }
                _ if row.node.is_none() => {}
                TaskStatus::Binding | TaskStatus::Bound => touched.push(task),
                TaskStatus::Releasing if is_evicted(row) => touched.push(task),
                _ => {
                    let uid = row.uid.clone();
                    note_bind(self.story, &mut self.bound, &mut self.due, uid, bound);
                }
            }
        }
        self.run.engine_mut().suppose(|cluster| {
            groups.iter().for_each(|key| cluster.store_status(key));
        });
        self.run_kubelets(touched);
    }

    /// Lets pods end, and cycles follow, until this time.
    fn run_until(&mut self, until_micros: i64) {
        while let Some(next) = self.due.first().map(|(at, _)| *at).filter(|at| *at < until_micros) {
            self.advance_to(next);
            while self.run_cycle() && self.next_period() < until_micros {
                self.advance_to(self.next_period());
            }
        }
    }

    fn next_period(&self) -> i64 {
        self.run.now_micros().saturating_add(PERIOD_MICROS)
    }

    /// Moves the clock on, and does what is due by then.
    fn advance_to(&mut self, now_micros: i64) {
        while let Some((at, _)) = self.due.first()
            && *at <= now_micros
            && let Some((at, action)) = self.due.pop_first()
        {
            self.advance_clock(at);
            match action {
                DueAction::End(uid, bound) if self.bound.get(&uid) == Some(&bound) => {
                    self.end_pod(&uid);
                }
                DueAction::End(..) => {}
                DueAction::Remove(uid) => self.delete_pod(&uid),
            }
        }
        self.advance_clock(now_micros);
    }

    fn advance_clock(&mut self, now_micros: i64) {
        let passed = now_micros.saturating_sub(self.run.now_micros());
        if 0 < passed {
            self.notes.note_time(self.run.cluster(), passed);
            self.run.advance_to(now_micros);
        }
    }

    /// Runs a cycle. Returns true if it decided something.
    fn run_cycle(&mut self) -> bool {
        let decides = self.run.cycle_now();
        let evicted = std::mem::take(&mut self.run.evicted);
        let bound = std::mem::take(&mut self.run.bound);
        self.notes.n_evictions += evicted.len() as u64;
        self.notes.n_binds += bound.len() as u64;
        let cluster = self.run.cluster();
        let touched = evicted.keys().chain(bound.keys());
        let touched = touched.filter_map(|key| cluster.task_named(key));
        let touched: Vec<TaskId> = touched.chain(self.held.iter().copied()).collect();
        self.run_kubelets(touched);
        self.drop_left_groups();
        decides
    }

    /// Starts those of these pods that are bound, and makes those anew that were evicted.
    fn run_kubelets(&mut self, touched: Vec<TaskId>) {
        let cluster = self.run.cluster();
        self.held = cluster.volumes.held().collect();
        let (mut starting, mut evicted) = (Vec::new(), Vec::new());
        for task in touched {
            let Some(row) = cluster.tasks.get(task).filter(|row| row.job.is_some()) else {
                continue;
            };
            match row.status {
                TaskStatus::Binding | TaskStatus::Bound if !self.held.contains(&task) => {
                    starting.push((task, row.uid.clone()));
                }
                _ if is_evicted(row) => evicted.push((task, row.uid.clone())),
                _ => {}
            }
        }
        let now_micros = self.run.now_micros();
        self.run.engine_mut().suppose(|cluster| {
            starting.iter().for_each(|(task, _)| cluster.start_pod(*task, now_micros));
            evicted.iter().for_each(|(task, _)| cluster.requeue_pod(*task));
        });
        for (_, uid) in &evicted {
            self.bound.remove(uid);
        }
        for (task, uid) in starting {
            let run = self.story.runs.get(&uid).copied();
            self.notes.note_start(
                (self.run.cluster(), task),
                self.story.begin_micros,
                now_micros,
                run,
            );
            note_bind(self.story, &mut self.bound, &mut self.due, uid, now_micros);
        }
    }

    fn end_pod(&mut self, uid: &Arc<str>) {
        if let Some(task) = self.run.cluster().task(uid) {
            self.run.engine_mut().suppose(|cluster| cluster.end_pod(task));
        }
        let now_micros = self.run.now_micros();
        self.bound.remove(uid);
        self.ended.insert(uid.clone(), now_micros);
        if let Some(after) = self.removals.remove(uid) {
            let at_micros = now_micros.saturating_add(after);
            self.due.insert((at_micros, DueAction::Remove(uid.clone())));
        }
    }

    fn delete_pod(&mut self, uid: &Arc<str>) {
        self.bound.remove(uid);
        self.ended.remove(uid);
        let Some(task) = self.run.cluster().task(uid) else { return };
        let key = self.run.cluster().tasks[task].key.clone();
        self.run.apply(ClusterEvent::PodDeleted { key, uid: uid.clone() });
    }

    fn apply_changes(&mut self, changes: &[OutsideChange]) {
        for change in changes {
            match change {
                OutsideChange::Event(event) => self.apply_event(event),
                OutsideChange::Pod(pod) => self.change_pod(pod),
                OutsideChange::DeletePod(uid) => self.delete_pod(uid),
                OutsideChange::RemovePod { uid, after_micros } => {
                    self.remove_pod(uid, *after_micros);
                }
                OutsideChange::PodGroup(group) => self.change_pod_group(group),
                OutsideChange::DeletePodGroup(key) => drop(self.leaving.insert(key.clone())),
                OutsideChange::Configure(config) if !self.has_own_config => {
                    drop(self.run.engine_mut().configure(config));
                }
                OutsideChange::Configure(_) => {}
                OutsideChange::ServeDevices => self.run.engine_mut().serve_devices(),
            }
        }
        self.drop_left_groups();
    }

    fn apply_event(&mut self, event: &ClusterEvent) {
        if self.is_answered_already(event) {
            return;
        }
        match event {
            ClusterEvent::PodGroupApplied(group) => drop(self.leaving.remove(&group.key)),
            ClusterEvent::NodeDeleted { name } => self.empty_node(name),
            _ => {}
        }
        self.run.apply(event.clone());
    }

    /// True for an answer to a write of the recorded story: a claim or volume that is there already was bound,
    /// and no pod waits for that which was on its way at the beginning.
    fn is_answered_already(&self, event: &ClusterEvent) -> bool {
        let cluster = self.run.cluster();
        match event {
            ClusterEvent::VolumesWritten { uid, .. } => {
                cluster.task(uid).is_none_or(|task| !self.held.contains(&task))
            }
            ClusterEvent::StorageApplied(object) if self.held.is_empty() => match &**object {
                StorageObject::Claim(claim) => cluster.volumes.claim(&claim.key).is_some(),
                StorageObject::Volume(volume) => cluster.volumes.volume(&volume.name).is_some(),
                _ => false,
            },
            _ => false,
        }
    }

    /// Lets the pods of a node that goes wait again, as those that their controllers make.
    fn empty_node(&mut self, name: &str) {
        let cluster = self.run.cluster();
        let Some(node) = cluster.node(name) else { return };
        let is_lost = |task: &TaskId| {
            let row = &cluster.tasks[*task];
            row.job.is_some() && row.status.is_allocated()
        };
        let lost: Vec<TaskId> = cluster.nodes[node].tasks.iter().copied().filter(is_lost).collect();
        for &task in &lost {
            self.bound.remove(&self.run.cluster().tasks[task].uid);
        }
        self.run.engine_mut().suppose(|cluster| {
            lost.iter().for_each(|&task| cluster.requeue_pod(task));
        });
    }

    /// Adds an own pod, or changes its object. It keeps its node.
    fn change_pod(&mut self, pod: &PodRecord) {
        let cluster = self.run.cluster();
        let mut pod = pod.clone();
        if let Some(task) = cluster.task(&pod.uid) {
            let row = &cluster.tasks[task];
            pod.node_name = row.node.map(|node| cluster.nodes[node].name.clone());
            pod.phase = match row.status {
                TaskStatus::Running => PodPhase::Running,
                TaskStatus::Succeeded => PodPhase::Succeeded,
                _ => PodPhase::Pending,
            };
            (pod.started_micros, pod.scheduled_micros) = (row.started_micros, row.scheduled_micros);
        }
        self.run.apply(ClusterEvent::PodApplied(Box::new(pod)));
    }

    /// Removes a pod so long after its end, which may be still to come.
    fn remove_pod(&mut self, uid: &Arc<str>, after_micros: i64) {
        match self.ended.get(uid) {
            Some(ended) => {
                let at_micros = self.run.now_micros().max(ended.saturating_add(after_micros));
                self.due.insert((at_micros, DueAction::Remove(uid.clone())));
            }
            None => drop(self.removals.insert(uid.clone(), after_micros)),
        }
    }

    /// Adds a PodGroup, or changes its object. It keeps its status.
    fn change_pod_group(&mut self, group: &PodGroupRecord) {
        self.leaving.remove(&group.key);
        let known = self.run.cluster().job(&group.key);
        let known = known.and_then(|job| self.run.cluster().pod_group_record(job));
        let mut group = group.clone();
        group.status = known.map_or(group.status, |known| known.status);
        self.run.engine_mut().suppose(|cluster| cluster.replace_pod_group(group));
    }

    fn drop_left_groups(&mut self) {
        let cluster = self.run.cluster();
        let is_left = |key: &&ObjectKey| {
            cluster.job(key).is_none_or(|job| cluster.jobs[job].tasks.is_empty())
        };
        let left: Vec<ObjectKey> = self.leaving.iter().filter(is_left).cloned().collect();
        for key in left {
            self.leaving.remove(&key);
            self.run.apply(ClusterEvent::PodGroupDeleted { key });
        }
    }
}

/// Takes note of a pod that was bound then, in microseconds since 1970, and of its end.
fn note_bind(
    story: &OutsideStory,
    bound: &mut BTreeMap<Arc<str>, i64>,
    due: &mut BTreeSet<(i64, DueAction)>,
    uid: Arc<str>,
    bound_micros: i64,
) {
    bound.insert(uid.clone(), bound_micros);
    if let Some(run) = story.runs.get(&uid) {
        due.insert((bound_micros.saturating_add(*run), DueAction::End(uid, bound_micros)));
    }
}
