//! Limits and usage of one queue, and the tests whether a request fits. All amounts are integers.
//! Specification: plugins-jobs-queues.md 6.2, 6.5, 6.6.

use std::cmp::Ordering;

use vc_framework::{JobSums, LimitedAmount};
use vc_model::reads::{self, Read};
use vc_model::{Id, QueueId};
use vc_resource::{Dim, Dims, Resource};

use crate::rules::{dominant_share, set_by};

/// The amount that means "unlimited". A sum of usage may be larger.
pub(super) const UNLIMITED: i128 = i64::MAX as i128;

/// Limits that follow from the specs of the queues and the size of the cluster. The largest amount
/// means "unlimited". A scalar that is missing in `real_capability` is 0 there.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// `None` if the spec gives no capability.
    pub(super) capability: Option<Resource>,
    pub(super) guarantee: Resource,
    pub(super) real_capability: Resource,
    pub(super) deserved: Resource,
}

/// Limits and usage of a queue in the session.
#[derive(Clone, Debug, Default)]
pub(super) struct CapacityQuota {
    /// Sums over the queue's own jobs when the session began.
    pub(super) own: JobSums,
    /// Sums over the jobs of the queue and its descendants when the session began.
    pub(super) at_open: JobSums,
    pub(super) limits: Limits,
    /// Sum of the allocated tasks and, within the session, the pipelined ones.
    pub(super) allocated: Resource,
    /// Amounts held back for admitted jobs without pods.
    pub(super) inqueue: Resource,
    /// Sum of the tasks whose gate was lifted and that are not placed yet (section 6.9).
    pub(super) reserved: Resource,
    /// Dominant share of the deserved amount; 1 if nothing is deserved.
    pub(super) share: f64,
    /// True if the queue is in `Capacity::moved`.
    pub(super) has_moved: bool,
    /// True if the queue was recomputed and its metrics were not emitted since.
    begins: bool,
}

/// The queues of the session by id.
#[derive(Debug, Default)]
pub(super) struct CapacityQuotas(Vec<Option<CapacityQuota>>);

impl CapacityQuotas {
    /// Creates quotas with empty limits and sums.
    pub(super) fn of(queues: &[QueueId]) -> Self {
        let mut quotas = Self::default();
        for queue in queues {
            if quotas.0.len() <= queue.index() {
                quotas.0.resize(queue.index() + 1, None);
            }
            quotas.0[queue.index()] = Some(CapacityQuota::default());
        }
        quotas
    }

    pub(super) fn get(&self, queue: QueueId) -> Option<&CapacityQuota> {
        reads::note(Read::QueueUsage(queue));
        self.0.get(queue.index())?.as_ref()
    }

    pub(super) fn get_mut(&mut self, queue: QueueId) -> Option<&mut CapacityQuota> {
        self.0.get_mut(queue.index())?.as_mut()
    }

    /// Compares two queues: the smaller share first, then a queue that deserves something (section
    /// 6.4).
    pub(super) fn by_share(&self, l: QueueId, r: QueueId) -> Ordering {
        let (Some(l), Some(r)) = (self.get(l), self.get(r)) else {
            return Ordering::Equal;
        };
        let deserves_nothing = |quota: &CapacityQuota| quota.limits.deserved.is_empty();
        let by_share = l.share.total_cmp(&r.share);
        by_share.then_with(|| deserves_nothing(l).cmp(&deserves_nothing(r)))
    }
}

impl CapacityQuota {
    /// Starts a session in which the jobs hold `at_open`.
    pub(super) fn begin(&mut self) {
        self.allocated.clone_from(&self.at_open.allocated);
        self.inqueue.clone_from(&self.at_open.inqueue);
        self.reserved = Resource::default();
        self.refresh_share();
        (self.has_moved, self.begins) = (false, true);
    }

    /// True if the usage equals the usage at the start of the session.
    pub(super) fn is_fresh(&self) -> bool {
        let (held, at_open) = ((&self.allocated, &self.inqueue), &self.at_open);
        held == (&at_open.allocated, &at_open.inqueue) && self.reserved == Resource::default()
    }

    /// True if the metrics of the queue may have changed.
    pub(super) fn record_if_new(&mut self) -> bool {
        std::mem::take(&mut self.begins) || self.has_moved
    }

    pub(super) fn refresh_share(&mut self) {
        let deserved = &self.limits.deserved;
        self.share = match deserved.is_empty() {
            true => 1.0,
            false => dominant_share(&self.allocated, deserved),
        };
    }

    /// Returns the requested dimensions in which a task would exceed the limit. The task's own
    /// reservation does not count against it.
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

    /// Returns the requested dimensions in which the tasks together would exceed the limit.
    pub(super) fn lacks_for_tasks(&self, request: &Resource, dims: &Dims) -> Vec<Dim> {
        self.lacks(request, dims, |dim| self.allocated.exact(dim))
    }

    /// Returns the dimensions of `minResources` in which the job would exceed the limit, and
    /// whether usage was clamped. The elastic amounts are of the session's start and may exceed
    /// current usage (D5: amounts do not go below zero).
    pub(super) fn lacks_for_admission(&self, asked: &Resource, dims: &Dims) -> (Vec<Dim>, bool) {
        let below_zero = |dim| self.held_at_admission(dim) + asked.exact(dim) < 0;
        let clamped = self.at_open.elastic.dims().any(below_zero);
        (self.lacks(asked, dims, |dim| self.held_at_admission(dim)), clamped)
    }

    /// Returns the amounts of the dimensions in which the tasks would exceed the limit. `reserved`
    /// is what is reserved for the tasks themselves.
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

    /// Returns the amounts of the dimensions of `minResources` in which the job would exceed the
    /// limit.
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

    /// Returns the usage that counts against the limit when a job is admitted.
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

/// Returns a sum as `i64` for messages: at least 0, and saturated at the maximum.
fn narrow(sum: i128) -> i64 {
    i64::try_from(sum.max(0)).unwrap_or(i64::MAX)
}
