//! Cases of plugins-nodes.md for the plugins that choose nodes.

mod affinity;
mod against_plain;
mod bed;
mod binpack;
mod default_spread;
mod deviceshare;
mod deviceshare_config;
mod deviceshare_mig;
mod deviceshare_mind_cluster;
mod deviceshare_problems;
mod deviceshare_vnpu;
mod network_topology_aware;
mod nodegroup;
mod nodeorder;
mod numa_aware;
mod own_against_plain;
mod plain;
mod predicates;
mod resource_strategy_fit;
mod spread;
mod task_topology;
mod usage;
mod volumes;
