//! Who may go: pods of queues that have more than they deserve. Specification: plugins-jobs-queues.md
//! 5.3, actions.md 12.2 S7.

use std::collections::BTreeMap;

use vc_framework::{Ask, Stake, Verdict};
use vc_model::{QueueId, TaskId};
use vc_resource::{Dim, EPS, Resource};

use super::{Attributes, Proportion};
use crate::rules::session_job;

impl Proportion {
    /// Tasks that hold some of what their queue has beyond its deserved amount, until it no longer
    /// has any. By 5.3 any dimension would do: then a queue below its share of what the task holds
    /// would lose it and not come nearer to its share, and could take it back at once. Nor does a
    /// large task go that holds what is guaranteed, too.
    pub(super) fn surplus(&self, ask: Ask<'_>, candidates: &[TaskId]) -> Verdict {
        let mut left: BTreeMap<QueueId, Resource> = BTreeMap::new();
        let mut may_go = |&task: &TaskId| {
            let Some((_, job)) = session_job(ask.cluster, task) else {
                return false;
            };
            let Some(queue) = self.queues.get(job.queue) else {
                return false;
            };
            let left = left.entry(job.queue).or_insert_with(|| queue.allocated.clone());
            let request = ask.cluster.request(task);
            let is_above = |dim| queue.is_above(left, dim);
            let guarantee = &queue.guarantee;
            let keeps = |dim| guarantee.exact(dim) <= left.exact(dim) - request.exact(dim);
            let may_go = request.names().any(is_above) && guarantee.names().all(keeps);
            if may_go {
                left.sub(request);
            }
            may_go
        };
        Verdict::Victims(candidates.iter().copied().filter(|task| may_go(task)).collect())
    }
}

impl Attributes {
    /// With so much it has more of it than it deserves.
    fn is_above(&self, held: &Resource, dim: Dim) -> bool {
        self.deserved.get(dim) + EPS <= held.to_f64(dim)
    }

    /// Nobody goes, and nothing is taken off in [`Proportion::surplus`], of a queue that is above in
    /// nothing.
    pub(super) fn stake(&self) -> Stake {
        let (allocated, deserved) = (&self.allocated, &self.deserved);
        match allocated.dims().chain(deserved.dims()).any(|dim| self.is_above(allocated, dim)) {
            false => Stake::Within,
            true => Stake::Amounts { allocated: allocated.clone(), deserved: deserved.clone() },
        }
    }
}
