//! Cases of plugins-nodes.md for the plugins that choose nodes: predicates, nodeorder, binpack.

mod affinity;
mod against_plain;
mod bed;
mod binpack;
mod default_spread;
mod network_topology_aware;
mod nodeorder;
mod own_against_plain;
mod plain;
mod predicates;
mod spread;
mod volumes;
