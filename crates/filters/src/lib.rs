//! Kubernetes filters and scorers as pure rules over a pod class and a node, one file each.
//! Specification: plugins-nodes.md 3, 4, 7.

pub mod balanced_allocation;
mod claims;
pub mod dynamic_resources;
pub mod image_locality;
pub mod inter_pod_affinity;
pub mod node_affinity;
pub mod node_ports;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod normalize;
pub mod pod_topology_spread;
pub mod resource_allocation;
mod rule;
pub mod taint_toleration;
#[cfg(test)]
mod testing;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;

pub use rule::{Input, NodeFilter, Pod, PreFilter};
