//! Quota between queues: which queue is served next, and which whole groups are evicted for a job.
//! One plugin decides this together with placement. Specification: cohort.md B.5.2, B.5.4, B.6,
//! B.7.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{JobId, QueueId, TaskId};

use crate::meter::Stopwatch;
use crate::plugin::{Plugin, SessionView};
use crate::plugin_set::PluginSet;

/// Which groups may be evicted, by queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionSides {
    /// True if groups of the preemptor's queue may be evicted.
    pub own: bool,
    /// True if groups of other queues may be evicted.
    pub others: bool,
}

impl EvictionSides {
    /// Returns the sides from which the actions of these names may evict.
    pub fn of<'a>(actions: impl Iterator<Item = &'a str>) -> Self {
        let mut sides = Self::default();
        for action in actions {
            sides.own |= matches!(action, "preempt" | "gangpreempt");
            sides.others |= matches!(action, "reclaim" | "gangreclaim");
        }
        sides
    }
}

/// The first job of each queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueHeads<'a> {
    /// First job by queue. Queues without a waiting job are absent.
    pub jobs: &'a BTreeMap<QueueId, JobId>,
    /// Changes since the previous call.
    pub news: HeadChanges<'a>,
}

/// Which cached heads of queues are still valid since the previous call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadChanges<'a> {
    /// Nothing is cached: the plain evaluator computes each answer anew.
    Unknown,
    /// Every head may have changed; the answer of this call may be cached for the next one.
    All,
    /// Only these queues have a new head. The request of any head may still have changed, if its
    /// tasks were placed or removed.
    Only(&'a [QueueId]),
}

/// A job that needs room.
#[derive(Clone, Copy, Debug)]
pub struct PreemptionRequest<'a> {
    /// The job.
    pub job: JobId,
    /// The tasks that complete the job, in the order of placement.
    pub tasks: &'a [TaskId],
    /// Which groups may be evicted for it.
    pub sides: EvictionSides,
}

/// A group that is evicted as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetGroup {
    /// The group.
    pub job: JobId,
    /// Reason why it may be evicted, for its condition.
    pub reason: &'static str,
    /// Message why it may be evicted, with the names of both jobs.
    pub message: Arc<str>,
}

/// The groups to evict for a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// Groups in the order in which they were chosen. Empty if the job fits without evictions.
    pub groups: Vec<TargetGroup>,
}

/// Refusal of a quota search: no group is evicted for the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaRefusal {
    /// Cause out of a fixed list, for metrics.
    pub cause: &'static str,
    /// The cause as a message.
    pub text: String,
}

/// A notice of an action to the plugins about its progress.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// Allocate found no place for the job.
    NotPlaced {
        /// The job.
        job: JobId,
        /// The tasks that would complete the job.
        tasks: &'a [TaskId],
    },
    /// The pods of the job may not preempt, so no victims are searched.
    MayNotPreempt {
        /// The job.
        job: JobId,
        /// The tasks that would complete the job.
        tasks: &'a [TaskId],
    },
    /// Allocate has ended.
    AllocateEnds,
    /// The eviction hold of the job has ended.
    EvictionHoldEnds(JobId),
    /// The groups are evicted for the job.
    Preempted {
        /// The job.
        job: JobId,
        /// The groups whose pods are evicted.
        groups: &'a [TargetGroup],
    },
}

/// Operations of the session that a quota search needs.
pub trait Surroundings {
    /// Returns the present state.
    fn view(&self) -> SessionView<'_>;
    /// Returns the other plugins.
    fn plugins(&self) -> &PluginSet;
    /// Returns the plugin set, out of which one plugin is lent for the search.
    fn plugins_mut(&mut self) -> &mut PluginSet;
    /// True if the group may be evicted together with the groups in `taken`.
    fn may_take(&mut self, taken: &[JobId], group: JobId) -> bool;
    /// True if the job has a place when these groups are gone. The state is restored afterwards.
    fn has_place(&mut self, taken: &[JobId]) -> bool;
}

/// Placeholder for a plugin that is lent out; it ignores every notice.
struct NoEvictions;

impl Plugin for NoEvictions {
    fn points(&self) -> crate::points::Points {
        crate::points::Points::NONE
    }
}

/// Returns the targets of the plugin that decides them. Meanwhile its surroundings try out what it
/// considers; they undo every trial, so the plugin needs no notices. Returns `None` if there is no
/// such plugin.
///
/// # Errors
/// The reason why no group is evicted for the job.
pub fn preempt_targets(
    around: &mut dyn Surroundings,
    wanted: &PreemptionRequest<'_>,
) -> Option<Result<Targets, QuotaRefusal>> {
    let (place, mut plugin) = around.plugins_mut().lend(Box::new(NoEvictions))?;
    let answer = match around.plugins_mut().search_meter().0 {
        None => targets(&mut *plugin, wanted, around),
        Some(stopwatch) => {
            let start = stopwatch();
            let mut timed = TimedTrial { around, stopwatch, trials: 0 };
            let answer = targets(&mut *plugin, wanted, &mut timed);
            let nanos = stopwatch().saturating_sub(start + timed.trials);
            *around.plugins_mut().search_meter().1 += nanos;
            answer
        }
    };
    around.plugins_mut().take_back(place, plugin);
    Some(answer)
}

/// Returns the targets of the plugin. There are none if the plugin decides nothing.
fn targets(
    plugin: &mut dyn Plugin,
    wanted: &PreemptionRequest<'_>,
    around: &mut dyn Surroundings,
) -> Result<Targets, QuotaRefusal> {
    match plugin.as_quota_mut() {
        Some(quota) => quota.preempt_targets(wanted, around),
        None => Ok(Targets::default()),
    }
}

/// Measures the time of trial placements, which does not count as search time (cohort.md B.11).
struct TimedTrial<'a> {
    around: &'a mut dyn Surroundings,
    stopwatch: Stopwatch,
    trials: u64,
}

impl Surroundings for TimedTrial<'_> {
    fn view(&self) -> SessionView<'_> {
        self.around.view()
    }

    fn plugins(&self) -> &PluginSet {
        self.around.plugins()
    }

    fn plugins_mut(&mut self) -> &mut PluginSet {
        self.around.plugins_mut()
    }

    fn may_take(&mut self, taken: &[JobId], group: JobId) -> bool {
        self.around.may_take(taken, group)
    }

    fn has_place(&mut self, taken: &[JobId]) -> bool {
        let start = (self.stopwatch)();
        let has_place = self.around.has_place(taken);
        self.trials += (self.stopwatch)().saturating_sub(start);
        has_place
    }
}
