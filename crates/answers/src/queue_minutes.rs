//! Queues at the beginning of each minute: jobs that wait and that hold nodes, what they hold, and what the
//! queue deserves. Specification: answers.md 8 (ANS-45).

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_engine::{QueueUse, Report};
use vc_model::{Cluster, QueueId, TaskStatus};
use vc_resource::{Dims, NameKind, Quantity, Resource, stored_kind};

/// A queue at the beginning of a minute. Amounts that are still those of the minute before share its memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueueMinute {
    /// Microseconds since 1970.
    pub(crate) at_micros: i64,
    /// Name of the queue.
    pub(crate) queue: Arc<str>,
    /// Jobs that waited.
    pub(crate) waiting: u32,
    /// Jobs that held nodes.
    pub(crate) running: u32,
    /// What its own jobs held.
    pub(crate) allocated: Arc<Resource>,
    /// What it deserved. Empty if nothing said so.
    pub(crate) deserved: Arc<Resource>,
}

// ANS-45: an entry is at most 64 bytes.
const _: () = assert!(size_of::<QueueMinute>() <= 64);

/// What the queues held and deserved in the last minute, for the entries of the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastQueueAmounts(BTreeMap<Arc<str>, QueueAmountPair>);

/// What a queue held, and what it deserved.
#[derive(Clone, Debug)]
struct QueueAmountPair {
    allocated: Arc<Resource>,
    deserved: Arc<Resource>,
}

/// Sums over the jobs of a queue.
#[derive(Default)]
struct QueueJobs {
    waiting: u32,
    running: u32,
    allocated: Resource,
}

impl LastQueueAmounts {
    /// Returns an entry for each queue that has jobs. `report` is that of the cycle at this time.
    pub(crate) fn entries(
        &mut self,
        cluster: &Cluster,
        report: &Report,
        at_micros: i64,
    ) -> Vec<QueueMinute> {
        let uses = report.queues.iter().map(|it| (&*it.queue, it));
        let uses: BTreeMap<&str, &QueueUse> = uses.collect();
        let before = std::mem::take(&mut self.0);
        let mut entries = Vec::new();
        for (id, QueueJobs { waiting, running, allocated }) in jobs_by_queue(cluster) {
            let queue = cluster.queues[id].name.clone();
            let last = before.get(&queue);
            let deserved = deserved(cluster, id, uses.get(&*queue).copied());
            let allocated = shared(allocated, last.map(|last| &last.allocated));
            let deserved = shared(deserved, last.map(|last| &last.deserved));
            let pair = QueueAmountPair { allocated: allocated.clone(), deserved: deserved.clone() };
            self.0.insert(queue.clone(), pair);
            entries.push(QueueMinute { at_micros, queue, waiting, running, allocated, deserved });
        }
        entries
    }
}

fn jobs_by_queue(cluster: &Cluster) -> BTreeMap<QueueId, QueueJobs> {
    let mut by_queue: BTreeMap<QueueId, QueueJobs> = BTreeMap::new();
    for job in cluster.jobs_by_key() {
        let row = &cluster.jobs[job];
        let jobs = by_queue.entry(row.queue).or_default();
        jobs.waiting += u32::from(0 < row.counts.of(TaskStatus::Pending));
        jobs.running += u32::from(0 < row.counts.allocated());
        jobs.allocated.add(&row.allocated);
    }
    by_queue
}

/// Returns the amounts, in the memory of the last ones if they are the same.
fn shared(amounts: Resource, last: Option<&Arc<Resource>>) -> Arc<Resource> {
    match last.filter(|last| ***last == amounts) {
        Some(last) => last.clone(),
        None => Arc::new(amounts),
    }
}

/// Returns what a queue deserves: by the plugin that divides the cluster between queues, else as the queue
/// itself states it.
fn deserved(cluster: &Cluster, queue: QueueId, used: Option<&QueueUse>) -> Resource {
    match used.and_then(|used| used.deserved.as_ref()) {
        Some(texts) => amounts_of(texts, &cluster.dims),
        None => cluster.queues[queue].deserved.clone(),
    }
}

/// Returns the amounts of names and quantities, as [`Resource::to_quantities`] writes them.
fn amounts_of(texts: &[(String, String)], dims: &Dims) -> Resource {
    let mut amounts = Resource::default();
    for (name, text) in texts {
        let Some((dim, quantity)) = dims.get(name).zip(text.parse::<Quantity>().ok()) else {
            continue;
        };
        let amount = match stored_kind(name) {
            NameKind::Memory | NameKind::Pods | NameKind::Count => quantity.value(),
            NameKind::Cpu | NameKind::Milli | NameKind::Dropped => quantity.milli(),
        };
        amounts.set(dim, amount);
    }
    amounts
}

#[cfg(test)]
mod tests {
    use vc_model::fixture::cluster;

    use super::*;

    #[test]
    fn ans_45_amounts_come_back_from_their_texts() {
        let cluster = cluster("node n cpu=2500m memory=3 gpu=8 pods=110 ephemeral-storage=10Gi");
        let (_, node) = cluster.nodes.iter().next().unwrap();
        let texts = node.allocatable.to_quantities(&cluster.dims);
        assert!(5 <= texts.len(), "{texts:?}");
        assert_eq!(amounts_of(&texts, &cluster.dims), node.allocatable);
        let unknown = [("example.com/none".to_owned(), "1".to_owned())];
        assert_eq!(amounts_of(&unknown, &cluster.dims), Resource::default());
    }

    #[test]
    fn ans_45_amounts_that_stay_are_kept_once() {
        let cluster = cluster("queue q deserved.cpu=3\njob x queue=q\n task a cpu=1");
        let mut last = LastQueueAmounts::default();
        let [first, second] =
            [1, 2].map(|at| last.entries(&cluster, &Report::default(), at).remove(0));
        assert_eq!((&*first.queue, first.waiting, second.at_micros), ("q", 1, 2));
        assert!(Arc::ptr_eq(&first.deserved, &second.deserved));
        assert!(Arc::ptr_eq(&first.allocated, &second.allocated));
    }
}
