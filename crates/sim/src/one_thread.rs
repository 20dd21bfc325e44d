//! The parts of a leader on one thread, that of a simulation with a clock of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet};
use vc_engine::Engine;
use vc_kube::{ClientError, Feeds, LeaderThreads, SchedulerLoop};

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

/// All parts of a leader on the thread of the simulation. They end with this value.
pub(crate) struct OneThread {
    parts: JoinSet<()>,
    ahead_micros: Arc<AtomicI64>,
}

impl OneThread {
    /// Returns a thread whose clock is ahead of the simulation's by so many microseconds.
    pub(crate) fn new(ahead_micros: &Arc<AtomicI64>) -> Self {
        Self { parts: JoinSet::new(), ahead_micros: ahead_micros.clone() }
    }

    fn run(&mut self, part: impl Future<Output = ()> + 'static) -> oneshot::Receiver<()> {
        let (guard, ended) = oneshot::channel();
        let part = vc_kube::with_clock_ahead(self.ahead_micros.clone(), part);
        self.parts.spawn_local(async move {
            let _guard: oneshot::Sender<()> = guard;
            part.await;
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
        engine: Engine,
    ) -> Result<oneshot::Receiver<()>, ClientError> {
        Ok(self.run(scheduler_loop.drive(engine)))
    }
}
