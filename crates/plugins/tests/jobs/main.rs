//! The numbered cases of plugins-jobs-queues.md, asked through sessions on clusters from text.

mod admission;
mod capacity;
mod conformance;
mod drf;
mod gang;
mod gauges;
mod points;
mod priority;
mod proportion;
mod support;
