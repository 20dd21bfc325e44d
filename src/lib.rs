//! The process `vc-scheduler`: flags, configuration, logs, servers, and the wiring of engine and
//! API server. Specification: core.md 1. It is a library too, so that tests run the whole of it.

pub mod answers;
pub mod check;
pub mod command;
pub mod conf;
#[cfg(feature = "cpu-profiles")]
pub mod cpu;
mod device_config;
mod device_reports;
pub mod dump;
pub mod environment;
pub mod fatal;
pub mod flags;
#[cfg(feature = "heap-profiles")]
pub mod heap;
mod loads;
pub mod log;
pub mod meter;
mod review_warning;
pub mod run;
mod saved_usage;
pub mod serve;
mod threads;
pub mod zone;
