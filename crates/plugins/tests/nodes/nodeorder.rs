//! The plugin `nodeorder`.

use serde_json::{Value, json};
use vc_model::{NodeRecord, Operator, PodRecord, TaintEffect};

use crate::bed::{PluginFixture, built, node, plugin, pod, preferring, running, tainted};

/// The plugin with this weight alone.
fn only(key: &str, weight: i64) -> Vec<(&str, Value)> {
    let keys = [
        "leastrequested.weight",
        "mostrequested.weight",
        "balancedresource.weight",
        "nodeaffinity.weight",
        "tainttoleration.weight",
        "podaffinity.weight",
        "podtopologyspread.weight",
        "imagelocality.weight",
    ];
    assert!(keys.contains(&key));
    keys.map(|other| (other, json!(if other == key { weight } else { 0 }))).to_vec()
}

/// Scores of pod `p` on all nodes by name.
fn scores(arguments: &[(&str, Value)], nodes: &[NodeRecord], pods: &[PodRecord]) -> Vec<f64> {
    let bed = PluginFixture::new(nodes.to_vec(), pods.to_vec());
    let (scores, warnings) = bed.scores(&mut *plugin("nodeorder", arguments), "p");
    assert_eq!(warnings, [""; 0]);
    scores
}

fn sized(name: &str, cpu: &str, memory: &str) -> NodeRecord {
    node(name, &[("cpu", cpu), ("memory", memory)])
}

fn small() -> PodRecord {
    pod("p", &[("cpu", "1"), ("memory", "1Gi")])
}

#[test]
fn nodes_84_least_and_most() {
    let nodes = [sized("n1", "2", "4Gi"), sized("n2", "4", "8Gi")];
    assert_eq!(scores(&only("leastrequested.weight", 1), &nodes, &[small()]), [62.0, 81.0]);
    assert_eq!(scores(&only("mostrequested.weight", 1), &nodes, &[small()]), [37.0, 18.0]);
}

#[test]
fn nodes_85_balance() {
    let nodes = [sized("n1", "2", "2Gi"), sized("n2", "4", "2Gi")];
    let mut arguments = only("balancedresource.weight", 1);
    assert_eq!(scores(&arguments, &nodes, &[small()]), [75.0, 68.0]);
    arguments.push(("balancedresource.mode", json!("absolute")));
    assert_eq!(scores(&arguments, &nodes, &[small()]), [100.0, 87.0]);
    assert_eq!(scores(&arguments, &nodes, &[pod("p", &[])]), [0.0, 0.0], "nothing requested");
}

#[test]
fn nodes_86_balance_of_one_resource() {
    let nodes = [sized("n1", "4", "4Gi")];
    let mut arguments = only("balancedresource.weight", 1);
    let cpu_only = pod("p", &[("cpu", "2")]);
    assert_eq!(scores(&arguments, &nodes, std::slice::from_ref(&cpu_only)), [62.0]);
    arguments.push(("balancedresource.mode", json!("absolute")));
    assert_eq!(scores(&arguments, &nodes, &[cpu_only]), [75.0]);
}

#[test]
fn nodes_87_a_pod_without_requests_counts_defaults() {
    let nodes = [sized("n1", "4", "8Gi")];
    assert_eq!(scores(&only("leastrequested.weight", 1), &nodes, &[pod("p", &[])]), [97.0]);
    // Explicit zeros stay zero; what runs on the node counts with its own defaults.
    let zero = pod("p", &[("cpu", "0"), ("memory", "0")]);
    let pods = [zero, running(pod("r", &[("cpu", "2")]), "n1")];
    assert_eq!(
        scores(&only("leastrequested.weight", 1), &nodes, &pods),
        [f64::from((50 + 97) / 2)]
    );
}

#[test]
fn nodes_88_preferred_affinity_and_soft_taints() {
    let nodes = [sized("n1", "4", "8Gi"), sized("n2", "4", "8Gi")];
    let picky = preferring("p", 10, Operator::In, "n1");
    assert_eq!(scores(&only("nodeaffinity.weight", 10), &nodes, &[picky]), [1000.0, 0.0]);
    let soft = [nodes[0].clone(), tainted(nodes[1].clone(), TaintEffect::PreferNoSchedule)];
    assert_eq!(scores(&only("tainttoleration.weight", 10), &soft, &[small()]), [1000.0, 0.0]);
}

#[test]
fn nodes_89_defaults_of_a_plain_pod() {
    let nodes = [sized("n1", "2", "4Gi"), sized("n2", "4", "8Gi")];
    // Least 62 and 81; balance: 0.5 and 0.25 (deviation 0.125), 0.25 and 0.125 (0.0625).
    let balanced = [50 + (50 + 87 - 100) / 2, 50 + (50 + 93 - 100) / 2];
    let expected = [62 + balanced[0] + 300, 81 + balanced[1] + 300].map(f64::from);
    assert_eq!(scores(&[], &nodes, &[small()]), expected);
}

#[test]
fn nodes_90_nobody_matches() {
    let nodes = [sized("n1", "4", "8Gi"), sized("n2", "4", "8Gi")];
    let picky = preferring("p", 10, Operator::In, "n3");
    assert_eq!(scores(&only("nodeaffinity.weight", 1), &nodes, &[picky]), [0.0, 0.0]);
    assert_eq!(scores(&only("tainttoleration.weight", 1), &nodes, &[small()]), [100.0, 100.0]);
}

#[test]
fn a_negative_weight_turns_the_order_around() {
    let nodes = [sized("n1", "2", "4Gi"), sized("n2", "4", "8Gi")];
    assert_eq!(scores(&only("leastrequested.weight", -2), &nodes, &[small()]), [-124.0, -162.0]);
}

#[test]
fn a_scorer_that_fails_counts_nothing_and_the_others_stay() {
    let nodes = [sized("n1", "2", "4Gi"), sized("n2", "4", "8Gi")];
    let plain = scores(&[], &nodes, &[pod("p", &[])]);
    for (weight, operator, error) in [
        (
            1,
            Operator::Gt,
            "malformed requirement in a preferred node affinity term: key name, operator Gt, \
             values [\"n1\"]",
        ),
        (-5, Operator::In, "NodeAffinity returns an invalid score -5 for node n1"),
    ] {
        let picky = preferring("p", weight, operator, "n1");
        let bed = PluginFixture::new(nodes.to_vec(), vec![picky]);
        let (found, warnings) = bed.scores(&mut *plugin("nodeorder", &[]), "p");
        assert_eq!(found, plain);
        let text = format!("nodeorder: NodeAffinity does not score pod ns/p: {error}");
        assert_eq!(warnings, [text]);
    }
}

#[test]
fn no_candidates_no_scores() {
    assert_eq!(scores(&[], &[], &[small()]), [0.0; 0]);
}

#[test]
fn nodes_24_a_wrong_type_is_reported() {
    let (_, warnings) = built("nodeorder", &[("nodeaffinity.weight", json!("5"))]);
    let text = "nodeaffinity.weight: expected an integer, found \"5\"";
    assert!(warnings[0].to_string().starts_with(text), "{}", warnings[0]);
}
