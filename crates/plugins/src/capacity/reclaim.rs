//! Reclaim between queues: whether a queue may reclaim, and which tasks of other queues may be
//! evicted. A task stays if its queue could at once reclaim the place back.
//! Specification: plugins-jobs-queues.md 6.7, 6.8, D3.

use std::collections::BTreeMap;

use vc_framework::{QueueUsageStamp, SessionView};
use vc_model::{JobId, QueueId, TaskId};
use vc_resource::{Dim, Dims, Fractional, Resource};

use super::Capacity;
use super::queue_tree::QueueRole;
use super::quota::CapacityQuota;
use crate::rules::session_job;

impl Capacity {
    /// True if the queue stays within its limit in all requested dimensions and the request is
    /// deserved. The request is deserved if one requested dimension stays within the deserved
    /// amount, of the queue or an ancestor (section 6.7).
    pub(super) fn may_take(&self, view: SessionView<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        let Some(quota) = self.quotas.get(queue) else {
            return false;
        };
        let mut request = Resource::default();
        tasks.iter().for_each(|&task| request.add(view.cluster.request(task)));
        let dims = &view.cluster.dims;
        if !quota.lacks_for_tasks(&request, dims).is_empty() {
            return false;
        }
        let ancestors = (1..=self.level).map_while(|level| self.queue_tree.ancestor(queue, level));
        let mut quotas = ancestors.filter_map(|ancestor| self.quotas.get(ancestor));
        quota.deserves(&request, dims) || quotas.any(|quota| quota.deserves(&request, dims))
    }

    /// Returns the candidates that may be evicted for a task of another queue, in their order
    /// (section 6.8).
    pub(super) fn reclaimable_for(
        &self,
        view: SessionView<'_>,
        reclaimer: TaskId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        let Some((_, job)) = session_job(view.cluster, reclaimer) else {
            return Vec::new();
        };
        if self.queue_tree.role(job.queue) != QueueRole::Leaf {
            return Vec::new();
        }
        let wanted = view.cluster.request(reclaimer);
        let mut walk = ReclaimCheck::new(self, view, job.queue, wanted, self.level);
        let is_useful = |victim: TaskId| {
            let request = view.cluster.request(victim);
            request.intersection_without_pods(wanted).next().is_some()
        };
        let may_go = |&victim: &TaskId| is_useful(victim) && walk.may_go(victim);
        candidates.iter().copied().filter(may_go).collect()
    }

    /// Returns what [`Self::reclaimable_for`] reads of a candidate's queue, provided that no
    /// ancestors are examined. Returns `None` if that cannot be stated.
    pub(super) fn stake_of(&self, queue: QueueId) -> Option<QueueUsageStamp> {
        match self.queue_tree.role(queue) {
            // Usage of the queues below it counts too.
            QueueRole::Inner => None,
            QueueRole::Unusable => Some(QueueUsageStamp::Within),
            QueueRole::Leaf => Some(
                self.quotas.get(queue).map_or(QueueUsageStamp::Within, CapacityQuota::queue_usage),
            ),
        }
    }

    /// Returns what [`Self::reclaimable_for`] reads of the reclaimer's queue: `Beyond` if other
    /// queues could reclaim the place back. Without ancestors the answer is the same for all other
    /// queues.
    pub(super) fn stake_in(&self, view: SessionView<'_>, reclaimer: TaskId) -> QueueUsageStamp {
        let Some((_, job)) = session_job(view.cluster, reclaimer) else {
            return QueueUsageStamp::Within;
        };
        let wanted = view.cluster.request(reclaimer);
        let mut walk = ReclaimCheck::new(self, view, job.queue, wanted, self.level);
        match walk.could_be_taken(job.queue, wanted) {
            true => QueueUsageStamp::Beyond,
            false => QueueUsageStamp::Within,
        }
    }

    /// Returns the candidates that may be evicted for all pending tasks of a gang. Unlike
    /// [`Self::reclaimable_for`], a candidate need not share a dimension with the request (section
    /// 6.8, D3).
    pub(super) fn reclaimable_by_gang(
        &self,
        view: SessionView<'_>,
        initiator: JobId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        let job = &view.cluster.jobs[initiator];
        if self.queue_tree.role(job.queue) != QueueRole::Leaf {
            return Vec::new();
        }
        let mut walk = ReclaimCheck::new(self, view, job.queue, &job.pending_request, self.level);
        candidates.iter().copied().filter(|&victim| walk.may_go(victim)).collect()
    }
}

impl CapacityQuota {
    /// Returns `Within` if no task of the queue may be reclaimed: each dimension in use is
    /// deserved, and no deserved amount is exceeded.
    fn queue_usage(&self) -> QueueUsageStamp {
        let (allocated, deserved) = (&self.allocated, &self.limits.deserved);
        let is_limit = |dim| dim == Dim::PODS || !deserved.is_zero(dim);
        let is_kept = |dim| !deserved.has(dim) || allocated.get(dim) <= deserved.get(dim);
        let mut held = allocated.dims().filter(|&dim| allocated.get(dim) != 0);
        match held.all(is_limit) && allocated.dims().chain(deserved.dims()).all(is_kept) {
            true => QueueUsageStamp::Within,
            false => QueueUsageStamp::Amounts {
                allocated: allocated.clone(),
                deserved: Fractional::default(),
            },
        }
    }

    /// True if usage plus the request stays within the deserved amount in some requested dimension.
    fn deserves(&self, request: &Resource, dims: &Dims) -> bool {
        let mut used = self.allocated.clone();
        used.add(request);
        self.is_enough_for(&used, request, dims)
    }

    /// True if `used` is within the deserved amount in some requested dimension.
    fn is_enough_for(&self, used: &Resource, request: &Resource, dims: &Dims) -> bool {
        !used.less_equal_partly_dim_nonzero(&self.limits.deserved, request, dims).is_empty()
    }

    /// True if the queue deserves some of the requested dimensions.
    fn lends(&self, request: &Resource) -> bool {
        request.intersection(&self.limits.deserved).next().is_some()
    }

    /// True if `used` exceeds the deserved amount in some requested dimension.
    fn is_exceeded_by(&self, used: &Resource, request: &Resource, dims: &Dims) -> bool {
        !used.greater_partly_relevant(&self.limits.deserved, request, dims).is_empty()
    }
}

/// One pass over candidates, with the usage that remains of each queue.
struct ReclaimCheck<'a> {
    capacity: &'a Capacity,
    view: SessionView<'a>,
    own: QueueId,
    /// The request for which candidates are evicted.
    wanted: &'a Resource,
    level: usize,
    left: BTreeMap<QueueId, Resource>,
}

impl<'a> ReclaimCheck<'a> {
    fn new(
        capacity: &'a Capacity,
        view: SessionView<'a>,
        own: QueueId,
        wanted: &'a Resource,
        level: usize,
    ) -> Self {
        Self { capacity, view, own, wanted, level, left: BTreeMap::new() }
    }

    /// Runs steps 2 to 5 of section 6.8 for one candidate. Returns true if it may be evicted, and
    /// subtracts it then.
    fn may_go(&mut self, victim: TaskId) -> bool {
        let Some((_, job)) = session_job(self.view.cluster, victim) else {
            return false;
        };
        let (queue, request) = (job.queue, self.view.cluster.request(victim));
        if self.capacity.queue_tree.role(queue) == QueueRole::Unusable
            || !self.keeps_guarantee(queue, request)
            || !self.is_surplus(queue, request)
        {
            return false;
        }
        let Some(ancestors) = self.ancestors_above_share(queue, request) else {
            return false;
        };
        if self.would_return(queue, request) {
            return false;
        }
        for id in std::iter::once(queue).chain(ancestors) {
            self.left_of(id).sub(request);
        }
        true
    }

    fn left_of(&mut self, queue: QueueId) -> &mut Resource {
        let quotas = &self.capacity.quotas;
        let allocated = || quotas.get(queue).map(|quota| quota.allocated.clone());
        self.left.entry(queue).or_insert_with(|| allocated().unwrap_or_default())
    }

    fn keeps_guarantee(&mut self, queue: QueueId, request: &Resource) -> bool {
        let Some(quota) = self.capacity.quotas.get(queue) else {
            return false;
        };
        let guarantee = &quota.limits.guarantee;
        let left = self.left_of(queue);
        let is_kept = |dim| guarantee.exact(dim) <= left.exact(dim) - request.exact(dim);
        guarantee.dims().all(is_kept)
    }

    /// True if the queue deserves nothing of the victim's request, or exceeds its deserved amount
    /// in it. The first case is refused between relatives without a deserved amount.
    fn is_surplus(&mut self, queue: QueueId, request: &Resource) -> bool {
        let Some(quota) = self.capacity.quotas.get(queue) else {
            return false;
        };
        if !quota.lends(request) {
            return !self.is_idle_quarrel(queue, self.own, self.wanted);
        }
        let dims = &self.view.cluster.dims;
        quota.is_exceeded_by(self.left_of(queue), request, dims)
    }

    /// True if the queues share an examined ancestor and `taker` deserves nothing of `wanted`.
    /// Reclaim between two such queues would be pointless.
    fn is_idle_quarrel(&self, giver: QueueId, taker: QueueId, wanted: &Resource) -> bool {
        let deserves = self.capacity.quotas.get(taker).is_some_and(|quota| quota.lends(wanted));
        self.capacity.queue_tree.share_ancestor(giver, taker, self.level) && !deserves
    }

    /// Returns the examined ancestors of the victim's queue. Returns `None` if one of them does not
    /// exceed its deserved amount. An ancestor that the reclaimer has at the same distance is
    /// skipped.
    fn ancestors_above_share(
        &mut self,
        queue: QueueId,
        request: &Resource,
    ) -> Option<Vec<QueueId>> {
        let queue_tree = &self.capacity.queue_tree;
        let mut examined = Vec::new();
        for level in 1..=self.level {
            let Some(ancestor) = queue_tree.ancestor(queue, level) else { break };
            if queue_tree.ancestor(self.own, level) == Some(ancestor) {
                continue;
            }
            let left = self.left_of(ancestor).clone();
            if self.is_protected(ancestor, &left, request) {
                return None;
            }
            examined.push(ancestor);
        }
        Some(examined)
    }

    /// True if the ancestor deserves some of the request and `used` does not exceed its deserved
    /// amount.
    fn is_protected(&self, ancestor: QueueId, used: &Resource, request: &Resource) -> bool {
        let dims = &self.view.cluster.dims;
        self.capacity
            .quotas
            .get(ancestor)
            .is_some_and(|quota| quota.lends(request) && !quota.is_exceeded_by(used, request, dims))
    }

    /// True if the victim's queue could reclaim the place back after the exchange. One dimension
    /// within the deserved amount suffices to take, one above it to be taken from. Two queues that
    /// exceed different dimensions would otherwise evict each other forever.
    fn would_return(&mut self, queue: QueueId, request: &Resource) -> bool {
        self.could_take_back(queue, request) && self.could_be_taken(queue, request)
    }

    fn could_take_back(&mut self, queue: QueueId, request: &Resource) -> bool {
        let (queue_tree, quotas) = (&self.capacity.queue_tree, &self.capacity.quotas);
        let dims = &self.view.cluster.dims;
        let ancestors = (1..=self.level).map_while(|level| queue_tree.ancestor(queue, level));
        let mut takers = std::iter::once(queue).chain(ancestors);
        takers.any(|id| {
            // The remaining usage still includes the victim, as it would after reclaiming back.
            let mut used = self.left_of(id).clone();
            if queue_tree.path(self.own).contains(&id) {
                used.add(self.wanted);
            }
            quotas.get(id).is_some_and(|quota| quota.is_enough_for(&used, request, dims))
        })
    }

    fn could_be_taken(&mut self, queue: QueueId, request: &Resource) -> bool {
        let (own, wanted, dims) = (self.own, self.wanted, &self.view.cluster.dims);
        let Some(quota) = self.capacity.quotas.get(own) else {
            return false;
        };
        let mut used = quota.allocated.clone();
        let guarantee = &quota.limits.guarantee;
        let is_guaranteed = guarantee.dims().any(|dim| used.get(dim) < guarantee.get(dim));
        used.add(wanted);
        let is_surplus = match quota.lends(wanted) {
            true => quota.is_exceeded_by(&used, wanted, dims),
            false => !self.is_idle_quarrel(own, queue, request),
        };
        if is_guaranteed || !is_surplus {
            return false;
        }
        let queue_tree = &self.capacity.queue_tree;
        let own_ancestors = (1..=self.level)
            .map_while(|level| queue_tree.ancestor(own, level).map(|ancestor| (level, ancestor)));
        let mut apart =
            own_ancestors.filter(|&(level, id)| queue_tree.ancestor(queue, level) != Some(id));
        !apart.any(|(_, id)| {
            let mut used = self.left_of(id).clone();
            used.add(wanted);
            self.is_protected(id, &used, wanted)
        })
    }
}
