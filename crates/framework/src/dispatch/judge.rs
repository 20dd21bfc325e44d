//! What plugins say of jobs and queues, and how their votes combine. Specification: core.md 5.3,
//! actions.md 2.3.

use std::sync::Arc;

use vc_model::{JobId, QueueId, TaskId};
use vc_resource::Dim;

use crate::dispatch::Dispatch;
use crate::limit::QueueLimit;
use crate::plugin::{Admission, Ask, Invalid, Plugin, Vote};
use crate::points::Points;

/// A job is not admitted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// The plugin.
    pub by: &'static str,
    /// Of the Normal event `Unschedulable` on the PodGroup, if there is one.
    pub message: Option<String>,
}

impl Refusal {
    /// Why the pods of the job wait.
    pub fn text(&self) -> Arc<str> {
        match &self.message {
            Some(message) => message.as_str().into(),
            None => format!("plugin {} does not admit the PodGroup to its queue", self.by).into(),
        }
    }
}

impl Dispatch {
    /// First failure wins; has no switch.
    ///
    /// # Errors
    /// Reason and message of the plugin that refuses the job.
    pub fn job_valid(&self, ask: Ask<'_>, job: JobId) -> Result<(), Invalid> {
        self.all(Points::JOB_VALID).try_for_each(|plugin| plugin.job_valid(ask, job))
    }

    /// All must agree, over all tiers.
    pub fn job_ready(&self, ask: Ask<'_>, job: JobId) -> bool {
        self.all(Points::JOB_READY).all(|plugin| plugin.job_ready(ask, job))
    }

    /// All must agree; a job without policies is asked as a job.
    pub fn sub_job_ready(&self, ask: Ask<'_>, job: JobId, sub_job: usize) -> bool {
        if ask.cluster.jobs[job].policies().is_empty() {
            return self.job_ready(ask, job);
        }
        self.all(Points::SUB_JOB_READY).all(|plugin| plugin.sub_job_ready(ask, job, sub_job))
    }

    /// Votes by tier.
    pub fn job_pipelined(&self, ask: Ask<'_>, job: JobId) -> bool {
        let tiers = self.tiers(Points::JOB_PIPELINED);
        vote(tiers.map(|tier| tier.map(|plugin| plugin.job_pipelined(ask, job))))
    }

    /// Votes by tier; a job without policies is asked as a job.
    pub fn sub_job_pipelined(&self, ask: Ask<'_>, job: JobId, sub_job: usize) -> bool {
        if ask.cluster.jobs[job].policies().is_empty() {
            return self.job_pipelined(ask, job);
        }
        let tiers = self.tiers(Points::SUB_JOB_PIPELINED);
        vote(tiers.map(|tier| tier.map(|plugin| plugin.sub_job_pipelined(ask, job, sub_job))))
    }

    /// The first tier with a plugin decides, all of its plugins must agree; nobody: not starving.
    pub fn job_starving(&self, ask: Ask<'_>, job: JobId) -> bool {
        let mut tiers = self.tiers(Points::JOB_STARVING).map(Iterator::peekable);
        let first = tiers.find_map(|mut tier| tier.peek().is_some().then_some(tier));
        first.is_some_and(|mut tier| tier.all(|plugin| plugin.job_starving(ask, job)))
    }

    /// Votes by tier; who rejects the job comes back (actions.md 10.6).
    ///
    /// # Errors
    /// The plugin that rejects it.
    pub fn job_enqueueable(&self, ask: Ask<'_>, job: JobId) -> Result<(), Refusal> {
        let tiers = self.calls.get(Points::JOB_ENQUEUEABLE.index());
        for tier in tiers.into_iter().flatten() {
            let mut permitted = false;
            for &plugin in tier {
                match self.plugins[plugin].job_enqueueable_among(ask, job, self) {
                    Admission::Reject(message) => {
                        return Err(Refusal { by: self.names[plugin], message });
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

    /// The marks of the job, one for each plugin that votes on its admission, and until when it has
    /// them, in microseconds since 1970. `None`: one reads more of it.
    pub(crate) fn admits_alike(&self, ask: Ask<'_>, job: JobId) -> Option<(Vec<bool>, i64)> {
        let (mut marks, mut until_micros) = (Vec::new(), i64::MAX);
        for plugin in self.all(Points::JOB_ENQUEUEABLE) {
            let marked = plugin.admits_alike(ask, job)?;
            marks.push(marked.mark);
            until_micros = until_micros.min(marked.until_micros.unwrap_or(i64::MAX));
        }
        Some((marks, until_micros))
    }

    /// Everyone is told.
    pub fn job_enqueued(&mut self, ask: Ask<'_>, job: JobId) {
        let tiers = self.calls.get(Points::JOB_ENQUEUED.index());
        for &plugin in tiers.into_iter().flatten().flatten() {
            self.plugins[plugin].job_enqueued(ask, job);
        }
    }

    /// Everyone is told to choose the nodes to hold. No action tells (core.md 5.3).
    pub fn reserved_nodes(&mut self, ask: Ask<'_>) {
        let tiers = self.calls.get(Points::RESERVED_NODES.index());
        for &plugin in tiers.into_iter().flatten().flatten() {
            self.plugins[plugin].reserved_nodes(ask);
        }
    }

    /// The first registered plugin decides. No action asks (core.md 5.3).
    pub fn target_job(&self, ask: Ask<'_>, jobs: &[JobId]) -> Option<JobId> {
        self.all(Points::TARGET_JOB).next()?.target_job(ask, jobs)
    }

    /// One is enough.
    pub fn overused(&self, ask: Ask<'_>, queue: QueueId) -> bool {
        self.all(Points::OVERUSED).any(|plugin| plugin.overused(ask, queue))
    }

    /// All must agree.
    ///
    /// # Errors
    /// The dimensions that the refusing plugin names (A20).
    pub fn allocatable(&self, ask: Ask<'_>, queue: QueueId, task: TaskId) -> Result<(), Vec<Dim>> {
        let refusing = |plugin: &&dyn Plugin| !plugin.allocatable(ask, queue, task);
        match self.all(Points::ALLOCATABLE).find(refusing) {
            Some(plugin) => Err(plugin.allocatable_lacks(ask, queue, task)),
            None => Ok(()),
        }
    }

    /// The first limit that these tasks of the queue together would exceed, for messages.
    pub fn queue_limit(
        &self,
        ask: Ask<'_>,
        queue: QueueId,
        tasks: &[TaskId],
    ) -> Option<QueueLimit> {
        self.all(Points::ALLOCATABLE).find_map(|plugin| plugin.queue_limit(ask, queue, tasks))
    }

    /// The first limit that the job would exceed if it was admitted, for messages.
    pub fn admission_limit(&self, ask: Ask<'_>, job: JobId) -> Option<QueueLimit> {
        self.all(Points::JOB_ENQUEUEABLE).find_map(|plugin| plugin.admission_limit(ask, job))
    }

    /// All must agree.
    pub fn preemptive(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.all(Points::PREEMPTIVE).all(|plugin| plugin.preemptive(ask, queue, tasks))
    }
}

/// Any reject before a decision: no; a tier with a permit decides: yes; nobody: yes (core.md 5.3).
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
