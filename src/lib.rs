//! The process `vc-scheduler`: flags, configuration, logs, and the wiring of engine and API server.
//! Specification: core.md 1. It is a library too, so that tests run the whole of it.

pub mod check;
pub mod flags;
pub mod log;
pub mod run;
