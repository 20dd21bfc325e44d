//! `vcsim soak`: a long life of a cluster whose load stays the same, to show that nothing grows. One
//! scheduler process runs over a simulated API server without faults. One thread, no sockets, no time of
//! the machine but for the durations of cycles.

mod arrivals;
mod cluster;
mod long_life;
mod memory;
mod picture;
mod sample;
mod scheduler;
mod text;
mod verdict;

use std::time::Duration;

use arrivals::ArrivalPlan;
use long_life::LongLife;
pub(crate) use memory::resident_kib;
pub use picture::svg;
pub use sample::{Latency, SoakSample};
pub use text::{csv, table};
pub use verdict::{Growth, Verdict};

use crate::one_thread::simulate;

/// What to simulate.
#[derive(Clone, Copy, Debug)]
pub struct SoakOptions {
    /// Number of nodes, of 32 cpu each.
    pub nodes: u32,
    /// Simulated time.
    pub time: Duration,
    /// Pods that arrive in this time, without those that controllers create again after an eviction.
    pub pods: u64,
    /// Jobs are drawn from it.
    pub seed: u64,
    /// Samples at even distances.
    pub samples: u32,
}

/// Why a soak did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// The thread cannot run it.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
    /// The cluster cannot be kept full for so long with so many pods.
    #[error(
        "{pods} pods in {hours:.2} hours on {nodes} nodes would run {seconds:.1} s each\n\
         hint: that must be {least} s at least; give more hours or nodes, or fewer pods"
    )]
    ShortRuns {
        /// Pods that arrive.
        pods: u64,
        /// Simulated time.
        hours: f64,
        /// Number of nodes.
        nodes: u32,
        /// Mean time that a pod would run.
        seconds: f64,
        /// Shortest mean time.
        least: f64,
    },
    /// The simulation itself is at fault.
    #[error("fault of the simulation: {0}")]
    Simulation(String),
    /// The scheduler has ended, or violates what must always hold.
    #[error("fault of the scheduler: {0}")]
    Scheduler(String),
    /// Only Linux tells the memory of a process.
    #[error("cannot read the memory of this process: {0}")]
    Memory(std::io::Error),
}

/// Plays a soak on this thread. `sampled` is called with each sample as it is taken.
///
/// # Errors
/// See [`SoakError`].
pub fn run(
    options: &SoakOptions,
    sampled: &mut dyn FnMut(&SoakSample),
) -> Result<Vec<SoakSample>, SoakError> {
    let plan = ArrivalPlan::new(options)?;
    simulate(async || LongLife::begin(options, plan).await?.play(sampled).await)?
}
