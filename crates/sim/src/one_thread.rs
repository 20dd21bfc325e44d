//! The parts of a leader on one thread, that of a simulation with a clock of its own.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;
use vc_engine::Engine;
use vc_kube::{ClientError, Feeds, LeaderThreads, SchedulerLoop, SimulatedProcess};

/// Polls of a part of a leader at one moment of the clock from which on it counts as one that never waits.
const MOST_POLLS: u32 = 100_000;
/// The time of day when a simulation begins: 2027-01-15T08:00:00Z.
const BEGIN_MICROS: i64 = 1_800_000_000_000_000;

/// Runs a simulation on this thread. Its clock moves on when nothing else is left to do.
///
/// # Errors
/// There is no runtime.
pub(crate) fn simulate<T>(simulation: impl AsyncFnOnce() -> T) -> io::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let simulation = async {
        vc_kube::simulate_wall_clock(BEGIN_MICROS);
        simulation().await
    };
    Ok(runtime.block_on(LocalSet::new().run_until(simulation)))
}

/// Runs one part of a leader, such as its writer, until it ends. A part that never waits is stopped, because the
/// simulated clock moves on only while all parts wait.
async fn run_part(part: impl Future<Output = ()>) {
    let mut part = pin!(part);
    let mut last = (Instant::now(), 0);
    poll_fn(|context| {
        let now = Instant::now();
        last = if last.0 == now { (now, last.1 + 1) } else { (now, 0) };
        match MOST_POLLS < last.1 {
            true => Poll::Ready(()),
            false => part.as_mut().poll(context),
        }
    })
    .await;
}

/// All parts of a leader on the thread of the simulation. They end with this value.
pub(crate) struct OneThread {
    parts: JoinSet<()>,
    process: SimulatedProcess,
    /// True if the engine keeps what its certificates are verified with.
    has_witness: bool,
}

impl OneThread {
    /// Returns a thread for the parts of a leader of this process.
    pub(crate) fn new(process: SimulatedProcess) -> Self {
        Self { parts: JoinSet::new(), process, has_witness: false }
    }

    /// Lets the engine keep what its certificates are verified with.
    pub(crate) fn with_witness(mut self) -> Self {
        self.has_witness = true;
        self
    }

    fn run(&mut self, part: impl Future<Output = ()> + 'static) -> oneshot::Receiver<()> {
        let (guard, ended) = oneshot::channel();
        let part = self.process.clone().run(part);
        self.parts.spawn_local(async move {
            let _guard: oneshot::Sender<()> = guard;
            run_part(part).await;
        });
        ended
    }
}

impl LeaderThreads for OneThread {
    type Error = ClientError;

    fn read(
        &mut self,
        follow: impl FnOnce() -> Result<Feeds, ClientError>,
    ) -> Result<Feeds, ClientError> {
        follow()
    }

    fn write<W: Future<Output = ()> + Send + 'static>(
        &mut self,
        writer: impl FnOnce() -> Result<W, ClientError>,
    ) -> Result<oneshot::Receiver<()>, ClientError> {
        let writer = writer()?;
        Ok(self.run(writer))
    }

    fn decide(
        &mut self,
        scheduler_loop: SchedulerLoop,
        mut engine: Engine,
    ) -> Result<oneshot::Receiver<()>, ClientError> {
        if self.has_witness {
            engine.witness(true);
        }
        Ok(self.run(scheduler_loop.drive(engine)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::task::yield_now;
    use tokio::time::sleep;

    use super::*;

    #[test]
    fn a_part_that_never_waits_is_ended() {
        let endless = async {
            loop {
                yield_now().await;
            }
        };
        simulate(async || run_part(endless).await).unwrap();
    }

    #[test]
    fn a_part_that_waits_is_not_ended() {
        let mut n_waits = 0;
        let waiting = async {
            for _ in 0..2 * MOST_POLLS {
                sleep(Duration::from_millis(1)).await;
                n_waits += 1;
            }
        };
        simulate(async || run_part(waiting).await).unwrap();
        assert_eq!(n_waits, 2 * MOST_POLLS);
    }
}
