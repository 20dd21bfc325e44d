//! A recorded story once more, in a world that answers to what is decided: pods run as soon as they are bound,
//! and for as long as they ran. Specification: answers.md 15 (ANS-106).

mod figures;
mod outside;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_conf::Config;
use vc_engine::Engine;
use vc_model::{Cluster, ClusterEvent, ObjectKey, StorageObject, TaskId, TaskStatus};

use crate::ends::ExpectedEnds;
use crate::what_if::SupposedKubelet;
use crate::what_if::run::SupposedRun;
use figures::Notes;
pub use figures::{ClosedFigures, Spread};
use outside::OutsideChange;
pub use outside::OutsideStory;

/// Time from a cycle that decides something between two recorded ones to the next.
const PERIOD_MICROS: i64 = 1_000_000;

/// Runs a recorded story in a closed world. `engine`: the state with which it begins. `config`: another
/// configuration, with which none of the story comes into force. `None`: that of the story.
pub fn closed_run(engine: &Engine, story: &OutsideStory, config: Option<&Config>) -> ClosedFigures {
    let mut world = ClosedWorld::new(engine, story);
    if let Some(config) = config {
        world.has_own_config = true;
        drop(world.run.engine_mut().configure(config));
    }
    world.begin();
    for (at, step) in story.steps.iter().enumerate() {
        world.pass_until(step.now_micros);
        world.change(&step.changes);
        world.cycle();
        let next = story.steps.get(at + 1).map(|next| next.now_micros);
        next.into_iter().for_each(|next| world.go_on_until(next));
    }
    world.notes.figures(world.run.cluster())
}

/// What becomes due.
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
    ended: BTreeMap<Arc<str>, i64>,
    /// How long after its end a pod is removed, in microseconds.
    removals: BTreeMap<Arc<str>, i64>,
    /// PodGroups that go with their last pod.
    leaving: BTreeSet<ObjectKey>,
    notes: Notes,
}

impl<'a> ClosedWorld<'a> {
    fn new(engine: &Engine, story: &'a OutsideStory) -> Self {
        Self {
            run: SupposedRun::new(engine, SupposedKubelet::None, ExpectedEnds::default()),
            story,
            has_own_config: false,
            due: BTreeSet::new(),
            bound: BTreeMap::new(),
            ended: BTreeMap::new(),
            removals: BTreeMap::new(),
            leaving: BTreeSet::new(),
            notes: Notes::default(),
        }
    }

    /// Finishes what was on its way, and takes note of the pods that run.
    fn begin(&mut self) {
        self.run.advance_to(self.story.begin_micros);
        let cluster = self.run.cluster();
        let groups = cluster.jobs.iter().map(|(_, job)| job.key.clone());
        let groups: Vec<ObjectKey> = groups.collect();
        let running = cluster.tasks.iter().map(|(_, row)| row).filter(|row| {
            row.job.is_some() && row.node.is_some() && row.status == TaskStatus::Running
        });
        let running = running.map(|row| {
            let bound = row.scheduled_micros.or(row.started_micros);
            (row.uid.clone(), bound.unwrap_or(self.story.begin_micros))
        });
        let running: Vec<(Arc<str>, i64)> = running.collect();
        let store = |cluster: &mut Cluster| groups.iter().for_each(|key| cluster.store_status(key));
        self.run.engine_mut().suppose(store);
        running.into_iter().for_each(|(uid, bound)| self.starts(uid, bound));
        self.run_kubelets();
    }

    /// Lets pods end, and cycles follow, until this time.
    fn go_on_until(&mut self, until_micros: i64) {
        while let Some(next) = self.due.first().map(|(at, _)| *at).filter(|at| *at < until_micros) {
            self.pass_until(next);
            while self.cycle() && self.run.now_micros() + PERIOD_MICROS < until_micros {
                self.pass_until(self.run.now_micros() + PERIOD_MICROS);
            }
        }
    }

    /// Moves the clock on, and does what is due by then.
    fn pass_until(&mut self, now_micros: i64) {
        while let Some((at, _)) = self.due.first()
            && *at <= now_micros
            && let Some((at, action)) = self.due.pop_first()
        {
            self.advance_to(at);
            match action {
                DueAction::End(uid, bound) if self.bound.get(&uid) == Some(&bound) => {
                    self.end(&uid)
                }
                DueAction::End(..) => {}
                DueAction::Remove(uid) => self.delete(&uid),
            }
        }
        self.advance_to(now_micros);
    }

    fn advance_to(&mut self, now_micros: i64) {
        let passes = now_micros - self.run.now_micros();
        if 0 < passes {
            self.notes.pass(self.run.cluster(), passes);
            self.run.advance_to(now_micros);
        }
    }

    /// Runs a cycle. Returns true if it decided something.
    fn cycle(&mut self) -> bool {
        let decides = self.run.cycle_now();
        self.notes.n_evictions += std::mem::take(&mut self.run.evicted).len() as u64;
        self.notes.n_binds += std::mem::take(&mut self.run.bound).len() as u64;
        self.run_kubelets();
        self.drop_left_groups();
        decides
    }

    /// Starts bound pods, and makes those anew that were evicted.
    fn run_kubelets(&mut self) {
        let cluster = self.run.cluster();
        let held: BTreeSet<TaskId> = cluster.volumes.held().collect();
        let of_jobs = cluster.tasks.iter().filter(|(_, row)| row.job.is_some());
        let (mut starting, mut evicted) = (Vec::new(), Vec::new());
        for (task, row) in of_jobs.filter(|(_, row)| row.node.is_some()) {
            match row.status {
                TaskStatus::Binding | TaskStatus::Bound if !held.contains(&task) => {
                    starting.push((task, row.uid.clone()));
                }
                TaskStatus::Releasing if row.evicting => evicted.push((task, row.uid.clone())),
                _ => {}
            }
        }
        if starting.is_empty() && evicted.is_empty() {
            return;
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
            self.note_start(task, now_micros);
            self.starts(uid, now_micros);
        }
    }

    fn note_start(&mut self, task: TaskId, now_micros: i64) {
        let cluster = self.run.cluster();
        let row = &cluster.tasks[task];
        let Some(job) = row.job else { return };
        let pods = cluster.jobs[job].tasks.iter().map(|&task| &cluster.tasks[task]);
        let created = pods.map(|row| row.created_micros).filter(|created| 0 < *created).min();
        let created = created.unwrap_or(self.story.begin_micros);
        let run = self.story.runs.get(&row.uid).copied();
        self.notes.starts(&cluster.jobs[job].key, (created, now_micros), run);
    }

    /// A pod runs since then, and ends after its time.
    fn starts(&mut self, uid: Arc<str>, bound_micros: i64) {
        self.bound.insert(uid.clone(), bound_micros);
        if let Some(run) = self.story.runs.get(&uid) {
            self.due.insert((bound_micros + run, DueAction::End(uid, bound_micros)));
        }
    }

    fn end(&mut self, uid: &Arc<str>) {
        if let Some(task) = self.run.cluster().task(uid) {
            self.run.engine_mut().suppose(|cluster| cluster.end_pod(task));
        }
        let now_micros = self.run.now_micros();
        self.bound.remove(uid);
        self.ended.insert(uid.clone(), now_micros);
        if let Some(after) = self.removals.remove(uid) {
            self.due.insert((now_micros + after, DueAction::Remove(uid.clone())));
        }
    }

    fn delete(&mut self, uid: &Arc<str>) {
        let Some(task) = self.run.cluster().task(uid) else { return };
        let key = self.run.cluster().tasks[task].key.clone();
        self.run.apply(ClusterEvent::PodDeleted { key, uid: uid.clone() });
        self.bound.remove(uid);
        self.ended.remove(uid);
    }

    fn change(&mut self, changes: &[OutsideChange]) {
        for change in changes {
            match change {
                OutsideChange::Event(event) if self.is_known_storage(event) => {}
                OutsideChange::Event(event) => self.run.apply((**event).clone()),
                OutsideChange::PodGone(uid) => self.delete(uid),
                OutsideChange::PodRemoved { uid, after_micros } => self.remove(uid, *after_micros),
                OutsideChange::GatesOpened(uid) => {
                    if let Some(task) = self.run.cluster().task(uid) {
                        self.run.engine_mut().suppose(|cluster| cluster.open_gates(task));
                    }
                }
                OutsideChange::PodGroup(group) => {
                    let known = self.run.cluster().job(&group.key);
                    let known = known.and_then(|job| self.run.cluster().pod_group_record(job));
                    let mut group = (**group).clone();
                    group.status = known.map_or(group.status, |known| known.status);
                    self.run.engine_mut().suppose(|cluster| cluster.replace_pod_group(group));
                }
                OutsideChange::PodGroupGone(key) => drop(self.leaving.insert(key.clone())),
                OutsideChange::Configure(config) if !self.has_own_config => {
                    drop(self.run.engine_mut().configure(config));
                }
                OutsideChange::Configure(_) => {}
                OutsideChange::ServeDevices => self.run.engine_mut().serve_devices(),
            }
        }
        self.drop_left_groups();
    }

    /// A pod is removed so long after its end, which may be still to come.
    fn remove(&mut self, uid: &Arc<str>, after_micros: i64) {
        match self.ended.get(uid) {
            Some(ended) => {
                let at = self.run.now_micros().max(ended + after_micros);
                self.due.insert((at, DueAction::Remove(uid.clone())));
            }
            None => drop(self.removals.insert(uid.clone(), after_micros)),
        }
    }

    /// True for a claim or volume that is there already: what was told later is to which other one it was
    /// bound.
    fn is_known_storage(&self, event: &ClusterEvent) -> bool {
        let volumes = &self.run.cluster().volumes;
        match event {
            ClusterEvent::StorageApplied(object) => match &**object {
                StorageObject::Claim(claim) => volumes.claim(&claim.key).is_some(),
                StorageObject::Volume(volume) => volumes.volume(&volume.name).is_some(),
                _ => false,
            },
            _ => false,
        }
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
