//! Whose turn it is: queues by the order of the moment, jobs within their queue. Specification: actions.md
//! 2.5 with A9, 4.1.

use vc_framework::Session;
use vc_model::{JobId, QueueId};

/// Jobs that wait for a turn, by queue.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    queues: Vec<Line>,
}

/// The waiting jobs of one queue, the first one last. Only the job that is taken out changes its own keys, so
/// the order of the others stays true while they wait.
#[derive(Debug)]
struct Line {
    queue: QueueId,
    jobs: Vec<JobId>,
}

impl Turns {
    /// A line per queue of `jobs`, each in job order.
    pub(crate) fn new(session: &Session<'_>, jobs: &[JobId]) -> Self {
        let mut turns = Self::default();
        for &job in jobs {
            let queue = session.jobs[job].queue;
            turns.serve(queue);
            if let Some(line) = turns.line(queue) {
                line.jobs.push(job);
            }
        }
        for line in &mut turns.queues {
            line.jobs.sort_by(|&l, &r| session.hooks().job_order(session.ask(), r, l));
        }
        turns
    }

    /// Opens an empty line for a queue that has none.
    pub(crate) fn serve(&mut self, queue: QueueId) {
        if self.line(queue).is_none() {
            self.queues.push(Line { queue, jobs: Vec::new() });
        }
    }

    /// The queue that is first under the current order; it stays until [`Turns::drop_queue`].
    pub(crate) fn next_queue(&self, session: &Session<'_>) -> Option<QueueId> {
        let queues = self.queues.iter().map(|line| line.queue);
        queues.min_by(|&l, &r| session.hooks().queue_order(session.ask(), l, r))
    }

    /// Takes the first job of a queue.
    pub(crate) fn next_job(&mut self, queue: QueueId) -> Option<JobId> {
        self.line(queue)?.jobs.pop()
    }

    /// Puts a job back where it belongs now.
    pub(crate) fn put_back(&mut self, session: &Session<'_>, job: JobId) {
        let queue = session.jobs[job].queue;
        self.serve(queue);
        let Some(line) = self.line(queue) else { return };
        let place = line.jobs.partition_point(|&other| {
            session.hooks().job_order(session.ask(), other, job).is_gt()
        });
        line.jobs.insert(place, job);
    }

    /// The queue gets no further turn; the jobs that were waiting in it.
    pub(crate) fn drop_queue(&mut self, queue: QueueId) -> Vec<JobId> {
        let place = self.queues.iter().position(|line| line.queue == queue);
        place.map(|place| self.queues.swap_remove(place).jobs).unwrap_or_default()
    }

    fn line(&mut self, queue: QueueId) -> Option<&mut Line> {
        self.queues.iter_mut().find(|line| line.queue == queue)
    }
}
