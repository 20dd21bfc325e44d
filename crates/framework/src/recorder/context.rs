//! Maps each recorded read to the inputs it belongs to, given the arguments of the rule.

use rustc_hash::FxHashSet;
use vc_model::reads::Read;
use vc_model::{Cluster, JobId, NodeId, QueueId, TaskId};

use crate::depends::Inputs;

/// The arguments of a rule: task, node, job, queue, candidates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    pub(crate) tasks: &'a [TaskId],
    pub(crate) jobs: &'a [JobId],
    pub(crate) queues: &'a [QueueId],
    pub(crate) nodes: &'a [NodeId],
    pub(crate) candidates: &'a [TaskId],
}

/// The rows that the arguments of a rule name, and those of the candidates.
pub(super) struct Context<'a> {
    cluster: &'a Cluster,
    tasks: &'a [TaskId],
    jobs: Vec<JobId>,
    queues: Vec<QueueId>,
    nodes: FxHashSet<NodeId>,
    candidates: FxHashSet<TaskId>,
    candidate_jobs: FxHashSet<JobId>,
    candidate_queues: FxHashSet<QueueId>,
}

const POD: Inputs =
    Inputs::POD_SIGNATURE.and(Inputs::OWN_QUEUE).and(Inputs::POD_LABELS).and(Inputs::IDENTITY);
/// What the job says about its pod.
const POD_JOB: Inputs = Inputs::POD_ROW.and(Inputs::OWN_QUEUE);
const JOB: Inputs = Inputs::JOB_ROW.and(Inputs::JOB_COUNTS);
const NODE: Inputs = Inputs::NODE_OBJECT.and(Inputs::NODE_ROW);

impl<'a> Context<'a> {
    pub(super) fn new(cluster: &'a Cluster, asked: Asked<'a>) -> Self {
        let job = |&task: &TaskId| cluster.tasks.get(task)?.job;
        let queue = |&job: &JobId| Some(cluster.jobs.get(job)?.queue);
        let node = |&task: &TaskId| cluster.tasks.get(task)?.node;
        let mut jobs: Vec<JobId> = asked.tasks.iter().filter_map(job).collect();
        jobs.extend(asked.jobs);
        let mut queues: Vec<QueueId> = jobs.iter().filter_map(queue).collect();
        queues.extend(asked.queues);
        let mut nodes: FxHashSet<NodeId> = asked.nodes.iter().copied().collect();
        nodes.extend(asked.tasks.iter().chain(asked.candidates).filter_map(node));
        let candidate_jobs: FxHashSet<JobId> = asked.candidates.iter().filter_map(job).collect();
        Self {
            cluster,
            tasks: asked.tasks,
            jobs,
            queues,
            nodes,
            candidates: asked.candidates.iter().copied().collect(),
            candidate_queues: candidate_jobs.iter().filter_map(queue).collect(),
            candidate_jobs,
        }
    }

    /// Returns the inputs one of which must be declared for this read.
    pub(super) fn inputs(&self, read: Read) -> Inputs {
        match read {
            Read::Node(node) if self.nodes.contains(&node) => NODE,
            Read::Task(task) => self.of_task(task, POD.and(JOB)),
            Read::Class(task) => self.of_task(task, Inputs::POD_SHAPE.and(Inputs::POD_LABELS)),
            Read::Job(job) => {
                let parts = Inputs::JOB_REQUEST.and(Inputs::JOB_TOPOLOGY).and(POD_JOB);
                self.of_job(job, JOB.and(parts))
            }
            Read::JobUsage(job) => self.of_job(job, JOB),
            Read::Queue(_) => Inputs::QUEUE_OBJECT,
            Read::QueueUsage(queue) => self.of_queue(queue),
            Read::QueueUsages => Inputs::OTHER_QUEUE_USAGE,
            Read::OwnState => Inputs::IDENTITY,
            Read::Node(_) | Read::OtherPods => Inputs::OTHER_PODS,
            Read::OtherObjects => Inputs::OTHER_OBJECTS,
            Read::Budgets => Inputs::BUDGETS,
            Read::Clock => Inputs::CLOCK,
            Read::Total => Inputs::CLUSTER_TOTAL,
        }
    }

    /// Returns the inputs for a read of a task row. `own` are the inputs if the task is an argument
    /// of the rule.
    fn of_task(&self, task: TaskId, own: Inputs) -> Inputs {
        let row = self.cluster.tasks.get(task);
        let (job, node) = (row.and_then(|row| row.job), row.and_then(|row| row.node));
        let mut inputs = Inputs::NONE;
        if self.tasks.contains(&task) {
            inputs = inputs.and(own);
        } else if job.is_some_and(|job| self.jobs.contains(&job)) {
            // Reading all other pods includes the pods of the same job.
            inputs = inputs.and(JOB).and(Inputs::OTHER_PODS);
        }
        let is_of_candidate = |job| self.candidate_jobs.contains(&job);
        if self.candidates.contains(&task) || job.is_some_and(is_of_candidate) {
            inputs = inputs.and(Inputs::CANDIDATE_ROW);
        }
        if node.is_some_and(|node| self.nodes.contains(&node)) {
            inputs = inputs.and(Inputs::NODE_ROW);
        }
        if inputs == Inputs::NONE { Inputs::OTHER_PODS } else { inputs }
    }

    fn of_job(&self, job: JobId, own: Inputs) -> Inputs {
        let mut inputs = Inputs::NONE;
        if self.jobs.contains(&job) {
            inputs = inputs.and(own);
        }
        if self.candidate_jobs.contains(&job) {
            inputs = inputs.and(Inputs::CANDIDATE_ROW);
        }
        if inputs == Inputs::NONE { Inputs::OTHER_PODS } else { inputs }
    }

    fn of_queue(&self, queue: QueueId) -> Inputs {
        let mut inputs = Inputs::NONE;
        if self.queues.contains(&queue) {
            inputs = inputs.and(Inputs::OWN_QUEUE_USAGE);
        }
        if self.candidate_queues.contains(&queue) {
            inputs = inputs.and(Inputs::CANDIDATE_QUEUE_USAGE);
        }
        if inputs == Inputs::NONE { Inputs::OTHER_QUEUE_USAGE } else { inputs }
    }
}
