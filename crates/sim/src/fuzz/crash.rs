//! A crash at a point of the work of a process: at an await of one of its tasks, or at a write. Times of the story
//! hardly ever meet such a point.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::rng::Rng;

/// Largest number of awaits until a crash. All tasks of a leader have 300 to 2,000 a minute.
const MOST_AWAITS: u64 = 2_000;
/// Largest number of writes until a crash.
const MOST_WRITES: u64 = 20;

/// A kind of point at which a process can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CrashPoint {
    /// A task of the process is about to go on after an await.
    Await,
    /// A write is about to leave the process, and never does.
    Unsent,
    /// A write has left the process, and has not reached the server.
    Sent,
    /// The server has done a write, and the answer was not sent yet.
    Done,
    /// The answer to a write has come, and nothing has read it yet.
    Answered,
}

/// A crash at the `nth` of these points from the moment on in which it is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crash {
    pub(super) point: CrashPoint,
    pub(super) nth: u64,
    /// True if writes of the Lease count. Random crashes leave them out, since most writes are such.
    pub(super) counts_leases: bool,
}

impl Crash {
    pub(super) fn drawn(rng: &mut Rng) -> Self {
        let of_writes = [CrashPoint::Sent, CrashPoint::Done, CrashPoint::Answered];
        let (point, nth) = match rng.happens(500) {
            true => (CrashPoint::Await, rng.between(1, MOST_AWAITS)),
            false => (rng.of(&of_writes), rng.between(1, MOST_WRITES)),
        };
        Self { point, nth, counts_leases: false }
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nth = self.nth;
        match self.point {
            CrashPoint::Await => write!(out, "at await {nth} from now"),
            CrashPoint::Unsent => write!(out, "before write {nth} from now is sent"),
            CrashPoint::Sent => write!(out, "when write {nth} from now is sent"),
            CrashPoint::Done => write!(out, "when write {nth} from now is done"),
            CrashPoint::Answered => write!(out, "when write {nth} from now is answered"),
        }?;
        out.write_str(if self.counts_leases { ", counting those of the Lease" } else { "" })
    }
}

/// The crash that is planned for one life of a process, if there is one. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedCrash(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    plan: Mutex<CrashPlan>,
    has_crashed: Notify,
}

#[derive(Debug, Default)]
enum CrashPlan {
    #[default]
    None,
    At(Crash),
    /// The process has ended. Its parts are dropped soon.
    Crashed,
}

impl PlannedCrash {
    /// Plans this crash in place of any other. `None`: the process does not crash.
    pub(super) fn plan(&self, crash: Option<Crash>) {
        let mut plan = self.lock();
        if !matches!(*plan, CrashPlan::Crashed) {
            *plan = crash.map_or(CrashPlan::None, CrashPlan::At);
        }
    }

    /// True if a crash is planned that counts writes of the Lease.
    pub(super) fn counts_leases(&self) -> bool {
        matches!(*self.lock(), CrashPlan::At(Crash { counts_leases: true, .. }))
    }

    /// Waits until the process crashes.
    pub(super) async fn crashed(&self) {
        self.0.has_crashed.notified().await;
    }

    /// Records that the work of the process has reached this point. Returns false if the process crashes there,
    /// or has crashed before.
    pub(crate) fn passes(&self, point: CrashPoint) -> bool {
        let mut plan = self.lock();
        if let CrashPlan::At(crash) = &mut *plan
            && crash.point == point
        {
            crash.nth = crash.nth.saturating_sub(1);
            if crash.nth == 0 {
                *plan = CrashPlan::Crashed;
                self.0.has_crashed.notify_one();
            }
        }
        !matches!(*plan, CrashPlan::Crashed)
    }

    fn lock(&self) -> MutexGuard<'_, CrashPlan> {
        self.0.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::CrashPoint::{Answered, Await, Done, Sent};
    use super::*;

    #[tokio::test]
    async fn the_crash_that_is_planned_last_happens() {
        let planned = PlannedCrash::default();
        assert!(planned.passes(Await) && planned.passes(Done));
        planned.plan(Some(Crash { point: Await, nth: 1, counts_leases: false }));
        planned.plan(Some(Crash { point: Done, nth: 2, counts_leases: true }));
        assert!(planned.counts_leases());
        assert!([Await, Done, Sent, Answered].iter().all(|&point| planned.passes(point)));
        assert!(!planned.passes(Done), "the second one");
        planned.crashed().await;
        planned.plan(None);
        assert!(!planned.passes(Await) && !planned.counts_leases(), "it stays crashed");
    }
}
