//! Events of nodes, PodGroups, queues, priority classes and namespaces. Specification: core.md 3.8, 4.3, 4.6,
//! 11 (c).

use std::sync::Arc;

use vc_resource::{Dim, Resource};

use crate::cluster::{Cluster, groups};
use crate::duration::go_duration_micros;
use crate::event::ClusterEvent;
use crate::ids::{JobId, NodeId, QueueId};
use crate::job::{Job, PodGroup};
use crate::node::Node;
use crate::queue::Queue;
use crate::record::{NodeRecord, ObjectKey, PodGroupRecord, QueueRecord};
use crate::request::to_resource;
use crate::selector::Labels;

impl Cluster {
    /// Brings one event into the tables, at the cost of what it changes.
    pub fn apply(&mut self, event: ClusterEvent) {
        match event {
            ClusterEvent::PodApplied(pod) => self.pod_applied(*pod),
            ClusterEvent::PodResynced(pod) => self.pod_resynced(*pod),
            ClusterEvent::PodDeleted { key, uid } => self.pod_deleted(&key, &uid),
            // The binder's answer for users is made by the engine; the pod waits for its resync.
            ClusterEvent::BindFailed { .. } => {}
            ClusterEvent::PodStatusFailed { uid } => self.forget_condition(&uid),
            ClusterEvent::NodeApplied(node) => self.node_applied(*node),
            ClusterEvent::NodeDeleted { name } => self.node_deleted(&name),
            ClusterEvent::PodGroupApplied(group) => self.pod_group_applied(*group),
            ClusterEvent::PodGroupDeleted { key } => self.pod_group_deleted(&key),
            ClusterEvent::PodGroupWritten { key, resource_version } => {
                self.pod_group_written(&key, &resource_version);
            }
            ClusterEvent::PodGroupFailed { key } => self.pod_group_failed(&key),
            ClusterEvent::QueueApplied(queue) => self.queue_applied(*queue),
            ClusterEvent::QueueDeleted { name } => self.queue_deleted(&name),
            ClusterEvent::QueueFailed { name } => {
                if let Some(queue) = self.queue(&name) {
                    self.queues[queue].written_allocated = None;
                }
            }
            ClusterEvent::PriorityClassApplied(class) => {
                self.priority_classes.insert(class.name.clone(), class);
                self.refresh_priorities();
            }
            ClusterEvent::PriorityClassDeleted { name } => {
                self.priority_classes.remove(&name);
                self.refresh_priorities();
            }
            ClusterEvent::NamespaceApplied { name, labels } => {
                self.namespaces.insert(name, labels);
            }
            ClusterEvent::NamespaceDeleted { name } => {
                self.namespaces.remove(&name);
            }
        }
    }

    /// The row of a node, made as a placeholder if nobody named it before.
    pub(super) fn node_row(&mut self, name: &Arc<str>) -> NodeId {
        if let Some(&node) = self.node_by_name.get(name) {
            return node;
        }
        let node = self.nodes.insert(Node { name: name.clone(), ..Node::default() });
        self.node_by_name.insert(name.clone(), node);
        node
    }

    fn node_applied(&mut self, record: NodeRecord) {
        if !self.selects_node(&record.labels) {
            // It stops being schedulable; its tasks stay accounted (C-18).
            return self.node_deleted(&record.name);
        }
        let id = self.node_row(&record.name);
        let mut allocatable = to_resource(&record.allocatable, &mut self.dims);
        let mut capacity = to_resource(&record.capacity, &mut self.dims);
        let extra = oversubscription(&record.annotations);
        allocatable.add(&extra);
        capacity.add(&extra);
        self.set_present(id, true);
        self.add_total(id, -1);
        let node = &mut self.nodes[id];
        node.revocable_zone =
            record.labels.get("volcano.sh/revocable-zone").cloned().unwrap_or_default();
        node.labels = record.labels;
        node.unschedulable = record.unschedulable;
        node.taints = record.taints;
        node.capacity = capacity;
        node.set_allocatable(allocatable);
        self.add_total(id, 1);
    }

    fn node_deleted(&mut self, name: &str) {
        let Some(id) = self.node(name) else { return };
        self.set_present(id, false);
        self.add_total(id, -1);
        let node = &mut self.nodes[id];
        node.set_allocatable(Resource::default());
        node.capacity = Resource::default();
        node.labels = Labels::default();
        node.taints = Vec::new();
        self.drop_empty_node(id);
    }

    /// A placeholder that holds no task any more is forgotten.
    pub(super) fn drop_empty_node(&mut self, id: NodeId) {
        let node = &self.nodes[id];
        if !node.present && node.tasks.is_empty() {
            let name = node.name.clone();
            self.node_by_name.remove(&name);
            self.nodes.remove(id);
        }
    }

    fn selects_node(&self, labels: &Labels) -> bool {
        let wanted = &self.settings.node_selector;
        wanted.is_empty() || wanted.iter().any(|(key, value)| labels.get(key) == Some(value))
    }

    fn set_present(&mut self, id: NodeId, present: bool) {
        let name = self.nodes[id].name.clone();
        let nodes = &self.nodes;
        let place = self.node_order.binary_search_by(|&other| nodes[other].name.cmp(&name));
        match (present, place) {
            (true, Err(place)) => self.node_order.insert(place, id),
            (false, Ok(place)) => {
                self.node_order.remove(place);
            }
            _ => {}
        }
        self.nodes[id].present = present;
    }

    fn add_total(&mut self, id: NodeId, sign: i128) {
        let allocatable = &self.nodes[id].allocatable;
        for dim in allocatable.dims() {
            let sum = self.total.entry(dim).or_default();
            *sum += sign * i128::from(allocatable.get(dim));
        }
        self.total.retain(|_, sum| *sum != 0);
    }

    /// The job of a PodGroup name, made if nobody named it before.
    pub(super) fn job_row(&mut self, key: &ObjectKey) -> JobId {
        if let Some(&job) = self.job_by_key.get(key) {
            return job;
        }
        let default_queue = self.settings.default_queue.clone();
        let queue = self.queue_row(&default_queue);
        let mut job = Job {
            key: key.clone(),
            pod_group: None,
            queue,
            priority: 0,
            min_available: 0,
            task_min_available: Default::default(),
            task_min_available_total: 0,
            tasks: Vec::new(),
            sub_jobs: Vec::new(),
            counts: Default::default(),
            roles: Default::default(),
            allocated: Resource::default(),
            total_request: Resource::default(),
            pending_request: Resource::default(),
            gated: Resource::default(),
        };
        job.sub_jobs.push(groups::default_sub_job(&job));
        let id = self.jobs.insert(job);
        self.job_by_key.insert(key.clone(), id);
        id
    }

    /// A job with neither PodGroup nor tasks is forgotten.
    pub(super) fn drop_empty_job(&mut self, id: JobId) {
        let job = &self.jobs[id];
        if job.pod_group.is_none() && job.tasks.is_empty() {
            let key = job.key.clone();
            self.job_by_key.remove(&key);
            self.jobs.remove(id);
        }
    }

    fn pod_group_applied(&mut self, record: PodGroupRecord) {
        let id = self.job_row(&record.key);
        let known = self.jobs[id].pod_group.as_ref().filter(|group| group.uid == record.uid);
        let version = &record.resource_version;
        if known.is_some_and(|group| !version.is_empty() && group.resource_version == *version) {
            return;
        }
        let status = known.map_or_else(PodGroupEcho::default, PodGroupEcho::of).see(&record);
        let policies_before: Arc<[_]> = self.jobs[id].policies().into();
        let queue_name = match record.queue.is_empty() {
            true => self.settings.default_queue.clone(),
            false => record.queue.clone(),
        };
        let queue = self.queue_row(&queue_name);
        let priority = self.priority_value(&record.priority_class_name);
        let min_resources = record.min_resources.as_ref();
        let min_resources = min_resources.map(|list| to_resource(list, &mut self.dims));
        let job = &mut self.jobs[id];
        let min_before = job.min_available;
        job.queue = queue;
        job.priority = priority;
        job.min_available = record.min_member;
        let minimums = record.min_task_member.values();
        job.task_min_available_total = minimums.map(|&minimum| i64::from(minimum)).sum();
        job.task_min_available = record.min_task_member.clone();
        job.pod_group = Some(pod_group(record, min_resources, status));
        if *policies_before != *job.policies() || min_before != job.min_available {
            self.regroup(id);
        }
    }

    fn pod_group_deleted(&mut self, key: &ObjectKey) {
        let Some(id) = self.job(key) else { return };
        let default_queue = self.settings.default_queue.clone();
        let queue = self.queue_row(&default_queue);
        let job = &mut self.jobs[id];
        job.pod_group = None;
        job.queue = queue;
        job.priority = 0;
        job.min_available = 0;
        job.task_min_available.clear();
        job.task_min_available_total = 0;
        self.regroup(id);
        self.drop_empty_job(id);
    }

    fn pod_group_written(&mut self, key: &ObjectKey, version: &str) {
        let Some(id) = self.job(key) else { return };
        if let Some(group) = &mut self.jobs[id].pod_group {
            group.status_in_flight = false;
            group.written_version = version.parse().ok();
        }
    }

    fn pod_group_failed(&mut self, key: &ObjectKey) {
        let Some(id) = self.job(key) else { return };
        if let Some(group) = &mut self.jobs[id].pod_group {
            group.status_in_flight = false;
            group.status = group.observed_status.clone();
        }
    }

    fn refresh_priorities(&mut self) {
        let ids: Vec<JobId> = self.jobs.ids().collect();
        for id in ids {
            let group = self.jobs[id].pod_group.as_ref();
            let class_name = group.map(|group| group.priority_class_name.clone());
            self.jobs[id].priority = class_name.map_or(0, |name| self.priority_value(&name));
        }
    }

    fn queue_row(&mut self, name: &Arc<str>) -> QueueId {
        if let Some(&queue) = self.queue_by_name.get(name) {
            return queue;
        }
        let queue = self.queues.insert(Queue { name: name.clone(), ..Queue::default() });
        self.queue_by_name.insert(name.clone(), queue);
        queue
    }

    fn queue_applied(&mut self, record: QueueRecord) {
        let id = self.queue_row(&record.name);
        let capability = to_resource(&record.capability, &mut self.dims);
        let deserved = to_resource(&record.deserved, &mut self.dims);
        let guarantee = to_resource(&record.guarantee, &mut self.dims);
        self.queues[id] = Queue {
            name: record.name,
            present: true,
            created_micros: record.created_micros,
            weight: record.weight,
            priority: record.priority,
            reclaimable: record.reclaimable,
            capability,
            deserved,
            guarantee,
            parent: record.parent,
            fifo: record.fifo,
            state: record.state,
            annotations: record.annotations,
            written_allocated: Some(record.status_allocated),
        };
    }

    /// The row stays, since PodGroups may name the queue; it is no longer present.
    fn queue_deleted(&mut self, name: &str) {
        if let Some(id) = self.queue(name) {
            let name = self.queues[id].name.clone();
            self.queues[id] = Queue { name, ..Queue::default() };
        }
    }
}

impl Node {
    fn set_allocatable(&mut self, allocatable: Resource) {
        self.idle = allocatable.clone();
        self.idle.sub(&self.used);
        self.allocatable = allocatable;
    }
}

/// Amounts that the annotations of an oversubscription agent add; unparsable counts 0 (core.md 3.3).
fn oversubscription(annotations: &Labels) -> Resource {
    let number = |key: &str| {
        let parsed = annotations.get(key).and_then(|text| text.parse::<f64>().ok());
        parsed.filter(|value| value.is_finite()).unwrap_or(0.0) as i64
    };
    let mut extra = Resource::default();
    extra.set(Dim::CPU, number("volcano.sh/oversubscription-cpu"));
    extra.set(Dim::MEMORY, number("volcano.sh/oversubscription-memory"));
    extra
}

/// What we know of a PodGroup's status besides the object that just came in (core.md 11 (c)).
#[derive(Default)]
struct PodGroupEcho {
    ours: Option<crate::record::PodGroupStatus>,
    in_flight: bool,
    written_version: Option<u64>,
}

struct SeenStatus {
    status: crate::record::PodGroupStatus,
    in_flight: bool,
    written_version: Option<u64>,
}

impl PodGroupEcho {
    fn of(group: &PodGroup) -> Self {
        Self {
            ours: Some(group.status.clone()),
            in_flight: group.status_in_flight,
            written_version: group.written_version,
        }
    }

    /// Our own status stays on top until the watch shows the version under which it was stored.
    fn see(self, record: &PodGroupRecord) -> SeenStatus {
        let seen: Option<u64> = record.resource_version.parse().ok();
        let stale = matches!((seen, self.written_version), (Some(seen), Some(ours)) if seen < ours);
        let keep = self.in_flight || stale;
        let status = self.ours.filter(|_| keep).unwrap_or_else(|| record.status.clone());
        SeenStatus {
            status,
            in_flight: self.in_flight,
            written_version: self.written_version.filter(|_| keep),
        }
    }
}

fn pod_group(
    record: PodGroupRecord,
    min_resources: Option<Resource>,
    seen: SeenStatus,
) -> PodGroup {
    let sla_waiting_micros = ["volcano.sh/sla-waiting-time", "sla-waiting-time"]
        .iter()
        .filter_map(|&key| go_duration_micros(record.annotations.get(key)?))
        .find(|&micros| 0 < micros);
    let key = "volcano.sh/preemptable";
    let preemptable = record.annotations.get(key).or_else(|| record.labels.get(key));
    PodGroup {
        uid: record.uid,
        created_micros: record.created_micros,
        status: seen.status,
        observed_status: record.status,
        status_in_flight: seen.in_flight,
        written_version: seen.written_version,
        resource_version: record.resource_version,
        priority_class_name: record.priority_class_name,
        min_resources,
        network_topology: record.network_topology,
        policies: record.sub_group_policies.into(),
        sla_waiting_micros,
        preemptable: preemptable.and_then(|text| go_bool(text)).unwrap_or(false),
    }
}

/// A Go bool text; `None` if it is none.
pub(super) fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
