//! Expected ends of the pods of a supposed run, in their order. Specification: answers.md 7 (ANS-37).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use vc_model::{Cluster, Task, TaskId, TaskStatus};

use crate::ends::{EndLookup, EndSource, ExpectedEnd, ExpectedEnds};

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
    /// The next end is the greatest. An entry of a pod that is in `added` counts only if it is that end.
    in_order: BinaryHeap<Reverse<PodEnd>>,
    /// The ends of pods that came later, or were expected anew. `None` for one that is not in the queue any more.
    added: HashMap<TaskId, Option<i64>>,
}

/// When a pod ends, the pod, and what says so.
type PodEnd = (i64, TaskId, EndSource);

impl EndQueue {
    /// Reads all rows. `leaving` are pods that terminate and are waited for, with their ends.
    pub(crate) fn new(
        cluster: &Cluster,
        ends: &ExpectedEnds,
        leaving: &BTreeMap<TaskId, i64>,
        now_micros: i64,
    ) -> Self {
        let mut lookup = EndLookup::new(cluster, ends, now_micros);
        let tasks = cluster.tasks.iter().filter(|(_, row)| row.node.is_some());
        let running = tasks.filter_map(|(task, row)| queued_end(task, lookup.end_of(row)));
        let leaving = leaving.iter().map(|(&task, &end)| (end, task, EndSource::Terminating));
        let in_order: Vec<Reverse<PodEnd>> = running.chain(leaving).map(Reverse).collect();
        Self { in_order: in_order.into(), added: HashMap::new() }
    }

    /// Adds a pod, or expects its end anew.
    pub(crate) fn add(
        &mut self,
        cluster: &Cluster,
        ends: &ExpectedEnds,
        task: TaskId,
        now_micros: i64,
    ) {
        let end = queued_end(task, ends.end_of(cluster, task, now_micros));
        self.added.insert(task, end.map(|(at_micros, ..)| at_micros));
        self.in_order.extend(end.map(Reverse));
    }

    /// Returns the time of the next end. Returns `None` if no pod is expected to end.
    pub(crate) fn next_micros(&mut self, cluster: &Cluster) -> Option<i64> {
        while let Some(&Reverse((at_micros, task, source))) = self.in_order.peek() {
            let is_held = cluster.tasks.get(task).is_some_and(|row| is_held(row, source));
            if is_held && self.added.get(&task).is_none_or(|end| *end == Some(at_micros)) {
                return Some(at_micros);
            }
            // It is gone or waits again, or another end is expected.
            self.in_order.pop();
        }
        None
    }

    /// Takes the pods that end next out of the queue. Returns `None` if no pod is expected to end.
    pub(crate) fn take_next(&mut self, cluster: &Cluster) -> Option<EndingPods> {
        let at_micros = self.next_micros(cluster)?;
        let mut ending = EndingPods { at_micros, tasks: Vec::new(), has_learned: false };
        while self.next_micros(cluster) == Some(at_micros) {
            let Some(Reverse((_, task, source))) = self.in_order.pop() else { break };
            self.added.entry(task).and_modify(|end| *end = None);
            ending.has_learned |= matches!(source, EndSource::Learned(_));
            ending.tasks.push(task);
        }
        Some(ending)
    }
}

/// True if the pod still holds its node as it did when its end was expected.
fn is_held(row: &Task, source: EndSource) -> bool {
    let is_expected = match source {
        EndSource::Terminating => row.status == TaskStatus::Releasing,
        _ => row.status.is_allocated(),
    };
    row.node.is_some() && is_expected
}

/// Returns the end of a pod as an entry of the queue. Returns `None` if it is not expected, or if the pod terminates
/// already: then it is among the leaving ones, or gone with the next cycle.
fn queued_end(task: TaskId, end: Option<ExpectedEnd>) -> Option<PodEnd> {
    let end = end.filter(|end| end.source != EndSource::Terminating)?;
    Some((end.at_micros, task, end.source))
}
