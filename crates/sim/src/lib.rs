//! vcsim: the same engine over files, scenarios and an embedded API server.

mod admission;
pub mod demo;
mod duration;
mod effects;
mod field;
pub mod fuzz;
pub mod input;
pub mod load;
mod node_metrics;
pub mod run;
pub mod scenario;
pub mod serve;
mod simulation;
mod storage;
pub mod what_if;
pub mod why;
pub mod workload;

pub use simulation::{Cycle, Finding, KubeletMode, Setup, Simulation};
