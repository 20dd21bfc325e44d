//! The scheduling policies, one file each.

mod binpack;
mod capacity;
mod conformance;
mod drf;
mod gang;
mod nodeorder;
mod overcommit;
mod predicates;
mod priority;
mod proportion;
mod rules;
mod scorers;
mod sla;

use vc_framework::PluginEntry;

/// Every plugin of this crate.
pub const ALL: &[PluginEntry] = &[
    binpack::ENTRY,
    capacity::ENTRY,
    conformance::ENTRY,
    drf::ENTRY,
    gang::ENTRY,
    nodeorder::ENTRY,
    overcommit::ENTRY,
    predicates::ENTRY,
    priority::ENTRY,
    proportion::ENTRY,
    sla::ENTRY,
];
