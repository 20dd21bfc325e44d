//! Nodes of which something else may be said than before: their row has changed, a pod there, or the
//! job of one; queues of which votes may read something else; and which nodes there are.
//! Specification: actions.md 12.2 S2, S7.

use rustc_hash::{FxHashMap, FxHashSet};
use vc_model::{Cluster, Id, JobId, NodeId, QueueId};

/// Nodes and queues of which something else may be said than before.
#[derive(Debug, Default)]
pub(super) struct Changed {
    nodes_log: Log<NodeId>,
    queues_log: Log<QueueId>,
    /// In the logs of the cluster.
    seen_nodes: u64,
    seen_jobs: u64,
    set_version: Option<u64>,
    /// Those of the session, by index.
    nodes: Vec<bool>,
    pub(super) places: Places,
}

/// How far somebody has read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    nodes: u64,
    queues: u64,
}

/// What somebody has not read yet; some of it more than once.
pub(super) struct News<'a> {
    pub(super) nodes: &'a [NodeId],
    pub(super) queues: &'a [QueueId],
}

/// Rows in the order in which they changed.
#[derive(Debug)]
struct Log<T> {
    /// Position of the first one.
    start: u64,
    rows: Vec<T>,
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self { start: 0, rows: Vec::new() }
    }
}

impl<T> Log<T> {
    fn end(&self) -> u64 {
        self.start + self.rows.len() as u64
    }

    /// `None`: too long ago.
    fn since(&self, position: u64) -> Option<&[T]> {
        self.rows.get(usize::try_from(position.checked_sub(self.start)?).ok()?..)
    }

    /// Forgets what is longer ago than looking at every row is worth.
    fn shorten(&mut self, n_rows: usize) {
        if 4 * n_rows + 1024 < self.rows.len() {
            self.start = self.end();
            self.rows = Vec::new();
        }
    }
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
        let (of_nodes, of_jobs) = (cluster.node_changes(), cluster.job_changes());
        let (seen_nodes, seen_jobs) = (of_nodes.end(), of_jobs.end());
        let mut changed = Self { seen_nodes, seen_jobs, ..Self::default() };
        changed.follow(cluster, nodes);
        changed
    }

    pub(super) fn end(&self) -> Position {
        Position { nodes: self.nodes_log.end(), queues: self.queues_log.end() }
    }

    /// `None`: too long ago.
    pub(super) fn since(&self, position: Position) -> Option<News<'_>> {
        let nodes = self.nodes_log.since(position.nodes)?;
        Some(News { nodes, queues: self.queues_log.since(position.queues)? })
    }

    /// How many nodes there may be.
    pub(super) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    fn push(&mut self, node: NodeId) {
        self.places.leave(node);
        self.nodes_log.rows.push(node);
    }

    /// Votes about pods of these queues may be others.
    pub(super) fn note_queues(&mut self, queues: Vec<QueueId>) {
        self.queues_log.rows.extend(queues);
    }

    /// Takes over what changed. Whether it is known what did.
    pub(super) fn follow(&mut self, cluster: &Cluster, nodes: &[NodeId]) -> bool {
        let (of_nodes, of_jobs) = (cluster.node_changes(), cluster.job_changes());
        let changed = of_nodes.since(self.seen_nodes).zip(of_jobs.since(self.seen_jobs));
        let is_known = changed.is_some();
        if let Some((nodes, jobs)) = changed {
            nodes.iter().for_each(|&node| self.push(node));
            for &job in jobs {
                self.places.take(job).into_iter().for_each(|node| self.push(node));
            }
        }
        (self.seen_nodes, self.seen_jobs) = (of_nodes.end(), of_jobs.end());
        if self.set_version != Some(of_nodes.set_version()) {
            self.set_version = Some(of_nodes.set_version());
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

    /// Forgets what is longer ago than looking at every node is worth.
    pub(super) fn shorten(&mut self) {
        self.nodes_log.shorten(self.nodes.len());
        self.queues_log.shorten(self.nodes.len());
    }
}
