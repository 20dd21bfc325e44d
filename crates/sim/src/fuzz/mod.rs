//! `vcsim fuzz`: whole scheduler processes over a simulated API server, network and clock, with faults
//! in every place. One thread, no sockets, no time of the machine: a seed gives the same run again,
//! byte by byte. Specification: docs/spec/invariants.md.

mod admission;
mod answer;
mod check;
mod config_file;
pub(crate) mod configs;
mod controllers;
pub(crate) mod crash;
mod devices;
mod eviction_turns;
mod fault;
mod findings;
mod machine;
mod managers;
mod network;
mod outside_event;
mod panics;
mod process;
mod quota;
mod request_faults;
mod residue;
mod rest;
mod rest_writes;
mod script;
mod shrink;
mod story;
#[cfg(test)]
mod sweep;
mod topology;
mod trace;
mod usage;
mod view;
mod violated;
mod witness;
mod world;
mod write_counts;

pub use fault::{FaultKind, Strikes, UnknownFault};
pub use script::Script;
pub use shrink::shrink;
pub use story::{StoryEnd, StoryOptions, play};
pub use trace::Timeline;
