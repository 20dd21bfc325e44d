//! The commands of `vcsim` as a user calls them.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod anonymous_devices;
mod bad_input;
mod common;
mod fuzz;
mod load;
mod quota;
mod replay;
mod report;
mod run;
mod scenario;
mod soak;
mod usage;
mod what_if;
mod why;
