//! Decisions about quota between queues, and the figures that reports show of it. Specification:
//! cohort.md Part B, core.md 5.3.

use vc_model::{JobId, QueueId, TaskId};
use vc_resource::Fractional;

use super::{Admission, Plugin, QueueShare, SessionView};
use crate::plugin_set::PluginSet;
use crate::quota::{Notice, PreemptionRequest, QueueHeads, QuotaRefusal, Surroundings, Targets};
use crate::report::QuotaUse;

/// A plugin that divides the cluster between queues. Every rule has a neutral default.
pub trait QuotaPlugin: Plugin {
    /// Receives a notice of what an action does.
    fn on_notice(&mut self, _view: SessionView<'_>, _notice: &Notice<'_>) {}
    /// NextQueue: returns the queue that is served next, in place of QueueOrder. `heads` has the
    /// first job of each queue; `wanted` lists the tasks that would complete a job. `None` means
    /// that QueueOrder decides.
    fn next_queue(
        &self,
        _view: SessionView<'_>,
        _heads: &QueueHeads<'_>,
        _wanted: &dyn Fn(JobId) -> Vec<TaskId>,
    ) -> Option<QueueId> {
        None
    }
    /// JobEnqueueable for a plugin whose answer depends on what victim filters protect.
    fn job_enqueueable_among(
        &self,
        view: SessionView<'_>,
        job: JobId,
        _plugins: &PluginSet,
    ) -> Admission {
        self.job_enqueueable(view, job)
    }
    /// PreemptTargets: returns the groups to evict, each as a whole, to make room for a job. The
    /// answer replaces Preemptable and Reclaimable between jobs (cohort.md B.5.4).
    ///
    /// # Errors
    /// Why no group is evicted.
    fn preempt_targets(
        &mut self,
        _wanted: &PreemptionRequest<'_>,
        _around: &mut dyn Surroundings,
    ) -> Result<Targets, QuotaRefusal> {
        Ok(Targets::default())
    }
    /// Returns the queues between which the plugin divides the cluster by weight, in the order of its
    /// list. It is empty for a plugin that divides nothing.
    fn weight_takers(&self) -> Vec<QueueId> {
        Vec::new()
    }
    /// Divides the cluster between [`QuotaPlugin::weight_takers`] by these weights. Called once in each
    /// session, after all plugins are open, if a plugin states QueueWeight.
    fn divide_by(&mut self, _view: SessionView<'_>, _weights: Vec<Fractional>) {}
    /// Returns the deserved amounts and the share of a queue, for reports. Returns `None` if the
    /// plugin knows no share of this queue.
    fn queue_share(&self, _view: SessionView<'_>, _queue: QueueId) -> Option<QueueShare> {
        None
    }
    /// Returns the quota trees with their usage, by path, for reports.
    fn quota_use(&self, _view: SessionView<'_>) -> Vec<QuotaUse> {
        Vec::new()
    }
}
