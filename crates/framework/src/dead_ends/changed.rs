//! Nodes of which something else may be said than before: their row has changed, a pod there, or the
//! job of one; queues of which votes may read something else; and which nodes there are.
//! Specification: actions.md 12.2 S2, S7.

use rustc_hash::{FxHashMap, FxHashSet};
use vc_model::{
    ChangeLog, ChangeReader, ChangedRows, Cluster, Id, JobId, NodeId, QueueId, Revision,
};

/// Nodes and queues of which something else may be said than before.
#[derive(Debug, Default)]
pub(super) struct Changed {
    nodes_log: ChangeLog<NodeId>,
    queues_log: ChangeLog<QueueId>,
    changed_nodes: ChangeReader<NodeId>,
    changed_jobs: ChangeReader<JobId>,
    node_set: Option<Revision>,
    /// Those of the session, by index.
    nodes: Vec<bool>,
    pub(super) places: Places,
}

/// How far a cache has read both logs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reader {
    nodes: ChangeReader<NodeId>,
    queues: ChangeReader<QueueId>,
}

/// What a cache has not read yet.
pub(super) struct News<'a> {
    pub(super) nodes: ChangedRows<'a, NodeId>,
    pub(super) queues: ChangedRows<'a, QueueId>,
}

/// Where the pods of a job are, and those of a queue.
#[derive(Debug, Default)]
pub(super) struct Places {
    by_job: FxHashMap<JobId, Vec<NodeId>>,
    by_queue: FxHashMap<QueueId, Vec<NodeId>>,
    n_entries: usize,
    /// When they were entered anew.
    n_entries_then: usize,
    /// By index of the node: it is entered for the jobs of all its pods.
    entered: Vec<bool>,
}

impl Places {
    fn is_entered(&self, node: NodeId) -> bool {
        self.entered.get(node.index()).is_some_and(|&is_in| is_in)
    }

    pub(super) fn enter(&mut self, cluster: &Cluster, node: NodeId) {
        if self.is_entered(node) {
            return;
        }
        if 2 * self.n_entries_then + 1024 < self.n_entries {
            self.enter_anew(cluster);
        }
        if self.entered.len() <= node.index() {
            self.entered.resize(node.index() + 1, false);
        }
        self.entered[node.index()] = true;
        self.note(cluster, node);
    }

    fn note(&mut self, cluster: &Cluster, node: NodeId) {
        let tasks = cluster.nodes.get(node).into_iter().flat_map(|row| &row.tasks);
        let jobs = tasks.filter_map(|&task| cluster.tasks[task].job);
        let jobs: FxHashSet<JobId> = jobs.collect();
        let queues: FxHashSet<QueueId> = jobs.iter().map(|&job| cluster.jobs[job].queue).collect();
        self.n_entries += jobs.len() + queues.len();
        for job in jobs {
            self.by_job.entry(job).or_default().push(node);
        }
        for queue in queues {
            self.by_queue.entry(queue).or_default().push(node);
        }
    }

    /// A node that changes is entered again, for jobs and queues that stay a second time.
    fn enter_anew(&mut self, cluster: &Cluster) {
        self.by_job.clear();
        self.by_queue.clear();
        self.n_entries = 0;
        let nodes = (0..self.entered.len() as u32).map(NodeId::new);
        for node in nodes.filter(|&node| self.is_entered(node)).collect::<Vec<_>>() {
            self.note(cluster, node);
        }
        self.n_entries_then = self.n_entries;
    }

    /// Of this node nothing is known any more.
    fn leave(&mut self, node: NodeId) {
        if let Some(is_in) = self.entered.get_mut(node.index()) {
            *is_in = false;
        }
    }

    /// The nodes on which pods of the job are, some twice.
    fn take(&mut self, job: JobId) -> Vec<NodeId> {
        let nodes = self.by_job.remove(&job).unwrap_or_default();
        self.n_entries -= nodes.len();
        nodes
    }

    /// The nodes on which pods of the queue are or were, some twice.
    pub(super) fn of_queue(&self, queue: QueueId) -> &[NodeId] {
        self.by_queue.get(&queue).map_or(&[], Vec::as_slice)
    }
}

impl Changed {
    /// Nobody has seen anything yet.
    pub(super) fn from_now(cluster: &Cluster, nodes: &[NodeId]) -> Self {
        let changed_nodes = ChangeReader::at_end(cluster.node_changes());
        let changed_jobs = ChangeReader::at_end(cluster.job_changes());
        let mut changed = Self { changed_nodes, changed_jobs, ..Self::default() };
        changed.follow(cluster, nodes);
        changed
    }

    /// What has changed since the cache has read last. `None`: it has never read.
    pub(super) fn read(&self, reader: &mut Reader) -> Option<News<'_>> {
        let nodes = reader.nodes.read(&self.nodes_log);
        let queues = reader.queues.read(&self.queues_log);
        Some(News { nodes: nodes?, queues: queues? })
    }

    /// How many nodes there may be.
    pub(super) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    fn push(&mut self, node: NodeId) {
        self.places.leave(node);
        self.nodes_log.push(node);
    }

    /// Votes about pods of these queues may be others.
    pub(super) fn note_queues(&mut self, queues: Vec<QueueId>) {
        queues.into_iter().for_each(|queue| self.queues_log.push(queue));
    }

    /// Takes over what changed. Whether it is known what did.
    pub(super) fn follow(&mut self, cluster: &Cluster, nodes: &[NodeId]) -> bool {
        let changed_nodes = self.changed_nodes.read(cluster.node_changes());
        let changed_jobs = self.changed_jobs.read(cluster.job_changes());
        let is_known = changed_nodes.is_some() && changed_jobs.is_some();
        changed_nodes.into_iter().flatten().for_each(|node| self.push(node));
        for job in changed_jobs.into_iter().flatten() {
            self.places.take(job).into_iter().for_each(|node| self.push(node));
        }
        if self.node_set.replace(cluster.node_set_revision()) != Some(cluster.node_set_revision()) {
            self.take_set(nodes);
        }
        is_known
    }

    /// Nodes come and go.
    fn take_set(&mut self, nodes: &[NodeId]) {
        let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        let mut present = vec![false; n_ids.max(self.nodes.len())];
        nodes.iter().for_each(|node| present[node.index()] = true);
        self.nodes.resize(present.len(), false);
        let differs = |&index: &usize| present[index] != self.nodes[index];
        let different: Vec<usize> = (0..present.len()).filter(differs).collect();
        different.into_iter().for_each(|index| self.push(NodeId::new(index as u32)));
        self.nodes = present;
    }

    pub(super) fn has(&self, node: NodeId) -> bool {
        self.nodes.get(node.index()).is_some_and(|&is_in| is_in)
    }
}
