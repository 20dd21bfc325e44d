//! vcsim: the same engine over files, scenarios and an embedded API server.

pub mod anonymous_bundle;
pub mod asked;
pub mod bundle_objects;
mod controllers;
pub mod demo;
mod effects;
pub mod fuzz;
mod live_bytes;
pub mod load;
mod new_file;
mod node_metrics;
mod one_thread;
mod recorded;
pub mod replay;
pub mod report;
mod rng;
pub mod run;
pub mod scenario;
pub mod serve;
mod simulation;
pub mod soak;
mod storage;
pub mod what_if;
pub mod why;

pub use controllers::Controllers;
pub use live_bytes::CountingAllocator;
pub use new_file::{check_new_file, write_new_file};
pub use simulation::{Cycle, Finding, KubeletMode, Setup, Simulation};
