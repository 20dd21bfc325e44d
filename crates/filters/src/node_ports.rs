//! NodePorts: a pod fails on nodes where another pod holds its host port. It reads the ports of the
//! node's pods, which the node's view counts.
//! Specification: plugins-nodes.md 4.3.

use vc_model::{Class, Code, Finding, Node};

use crate::rule::{Pod, PreFilter};

const REASON: &str = "node(s) didn't have free ports for the requested pod ports";

/// Runs the pre-filter. It skips pods without host ports.
pub fn pre_filter(pod: Pod<'_>) -> PreFilter<'_> {
    match pod.class.host_ports.is_empty() {
        true => PreFilter::Skip,
        false => PreFilter::by_class(pod, filter),
    }
}

/// Returns the finding against the node, which eviction may cure. Returns `None` if it passes.
pub fn filter(class: &Class, node: &Node) -> Option<Finding> {
    let is_taken = class.host_ports.iter().any(|port| node.view.holds_port(port));
    is_taken.then(|| Finding::new(Code::Unschedulable, REASON))
}

#[cfg(test)]
mod tests {
    use vc_model::{
        Cluster, ClusterEvent, ContainerRecord, HostPort, ObjectKey, PodPhase, PodRecord, Protocol,
        Settings, Shape,
    };

    use super::*;

    fn port(ip: &str, port: u16, protocol: Protocol) -> HostPort {
        HostPort { ip: ip.into(), port, protocol }
    }

    /// A pod on node `n`.
    fn running(container: ContainerRecord, init: Vec<ContainerRecord>) -> PodRecord {
        PodRecord {
            key: ObjectKey::new("ns", "p"),
            uid: "p".into(),
            scheduler_name: "volcano".into(),
            node_name: Some("n".into()),
            phase: PodPhase::Running,
            containers: vec![container],
            init_containers: init,
            ..PodRecord::default()
        }
    }

    fn container(host_ports: Vec<HostPort>) -> ContainerRecord {
        ContainerRecord { host_ports, ..ContainerRecord::default() }
    }

    /// Whether a pod that wants `wanted` is refused beside `pod`.
    fn conflicts(wanted: HostPort, pod: PodRecord) -> bool {
        let mut cluster = Cluster::new(Settings::default());
        cluster.apply(ClusterEvent::PodApplied(Box::new(pod)));
        let node = cluster.node("n").expect("the pod names it");
        let class = Class::from(Shape { host_ports: vec![wanted], ..Shape::default() });
        let found = filter(&class, &cluster.nodes[node]);
        let finding = || Finding::new(Code::Unschedulable, REASON);
        assert!(found.is_none() || found == Some(finding()));
        found.is_some()
    }

    #[test]
    fn nodes_32_addresses_and_protocols() {
        use Protocol::{Tcp, Udp};
        let beside = |wanted, used| conflicts(wanted, running(container(vec![used]), vec![]));
        for (wanted, used, expected) in [
            (port("0.0.0.0", 80, Tcp), port("127.0.0.1", 80, Tcp), true),
            (port("127.0.0.1", 80, Tcp), port("0.0.0.0", 80, Tcp), true),
            (port("127.0.0.1", 80, Tcp), port("127.0.0.1", 80, Tcp), true),
            (port("127.0.0.1", 80, Tcp), port("127.0.0.2", 80, Tcp), false),
            (port("0.0.0.0", 80, Tcp), port("0.0.0.0", 80, Udp), false),
            (port("0.0.0.0", 80, Tcp), port("0.0.0.0", 81, Tcp), false),
            (port("::", 80, Tcp), port("127.0.0.1", 80, Tcp), false),
        ] {
            let what = format!("{wanted:?} beside {used:?}");
            assert_eq!(beside(wanted, used), expected, "{what}");
        }
    }

    #[test]
    fn nodes_32_of_init_containers_only_the_restartable_hold_ports() {
        let http = || port("0.0.0.0", 80, Protocol::Tcp);
        for restartable in [true, false] {
            let init = ContainerRecord { restartable, ..container(vec![http()]) };
            assert_eq!(conflicts(http(), running(container(vec![]), vec![init])), restartable);
        }
    }

    #[test]
    fn a_pod_without_host_ports_is_skipped() {
        let asks = |host_ports| {
            let mut cluster = Cluster::new(Settings::default());
            let pod = running(container(host_ports), vec![]);
            cluster.apply(ClusterEvent::PodApplied(Box::new(pod)));
            let task = cluster.task("p").expect("it was applied");
            matches!(pre_filter(Pod::new(&cluster, task)), PreFilter::Ask(_))
        };
        assert!(!asks(vec![]));
        assert!(asks(vec![port("0.0.0.0", 80, Protocol::Tcp)]));
    }
}
