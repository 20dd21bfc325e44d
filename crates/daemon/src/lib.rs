//! The scheduler process without the machine that it runs on: flags, configuration, start, election
//! and roles. Sockets, TLS, signals, threads and files come in through [`ProcessHost`], so that a
//! simulation runs the same code as the binary. Specification: core.md 1.

pub mod conf;
mod device_config;
mod device_reports;
pub mod environment;
pub mod fatal;
pub mod flags;
mod host;
pub mod loads;
#[cfg(test)]
mod logged;
pub mod meter;
pub mod run;
mod saved_usage;

pub use host::{ConfigFiles, DumpRequests, EngineMachine, ProcessHost};
