//! Ranking of the queue heads that an action passes; it selects the next queue.
//! Specification: cohort.md B.5.2, B.11.

use std::collections::BTreeMap;

use vc_cohort::{HeadRanking, QueueHead, QuotaNode};
use vc_framework::{HeadChanges, QueueHeads, SessionView};
use vc_model::{JobId, QueueId, TaskId};

use super::enqueue;
use super::quota_ledger::QuotaLedger;

/// Input of the selection of the next queue.
pub(super) struct NextQueueQuery<'a> {
    pub(super) quota_ledger: &'a mut QuotaLedger,
    pub(super) view: SessionView<'a>,
    /// Returns the tasks that would complete a job.
    pub(super) wanted: &'a dyn Fn(JobId) -> Vec<TaskId>,
    pub(super) is_fair: bool,
}

/// The first waiting job of each queue, with their ranking.
#[derive(Debug, Default)]
pub(super) struct QueueRanking {
    heads: BTreeMap<QueueId, QueueHead>,
    /// The cached ranking. `None` if it must be rebuilt.
    ranking: Option<HeadRanking>,
}

impl QueueRanking {
    /// Returns the head of a queue. If no head is known, it returns one that comes last.
    pub(super) fn head(&self, queue: QueueId, node: QuotaNode) -> QueueHead {
        let nobody = || QueueHead {
            queue: node,
            priority: 0,
            created_micros: i64::MAX,
            demand: Default::default(),
        };
        self.heads.get(&queue).cloned().unwrap_or_else(nobody)
    }

    /// Returns the queue that is served next. Jobs of queues without a role come last and are
    /// refused later.
    pub(super) fn next(
        &mut self,
        query: &mut NextQueueQuery<'_>,
        heads: &QueueHeads<'_>,
    ) -> Option<QueueId> {
        if heads.news == HeadChanges::All {
            self.ranking = None;
        }
        let (&any, job) = heads.jobs.first_key_value()?;
        // Enqueue sees a state of its own (section B.5.1).
        match query.view.cluster.jobs[*job].is_pending() {
            true => query.quota_ledger.enter_ledger(query.view),
            false => query.quota_ledger.leave_ledger(),
        }
        let next = match heads.news {
            HeadChanges::Unknown => self.by_rule(query, heads),
            HeadChanges::Only(queues) if self.ranking.is_some() => {
                self.renew(query, heads, queues);
                self.by_memory(query)
            }
            HeadChanges::All | HeadChanges::Only(_) => {
                self.start(query, heads);
                self.by_memory(query)
            }
        };
        next.or(Some(any))
    }

    /// Selects the next queue from all heads without the cached ranking.
    fn by_rule(
        &mut self,
        query: &mut NextQueueQuery<'_>,
        heads: &QueueHeads<'_>,
    ) -> Option<QueueId> {
        let head = |(&queue, &job): (&QueueId, &JobId)| Some((queue, query.head(queue, job)?));
        self.heads = heads.jobs.iter().filter_map(head).collect();
        let all: Vec<QueueHead> = self.heads.values().cloned().collect();
        let first = query.quota_ledger.groups().next_head(&all, query.is_fair)?;
        query.quota_ledger.queue(all[first].queue)
    }

    fn by_memory(&mut self, query: &mut NextQueueQuery<'_>) -> Option<QueueId> {
        let first = self.ranking.as_mut()?.next(query.quota_ledger.groups())?;
        query.quota_ledger.queue(first)
    }

    fn start(&mut self, query: &mut NextQueueQuery<'_>, heads: &QueueHeads<'_>) {
        self.heads.clear();
        self.ranking = Some(HeadRanking::new(query.quota_ledger.groups(), query.is_fair));
        query.quota_ledger.take_touched();
        for &queue in heads.jobs.keys() {
            self.put(query, heads, queue);
        }
    }

    fn renew(
        &mut self,
        query: &mut NextQueueQuery<'_>,
        heads: &QueueHeads<'_>,
        queues: &[QueueId],
    ) {
        for &queue in queues {
            self.put(query, heads, queue);
        }
        for job in query.quota_ledger.take_touched() {
            let queue = query.view.cluster.jobs[job].queue;
            if heads.jobs.get(&queue) == Some(&job) {
                self.put(query, heads, queue);
            }
        }
    }

    /// Updates the ranking with the current head of the queue.
    fn put(&mut self, query: &mut NextQueueQuery<'_>, heads: &QueueHeads<'_>, queue: QueueId) {
        let Some(ranking) = &mut self.ranking else { return };
        let Some(node) = query.quota_ledger.leaf(queue) else { return };
        match heads.jobs.get(&queue).and_then(|&job| query.head(queue, job)) {
            Some(head) => {
                self.heads.insert(queue, head.clone());
                ranking.enter(head);
            }
            None => {
                self.heads.remove(&queue);
                ranking.leave(node);
            }
        }
    }
}

impl NextQueueQuery<'_> {
    /// Returns the head of a queue. Returns `None` if the queue takes no part.
    fn head(&self, queue: QueueId, job: JobId) -> Option<QueueHead> {
        let (quota_ledger, row) = (&*self.quota_ledger, &self.view.cluster.jobs[job]);
        let demand = match row.is_pending() {
            true => enqueue::demand(quota_ledger, row),
            false => quota_ledger.demand_of(self.view.cluster, &(self.wanted)(job)),
        };
        let created_micros = row.pod_group.as_ref().map_or(0, |group| group.created_micros);
        Some(QueueHead {
            queue: quota_ledger.leaf(queue)?,
            priority: row.priority,
            created_micros,
            demand,
        })
    }
}
