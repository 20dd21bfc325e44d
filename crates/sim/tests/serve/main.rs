//! The embedded API server over real HTTP on loopback: every verb, conflict and error that clients
//! of a Kubernetes API server rely on, and the simulated kubelets.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod bed;
mod lists;
mod pods;
mod process;
mod requests;
