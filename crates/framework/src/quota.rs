//! Quota between queues: which queue is next, and which whole groups go for a job, decided by one
//! plugin together with placement. Specification: cohort.md B.5.2, B.5.4, B.6, B.7.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{JobId, QueueId, TaskId};

use crate::dispatch::Dispatch;
use crate::meter::Stopwatch;
use crate::plugin::{Ask, Plugin};

/// Whose groups may be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    /// Of the preemptor's queue.
    pub own: bool,
    /// Of other queues.
    pub others: bool,
}

impl Sides {
    /// Those that the actions of these names may take from.
    pub fn of<'a>(actions: impl Iterator<Item = &'a str>) -> Self {
        let mut sides = Self::default();
        for action in actions {
            sides.own |= matches!(action, "preempt" | "gangpreempt");
            sides.others |= matches!(action, "reclaim" | "gangreclaim");
        }
        sides
    }
}

/// The jobs that are first in their queues.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    /// By queue; a queue in which no job waits is not in.
    pub jobs: &'a BTreeMap<QueueId, JobId>,
    /// What is different from the question before.
    pub news: News<'a>,
}

/// What may be remembered of the heads of queues from one question to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// Nothing: the rule itself answers, as the plain evaluator has it.
    Unknown,
    /// Everything from now on; of this question nothing is known.
    All,
    /// The other queues have the heads that they had. What a head asks for may be something else all
    /// the same, if tasks of it were placed or have gone.
    Only(&'a [QueueId]),
}

/// A job that wants to be accommodated.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The job.
    pub job: JobId,
    /// The tasks that complete it, in the order in which they are placed.
    pub tasks: &'a [TaskId],
    /// Whose groups may be taken for it.
    pub sides: Sides,
}

/// A group that goes as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetGroup {
    /// The group.
    pub job: JobId,
    /// Why it may be taken; the reason of its condition.
    pub reason: &'static str,
    /// The same for people, with the names of both.
    pub message: Arc<str>,
}

/// What is to be done for a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// In the order in which they were taken; empty: the job fits as it is.
    pub groups: Vec<TargetGroup>,
}

/// Why nothing is done for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaRefusal {
    /// One of a fixed list, for metrics.
    pub cause: &'static str,
    /// For people.
    pub text: String,
}

/// What an action tells about its own course.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// Allocate has no place for the job, of which these tasks are still to be placed.
    NotPlaced {
        /// The job.
        job: JobId,
        /// Those that would complete it.
        tasks: &'a [TaskId],
    },
    /// The pods of the job may not preempt; nobody is asked who would go for them.
    MayNotPreempt {
        /// The job.
        job: JobId,
        /// Those that would complete it.
        tasks: &'a [TaskId],
    },
    /// Allocate is through.
    AllocateEnds,
    /// What was kept for the job is kept no longer.
    ClaimEnds(JobId),
    /// The groups are evicted for the job.
    Preempted {
        /// The job.
        job: JobId,
        /// Whose pods go.
        groups: &'a [TargetGroup],
    },
}

/// What a search asks those who know more than quotas.
pub trait Surroundings {
    /// The state at the moment.
    fn ask(&self) -> Ask<'_>;
    /// The rules, one of which is lent out for the search.
    fn dispatch(&mut self) -> &mut Dispatch;
    /// Whether the group may be taken together with those that are taken already.
    fn may_take(&mut self, taken: &[JobId], group: JobId) -> bool;
    /// Whether the job has a place when these are gone. The state is as before afterwards.
    fn has_place(&mut self, taken: &[JobId]) -> bool;
}

/// Stands in the place of a plugin that is lent out; says nothing and is told nothing.
struct Vacant;

impl Plugin for Vacant {
    fn points(&self) -> crate::points::Points {
        crate::points::Points::NONE
    }
}

/// Asks the plugin that decides targets, while its surroundings try out what it considers: whatever
/// they do they undo, so it need not hear of it. `None`: there is no such plugin.
///
/// # Errors
/// Why nobody goes for the job.
pub fn preempt_targets(
    around: &mut dyn Surroundings,
    wanted: &Wanted<'_>,
) -> Option<Result<Targets, QuotaRefusal>> {
    let (place, mut plugin) = around.dispatch().lend(Box::new(Vacant))?;
    let answer = match around.dispatch().search_meter().0 {
        None => plugin.preempt_targets(wanted, around),
        Some(stopwatch) => {
            let start = stopwatch();
            let mut timed = Timed { around, stopwatch, trials: 0 };
            let answer = plugin.preempt_targets(wanted, &mut timed);
            let nanos = stopwatch().saturating_sub(start + timed.trials);
            *around.dispatch().search_meter().1 += nanos;
            answer
        }
    };
    around.dispatch().take_back(place, plugin);
    Some(answer)
}

/// Takes the time of the trials of placement, which are not part of the search itself (cohort.md
/// B.11).
struct Timed<'a> {
    around: &'a mut dyn Surroundings,
    stopwatch: Stopwatch,
    trials: u64,
}

impl Surroundings for Timed<'_> {
    fn ask(&self) -> Ask<'_> {
        self.around.ask()
    }

    fn dispatch(&mut self) -> &mut Dispatch {
        self.around.dispatch()
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
