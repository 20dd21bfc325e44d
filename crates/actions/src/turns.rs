//! Whose turn it is: queues by the order of the moment, jobs within their queue. Specification:
//! actions.md 2.5 with A9, 4.1.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{Heads, News, Session, WaitCause};
use vc_model::{ChangeReader, Id, JobId, QueueId, TournamentTree};

use crate::demand::needed;

/// Jobs that wait for a turn, by queue, the first one last. Only the job that is taken out changes
/// its own keys, so the order of the others stays true while they wait, but for those that lose
/// pods.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    lines: BTreeMap<QueueId, Vec<JobId>>,
    /// Evictions of the session that the lines account for.
    n_seen: usize,
    /// The first job of each line, for a plugin that names the next queue.
    heads: BTreeMap<QueueId, JobId>,
    /// Queues whose line may be another one since the last turn.
    renewed: BTreeSet<QueueId>,
    was_asked: bool,
    /// The queues with a line, while each stands by itself in the order.
    contest: TournamentTree<Option<QueueId>>,
    /// Reads in which queues tasks were placed or removed, for the contest.
    moved_queues: ChangeReader<QueueId>,
    /// Some queue does not stand by itself: all are compared each time.
    by_pairs: bool,
}

impl Turns {
    /// A line per queue of `jobs`, each in job order.
    pub(crate) fn new(session: &Session<'_>, jobs: &[JobId]) -> Self {
        let n_seen = session.evicted().len();
        let moved_queues = ChangeReader::at_end(session.hooks().moved_queues());
        let mut turns = Self { n_seen, moved_queues, ..Self::default() };
        for &job in jobs {
            turns.lines.entry(session.jobs[job].queue).or_default().push(job);
        }
        for line in turns.lines.values_mut() {
            line.sort_by(|&l, &r| session.hooks().job_order(session.ask(), r, l));
        }
        turns.renewed = turns.lines.keys().copied().collect();
        turns
    }

    /// The queue that is first under the current order, or that a plugin names (cohort.md B.5.2); it
    /// stays until [`Turns::drop_queue`].
    pub(crate) fn next_queue(&mut self, session: &Session<'_>) -> Option<QueueId> {
        if session.hooks().has_next_queue() {
            return self.named_queue(session);
        }
        if session.is_fast() && self.renew_contest(session) {
            return self.contest.first();
        }
        let queues = self.lines.keys().copied();
        queues.min_by(|&l, &r| session.hooks().queue_order(session.ask(), l, r))
    }

    /// Lets the queues that may stand elsewhere play again. False: not all of them stand by
    /// themselves, or did not once.
    fn renew_contest(&mut self, session: &Session<'_>) -> bool {
        if self.by_pairs {
            return false;
        }
        let (hooks, ask) = (session.hooks(), session.ask());
        let moved = self.moved_queues.read(hooks.moved_queues());
        self.renewed.extend(moved.into_iter().flatten());
        let contest = &mut self.contest;
        for queue in std::mem::take(&mut self.renewed) {
            let waits = self.lines.contains_key(&queue);
            let entry = waits.then_some(queue);
            let joins = entry.is_some() && contest.entry(queue.index()).is_none();
            if joins && !hooks.stands_alone(ask, queue) {
                self.by_pairs = true;
                return false;
            }
            contest.set(queue.index(), entry, |later, earlier| match (later, earlier) {
                (Some(l), Some(r)) => hooks.queue_order(ask, l, r).is_lt(),
                (later, None) => later.is_some(),
                (None, Some(_)) => false,
            });
        }
        true
    }

    /// The one that a plugin names; when nobody waits any more the others, each once.
    fn named_queue(&mut self, session: &Session<'_>) -> Option<QueueId> {
        match session.is_fast() {
            true => self.move_losers(session),
            false => self.sort_again(session),
        }
        for queue in &self.renewed {
            match self.lines.get(queue).and_then(|line| line.last()) {
                Some(&job) => self.heads.insert(*queue, job),
                None => self.heads.remove(queue),
            };
        }
        let renewed: Vec<QueueId> = std::mem::take(&mut self.renewed).into_iter().collect();
        let was_asked = std::mem::replace(&mut self.was_asked, true);
        let news = match (session.is_fast(), was_asked) {
            (false, _) => News::Unknown,
            (true, false) => News::All,
            (true, true) => News::Only(&renewed),
        };
        let wanted = |job| needed(session, job);
        let heads = Heads { jobs: &self.heads, news };
        let named = session.hooks().next_queue(session.ask(), &heads, &wanted);
        named.or_else(|| self.lines.keys().next().copied())
    }

    /// Takes the first job of a queue.
    pub(crate) fn next_job(&mut self, queue: QueueId) -> Option<JobId> {
        self.renewed.insert(queue);
        self.lines.get_mut(&queue)?.pop()
    }

    /// A queue gets its turns even if no job waits in it.
    pub(crate) fn serve(&mut self, queue: QueueId) {
        self.renewed.insert(queue);
        self.lines.entry(queue).or_default();
    }

    /// Takes the job that is first now: evictions change the order of jobs that wait (A9).
    pub(crate) fn next_job_now(&mut self, session: &Session<'_>, queue: QueueId) -> Option<JobId> {
        if session.is_fast() {
            self.move_losers(session);
            return self.next_job(queue);
        }
        self.renewed.insert(queue);
        let line = self.lines.get_mut(&queue)?;
        let order =
            |&l: &usize, &r: &usize| session.hooks().job_order(session.ask(), line[l], line[r]);
        let first = (0..line.len()).min_by(order)?;
        Some(line.remove(first))
    }

    /// The same for what is first now, by looking at all.
    fn sort_again(&mut self, session: &Session<'_>) {
        if self.n_seen == session.evicted().len() {
            return;
        }
        self.n_seen = session.evicted().len();
        self.renewed.extend(self.lines.keys());
        for line in self.lines.values_mut() {
            line.sort_by(|&l, &r| session.hooks().job_order(session.ask(), r, l));
        }
    }

    /// Moves the jobs that lost pods since the last time to where they belong now. Exact, because
    /// the order reads the two jobs alone, and no two jobs are equal in it; the worlds of the
    /// engine's tests compare it with looking at all.
    fn move_losers(&mut self, session: &Session<'_>) {
        let lost = &session.evicted()[self.n_seen..];
        self.n_seen = session.evicted().len();
        let losers: BTreeSet<JobId> =
            lost.iter().filter_map(|&task| session.tasks[task].job).collect();
        if losers.is_empty() {
            return;
        }
        // First out with all of them: between jobs that are out of order no place can be found.
        for (&queue, line) in &mut self.lines {
            let moved: Vec<JobId> =
                line.iter().copied().filter(|job| losers.contains(job)).collect();
            if moved.is_empty() {
                continue;
            }
            self.renewed.insert(queue);
            line.retain(|job| !losers.contains(job));
            for job in moved {
                insert(session, line, job);
            }
        }
    }

    /// Puts a job back where it belongs now.
    pub(crate) fn put_back(&mut self, session: &Session<'_>, job: JobId) {
        let queue = session.jobs[job].queue;
        self.renewed.insert(queue);
        insert(session, self.lines.entry(queue).or_default(), job);
    }

    /// Further jobs wait.
    pub(crate) fn add(&mut self, session: &Session<'_>, jobs: Vec<JobId>) {
        let mut joined = BTreeSet::new();
        for job in jobs {
            let queue = session.jobs[job].queue;
            self.lines.entry(queue).or_default().push(job);
            joined.insert(queue);
        }
        for (_, line) in self.lines.iter_mut().filter(|(queue, _)| joined.contains(queue)) {
            line.sort_by(|&l, &r| session.hooks().job_order(session.ask(), r, l));
        }
        self.renewed.extend(joined);
    }

    /// The queue gets no further turn; the jobs that were waiting in it.
    pub(crate) fn drop_queue(&mut self, queue: QueueId) -> Vec<JobId> {
        self.renewed.insert(queue);
        self.lines.remove(&queue).unwrap_or_default()
    }
}

/// The jobs that were waiting in a queue are told whom they wait for (D38), also those that an earlier
/// pass of the cycle has tried, or left out because they would fail as before.
pub(crate) fn note_behind(session: &mut Session<'_>, head: JobId, behind: &[JobId]) {
    let text: Arc<str> =
        format!("waiting behind job {} of the same queue", session.jobs[head].key).into();
    for &job in behind {
        session.forget_failure(job);
        session.note_job_fit(job, WaitCause::BehindHead, text.clone());
    }
}

/// Where it belongs in a line in order.
fn insert(session: &Session<'_>, line: &mut Vec<JobId>, job: JobId) {
    let place =
        line.partition_point(|&other| session.hooks().job_order(session.ask(), other, job).is_gt());
    line.insert(place, job);
}
