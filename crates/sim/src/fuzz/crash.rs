//! A crash at a moment that no time of the story names: between two awaits of a leader, or at a write.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::rng::Rng;

/// Awaits of the parts of a leader after which it ends, at most.
const MOST_AWAITS: u64 = 2_000;
/// Writes after which a process ends, at most.
const MOST_WRITES: u64 = 20;

/// When a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CrashMoment {
    /// A part of the leader goes on after an await, for the `nth` time from now.
    Await { nth: u64 },
    /// A write is at this stage, the `nth` from now.
    Write { nth: u64, stage: WriteStage },
}

/// How far a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteStage {
    /// It is on its way to the server.
    Sent,
    /// The server has done it, and its answer is on its way.
    Done,
    /// The process has its answer, and has not used it yet.
    Answered,
}

impl CrashMoment {
    pub(super) fn drawn(rng: &mut Rng) -> Self {
        let stages = [WriteStage::Sent, WriteStage::Done, WriteStage::Answered];
        match rng.happens(500) {
            true => Self::Await { nth: rng.between(1, MOST_AWAITS) },
            false => Self::Write { nth: rng.between(1, MOST_WRITES), stage: rng.of(&stages) },
        }
    }
}

impl fmt::Display for CrashMoment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Await { nth } => write!(out, "at await {nth} from now"),
            Self::Write { nth, stage: WriteStage::Sent } => {
                write!(out, "when write {nth} from now is sent")
            }
            Self::Write { nth, stage: WriteStage::Done } => {
                write!(out, "when write {nth} from now is done")
            }
            Self::Write { nth, stage: WriteStage::Answered } => {
                write!(out, "when write {nth} from now is answered")
            }
        }
    }
}

/// The crash that is planned for one life of a process, if there is one. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedCrash(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    plan: Mutex<CrashPlan>,
    is_reached: Notify,
}

#[derive(Debug, Default)]
enum CrashPlan {
    #[default]
    None,
    At(CrashMoment),
    /// The process has ended. Its parts are dropped soon.
    Reached,
}

impl PlannedCrash {
    /// The process ends then, and not at a moment that was planned before. `None`: it does not end.
    pub(super) fn plan(&self, moment: Option<CrashMoment>) {
        let mut plan = self.lock();
        if !matches!(*plan, CrashPlan::Reached) {
            *plan = moment.map_or(CrashPlan::None, CrashPlan::At);
        }
    }

    /// Returns when the moment is there.
    pub(super) async fn reached(&self) {
        self.0.is_reached.notified().await;
    }

    /// A part of the leader goes on. False: it must not, as its process has ended.
    pub(crate) fn may_go_on(&self) -> bool {
        let mut plan = self.lock();
        if let CrashPlan::At(CrashMoment::Await { nth }) = &mut *plan {
            *nth = nth.saturating_sub(1);
            if *nth == 0 {
                self.end(&mut plan);
            }
        }
        !matches!(*plan, CrashPlan::Reached)
    }

    /// A write has come to this stage. False: its process has ended.
    pub(super) fn may_write(&self, at: WriteStage) -> bool {
        let mut plan = self.lock();
        if let CrashPlan::At(CrashMoment::Write { nth, stage }) = &mut *plan
            && *stage == at
        {
            *nth = nth.saturating_sub(1);
            if *nth == 0 {
                self.end(&mut plan);
            }
        }
        !matches!(*plan, CrashPlan::Reached)
    }

    fn end(&self, plan: &mut CrashPlan) {
        *plan = CrashPlan::Reached;
        self.0.is_reached.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, CrashPlan> {
        self.0.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_ends_at_the_moment_that_is_planned_last() {
        let crash = PlannedCrash::default();
        assert!(crash.may_go_on() && crash.may_write(WriteStage::Done));
        crash.plan(Some(CrashMoment::Await { nth: 1 }));
        crash.plan(Some(CrashMoment::Write { nth: 2, stage: WriteStage::Done }));
        assert!(crash.may_go_on() && crash.may_write(WriteStage::Done));
        assert!(crash.may_write(WriteStage::Sent) && crash.may_write(WriteStage::Answered));
        assert!(!crash.may_write(WriteStage::Done), "the second one");
        crash.reached().await;
        crash.plan(None);
        assert!(!crash.may_go_on(), "it has ended");
        let other = PlannedCrash::default();
        other.plan(Some(CrashMoment::Await { nth: 3 }));
        let goes_on = [(); 4].map(|()| other.may_go_on());
        assert_eq!(goes_on, [true, true, false, false]);
    }
}
