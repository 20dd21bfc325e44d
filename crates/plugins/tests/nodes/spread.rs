//! Topology spread in `predicates` and `nodeorder`, and the images of nodes.

use serde_json::json;
use vc_framework::Plugin;
use vc_model::{
    ClusterEvent, Code, InclusionPolicy, LabelSelector, NodeRecord, Operator, PodRecord,
    Requirement, SpreadConstraint, TaintEffect, TaskStatus, Unsatisfiable,
};

use crate::bed::{PluginFixture, node, plugin, pod, running, tainted, with_port};

const SKEWED: &str = "node(s) didn't match pod topology spread constraints";
const NO_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";

fn in_zone(name: &str, zone: &str) -> NodeRecord {
    let mut node = node(name, &[("cpu", "8"), ("memory", "8Gi")]);
    node.labels.insert("zone".into(), zone.into());
    node.labels.insert("kubernetes.io/hostname".into(), name.into());
    node
}

fn web(name: &str) -> PodRecord {
    PodRecord { labels: [("app".into(), "web".into())].into(), ..pod(name, &[]) }
}

/// Pods of app web over zones.
fn by_zone() -> SpreadConstraint {
    let labels = LabelSelector {
        match_labels: [("app".into(), "web".into())].into(),
        ..LabelSelector::default()
    };
    SpreadConstraint {
        topology_key: "zone".into(),
        labels: Some(labels),
        ..SpreadConstraint::default()
    }
}

fn spreading(constraints: Vec<SpreadConstraint>) -> PodRecord {
    PodRecord { spread: constraints, ..web("p") }
}

/// Nodes a, b, c in zones of these names with 2, 1 and 0 pods of app web, and the pod.
fn uneven(pod: PodRecord) -> PluginFixture {
    let nodes = ["a", "b", "c"].map(|zone| in_zone(zone, zone)).to_vec();
    let pods = vec![running(web("r"), "a"), running(web("s"), "a"), running(web("t"), "b"), pod];
    PluginFixture::new(nodes, pods)
}

fn reasons(bed: &PluginFixture, nodes: &[&str]) -> Vec<Vec<String>> {
    let predicates = plugin("predicates", &[]);
    nodes.iter().map(|node| bed.reasons(&*predicates, "p", node)).collect()
}

fn passes(bed: &PluginFixture) -> Vec<bool> {
    reasons(bed, &["a", "b", "c"]).iter().map(Vec::is_empty).collect()
}

#[test]
fn nodes_41_only_the_emptiest_zone_passes() {
    let bed = uneven(spreading(vec![by_zone()]));
    assert_eq!(passes(&bed), [false, false, true]);
    let found = bed.findings(&*plugin("predicates", &[]), "p", "a");
    assert_eq!((found.len(), found[0].code), (1, Code::Unschedulable));
    assert_eq!(reasons(&bed, &["a"])[0], [SKEWED]);
    let cluster_scoped = SpreadConstraint { max_skew: 2, ..by_zone() };
    assert_eq!(passes(&uneven(spreading(vec![cluster_scoped]))), [false, true, true]);
    let foreign = PodRecord { spread: vec![by_zone()], ..pod("p", &[]) };
    assert_eq!(passes(&uneven(foreign)), [false, true, true], "it does not count itself");
}

#[test]
fn nodes_41_with_few_domains_the_least_counts_as_nothing() {
    let few = SpreadConstraint { min_domains: 4, max_skew: 2, ..by_zone() };
    let mut bed = uneven(spreading(vec![few]));
    bed.apply(ClusterEvent::PodApplied(Box::new(running(web("u"), "c"))));
    assert_eq!(passes(&bed), [false, true, true], "1 + 1 - 0 are within 2");
    let enough = SpreadConstraint { min_domains: 3, max_skew: 2, ..by_zone() };
    let mut bed = uneven(spreading(vec![enough]));
    bed.apply(ClusterEvent::PodApplied(Box::new(running(web("u"), "c"))));
    assert_eq!(passes(&bed), [true, true, true], "2 + 1 - 1 as well");
}

#[test]
fn nodes_42_nodes_without_a_key_are_refused_and_not_counted() {
    let by_host = SpreadConstraint {
        topology_key: "kubernetes.io/hostname".into(),
        max_skew: 9,
        ..by_zone()
    };
    let mut no_host = in_zone("d", "c");
    no_host.labels.remove("kubernetes.io/hostname");
    let mut bed = uneven(spreading(vec![by_zone(), by_host]));
    bed.apply(ClusterEvent::NodeApplied(Box::new(no_host)));
    for name in ["u", "v", "w"] {
        bed.apply(ClusterEvent::PodApplied(Box::new(running(web(name), "d"))));
    }
    let found = reasons(&bed, &["c", "d"]);
    assert!(found[0].is_empty(), "the three pods of zone c are on a node that does not count");
    assert_eq!(found[1], [NO_LABEL]);
    let code = bed.findings(&*plugin("predicates", &[]), "p", "d")[0].code;
    assert_eq!(code, Code::Unresolvable);
}

#[test]
fn nodes_43_a_tainted_zone_is_a_domain_or_not() {
    for (policy, expected) in
        [(InclusionPolicy::Honor, [false, true]), (InclusionPolicy::Ignore, [false, false])]
    {
        let constraint = SpreadConstraint { node_taints: policy, ..by_zone() };
        let mut bed = uneven(spreading(vec![constraint]));
        let tainted = tainted(in_zone("c", "c"), TaintEffect::NoSchedule);
        bed.apply(ClusterEvent::NodeApplied(Box::new(tainted)));
        assert_eq!(passes(&bed)[..2], expected, "{policy:?}");
    }
}

#[test]
fn nodes_44_domains_outside_the_selector_count_or_not() {
    for (policy, expected) in
        [(InclusionPolicy::Honor, [true, true]), (InclusionPolicy::Ignore, [false, false])]
    {
        let constraint = SpreadConstraint { node_affinity: policy, max_skew: 1, ..by_zone() };
        let rule = Requirement {
            key: "zone".into(),
            operator: Operator::In,
            values: vec!["a".into(), "b".into()],
        };
        let term =
            vc_model::NodeSelectorTerm { match_expressions: vec![rule], match_fields: Vec::new() };
        let mut pod = spreading(vec![constraint]);
        pod.node_affinity.required = Some(vec![term]);
        let mut bed = uneven(pod);
        bed.apply(ClusterEvent::PodDeleted {
            key: vc_model::ObjectKey::new("ns", "s"),
            uid: "s".into(),
        });
        assert_eq!(passes(&bed)[..2], expected, "{policy:?}: 1 + 1 - least");
    }
}

#[test]
fn nodes_46_terminating_pods_are_not_counted() {
    let mut bed = uneven(spreading(vec![by_zone()]));
    for name in ["r", "s", "t"] {
        let node = if name == "t" { "b" } else { "a" };
        let leaving = PodRecord { deleting: true, ..running(web(name), node) };
        bed.apply(ClusterEvent::PodApplied(Box::new(leaving)));
    }
    assert_eq!(passes(&bed), [true, true, true]);
}

#[test]
fn an_empty_selector_counts_nobody_but_the_pod_itself() {
    let everybody = SpreadConstraint { labels: Some(LabelSelector::default()), ..by_zone() };
    assert_eq!(passes(&uneven(spreading(vec![everybody]))), [true, true, true]);
    let nobody = SpreadConstraint { labels: None, max_skew: 1, ..by_zone() };
    assert_eq!(passes(&uneven(spreading(vec![nobody]))), [true, true, true]);
}

#[test]
fn nodes_06_a_port_and_a_skew_are_both_reported() {
    let mut port = with_port("p", 80);
    port.labels = web("p").labels;
    port.spread = vec![by_zone()];
    let mut bed = uneven(port);
    bed.apply(ClusterEvent::PodApplied(Box::new(running(with_port("h", 80), "a"))));
    let no_port = "node(s) didn't have free ports for the requested pod ports";
    assert_eq!(reasons(&bed, &["a"])[0], [no_port, SKEWED]);
    let found = bed.findings(&*plugin("predicates", &[]), "p", "a");
    assert!(found.iter().all(|finding| finding.code == Code::Unschedulable));
}

#[test]
fn placements_of_this_cycle_count_until_they_are_undone() {
    let mut bed = uneven(spreading(vec![by_zone()]));
    bed.apply(ClusterEvent::PodApplied(Box::new(web("q"))));
    let (q, c) = (bed.task("q"), bed.node("c"));
    bed.cluster.set_task(q, TaskStatus::Pipelined, Some(c));
    assert_eq!(passes(&bed), [false, true, true], "2, 1, 1");
    bed.cluster.set_task(q, TaskStatus::Pending, None);
    assert_eq!(passes(&bed), [false, false, true]);
}

#[test]
fn a_selector_that_cannot_be_understood_refuses_its_pod() {
    let rule = Requirement { key: "app".into(), operator: Operator::In, values: vec![] };
    let labels = LabelSelector { match_expressions: vec![rule], ..LabelSelector::default() };
    let constraint = SpreadConstraint { labels: Some(labels), ..by_zone() };
    let bed = uneven(spreading(vec![constraint]));
    let text = "plugin PodTopologySpread pre-predicates failed \
                label selector requirement on app: In needs at least one value";
    let answer = plugin("predicates", &[]).pre_predicate(bed.view(), bed.task("p"));
    assert_eq!(answer, Err(text.to_owned()));
}

#[test]
fn topology_spread_can_be_switched_off() {
    let bed = uneven(spreading(vec![by_zone()]));
    let off = plugin("predicates", &[("predicate.PodTopologySpreadEnable", json!(false))]);
    assert!(bed.findings(&*off, "p", "a").is_empty());
}

/// `nodeorder` without the scorers that look at room.
fn scoring() -> Box<dyn Plugin> {
    let others = [
        "leastrequested.weight",
        "balancedresource.weight",
        "nodeaffinity.weight",
        "tainttoleration.weight",
        "podaffinity.weight",
    ];
    let arguments: Vec<_> = others.iter().map(|&key| (key, json!(0))).collect();
    plugin("nodeorder", &arguments)
}

#[test]
fn nodes_88_the_empty_zone_scores_best() {
    let soft = SpreadConstraint { when: Unsatisfiable::ScheduleAnyway, ..by_zone() };
    let mut bed = uneven(spreading(vec![soft]));
    let (scores, _) = bed.scores(&mut *scoring(), "p");
    // Raw: round(2 ln 5) = 3, round(ln 5) = 2, 0; weight 2.
    assert_eq!(scores, [0.0, 66.0, 200.0]);
    bed.apply(ClusterEvent::NodeApplied(Box::new(node("x", &[("cpu", "8")]))));
    let (scores, _) = bed.scores(&mut *scoring(), "p");
    assert_eq!(scores[3], 0.0, "a node without the key is ignored");
}

#[test]
fn nodes_93_the_node_with_the_image() {
    let mut with_image = in_zone("a", "a");
    with_image.images = vec![("app:1".into(), 500 << 20)];
    let mut wants = pod("p", &[]);
    wants.containers[0].image = "app:1".into();
    let bed = PluginFixture::new(vec![with_image, in_zone("b", "b")], vec![wants]);
    assert_eq!(bed.scores(&mut *scoring(), "p").0, [23.0, 0.0]);
}
