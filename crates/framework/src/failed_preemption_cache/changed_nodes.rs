//! Logs of the nodes and queues for which cached answers may have changed. A node is logged if its
//! row, a pod there, or the job of such a pod changed, or if it came or went.
//! Specification: actions.md 12.2 S2, S7.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use vc_model::{
    ChangeLog, ChangeReader, ChangedRows, Cluster, Id, JobId, NodeId, QueueId, Revision,
};

/// Logs of nodes and queues for which cached answers may have changed.
#[derive(Debug, Default)]
pub(super) struct ChangedNodes {
    nodes_log: ChangeLog<NodeId>,
    queues_log: ChangeLog<QueueId>,
    changed_nodes: ChangeReader<NodeId>,
    changed_jobs: ChangeReader<JobId>,
    node_set: Option<Revision>,
    /// Per node index: true if the node is in the session.
    nodes: Vec<bool>,
    pub(super) places: PodLocations,
}

/// The positions up to which a cache has read both logs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChangedNodesReader {
    nodes: ChangeReader<NodeId>,
    queues: ChangeReader<QueueId>,
}

/// The nodes and queues that a cache has not read yet.
pub(super) struct UnreadChanges<'a> {
    pub(super) nodes: ChangedRows<'a, NodeId>,
    pub(super) queues: ChangedRows<'a, QueueId>,
}

/// The nodes about which answers are cached, also by the queues of their pods.
#[derive(Debug, Default)]
pub(super) struct PodLocations {
    /// `None` until a queue is logged: most searches need no nodes by queue.
    by_queue: Option<FxHashMap<QueueId, Vec<NodeId>>>,
    n_entries: usize,
    /// Number of entries when the map was last rebuilt.
    n_entries_then: usize,
    /// Per node index: true if answers about the node may be cached. If there are lists by queue, it is in those
    /// of all its pods.
    entered: Vec<bool>,
    /// Number of nodes that were entered so far.
    n_entered: u64,
    /// Per job: that number when the nodes of its pods were returned last. Until another node is entered,
    /// none of them is.
    returned: FxHashMap<JobId, u64>,
}

impl PodLocations {
    fn is_entered(&self, node: NodeId) -> bool {
        self.entered.get(node.index()).is_some_and(|&is_in| is_in)
    }

    pub(super) fn enter(&mut self, cluster: &Cluster, node: NodeId) {
        if self.is_entered(node) {
            return;
        }
        if self.by_queue.is_some() && 2 * self.n_entries_then + 1024 < self.n_entries {
            self.list_by_queue(cluster);
        }
        if self.entered.len() <= node.index() {
            self.entered.resize(node.index() + 1, false);
        }
        self.entered[node.index()] = true;
        self.n_entered += 1;
        self.note(cluster, node);
    }

    /// Adds the node to the lists of the queues of its pods, if there are lists.
    fn note(&mut self, cluster: &Cluster, node: NodeId) {
        let Some(by_queue) = &mut self.by_queue else { return };
        let tasks = cluster.nodes.get(node).into_iter().flat_map(|row| &row.tasks);
        let jobs = tasks.filter_map(|&task| cluster.tasks[task].job);
        let mut queues: SmallVec<[QueueId; 4]> = SmallVec::new();
        for queue in jobs.map(|job| cluster.jobs[job].queue) {
            if !queues.contains(&queue) {
                queues.push(queue);
            }
        }
        self.n_entries += queues.len();
        for queue in queues {
            by_queue.entry(queue).or_default().push(node);
        }
    }

    /// Lists the entered nodes by queue, anew. A changed node is entered again, and so twice for queues
    /// that were there before.
    fn list_by_queue(&mut self, cluster: &Cluster) {
        self.by_queue = Some(FxHashMap::default());
        self.n_entries = 0;
        let nodes = (0..self.entered.len() as u32).map(NodeId::new);
        for node in nodes.filter(|&node| self.is_entered(node)).collect::<Vec<_>>() {
            self.note(cluster, node);
        }
        self.n_entries_then = self.n_entries;
    }

    /// Marks a node as not entered.
    fn leave(&mut self, node: NodeId) {
        if let Some(is_in) = self.entered.get_mut(node.index()) {
            *is_in = false;
        }
    }

    /// Returns the entered nodes on which pods of the job are, some twice. The caller marks them as not
    /// entered. A node that a pod has left has changed itself.
    fn of_job(&mut self, cluster: &Cluster, job: JobId) -> Vec<NodeId> {
        if self.returned.insert(job, self.n_entered) == Some(self.n_entered) {
            return Vec::new();
        }
        let tasks = cluster.jobs.get(job).into_iter().flat_map(|row| row.tasks.iter());
        let nodes = tasks.filter_map(|&task| cluster.tasks[task].node);
        nodes.filter(|&node| self.is_entered(node)).collect()
    }

    /// Returns the nodes on which pods of the queue are or were, some twice.
    pub(super) fn of_queue(&self, queue: QueueId) -> &[NodeId] {
        let nodes = self.by_queue.as_ref().and_then(|by_queue| by_queue.get(&queue));
        nodes.map_or(&[], Vec::as_slice)
    }
}

impl ChangedNodes {
    /// Creates logs that begin with the present state.
    pub(super) fn from_now(cluster: &Cluster, nodes: &[NodeId]) -> Self {
        let changed_nodes = ChangeReader::at_end(cluster.node_changes());
        let changed_jobs = ChangeReader::at_end(cluster.job_changes());
        let mut changed = Self { changed_nodes, changed_jobs, ..Self::default() };
        changed.follow(cluster, nodes);
        changed
    }

    /// Returns what changed since the last call with this reader. Returns `None` if the reader is
    /// new or too far behind.
    pub(super) fn read(&self, reader: &mut ChangedNodesReader) -> Option<UnreadChanges<'_>> {
        let nodes = reader.nodes.read(&self.nodes_log);
        let queues = reader.queues.read(&self.queues_log);
        Some(UnreadChanges { nodes: nodes?, queues: queues? })
    }

    /// Returns an upper bound of the node indices.
    pub(super) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Forgets which nodes have cached answers. There must be none.
    pub(super) fn forget_places(&mut self) {
        self.places = PodLocations::default();
    }

    fn push(&mut self, node: NodeId) {
        self.places.leave(node);
        self.nodes_log.push(node);
    }

    /// Logs queues for which votes about their pods may have changed.
    pub(super) fn note_queues(&mut self, cluster: &Cluster, queues: Vec<QueueId>) {
        let has_nodes = || self.places.entered.iter().any(|&is_in| is_in);
        if !queues.is_empty() && self.places.by_queue.is_none() && has_nodes() {
            self.places.list_by_queue(cluster);
        }
        queues.into_iter().for_each(|queue| self.queues_log.push(queue));
    }

    /// Reads the changes of the cluster. Returns false if the cluster's logs no longer hold all of
    /// them.
    pub(super) fn follow(&mut self, cluster: &Cluster, nodes: &[NodeId]) -> bool {
        let changed_nodes = self.changed_nodes.read(cluster.node_changes());
        let changed_jobs = self.changed_jobs.read(cluster.job_changes());
        let is_known = changed_nodes.is_some() && changed_jobs.is_some();
        changed_nodes.into_iter().flatten().for_each(|node| self.push(node));
        for job in changed_jobs.into_iter().flatten() {
            self.places.of_job(cluster, job).into_iter().for_each(|node| self.push(node));
        }
        if self.node_set.replace(cluster.node_set_revision()) != Some(cluster.node_set_revision()) {
            self.take_set(nodes);
        }
        is_known
    }

    /// Logs the nodes that came or went.
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
