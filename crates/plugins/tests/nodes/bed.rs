//! A cluster with one plugin over it, and builders for its objects.

use serde_json::Value;
use vc_conf::{PluginOption, Warning};
use vc_framework::{Outbox, Plugin, Points, Records, SessionInfo, SessionView};
use vc_model::{
    Cluster, ClusterEvent, ContainerRecord, Finding, HostPort, NodeId, NodeRecord,
    NodeSelectorTerm, ObjectKey, Operator, PodPhase, PodRecord, PreferredTerm, Protocol,
    Requirement, ResourceList, Settings, Taint, TaintEffect, TaskId,
};

/// The cluster and what a session asks about it.
pub(crate) struct PluginFixture {
    pub(crate) cluster: Cluster,
    info: SessionInfo,
}

impl PluginFixture {
    pub(crate) fn new(nodes: Vec<NodeRecord>, pods: Vec<PodRecord>) -> Self {
        let mut cluster = Cluster::new(Settings::default());
        for node in nodes {
            cluster.apply(ClusterEvent::NodeApplied(Box::new(node)));
        }
        for pod in pods {
            cluster.apply(ClusterEvent::PodApplied(Box::new(pod)));
        }
        let info = SessionInfo { nodes: cluster.nodes_by_name().into(), ..SessionInfo::default() };
        Self { cluster, info }
    }

    /// What happens between two sessions.
    pub(crate) fn apply(&mut self, event: ClusterEvent) {
        self.cluster.apply(event);
        self.info.nodes = self.cluster.nodes_by_name().into();
    }

    pub(crate) fn view(&self) -> SessionView<'_> {
        SessionView { cluster: &self.cluster, info: &self.info }
    }

    pub(crate) fn task(&self, name: &str) -> TaskId {
        self.cluster.task(name).expect("a pod of the test")
    }

    pub(crate) fn node(&self, name: &str) -> NodeId {
        self.cluster.node(name).expect("a node of the test")
    }

    /// What the plugin finds against the pod on the node.
    pub(crate) fn findings(&self, plugin: &dyn Plugin, pod: &str, node: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        plugin.predicate(self.view(), self.task(pod), self.node(node), &mut findings);
        findings
    }

    /// The texts of [`PluginFixture::findings`].
    pub(crate) fn reasons(&self, plugin: &dyn Plugin, pod: &str, node: &str) -> Vec<String> {
        let findings = self.findings(plugin, pod, node);
        findings.iter().map(|finding| finding.reason.text(&self.cluster.dims)).collect()
    }

    /// Scores of all nodes by name, and the warnings of the session.
    pub(crate) fn scores(&self, plugin: &mut dyn Plugin, pod: &str) -> (Vec<f64>, Vec<String>) {
        plugin.open(self.view());
        let nodes = &self.info.nodes;
        let mut scores = vec![0.0; nodes.len()];
        let points = plugin.points();
        if points.has(Points::BATCH_NODE_ORDER) {
            let answer = plugin.batch_node_order(self.view(), self.task(pod), nodes, &mut scores);
            assert_eq!(answer, Ok(()));
        }
        if points.has(Points::NODE_ORDER) {
            for (score, &node) in scores.iter_mut().zip(nodes.iter()) {
                *score += plugin.node_order(self.view(), self.task(pod), node).expect("a score");
            }
        }
        let mut out = Outbox::default();
        plugin.close(self.view(), &Records::default(), &mut out);
        (scores, out.warnings)
    }
}

/// The plugin of this name with these arguments, and what it complains about.
pub(crate) fn built(name: &str, arguments: &[(&str, Value)]) -> (Box<dyn Plugin>, Vec<Warning>) {
    let entry = vc_plugins::ALL.iter().find(|entry| entry.name() == name).expect("a plugin");
    let arguments = arguments.iter().map(|(key, value)| (*key, value.clone())).collect();
    let option = PluginOption { name: name.to_owned(), arguments, ..PluginOption::default() };
    let mut warnings = Vec::new();
    ((entry.build)(&option, &mut warnings), warnings)
}

/// The plugin of this name with these arguments, which are right.
pub(crate) fn plugin(name: &str, arguments: &[(&str, Value)]) -> Box<dyn Plugin> {
    let (plugin, warnings) = built(name, arguments);
    assert_eq!(warnings, []);
    plugin
}

fn amounts(list: &[(&str, &str)]) -> ResourceList {
    list.iter().map(|(name, text)| ((*name).into(), text.parse().expect("a quantity"))).collect()
}

/// A node with this allocatable and 110 pods unless the list names them.
pub(crate) fn node(name: &str, allocatable: &[(&str, &str)]) -> NodeRecord {
    let mut allocatable = amounts(allocatable);
    if allocatable.iter().all(|(name, _)| &**name != "pods") {
        allocatable.extend(amounts(&[("pods", "110")]));
    }
    NodeRecord {
        name: name.into(),
        labels: [("name".into(), name.into())].into(),
        capacity: allocatable.clone(),
        allocatable,
        ..NodeRecord::default()
    }
}

/// A node with this taint.
pub(crate) fn tainted(node: NodeRecord, effect: TaintEffect) -> NodeRecord {
    let taint = Taint { key: "k".into(), value: "v".into(), effect };
    NodeRecord { taints: vec![taint], ..node }
}

/// A cordoned node.
pub(crate) fn cordoned(node: NodeRecord) -> NodeRecord {
    NodeRecord { unschedulable: true, ..node }
}

/// A pending pod of one container.
pub(crate) fn pod(name: &str, requests: &[(&str, &str)]) -> PodRecord {
    let container = ContainerRecord { requests: amounts(requests), ..ContainerRecord::default() };
    PodRecord {
        key: ObjectKey::new("ns", name),
        uid: name.into(),
        annotations: [("scheduling.k8s.io/group-name".into(), "pg".into())].into(),
        scheduler_name: "volcano".into(),
        phase: PodPhase::Pending,
        containers: vec![container],
        ..PodRecord::default()
    }
}

/// The pod, running on a node.
pub(crate) fn running(pod: PodRecord, node: &str) -> PodRecord {
    PodRecord { node_name: Some(node.into()), phase: PodPhase::Running, ..pod }
}

/// A pending pod that wants this host port.
pub(crate) fn with_port(name: &str, port: u16) -> PodRecord {
    let mut pod = pod(name, &[]);
    let ip = "0.0.0.0".into();
    pod.containers[0].host_ports = vec![HostPort { port, protocol: Protocol::Tcp, ip }];
    pod
}

/// A pending pod whose node selector asks for the node of this name.
pub(crate) fn selecting(name: &str, node: &str) -> PodRecord {
    PodRecord { node_selector: Some([("name".into(), node.into())].into()), ..pod(name, &[]) }
}

/// A pending pod that prefers the node of this name.
pub(crate) fn preferring(name: &str, weight: i32, operator: Operator, node: &str) -> PodRecord {
    let rule = Requirement { key: "name".into(), operator, values: vec![node.into()] };
    let term = NodeSelectorTerm { match_expressions: vec![rule], match_fields: Vec::new() };
    let mut pod = pod(name, &[]);
    pod.node_affinity.preferred = vec![PreferredTerm { weight, term }];
    pod
}
