//! What the network topology of a job means among the HyperNodes of a session. Specification:
//! core.md 4.9, actions.md 2.12.

use std::collections::BTreeSet;

use vc_model::{HyperNodeId, HyperNodeTree, JobId, NetworkTopology, NodeId, TaskId, TaskStatus};

use crate::plugin::SessionView;

impl SessionView<'_> {
    /// The highest tier in which the job must stay. `None` if it is not bound to a HyperNode. Soft
    /// mode allows the tier of the root.
    pub fn highest_tier(self, job: JobId) -> Option<i32> {
        let group = self.cluster.jobs[job].pod_group.as_ref()?;
        let (_, root) = self.info.hyper_nodes.tiers();
        limit(&self.info.hyper_nodes, group.network_topology.as_deref()?, root)
    }

    /// The highest tier in which a sub-job must stay. Soft mode allows that of the job, if the job
    /// has one.
    pub fn highest_tier_of_sub_job(self, job: JobId, sub_job: usize) -> Option<i32> {
        let row = &self.cluster.jobs[job];
        let Some(policy) = row.sub_jobs[sub_job].policy else {
            return self.highest_tier(job);
        };
        let topology = row.policies()[policy].network_topology.as_ref()?;
        let (_, root) = self.info.hyper_nodes.tiers();
        let soft = self.highest_tier(job).unwrap_or(root);
        limit(&self.info.hyper_nodes, topology, soft)
    }

    /// True if a network topology is set for the sub-job, whether or not it limits the tier.
    pub fn has_topology(self, job: JobId, sub_job: usize) -> bool {
        let row = &self.cluster.jobs[job];
        match row.sub_jobs[sub_job].policy {
            Some(policy) => row.policies()[policy].network_topology.is_some(),
            None => row.pod_group.as_ref().is_some_and(|group| group.network_topology.is_some()),
        }
    }

    /// True if the job, or one of its sub-jobs, must stay in a HyperNode.
    pub fn is_in_hyper_nodes(self, job: JobId) -> bool {
        let Some(group) = &self.cluster.jobs[job].pod_group else { return false };
        if group.network_topology.is_none()
            && group.policies.iter().all(|policy| policy.network_topology.is_none())
        {
            return false;
        }
        let n_sub_jobs = self.cluster.jobs[job].sub_jobs.len();
        self.highest_tier(job).is_some()
            || (0..n_sub_jobs).any(|index| self.highest_tier_of_sub_job(job, index).is_some())
    }

    /// AllocatedHyperNode of a sub-job: the smallest HyperNode with the nodes of all its placed
    /// tasks. `None` if no task is placed.
    pub fn allocated_hyper_node(self, job: JobId, sub_job: usize) -> Option<HyperNodeId> {
        self.around_tasks(job, sub_job, None)
    }

    /// AllocatedHyperNode of a job: the nearest common ancestor of those of its sub-jobs.
    pub fn allocated_hyper_node_of_job(self, job: JobId) -> Option<HyperNodeId> {
        self.common_ancestor(job, |sub_job| self.allocated_hyper_node(job, sub_job))
    }

    /// The smallest HyperNode with the nodes of all placed tasks of a sub-job, and with this one.
    fn around_tasks(self, job: JobId, sub_job: usize, node: Option<NodeId>) -> Option<HyperNodeId> {
        let tasks = &self.cluster.jobs[job].sub_jobs[sub_job].tasks;
        let nodes = tasks.iter().filter_map(|&task| placed(self, task));
        self.info.hyper_nodes.around(nodes.chain(node))
    }

    fn common_ancestor(
        self,
        job: JobId,
        of_sub_job: impl Fn(usize) -> Option<HyperNodeId>,
    ) -> Option<HyperNodeId> {
        let n_sub_jobs = self.cluster.jobs[job].sub_jobs.len();
        let of_sub_jobs = (0..n_sub_jobs).filter_map(of_sub_job);
        of_sub_jobs.reduce(|l, r| self.info.hyper_nodes.lca(l, r))
    }

    /// True if the job, or a sub-job of these tasks, has placed tasks that are in no HyperNode of an
    /// allowed tier together. Other sub-jobs may have been apart before.
    pub fn breaks_topology(self, job: JobId, tasks: impl IntoIterator<Item = TaskId>) -> bool {
        if !self.is_in_hyper_nodes(job) {
            return false;
        }
        let exceeds = |limit: Option<i32>, allocated: Option<HyperNodeId>| {
            let tier = allocated.map(|id| self.info.hyper_nodes[id].tier);
            limit.zip(tier).is_some_and(|(limit, tier)| limit < tier)
        };
        let sub_job = |task: TaskId| self.cluster.tasks[task].sub_job;
        let sub_jobs: BTreeSet<usize> = tasks.into_iter().map(sub_job).collect();
        exceeds(self.highest_tier(job), self.allocated_hyper_node_of_job(job))
            || sub_jobs.into_iter().any(|index| {
                let limit = self.highest_tier_of_sub_job(job, index);
                exceeds(limit, self.allocated_hyper_node(job, index))
            })
    }

    /// True if the task may be on the node as far as the network topology of its job is concerned.
    pub fn is_near_enough(self, task: TaskId, node: NodeId) -> bool {
        let row = &self.cluster.tasks[task];
        let Some(job) = row.job.filter(|&job| self.has_job(job) && self.is_in_hyper_nodes(job))
        else {
            return true;
        };
        let with_node = |sub_job: usize| {
            let node = (sub_job == row.sub_job).then_some(node);
            self.around_tasks(job, sub_job, node)
        };
        let is_within = |limit: Option<i32>, around: Option<HyperNodeId>| {
            let tier = around.map(|id| self.info.hyper_nodes[id].tier);
            limit.zip(tier).is_none_or(|(limit, tier)| tier <= limit)
        };
        is_within(self.highest_tier(job), self.common_ancestor(job, with_node))
            && is_within(self.highest_tier_of_sub_job(job, row.sub_job), with_node(row.sub_job))
    }
}

/// The node of a task that is placed: one that runs, or for which a statement has a place. A node that has gone is in
/// no HyperNode, and its pods are about to go, too.
fn placed(view: SessionView<'_>, task: TaskId) -> Option<NodeId> {
    let row = &view.cluster.tasks[task];
    let is_placed = row.status.is_allocated() || row.status == TaskStatus::Pipelined;
    row.node.filter(|&node| is_placed && view.cluster.nodes[node].present)
}

/// The highest allowed tier. `None` without a limit: a name that no tier has sets none.
fn limit(tree: &HyperNodeTree, topology: &NetworkTopology, soft: i32) -> Option<i32> {
    match topology {
        NetworkTopology { soft: true, .. } => Some(soft),
        NetworkTopology { highest_tier_allowed: Some(tier), .. } => Some(*tier),
        NetworkTopology { highest_tier_name: name, .. } => tree.tier(name),
    }
}
