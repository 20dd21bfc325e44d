//! The whole of the process against an API server: over HTTP to the embedded one, with faults in
//! between; and the binary itself, its exit codes, signals and servers. Specification: core.md 1,
//! 7.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod answers;
mod answers_port;
mod binary;
mod binding;
mod child;
mod cluster;
mod devices;
mod election;
#[path = "../common/guard.rs"]
mod guard;
mod local;
mod node_loads;
mod options;
mod reload;
mod usages;
mod volumes;
