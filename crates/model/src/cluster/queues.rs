//! Events of queues, and their rows, which stay as long as the queue exists or a job names it.
//! Specification: core.md 3.9, 4.6.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_resource::{Dim, Dims, Quantity, amount};

use crate::cluster::Cluster;
use crate::ids::{JobId, QueueId};
use crate::queue::Queue;
use crate::record::{QueueRecord, ResourceList};
use crate::request::to_resource;

impl Cluster {
    /// Returns the row of a queue. A placeholder is created if the name is new.
    pub(super) fn queue_row(&mut self, name: &Arc<str>) -> QueueId {
        if let Some(&queue) = self.queue_by_name.get().get(name) {
            return queue;
        }
        let queue = self.queues.insert(Queue { name: name.clone(), ..Queue::default() });
        self.queue_by_name.get_mut().insert(name.clone(), queue);
        queue
    }

    /// Applies a queue. Returns true if something changed.
    pub(super) fn queue_applied(&mut self, record: QueueRecord) -> bool {
        let id = self.queue_row(&record.name);
        if !self.queues[id].present {
            self.job_changes.forget();
        }
        let capability = to_resource(&record.capability, &mut self.dims);
        let deserved = to_resource(&record.deserved, &mut self.dims);
        let guarantee = to_resource(&record.guarantee, &mut self.dims);
        let lists = |dim: &Dim| {
            let mut names = record.deserved.iter().chain(&record.guarantee).map(|(name, _)| name);
            names.any(|name| **name == *self.dims.name(*dim))
        };
        let listed = [Dim::CPU, Dim::MEMORY].into_iter().filter(lists).collect();
        let queue = Queue {
            name: record.name,
            uid: record.uid,
            present: true,
            created_micros: record.created_micros,
            weight: record.weight,
            priority: record.priority,
            reclaimable: record.reclaimable,
            capability,
            deserved,
            guarantee,
            listed,
            parent: record.parent,
            fifo: record.fifo,
            node_group_affinity: record.node_group_affinity,
            node_group_limits: record.node_group_limits.map(|list| amounts(&list, &mut self.dims)),
            state: record.state,
            annotations: record.annotations,
            written_allocated: Some(record.status_allocated),
            n_jobs: self.queues[id].n_jobs,
        };
        let mut before = std::mem::replace(&mut self.queues[id], queue);
        let is_news = before != self.queues[id];
        let now = &self.queues[id].written_allocated;
        self.status_version += u64::from(!says_the_same(&before.written_allocated, now));
        // Changes of the status that we write ourselves do not count as changes of the queue.
        before.written_allocated.clone_from(&self.queues[id].written_allocated);
        self.queue_version += u64::from(before != self.queues[id]);
        is_news
    }

    /// Marks a queue as not present. Its row stays as long as PodGroups name the queue.
    pub(super) fn queue_deleted(&mut self, name: &str) {
        if let Some(id) = self.queue(name) {
            self.queue_version += 1;
            self.job_changes.forget();
            let Queue { name, n_jobs, .. } = std::mem::take(&mut self.queues[id]);
            self.queues[id] = Queue { name, n_jobs, ..Queue::default() };
            self.note_if_unused(id);
        }
    }

    pub(super) fn queue_failed(&mut self, name: &str) {
        if let Some(queue) = self.queue(name) {
            self.queues[queue].written_allocated = None;
            self.status_version += 1;
        }
    }

    /// Moves the job to this queue.
    pub(super) fn move_job(&mut self, job: JobId, queue: QueueId) {
        let before = std::mem::replace(&mut self.jobs[job].queue, queue);
        self.queues[queue].n_jobs += 1;
        self.leave_queue(before);
    }

    /// Decreases the number of jobs of the queue by one.
    pub(super) fn leave_queue(&mut self, queue: QueueId) {
        self.queues[queue].n_jobs -= 1;
        self.note_if_unused(queue);
    }

    fn note_if_unused(&mut self, queue: QueueId) {
        if self.queues[queue].is_unused() {
            self.unused_queues.push(queue);
        }
    }

    /// Removes the rows of queues that do not exist and that no job names. It runs after a session
    /// that saw the rows in this state.
    pub(super) fn drop_unused_queues(&mut self) {
        for id in std::mem::take(&mut self.unused_queues) {
            let Some(queue) = self.queues.get(id).filter(|queue| queue.is_unused()) else {
                continue;
            };
            self.queue_by_name.remove(&queue.name);
            self.queues.remove(id);
        }
    }
}

/// Returns the named amounts of a list. Names that are no dimension are dropped (core.md 3.1).
fn amounts(list: &ResourceList, dims: &mut Dims) -> Vec<(Dim, i64)> {
    let one = |(name, quantity): &(Arc<str>, Quantity)| {
        let amount = amount(name, *quantity)?;
        Some((dims.intern(name)?, amount))
    };
    // Of two entries of one name the last one counts.
    let by_dim: BTreeMap<Dim, i64> = list.iter().filter_map(one).collect();
    by_dim.into_iter().collect()
}

/// True if both lists have equal entries in any order, as the API server may reorder them.
fn says_the_same(l: &Option<ResourceList>, r: &Option<ResourceList>) -> bool {
    match (l, r) {
        (Some(l), Some(r)) => l.len() == r.len() && l.iter().all(|entry| r.contains(entry)),
        _ => l.is_none() && r.is_none(),
    }
}
