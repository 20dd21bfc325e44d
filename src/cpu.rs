//! Samples of what the process does, for CPU profiles (`--enable-pprof`). A timer of the kernel counts
//! CPU time; whenever it rings, one of the running threads notes its stack. Specification: core.md 1.8.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod modules;
#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))),
    path = "cpu/elsewhere.rs"
)]
mod sampler;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod stack;

use std::mem;
use std::time::Duration;

/// Samples per second of CPU time, as Go takes them.
pub const HERTZ: u32 = 100;

/// A profile that is being taken. It ends when it is dropped, too: a client may go away.
#[derive(Debug)]
pub struct RunningProfile(());

impl RunningProfile {
    /// Takes samples from now on; `time` says how long, to make room for them. One profile is taken
    /// at a time. Reads the files of the program and its libraries.
    pub fn start(time: Duration) -> Result<Self, String> {
        sampler::start(time).map(|()| Self(()))
    }

    /// Ends the profile.
    pub fn finish(self) -> CpuSamples {
        // Its end must not end the next one.
        mem::forget(self);
        sampler::stop()
    }
}

impl Drop for RunningProfile {
    fn drop(&mut self) {
        sampler::stop();
    }
}

/// What a profile has sampled.
#[derive(Debug, Default)]
pub struct CpuSamples {
    /// Stacks one after the other. An address lies inside of its call or instruction.
    pub(crate) addresses: Vec<u64>,
    /// Where each stack ends in `addresses`.
    pub(crate) ends: Vec<usize>,
    /// Samples for which there was no room.
    pub n_lost: usize,
}

impl CpuSamples {
    /// The stacks, innermost call first.
    pub fn stacks(&self) -> impl Iterator<Item = &[u64]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.addresses[start..end])
    }
}
