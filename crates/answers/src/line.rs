//! The place of a job among the waiting jobs of its queue, explained by the comparisons that made
//! the order. Specification: answers.md 6 (ANS-31 to ANS-35).

use std::collections::BTreeMap;

use vc_framework::{JobDecider, Session, SessionState};
use vc_model::{Column, Job, JobId, PodGroupPhase, QueueId, TaskStatus};
use vc_resource::Resource;

use crate::amounts::positive;
use crate::explanation::{ComparedValues, JobsAhead, LineNeighbour, LinePlace};

/// Places of a line from one sum to the next.
const SUM_EVERY: usize = 16;

/// True if the job has pods without a node, or no pods yet.
pub(crate) fn waits(session: &Session<'_>, job: JobId) -> bool {
    let row = &session.jobs[job];
    let begins = matches!(row.phase(), PodGroupPhase::Pending | PodGroupPhase::Inqueue);
    let awaits_pods = row.tasks.is_empty() && begins && row.pod_group.is_some();
    awaits_pods || 0 < row.counts.of(TaskStatus::Pending)
}

/// The waiting jobs of all queues in their order, sorted once per session.
pub(crate) struct WaitingLines {
    by_queue: BTreeMap<QueueId, QueueLine>,
    /// The queues in which jobs wait, in queue order at the beginning of the next cycle.
    queues: Vec<QueueId>,
    /// Place in its line of each waiting job.
    places: Column<JobId, usize>,
}

/// The waiting jobs of one queue.
#[derive(Default)]
struct QueueLine {
    /// The first one first.
    jobs: Vec<JobId>,
    /// What waits before every [`SUM_EVERY`]th place.
    before: Vec<WaitingSum>,
}

/// Number of waiting pods of some jobs, and what they ask for.
#[derive(Clone, Default)]
struct WaitingSum {
    n_pods: usize,
    amounts: Resource,
}

impl WaitingSum {
    fn add(&mut self, job: &Job) {
        self.n_pods += job.counts.of(TaskStatus::Pending) as usize;
        self.amounts.add(&job.pending_request);
    }
}

impl QueueLine {
    /// Returns what waits before this place.
    fn before(&self, session: &SessionState<'_>, place: usize) -> WaitingSum {
        let mut sum = self.before[place / SUM_EVERY].clone();
        let rest = &self.jobs[place / SUM_EVERY * SUM_EVERY..place];
        rest.iter().for_each(|&job| sum.add(&session.jobs[job]));
        sum
    }
}

impl WaitingLines {
    /// Sorts the waiting jobs. Nothing may be lifted or pipelined in the session.
    pub(crate) fn find(session: &Session<'_>) -> Self {
        let (plugins, view) = (session.plugins(), session.view());
        let mut by_queue: BTreeMap<QueueId, QueueLine> = BTreeMap::new();
        for job in view.all_jobs().filter(|&job| waits(session, job)) {
            by_queue.entry(session.jobs[job].queue).or_default().jobs.push(job);
        }
        let mut queues: Vec<QueueId> = by_queue.keys().copied().collect();
        queues.sort_by(|&l, &r| plugins.queue_order(view, l, r));
        let mut places = Column::default();
        let job_order = plugins.job_comparator(view);
        for line in by_queue.values_mut() {
            line.jobs.sort_by(|&l, &r| job_order(l, r));
            let mut sum = WaitingSum::default();
            for (place, &job) in line.jobs.iter().enumerate() {
                *places.place(job) = Some(place);
                if place.is_multiple_of(SUM_EVERY) {
                    line.before.push(sum.clone());
                }
                sum.add(&session.jobs[job]);
            }
        }
        Self { by_queue, queues, places }
    }

    /// Returns the first waiting job of a queue.
    pub(crate) fn first_of(&self, queue: QueueId) -> Option<JobId> {
        self.by_queue.get(&queue)?.jobs.first().copied()
    }

    /// Returns the jobs that wait in a queue, the first one first.
    pub(crate) fn of_queue(&self, queue: QueueId) -> &[JobId] {
        self.by_queue.get(&queue).map_or(&[], |line| &line.jobs)
    }

    /// Returns the jobs before a job in its queue.
    pub(crate) fn ahead_of(&self, session: &Session<'_>, job: JobId) -> &[JobId] {
        let place = self.places.get(job).copied().unwrap_or(0);
        self.of_queue(session.jobs[job].queue).get(..place).unwrap_or_default()
    }

    /// Returns the place of a job. Returns `None` if it is in no line. `turn` is that of the last
    /// cycle.
    pub(crate) fn place_of(
        &self,
        session: &Session<'_>,
        job: JobId,
        turn: Option<usize>,
    ) -> Option<LinePlace> {
        let queue = session.jobs[job].queue;
        let (line, at) = (self.by_queue.get(&queue)?, *self.places.get(job)?);
        let neighbour = |other: Option<&JobId>| other.map(|&other| neighbour(session, job, other));
        let before = line.before(session, at);
        let queue_place = self.queues.iter().position(|&other| other == queue)?;
        Some(LinePlace {
            in_queue: at + 1,
            of_queue: line.jobs.len(),
            turn: turn.map(|turn| turn + 1),
            queue_turn: queue_place + 1,
            before: neighbour(at.checked_sub(1).and_then(|at| line.jobs.get(at))),
            behind: neighbour(line.jobs.get(at + 1)),
            ahead: JobsAhead {
                jobs: at,
                pods: before.n_pods,
                amounts: positive(&before.amounts, &session.dims),
                tried: None,
                blocked: None,
            },
        })
    }
}

fn neighbour(session: &SessionState<'_>, job: JobId, other: JobId) -> LineNeighbour {
    let (decided_by, values) = match session.plugins().job_decider(session.view(), job, other) {
        JobDecider::Plugin(name, values) => {
            (name, values.map(|(own, other)| ComparedValues::OfPlugin(own, other)))
        }
        JobDecider::Created => {
            let created = |job: JobId| {
                let group = session.jobs[job].pod_group.as_ref();
                group.map_or(0, |group| group.created_micros)
            };
            ("created", Some(ComparedValues::Created(created(job), created(other))))
        }
        JobDecider::Name => {
            let name = |job: JobId| session.jobs[job].key.clone();
            ("name", Some(ComparedValues::Names(name(job), name(other))))
        }
    };
    LineNeighbour { job: session.jobs[other].key.clone(), decided_by, values }
}
