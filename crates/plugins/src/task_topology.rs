//! Plugin `task-topology`: annotations of a PodGroup say which roles of the job like to share a
//! node and which avoid each other. Tasks that belong together form a bucket, and a node scores by
//! how much of the bucket of a task it has or can get. Specification: plugins-nodes.md 13.

mod buckets;
mod relations;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use vc_conf::{Argument, PluginOption, Warning};
use vc_framework::{
    About, CacheKeys, Depends, EarlierMemory, Effect, Inputs, Outbox, Plugin, PluginEntry,
    PluginMemory, Points, RawScore, Records, ScoreColumn, SessionView, VectorizedPlugin,
};
use vc_model::reads::{self, Read};
use vc_model::{JobId, NodeId, ObjectKey, TaskId, TaskStatus};

use buckets::JobBuckets;
use relations::{RoleRelations, TopologyProblem};

pub(crate) const ENTRY: PluginEntry =
    PluginEntry::new("task-topology", build).arguments(&[&WEIGHT]);

const WEIGHT: Argument<i64> = Argument::new("task-topology.weight", 1, "weight of the score");

/// Score of a node that can get the largest bucket as a whole, before the weight of the plugin.
const BEST: f64 = 100.0;

/// Reason of the event for a job whose annotations are ignored.
const REASON: &str = "InvalidTaskTopology";

struct TaskTopologyPlugin {
    weight: f64,
    /// Jobs with buckets.
    jobs: BTreeMap<JobId, JobBuckets>,
    /// Jobs whose annotations are ignored, in this session.
    ignored: BTreeMap<ObjectKey, (JobId, TopologyProblem)>,
    /// The problems that were reported.
    reported: BTreeSet<(ObjectKey, TopologyProblem)>,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    Box::new(TaskTopologyPlugin {
        weight: WEIGHT.read(&option.arguments, warnings) as f64,
        jobs: BTreeMap::new(),
        ignored: BTreeMap::new(),
        reported: BTreeSet::new(),
    })
}

/// The state that each extension point reads. The buckets of a job are its own state.
const READS: &[(Points, Inputs)] = &[
    (Points::TASK_ORDER, Inputs::IDENTITY),
    (
        Points::BATCH_NODE_ORDER,
        Inputs::IDENTITY.and(Inputs::POD_SHAPE).and(Inputs::NODE_ROW).and(Inputs::JOB_COUNTS),
    ),
    (Points::EVENT_HANDLERS, Inputs::NONE),
];

impl Plugin for TaskTopologyPlugin {
    fn points(&self) -> Points {
        Points::TASK_ORDER.and(Points::BATCH_NODE_ORDER).and(Points::EVENT_HANDLERS)
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    fn as_vectorized(&self) -> Option<&dyn VectorizedPlugin> {
        Some(self)
    }

    /// Returns what is reported, so that nothing is reported again.
    fn memory(&self) -> Option<Box<dyn PluginMemory>> {
        Some(Box::new(self.reported.clone()))
    }

    fn take_over(&mut self, memory: EarlierMemory) {
        self.reported = memory.read().unwrap_or_default();
    }

    /// Builds the buckets of the jobs that wait. It costs one step per job.
    fn open(&mut self, view: SessionView<'_>) {
        self.jobs.clear();
        self.ignored.clear();
        for job in view.all_jobs() {
            let row = &view.cluster.jobs[job];
            let topology = row.pod_group.as_ref().and_then(|group| group.task_topology.as_deref());
            let Some(topology) = topology.filter(|_| 0 < row.counts.of(TaskStatus::Pending)) else {
                continue;
            };
            match RoleRelations::read(row, topology) {
                Ok(relations) => {
                    let buckets = JobBuckets::of(view, job, relations);
                    self.jobs.extend(buckets.map(|buckets| (job, buckets)));
                }
                Err(problem) => {
                    self.ignored.insert(row.key.clone(), (job, problem));
                }
            }
        }
    }

    fn close(&mut self, view: SessionView<'_>, _: &Records, out: &mut Outbox) {
        self.report(view, out);
    }

    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        let job = view.cluster.tasks[task].job;
        if let Some(buckets) = job.and_then(|job| self.jobs.get_mut(&job)) {
            buckets.allocated(view, task);
        }
    }

    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        let job = view.cluster.tasks[task].job;
        if let Some(buckets) = job.and_then(|job| self.jobs.get_mut(&job)) {
            buckets.deallocated(view, task);
        }
    }

    /// Tasks of a bucket go before others, and large buckets before small ones.
    fn task_order(&self, view: SessionView<'_>, l: TaskId, r: TaskId) -> Ordering {
        let (Some((l_job, l_buckets)), Some((_, r_buckets))) =
            (self.buckets(view, l), self.buckets(view, r))
        else {
            return Ordering::Equal;
        };
        let (l_place, r_place) = match (l_buckets.bucket_of(l), r_buckets.bucket_of(r)) {
            (Some(l_place), Some(r_place)) => (l_place, r_place),
            (l_place, r_place) => return l_place.is_none().cmp(&r_place.is_none()),
        };
        if view.cluster.tasks[r].job != Some(l_job) {
            return Ordering::Equal;
        }
        let n_unbound = |place: usize| l_buckets.buckets[place].n_unbound();
        let rank = |task: TaskId| l_buckets.relations.rank(&view.cluster.tasks[task].role);
        n_unbound(r_place)
            .cmp(&n_unbound(l_place))
            .then_with(|| l_place.cmp(&r_place))
            .then_with(|| rank(l).cmp(&rank(r)))
    }

    /// It is NodeOrder in Volcano. Here all nodes are scored at once, because such a score is not
    /// kept for pods of the same shape.
    fn batch_node_order(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) -> Result<(), String> {
        let Some((buckets, place)) = self.bucket(view, task) else { return Ok(()) };
        for (score, &node) in out.iter_mut().zip(nodes) {
            *score = buckets.score(view, (task, place), node, self.weight * BEST);
        }
        Ok(())
    }
}

impl CacheKeys for TaskTopologyPlugin {
    /// True if the job of the pod has buckets.
    fn has_own_state(&self, view: SessionView<'_>, task: TaskId) -> bool {
        self.buckets(view, task).is_some()
    }
}

impl VectorizedPlugin for TaskTopologyPlugin {
    /// Tasks in no bucket score 0 everywhere.
    fn columns<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<Vec<ScoreColumn<'a>>> {
        if self.bucket(view, task).is_none() {
            return Some(Vec::new());
        }
        let fill = move |nodes: &[NodeId], out: &mut [f64]| {
            self.batch_node_order(view, task, nodes, out).is_ok()
        };
        Some(vec![ScoreColumn { weight: 1, raw: RawScore::Fractions(Box::new(fill)) }])
    }
}

impl TaskTopologyPlugin {
    /// Returns the job of a task with its buckets. Returns `None` if the job has none.
    fn buckets(&self, view: SessionView<'_>, task: TaskId) -> Option<(JobId, &JobBuckets)> {
        reads::note(Read::OwnState);
        let job = view.cluster.tasks[task].job?;
        Some((job, self.jobs.get(&job)?))
    }

    /// Returns the buckets of the job of a task, and the position of its own. Returns `None` if the
    /// task is in no bucket.
    fn bucket(&self, view: SessionView<'_>, task: TaskId) -> Option<(&JobBuckets, usize)> {
        let (_, buckets) = self.buckets(view, task)?;
        Some((buckets, buckets.bucket_of(task)?))
    }

    /// Reports jobs whose annotations are ignored, each once until its problem changes, in the log
    /// and as an event of the PodGroup.
    fn report(&mut self, view: SessionView<'_>, out: &mut Outbox) {
        for (key, (job, problem)) in &self.ignored {
            if self.reported.contains(&(key.clone(), problem.clone())) {
                continue;
            }
            let TopologyProblem { annotation, text } = problem;
            let message = format!(
                "annotation volcano.sh/task-topology-{annotation}: {text}. The task topology of the \
                 job is ignored. Write names of its tasks, each once in a group, or remove it"
            );
            out.warnings.push(format!("PodGroup {key}: {message}"));
            let Some(group) = &view.cluster.jobs[*job].pod_group else { continue };
            let about = About::PodGroup { key: key.clone(), uid: group.uid.clone() };
            let message = message.into();
            out.effects.push(Effect::Event { about, warning: true, reason: REASON, message });
        }
        let problems = self.ignored.iter();
        self.reported = problems.map(|(key, (_, it))| (key.clone(), it.clone())).collect();
    }
}
