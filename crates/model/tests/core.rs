//! The numbered cases of core.md 31-66 that the cluster state decides: requests, tasks, jobs,
//! nodes, and what of our own decisions stays until the watch shows it.

#![allow(clippy::unwrap_used)]

#[path = "core/bad_input.rs"]
mod bad_input;
#[path = "core/bare.rs"]
mod bare;
#[path = "core/division.rs"]
mod division;
#[path = "core/echo.rs"]
mod echo;
#[path = "core/hyper_nodes.rs"]
mod hyper_nodes;
#[path = "core/jobs.rs"]
mod jobs;
#[path = "core/nodes.rs"]
mod nodes;
#[path = "core/overlay.rs"]
mod overlay;
#[path = "core/requests.rs"]
mod requests;
#[path = "core/shards.rs"]
mod shards;
#[path = "core/sub_jobs.rs"]
mod sub_jobs;
#[path = "core/support.rs"]
mod support;
#[path = "core/suppose.rs"]
mod suppose;
#[path = "core/tasks.rs"]
mod tasks;
#[path = "core/volumes.rs"]
mod volumes;
