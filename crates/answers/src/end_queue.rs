//! Expected ends of the pods of a supposed run, in their order. Specification: answers.md 7 (ANS-37).

use std::collections::{BTreeMap, BTreeSet};

use vc_model::{Cluster, TaskId};

use crate::ends::{EndSource, ExpectedEnds};

/// Pods that end at the same time.
pub(crate) struct EndingPods {
    /// Microseconds since 1970.
    pub(crate) at_micros: i64,
    pub(crate) tasks: Vec<TaskId>,
    /// True if the end of one of them is learned.
    pub(crate) has_learned: bool,
}

/// The ends, as they were expected when the queue was made or the pod started. One that passes while
/// cycles run is not put off: it is due at once.
#[derive(Default)]
pub(crate) struct EndQueue {
    in_order: BTreeSet<(i64, TaskId)>,
    /// When each pod ends, and whether that is learned.
    known: BTreeMap<TaskId, (i64, bool)>,
}

impl EndQueue {
    /// Reads all rows.
    pub(crate) fn new(cluster: &Cluster, ends: &ExpectedEnds, now_micros: i64) -> Self {
        let mut queue = Self::default();
        for (task, row) in cluster.tasks.iter() {
            if row.node.is_some() {
                queue.add(cluster, ends, task, now_micros);
            }
        }
        queue
    }

    /// Adds a pod, or expects its end anew.
    pub(crate) fn add(
        &mut self,
        cluster: &Cluster,
        ends: &ExpectedEnds,
        task: TaskId,
        now_micros: i64,
    ) {
        if let Some((before, _)) = self.known.remove(&task) {
            self.in_order.remove(&(before, task));
        }
        let end = ends.end_of(cluster, task, now_micros);
        // What terminates already is gone with the next cycle.
        let Some(end) = end.filter(|end| end.source != EndSource::Terminating) else { return };
        let is_learned = matches!(end.source, EndSource::Learned(_));
        self.known.insert(task, (end.at_micros, is_learned));
        self.in_order.insert((end.at_micros, task));
    }

    /// Returns the time of the next end. Returns `None` if no pod is expected to end.
    pub(crate) fn next_micros(&mut self, cluster: &Cluster) -> Option<i64> {
        while let Some(&(at_micros, task)) = self.in_order.first() {
            let row = cluster.tasks.get(task);
            if row.is_some_and(|row| row.node.is_some() && row.status.is_allocated()) {
                return Some(at_micros);
            }
            // It is gone, or waits again.
            self.in_order.pop_first();
            self.known.remove(&task);
        }
        None
    }

    /// Takes the pods that end next out of the queue. Returns `None` if no pod is expected to end.
    pub(crate) fn take_next(&mut self, cluster: &Cluster) -> Option<EndingPods> {
        let at_micros = self.next_micros(cluster)?;
        let mut ending = EndingPods { at_micros, tasks: Vec::new(), has_learned: false };
        while self.next_micros(cluster) == Some(at_micros) {
            let Some((_, task)) = self.in_order.pop_first() else { break };
            let known = self.known.remove(&task);
            ending.has_learned |= known.is_some_and(|(_, is_learned)| is_learned);
            ending.tasks.push(task);
        }
        Some(ending)
    }
}
