//! The scheduling policies, one file each.

mod binpack;
mod capacity;
mod cdp;
mod cohort;
mod conformance;
mod deviceshare;
mod drf;
mod gang;
mod guarantee;
mod network_topology_aware;
mod nodegroup;
mod nodeorder;
mod not_built;
mod overcommit;
mod pdb;
mod predicates;
mod priority;
mod proportion;
mod resource_strategy_fit;
mod resourcequota;
mod rules;
mod scorers;
mod sla;
mod tdm;

pub use deviceshare::{DeviceConfigMap, with_device_config};
pub use not_built::NOT_BUILT;
use vc_framework::PluginEntry;

/// The plugins of this crate, by name.
pub const ALL: &[PluginEntry] = &[
    binpack::ENTRY,
    capacity::ENTRY,
    cdp::ENTRY,
    cohort::ENTRY,
    conformance::ENTRY,
    deviceshare::ENTRY,
    drf::ENTRY,
    gang::ENTRY,
    network_topology_aware::ENTRY,
    nodegroup::ENTRY,
    nodeorder::ENTRY,
    overcommit::ENTRY,
    pdb::ENTRY,
    predicates::ENTRY,
    priority::ENTRY,
    proportion::ENTRY,
    resource_strategy_fit::ENTRY,
    resourcequota::ENTRY,
    sla::ENTRY,
    tdm::ENTRY,
];
