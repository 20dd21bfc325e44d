//! What may be read of a task that looks for victims. Tasks that agree in it fail for the same
//! reasons in the same state, as long as every plugin says that it reads no more
//! (`Plugin::knows_askers`). The engine's `evictions` tests compare with a search for every task.
//! Specification: actions.md 12.2 S1, S7.

use vc_model::{ClassId, Id, JobId, NodeSet, QueueId, TaskId, TaskStatus};

use crate::session::Session;

/// What a plugin may read of a task and its job. Volumes, claims and nominations are no part of it:
/// tasks that have any are not [`Session::asker`]s. Namespace and labels are part of it only where
/// filters or scorers read more than rows of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asker {
    class: AskerClass,
    /// Of the task: [`vc_model::Task::priority`] and `pod_priority`.
    priorities: (i32, i32),
    best_effort: bool,
    /// Whether it may be evicted, and that it says so.
    preemptable: (bool, bool),
    any_revocable_zone: bool,
    /// Its policy is Never: the evicting actions look for nothing, and say so (actions.md 6.5).
    never_preempts: bool,
    queue: QueueId,
    job_priority: i32,
    job_preemptable: bool,
    /// `None`: all its tasks are Pending, so it holds nothing, and no plugin reads more of it.
    job: Option<JobId>,
    /// Where eviction cannot help, as allocate has found.
    hopeless: NodeSet,
}

/// What of a class matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AskerClass {
    /// All but namespace and labels ([`vc_model::Classes::serial`]).
    Shape(u64),
    /// Everything.
    Whole(ClassId),
}

impl Asker {
    /// What of it is read before anything is found.
    pub(crate) fn of_attempt(self) -> Self {
        Self { hopeless: NodeSet::default(), ..self }
    }

    /// What of it says who is a candidate, and what votes about victims read that last
    /// ([`crate::Plugin::votes_by_job`]).
    pub(crate) fn of_vote(self) -> Self {
        let class = AskerClass::Shape(0);
        Self { class, never_preempts: false, hopeless: NodeSet::default(), ..self }
    }

    /// What of it filters read, whoever asks in whatever queue. `None`: more than rows of nodes.
    pub fn for_filters(&self) -> Option<Self> {
        match self.class {
            AskerClass::Whole(_) => None,
            AskerClass::Shape(_) => Some(Self {
                priorities: (0, 0),
                preemptable: (false, false),
                any_revocable_zone: false,
                never_preempts: false,
                queue: QueueId::new(0),
                job_priority: 0,
                job_preemptable: false,
                job: None,
                ..self.clone()
            }),
        }
    }
}

impl Session<'_> {
    /// What of the class of the task filters and scorers read; the same for all tasks of a class in
    /// one state.
    pub fn asker_class(&self, task: TaskId) -> AskerClass {
        let (hooks, ask, class) = (self.hooks(), self.ask(), self.tasks[task].class);
        match hooks.filters_read_rows(ask, task) && hooks.scorers_read_rows(ask, task) {
            true => AskerClass::Shape(self.classes.serial(class)),
            false => AskerClass::Whole(class),
        }
    }

    /// Whether two tasks of a job have one [`Session::asker`], seen without making it; nor is one of
    /// them nominated or gated if the other is not.
    pub(crate) fn asks_as(&self, task: TaskId, other: TaskId) -> bool {
        let (l, r) = (&self.tasks[task], &self.tasks[other]);
        let hopeless = |task: TaskId| {
            let errors = self.records.fit_errors.get(&task);
            errors.map(|errors| errors.unresolvable()).filter(|set| !set.is_empty())
        };
        l.class == r.class
            && (l.priority, l.pod_priority) == (r.priority, r.pod_priority)
            && (l.best_effort, l.preemptable) == (r.best_effort, r.preemptable)
            && l.marked_preemptable == r.marked_preemptable
            && l.never_preempts == r.never_preempts
            && (&l.nominated_node, l.gates) == (&r.nominated_node, r.gates)
            && self.hooks().know_asker(self.ask(), task)
            && hopeless(task) == hopeless(other)
    }

    /// What plugins read of the task, given what matters of its class. `None`: one reads more, or the plain evaluator is selected.
    pub fn asker(
        &self,
        task: TaskId,
        asker_class: impl FnOnce(ClassId) -> AskerClass,
    ) -> Option<Asker> {
        let (row, class) = (&self.tasks[task], self.class(task));
        let own = row.job?;
        let job = &self.jobs[own];
        let group = job.pod_group.as_ref()?;
        let is_plain = class.volumes.is_empty() && class.resource_claims.is_empty();
        if !self.is_fast() || !is_plain || !self.hooks().know_asker(self.ask(), task) {
            return None;
        }
        let errors = self.records.fit_errors.get(&task);
        let holds_nothing = job.counts.total() == job.counts.of(TaskStatus::Pending);
        Some(Asker {
            class: asker_class(row.class),
            priorities: (row.priority, row.pod_priority),
            best_effort: row.best_effort,
            preemptable: (row.preemptable, row.marked_preemptable),
            any_revocable_zone: class.any_revocable_zone,
            never_preempts: row.never_preempts,
            queue: job.queue,
            job_priority: job.priority,
            job_preemptable: group.preemptable,
            job: (!holds_nothing || self.hooks().read_jobs(self.ask())).then_some(own),
            hopeless: errors.map(|errors| errors.unresolvable().clone()).unwrap_or_default(),
        })
    }
}
