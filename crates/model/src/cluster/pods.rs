//! Events of pods: which pods are tracked, and the overlay of our own decisions until the watch
//! shows them. Specification: core.md 4.2, 4.5, 11 (a) and (b).

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::event::ReadAfter;
use crate::ids::{ClassId, JobId, NodeId, TaskId};
use crate::other_scheduler::{OtherScheduler, SchedulerNumber};
use crate::record::{ObjectKey, PodCondition, PodRecord};
use crate::status::TaskStatus;
use crate::sums;
use crate::task::{Gates, Pause, Task};

impl Cluster {
    /// Applies a pod. Returns true if something changed.
    pub(super) fn pod_applied(&mut self, pod: PodRecord) -> bool {
        let id = self.task(&pod.uid);
        let known = id.map(|task| &self.tasks[task]);
        let evicting = known.is_some_and(|task| task.evicting);
        // A bind or an eviction is in flight, and its outcome decides (core.md 4.5, 11).
        let is_bound = |task: &Task| task.status.is_allocated() && !task.keeps_place;
        let decided = known.is_some_and(|task| is_bound(task) || task.evicting);
        if decided && pod.node_name.is_none() && self.tracks(&pod) {
            return false;
        }
        let place = id.filter(|&task| self.tasks[task].keeps_place);
        let place = place.and_then(|task| self.present_node(task));
        self.put_pod(pod, id, evicting) | self.keep_place(id, place)
    }

    /// Applies the answer to a GET after a write of a pod. What was decided since that write stays.
    /// A member of a gang whose bind was refused and pauses keeps its place until
    /// [`Cluster::give_up_place`]. Returns true if something changed.
    pub(super) fn pod_read(&mut self, pod: PodRecord, after: ReadAfter) -> bool {
        // A pod that the watch has already deleted must not return, as nothing would delete it
        // again.
        let Some(task) = self.task(&pod.uid) else { return false };
        let decided_since = match after {
            ReadAfter::Nomination => true,
            ReadAfter::Bind => self.tasks[task].evicting,
            ReadAfter::Eviction => false,
        };
        if decided_since {
            return self.pod_applied(pod);
        }
        let place = self.present_node(task).filter(|_| self.may_keep_place(task));
        self.put_pod(pod, Some(task), false) | self.keep_place(Some(task), place)
    }

    /// Returns the node of a task. Returns `None` if the task has no node, or the node is gone.
    fn present_node(&self, task: TaskId) -> Option<NodeId> {
        self.tasks[task].node.filter(|&node| self.nodes[node].present)
    }

    /// True if the bind of a task was refused, and the task belongs to a gang. What is promised beside
    /// the node's room (volumes, devices) is not kept.
    fn may_keep_place(&self, task: TaskId) -> bool {
        let row = &self.tasks[task];
        let is_gang = self.job_of(task).is_some_and(|job| 1 < job.min_available);
        row.status == TaskStatus::Binding
            && matches!(row.pause, Some(Pause::Bind(_)))
            && is_gang
            && self.volumes.reservation(task).is_none()
            && row.devices.is_none()
            && row.cpus.is_none()
    }

    /// Puts a waiting pod whose refused bind pauses back on this node, as Binding. Returns true if it
    /// did. Does nothing for another pod, or without a node.
    fn keep_place(&mut self, task: Option<TaskId>, place: Option<NodeId>) -> bool {
        let (Some(task), Some(node)) = (task, place) else { return false };
        let row = &self.tasks[task];
        let pauses = matches!(row.pause, Some(Pause::Bind(_)));
        if row.status != TaskStatus::Pending || !pauses {
            return false;
        }
        self.set_task(task, TaskStatus::Binding, Some(node));
        self.tasks[task].keeps_place = true;
        true
    }

    /// Lets a pod wait again that has kept its place while a refused bind paused.
    pub fn give_up_place(&mut self, task: TaskId) {
        let node = self.tasks[task].node;
        self.set_task(task, TaskStatus::Pending, None);
        self.tasks[task].keeps_place = false;
        node.into_iter().for_each(|node| self.drop_unnamed_node(node));
        self.version += 1;
    }

    pub(super) fn pod_deleted(&mut self, key: &ObjectKey, uid: &str) {
        let by_key = || self.task_named(key).filter(|_| uid.is_empty());
        if let Some(task) = self.task(uid).or_else(by_key) {
            self.forget_pod(task);
        }
    }

    pub(super) fn forget_condition(&mut self, uid: &str) {
        if let Some(task) = self.task(uid) {
            self.tasks[task].condition = None;
            self.tasks[task].nominated_node = None;
            self.tasks[task].ungating = false;
            if let Some(job) = self.tasks[task].job {
                self.job_changes.push(job);
            }
        }
    }

    /// Sets or ends the pause after a refused bind or eviction of a pod.
    pub fn set_pause(&mut self, task: TaskId, pause: Option<Pause>) {
        let row = &mut self.tasks[task];
        row.pause = pause;
        let (job, node) = (row.job, row.node);
        job.into_iter().for_each(|job| self.job_changes.push(job));
        node.into_iter().for_each(|node| self.node_changes.push(node));
        self.version += 1;
    }

    /// Sets the condition that sessions read for the pod.
    pub fn show_condition(&mut self, uid: &str, condition: Arc<PodCondition>) {
        let Some(task) = self.task(uid) else { return };
        self.tasks[task].condition = Some(condition);
        self.tasks[task].job.into_iter().for_each(|job| self.job_changes.push(job));
        self.version += 1;
    }

    fn forget_pod(&mut self, task: TaskId) {
        let job = self.tasks[task].job;
        let class = self.unlink(task);
        self.release_class(class);
        self.tasks.remove(task);
        self.drop_bare_job(job);
    }

    /// True if the pod is ours to schedule, or is on a node of ours (core.md 4.2).
    fn tracks(&self, pod: &PodRecord) -> bool {
        let division = self.settings.division.as_ref();
        let counts = |node: &Arc<str>| division.is_none_or(|division| division.owns(node));
        pod.node_name.as_ref().is_some_and(counts) || self.schedules(pod)
    }

    /// True if the pod is ours to schedule, by scheduler name and, with division of work, by its
    /// key.
    pub(super) fn schedules(&self, pod: &PodRecord) -> bool {
        self.settings.scheduler_names.contains(&pod.scheduler_name)
            && self.in_division(pod.owner_name.as_ref(), &pod.key)
    }

    /// True if a pod or PodGroup belongs to us by division of work. The name of its first owner
    /// decides, else its own name (core.md 4.4).
    pub(super) fn in_division(&self, owner: Option<&Arc<str>>, key: &ObjectKey) -> bool {
        let division = self.settings.division.as_ref();
        division.is_none_or(|division| division.owns(owner.unwrap_or(&key.name)))
    }

    /// Returns the number of the scheduler that decides about a pod, and counts the pod for it.
    pub(super) fn acquire_scheduler(&mut self, pod: &PodRecord) -> SchedulerNumber {
        let other = self.deciding_scheduler(pod);
        self.other_schedulers.acquire(other)
    }

    /// Returns the scheduler that decides about a pod. Returns `None` if this one does.
    fn deciding_scheduler(&self, pod: &PodRecord) -> Option<OtherScheduler> {
        if !self.settings.scheduler_names.contains(&pod.scheduler_name) {
            return Some(OtherScheduler::ByName(pod.scheduler_name.clone()));
        }
        let division = self.settings.division.as_ref()?;
        let name = division.other_owner(pod.owner_name.as_ref().unwrap_or(&pod.key.name))?;
        Some(OtherScheduler::ByDivision(name.into()))
    }

    /// Writes a pod to the tables; `known` is the task with its uid. Returns true if something
    /// changed.
    pub(super) fn put_pod(
        &mut self,
        pod: PodRecord,
        known: Option<TaskId>,
        evicting: bool,
    ) -> bool {
        if !self.tracks(&pod) {
            self.pod_deleted(&pod.key, &pod.uid);
            return true;
        }
        // A new pod has the name of the old one: the end of the old pod was missed.
        if let Some(old) = self.task_named(&pod.key).filter(|&old| self.tasks[old].uid != pod.uid) {
            self.forget_pod(old);
        }
        let job_before = known.and_then(|task| self.tasks[task].job);
        // A reservation of the pod ends here, so such a pod counts as changed.
        let is_plain = |&task: &TaskId| self.volumes.reservation(task).is_none();
        let before = known.filter(is_plain).map(|task| self.tasks[task].clone());
        // The old class is released after the new one is acquired, so shared parts are not rebuilt.
        let class_before = known.map(|task| self.unlink(task));
        let mut row = self.task_of(pod, evicting);
        row.pause = known.and_then(|id| row.pause_after(&self.tasks[id]));
        let same_node = known.map(|id| &self.tasks[id]).filter(|known| known.node == row.node);
        row.cpus = same_node.and_then(|known| known.cpus.clone());
        let id = match known {
            Some(id) => {
                self.tasks[id] = row;
                id
            }
            None => self.tasks.insert(row),
        };
        self.link(id);
        if let Some(class) = class_before {
            self.release_class(class);
        }
        self.drop_bare_job(job_before);
        // The job of a bare pod reads more of the pod than its task does.
        let is_bare = self.job_of(id).is_some_and(|job| job.bare);
        is_bare || before.is_none_or(|before| before != self.tasks[id])
    }

    /// Adds a complete task to the indexes, its job and its node.
    fn link(&mut self, task: TaskId) {
        let row = &self.tasks[task];
        self.task_by_uid.insert(&*row.uid, task);
        self.task_by_key.insert(&row.key, task);
        if let Some(until) = row.cooling_until_micros {
            self.cooling.get_mut().insert((until, task));
        }
        match row.job {
            Some(job) => self.join(job, task),
            None if row.status == TaskStatus::Pending => {
                self.ungrouped.get_mut().insert(task);
            }
            None => {}
        }
        self.index_claims(task, true);
        self.attach(task);
    }

    /// Removes a task from everything but its table row. The caller must release its class.
    fn unlink(&mut self, task: TaskId) -> ClassId {
        self.detach(task);
        self.release(task);
        self.index_claims(task, false);
        let row = &self.tasks[task];
        let (job, node, class) = (row.job, row.node, row.class);
        self.other_schedulers.release(row.scheduler);
        row.cooling_until_micros.map(|until| self.cooling.remove(&(until, task)));
        self.task_by_uid.remove(&*row.uid, task);
        self.task_by_key.remove(&row.key, task);
        self.ungrouped.remove(&task);
        if let Some(job) = job {
            self.quit(job, task);
        }
        if let Some(node) = node {
            self.drop_unnamed_node(node);
        }
        class
    }

    fn join(&mut self, id: JobId, task: TaskId) {
        self.job_changes.push(id);
        let place = self.place_in(&self.jobs[id].tasks, task);
        let row = &self.tasks[task];
        let sub_place = self.place_in(&self.jobs[id].sub_jobs[row.sub_job].tasks, task);
        let job = &mut self.jobs[id];
        job.tasks.insert(place, task);
        job.change_sub_job(row.sub_job, |sub_job| sub_job.tasks.insert(sub_place, task));
        let request = &self.classes[row.class].request;
        if row.gates == Gates::Foreign {
            job.gated.change(sums::enter, request);
        }
    }

    /// Reverses [`Cluster::join`]. A role without tasks is removed, and so is an empty job without
    /// PodGroup.
    fn quit(&mut self, id: JobId, task: TaskId) {
        self.job_changes.push(id);
        let place = self.place_in(&self.jobs[id].tasks, task);
        let row = &self.tasks[task];
        let sub_place = self.place_in(&self.jobs[id].sub_jobs[row.sub_job].tasks, task);
        let job = &mut self.jobs[id];
        job.tasks.remove(place);
        job.change_sub_job(row.sub_job, |sub_job| {
            sub_job.tasks.remove(sub_place);
        });
        job.drop_empty_sub_job(row.sub_job);
        let request = &self.classes[row.class].request;
        if row.gates == Gates::Foreign {
            job.gated.change(sums::leave, request);
        }
        if job.roles.get(&row.role).is_some_and(|counts| counts.total() == 0) {
            job.roles.remove(&row.role);
        }
        self.drop_empty_job(id);
    }

    /// Returns the position of the task in a list ordered by (namespace, name, uid).
    fn place_in(&self, list: &[TaskId], task: TaskId) -> usize {
        let Task { key, uid, .. } = &self.tasks[task];
        list.partition_point(|&other| {
            let other = &self.tasks[other];
            other.key.cmp(key).then_with(|| other.uid.cmp(uid)).is_lt()
        })
    }
}
