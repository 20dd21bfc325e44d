//! Changes of live objects that a question supposes, made of the rows of these objects. They are for
//! copies of the cluster. Specification: answers.md 9 (ANS-48).

use std::sync::Arc;

use vc_resource::{Dim, Dims, Quantity, Resource};

use crate::class::Class;
use crate::cluster::Cluster;
use crate::ids::{JobId, NodeId, QueueId, TaskId};
use crate::record::{
    NodeRecord, ObjectKey, PodGroupRecord, PriorityClassRecord, QueueRecord, ResourceList,
};
use crate::status::TaskStatus;
use crate::sums;
use crate::task::Gates;

impl Cluster {
    /// Returns the object of a node. Annotations are only those about shared devices, and
    /// oversubscription is part of the amounts.
    pub fn node_record(&self, node: NodeId) -> NodeRecord {
        let row = &self.nodes[node];
        let image = |&id| (self.images[id].name.clone(), self.images[id].size_bytes);
        NodeRecord {
            name: row.name.clone(),
            labels: row.labels.clone(),
            annotations: row.devices.as_deref().cloned().unwrap_or_default(),
            unschedulable: row.unschedulable,
            taints: row.taints.to_vec(),
            allocatable: list(&row.allocatable, &self.dims),
            capacity: list(&row.capacity, &self.dims),
            images: row.images.iter().map(image).collect(),
        }
    }

    /// Returns the object of a queue.
    pub fn queue_record(&self, queue: QueueId) -> QueueRecord {
        let row = &self.queues[queue];
        let amounts_of_group = |amounts: Vec<(Dim, i64)>| {
            let entries = amounts.into_iter();
            entries.filter_map(|(dim, amount)| entry(dim, amount, &self.dims)).collect()
        };
        QueueRecord {
            name: row.name.clone(),
            uid: row.uid.clone(),
            created_micros: row.created_micros,
            weight: row.weight,
            priority: row.priority,
            reclaimable: row.reclaimable,
            capability: listed(&row.capability, &[], &self.dims),
            deserved: listed(&row.deserved, &row.listed, &self.dims),
            guarantee: listed(&row.guarantee, &[], &self.dims),
            parent: row.parent.clone(),
            fifo: row.fifo,
            node_group_affinity: row.node_group_affinity.clone(),
            node_group_limits: row.node_group_limits.clone().map(amounts_of_group),
            state: row.state.clone(),
            annotations: row.annotations.clone(),
            status_allocated: row.written_allocated.clone().unwrap_or_default(),
        }
    }

    /// Returns the PodGroup of a job with the status that sessions read. Returns `None` if there is
    /// none, or if it is derived from a bare pod.
    pub fn pod_group_record(&self, job: JobId) -> Option<PodGroupRecord> {
        let row = &self.jobs[job];
        let group = row.pod_group.as_ref().filter(|_| !row.bare)?;
        Some(PodGroupRecord {
            key: row.key.clone(),
            uid: group.uid.clone(),
            resource_version: Arc::default(),
            created_micros: group.created_micros,
            labels: (*group.labels).clone(),
            annotations: (*group.annotations).clone(),
            owner_name: group.owner_name.clone(),
            controller_uid: group.controller_uid.clone(),
            controller_kind: group.controller_kind.clone(),
            min_member: row.min_available,
            min_task_member: (*row.task_min_available).clone(),
            queue: self.queues[row.queue].name.clone(),
            priority_class_name: group.priority_class_name.clone(),
            min_resources: group.min_resources.as_ref().map(|minimum| minimum.list.clone()),
            network_topology: group.network_topology.as_deref().cloned(),
            sub_group_policies: group.policies.to_vec(),
            status: group.status.clone(),
        })
    }

    /// Replaces the PodGroup of a job, whichever scheduler its owner belongs to.
    pub fn replace_pod_group(&mut self, record: PodGroupRecord) {
        self.put_pod_group(record);
        self.version += 1;
    }

    /// Stores the status of a PodGroup as if its write were answered and seen.
    pub fn store_status(&mut self, key: &ObjectKey) {
        let Some(id) = self.job(key) else { return };
        self.job_changes.push(id);
        if let Some(group) = &mut self.jobs[id].pod_group {
            group.observed_status = group.status.clone();
            group.status_in_flight = false;
            group.written = None;
        }
    }

    /// Lets a pod run that has a node.
    pub fn start_pod(&mut self, task: TaskId, now_micros: i64) {
        let node = self.tasks[task].node;
        self.release(task);
        self.set_task(task, TaskStatus::Running, node);
        let row = &mut self.tasks[task];
        row.started_micros = row.started_micros.or(Some(now_micros));
        row.scheduled_micros = row.scheduled_micros.or(Some(now_micros));
        row.nominated_node = None;
        self.version += 1;
    }

    /// Ends a pod that has a node, successfully.
    pub fn end_pod(&mut self, task: TaskId) {
        let node = self.tasks[task].node;
        self.release(task);
        self.set_task(task, TaskStatus::Succeeded, node);
        (self.tasks[task].evicting, self.tasks[task].deleting) = (false, false);
        self.version += 1;
    }

    /// Lets a pod wait again, as if its controller had made another one in its place.
    pub fn requeue_pod(&mut self, task: TaskId) {
        self.set_task(task, TaskStatus::Pending, None);
        let row = &mut self.tasks[task];
        (row.evicting, row.deleting, row.preempted, row.hidden) = (false, false, false, false);
        (row.started_micros, row.scheduled_micros) = (None, None);
        if let Some(stated) = &mut row.stated_run {
            stated.deletion_micros = None;
        }
        (row.condition, row.nominated_node, row.pause) = (None, None, None);
        row.keeps_place = false;
        self.version += 1;
    }

    /// Removes the scheduling gates of a pod.
    pub fn open_gates(&mut self, task: TaskId) {
        let row = &mut self.tasks[task];
        let before = std::mem::replace(&mut row.gates, Gates::None);
        (row.gate_names, row.ungating) = (None, false);
        if let Some(job) = row.job {
            let request = &self.classes[row.class].request;
            if before == Gates::Foreign {
                self.jobs[job].gated.change(sums::leave, request);
            }
            self.job_changes.push(job);
        }
        self.version += 1;
    }

    /// Gives a pod another class, as if its spec had been written differently.
    pub fn replace_class(&mut self, task: TaskId, class: Class) {
        let own = self.acquire_class(class);
        self.detach(task);
        self.index_claims(task, false);
        let before = std::mem::replace(&mut self.tasks[task].class, own);
        self.tasks[task].best_effort = self.classes[own].request.is_empty();
        self.index_claims(task, true);
        self.attach(task);
        let row = &self.tasks[task];
        if let Some(job) = row.job.filter(|_| row.gates == Gates::Foreign) {
            let gated = &mut self.jobs[job].gated;
            gated.change(sums::leave, &self.classes[before].request);
            gated.change(sums::enter, &self.classes[own].request);
        }
        self.release_class(before);
        self.version += 1;
    }

    /// Gives a pod the priority of a class.
    pub fn replace_priority(&mut self, task: TaskId, class_name: &Arc<str>) {
        let value = self.priority_value(class_name);
        let row = &mut self.tasks[task];
        row.priority_class_name = class_name.clone();
        (row.priority, row.pod_priority) = (value, value);
        row.job.into_iter().for_each(|job| self.job_changes.push(job));
        self.version += 1;
    }

    /// Returns the PriorityClasses by name.
    pub fn priority_classes(&self) -> impl Iterator<Item = &PriorityClassRecord> {
        self.priority_classes.values()
    }
}

/// Returns the amounts as a list. Every amount is exact.
fn list(amounts: &Resource, dims: &Dims) -> ResourceList {
    let quantities = amounts.to_quantities(dims).into_iter();
    let parsed = quantities
        .filter_map(|(name, text)| Some((name.as_str().into(), text.parse::<Quantity>().ok()?)));
    parsed.collect()
}

/// Returns the amounts of a queue as a list. Vectors always have cpu and memory, so an amount of 0
/// of these counts only if it is `listed`.
fn listed(amounts: &Resource, listed: &[Dim], dims: &Dims) -> ResourceList {
    let is_given = |(name, _): &(Arc<str>, Quantity)| {
        let Some(dim) = dims.get(name) else { return false };
        let is_native = matches!(dim, Dim::CPU | Dim::MEMORY);
        !is_native || amounts.get(dim) != 0 || listed.contains(&dim)
    };
    list(amounts, dims).into_iter().filter(is_given).collect()
}

/// Returns one entry of a list. Returns `None` if the amount has no text.
fn entry(dim: Dim, amount: i64, dims: &Dims) -> Option<(Arc<str>, Quantity)> {
    let mut one = Resource::default();
    one.set(dim, amount);
    let name = dims.name(dim);
    list(&one, dims).into_iter().find(|(other, _)| **other == *name)
}
