//! Pod signatures: all that a victim search reads of its task. Tasks with equal signatures fail for
//! the same reasons in the same state. This holds only if every plugin declares that it reads no
//! more ([`crate::Depends`]). The engine's `evictions` tests compare with a search for every task.
//! Specification: actions.md 12.2 S1, S7.

use vc_model::{ClassId, Job, JobId, NetworkTopology, NodeSet, QueueId, TaskId, TaskStatus};

use crate::session::SessionState;

/// All that a plugin may read of a task and its job. Tasks with volumes, claims or nominations have
/// no signature ([`SessionState::pod_signature`]). Namespace and labels are part of it only if filters
/// or scorers read more than rows of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodSignature {
    class: ClassSignature,
    /// The task's [`vc_model::Task::priority`] and `pod_priority`.
    priorities: (i32, i32),
    best_effort: bool,
    /// Two flags: the task may be evicted, and its pod says so itself.
    preemptable: (bool, bool),
    any_revocable_zone: bool,
    /// True if its preemptionPolicy is Never. The evicting actions then search nothing and record
    /// that cause (actions.md 6.5).
    never_preempts: bool,
    queue: QueueId,
    job_priority: i32,
    job_preemptable: bool,
    /// The job. `None` if all its tasks are Pending, so that it holds nothing, and no plugin reads
    /// more of it.
    job: Option<JobId>,
    /// The network topologies of the job and of the policy of its sub-job.
    topology: Topologies,
    /// The sub-job. `None` if neither it nor the job has a network topology.
    sub_job: Option<usize>,
    /// Nodes that allocate found unresolvable.
    unresolvable: NodeSet,
}

type Topologies = (Option<NetworkTopology>, Option<NetworkTopology>);

/// The part of a class that filters and scorers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClassSignature {
    /// Everything except namespace and labels ([`vc_model::Classes::shape_id`]).
    Shape(u64),
    /// The whole class.
    Whole(ClassId),
}

impl PodSignature {
    /// Returns the signature without the unresolvable nodes, as it is before an attempt.
    pub(crate) fn before_attempt(self) -> Self {
        Self { unresolvable: NodeSet::default(), ..self }
    }

    /// Returns the signature as it is before an attempt, without the sub-job of the task.
    pub(crate) fn of_any_sub_job(self) -> Self {
        Self { sub_job: None, ..self.before_attempt() }
    }

    /// Returns the part of the class that filters and scorers read.
    pub(crate) fn class(&self) -> ClassSignature {
        self.class
    }

    /// Returns only the part that determines the candidates and that lasting victim votes read
    /// ([`crate::Inputs::POD_ROW`]).
    pub(crate) fn for_vote(self) -> Self {
        let class = ClassSignature::Shape(0);
        let unresolvable = NodeSet::default();
        let topology = Topologies::default();
        Self { class, never_preempts: false, topology, sub_job: None, unresolvable, ..self }
    }
}

impl SessionState<'_> {
    /// Returns the part of the task's class that filters and scorers read. It is the same for all
    /// tasks of a class and queue in one state.
    pub fn class_signature(&self, task: TaskId) -> ClassSignature {
        let (plugins, view, class) = (self.plugins(), self.view(), self.tasks[task].class);
        match plugins.filters_read_rows(view, task) && !plugins.scorers_read_labels(view, task) {
            true => ClassSignature::Shape(self.classes.shape_id(class)),
            false => ClassSignature::Whole(class),
        }
    }

    /// True if two tasks of a job have equal [`SessionState::pod_signature`]s, without computing them.
    /// Also requires equal nominations and gates.
    pub(crate) fn has_same_signature(&self, task: TaskId, other: TaskId) -> bool {
        let (l, r) = (&self.tasks[task], &self.tasks[other]);
        let unresolvable = |task: TaskId| {
            let errors = self.records.fit_errors.get(task);
            errors.map(|errors| errors.unresolvable()).filter(|set| !set.is_empty())
        };
        l.class == r.class
            && (l.priority, l.pod_priority) == (r.priority, r.pod_priority)
            && (l.best_effort, l.preemptable) == (r.best_effort, r.preemptable)
            && l.marked_preemptable == r.marked_preemptable
            && l.never_preempts == r.never_preempts
            && l.sub_job == r.sub_job
            && (&l.nominated_node, l.gates) == (&r.nominated_node, r.gates)
            && self.plugins().is_signature_complete(self.view(), task)
            && unresolvable(task) == unresolvable(other)
    }

    /// Returns the signature of a task; `class_signature` gives the part of its class. Returns
    /// `None` if a plugin reads more, or if the plain evaluator is selected.
    pub fn pod_signature(
        &self,
        task: TaskId,
        class_signature: impl FnOnce(ClassId) -> ClassSignature,
    ) -> Option<PodSignature> {
        self.is_fast.then(|| self.signature_of(task, class_signature))?
    }

    /// Returns the same with either evaluator.
    pub(crate) fn signature_of(
        &self,
        task: TaskId,
        class_signature: impl FnOnce(ClassId) -> ClassSignature,
    ) -> Option<PodSignature> {
        let (row, class) = (&self.tasks[task], self.class(task));
        let own = row.job?;
        let job = &self.jobs[own];
        let group = job.pod_group.as_ref()?;
        let is_plain = class.volumes.is_empty() && class.resource_claims.is_empty();
        if !is_plain || !self.plugins().is_signature_complete(self.view(), task) {
            return None;
        }
        let errors = self.records.fit_errors.get(task);
        let topology = topologies(job, row.sub_job);
        let sub_job = (topology != Topologies::default()).then_some(row.sub_job);
        let holds_nothing = job.counts.total() == job.counts.of(TaskStatus::Pending);
        Some(PodSignature {
            class: class_signature(row.class),
            priorities: (row.priority, row.pod_priority),
            best_effort: row.best_effort,
            preemptable: (row.preemptable, row.marked_preemptable),
            any_revocable_zone: class.any_revocable_zone,
            never_preempts: row.never_preempts,
            queue: job.queue,
            job_priority: job.priority,
            job_preemptable: group.preemptable,
            job: (!holds_nothing || self.plugins().read_jobs()).then_some(own),
            topology,
            sub_job,
            unresolvable: errors.map(|errors| errors.unresolvable().clone()).unwrap_or_default(),
        })
    }
}

/// Returns the network topologies of a job and of the policy of one of its sub-jobs.
fn topologies(job: &Job, sub_job: usize) -> Topologies {
    let of_job = job.pod_group.as_ref().and_then(|group| group.network_topology.as_deref());
    let policy = job.sub_jobs[sub_job].policy;
    let of_policy = policy.and_then(|policy| job.policies()[policy].network_topology.as_ref());
    (of_job.cloned(), of_policy.cloned())
}
