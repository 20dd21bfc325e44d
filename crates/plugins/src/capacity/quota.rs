//! What a queue may have, has and holds back, and whether something fits into it. All amounts are
//! whole. Specification: plugins-jobs-queues.md 6.2, 6.5, 6.6.

use std::cmp::Ordering;

use vc_framework::{JobSums, LimitedAmount};
use vc_model::{Id, QueueId};
use vc_resource::{Dim, Dims, Resource};

use crate::rules::{dominant_share, set_by};

/// An amount that limits nothing. A sum may be larger, and does.
pub(super) const UNLIMITED: i128 = i64::MAX as i128;

/// Amounts that the spec of the queues and the size of the cluster give. The largest amount stands
/// for "unlimited"; a scalar that is missing in `real_capability` is 0 there.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// `None`: not given.
    pub(super) capability: Option<Resource>,
    pub(super) guarantee: Resource,
    pub(super) real_capability: Resource,
    pub(super) deserved: Resource,
}

/// A queue of the session.
#[derive(Clone, Debug, Default)]
pub(super) struct Quota {
    /// When the session began.
    pub(super) own: JobSums,
    /// The same, jobs of its descendants included.
    pub(super) at_open: JobSums,
    pub(super) limits: Limits,
    /// Allocated and, within the session, Pipelined tasks.
    pub(super) allocated: Resource,
    /// What admitted jobs hold back.
    pub(super) inqueue: Resource,
    /// Tasks whose gate was lifted and that have no place yet (6.9).
    pub(super) reserved: Resource,
    /// Of the deserved amount; 1 if there is none.
    pub(super) share: f64,
    /// It is in the list of those that moved.
    pub(super) has_moved: bool,
    /// Metrics may show something else than when they were told last, whatever has moved since.
    begins: bool,
}

/// The queues of the session by id.
#[derive(Debug, Default)]
pub(super) struct Quotas(Vec<Option<Quota>>);

impl Quotas {
    /// Limits and sums are still empty.
    pub(super) fn of(queues: &[QueueId]) -> Self {
        let mut quotas = Self::default();
        for queue in queues {
            if quotas.0.len() <= queue.index() {
                quotas.0.resize(queue.index() + 1, None);
            }
            quotas.0[queue.index()] = Some(Quota::default());
        }
        quotas
    }

    pub(super) fn get(&self, queue: QueueId) -> Option<&Quota> {
        self.0.get(queue.index())?.as_ref()
    }

    pub(super) fn get_mut(&mut self, queue: QueueId) -> Option<&mut Quota> {
        self.0.get_mut(queue.index())?.as_mut()
    }

    /// Smaller share first; on equal ones a queue that deserves something (6.4).
    pub(super) fn by_share(&self, l: QueueId, r: QueueId) -> Ordering {
        let (Some(l), Some(r)) = (self.get(l), self.get(r)) else {
            return Ordering::Equal;
        };
        let deserves_nothing = |quota: &Quota| quota.limits.deserved.is_empty();
        let by_share = l.share.total_cmp(&r.share);
        by_share.then_with(|| deserves_nothing(l).cmp(&deserves_nothing(r)))
    }
}

impl Quota {
    /// A session begins, in which its jobs hold what they do.
    pub(super) fn begin(&mut self) {
        self.allocated.clone_from(&self.at_open.allocated);
        self.inqueue.clone_from(&self.at_open.inqueue);
        self.reserved = Resource::default();
        self.refresh_share();
        (self.has_moved, self.begins) = (false, true);
    }

    /// Nothing has moved since.
    pub(super) fn is_fresh(&self) -> bool {
        let (held, at_open) = ((&self.allocated, &self.inqueue), &self.at_open);
        held == (&at_open.allocated, &at_open.inqueue) && self.reserved == Resource::default()
    }

    /// Whether metrics may show something else than before.
    pub(super) fn is_news(&mut self) -> bool {
        std::mem::take(&mut self.begins) || self.has_moved
    }

    pub(super) fn refresh_share(&mut self) {
        let deserved = &self.limits.deserved;
        self.share = match deserved.is_empty() {
            true => 1.0,
            false => dominant_share(&self.allocated, deserved),
        };
    }

    /// Requested dimensions in which a task would go above the limit. A task that is reserved
    /// itself does not stand in its own way.
    pub(super) fn lacks_for_task(
        &self,
        request: &Resource,
        is_reserved: bool,
        dims: &Dims,
    ) -> Vec<Dim> {
        let own = |dim| if is_reserved { request.exact(dim) } else { 0 };
        let held = |dim| self.allocated.exact(dim) + self.reserved.exact(dim) - own(dim);
        self.lacks(request, dims, held)
    }

    /// Requested dimensions in which tasks together would go above the limit.
    pub(super) fn lacks_for_tasks(&self, request: &Resource, dims: &Dims) -> Vec<Dim> {
        self.lacks(request, dims, |dim| self.allocated.exact(dim))
    }

    /// Dimensions of `minResources` in which the job would go above the limit. Elastic amounts are
    /// those of the start of the session, so that they may be more than there is now: nothing goes
    /// below zero, and the second value says so (D5).
    pub(super) fn lacks_for_admission(&self, asked: &Resource, dims: &Dims) -> (Vec<Dim>, bool) {
        let below_zero = |dim| self.held_at_admission(dim) + asked.exact(dim) < 0;
        let clamped = self.at_open.elastic.dims().any(below_zero);
        (self.lacks(asked, dims, |dim| self.held_at_admission(dim)), clamped)
    }

    /// The amounts of those dimensions in which tasks would go above the limit; so much is reserved
    /// for themselves.
    pub(super) fn amounts_for_tasks(
        &self,
        (request, reserved): (&Resource, &Resource),
        dims: &Dims,
    ) -> Vec<LimitedAmount> {
        let held = |dim| {
            let held = self.allocated.exact(dim) + self.reserved.exact(dim);
            held - reserved.exact(dim)
        };
        self.amounts(request, dims, held)
    }

    /// The amounts of those dimensions of `minResources` in which the job would go above the limit.
    pub(super) fn amounts_for_admission(
        &self,
        asked: &Resource,
        dims: &Dims,
    ) -> Vec<LimitedAmount> {
        self.amounts(asked, dims, |dim| self.held_at_admission(dim))
    }

    fn amounts(
        &self,
        asked: &Resource,
        dims: &Dims,
        held: impl Fn(Dim) -> i128,
    ) -> Vec<LimitedAmount> {
        let amount = |dim: Dim| {
            let limit = self.limits.real_capability.get(dim);
            let used = narrow(held(dim));
            let set_by = set_by(self.limits.capability.as_ref(), dim, limit);
            LimitedAmount { dim, limit, set_by, used, asked: asked.get(dim) }
        };
        self.lacks(asked, dims, &held).into_iter().map(amount).collect()
    }

    /// What counts against the limit when a job is admitted.
    fn held_at_admission(&self, dim: Dim) -> i128 {
        let held = self.allocated.exact(dim) + self.inqueue.exact(dim);
        held - self.at_open.elastic.exact(dim)
    }

    fn lacks(&self, asked: &Resource, dims: &Dims, held: impl Fn(Dim) -> i128) -> Vec<Dim> {
        let limit = &self.limits.real_capability;
        let is_short = |&dim: &Dim| {
            let (asked, limit) = (asked.exact(dim), limit.exact(dim));
            dim != Dim::PODS && 0 < asked && limit != UNLIMITED && limit < held(dim) + asked
        };
        dims.in_report_order().iter().copied().filter(is_short).collect()
    }
}

/// Of a sum, for people: never below zero.
fn narrow(sum: i128) -> i64 {
    i64::try_from(sum.max(0)).unwrap_or(i64::MAX)
}
