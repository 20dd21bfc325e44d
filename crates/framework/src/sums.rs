//! Sums over the jobs of a queue, with jobs added and removed one at a time. The engine's
//! `histories.rs` and `differential` compare with sums computed anew. Specification:
//! plugins-jobs-queues.md 5.1, actions.md 12.2 S10.
//!
//! Exact because:
//! - Amounts are integers, so removing a job undoes adding it bit for bit.
//! - A scalar is in a sum exactly while it is not 0.

use std::sync::Arc;

use vc_model::Job;
use vc_resource::Resource;

/// Sums over the jobs of a queue when a session begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobSums {
    /// Number of jobs.
    pub n_jobs: usize,
    /// Number of valid running jobs, which no action has to look at.
    pub n_idle: usize,
    /// Requests of tasks in allocated statuses.
    pub allocated: Resource,
    /// Requests of allocated and Pending tasks.
    pub request: Resource,
    /// Amounts that admitted jobs reserve.
    pub inqueue: Resource,
    /// Amounts that jobs hold beyond their minimum.
    pub elastic: Resource,
}

/// The contribution of one job to [`JobSums`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JobPart {
    /// Allocated amounts. This field and `rest` are shared between consecutive jobs with equal
    /// values.
    allocated: Arc<Resource>,
    /// Further amounts. `None` if all of them are 0: the job runs and has what it asked for.
    rest: Option<Arc<JobExtras>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct JobExtras {
    pending: Resource,
    inqueue: Resource,
    elastic: Resource,
}

impl JobPart {
    /// Computes the contribution of a job. `known` is a contribution to share equal values with, of
    /// another job or an earlier one of this job.
    pub(crate) fn of(job: &Job, known: Option<&Self>) -> Self {
        let rest = JobExtras {
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
    /// Adds a job in its present state, counted as one that actions look at.
    pub fn count(&mut self, job: &Job) {
        self.enter(&JobPart::of(job, None), false);
    }

    /// Adds a contribution.
    pub(crate) fn enter(&mut self, part: &JobPart, is_settled: bool) {
        self.n_jobs += 1;
        self.n_idle += usize::from(is_settled);
        self.change(part, Resource::add);
    }

    /// Removes a contribution that was added.
    pub(crate) fn leave(&mut self, part: &JobPart, was_settled: bool) {
        self.n_jobs -= 1;
        self.n_idle -= usize::from(was_settled);
        self.change(part, Resource::sub);
    }

    /// Adds the sums of another queue.
    pub fn add(&mut self, other: &Self) {
        self.n_jobs += other.n_jobs;
        self.n_idle += other.n_idle;
        self.change_by(other, Resource::add);
    }

    /// Removes the sums of another queue that were added.
    pub fn sub(&mut self, other: &Self) {
        self.n_jobs -= other.n_jobs;
        self.n_idle -= other.n_idle;
        self.change_by(other, Resource::sub);
    }

    fn change_by(&mut self, other: &Self, change: fn(&mut Resource, &Resource)) {
        move_in(&mut self.allocated, &other.allocated, change);
        move_in(&mut self.request, &other.request, change);
        move_in(&mut self.inqueue, &other.inqueue, change);
        move_in(&mut self.elastic, &other.elastic, change);
    }

    fn change(&mut self, part: &JobPart, change: fn(&mut Resource, &Resource)) {
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
