//! The process `vc-scheduler` on a machine: commands, logs, servers, signals, threads and the twin that
//! answers. Its start and its roles are in `vc-daemon`. Specification: core.md 1. It is a library too, so
//! that tests run the whole of it.

pub mod answers;
pub mod check;
pub mod command;
#[cfg(feature = "cpu-profiles")]
pub mod cpu;
pub mod dump;
#[cfg(feature = "heap-profiles")]
pub mod heap;
pub mod host;
pub mod log;
mod review_warning;
pub mod serve;
mod threads;
pub mod zone;

pub use vc_daemon::{conf, environment, fatal, flags, loads, meter, run};
