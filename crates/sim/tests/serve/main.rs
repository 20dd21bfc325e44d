//! The embedded API server over real HTTP on loopback: every verb, conflict and error that clients
//! of a Kubernetes API server rely on, the simulated kubelets, and the page beside it.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod bed;
mod lists;
mod page;
mod pods;
mod process;
mod requests;
