//! Whether a queue may take from others, and which tasks of others may go: none whose queue could at
//! once take the place back. Specification: plugins-jobs-queues.md 6.7, 6.8, D3.

use std::collections::BTreeMap;

use vc_framework::{Ask, Stake};
use vc_model::{JobId, QueueId, TaskId};
use vc_resource::{Dim, Dims, Fractional, Resource};

use super::Capacity;
use super::quota::Quota;
use super::shape::Standing;
use crate::rules::session_job;

impl Capacity {
    /// Within the limit in all requested dimensions, and within what it deserves in at least one;
    /// or an ancestor is (6.7).
    pub(super) fn may_take(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        let Some(quota) = self.quotas.get(queue) else {
            return false;
        };
        let mut request = Resource::default();
        tasks.iter().for_each(|&task| request.add(ask.cluster.request(task)));
        let dims = &ask.cluster.dims;
        if !quota.lacks_for_tasks(&request, dims).is_empty() {
            return false;
        }
        let ancestors = (1..=self.level).map_while(|level| self.shape.ancestor(queue, level));
        let mut quotas = ancestors.filter_map(|ancestor| self.quotas.get(ancestor));
        quota.deserves(&request, dims) || quotas.any(|quota| quota.deserves(&request, dims))
    }

    /// The candidates that may go for a task of another queue, in their order (6.8).
    pub(super) fn reclaimable_for(
        &self,
        ask: Ask<'_>,
        reclaimer: TaskId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        let Some((_, job)) = session_job(ask.cluster, reclaimer) else {
            return Vec::new();
        };
        if self.shape.standing(job.queue) != Standing::Leaf {
            return Vec::new();
        }
        let wanted = ask.cluster.request(reclaimer);
        let mut walk = Walk::new(self, ask, job.queue, wanted, self.level);
        let is_useful = |victim: TaskId| {
            let request = ask.cluster.request(victim);
            request.intersection_without_pods(wanted).next().is_some()
        };
        let may_go = |&victim: &TaskId| is_useful(victim) && walk.may_go(victim);
        candidates.iter().copied().filter(may_go).collect()
    }

    /// What [`Self::reclaimable_for`] reads of the queue of a candidate, if no ancestors are looked at.
    pub(super) fn stake_of(&self, queue: QueueId) -> Option<Stake> {
        match self.shape.standing(queue) {
            // What queues below it hold counts, too.
            Standing::Inner => None,
            Standing::Unusable => Some(Stake::Within),
            Standing::Leaf => Some(self.quotas.get(queue).map_or(Stake::Within, Quota::stake)),
        }
    }

    /// What it reads of the queue of the reclaimer: whether others could take the place back. If no
    /// ancestors are looked at, all or none of them could.
    pub(super) fn stake_in(&self, ask: Ask<'_>, reclaimer: TaskId) -> Stake {
        let Some((_, job)) = session_job(ask.cluster, reclaimer) else {
            return Stake::Within;
        };
        let wanted = ask.cluster.request(reclaimer);
        let mut walk = Walk::new(self, ask, job.queue, wanted, self.level);
        match walk.could_be_taken(job.queue, wanted) {
            true => Stake::Beyond,
            false => Stake::Within,
        }
    }

    /// The same for all that a gang still wants, without the look at common dimensions (6.8, D3).
    pub(super) fn reclaimable_by_gang(
        &self,
        ask: Ask<'_>,
        initiator: JobId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        let job = &ask.cluster.jobs[initiator];
        if self.shape.standing(job.queue) != Standing::Leaf {
            return Vec::new();
        }
        let mut walk = Walk::new(self, ask, job.queue, &job.pending_request, self.level);
        candidates.iter().copied().filter(|&victim| walk.may_go(victim)).collect()
    }
}

impl Quota {
    /// Nobody goes of a queue that deserves some of all that it holds, and has more of nothing.
    fn stake(&self) -> Stake {
        let (allocated, deserved) = (&self.allocated, &self.limits.deserved);
        let is_limit = |dim| dim == Dim::PODS || !deserved.is_zero(dim);
        let is_kept = |dim| !deserved.has(dim) || allocated.get(dim) <= deserved.get(dim);
        let mut held = allocated.dims().filter(|&dim| allocated.get(dim) != 0);
        match held.all(is_limit) && allocated.dims().chain(deserved.dims()).all(is_kept) {
            true => Stake::Within,
            false => {
                Stake::Amounts { allocated: allocated.clone(), deserved: Fractional::default() }
            }
        }
    }

    /// Some requested dimension stays within the deserved amount.
    fn deserves(&self, request: &Resource, dims: &Dims) -> bool {
        let mut used = self.allocated.clone();
        used.add(request);
        self.is_enough_for(&used, request, dims)
    }

    /// Some requested dimension is within the deserved amount if so much is used.
    fn is_enough_for(&self, used: &Resource, request: &Resource, dims: &Dims) -> bool {
        !used.less_equal_partly_dim_nonzero(&self.limits.deserved, request, dims).is_empty()
    }

    /// The queue deserves something of what is requested.
    fn lends(&self, request: &Resource) -> bool {
        request.intersection(&self.limits.deserved).next().is_some()
    }

    /// If so much is used, it is more than deserved in some requested dimension.
    fn is_exceeded_by(&self, used: &Resource, request: &Resource, dims: &Dims) -> bool {
        !used.greater_partly_relevant(&self.limits.deserved, request, dims).is_empty()
    }
}

/// One pass over candidates, with what would be left of each queue.
struct Walk<'a> {
    capacity: &'a Capacity,
    ask: Ask<'a>,
    own: QueueId,
    /// What the room is for.
    wanted: &'a Resource,
    level: usize,
    left: BTreeMap<QueueId, Resource>,
}

impl<'a> Walk<'a> {
    fn new(
        capacity: &'a Capacity,
        ask: Ask<'a>,
        own: QueueId,
        wanted: &'a Resource,
        level: usize,
    ) -> Self {
        Self { capacity, ask, own, wanted, level, left: BTreeMap::new() }
    }

    /// Steps 2 to 5 of 6.8.
    fn may_go(&mut self, victim: TaskId) -> bool {
        let Some((_, job)) = session_job(self.ask.cluster, victim) else {
            return false;
        };
        let (queue, request) = (job.queue, self.ask.cluster.request(victim));
        if self.capacity.shape.standing(queue) == Standing::Unusable
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

    /// The queue deserves nothing of what the victim has, or has more of it than it deserves.
    fn is_surplus(&mut self, queue: QueueId, request: &Resource) -> bool {
        let Some(quota) = self.capacity.quotas.get(queue) else {
            return false;
        };
        if !quota.lends(request) {
            return !self.is_idle_quarrel(queue, self.own, self.wanted);
        }
        let dims = &self.ask.cluster.dims;
        quota.is_exceeded_by(self.left_of(queue), request, dims)
    }

    /// Relatives that both deserve nothing of it have nothing to contend about: a task of `taker`
    /// that wants so much, and one of `giver` that may be taken as far as that goes.
    fn is_idle_quarrel(&self, giver: QueueId, taker: QueueId, wanted: &Resource) -> bool {
        let deserves = self.capacity.quotas.get(taker).is_some_and(|quota| quota.lends(wanted));
        self.capacity.shape.share_ancestor(giver, taker, self.level) && !deserves
    }

    /// Ancestors of the victim's queue that had to be looked at; `None`: one of them has no more
    /// than it deserves. An ancestor that the reclaimer has at the same distance does not count.
    fn ancestors_above_share(
        &mut self,
        queue: QueueId,
        request: &Resource,
    ) -> Option<Vec<QueueId>> {
        let shape = &self.capacity.shape;
        let mut examined = Vec::new();
        for level in 1..=self.level {
            let Some(ancestor) = shape.ancestor(queue, level) else { break };
            if shape.ancestor(self.own, level) == Some(ancestor) {
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

    /// An ancestor that deserves something of it and, if so much is used, has no more than that.
    fn is_protected(&self, ancestor: QueueId, used: &Resource, request: &Resource) -> bool {
        let dims = &self.ask.cluster.dims;
        self.capacity
            .quotas
            .get(ancestor)
            .is_some_and(|quota| quota.lends(request) && !quota.is_exceeded_by(used, request, dims))
    }

    /// With the victim gone and what it is for in its place, the victim's queue could do the same
    /// the other way round. One dimension within the deserved amount is enough to take, one above
    /// it to be taken from: two queues that exceed different ones would take turns for ever.
    fn would_return(&mut self, queue: QueueId, request: &Resource) -> bool {
        self.could_take_back(queue, request) && self.could_be_taken(queue, request)
    }

    fn could_take_back(&mut self, queue: QueueId, request: &Resource) -> bool {
        let (shape, quotas) = (&self.capacity.shape, &self.capacity.quotas);
        let dims = &self.ask.cluster.dims;
        let ancestors = (1..=self.level).map_while(|level| shape.ancestor(queue, level));
        let mut takers = std::iter::once(queue).chain(ancestors);
        takers.any(|id| {
            // What is left holds the victim still, as it would again.
            let mut used = self.left_of(id).clone();
            if shape.path(self.own).contains(&id) {
                used.add(self.wanted);
            }
            quotas.get(id).is_some_and(|quota| quota.is_enough_for(&used, request, dims))
        })
    }

    fn could_be_taken(&mut self, queue: QueueId, request: &Resource) -> bool {
        let (own, wanted, dims) = (self.own, self.wanted, &self.ask.cluster.dims);
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
        let shape = &self.capacity.shape;
        let own_ancestors = (1..=self.level)
            .map_while(|level| shape.ancestor(own, level).map(|ancestor| (level, ancestor)));
        let mut apart =
            own_ancestors.filter(|&(level, id)| shape.ancestor(queue, level) != Some(id));
        !apart.any(|(_, id)| {
            let mut used = self.left_of(id).clone();
            used.add(wanted);
            self.is_protected(id, &used, wanted)
        })
    }
}
