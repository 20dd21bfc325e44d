//! What the jobs of a queue hold, ask for and hold back together, as one sum into which jobs enter
//! and which they leave. Amounts are whole and a scalar exists in a sum exactly while it is not 0,
//! so that leaving undoes entering bit for bit; the engine's `histories.rs` and `differential`
//! compare with sums made anew. Specification: plugins-jobs-queues.md 5.1, actions.md 12.2 S10.

use std::sync::Arc;

use vc_model::Job;
use vc_resource::Resource;

/// Sums over the jobs of a queue when a session begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobSums {
    /// All of them.
    pub n_jobs: usize,
    /// Those that no action looks at: they run, and are valid.
    pub n_settled: usize,
    /// Tasks in allocated statuses.
    pub allocated: Resource,
    /// Allocated and Pending tasks.
    pub request: Resource,
    /// What admitted jobs hold back.
    pub inqueue: Resource,
    /// What jobs have beyond their minimum.
    pub elastic: Resource,
}

/// The part of one job.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    /// This and the rest are kept once for jobs that follow each other and have the same.
    allocated: Arc<Resource>,
    /// `None`: a job that runs, and has what it asked for.
    rest: Option<Arc<Rest>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Rest {
    pending: Resource,
    inqueue: Resource,
    elastic: Resource,
}

impl Part {
    /// `known`: that of another job, or an earlier one of this.
    pub(crate) fn of(job: &Job, known: Option<&Self>) -> Self {
        let rest = Rest {
            pending: Resource::clone(&job.pending_request),
            inqueue: job.reserved().unwrap_or_default(),
            elastic: job.elastic(),
        };
        let nothing = |amount: &Resource| amount.dims().all(|dim| amount.get(dim) == 0);
        let is_empty = [&rest.pending, &rest.inqueue, &rest.elastic].into_iter().all(nothing);
        let same = known.filter(|known| *known.allocated == job.allocated);
        let allocated = same.map(|known| known.allocated.clone());
        let known_rest = known.and_then(|known| known.rest.clone());
        let kept_once = || known_rest.filter(|known| **known == rest);
        Self {
            allocated: allocated.unwrap_or_else(|| Arc::new(job.allocated.clone())),
            rest: (!is_empty).then(|| kept_once().unwrap_or_else(|| Arc::new(rest.clone()))),
        }
    }

    pub(crate) fn allocated(&self) -> &Arc<Resource> {
        &self.allocated
    }
}

impl JobSums {
    /// Adds a job as it is now.
    pub fn count(&mut self, job: &Job) {
        self.enter(&Part::of(job, None), false);
    }

    /// Adds a job.
    pub(crate) fn enter(&mut self, part: &Part, is_settled: bool) {
        self.n_jobs += 1;
        self.n_settled += usize::from(is_settled);
        self.change(part, Resource::add);
    }

    /// Takes a job out that was added.
    pub(crate) fn leave(&mut self, part: &Part, was_settled: bool) {
        self.n_jobs -= 1;
        self.n_settled -= usize::from(was_settled);
        self.change(part, Resource::sub);
    }

    /// Adds the jobs of another queue.
    pub fn add(&mut self, other: &Self) {
        self.n_jobs += other.n_jobs;
        self.n_settled += other.n_settled;
        self.change_by(other, Resource::add);
    }

    /// Takes the jobs of another queue out that were added.
    pub fn sub(&mut self, other: &Self) {
        self.n_jobs -= other.n_jobs;
        self.n_settled -= other.n_settled;
        self.change_by(other, Resource::sub);
    }

    fn change_by(&mut self, other: &Self, change: fn(&mut Resource, &Resource)) {
        move_in(&mut self.allocated, &other.allocated, change);
        move_in(&mut self.request, &other.request, change);
        move_in(&mut self.inqueue, &other.inqueue, change);
        move_in(&mut self.elastic, &other.elastic, change);
    }

    fn change(&mut self, part: &Part, change: fn(&mut Resource, &Resource)) {
        move_in(&mut self.allocated, &part.allocated, change);
        move_in(&mut self.request, &part.allocated, change);
        if let Some(rest) = &part.rest {
            move_in(&mut self.request, &rest.pending, change);
            move_in(&mut self.inqueue, &rest.inqueue, change);
            move_in(&mut self.elastic, &rest.elastic, change);
        }
    }
}

fn move_in(sum: &mut Resource, by: &Resource, change: fn(&mut Resource, &Resource)) {
    change(sum, by);
    for dim in by.scalars() {
        if sum.get(dim) == 0 {
            sum.remove(dim);
        }
    }
}
