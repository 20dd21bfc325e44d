//! The numbered cases of plugins-jobs-queues.md, asked through sessions on clusters from text.

mod admission;
mod budgets;
mod capacity;
mod capacity_ancestors;
mod capacity_devices;
mod capacity_gates;
mod capacity_tree;
mod cohort_queues;
mod conformance;
mod cooldown;
mod drf;
mod extender;
mod gang;
mod gauges;
mod points;
mod priority;
mod proportion;
mod quotas;
mod rescheduling;
mod support;
mod tdm;
