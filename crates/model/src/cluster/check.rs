//! Recomputes every derived sum and index from the tasks, and compares bit for bit. Used by tests
//! and by the watchdog.

use std::collections::BTreeMap;
use std::fmt::Debug;

use vc_resource::{Dim, Resource};

use crate::class::Class;
use crate::cluster::{Cluster, Total, groups};
use crate::counts_by_role::CountsByRole;
use crate::ids::{ClassId, Id, ImageId, JobId, NodeId, QueueId, Table, TaskId};
use crate::job::Job;
use crate::node::{Node, NodeView};
use crate::record::ObjectKey;
use crate::status::{Counts, TaskStatus};
use crate::sums;
use crate::task::{Gates, Task};
use crate::volume::PodVolume;

/// Tasks by the node and by the job that they name, ordered by id.
#[derive(Default)]
struct TasksByOwner {
    of_node: BTreeMap<NodeId, Vec<TaskId>>,
    of_job: BTreeMap<JobId, Vec<TaskId>>,
}

impl Cluster {
    /// Recomputes every derived sum from the tasks.
    ///
    /// # Errors Returns the first difference as text.
    pub fn check(&self) -> Result<(), String> {
        let members = self.members()?;
        let none = Vec::new();
        for (id, node) in self.nodes.iter() {
            self.check_node(node, members.of_node.get(&id).unwrap_or(&none))?;
        }
        for (id, job) in self.jobs.iter() {
            let tasks = members.of_job.get(&id).unwrap_or(&none);
            self.check_job(job, tasks)?;
            self.check_sub_jobs(job, tasks)?;
            same(&job.key, "priority", &job.priority, &self.job_priority(id))?;
        }
        self.check_indexes()?;
        self.check_queues()?;
        self.check_schedulers()?;
        self.check_classes()?;
        self.check_volumes()?;
        let promised = self.volumes.reservations();
        self.devices.check(promised.map(|(task, promise)| (task, &promise.devices[..])))?;
        self.check_total()?;
        self.check_images()?;
        self.domains.check(self)?;
        match self.classes.is_empty() && !self.domains.is_empty() {
            true => Err("cluster: counts by domain are kept for nobody".to_owned()),
            false => Ok(()),
        }
    }

    fn members(&self) -> Result<TasksByOwner, String> {
        let mut members = TasksByOwner::default();
        for (id, task) in self.tasks.iter() {
            if let Some(node) = task.node {
                exists(&task.key, &self.nodes, node)?;
                members.of_node.entry(node).or_default().push(id);
            }
            if let Some(job) = task.job {
                exists(&task.key, &self.jobs, job)?;
                members.of_job.entry(job).or_default().push(id);
            }
        }
        Ok(members)
    }

    fn check_node(&self, node: &Node, named_by: &[TaskId]) -> Result<(), String> {
        let mut fresh = Node::default();
        fresh.set_allocatable(node.allocatable.clone());
        let mut view = NodeView::default();
        for &task in named_by {
            let row = &self.tasks[task];
            if row.status.is_terminated() {
                fresh.n_terminated += 1;
                continue;
            }
            fresh.tasks.push(task);
            fresh.charge(row.status, self.request(task));
            if !row.hidden {
                view.add(self.class(task));
                let names = self.volumes.names_on(self.class(task), &node.name);
                names.for_each(|name| fresh.volumes.add(name));
            }
        }
        let name = &node.name;
        let in_shard = node.present && self.shards.ours.get().contains(name);
        same(name, "in shard", &node.in_shard, &in_shard)?;
        same(name, "tasks", &node.tasks, &fresh.tasks)?;
        same(name, "terminated tasks", &node.n_terminated, &fresh.n_terminated)?;
        same(name, "idle", &node.idle, &fresh.idle)?;
        same(name, "used", &node.used, &fresh.used)?;
        same(name, "releasing", &node.releasing, &fresh.releasing)?;
        same(name, "pipelined", &node.pipelined, &fresh.pipelined)?;
        same(name, "volumes", &node.volumes, &fresh.volumes)?;
        same(name, "view", &node.view, &view)
    }

    fn check_job(&self, job: &Job, tasks: &[TaskId]) -> Result<(), String> {
        let mut counts = Counts::default();
        let mut roles = CountsByRole::default();
        let [mut total, mut allocated, mut pending, mut gated] =
            [(); 4].map(|()| Resource::default());
        for &task in tasks {
            let (row, request) = (&self.tasks[task], self.request(task));
            let role = roles.entry(&row.role);
            for counter in [&mut counts, role] {
                counter.add(row.status, row.best_effort, row.node.is_some());
            }
            sums::enter(&mut total, request);
            if row.status.is_allocated() {
                sums::enter(&mut allocated, request);
            }
            if row.status == TaskStatus::Pending {
                sums::enter(&mut pending, request);
            }
            if row.gates == Gates::Foreign {
                sums::enter(&mut gated, request);
            }
        }
        let key = &job.key;
        same(key, "tasks", &job.tasks, &self.in_order(tasks))?;
        same(key, "counts", &job.counts, &counts)?;
        same(key, "roles", &job.roles, &roles)?;
        same(key, "total request", &job.total_request(), &total)?;
        same(key, "allocated", &job.allocated, &allocated)?;
        same(key, "pending request", &*job.pending_request, &pending)?;
        same(key, "gated", &*job.gated, &gated)
    }

    fn check_sub_jobs(&self, job: &Job, tasks: &[TaskId]) -> Result<(), String> {
        let mut fresh: Vec<(Counts, Vec<TaskId>)> = vec![Default::default(); job.sub_jobs.len()];
        for &task in tasks {
            let row = &self.tasks[task];
            let id = groups::sub_job_id(job, &self.class(task).labels);
            same(&row.key, "sub-job", &job.sub_jobs[row.sub_job].id, &id)?;
            let (counts, members) = &mut fresh[row.sub_job];
            counts.add(row.status, row.best_effort, row.node.is_some());
            members.push(task);
        }
        for (sub_job, (counts, members)) in job.sub_jobs.iter().zip(fresh) {
            same(&sub_job.id, "counts", &sub_job.counts, &counts)?;
            same(&sub_job.id, "tasks", &sub_job.tasks, &self.in_order(&members))?;
        }
        for policy in 0..job.policies().len() {
            let (kept, counted) = (job.tally(policy), job.walk_tally(policy));
            same(&job.key, "sub-jobs of a policy", &kept, &counted)?;
        }
        let minimum = groups::default_minimum(job);
        same(&job.key, "sub-jobs are found by id", &job.finds_sub_jobs(), &true)?;
        same(&job.key, "default minimum", &job.sub_jobs[0].min_available, &minimum)
    }

    /// Returns the tasks ordered by (namespace, name, uid).
    fn in_order(&self, tasks: &[TaskId]) -> Vec<TaskId> {
        let mut ordered = tasks.to_vec();
        let key = |task: TaskId| (&self.tasks[task].key, &self.tasks[task].uid);
        ordered.sort_by(|&l, &r| key(l).cmp(&key(r)));
        ordered
    }

    fn check_indexes(&self) -> Result<(), String> {
        let present = self.nodes.iter().filter(|(_, node)| node.present);
        let mut order: Vec<NodeId> = present.map(|(id, _)| id).collect();
        order.sort_by_key(|&id| &self.nodes[id].name);
        same("cluster", "nodes by name", &self.node_order, &order)?;
        for (id, node) in self.nodes.iter() {
            same(&node.name, "node by name", &self.node(&node.name), &Some(id))?;
        }
        for (id, task) in self.tasks.iter() {
            same(&task.key, "task by uid", &self.task(&task.uid), &Some(id))?;
            same(&task.key, "task by name", &self.task_named(&task.key), &Some(id))?;
        }
        let cooling =
            self.tasks.iter().filter_map(|(id, row)| Some((row.cooling_until_micros?, id)));
        same("cluster", "who cools", self.cooling.get(), &cooling.collect())?;
        let waits = |row: &Task| row.job.is_none() && row.status == TaskStatus::Pending;
        let ungrouped = self.tasks.iter().filter(|(_, row)| waits(row)).map(|(id, _)| id);
        same("cluster", "pods without job", self.ungrouped.get(), &ungrouped.collect())?;
        for (id, job) in self.jobs.iter() {
            same(&job.key, "job by name", &self.job(&job.key), &Some(id))?;
            exists(&job.key, &self.queues, job.queue)?;
        }
        for (id, queue) in self.queues.iter() {
            same(&queue.name, "queue by name", &self.queue(&queue.name), &Some(id))?;
        }
        let held = [self.node_by_name.len(), self.task_by_uid.len(), self.task_by_key.len()];
        let rows = [self.nodes.len(), self.tasks.len(), self.tasks.len()];
        same("cluster", "number of names", &held, &rows)?;
        let held = [self.job_by_key.len(), self.job_order.len(), self.queue_by_name.get().len()];
        let rows = [self.jobs.len(), self.jobs.len(), self.queues.len()];
        same("cluster", "number of keys", &held, &rows)?;
        let differs = |(key, id): &(&ObjectKey, &JobId)| self.job(key) != Some(**id);
        same("cluster", "order of keys", &self.job_order.iter().find(differs), &None)
    }

    /// Checks that queues count the jobs that name them, and that unused queues are listed for
    /// removal.
    fn check_queues(&self) -> Result<(), String> {
        let mut n_jobs: BTreeMap<QueueId, u32> = BTreeMap::new();
        for (_, job) in self.jobs.iter() {
            *n_jobs.entry(job.queue).or_default() += 1;
        }
        for (id, queue) in self.queues.iter() {
            let n_jobs = n_jobs.get(&id).copied().unwrap_or(0);
            same(&queue.name, "number of jobs", &queue.n_jobs, &n_jobs)?;
            let is_noted = !queue.is_unused() || self.unused_queues.contains(&id);
            same(&queue.name, "is noted if it is unused", &is_noted, &true)?;
        }
        Ok(())
    }

    fn check_schedulers(&self) -> Result<(), String> {
        let numbers = self.tasks.iter().map(|(_, task)| task.scheduler);
        let fresh = self.other_schedulers.counted(numbers);
        same("cluster", "pods of other schedulers", &self.other_schedulers.n_pods(), &fresh)
    }

    fn check_classes(&self) -> Result<(), String> {
        let mut references: BTreeMap<ClassId, u32> = BTreeMap::new();
        for (_, task) in self.tasks.iter() {
            *references.entry(task.class).or_default() += 1;
        }
        same("cluster", "classes", &self.classes.references(), &references.into_iter().collect())
    }

    /// Checks that the claims of every task are in its request and in the index. Only tasks with a
    /// node may have a reservation or shared devices.
    fn check_volumes(&self) -> Result<(), String> {
        self.volumes.check_indexes()?;
        self.volumes.check_promised()?;
        let mut n_users = 0;
        for (id, task) in self.tasks.iter() {
            let class = self.class(id);
            let mut keys: Vec<ObjectKey> = claims_of(class);
            keys.sort();
            keys.dedup();
            n_users += keys.len();
            let listed = keys.iter().all(|key| self.volumes.users(key).any(|user| user == id));
            same(&task.key, "is listed as user of its claims", &listed, &true)?;
            same(&task.key, "best effort", &task.best_effort, &class.request.is_empty())?;
            self.check_claim_counts(&task.key, class)?;
        }
        same("cluster", "users of claims", &self.volumes.n_users(), &n_users)?;
        let has_devices =
            |task: &Task| task.node.is_none() && (task.devices.is_some() || task.cpus.is_some());
        if let Some((_, task)) = self.tasks.iter().find(|(_, task)| has_devices(task)) {
            return Err(format!("{} has devices but no node", task.key));
        }
        let placed = |task| self.tasks.get(task).is_some_and(|row| row.node.is_some());
        match self.volumes.reservations().find(|&(task, _)| !placed(task)) {
            None => Ok(()),
            Some((_, promised)) => Err(format!("promised to a task without node: {promised:?}")),
        }
    }

    fn check_claim_counts(&self, key: &ObjectKey, class: &Class) -> Result<(), String> {
        let mut fresh: BTreeMap<String, i64> = BTreeMap::new();
        let ignored = &self.settings.ignored_provisioners;
        for key in claims_of(class) {
            if let Some(name) = self.volumes.resource_of(&key, ignored) {
                *fresh.entry(name).or_default() += 1;
            }
        }
        let name = |dim: Dim| (self.dims.name(dim).to_owned(), class.request.get(dim));
        let counted = class.request.scalars().map(name);
        let held = counted.filter(|(name, _)| name.starts_with("attachable-volumes-csi-"));
        same(key, "claims in the request", &held.collect(), &fresh)
    }

    fn check_images(&self) -> Result<(), String> {
        let mut n_nodes: BTreeMap<ImageId, u32> = BTreeMap::new();
        for image in self.nodes.iter().flat_map(|(_, node)| &node.images) {
            *n_nodes.entry(*image).or_default() += 1;
        }
        let held = self.images.iter().map(|(id, image)| (id, image.n_nodes));
        same("cluster", "nodes of images", &held.collect(), &n_nodes)
    }

    fn check_total(&self) -> Result<(), String> {
        let mut total: BTreeMap<Dim, Total> = BTreeMap::new();
        for &id in &self.node_order {
            let allocatable = &self.nodes[id].allocatable;
            for dim in allocatable.dims() {
                let sum = total.entry(dim).or_default();
                sum.amount += i128::from(allocatable.get(dim));
                sum.n_nodes += 1;
            }
        }
        same("cluster", "total", &self.total, &total)
    }
}

fn claims_of(class: &Class) -> Vec<ObjectKey> {
    let claim = |volume: &PodVolume| match volume {
        PodVolume::Claim(claim) => Some(claim.key(&class.namespace)),
        PodVolume::Disk(_) => None,
    };
    class.volumes.iter().filter_map(claim).collect()
}

fn exists<I: Id + Debug, T>(of: &impl ToString, table: &Table<I, T>, id: I) -> Result<(), String> {
    match table.get(id) {
        Some(_) => Ok(()),
        None => Err(format!("{}: names a row that is gone: {id:?}", of.to_string())),
    }
}

fn same<T: PartialEq + Debug>(
    of: &(impl ToString + ?Sized),
    what: &str,
    held: &T,
    fresh: &T,
) -> Result<(), String> {
    match held == fresh {
        true => Ok(()),
        false => Err(format!("{}: {what} is {held:?}, should be {fresh:?}", of.to_string())),
    }
}
