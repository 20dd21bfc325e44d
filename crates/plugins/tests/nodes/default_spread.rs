//! Default spread constraints, from the Services and the controller that select a pod, in the score
//! of `nodeorder`. Specification: plugins-nodes.md 7.8.

use serde_json::json;
use vc_framework::Plugin;
use vc_model::{
    ClusterEvent, LabelSelector, Labels, NodeRecord, ObjectKey, Operator, PodRecord, Requirement,
    SelectorKind, SelectorObject, SpreadConstraint,
};

use crate::bed::{PluginFixture, node, plugin, pod, running};

fn in_zone(name: &str, zone: Option<&str>) -> NodeRecord {
    let mut node = node(name, &[]);
    node.labels.insert("kubernetes.io/hostname".into(), name.into());
    let zone = zone.map(|zone| ("topology.kubernetes.io/zone".into(), zone.into()));
    node.labels.extend(zone);
    node
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect()
}

fn web(name: &str) -> PodRecord {
    PodRecord { labels: labels(&[("app", "web"), ("tier", "front")]), ..pod(name, &[]) }
}

/// Nodes a, b, c in zones of their own with 2, 1 and 0 pods of app web, and the pod.
fn uneven(pod: PodRecord) -> PluginFixture {
    let nodes = ["a", "b", "c"].map(|zone| in_zone(zone, Some(zone))).to_vec();
    let pods = vec![running(web("r"), "a"), running(web("s"), "a"), running(web("t"), "b"), pod];
    PluginFixture::new(nodes, pods)
}

fn select(
    bed: &mut PluginFixture,
    kind: SelectorKind,
    name: &str,
    selector: Option<LabelSelector>,
) {
    let key = ObjectKey::new("ns", name);
    bed.apply(ClusterEvent::SelectorApplied(Box::new(SelectorObject { kind, key, selector })));
}

fn by_labels(pairs: &[(&str, &str)]) -> Option<LabelSelector> {
    Some(LabelSelector { match_labels: labels(pairs), ..LabelSelector::default() })
}

fn scores(bed: &PluginFixture) -> Vec<f64> {
    let weights = [
        ("leastrequested.weight", 0),
        ("balancedresource.weight", 0),
        ("nodeaffinity.weight", 0),
        ("podaffinity.weight", 0),
        ("tainttoleration.weight", 0),
        ("imagelocality.weight", 0),
        ("podtopologyspread.weight", 1),
    ];
    let mut nodeorder: Box<dyn Plugin> =
        plugin("nodeorder", &weights.map(|(key, weight)| (key, json!(weight))));
    bed.scores(&mut *nodeorder, "p").0
}

/// Pods by host and by zone are 2, 1, 0: raw 12, 9, 6.
const SPREAD: [f64; 3] = [50.0, 75.0, 100.0];
const NONE: [f64; 3] = [0.0; 3];

#[test]
fn a_service_spreads_the_pods_that_it_selects() {
    let mut bed = uneven(web("p"));
    assert_eq!(scores(&bed), NONE, "nothing selects it");
    let foreign = SelectorObject {
        kind: SelectorKind::Service,
        key: ObjectKey::new("other", "web"),
        selector: by_labels(&[("app", "web")]),
    };
    bed.apply(ClusterEvent::SelectorApplied(Box::new(foreign)));
    select(&mut bed, SelectorKind::Service, "db", by_labels(&[("app", "db")]));
    select(&mut bed, SelectorKind::Service, "all", by_labels(&[]));
    select(&mut bed, SelectorKind::Service, "none", None);
    assert_eq!(scores(&bed), NONE, "nor do these");
    select(&mut bed, SelectorKind::Service, "web", by_labels(&[("app", "web")]));
    assert_eq!(scores(&bed), SPREAD);
    select(&mut bed, SelectorKind::Service, "web", by_labels(&[("app", "web"), ("tier", "back")]));
    assert_eq!(scores(&bed), NONE, "it selects others now");
    select(&mut bed, SelectorKind::Service, "web", by_labels(&[("app", "web")]));
    let (kind, key) = (SelectorKind::Service, ObjectKey::new("ns", "web"));
    bed.apply(ClusterEvent::SelectorDeleted { kind, key });
    assert_eq!(scores(&bed), NONE, "it is gone");
}

#[test]
fn the_controller_spreads_its_pods() {
    for kind in
        [SelectorKind::ReplicationController, SelectorKind::ReplicaSet, SelectorKind::StatefulSet]
    {
        let owned = |name: &str| PodRecord { controller: Some((kind, name.into())), ..web("p") };
        let mut bed = uneven(owned("web"));
        assert_eq!(scores(&bed), NONE, "{kind:?} is not there");
        select(&mut bed, kind, "web", by_labels(&[("app", "web")]));
        assert_eq!(scores(&bed), SPREAD, "{kind:?}");
        bed.apply(ClusterEvent::PodApplied(Box::new(owned("other"))));
        assert_eq!(scores(&bed), NONE, "another {kind:?}");
        bed.apply(ClusterEvent::PodApplied(Box::new(web("p"))));
        assert_eq!(scores(&bed), NONE, "no {kind:?}");
    }
}

#[test]
fn requirements_of_services_and_controller_hold_together() {
    let owner = (SelectorKind::ReplicaSet, "web".into());
    let mut bed = uneven(PodRecord { controller: Some(owner), ..web("p") });
    select(&mut bed, SelectorKind::Service, "web", by_labels(&[("app", "web")]));
    let not_front =
        Requirement { key: "tier".into(), operator: Operator::NotIn, values: vec!["front".into()] };
    let others = LabelSelector { match_expressions: vec![not_front], ..LabelSelector::default() };
    select(&mut bed, SelectorKind::ReplicaSet, "web", Some(others));
    assert_eq!(scores(&bed), [100.0; 3], "no pod is counted");
    let unknown = Requirement { key: "tier".into(), operator: Operator::Unknown, values: vec![] };
    let broken = LabelSelector { match_expressions: vec![unknown], ..LabelSelector::default() };
    select(&mut bed, SelectorKind::ReplicaSet, "web", Some(broken));
    assert_eq!(scores(&bed), SPREAD, "a broken one is left out");
}

#[test]
fn constraints_of_its_own_turn_the_defaults_off() {
    let hard = SpreadConstraint { topology_key: "zone".into(), ..SpreadConstraint::default() };
    let mut bed = uneven(PodRecord { spread: vec![hard], ..web("p") });
    select(&mut bed, SelectorKind::Service, "web", by_labels(&[("app", "web")]));
    assert_eq!(scores(&bed), NONE);
}

#[test]
fn defaults_never_forbid_and_ignore_no_node() {
    let mut bed = uneven(web("p"));
    bed.apply(ClusterEvent::NodeApplied(Box::new(in_zone("d", None))));
    select(&mut bed, SelectorKind::Service, "web", by_labels(&[("app", "web")]));
    // Raw 13, 9, 6, and 2 by host alone.
    assert_eq!(scores(&bed), [15.0, 46.0, 69.0, 100.0]);
    let predicates = plugin("predicates", &[]);
    for node in ["a", "b", "c", "d"] {
        assert!(bed.reasons(&*predicates, "p", node).is_empty(), "{node}");
    }
}
