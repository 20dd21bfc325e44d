//! The edge against an API server that is a function: every request and every outcome.
//! Specification: rust-ecosystem.md "Test cases", core.md 7.

// Helpers are not `#[test]` functions, but they are tests.
#![allow(clippy::unwrap_used)]
// The slugs of the specification have a double underscore.
#![allow(non_snake_case)]

mod bad_input;
mod budgets;
mod claims;
mod connect;
mod elect;
mod fake;
mod feeds;
mod http2;
mod inside;
mod loads;
mod log_lines;
mod monitor;
mod node_locks;
mod pod_group_cache;
mod refused;
mod review;
mod shards;
mod stages;
mod start;
mod statuses;
mod stop;
mod traffic;
mod unreadable;
mod usages;
mod writer;
mod writes;
