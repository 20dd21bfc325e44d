//! Orders: the first plugin that tells two things apart decides, then a default order.
//! Specification: core.md 5.4, 5.6, actions.md 2.3, 2.9.

use std::cmp::Ordering;

use vc_model::{Cluster, JobId, QueueId, TaskId};

use crate::plugin::{CacheKeys, Plugin, SessionView};
use crate::plugin_set::PluginSet;
use crate::points::Points;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// What decides the order of two jobs of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobDecider {
    /// JobOrder of this plugin, with the values that it compares. `None` if it has no texts.
    Plugin(&'static str, Option<(String, String)>),
    /// The creation times of the PodGroups, in whole seconds.
    Created,
    /// Namespace and name.
    Name,
}

impl PluginSet {
    fn first<'a>(
        &'a self,
        point: Points,
        compare: impl Fn(&'a dyn Plugin) -> Ordering,
    ) -> Ordering {
        let mut answers = self.all(point).map(compare);
        answers.find(|answer| answer.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Compares jobs: by plugins, then by age in whole seconds, then by namespace/name.
    pub fn job_order(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        self.job_order_plugins(view, l, r).then_with(|| job_order_by_age(view, l, r))
    }

    /// Returns the same comparison without its last step, the keys. A stable sort of jobs by key
    /// ([`SessionView::all_jobs`]) gives the same order, and the plugins are looked up once.
    pub fn job_comparator<'a>(
        &'a self,
        view: SessionView<'a>,
    ) -> impl Fn(JobId, JobId) -> Ordering + 'a {
        let plugins: Vec<&dyn Plugin> = self.all(Points::JOB_ORDER).collect();
        move |l, r| {
            let mut answers = plugins.iter().map(|plugin| plugin.job_order(view, l, r));
            let decided = answers.find(|answer| answer.is_ne());
            decided.unwrap_or_else(|| created_seconds(view, l).cmp(&created_seconds(view, r)))
        }
    }

    /// Compares jobs by the plugins alone.
    pub fn job_order_plugins(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        self.first(Points::JOB_ORDER, |plugin| plugin.job_order(view, l, r))
    }

    /// Returns what decides the order of two jobs of a queue, with both values.
    pub fn job_decider(&self, view: SessionView<'_>, l: JobId, r: JobId) -> JobDecider {
        let differs = |&&plugin: &&usize| self.plugins[plugin].job_order(view, l, r).is_ne();
        if let Some(&plugin) = self.calls_of(Points::JOB_ORDER).find(differs) {
            let value = |job| self.plugins[plugin].order_value(view, job);
            return JobDecider::Plugin(self.names[plugin], value(l).zip(value(r)));
        }
        match created_seconds(view, l) == created_seconds(view, r) {
            true => JobDecider::Name,
            false => JobDecider::Created,
        }
    }

    /// True if placements and evictions may change the order of jobs that wait.
    pub fn job_order_moves(&self) -> bool {
        !self.job_movers.is_empty()
    }

    /// True if each job has a line, and jobs of one line keep their order.
    pub fn has_job_lines(&self) -> bool {
        self.job_line_keys().is_some_and(CacheKeys::has_job_lines)
    }

    /// Returns the line of a job within its queue ([`CacheKeys::job_line`]).
    pub fn job_line(&self, view: SessionView<'_>, job: JobId) -> u64 {
        self.job_line_keys().map_or(0, |keys| keys.job_line(view, job))
    }

    /// Returns the keys of the plugin that moves jobs. Returns `None` if no plugin or more than one
    /// does.
    fn job_line_keys(&self) -> Option<&dyn CacheKeys> {
        let [mover] = *self.job_movers else { return None };
        self.plugins[mover].as_cache_keys()
    }

    /// Compares queues: by plugins, then by age in whole seconds, then by name.
    pub fn queue_order(&self, view: SessionView<'_>, l: QueueId, r: QueueId) -> Ordering {
        self.first(Points::QUEUE_ORDER, |plugin| plugin.queue_order(view, l, r)).then_with(|| {
            let (l, r) = (&view.cluster.queues[l], &view.cluster.queues[r]);
            let created = |queue: &vc_model::Queue| queue.created_micros / MICROS_PER_SECOND;
            created(l).cmp(&created(r)).then_with(|| l.name.cmp(&r.name))
        })
    }

    /// True if for all plugins the queue has a sort key of its own
    /// ([`crate::CacheKeys::has_total_order_key`]). The order of such queues is total, and a queue
    /// keeps its position until tasks of it or of [`PluginSet::queues_ordered_with`] change.
    pub fn has_total_order_key(&self, view: SessionView<'_>, queue: QueueId) -> bool {
        let by_key = |plugin: &dyn Plugin| {
            plugin.as_cache_keys().is_some_and(|keys| keys.has_total_order_key(view, queue))
        };
        let mut plugins = self.all_with_inputs(Points::QUEUE_ORDER);
        plugins.all(|(plugin, reads)| reads.orders_by_own_queue() || by_key(plugin))
    }

    /// Returns the queues that may be elsewhere in the order after a pod of this queue was placed or
    /// removed. It may name the queue itself.
    pub fn queues_ordered_with(&self, queue: QueueId) -> impl Iterator<Item = QueueId> + '_ {
        let keys = self.queue_order_keys();
        keys.flat_map(move |keys| keys.queues_that_move(queue))
    }

    /// Returns a number by plugin. While they stay the same, the order changes only with pods of
    /// queues.
    pub fn queue_order_revisions(&self) -> Vec<u64> {
        self.queue_order_keys().map(CacheKeys::queue_order_revision).collect()
    }

    fn queue_order_keys(&self) -> impl Iterator<Item = &dyn CacheKeys> {
        self.all(Points::QUEUE_ORDER).filter_map(|plugin| plugin.as_cache_keys())
    }

    /// Compares tasks: by plugins, then by pod index, then by age in whole seconds, then by uid.
    pub fn task_order(&self, view: SessionView<'_>, l: TaskId, r: TaskId) -> Ordering {
        self.first(Points::TASK_ORDER, |plugin| plugin.task_order(view, l, r)).then_with(|| {
            let (l, r) = (&view.cluster.tasks[l], &view.cluster.tasks[r]);
            let by_index = match (l.index, r.index) {
                (Some(l), Some(r)) => l.cmp(&r),
                _ => Ordering::Equal,
            };
            let created = |task: &vc_model::Task| task.created_micros / MICROS_PER_SECOND;
            by_index.then_with(|| created(l).cmp(&created(r))).then_with(|| l.uid.cmp(&r.uid))
        })
    }

    /// Compares sub-jobs of one job: by plugins, then by match index, then by id.
    pub fn sub_job_order(&self, view: SessionView<'_>, job: JobId, l: usize, r: usize) -> Ordering {
        let compare = |plugin: &dyn Plugin| plugin.sub_job_order(view, job, l, r);
        self.first(Points::SUB_JOB_ORDER, compare).then_with(|| {
            let sub_jobs = &view.cluster.jobs[job].sub_jobs;
            let (l, r) = (&sub_jobs[l], &sub_jobs[r]);
            l.match_index.cmp(&r.match_index).then_with(|| l.id.cmp(&r.id))
        })
    }

    /// Compares the queues of two victims: by plugins, else by the reverse queue order.
    pub fn victim_queue_order(
        &self,
        view: SessionView<'_>,
        l: QueueId,
        r: QueueId,
        own: QueueId,
    ) -> Ordering {
        let compare = |plugin: &dyn Plugin| plugin.victim_queue_order(view, l, r, own);
        self.first(Points::VICTIM_QUEUE_ORDER, compare).then_with(|| self.queue_order(view, r, l))
    }

    /// Compares clusters: by plugins, then by name. No caller; kept because Volcano has this point
    /// (core.md 5.3).
    pub fn cluster_order(&self, view: SessionView<'_>, l: &str, r: &str) -> Ordering {
        let compare = |plugin: &dyn Plugin| plugin.cluster_order(view, l, r);
        self.first(Points::CLUSTER_ORDER, compare).then_with(|| l.cmp(r))
    }

    /// Compares victims: `Less` means that `l` is evicted first (actions.md 2.9). `preemptor` is
    /// the job that gets the room.
    pub fn victim_order(
        &self,
        view: SessionView<'_>,
        preemptor: Option<JobId>,
        l: TaskId,
        r: TaskId,
    ) -> Ordering {
        let cluster = view.cluster;
        let known = |task: TaskId| cluster.tasks[task].job.filter(|&job| in_session(cluster, job));
        let by_task = || self.task_order(view, r, l);
        match (known(l), known(r)) {
            (Some(a), Some(b)) if a == b => by_task(),
            (None, None) => by_task(),
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => {
                let (queue_l, queue_r) = (cluster.jobs[a].queue, cluster.jobs[b].queue);
                match preemptor.filter(|&own| in_session(cluster, own)) {
                    Some(own) if queue_l != queue_r => {
                        self.victim_queue_order(view, queue_l, queue_r, cluster.jobs[own].queue)
                    }
                    _ => self.job_order_plugins(view, b, a).then_with(by_task),
                }
            }
        }
    }
}

/// Compares jobs by age in whole seconds, then by namespace/name.
fn job_order_by_age(view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
    let key = |job: JobId| &view.cluster.jobs[job].key;
    let by_age = created_seconds(view, l).cmp(&created_seconds(view, r));
    by_age.then_with(|| key(l).cmp(key(r)))
}

/// Returns when the PodGroup of a job was created, in seconds since 1970.
fn created_seconds(view: SessionView<'_>, job: JobId) -> i64 {
    let group = view.cluster.jobs[job].pod_group.as_ref();
    group.map_or(0, |group| group.created_micros / MICROS_PER_SECOND)
}

/// True if the job is part of a session: it has a PodGroup and its queue exists (core.md 4.8).
pub(crate) fn in_session(cluster: &Cluster, job: JobId) -> bool {
    let row = &cluster.jobs[job];
    row.pod_group.is_some() && cluster.queues[row.queue].present
}
