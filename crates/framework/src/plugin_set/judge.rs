//! Answers of the plugins about jobs and queues, and how votes combine. Specification: core.md 5.3,
//! actions.md 2.3.

use std::sync::Arc;

use vc_model::{JobId, QueueId, TaskId};
use vc_resource::Dim;

use crate::atom::Atom;
use crate::limit::{LimitFact, QueueLimit};
use crate::plugin::{
    Admission, AdmissionKey, AdmissionMark, JobInvalid, Plugin, SessionView, Vote,
};
use crate::plugin_set::PluginSet;
use crate::points::Points;

/// The refusal of a job at admission.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EnqueueRefusal {
    /// The plugin that refuses it.
    pub by: &'static str,
    /// Message of the Normal event `Unschedulable` on the PodGroup, if there is one.
    pub message: Option<String>,
}

/// The refusal of a task by a plugin that divides the cluster between queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareRefusal {
    /// The plugin.
    pub by: &'static str,
    /// The limit on which its vote turned. `None` if the plugin has no numbers.
    pub limit: Option<QueueLimit>,
}

impl EnqueueRefusal {
    /// Returns the text that says why the pods of the job wait.
    pub fn text(&self) -> Arc<str> {
        match &self.message {
            Some(message) => message.as_str().into(),
            None => format!("plugin {} does not admit the PodGroup to its queue", self.by).into(),
        }
    }
}

impl PluginSet {
    /// Checks whether the job is valid. The first failure wins; no switch guards this point.
    ///
    /// # Errors
    /// Reason and message of the plugin that refuses the job.
    pub fn job_valid(&self, view: SessionView<'_>, job: JobId) -> Result<(), JobInvalid> {
        self.all(Points::JOB_VALID).try_for_each(|plugin| plugin.job_valid(view, job))
    }

    /// True if all plugins of all tiers say that the job is ready.
    pub fn job_ready(&self, view: SessionView<'_>, job: JobId) -> bool {
        self.all(Points::JOB_READY).all(|plugin| plugin.job_ready(view, job))
    }

    /// True if all plugins say that the sub-job is ready. For a job without policies this is
    /// [`PluginSet::job_ready`].
    pub fn sub_job_ready(&self, view: SessionView<'_>, job: JobId, sub_job: usize) -> bool {
        if view.cluster.jobs[job].policies().is_empty() {
            return self.job_ready(view, job);
        }
        self.all(Points::SUB_JOB_READY).all(|plugin| plugin.sub_job_ready(view, job, sub_job))
    }

    /// True if the placed tasks of the job may wait for room, by a vote over the tiers.
    pub fn job_pipelined(&self, view: SessionView<'_>, job: JobId) -> bool {
        let tiers = self.tiers(Points::JOB_PIPELINED);
        vote(tiers.map(|tier| tier.map(|plugin| plugin.job_pipelined(view, job))))
    }

    /// True if the placed tasks of the sub-job may wait for room, by a vote over the tiers. For a
    /// job without policies this is [`PluginSet::job_pipelined`].
    pub fn sub_job_pipelined(&self, view: SessionView<'_>, job: JobId, sub_job: usize) -> bool {
        if view.cluster.jobs[job].policies().is_empty() {
            return self.job_pipelined(view, job);
        }
        let tiers = self.tiers(Points::SUB_JOB_PIPELINED);
        vote(tiers.map(|tier| tier.map(|plugin| plugin.sub_job_pipelined(view, job, sub_job))))
    }

    /// True if all plugins of the first tier that states JobStarving agree. False if no plugin
    /// states it.
    pub fn job_starving(&self, view: SessionView<'_>, job: JobId) -> bool {
        let mut tiers = self.tiers(Points::JOB_STARVING).map(Iterator::peekable);
        let first = tiers.find_map(|mut tier| tier.peek().is_some().then_some(tier));
        first.is_some_and(|mut tier| tier.all(|plugin| plugin.job_starving(view, job)))
    }

    /// Votes on the admission of the job, tier by tier (actions.md 10.6).
    ///
    /// # Errors
    /// The plugin that rejects the job, with its message.
    pub fn job_enqueueable(&self, view: SessionView<'_>, job: JobId) -> Result<(), EnqueueRefusal> {
        let tiers = self.calls.get(Points::JOB_ENQUEUEABLE.index());
        for tier in tiers.into_iter().flatten() {
            let mut permitted = false;
            for &plugin in tier {
                if self.is_lifted(&Atom::Admission(self.names[plugin])) {
                    continue;
                }
                let plugin_object = &self.plugins[plugin];
                let answer = match plugin_object.as_quota() {
                    Some(quota) => quota.job_enqueueable_among(view, job, self),
                    None => plugin_object.job_enqueueable(view, job),
                };
                match answer {
                    Admission::Reject(message) => {
                        return Err(EnqueueRefusal { by: self.names[plugin], message });
                    }
                    Admission::Permit => permitted = true,
                    Admission::Abstain => {}
                }
            }
            if permitted {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the admission marks of the job, one per plugin, and the time until which they hold,
    /// in microseconds since 1970. Returns `None` if a plugin reads more of the job than a mark.
    pub(crate) fn admission_mark(
        &self,
        view: SessionView<'_>,
        job: JobId,
    ) -> Option<(Vec<bool>, i64)> {
        let (mut marks, mut until_micros) = (Vec::new(), i64::MAX);
        for (plugin, reads) in self.all_with_inputs(Points::JOB_ENQUEUEABLE) {
            let key = plugin.as_cache_keys().map(|keys| keys.admission_mark(view, job));
            let marked = match key.unwrap_or(AdmissionKey::AsDeclared) {
                AdmissionKey::AsDeclared if reads.admits_by_request() => AdmissionMark::default(),
                AdmissionKey::Marked(marked) => marked,
                AdmissionKey::AsDeclared | AdmissionKey::None => return None,
            };
            marks.push(marked.mark);
            until_micros = until_micros.min(marked.until_micros.unwrap_or(i64::MAX));
        }
        Some((marks, until_micros))
    }

    /// Calls every plugin that states JobEnqueued.
    pub fn job_enqueued(&mut self, view: SessionView<'_>, job: JobId) {
        let tiers = self.calls.get(Points::JOB_ENQUEUED.index());
        for &plugin in tiers.into_iter().flatten().flatten() {
            self.plugins[plugin].job_enqueued(view, job);
        }
    }

    /// Calls every plugin that states ReservedNodes. No caller; kept because Volcano has this point
    /// (core.md 5.3).
    pub fn reserved_nodes(&mut self, view: SessionView<'_>) {
        let tiers = self.calls.get(Points::RESERVED_NODES.index());
        for &plugin in tiers.into_iter().flatten().flatten() {
            self.plugins[plugin].reserved_nodes(view);
        }
    }

    /// Returns the choice of the first plugin that states TargetJob. No caller; kept because
    /// Volcano has this point (core.md 5.3).
    pub fn target_job(&self, view: SessionView<'_>, jobs: &[JobId]) -> Option<JobId> {
        self.all(Points::TARGET_JOB).next()?.target_job(view, jobs)
    }

    /// True if at least one plugin calls the queue overused.
    pub fn overused(&self, view: SessionView<'_>, queue: QueueId) -> bool {
        if self.lens.is_some() {
            return self.overused_by(view, queue).is_some();
        }
        self.all(Points::OVERUSED).any(|plugin| plugin.overused(view, queue))
    }

    /// Returns the first plugin that calls the queue overused. A trial may have lifted some.
    pub fn overused_by(&self, view: SessionView<'_>, queue: QueueId) -> Option<&'static str> {
        let overused = |&&plugin: &&usize| {
            !self.is_lifted(&Atom::Share(self.names[plugin]))
                && self.plugins[plugin].overused(view, queue)
        };
        let found = self.calls_of(Points::OVERUSED).find(overused);
        found.map(|&plugin| self.names[plugin])
    }

    /// Checks whether all plugins have room for the task in the queue.
    ///
    /// # Errors
    /// The dimensions in which the refusing plugin has no room (A20: they go into the task's fit
    /// message).
    pub fn allocatable(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        task: TaskId,
    ) -> Result<(), Vec<Dim>> {
        let refusing = |plugin: &&dyn Plugin| !plugin.allocatable(view, queue, task);
        let refused = match self.lens.is_some() {
            true => self.not_allocatable_by(view, queue, task).map(|plugin| self.plugin(plugin)),
            false => self.all(Points::ALLOCATABLE).find(refusing),
        };
        match refused {
            Some(plugin) => Err(plugin.allocatable_lacks(view, queue, task)),
            None => Ok(()),
        }
    }

    /// Returns the first plugin without room for the task in the queue that no trial has lifted.
    fn not_allocatable_by(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        task: TaskId,
    ) -> Option<usize> {
        let refuses = |&&plugin: &&usize| {
            !self.is_lifted(&Atom::Share(self.names[plugin]))
                && !self.plugins[plugin].allocatable(view, queue, task)
        };
        self.calls_of(Points::ALLOCATABLE).find(refuses).copied()
    }

    /// Returns why the queue gets no turn for the task: the plugin that calls it overused, else the
    /// plugin without room for the task. Returns `None` if it gets a turn.
    pub fn share_refusal(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        task: TaskId,
    ) -> Option<ShareRefusal> {
        let by = match self.overused_by(view, queue) {
            Some(by) => self.names.iter().position(|name| *name == by)?,
            None => self.not_allocatable_by(view, queue, task)?,
        };
        let limit = self.plugins[by].queue_limit(view, queue, &[task]);
        Some(ShareRefusal { by: self.names[by], limit })
    }

    /// Returns the limit of the named plugin that the job would exceed if it were admitted.
    pub fn admission_limit_of(
        &self,
        view: SessionView<'_>,
        job: JobId,
        plugin: &str,
    ) -> Option<QueueLimit> {
        let mut plugins = self.calls_of(Points::JOB_ENQUEUEABLE);
        let plugin = plugins.find(|&&number| self.names[number] == plugin)?;
        self.plugins[*plugin].admission_limit(view, job)
    }

    /// Returns the limit of the named plugin that these tasks of the queue together would exceed.
    pub fn queue_limit_of(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        tasks: &[TaskId],
        plugin: &str,
    ) -> Option<QueueLimit> {
        let plugin = self.names.iter().position(|name| *name == plugin)?;
        self.plugins[plugin].queue_limit(view, queue, tasks)
    }

    /// Returns the amounts on which the vote of the named plugin on the job turned, if they are no
    /// [`QueueLimit`].
    pub fn admission_facts_of(
        &self,
        view: SessionView<'_>,
        job: JobId,
        plugin: &str,
    ) -> Vec<LimitFact> {
        let mut plugins = self.calls_of(Points::JOB_ENQUEUEABLE);
        let plugin = plugins.find(|&&number| self.names[number] == plugin);
        plugin.map_or_else(Vec::new, |&number| self.plugins[number].admission_facts(view, job))
    }

    /// Returns the first limit that these tasks of the queue together would exceed, for messages.
    pub fn queue_limit(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        tasks: &[TaskId],
    ) -> Option<QueueLimit> {
        self.all(Points::ALLOCATABLE).find_map(|plugin| plugin.queue_limit(view, queue, tasks))
    }

    /// Returns the first limit that the job would exceed if it were admitted, for messages.
    pub fn admission_limit(&self, view: SessionView<'_>, job: JobId) -> Option<QueueLimit> {
        self.all(Points::JOB_ENQUEUEABLE).find_map(|plugin| plugin.admission_limit(view, job))
    }

    /// True if all plugins let the queue reclaim for all these tasks together.
    pub fn preemptive(&self, view: SessionView<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.all(Points::PREEMPTIVE).all(|plugin| plugin.preemptive(view, queue, tasks))
    }
}

/// Combines votes by tier (core.md 5.3). A reject means no. A tier with a permit and no reject
/// means yes. Without any such tier the answer is yes.
fn vote(tiers: impl Iterator<Item = impl Iterator<Item = Vote>>) -> bool {
    for tier in tiers {
        let mut permitted = false;
        for vote in tier {
            match vote {
                Vote::Reject => return false,
                Vote::Permit => permitted = true,
                Vote::Abstain => {}
            }
        }
        if permitted {
            return true;
        }
    }
    true
}
