//! A process in a simulation: the clock of its own that all its tasks have, and the point at which all of them stop.
//! Outside a simulation there is none, and a task is what it is.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;

use futures::future::Either;

thread_local! {
    /// The process whose task runs now. `None`: none of a simulation.
    static CURRENT: RefCell<Option<SimulatedProcess>> = const { RefCell::new(None) };
    /// By so many microseconds the clock of what runs now is ahead.
    static AHEAD_MICROS: Cell<i64> = const { Cell::new(0) };
}

/// What the tasks of a process in a simulation share. Clones are the same process.
#[derive(Clone)]
pub struct SimulatedProcess {
    /// The clock of the process is ahead of the simulation's by so many microseconds.
    ahead_micros: Arc<AtomicI64>,
    /// Is asked whenever a task is about to go on after an await. False: the process has ended, and the task stops
    /// where it is.
    goes_on: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// A task that a process has spawned, as [`of_this_process`] returns it.
type SpawnedTask<F> = Either<F, Pin<Box<dyn Future<Output = <F as Future>::Output> + Send>>>;

/// The process and the clock that ran before a task, which come back when this is dropped.
struct Outer(Option<SimulatedProcess>, i64);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
        AHEAD_MICROS.set(self.1);
    }
}

impl SimulatedProcess {
    /// Returns a process with this clock, which ends when `goes_on` returns false.
    pub fn new(
        ahead_micros: Arc<AtomicI64>,
        goes_on: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { ahead_micros, goes_on: Arc::new(goes_on) }
    }

    /// Runs a task of the process. What it spawns by [`of_this_process`] is of the process, too.
    pub async fn run<F: Future>(self, task: F) -> F::Output {
        let mut task = Box::pin(task);
        poll_fn(|context| {
            if !(self.goes_on)() {
                return Poll::Pending;
            }
            let _outer = self.enter();
            task.as_mut().poll(context)
        })
        .await
    }

    fn enter(&self) -> Outer {
        let ahead = self.ahead_micros.load(Ordering::Relaxed);
        Outer(CURRENT.replace(Some(self.clone())), AHEAD_MICROS.replace(ahead))
    }
}

/// Returns a task that is to be spawned, as one of the process that spawns it.
pub fn of_this_process<F>(task: F) -> SpawnedTask<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    match CURRENT.with_borrow(Option::clone) {
        Some(process) => Either::Right(Box::pin(process.run(task))),
        None => Either::Left(task),
    }
}

/// By so many microseconds the clock of the task that runs now is ahead.
pub(crate) fn ahead_micros() -> i64 {
    AHEAD_MICROS.get()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use tokio::task::yield_now;

    use super::*;
    use crate::wall_clock::{simulate_wall_clock, wall_micros};

    #[tokio::test(start_paused = true)]
    async fn what_a_process_spawns_has_its_clock() {
        simulate_wall_clock(1_000_000);
        let ahead = Arc::new(AtomicI64::new(5_000_000));
        let process = SimulatedProcess::new(ahead.clone(), || true);
        let times = process.run(async {
            let spawned = tokio::spawn(of_this_process(async {
                tokio::spawn(of_this_process(async { wall_micros() })).await
            }));
            let (first, second) = (wall_micros(), spawned.await);
            ahead.store(-500_000, Ordering::Relaxed);
            yield_now().await;
            [first, second.unwrap().unwrap(), wall_micros()]
        });
        let (times, other) = tokio::join!(times, async { wall_micros() });
        assert_eq!((times, other), ([6_000_000, 6_000_000, 500_000], 1_000_000));
    }

    #[tokio::test(start_paused = true)]
    async fn all_tasks_of_a_process_stop_when_it_ends() {
        let (left, n_steps) = (Arc::new(AtomicU32::new(9)), Arc::new(AtomicU32::new(0)));
        let is_left = move || {
            let less = |left: u32| left.checked_sub(1);
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
        };
        let process = SimulatedProcess::new(Arc::default(), is_left);
        let counted = n_steps.clone();
        let endless = move || {
            let counted = counted.clone();
            async move {
                loop {
                    counted.fetch_add(1, Ordering::Relaxed);
                    yield_now().await;
                }
            }
        };
        let spawned = tokio::spawn(process.run(async move {
            tokio::spawn(of_this_process(endless()));
            endless().await
        }));
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(n_steps.load(Ordering::Relaxed), 9);
        assert!(!spawned.is_finished());
    }
}
