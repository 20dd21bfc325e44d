//! A copy of the cluster in which questions about one state add empty nodes, end jobs and change queues, one after
//! the other. Its sessions read only the rows that have changed since the last one. Specification: answers.md 5, 10
//! (ANS-66).
//!
//! Exact because:
//! - after each trial the copy is as it was: nodes are removed, pods get status and node back, queues their object,
//!   and debug builds compare all sums with the rows;
//! - if a pod has ended that had volumes or devices reserved, the next trial has a copy of its own;
//! - `ans_29_what_is_kept_changes_no_answer` compares with the plain evaluator, which makes a copy for the trials
//!   of each question.

use std::sync::Arc;

use vc_engine::Fork;
use vc_framework::{QueueLimit, Session};
use vc_model::{
    Cluster, ClusterEvent, JobId, NodeId, NodeRecord, Queue, QueueId, QueueRecord, TaskId,
    TaskStatus,
};

use crate::ended_jobs::pods_to_end;
use crate::nodes::NodeRefusals;
use crate::trials::{AtomSet, JobTrials};
use crate::unblock::{ClusterQuestion, needed_and_limits, shared_copy};
use crate::what_if::changes::numbered;

/// The copy, with what differs from the live state.
pub(crate) struct ChangedCopy {
    copy: Fork,
    /// The nodes that it has beside the live ones, with the numbers in their names.
    added: Vec<(u64, Arc<str>)>,
    /// The pods that have ended, as they were.
    ended: Vec<EndedPod>,
    /// False if a pod has ended that had volumes or devices reserved, which it would not get back.
    is_restorable: bool,
}

/// A pod before its end.
struct EndedPod {
    task: TaskId,
    status: TaskStatus,
    node: Option<NodeId>,
    is_evicting: bool,
    is_deleting: bool,
}

impl ChangedCopy {
    pub(crate) fn new(fork: &mut Fork) -> Self {
        let (added, ended) = (Vec::new(), Vec::new());
        Self { copy: shared_copy(fork), added, ended, is_restorable: true }
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        self.copy.cluster()
    }

    /// True if the job gets its places in the changed copy.
    pub(crate) fn is_placed(&mut self, question: &ClusterQuestion) -> bool {
        is_placed(&mut self.copy, question)
    }

    /// Adds or removes nodes like this one until `count` of them are added.
    pub(crate) fn set_added(&mut self, record: &NodeRecord, count: usize) {
        while self.added.len() < count {
            let last = self.added.last().map_or(0, |(number, _)| *number);
            self.add_node(record, last);
        }
        for (_, name) in self.added.split_off(count.min(self.added.len())) {
            self.copy.apply(ClusterEvent::NodeDeleted { name });
        }
    }

    /// Returns of each of these nodes whether an empty one like it admits the task. The copy is then as it was before.
    pub(crate) fn empty_nodes_admit(
        &mut self,
        likes: &[NodeId],
        task: TaskId,
        question: &ClusterQuestion,
    ) -> Vec<bool> {
        for &like in likes {
            let record = self.copy.cluster().node_record(like);
            self.add_node(&record, 0);
        }
        let cluster = self.copy.cluster();
        let nodes: Arc<[NodeId]> =
            self.added.iter().filter_map(|(_, name)| cluster.node(name)).collect();
        let refusals = self.copy.with_session(|session| {
            let mut trials = trials_of(session, question);
            trials.with_lifted(&AtomSet::new(), |session| NodeRefusals::on(session, task, nodes))
        });
        self.restore();
        refusals.admitting()
    }

    /// Adds an empty node like this one. Its number is larger than `last`.
    fn add_node(&mut self, like: &NodeRecord, last: u64) {
        let (number, record) = numbered(self.copy.cluster(), like, Some(last));
        self.added.push((number, record.name.clone()));
        self.copy.apply(ClusterEvent::NodeApplied(Box::new(record)));
    }

    /// True if the job gets its places once these jobs have ended. The copy is then as it was before. If
    /// their end has released volumes or devices, it is made anew from `fork`.
    pub(crate) fn is_placed_after(
        &mut self,
        fork: &mut Fork,
        jobs: &[JobId],
        question: &ClusterQuestion,
    ) -> bool {
        self.end_jobs(jobs);
        let is_placed = self.is_placed(question);
        match self.is_restorable {
            true => self.restore(),
            false => *self = Self::new(fork),
        }
        is_placed
    }

    /// True if the job gets its places while a queue has this object. The queue is then as it was before.
    pub(crate) fn is_placed_with_queue(
        &mut self,
        changed: (QueueId, QueueRecord),
        question: &ClusterQuestion,
    ) -> bool {
        self.with_queue(changed, |copy| is_placed(copy, question))
    }

    /// Tries the job while a queue has this object. Returns the row of the queue meanwhile, and the limits that the job
    /// exceeds. Returns `None` if it gets its places. The queue is then as it was before.
    pub(crate) fn limits_with_queue(
        &mut self,
        (queue, record): (QueueId, QueueRecord),
        question: &ClusterQuestion,
    ) -> Option<(Queue, Vec<QueueLimit>)> {
        self.with_queue((queue, record), |copy| {
            let limits = copy.with_session(|session| {
                let mut trials = trials_of(session, question);
                let base = trials.run(&AtomSet::new());
                (!base.succeeds()).then(|| needed_and_limits(&mut trials, &base).1)
            });
            Some((copy.cluster().queues[queue].clone(), limits?))
        })
    }

    fn with_queue<T>(
        &mut self,
        (queue, record): (QueueId, QueueRecord),
        ask: impl FnOnce(&mut Fork) -> T,
    ) -> T {
        let before = self.copy.cluster().queue_record(queue);
        self.copy.apply(ClusterEvent::QueueApplied(Box::new(record)));
        let answer = ask(&mut self.copy);
        self.copy.apply(ClusterEvent::QueueApplied(Box::new(before)));
        answer
    }

    /// Ends the pods of jobs that have nodes, successfully.
    fn end_jobs(&mut self, jobs: &[JobId]) {
        let cluster = self.copy.cluster_mut();
        for task in jobs.iter().flat_map(|&job| pods_to_end(cluster, job)).collect::<Vec<_>>() {
            let row = &cluster.tasks[task];
            let volumes = &cluster.volumes;
            self.is_restorable &= volumes.reservation(task).is_none() && !volumes.is_held(task);
            self.ended.push(EndedPod {
                task,
                status: row.status,
                node: row.node,
                is_evicting: row.evicting,
                is_deleting: row.deleting,
            });
            cluster.end_pod(task);
        }
    }

    /// Reverts all changes. Rows of nodes that were removed are used again.
    pub(crate) fn restore(&mut self) {
        for (_, name) in std::mem::take(&mut self.added) {
            self.copy.apply(ClusterEvent::NodeDeleted { name });
        }
        if self.ended.is_empty() {
            return self.copy.cluster_mut().recycle();
        }
        let cluster = self.copy.cluster_mut();
        for pod in self.ended.drain(..).rev() {
            let row = &mut cluster.tasks[pod.task];
            // Before it is counted: a pod that is being deleted counts for no spread constraint.
            (row.evicting, row.deleting) = (pod.is_evicting, pod.is_deleting);
            cluster.set_task(pod.task, pod.status, pod.node);
        }
        cluster.recycle();
        debug_assert_eq!(cluster.check(), Ok(()));
    }
}

/// True if the job gets its places in the changed copy.
pub(crate) fn is_placed(copy: &mut Fork, question: &ClusterQuestion) -> bool {
    copy.with_session(|session| trials_of(session, question).run(&AtomSet::new()).succeeds())
}

/// Returns the trials of the job in a session of the changed copy.
fn trials_of<'s, 'c>(
    session: &'s mut Session<'c>,
    question: &ClusterQuestion,
) -> JobTrials<'s, 'c> {
    JobTrials::new(session, question.job, question.held.clone()).stoppable(&question.stop)
}
