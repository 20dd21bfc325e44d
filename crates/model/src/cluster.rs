//! The cluster state: the tables, and the indexes to find rows in them. Between two calls of
//! [`Cluster::apply`] the tables are the snapshot; nothing is copied. Specification: core.md
//! 4.5-4.8.

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
mod share;
mod suppose;
mod task_of;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use vc_resource::{Dim, Dims, Fractional, Resource};

use crate::budget::Budgets;
use crate::change_log::{ChangeLog, Revision};
use crate::class::{Class, Classes};
use crate::copy_on_write::CopyOnWrite;
use crate::default_spread::ServiceSelectors;
use crate::device::Devices;
use crate::division::Division;
use crate::domains::{CounterSources, Domains};
use crate::hyper_node::HyperNodes;
use crate::ids::{ClassId, Id, JobId, NodeId, QueueId, Table, TaskId};
use crate::images::Images;
use crate::index::Index;
use crate::job::{Job, MinResources};
use crate::node::Node;
use crate::numa::NumaTopology;
use crate::other_scheduler::{OtherScheduler, OtherSchedulers};
use crate::queue::Queue;
use crate::quota::Quotas;
use crate::reads::{self, Read};
use crate::record::{ObjectKey, PodCondition, PriorityClassRecord};
use crate::request::RequestGates;
use crate::saved_usage::SavedUsages;
use crate::selector::{Labels, Taint};
use crate::task::Task;
use crate::utc_offset::UtcOffset;
use crate::volume::Volumes;

pub(crate) use groups::{SubJobRows, SubJobTally};
use shape_of::LastShape;
use shards::Shards;
pub use shards::{Sharding, ShardingMode};

/// Settings that decide which objects are ours, and what the API server can do (core.md 1.1, 4.2,
/// 4.3).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// `--scheduler-name`.
    pub scheduler_names: Vec<Arc<str>>,
    /// `--default-queue`.
    pub default_queue: Arc<str>,
    /// `--node-selector` as label and value. If it is empty, all nodes are used.
    pub node_selector: Vec<(Arc<str>, Arc<str>)>,
    /// Kubernetes feature gates of the API server that change requests of pods.
    pub gates: RequestGates,
    /// True with `--bare-pods=schedule`: a pod of ours without group annotation is a job of one
    /// task. Its annotation or label `scheduling.volcano.sh/queue-name` names its queue; without
    /// one it is in the default queue.
    pub bare_pods: bool,
    /// The part of the objects that is ours with `MULTI_SCHEDULER_ENABLE` (core.md 4.4).
    /// `None`: all objects are ours.
    pub division: Option<Division>,
    /// `--scheduler-sharding-mode`, `--scheduler-sharding-name`.
    pub sharding: Sharding,
    /// True with the feature gate `SchedulingGatesQueueAdmission` (core.md 7.8): our scheduling
    /// gate is lifted when the queue has room.
    pub queue_gate_admission: bool,
    /// True if the API server serves ResourceClaims, ResourceSlices and DeviceClasses
    /// (plugins-nodes.md 2.1).
    pub dynamic_resources: bool,
    /// True with the feature gate `DRAConsumableCapacity` (plugins-jobs-queues.md 6.1): quotas of
    /// devices count the capacity that claims consume.
    pub consumable_capacity: bool,
    /// `--ignored-provisioners`: CSI drivers whose volumes are not counted (core.md 3.5.1).
    pub ignored_provisioners: Vec<Arc<str>>,
    /// Feature gate `StorageCapacityScoring` (plugins-nodes.md 5.9).
    pub storage_capacity_scoring: bool,
    /// The offset of local time from UTC.
    pub utc_offset: UtcOffset,
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
            consumable_capacity: false,
            ignored_provisioners: Vec::new(),
            storage_capacity_scoring: false,
            utc_offset: UtcOffset::default(),
        }
    }
}

/// The tables. Events ([`Cluster::apply`]) change them, and within a session placements do, such as
/// [`Cluster::set_task`]. Derived sums are updated incrementally with every change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cluster {
    /// Settings that decide which objects are ours.
    pub settings: Settings,
    /// Names of the dimensions of every vector.
    pub dims: Dims,
    /// Nodes, including nodes that only pods name.
    pub nodes: Table<NodeId, Node>,
    /// Pods that are ours or that have a node.
    pub tasks: Table<TaskId, Task>,
    /// PodGroups, including PodGroups that only pods name.
    pub jobs: Table<JobId, Job>,
    /// Queues, including queues that only PodGroups name.
    pub queues: Table<QueueId, Queue>,
    /// Scheduling classes of the tasks.
    pub classes: Classes,
    /// Volumes, claims and storage classes, and the reservations of tasks in them.
    pub volumes: Volumes,
    /// PodDisruptionBudgets.
    pub budgets: Budgets,
    /// ResourceQuotas.
    pub quotas: Quotas,
    /// Usage of an earlier process, which the plugin `fairshare` goes on from.
    pub saved_usages: SavedUsages,
    /// HyperNodes.
    pub hyper_nodes: HyperNodes,
    /// Images on the nodes.
    pub images: Images,
    /// Counts of pods by topology domain.
    pub domains: Domains,
    /// Devices, and the ResourceClaims for them.
    pub devices: Devices,
    /// Numatopologies by node, including those of nodes that do not exist.
    numa_topologies: CopyOnWrite<BTreeMap<Arc<str>, Arc<NumaTopology>>>,
    /// What device plugins report, by node.
    device_reports: CopyOnWrite<BTreeMap<Arc<str>, Arc<Labels>>>,
    node_order: Vec<NodeId>,
    /// Shared by copies, as [`Cluster::share`] says.
    node_by_name: Arc<FxHashMap<Arc<str>, NodeId>>,
    job_by_key: Index<JobId>,
    /// Jobs in the order of their keys. A search in it costs ten times a search in `job_by_key`,
    /// and each pod needs one search. Shared by copies.
    job_order: Arc<BTreeMap<ObjectKey, JobId>>,
    queue_by_name: CopyOnWrite<BTreeMap<Arc<str>, QueueId>>,
    /// Queues that may be unused. Every queue that neither exists nor is named by a job is in the
    /// list; others may be in it.
    unused_queues: Vec<QueueId>,
    task_by_uid: Index<TaskId>,
    task_by_key: Index<TaskId>,
    /// Protected tasks, by the end of their cooldown in microseconds since 1970.
    cooling: CopyOnWrite<BTreeSet<(i64, TaskId)>>,
    /// Pods of ours that wait and belong to no job.
    ungrouped: CopyOnWrite<BTreeSet<TaskId>>,
    priority_classes: BTreeMap<Arc<str>, PriorityClassRecord>,
    pub(crate) namespaces: CopyOnWrite<BTreeMap<Arc<str>, Labels>>,
    pub(crate) selectors: ServiceSelectors,
    shards: Shards,
    /// Schedulers whose pods have nodes here. States of earlier versions do not have them.
    #[serde(default)]
    other_schedulers: OtherSchedulers,
    node_changes: ChangeLog<NodeId>,
    /// Nodes whose objects changed.
    object_changes: ChangeLog<NodeId>,
    node_set_revision: Revision,
    job_changes: ChangeLog<JobId>,
    /// Number of events that changed something.
    version: u64,
    queue_version: u64,
    status_version: u64,
    /// Σ allocatable of the present nodes, by dimension.
    total: BTreeMap<Dim, Total>,
    /// The job of the object that came last and named a job. A cache for the next look-up.
    last_job: Option<JobId>,
    /// The condition of the pod that came last and had one. Equal conditions share memory.
    last_condition: Option<Arc<PodCondition>>,
    last_shape: Option<LastShape>,
    /// The `minResources` of the PodGroup that came last and had some. Equal ones share memory.
    last_minimum: Option<Arc<MinResources>>,
    /// Labels of the PodGroup that came last.
    last_labels: Arc<Labels>,
    /// Annotations of the PodGroup that came last.
    last_annotations: Arc<Labels>,
    /// Taints of the node that came last.
    #[serde(default)]
    last_taints: Arc<[Taint]>,
}

/// The sum of one dimension over all present nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Total {
    /// 128 bits, because milli-bytes of storage of many nodes exceed 64 bits.
    amount: i128,
    /// Number of nodes that have the dimension, even with amount 0. All nodes have cpu and memory.
    n_nodes: u32,
}

impl Cluster {
    /// Returns an empty cluster.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Returns the end of the cooldown that ends first after `now_micros`. Times are in
    /// microseconds since 1970. Returns `None` if no pod is protected then (plugins-jobs-queues.md
    /// 12: cooldown protection).
    pub fn cooling_until_micros(&self, now_micros: i64) -> Option<i64> {
        let later = now_micros.checked_add(1)?;
        self.cooling.get().range((later, TaskId::new(0))..).map(|&(until, _)| until).next()
    }

    /// Returns the pods of ours that wait and belong to no job, in no particular order.
    pub fn ungrouped(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.ungrouped.get().iter().copied()
    }

    /// Returns a counter that increases with every event that may have changed something.
    /// Placements of sessions do not change it.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns a counter that increases when a queue was added, changed or removed. Changes of the
    /// status that we write do not count.
    pub fn queue_version(&self) -> u64 {
        self.queue_version
    }

    /// Returns a counter that increases whenever the status of a queue differs from the status last
    /// seen or written.
    pub fn queue_status_version(&self) -> u64 {
        self.status_version
    }

    /// Returns the known nodes in name order.
    pub fn nodes_by_name(&self) -> &[NodeId] {
        &self.node_order
    }

    /// Returns the node with this name, even if only pods name it.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.node_by_name.get(name).copied()
    }

    /// Returns the jobs ordered by key (`namespace/name`), including jobs without a PodGroup.
    pub fn jobs_by_key(&self) -> impl Iterator<Item = JobId> + '_ {
        self.job_order.values().copied()
    }

    /// Returns the job with this PodGroup name.
    pub fn job(&self, key: &ObjectKey) -> Option<JobId> {
        self.job_by_key.get(key, |job| self.jobs[job].key == *key)
    }

    /// Returns the queues by name, including queues that only PodGroups name.
    pub fn queues_by_name(&self) -> impl Iterator<Item = QueueId> + '_ {
        self.queue_by_name.get().values().copied()
    }

    /// Returns the queue with this name, even if only PodGroups name it.
    pub fn queue(&self, name: &str) -> Option<QueueId> {
        self.queue_by_name.get().get(name).copied()
    }

    /// Returns the task with this pod uid.
    pub fn task(&self, uid: &str) -> Option<TaskId> {
        self.task_by_uid.get(uid, |task| *self.tasks[task].uid == *uid)
    }

    /// Returns the task with this pod name.
    pub fn task_named(&self, key: &ObjectKey) -> Option<TaskId> {
        self.task_by_key.get(key, |task| self.tasks[task].key == *key)
    }

    /// Returns the class of a task.
    pub fn class(&self, task: TaskId) -> &Class {
        reads::note(Read::Class(task));
        &self.classes[self.tasks[task].class]
    }

    /// True if a Service or a workload selects pods, by which others spread.
    pub fn has_pod_selectors(&self) -> bool {
        !self.selectors.is_empty()
    }

    /// True if the task may run in any revocable zone. All tasks of its class agree in this.
    pub fn is_for_revocable_zones(&self, task: TaskId) -> bool {
        self.classes[self.tasks[task].class].any_revocable_zone
    }

    /// Returns the request of a task, which includes `pods` = 1.
    pub fn request(&self, task: TaskId) -> &Resource {
        &self.class(task).request
    }

    /// Returns the scheduler that decides about a pod. Returns `None` if this one does, or if the pod
    /// is in a state of an earlier version, which does not say it.
    pub fn other_scheduler(&self, task: TaskId) -> Option<&OtherScheduler> {
        self.other_schedulers.get(self.tasks[task].scheduler)
    }

    /// Returns the job of a task. Returns `None` if the task belongs to no job.
    pub fn job_of(&self, task: TaskId) -> Option<&Job> {
        self.tasks[task].job.map(|job| &self.jobs[job])
    }

    /// Returns the highest priority among the tasks of a sub-job, or 0 without tasks (D8: priority
    /// of a sub-job).
    pub fn sub_job_priority(&self, job: JobId, sub_job: usize) -> i32 {
        let tasks = &self.jobs[job].sub_jobs[sub_job].tasks;
        tasks.iter().map(|&task| self.tasks[task].priority).max().unwrap_or(0)
    }

    /// Returns the names of the namespaces, in order.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.namespaces.get().keys()
    }

    /// Returns the labels of a namespace. Returns `None` if the namespace is not known.
    pub fn namespace_labels(&self, name: &str) -> Option<&Labels> {
        self.namespaces.get().get(name)
    }

    /// Returns Σ allocatable of all known nodes, whether they are ready or cordoned or not.
    pub fn total_allocatable(&self) -> Fractional {
        let mut total = Fractional::default();
        for (&dim, sum) in &self.total {
            total.set(dim, sum.amount as f64);
        }
        total
    }

    /// Returns Σ allocatable of all known nodes as whole amounts.
    pub fn total_amounts(&self) -> Resource {
        let mut total = Resource::default();
        for (&dim, sum) in &self.total {
            total.set_exact(dim, sum.amount);
        }
        total
    }

    /// Returns the class with this content, and increases its number of tasks by one.
    pub(crate) fn acquire_class(&mut self, class: Class) -> ClassId {
        let (id, is_new) = self.classes.acquire(class);
        if is_new {
            let (domains, world) = self.domains_and_world();
            domains.add_class(id, world);
        }
        id
    }

    /// Decreases the number of tasks of the class by one.
    pub(crate) fn release_class(&mut self, id: ClassId) {
        if let Some(class) = self.classes.release(id) {
            self.domains.remove_class(id, &class);
        }
    }

    fn domains_and_world(&mut self) -> (&mut Domains, CounterSources<'_>) {
        let Self { domains, nodes, classes, namespaces, selectors, .. } = self;
        (domains, CounterSources { nodes, classes, namespaces: namespaces.get(), selectors })
    }

    /// Returns the value of the PriorityClass with this name. Without such a class it is the
    /// smallest global default (C-13), or 0 if there is no default.
    pub(crate) fn priority_value(&self, class_name: &str) -> i32 {
        if let Some(class) = self.priority_classes.get(class_name) {
            return class.value;
        }
        let defaults = self.priority_classes.values().filter(|class| class.global_default);
        defaults.map(|class| class.value).min().unwrap_or(0)
    }

    /// Builds the hash indexes of a stored state anew, after its texts were replaced. The indexes
    /// hold hashes of names (answers.md 15, ANS-102).
    pub fn rebuild_indexes(&mut self) {
        (self.job_by_key, self.task_by_uid) = (Index::default(), Index::default());
        self.task_by_key = Index::default();
        for (id, job) in self.jobs.iter() {
            self.job_by_key.insert(&job.key, id);
        }
        for (id, task) in self.tasks.iter() {
            self.task_by_uid.insert(&*task.uid, id);
            self.task_by_key.insert(&task.key, id);
        }
        self.classes.rebuild_index();
        let jobs: Vec<JobId> = self.jobs.ids().collect();
        for id in jobs {
            self.rebuild_sub_jobs(id);
        }
    }

    /// Makes freed rows reusable after a session has ended. Caches that keep ids across sessions
    /// thus see each freed row without an object before the row gets another one.
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
