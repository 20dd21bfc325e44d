//! The only way in which a task changes its status or node: all sums move with it, and moving back restores
//! them bit for bit. Specification: core.md 3.7 (counters), 3.8 (table of amounts), plugins-nodes.md 1.5.

use crate::cluster::Cluster;
use crate::ids::{JobId, NodeId, TaskId};
use crate::status::TaskStatus;

impl Cluster {
    /// Gives the task this status on this node.
    pub fn set_task(&mut self, task: TaskId, status: TaskStatus, node: Option<NodeId>) {
        self.detach(task);
        let row = &mut self.tasks[task];
        row.status = status;
        row.node = node;
        self.attach(task);
    }

    /// Evicts the task in this session: Releasing in the sums, gone from the view of its node.
    pub fn evict_task(&mut self, task: TaskId) {
        let node = self.tasks[task].node;
        self.detach(task);
        let row = &mut self.tasks[task];
        row.status = TaskStatus::Releasing;
        row.node = node;
        row.hidden = true;
        self.attach(task);
    }

    /// Takes an eviction back.
    pub fn unevict_task(&mut self, task: TaskId, status: TaskStatus) {
        self.detach(task);
        let row = &mut self.tasks[task];
        row.status = status;
        row.hidden = false;
        self.attach(task);
    }

    /// Shows an evicted task on its node again: the session that evicted it has ended.
    pub fn reveal_task(&mut self, task: TaskId) {
        self.detach(task);
        self.tasks[task].hidden = false;
        self.attach(task);
    }

    pub(super) fn attach(&mut self, task: TaskId) {
        let row = &self.tasks[task];
        let class = &self.classes[row.class];
        if let Some(job) = row.job {
            count(&mut self.jobs[job], row, &class.request, Direction::Enter);
        }
        let Some(node) = row.node.filter(|_| !row.status.is_terminated()) else { return };
        let node = &mut self.nodes[node];
        node.charge(row.status, &class.request);
        if !row.hidden {
            node.view.add(class);
        }
        if let Err(place) = node.tasks.binary_search(&task) {
            node.tasks.insert(place, task);
        }
    }

    pub(super) fn detach(&mut self, task: TaskId) {
        let row = &self.tasks[task];
        let class = &self.classes[row.class];
        if let Some(job) = row.job {
            count(&mut self.jobs[job], row, &class.request, Direction::Leave);
        }
        let Some(node) = row.node.filter(|_| !row.status.is_terminated()) else { return };
        let node = &mut self.nodes[node];
        node.discharge(row.status, &class.request);
        if !row.hidden {
            node.view.remove(class);
        }
        if let Ok(place) = node.tasks.binary_search(&task) {
            node.tasks.remove(place);
        }
    }

    /// Sets the phase of a job's PodGroup in the session (core.md 7.5).
    pub fn set_phase(&mut self, job: JobId, phase: crate::record::PodGroupPhase) {
        if let Some(group) = &mut self.jobs[job].pod_group {
            group.status.phase = phase;
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Enter,
    Leave,
}

fn count(
    job: &mut crate::job::Job,
    task: &crate::task::Task,
    request: &vc_resource::Resource,
    direction: Direction,
) {
    let on_node = task.node.is_some();
    let role = job.roles.entry(task.role.clone()).or_default();
    let sub_job = &mut job.sub_jobs[task.sub_job].counts;
    for counts in [&mut job.counts, role, sub_job] {
        match direction {
            Direction::Enter => counts.add(task.status, task.best_effort, on_node),
            Direction::Leave => counts.sub(task.status, task.best_effort, on_node),
        }
    }
    let sum = match task.status {
        status if status.is_allocated() => &mut job.allocated,
        TaskStatus::Pending => &mut job.pending_request,
        _ => return,
    };
    match direction {
        Direction::Enter => sum.add(request),
        Direction::Leave => sum.sub(request),
    }
}
