//! Orders: the first plugin that tells two things apart, then the default. Specification: core.md
//! 5.4, 5.6, actions.md 2.3, 2.9.

use std::cmp::Ordering;

use vc_model::{Cluster, JobId, QueueId, TaskId};

use crate::dispatch::Dispatch;
use crate::plugin::{Ask, Plugin};
use crate::points::Points;

const MICROS_PER_SECOND: i64 = 1_000_000;

impl Dispatch {
    fn first<'a>(
        &'a self,
        point: Points,
        compare: impl Fn(&'a dyn Plugin) -> Ordering,
    ) -> Ordering {
        let mut answers = self.all(point).map(compare);
        answers.find(|answer| answer.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Jobs: plugins, then older by whole seconds, then namespace/name.
    pub fn job_order(&self, ask: Ask<'_>, l: JobId, r: JobId) -> Ordering {
        self.job_order_plugins(ask, l, r).then_with(|| {
            let (l, r) = (&ask.cluster.jobs[l], &ask.cluster.jobs[r]);
            let created = |job: &vc_model::Job| {
                let group = job.pod_group.as_ref();
                group.map_or(0, |group| group.created_micros / MICROS_PER_SECOND)
            };
            created(l).cmp(&created(r)).then_with(|| l.key.cmp(&r.key))
        })
    }

    /// The plugins' part of the job order.
    pub fn job_order_plugins(&self, ask: Ask<'_>, l: JobId, r: JobId) -> Ordering {
        self.first(Points::JOB_ORDER, |plugin| plugin.job_order(ask, l, r))
    }

    /// Queues: plugins, then older, then name.
    pub fn queue_order(&self, ask: Ask<'_>, l: QueueId, r: QueueId) -> Ordering {
        self.first(Points::QUEUE_ORDER, |plugin| plugin.queue_order(ask, l, r)).then_with(|| {
            let (l, r) = (&ask.cluster.queues[l], &ask.cluster.queues[r]);
            let created = |queue: &vc_model::Queue| queue.created_micros / MICROS_PER_SECOND;
            created(l).cmp(&created(r)).then_with(|| l.name.cmp(&r.name))
        })
    }

    /// Whether the place of a queue in that order is its own matter for all plugins (see
    /// [`Plugin::stands_alone`]): then the order is total among such queues, and a queue whose tasks
    /// were not moved stands where it stood.
    pub fn stands_alone(&self, ask: Ask<'_>, queue: QueueId) -> bool {
        self.all(Points::QUEUE_ORDER).all(|plugin| plugin.stands_alone(ask, queue))
    }

    /// Tasks: plugins, then pod index, then older, then uid.
    pub fn task_order(&self, ask: Ask<'_>, l: TaskId, r: TaskId) -> Ordering {
        self.first(Points::TASK_ORDER, |plugin| plugin.task_order(ask, l, r)).then_with(|| {
            let (l, r) = (&ask.cluster.tasks[l], &ask.cluster.tasks[r]);
            let by_index = match (l.index, r.index) {
                (Some(l), Some(r)) => l.cmp(&r),
                _ => Ordering::Equal,
            };
            let created = |task: &vc_model::Task| task.created_micros / MICROS_PER_SECOND;
            by_index.then_with(|| created(l).cmp(&created(r))).then_with(|| l.uid.cmp(&r.uid))
        })
    }

    /// Sub-jobs of one job: plugins, then match index, then id.
    pub fn sub_job_order(&self, ask: Ask<'_>, job: JobId, l: usize, r: usize) -> Ordering {
        let compare = |plugin: &dyn Plugin| plugin.sub_job_order(ask, job, l, r);
        self.first(Points::SUB_JOB_ORDER, compare).then_with(|| {
            let sub_jobs = &ask.cluster.jobs[job].sub_jobs;
            let (l, r) = (&sub_jobs[l], &sub_jobs[r]);
            l.match_index.cmp(&r.match_index).then_with(|| l.id.cmp(&r.id))
        })
    }

    /// Queues of two victims: plugins, else the reverse of the queue order.
    pub fn victim_queue_order(
        &self,
        ask: Ask<'_>,
        l: QueueId,
        r: QueueId,
        own: QueueId,
    ) -> Ordering {
        let compare = |plugin: &dyn Plugin| plugin.victim_queue_order(ask, l, r, own);
        self.first(Points::VICTIM_QUEUE_ORDER, compare).then_with(|| self.queue_order(ask, r, l))
    }

    /// Clusters: plugins, then name. No action asks (core.md 5.3).
    pub fn cluster_order(&self, ask: Ask<'_>, l: &str, r: &str) -> Ordering {
        let compare = |plugin: &dyn Plugin| plugin.cluster_order(ask, l, r);
        self.first(Points::CLUSTER_ORDER, compare).then_with(|| l.cmp(r))
    }

    /// Victims: the one evicted first comes first (actions.md 2.9). `preemptor` is the job that
    /// gets the room.
    pub fn victim_order(
        &self,
        ask: Ask<'_>,
        preemptor: Option<JobId>,
        l: TaskId,
        r: TaskId,
    ) -> Ordering {
        let cluster = ask.cluster;
        let known = |task: TaskId| cluster.tasks[task].job.filter(|&job| in_session(cluster, job));
        let by_task = || self.task_order(ask, r, l);
        match (known(l), known(r)) {
            (Some(a), Some(b)) if a == b => by_task(),
            (None, None) => by_task(),
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => {
                let (queue_l, queue_r) = (cluster.jobs[a].queue, cluster.jobs[b].queue);
                match preemptor.filter(|&own| in_session(cluster, own)) {
                    Some(own) if queue_l != queue_r => {
                        self.victim_queue_order(ask, queue_l, queue_r, cluster.jobs[own].queue)
                    }
                    _ => self.job_order_plugins(ask, b, a).then_with(by_task),
                }
            }
        }
    }
}

/// Jobs without PodGroup, or whose queue does not exist, are no part of a session (core.md 4.8).
pub(crate) fn in_session(cluster: &Cluster, job: JobId) -> bool {
    let row = &cluster.jobs[job];
    row.pod_group.is_some() && cluster.queues[row.queue].present
}
