//! Every derived sum recomputed and compared; for tests and for the watchdog.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_resource::{Dim, Resource};

use crate::cluster::Cluster;
use crate::ids::{ClassId, JobId, NodeId, TaskId};
use crate::node::{Node, NodeView};
use crate::status::{Counts, TaskStatus};
use crate::task::Gates;

impl Cluster {
    /// Recomputes every derived sum from the tasks.
    ///
    /// # Errors
    /// The first sum that differs, as text.
    pub fn check(&self) -> Result<(), String> {
        for (id, node) in self.nodes.iter() {
            self.check_node(id, node)?;
        }
        for id in self.jobs.ids() {
            self.check_job(id)?;
        }
        self.check_indexes()?;
        self.check_classes()?;
        self.check_total()
    }

    fn check_node(&self, id: NodeId, node: &Node) -> Result<(), String> {
        let holds = |&task: &TaskId| {
            self.tasks[task].node == Some(id) && !self.tasks[task].status.is_terminated()
        };
        let tasks: Vec<TaskId> = self.tasks.ids().filter(holds).collect();
        let mut fresh = Node { idle: node.allocatable.clone(), ..Node::default() };
        let mut view = NodeView::default();
        for &task in &tasks {
            fresh.charge(self.tasks[task].status, self.request(task));
            if !self.tasks[task].hidden {
                view.add(self.class(task));
            }
        }
        same(&node.name, "tasks", &node.tasks, &tasks)?;
        same_amounts(&node.name, "idle", &node.idle, &fresh.idle)?;
        same_amounts(&node.name, "used", &node.used, &fresh.used)?;
        same_amounts(&node.name, "releasing", &node.releasing, &fresh.releasing)?;
        same_amounts(&node.name, "pipelined", &node.pipelined, &fresh.pipelined)?;
        same_amounts(&node.name, "requested", &node.view.requested, &view.requested)?;
        view.requested = node.view.requested.clone();
        same(&node.name, "view", &node.view, &view)
    }

    fn check_job(&self, id: JobId) -> Result<(), String> {
        let job = &self.jobs[id];
        let name = job.key.to_string();
        let mut tasks: Vec<TaskId> =
            self.tasks.ids().filter(|&task| self.tasks[task].job == Some(id)).collect();
        tasks.sort_by_key(|&task| (self.tasks[task].key.clone(), self.tasks[task].uid.clone()));
        same(&name, "tasks", &job.tasks, &tasks)?;
        let mut counts = Counts::default();
        let mut roles: BTreeMap<Arc<str>, Counts> = BTreeMap::new();
        let mut sub_jobs = vec![Counts::default(); job.sub_jobs.len()];
        let mut sums = [(); 4].map(|()| Resource::default());
        for &task in &tasks {
            let row = &self.tasks[task];
            let role = roles.entry(row.role.clone()).or_default();
            for counter in [&mut counts, role, &mut sub_jobs[row.sub_job]] {
                counter.add(row.status, row.best_effort, row.node.is_some());
            }
            let request = self.request(task);
            sums[0].add(request);
            let parts = [
                row.status.is_allocated(),
                row.status == TaskStatus::Pending,
                row.gates == Gates::Foreign,
            ];
            for (sum, _) in sums[1..].iter_mut().zip(parts).filter(|(_, counted)| *counted) {
                sum.add(request);
            }
        }
        same(&name, "counts", &job.counts, &counts)?;
        same(&name, "roles", &job.roles, &roles)?;
        let sub_counts: Vec<Counts> = job.sub_jobs.iter().map(|sub| sub.counts.clone()).collect();
        same(&name, "sub-jobs", &sub_counts, &sub_jobs)?;
        let held = [&job.total_request, &job.allocated, &job.pending_request, &job.gated];
        let names = ["total request", "allocated", "pending request", "gated"];
        for ((held, fresh), what) in held.into_iter().zip(&sums).zip(names) {
            same_amounts(&name, what, held, fresh)?;
        }
        Ok(())
    }

    fn check_indexes(&self) -> Result<(), String> {
        let mut order: Vec<NodeId> =
            self.nodes.iter().filter(|(_, node)| node.present).map(|(id, _)| id).collect();
        order.sort_by_key(|&id| self.nodes[id].name.clone());
        same("cluster", "nodes by name", &self.node_order, &order)?;
        same("cluster", "tasks by uid", &self.task_by_uid.len(), &self.tasks.len())?;
        same("cluster", "jobs by key", &self.job_by_key.len(), &self.jobs.len())?;
        same("cluster", "queues by name", &self.queue_by_name.len(), &self.queues.len())
    }

    fn check_classes(&self) -> Result<(), String> {
        let mut references: BTreeMap<ClassId, u32> = BTreeMap::new();
        for (_, task) in self.tasks.iter() {
            *references.entry(task.class).or_default() += 1;
        }
        same("cluster", "classes", &self.classes.references(), &references.into_iter().collect())
    }

    fn check_total(&self) -> Result<(), String> {
        let mut total: BTreeMap<Dim, i128> = BTreeMap::new();
        for &id in &self.node_order {
            let allocatable = &self.nodes[id].allocatable;
            for dim in allocatable.dims() {
                *total.entry(dim).or_default() += i128::from(allocatable.get(dim));
            }
        }
        total.retain(|_, sum| *sum != 0);
        same("cluster", "total", &self.total, &total)
    }
}

/// Equal where a dimension that was there and went back to 0 counts as absent.
fn same_amounts(
    name: &str,
    what: &str,
    held: &Resource,
    fresh: &Resource,
) -> Result<(), String> {
    let equal = |l: &Resource, r: &Resource| l.dims().all(|dim| l.get(dim) == r.get(dim));
    match equal(held, fresh) && equal(fresh, held) {
        true => Ok(()),
        false => Err(format!("{name}: {what} is {held:?}, should be {fresh:?}")),
    }
}

fn same<T: PartialEq + std::fmt::Debug + ?Sized>(
    name: &str,
    what: &str,
    held: &T,
    fresh: &T,
) -> Result<(), String> {
    match held == fresh {
        true => Ok(()),
        false => Err(format!("{name}: {what} is {held:?}, should be {fresh:?}")),
    }
}
