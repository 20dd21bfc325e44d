//! CPU profiles on systems for which there is no sampler.

use std::time::Duration;

use super::CpuSamples;

/// Always an error.
pub(super) fn start(_time: Duration) -> Result<(), String> {
    Err("CPU profiles are taken on Linux only, on x86_64 and aarch64".to_owned())
}

/// Nothing: there is no sample.
pub(super) fn stop() -> CpuSamples {
    CpuSamples::default()
}
