//! Victims of reclaim: pods of queues that have more than they deserve.
//! Specification: plugins-jobs-queues.md 5.3, actions.md 12.2 S7.

use std::collections::BTreeMap;

use vc_framework::{QueueUsageStamp, SessionView, VictimVote};
use vc_model::{QueueId, TaskId};
use vc_resource::{Dim, EPS, Resource};

use super::{Proportion, QueueAttributes};
use crate::rules::session_job;

impl Proportion {
    /// Votes for tasks that hold some of what their queue has above its deserved amount, until
    /// nothing above it is left. A task whose loss would break the guarantee stays.
    ///
    /// Section 5.3 accepts any dimension. Then a queue could lose what it has too little of, and
    /// reclaim it at once.
    pub(super) fn surplus(&self, view: SessionView<'_>, candidates: &[TaskId]) -> VictimVote {
        let mut left: BTreeMap<QueueId, Resource> = BTreeMap::new();
        let mut may_go = |&task: &TaskId| {
            let Some((_, job)) = session_job(view.cluster, task) else {
                return false;
            };
            let Some(queue) = self.queues.get(job.queue) else {
                return false;
            };
            let left = left.entry(job.queue).or_insert_with(|| queue.allocated.clone());
            let request = view.cluster.request(task);
            let is_above = |dim| queue.is_above(left, dim);
            let guarantee = &queue.guarantee;
            let keeps = |dim| guarantee.exact(dim) <= left.exact(dim) - request.exact(dim);
            let may_go = request.names().any(is_above) && guarantee.names().all(keeps);
            if may_go {
                left.sub(request);
            }
            may_go
        };
        VictimVote::Victims(candidates.iter().copied().filter(|task| may_go(task)).collect())
    }
}

impl QueueAttributes {
    /// True if `held` exceeds the deserved amount in this dimension.
    fn is_above(&self, held: &Resource, dim: Dim) -> bool {
        self.deserved.get(dim) + EPS <= held.to_f64(dim)
    }

    /// Returns `Within` if the queue exceeds its deserved amount in no dimension.
    /// [`Proportion::surplus`] then selects none of its tasks.
    pub(super) fn queue_usage(&self) -> QueueUsageStamp {
        let (allocated, deserved) = (&self.allocated, &self.deserved);
        match allocated.dims().chain(deserved.dims()).any(|dim| self.is_above(allocated, dim)) {
            false => QueueUsageStamp::Within,
            true => QueueUsageStamp::Amounts {
                allocated: allocated.clone(),
                deserved: deserved.clone(),
            },
        }
    }
}
