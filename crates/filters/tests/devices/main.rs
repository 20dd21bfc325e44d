//! DynamicResources on small clusters (plugins-nodes.md 6, cases 65-80).

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod allocation;
mod claims;
mod laws;
mod support;
