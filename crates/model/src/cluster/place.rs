//! Changes of status and node of a task. All sums change with the task, and undoing a change
//! restores them bit for bit. Specification: core.md 3.7 (counters), 3.8 (table of amounts),
//! plugins-nodes.md 1.5.

use vc_resource::Resource;

use crate::class::Class;
use crate::cluster::Cluster;
use crate::ids::{ClassId, NodeId, TaskId};
use crate::job::Job;
use crate::status::{Counts, TaskStatus};
use crate::sums;
use crate::task::Task;

impl Cluster {
    /// Sets status and node of the task.
    pub fn set_task(&mut self, task: TaskId, status: TaskStatus, node: Option<NodeId>) {
        let row = &self.tasks[task];
        if row.node == node && row.status.is_allocated() && status.is_allocated() {
            return self.recount(task, status);
        }
        self.detach(task);
        let row = &mut self.tasks[task];
        row.status = status;
        row.node = node;
        if node.is_none() {
            (row.devices, row.node_lock, row.cpus) = (None, None, None);
            self.release(task);
        }
        self.attach(task);
    }

    /// Sets the status of a task whose node and sums stay the same. A bind thus changes its job,
    /// but not its node. [`Cluster::check`] and the laws of this crate compare with the full
    /// update.
    fn recount(&mut self, task: TaskId, status: TaskStatus) {
        let row = &mut self.tasks[task];
        if let Some(job) = row.job {
            self.job_changes.push(job);
            count(&mut self.jobs[job], row, |counts, from, best_effort, on_node| {
                counts.sub(from, best_effort, on_node);
                counts.add(status, best_effort, on_node);
            });
        }
        row.status = status;
    }

    /// Evicts the task in this session: it is Releasing in the sums, and removed from the view of
    /// its node.
    pub fn evict_task(&mut self, task: TaskId) {
        self.detach(task);
        let row = &mut self.tasks[task];
        row.status = TaskStatus::Releasing;
        row.hidden = true;
        self.attach(task);
    }

    /// Undoes an eviction.
    pub fn unevict_task(&mut self, task: TaskId, status: TaskStatus) {
        self.detach(task);
        let row = &mut self.tasks[task];
        row.status = status;
        row.hidden = false;
        self.attach(task);
    }

    /// Shows an evicted task on its node again, after the session that evicted it has ended.
    pub fn reveal_task(&mut self, task: TaskId) {
        self.show(task, true);
    }

    /// Removes a terminating task from the view of its node. Its resources stay in use.
    pub fn hide_task(&mut self, task: TaskId) {
        self.show(task, false);
    }

    /// Gives the task another class for a trial. Returns the class that it had, which stays until
    /// [`Cluster::restore_class`] gives it back.
    pub fn lend_class(&mut self, task: TaskId, class: Class) -> ClassId {
        let lent = self.acquire_class(class);
        self.exchange_class(task, lent)
    }

    /// Gives the task the class that another task has, as [`Cluster::lend_class`] does.
    pub fn lend_class_of(&mut self, task: TaskId, other: TaskId) -> ClassId {
        let lent = self.tasks[other].class;
        self.classes.acquire_again(lent);
        self.exchange_class(task, lent)
    }

    fn exchange_class(&mut self, task: TaskId, class: ClassId) -> ClassId {
        self.detach(task);
        let before = std::mem::replace(&mut self.tasks[task].class, class);
        self.attach(task);
        before
    }

    /// Gives the task its own class back, which [`Cluster::lend_class`] has returned.
    pub fn restore_class(&mut self, task: TaskId, own: ClassId) {
        let lent = self.exchange_class(task, own);
        self.release_class(lent);
    }

    fn show(&mut self, task: TaskId, shown: bool) {
        self.detach(task);
        self.tasks[task].hidden = !shown;
        self.attach(task);
    }

    /// Adds the task to the sums of its job and its node. The job is in the change log already: the
    /// task has just joined it, or was detached.
    pub(super) fn attach(&mut self, task: TaskId) {
        let row = &self.tasks[task];
        let class = &self.classes[row.class];
        if let Some(job) = row.job {
            count(&mut self.jobs[job], row, Counts::add);
            sum(&mut self.jobs[job], row.status, &class.request, sums::enter);
        }
        let Some(id) = row.node else { return };
        self.node_changes.push(id);
        let node = &mut self.nodes[id];
        if row.status.is_terminated() {
            node.n_terminated += 1;
            return;
        }
        node.charge(row.status, &class.request);
        if row.is_in_view() {
            node.view.add(class);
            if !class.volumes.is_empty() {
                let names = self.volumes.names_on(class, &node.name);
                names.for_each(|name| node.volumes.add(name));
            }
            self.domains.enter(row.class, id, row.is_live());
        }
        if let Err(place) = node.tasks.binary_search(&task) {
            node.tasks.insert(place, task);
        }
    }

    /// Reverses [`Cluster::attach`].
    pub(super) fn detach(&mut self, task: TaskId) {
        let row = &self.tasks[task];
        let class = &self.classes[row.class];
        if let Some(job) = row.job {
            self.job_changes.push(job);
            count(&mut self.jobs[job], row, Counts::sub);
            sum(&mut self.jobs[job], row.status, &class.request, sums::leave);
        }
        let Some(id) = row.node else { return };
        self.node_changes.push(id);
        let node = &mut self.nodes[id];
        if row.status.is_terminated() {
            node.n_terminated -= 1;
            return;
        }
        node.discharge(row.status, &class.request);
        if row.is_in_view() {
            node.view.remove(class);
            if !class.volumes.is_empty() {
                let names = self.volumes.names_on(class, &node.name);
                names.for_each(|name| node.volumes.remove(&name));
            }
            self.domains.leave(row.class, id, row.is_live());
        }
        if let Ok(place) = node.tasks.binary_search(&task) {
            node.tasks.remove(place);
        }
    }
}

/// Removes the task from the counters of its job.
pub(super) fn uncount(job: &mut Job, task: &Task) {
    count(job, task, Counts::sub);
}

/// Changes the counters of the task's job, role and sub-job.
fn count(job: &mut Job, task: &Task, change: impl Fn(&mut Counts, TaskStatus, bool, bool)) {
    let on_node = task.node.is_some();
    let change = |counts: &mut Counts| change(counts, task.status, task.best_effort, on_node);
    change(&mut job.counts);
    change(job.roles.entry(&task.role));
    job.change_sub_job(task.sub_job, |sub_job| change(&mut sub_job.counts));
}

/// Adds or removes the request in the sum that the status belongs to.
fn sum(
    job: &mut Job,
    status: TaskStatus,
    request: &Resource,
    change: fn(&mut Resource, &Resource),
) {
    match status {
        status if status.is_allocated() => change(&mut job.allocated, request),
        TaskStatus::Pending => job.pending_request.change(change, request),
        _ => job.other_request.change(change, request),
    }
}
