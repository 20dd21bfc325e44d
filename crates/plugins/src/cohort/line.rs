//! The heads of the queues as an action names them, and whose turn it is. Specification: cohort.md
//! B.5.2, B.11.

use std::collections::BTreeMap;

use vc_cohort::{Head, QuotaNode, Ranking};
use vc_framework::{Ask, Heads, News};
use vc_model::{JobId, QueueId, TaskId};

use super::book::Book;
use super::enqueue;

/// A question for the next queue.
pub(super) struct Asked<'a> {
    pub(super) book: &'a mut Book,
    pub(super) ask: Ask<'a>,
    /// The tasks that would complete a job.
    pub(super) wanted: &'a dyn Fn(JobId) -> Vec<TaskId>,
    pub(super) is_fair: bool,
}

/// Who is first in each queue.
#[derive(Debug, Default)]
pub(super) struct Line {
    heads: BTreeMap<QueueId, Head>,
    /// `None`: nothing is remembered.
    ranking: Option<Ranking>,
}

impl Line {
    /// The head of a queue; one that comes last if nobody is known to wait there.
    pub(super) fn head(&self, queue: QueueId, node: QuotaNode) -> Head {
        let nobody = || Head {
            queue: node,
            priority: 0,
            created_micros: i64::MAX,
            demand: Default::default(),
        };
        self.heads.get(&queue).cloned().unwrap_or_else(nobody)
    }

    /// The queue that is served next. Jobs of queues that take no part come last, and are refused
    /// when their turn comes.
    pub(super) fn next(&mut self, asked: &mut Asked<'_>, heads: &Heads<'_>) -> Option<QueueId> {
        if heads.news == News::All {
            self.ranking = None;
        }
        let (&any, job) = heads.jobs.first_key_value()?;
        // Enqueue has its own state (B.5.1).
        match asked.ask.cluster.jobs[*job].is_pending() {
            true => asked.book.enter_ledger(asked.ask),
            false => asked.book.leave_ledger(),
        }
        let next = match heads.news {
            News::Unknown => self.by_rule(asked, heads),
            News::Only(queues) if self.ranking.is_some() => {
                self.renew(asked, heads, queues);
                self.by_memory(asked)
            }
            News::All | News::Only(_) => {
                self.start(asked, heads);
                self.by_memory(asked)
            }
        };
        next.or(Some(any))
    }

    /// Of all heads as they are, by the rule itself.
    fn by_rule(&mut self, asked: &mut Asked<'_>, heads: &Heads<'_>) -> Option<QueueId> {
        let head = |(&queue, &job): (&QueueId, &JobId)| Some((queue, asked.head(queue, job)?));
        self.heads = heads.jobs.iter().filter_map(head).collect();
        let all: Vec<Head> = self.heads.values().cloned().collect();
        let first = asked.book.groups().next_head(&all, asked.is_fair)?;
        asked.book.queue(all[first].queue)
    }

    fn by_memory(&mut self, asked: &mut Asked<'_>) -> Option<QueueId> {
        let first = self.ranking.as_mut()?.next(asked.book.groups())?;
        asked.book.queue(first)
    }

    fn start(&mut self, asked: &mut Asked<'_>, heads: &Heads<'_>) {
        self.heads.clear();
        self.ranking = Some(Ranking::new(asked.book.groups(), asked.is_fair));
        asked.book.take_touched();
        for &queue in heads.jobs.keys() {
            self.put(asked, heads, queue);
        }
    }

    fn renew(&mut self, asked: &mut Asked<'_>, heads: &Heads<'_>, queues: &[QueueId]) {
        for &queue in queues {
            self.put(asked, heads, queue);
        }
        for job in asked.book.take_touched() {
            let queue = asked.ask.cluster.jobs[job].queue;
            if heads.jobs.get(&queue) == Some(&job) {
                self.put(asked, heads, queue);
            }
        }
    }

    /// The head of the queue as it is now.
    fn put(&mut self, asked: &mut Asked<'_>, heads: &Heads<'_>, queue: QueueId) {
        let Some(ranking) = &mut self.ranking else { return };
        let Some(node) = asked.book.leaf(queue) else { return };
        match heads.jobs.get(&queue).and_then(|&job| asked.head(queue, job)) {
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

impl Asked<'_> {
    /// `None`: the queue takes no part.
    fn head(&self, queue: QueueId, job: JobId) -> Option<Head> {
        let (book, row) = (&*self.book, &self.ask.cluster.jobs[job]);
        let demand = match row.is_pending() {
            true => enqueue::demand(book, row),
            false => book.demand_of(self.ask.cluster, &(self.wanted)(job)),
        };
        let created_micros = row.pod_group.as_ref().map_or(0, |group| group.created_micros);
        Some(Head { queue: book.leaf(queue)?, priority: row.priority, created_micros, demand })
    }
}
