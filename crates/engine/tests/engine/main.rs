//! The whole engine: a cluster as text goes in, decisions as text come out. Names of tests are the
//! numbers and slugs of the specification's cases.
#![allow(non_snake_case)]

mod affinity;
mod allocate;
mod backfill;
mod bad_input;
mod bare_pods;
mod certificates;
mod claims;
mod cohort;
mod columns;
mod core;
mod determinism;
mod devices;
mod differential;
mod early;
mod enqueue;
mod evictions;
mod fast;
mod gang_actions;
mod gang_bound;
mod gang_bundles;
mod gang_laws;
mod gates;
mod histories;
mod laws;
mod leftovers;
mod log_lines;
mod numbers;
mod preempt;
mod queues;
mod quiet;
mod reclaim;
mod recording;
mod refusals;
mod shards;
mod shuffle;
mod skipped;
mod standing;
mod starvation;
mod sub_groups;
mod support;
mod trims;
mod visitors;
mod volumes;
