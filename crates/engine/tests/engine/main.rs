//! The whole engine: a cluster as text goes in, decisions as text come out. Names of tests are the
//! numbers and slugs of the specification's cases.
#![allow(non_snake_case)]

mod allocate;
mod backfill;
mod bad_input;
mod claims;
mod core;
mod determinism;
mod enqueue;
mod laws;
mod log_lines;
mod queues;
mod recording;
mod starvation;
mod support;
