//! The order in which jobs are served: queues by their current order, jobs within their queue.
//! Specification: actions.md 2.5 with A9, 4.1.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{HeadChanges, QueueHeads, Session, SessionState, WaitCause};
use vc_model::{ChangeReader, Id, JobId, QueueId, TournamentTree};

use crate::demand::needed;
use crate::waiting_jobs::WaitingJobs;

/// Jobs that wait for a turn, by queue. Only the job that is taken out changes its own sort keys, so
/// the others stay sorted, except jobs that lose pods, and except where usage of the queue orders
/// its jobs ([`WaitingJobs`]).
#[derive(Debug, Default)]
pub(crate) struct JobQueue {
    waiting: BTreeMap<QueueId, WaitingJobs>,
    /// The first waiting job of each queue, for a plugin that names the next queue.
    heads: BTreeMap<QueueId, JobId>,
    /// Queues whose waiting jobs may have changed since the last turn.
    renewed: BTreeSet<QueueId>,
    /// State of the last turn. `None` in the plain evaluator, which sorts all jobs and compares all
    /// queues at each turn.
    last_turn: Option<LastTurn>,
}

/// The state that is kept from turn to turn.
#[derive(Debug, Default)]
struct LastTurn {
    /// Number of evictions of the session that the order accounts for.
    n_evicted: usize,
    /// True if a plugin was asked for the next queue before.
    was_asked: bool,
    /// The queues with waiting jobs that have a total order key.
    tournament: TournamentTree<Option<QueueId>>,
    /// The queues with waiting jobs that have none. While there are some, all queues are compared
    /// at each turn.
    without_key: BTreeSet<QueueId>,
    /// Reads the queues in which tasks were placed or removed, for the tournament.
    moved_queues: ChangeReader<QueueId>,
    /// What the sort keys of all queues depended on.
    order_revisions: Vec<u64>,
}

impl JobQueue {
    /// Creates a job queue with `jobs`, sorted in job order within each queue.
    pub(crate) fn new(session: &SessionState<'_>, jobs: &[JobId]) -> Self {
        let last_turn = session.cache::<LastTurn>().map(|turn| LastTurn {
            n_evicted: session.evicted().len(),
            moved_queues: ChangeReader::at_end(session.plugins().moved_queues()),
            ..turn
        });
        let mut job_queue = Self { last_turn, ..Self::default() };
        job_queue.add(session, jobs.to_vec());
        job_queue
    }

    /// Returns the queue that is first in the current order, or that a plugin names (cohort.md
    /// B.5.2). It gets turns until [`JobQueue::drop_queue`].
    pub(crate) fn next_queue(&mut self, session: &SessionState<'_>) -> Option<QueueId> {
        if session.plugins().has_next_queue() {
            return self.named_queue(session);
        }
        let Self { waiting, renewed, last_turn, .. } = self;
        let by_contest = |turn: &mut LastTurn| turn.first_queue(session, waiting, renewed);
        if let Some(first) = last_turn.as_mut().and_then(by_contest) {
            return first;
        }
        let queues = waiting.keys().copied();
        queues.min_by(|&l, &r| session.plugins().queue_order(session.view(), l, r))
    }

    /// Returns the queue that a plugin names. If no job waits any more, returns the remaining
    /// queues, each once.
    fn named_queue(&mut self, session: &SessionState<'_>) -> Option<QueueId> {
        self.sort_again(session);
        for queue in &self.renewed {
            match self.waiting.get_mut(queue).and_then(|waiting| waiting.first(session)) {
                Some(job) => self.heads.insert(*queue, job),
                None => self.heads.remove(queue),
            };
        }
        let renewed: Vec<QueueId> = std::mem::take(&mut self.renewed).into_iter().collect();
        let last_turn = self.last_turn.as_mut();
        let was_asked = last_turn.map(|turn| std::mem::replace(&mut turn.was_asked, true));
        let news = match was_asked {
            None => HeadChanges::Unknown,
            Some(false) => HeadChanges::All,
            Some(true) => HeadChanges::Only(&renewed),
        };
        let wanted = |job| needed(session, job);
        let heads = QueueHeads { jobs: &self.heads, news };
        let named = session.plugins().next_queue(session.view(), &heads, &wanted);
        named.or_else(|| self.waiting.keys().next().copied())
    }

    /// Takes the first job of a queue, in an action that evicts no pods.
    pub(crate) fn next_job(&mut self, session: &SessionState<'_>, queue: QueueId) -> Option<JobId> {
        self.renewed.insert(queue);
        self.waiting.get_mut(&queue)?.pop(session)
    }

    /// Gives a queue turns even if no job waits in it.
    pub(crate) fn serve(&mut self, session: &SessionState<'_>, queue: QueueId) {
        self.renewed.insert(queue);
        self.of_queue(session, queue);
    }

    /// Takes the first job in the current order. A9: evictions change the order of waiting jobs.
    pub(crate) fn next_job_now(
        &mut self,
        session: &SessionState<'_>,
        queue: QueueId,
    ) -> Option<JobId> {
        self.sort_again(session);
        self.next_job(session, queue)
    }

    /// Sorts the waiting jobs by the current order: all of them in the plain evaluator, else only
    /// the jobs that lost pods since the last turn.
    ///
    /// Exact because:
    /// - the order reads only the two jobs, and no two jobs are equal in it, or else
    ///   [`WaitingJobs`] keeps it;
    /// - the random stories of the engine's tests compare the two.
    fn sort_again(&mut self, session: &SessionState<'_>) {
        let Some(last_turn) = &mut self.last_turn else {
            self.renewed.extend(self.waiting.keys());
            return self.waiting.values_mut().for_each(|waiting| waiting.sort(session));
        };
        let n_seen = std::mem::replace(&mut last_turn.n_evicted, session.evicted().len());
        let lost = &session.evicted()[n_seen..];
        let mut losers: BTreeMap<QueueId, BTreeSet<JobId>> = BTreeMap::new();
        for job in lost.iter().filter_map(|&task| session.tasks[task].job) {
            losers.entry(session.jobs[job].queue).or_default().insert(job);
        }
        for (queue, losers) in losers {
            let waiting = self.waiting.get_mut(&queue);
            if waiting.is_some_and(|waiting| waiting.reposition(session, &losers)) {
                self.renewed.insert(queue);
            }
        }
    }

    /// Inserts a job at its current position in the order.
    pub(crate) fn put_back(&mut self, session: &SessionState<'_>, job: JobId) {
        let queue = session.jobs[job].queue;
        self.renewed.insert(queue);
        self.of_queue(session, queue).insert(session, job);
    }

    /// Adds waiting jobs.
    pub(crate) fn add(&mut self, session: &SessionState<'_>, jobs: Vec<JobId>) {
        let mut by_queue: BTreeMap<QueueId, Vec<JobId>> = BTreeMap::new();
        for job in jobs {
            by_queue.entry(session.jobs[job].queue).or_default().push(job);
        }
        for (queue, jobs) in by_queue {
            self.renewed.insert(queue);
            self.of_queue(session, queue).extend(session, &jobs);
        }
    }

    /// Ends the turns of a queue. Returns the jobs that were waiting in it.
    pub(crate) fn drop_queue(&mut self, session: &SessionState<'_>, queue: QueueId) -> Vec<JobId> {
        self.renewed.insert(queue);
        self.waiting.remove(&queue).map(|waiting| waiting.into_jobs(session)).unwrap_or_default()
    }

    fn of_queue(&mut self, session: &SessionState<'_>, queue: QueueId) -> &mut WaitingJobs {
        let is_fast = self.last_turn.is_some();
        self.waiting.entry(queue).or_insert_with(|| WaitingJobs::new(session, is_fast))
    }
}

impl LastTurn {
    /// Returns the first queue in the current order by a tournament, in which only queues that may
    /// have moved play again (12.2 S17). Returns `None` if some queue has no total order key.
    fn first_queue(
        &mut self,
        session: &SessionState<'_>,
        waiting: &BTreeMap<QueueId, WaitingJobs>,
        renewed: &mut BTreeSet<QueueId>,
    ) -> Option<Option<QueueId>> {
        let (plugins, view) = (session.plugins(), session.view());
        for queue in self.moved_queues.read(plugins.moved_queues()).into_iter().flatten() {
            renewed.insert(queue);
            renewed.extend(plugins.queues_ordered_with(queue));
        }
        let revisions = plugins.queue_order_revisions();
        if self.order_revisions != revisions {
            self.order_revisions = revisions;
            renewed.extend(waiting.keys());
        }
        let needs_key = |queue: QueueId| self.tournament.entry(queue.index()).is_none();
        for &queue in &*renewed {
            if !waiting.contains_key(&queue) {
                self.without_key.remove(&queue);
            } else if needs_key(queue) && !plugins.has_total_order_key(view, queue) {
                self.without_key.insert(queue);
            }
        }
        if !self.without_key.is_empty() {
            // The tournament catches up once all queues have a key.
            return None;
        }
        let tournament = &mut self.tournament;
        let is_before = |later, earlier| match (later, earlier) {
            (Some(l), Some(r)) => plugins.queue_order(view, l, r).is_lt(),
            (later, None) => later.is_some(),
            (None, Some(_)) => false,
        };
        let mut entries = Vec::with_capacity(renewed.len());
        for queue in std::mem::take(renewed) {
            let entry = waiting.contains_key(&queue).then_some(queue);
            if entry.or(tournament.entry(queue.index())).is_some() {
                entries.push((queue.index(), entry));
            }
        }
        if let Some(&(last, entry)) = entries.last() {
            // The tree gets as many leaves as it needs.
            tournament.set(last, entry, is_before);
        }
        tournament.set_all(entries.into_iter(), is_before);
        Some(tournament.first())
    }
}

/// Records for the waiting jobs which job they wait for (D38). This includes jobs that an earlier
/// pass tried or skipped.
pub(crate) fn note_behind(session: &mut Session<'_>, head: JobId, behind: &[JobId]) {
    let text: Arc<str> =
        format!("waiting behind job {} of the same queue", session.jobs[head].key).into();
    for &job in behind {
        session.forget_failure(job);
        session.note_job_fit(job, WaitCause::BehindHead, text.clone());
    }
}
