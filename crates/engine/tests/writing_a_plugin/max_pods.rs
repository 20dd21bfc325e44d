//! `max-pods`: a queue holds at most so many pods.

use std::collections::BTreeMap;

use vc_conf::{Argument, PluginOption, Warning};
use vc_framework::{
    Depends, Inputs, LimitOwner, LimitedAmount, Plugin, PluginEntry, Points, QueueLimit,
    SessionView,
};
use vc_model::{QueueId, TaskId};
use vc_resource::Dim;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("max-pods", build).arguments(&[&LIMIT]);

const LIMIT: Argument<i64> =
    Argument::new("max-pods.limit", i64::MAX, "pods of a queue").shown_as("none");

#[derive(Default)]
struct MaxPods {
    limit: i64,
    /// Pods that hold a place, by queue. Follows every operation of the session.
    used: BTreeMap<QueueId, i64>,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    let limit = LIMIT.read(&option.arguments, warnings);
    Box::new(MaxPods { limit, ..MaxPods::default() })
}

impl Plugin for MaxPods {
    fn points(&self) -> Points {
        Points::ALLOCATABLE.and(Points::EVENT_HANDLERS)
    }

    /// What the rule reads: what the pods of the queue hold, in numbers.
    fn depends(&self) -> Depends {
        Depends::of(&[(self.points(), Inputs::OWN_QUEUE_USAGE)])
    }

    /// Counts anew at the start of a session. Costs one step per job.
    fn open(&mut self, view: SessionView<'_>) {
        self.used.clear();
        for job in view.all_jobs() {
            let row = &view.cluster.jobs[job];
            *self.used.entry(row.queue).or_default() += i64::from(row.counts.allocated());
        }
    }

    /// The session gave the task a place, or took back its eviction.
    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.add(view, task, 1);
    }

    /// The session evicted the task, or took back its place.
    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.add(view, task, -1);
    }

    /// The rule.
    fn allocatable(&self, _view: SessionView<'_>, queue: QueueId, _task: TaskId) -> bool {
        self.used(queue) < self.limit
    }

    /// What the queue is short of, for the condition of the pod.
    fn allocatable_lacks(
        &self,
        _view: SessionView<'_>,
        _queue: QueueId,
        _task: TaskId,
    ) -> Vec<Dim> {
        vec![Dim::PODS]
    }

    /// The limit with its amounts, for the sentence behind the condition.
    fn queue_limit(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        tasks: &[TaskId],
    ) -> Option<QueueLimit> {
        let (used, asked) = (self.used(queue), i64::try_from(tasks.len()).ok()?);
        let set_by = LIMIT.key;
        let amount = LimitedAmount { dim: Dim::PODS, limit: self.limit, set_by, used, asked };
        let is_exceeded = self.limit < used.saturating_add(asked);
        let owner = LimitOwner::Queue(view.cluster.queues[queue].name.clone());
        is_exceeded.then(|| QueueLimit { owner, amounts: vec![amount] })
    }
}

impl MaxPods {
    fn used(&self, queue: QueueId) -> i64 {
        self.used.get(&queue).copied().unwrap_or(0)
    }

    fn add(&mut self, view: SessionView<'_>, task: TaskId, change: i64) {
        if let Some(job) = view.cluster.tasks[task].job {
            *self.used.entry(view.cluster.jobs[job].queue).or_default() += change;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::scheduler::decide;

    #[test]
    fn the_third_pod_of_a_queue_waits() {
        let conf = r#"
            actions: "enqueue, allocate"
            tiers:
            - plugins:
              - name: gang
              - name: max-pods
                arguments:
                  max-pods.limit: 2
        "#;
        let cluster = "
            queue default
            node n1 cpu=8
            job old
              task a cpu=1 @n1 running
            job new
              task b cpu=1
              task c cpu=1";
        assert_eq!(
            decide(ENTRY, conf, cluster),
            [
                "bind new-b to n1",
                "default/new-c waits: queue default has no room: insufficient pods. \
             Limit of queue default: 2 pods (max-pods.limit), used 2, asked 1.",
            ]
        );
    }
}
