//! The shipped manifests and the binary on a real kube-apiserver with RBAC: with the rights of the
//! shipped ServiceAccount, with its configuration and arguments, and with faults in between.
//! Specification: core.md 1, 4, 7; docs/spec/real-apiserver.md.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod api;
mod audit;
mod cluster;
#[path = "../common/guard.rs"]
mod guard;
mod harness;
mod kubelet;
mod objects;
mod process;
mod roles;
mod served;
mod webhook;

mod answers;
mod bad_input;
mod device_shares;
mod devices;
mod evictions;
mod faults;
mod front_proxy;
mod gangs;
mod install;
mod leaders;
mod options;
mod placement;
mod preemption;
mod reload;
mod restarts;
mod rights;
mod scenarios;
mod topology;
mod upgrade;
mod volcano;
mod volumes;
mod ways;
