//! The scheduling policies, one file each.

mod binpack;
mod capacity;
mod cdp;
mod cohort;
mod conformance;
mod deviceshare;
mod drf;
mod extender;
mod fairshare;
mod gang;
mod guarantee;
mod network_topology_aware;
mod nodegroup;
mod nodeorder;
mod not_built;
mod numa_aware;
mod overcommit;
mod pdb;
mod predicates;
mod priority;
mod proportion;
mod rescheduling;
mod resource_strategy_fit;
mod resourcequota;
mod rules;
mod scorers;
mod sla;
mod task_topology;
mod tdm;
mod usage;

pub use deviceshare::{DeviceConfigMap, needs_device_reports, with_device_config};
pub use extender::asks_services;
pub use fairshare::UsageConfigMap;
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
    extender::ENTRY,
    fairshare::ENTRY,
    gang::ENTRY,
    network_topology_aware::ENTRY,
    nodegroup::ENTRY,
    nodeorder::ENTRY,
    numa_aware::ENTRY,
    overcommit::ENTRY,
    pdb::ENTRY,
    predicates::ENTRY,
    priority::ENTRY,
    proportion::ENTRY,
    rescheduling::ENTRY,
    resource_strategy_fit::ENTRY,
    resourcequota::ENTRY,
    sla::ENTRY,
    task_topology::ENTRY,
    tdm::ENTRY,
    usage::ENTRY,
];
