//! The fields of rows that a question about a copy changes for a while, compared in debug builds before and after the
//! question. Specification: answers.md 1 (ANS-2).

use vc_model::{ClassId, Cluster, Counts, Gates, NodeId, PodGroupPhase, QueueState, TaskStatus};
use vc_resource::Resource;

/// Number of nodes and pods up to which rows are compared. With more it would take longer than many questions.
const MOST_ROWS: usize = 500;

/// What trials change in the rows of a cluster and restore, in the order of the ids.
#[derive(PartialEq)]
pub(crate) struct ChangeableRows {
    tasks: Vec<(TaskStatus, Option<NodeId>, ClassId, Gates)>,
    nodes: Vec<NodeFields>,
    jobs: Vec<JobFields>,
    queues: Vec<QueueState>,
}

#[derive(PartialEq)]
struct NodeFields {
    n_tasks: usize,
    /// Used, releasing, pipelined and idle amounts.
    amounts: [Resource; 4],
}

#[derive(PartialEq)]
struct JobFields {
    counts: Counts,
    min_available: i32,
    phase: PodGroupPhase,
    allocated: Resource,
}

impl ChangeableRows {
    /// Returns the rows of a small cluster in debug builds. Returns `None` in release builds, and for a large cluster.
    pub(crate) fn of_small(cluster: &Cluster) -> Option<Self> {
        let is_small = cluster.nodes.len() + cluster.tasks.len() <= MOST_ROWS;
        (cfg!(debug_assertions) && is_small).then(|| Self::of(cluster))
    }

    pub(crate) fn of(cluster: &Cluster) -> Self {
        let tasks = cluster.tasks.iter();
        let nodes = cluster.nodes.iter().map(|(_, row)| NodeFields {
            n_tasks: row.tasks.len(),
            amounts: [&row.used, &row.releasing, &row.pipelined, &row.idle].map(without_zeros),
        });
        let jobs = cluster.jobs.iter().map(|(_, row)| JobFields {
            counts: row.counts.clone(),
            min_available: row.min_available,
            phase: row.phase(),
            allocated: without_zeros(&row.allocated),
        });
        Self {
            tasks: tasks.map(|(_, row)| (row.status, row.node, row.class, row.gates)).collect(),
            nodes: nodes.collect(),
            jobs: jobs.collect(),
            queues: cluster.queues.iter().map(|(_, row)| row.state.clone()).collect(),
        }
    }

    /// Returns the name of the first table whose rows differ. Returns `None` if none do.
    pub(crate) fn differing_table(&self, other: &Self) -> Option<&'static str> {
        let tables = [
            ("tasks", self.tasks == other.tasks),
            ("nodes", self.nodes == other.nodes),
            ("jobs", self.jobs == other.jobs),
            ("queues", self.queues == other.queues),
        ];
        tables.into_iter().find(|(_, is_same)| !is_same).map(|(name, _)| name)
    }
}

/// Returns the amounts without the zeros that additions leave once they are undone.
fn without_zeros(amounts: &Resource) -> Resource {
    amounts.clone().without_zero_scalars()
}

#[cfg(test)]
mod tests {
    use vc_model::fixture::{cluster, node, task};

    use super::*;

    #[test]
    fn ans_02_a_change_of_a_row_is_seen_until_it_is_undone() {
        let mut cluster = cluster("node n cpu=4 gpu=1\njob j\n task a cpu=1 gpu=1");
        let before = ChangeableRows::of(&cluster);
        let (pod, place) = (task(&cluster, "j/a"), node(&cluster, "n"));
        cluster.set_task(pod, TaskStatus::Pipelined, Some(place));
        assert_eq!(before.differing_table(&ChangeableRows::of(&cluster)), Some("tasks"));
        cluster.set_task(pod, TaskStatus::Pending, None);
        assert_eq!(before.differing_table(&ChangeableRows::of(&cluster)), None);
        let queue = cluster.jobs[cluster.tasks[pod].job.expect("it has one")].queue;
        cluster.queues[queue].state = QueueState::Closed;
        assert_eq!(before.differing_table(&ChangeableRows::of(&cluster)), Some("queues"));
    }
}
