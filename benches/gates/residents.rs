//! Nodes with pods.

use vc_model::{ClusterEvent, PodPhase};

use crate::objects::{N_NODES, empty_nodes, pod};

/// Each with a pod that leaves 2 cpus.
pub(crate) fn full_nodes() -> impl Iterator<Item = ClusterEvent> {
    let resident = |number: i64| {
        let mut pod = pod("resident", number, 62_000);
        pod.node_name = Some(format!("node-{number:05}").into());
        pod.phase = PodPhase::Running;
        ClusterEvent::PodApplied(Box::new(pod))
    };
    empty_nodes().chain((0..N_NODES).map(resident))
}
