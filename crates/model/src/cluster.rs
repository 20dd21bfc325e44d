//! The cluster state: the tables and how to find rows in them. Between two calls of
//! [`Cluster::apply`] this *is* the snapshot; nothing is copied. Specification: core.md 4.5-4.8.

mod apply;
mod bare;
mod changes;
mod check;
mod devices;
mod groups;
mod nodes;
mod place;
mod pod_groups;
mod pods;
mod queues;
mod shape_of;
mod shards;
mod task_of;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_resource::{Dim, Dims, Fractional, Resource};

use crate::budget::Budgets;
use crate::change_log::{ChangeLog, Revision};
use crate::class::{Class, Classes};
use crate::default_spread::Selectors;
use crate::device::Devices;
use crate::division::Division;
use crate::domains::{Domains, World};
use crate::hyper_node::HyperNodes;
use crate::ids::{ClassId, Id, JobId, NodeId, QueueId, Table, TaskId};
use crate::images::Images;
use crate::index::Index;
use crate::job::{Job, MinResources};
use crate::node::Node;
use crate::queue::Queue;
use crate::quota::Quotas;
use crate::record::{ObjectKey, PodCondition, PriorityClassRecord};
use crate::request::RequestGates;
use crate::selector::Labels;
use crate::task::Task;
use crate::volume::Volumes;

pub(crate) use groups::{SubJobRows, Tally};
use shape_of::LastShape;
use shards::Shards;
pub use shards::{Sharding, ShardingMode};

/// Settings that say which objects are ours and what the API server can do (core.md 1.1, 4.2, 4.3).
#[derive(Clone, Debug)]
pub struct Settings {
    /// `--scheduler-name`.
    pub scheduler_names: Vec<Arc<str>>,
    /// `--default-queue`.
    pub default_queue: Arc<str>,
    /// `--node-selector` as label and value; empty: all nodes.
    pub node_selector: Vec<(Arc<str>, Arc<str>)>,
    /// Kubernetes features of the server.
    pub gates: RequestGates,
    /// True with `--bare-pods=schedule`: a pod of ours without group annotation is a job of one task.
    /// Its annotation or label `scheduling.volcano.sh/queue-name` names its queue; without one it is in
    /// the default queue.
    pub bare_pods: bool,
    /// The part of the objects that is ours with `MULTI_SCHEDULER_ENABLE` (core.md 4.4).
    /// `None`: all objects are ours.
    pub division: Option<Division>,
    /// `--scheduler-sharding-mode`, `--scheduler-sharding-name`.
    pub sharding: Sharding,
    /// True with the feature gate `SchedulingGatesQueueAdmission` (core.md 7.8): our scheduling gate is
    /// lifted when the queue has room.
    pub queue_gate_admission: bool,
    /// The API server serves claims for devices (plugins-nodes.md 2.1).
    pub dynamic_resources: bool,
    /// `--ignored-provisioners`: CSI drivers whose volumes are not counted (core.md 3.5.1).
    pub ignored_provisioners: Vec<Arc<str>>,
    /// Feature gate `StorageCapacityScoring` (plugins-nodes.md 5.9).
    pub storage_capacity_scoring: bool,
    /// Seconds by which the clock on the wall is ahead of UTC at a time in microseconds since 1970.
    pub utc_offset_seconds: fn(i64) -> i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scheduler_names: vec!["volcano".into()],
            default_queue: "default".into(),
            node_selector: Vec::new(),
            gates: RequestGates::default(),
            bare_pods: false,
            division: None,
            sharding: Sharding::default(),
            queue_gate_admission: false,
            dynamic_resources: true,
            ignored_provisioners: Vec::new(),
            storage_capacity_scoring: false,
            utc_offset_seconds: |_| 0,
        }
    }
}

/// The tables. Changed by events ([`Cluster::apply`]) and, within a session, by placements
/// ([`Cluster::set_task`] and its kin); every derived sum is kept at the cost of the change.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Which objects are ours.
    pub settings: Settings,
    /// Names of the dimensions of every vector.
    pub dims: Dims,
    /// Nodes, those that only pods name included.
    pub nodes: Table<NodeId, Node>,
    /// Pods that are ours or that have a node.
    pub tasks: Table<TaskId, Task>,
    /// PodGroups, those that only pods name included.
    pub jobs: Table<JobId, Job>,
    /// Queues, those that only PodGroups name included.
    pub queues: Table<QueueId, Queue>,
    /// Scheduling classes of the tasks.
    pub classes: Classes,
    /// Volumes, claims and storage, and what of them is promised.
    pub volumes: Volumes,
    /// PodDisruptionBudgets.
    pub budgets: Budgets,
    /// ResourceQuotas.
    pub quotas: Quotas,
    /// HyperNodes.
    pub hyper_nodes: HyperNodes,
    /// Images on the nodes.
    pub images: Images,
    /// Pods by topology domain.
    pub domains: Domains,
    /// Devices and the claims for them.
    pub devices: Devices,
    node_order: Vec<NodeId>,
    node_by_name: FxHashMap<Arc<str>, NodeId>,
    job_by_key: Index<JobId>,
    /// The same in order. A search in it is ten times as dear, and each pod needs one.
    job_order: BTreeMap<ObjectKey, JobId>,
    queue_by_name: BTreeMap<Arc<str>, QueueId>,
    /// Of those that do not exist and that no job names all, and others.
    unused_queues: Vec<QueueId>,
    task_by_uid: Index<TaskId>,
    task_by_key: Index<TaskId>,
    /// Those that are protected for some time, by its end in microseconds since 1970.
    cooling: BTreeSet<(i64, TaskId)>,
    /// Pods of ours that wait and belong to no job.
    ungrouped: BTreeSet<TaskId>,
    priority_classes: BTreeMap<Arc<str>, PriorityClassRecord>,
    pub(crate) namespaces: BTreeMap<Arc<str>, Labels>,
    pub(crate) selectors: Selectors,
    shards: Shards,
    node_changes: ChangeLog<NodeId>,
    /// Of what the objects say.
    object_changes: ChangeLog<NodeId>,
    node_set_revision: Revision,
    job_changes: ChangeLog<JobId>,
    /// Counts events that changed something.
    version: u64,
    queue_version: u64,
    status_version: u64,
    /// Σ allocatable of the present nodes, by dimension.
    total: BTreeMap<Dim, Total>,
    /// Of the object that came last and named one.
    last_job: Option<JobId>,
    /// Of the pod that came last and had one.
    last_condition: Option<Arc<PodCondition>>,
    last_shape: Option<LastShape>,
    /// Of the PodGroup that came last and had one.
    last_minimum: Option<Arc<MinResources>>,
}

/// One dimension of all present nodes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Total {
    /// Wide, because milli-bytes of storage of many nodes leave 64 bits.
    amount: i128,
    /// Nodes that have the dimension, even with 0; cpu and memory: all.
    n_nodes: u32,
}

impl Cluster {
    /// An empty cluster.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// When the first pod ends to be protected that is at this time, both in microseconds since 1970
    /// (plugins-jobs-queues.md 12).
    pub fn cooling_until_micros(&self, now_micros: i64) -> Option<i64> {
        let later = now_micros.checked_add(1)?;
        self.cooling.range((later, TaskId::new(0))..).map(|&(until, _)| until).next()
    }

    /// Pods of ours that wait and belong to no job, in no particular order.
    pub fn ungrouped(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.ungrouped.iter().copied()
    }

    /// Another number after every event that may have changed something. Sessions do not count.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Another number whenever a queue is another one than before, but for the status that we write,
    /// came or went.
    pub fn queue_version(&self) -> u64 {
        self.queue_version
    }

    /// Another number whenever the status of a queue is not what it was last seen or written to be.
    pub fn queue_status_version(&self) -> u64 {
        self.status_version
    }

    /// Known nodes in name order.
    pub fn nodes_by_name(&self) -> &[NodeId] {
        &self.node_order
    }

    /// The node of this name, also if only pods name it.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.node_by_name.get(name).copied()
    }

    /// Jobs by uid (`namespace/name`), those without PodGroup included.
    pub fn jobs_by_key(&self) -> impl Iterator<Item = JobId> + '_ {
        self.job_order.values().copied()
    }

    /// The job of this PodGroup name.
    pub fn job(&self, key: &ObjectKey) -> Option<JobId> {
        self.job_by_key.get(key, |job| self.jobs[job].key == *key)
    }

    /// Queues by name, those that only PodGroups name included.
    pub fn queues_by_name(&self) -> impl Iterator<Item = QueueId> + '_ {
        self.queue_by_name.values().copied()
    }

    /// The queue of this name, also if only PodGroups name it.
    pub fn queue(&self, name: &str) -> Option<QueueId> {
        self.queue_by_name.get(name).copied()
    }

    /// The task of this pod uid.
    pub fn task(&self, uid: &str) -> Option<TaskId> {
        self.task_by_uid.get(uid, |task| *self.tasks[task].uid == *uid)
    }

    /// The task of this pod name.
    pub fn task_named(&self, key: &ObjectKey) -> Option<TaskId> {
        self.task_by_key.get(key, |task| self.tasks[task].key == *key)
    }

    /// The class of a task.
    pub fn class(&self, task: TaskId) -> &Class {
        &self.classes[self.tasks[task].class]
    }

    /// The request of a task, `pods` = 1 included.
    pub fn request(&self, task: TaskId) -> &Resource {
        &self.class(task).request
    }

    /// The job of a task.
    pub fn job_of(&self, task: TaskId) -> Option<&Job> {
        self.tasks[task].job.map(|job| &self.jobs[job])
    }

    /// Highest priority among the tasks of a sub-job, 0 without tasks (D8).
    pub fn sub_job_priority(&self, job: JobId, sub_job: usize) -> i32 {
        let tasks = &self.jobs[job].sub_jobs[sub_job].tasks;
        tasks.iter().map(|&task| self.tasks[task].priority).max().unwrap_or(0)
    }

    /// Labels of a namespace; a missing one has none.
    pub fn namespace_labels(&self, name: &str) -> Option<&Labels> {
        self.namespaces.get(name)
    }

    /// Σ allocatable of all known nodes, ready or not, cordoned or not.
    pub fn total_allocatable(&self) -> Fractional {
        let mut total = Fractional::default();
        for (&dim, sum) in &self.total {
            total.set(dim, sum.amount as f64);
        }
        total
    }

    /// The same as whole amounts.
    pub fn total_amounts(&self) -> Resource {
        let mut total = Resource::default();
        for (&dim, sum) in &self.total {
            total.set_exact(dim, sum.amount);
        }
        total
    }

    /// The class of this content, one task more.
    pub(crate) fn acquire_class(&mut self, class: Class) -> ClassId {
        let (id, is_new) = self.classes.acquire(class);
        if is_new {
            let (domains, world) = self.domains_and_world();
            domains.add_class(id, world);
        }
        id
    }

    /// One task less of the class.
    pub(crate) fn release_class(&mut self, id: ClassId) {
        if let Some(class) = self.classes.release(id) {
            self.domains.remove_class(id, &class);
        }
    }

    fn domains_and_world(&mut self) -> (&mut Domains, World<'_>) {
        let Self { domains, nodes, classes, namespaces, selectors, .. } = self;
        (domains, World { nodes, classes, namespaces, selectors })
    }

    /// Value of a PriorityClass: of that name, else the smallest global default (C-13), else 0.
    pub(crate) fn priority_value(&self, class_name: &str) -> i32 {
        if let Some(class) = self.priority_classes.get(class_name) {
            return class.value;
        }
        let defaults = self.priority_classes.values().filter(|class| class.global_default);
        defaults.map(|class| class.value).min().unwrap_or(0)
    }

    /// Lets freed rows be used again; called when a session has ended, so that whoever keeps ids from
    /// session to session sees each row without an owner before it gets another.
    pub fn recycle(&mut self) {
        self.nodes.recycle();
        self.tasks.recycle();
        self.jobs.recycle();
        self.drop_unused_queues();
        self.queues.recycle();
        self.classes.recycle();
        self.images.recycle();
        self.domains.recycle();
    }
}
