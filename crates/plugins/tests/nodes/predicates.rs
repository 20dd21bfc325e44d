//! The plugin `predicates`.

use serde_json::json;
use vc_framework::Plugin;
use vc_model::{Code, FitErrors, NodeSelectorTerm, Operator, Requirement, TaintEffect, TaskStatus};

use crate::bed::{
    PluginFixture, cordoned, node, plugin, pod, running, selecting, tainted, with_port,
};

const CORDONED: &str = "node(s) were unschedulable";
const TAINTED: &str = "node(s) had untolerated taint(s)";
const FULL: &str = "node(s) pod number exceeded";
const NO_PORT: &str = "node(s) didn't have free ports for the requested pod ports";
const NO_MATCH: &str = "node(s) didn't match Pod's node affinity/selector";

fn predicates() -> Box<dyn Plugin> {
    plugin("predicates", &[])
}

#[test]
fn nodes_02_the_pods_of_a_node_are_counted() {
    let pods = ["a", "b", "c"].map(|name| pod(name, &[]));
    let mut bed = PluginFixture::new(vec![node("n", &[("pods", "2")])], pods.to_vec());
    let predicates = predicates();
    for (name, status) in [("a", TaskStatus::Allocated), ("b", TaskStatus::Pipelined)] {
        assert!(bed.findings(&*predicates, name, "n").is_empty());
        bed.cluster.set_task(bed.task(name), status, Some(bed.node("n")));
    }
    assert_eq!(bed.reasons(&*predicates, "c", "n"), [FULL]);
    bed.cluster.evict_task(bed.task("a"));
    assert!(bed.findings(&*predicates, "c", "n").is_empty(), "an evicted pod frees its slot");
}

#[test]
fn nodes_04_the_first_stable_filter_speaks_for_all() {
    let node = cordoned(tainted(node("n", &[]), TaintEffect::NoSchedule));
    let bed = PluginFixture::new(vec![node], vec![selecting("p", "elsewhere")]);
    assert_eq!(bed.reasons(&*predicates(), "p", "n"), [CORDONED]);
}

#[test]
fn nodes_05_a_full_cordoned_node_shows_both() {
    let full = cordoned(node("n", &[("pods", "1")]));
    let bed = PluginFixture::new(vec![full], vec![running(pod("r", &[]), "n"), pod("p", &[])]);
    assert_eq!(bed.reasons(&*predicates(), "p", "n"), [FULL, CORDONED]);
    let mut errors = FitErrors::default();
    errors.add(bed.node("n"), &bed.findings(&*predicates(), "p", "n"));
    assert!(errors.is_unresolvable(bed.node("n")));
}

#[test]
fn nodes_06_findings_that_eviction_may_cure_add_up() {
    let full = node("n", &[("pods", "1")]);
    let bed =
        PluginFixture::new(vec![full], vec![running(with_port("r", 80), "n"), with_port("p", 80)]);
    assert_eq!(bed.reasons(&*predicates(), "p", "n"), [FULL, NO_PORT]);
    let mut errors = FitErrors::default();
    errors.add(bed.node("n"), &bed.findings(&*predicates(), "p", "n"));
    assert!(!errors.is_unresolvable(bed.node("n")), "the node stays a candidate for eviction");
}

#[test]
fn nodes_07_a_taint_leaves_no_node_to_evict_from() {
    let nodes = ["n1", "n2"].map(|name| tainted(node(name, &[]), TaintEffect::NoExecute));
    let bed = PluginFixture::new(nodes.to_vec(), vec![pod("p", &[])]);
    let mut errors = FitErrors::default();
    for name in ["n1", "n2"] {
        errors.add(bed.node(name), &bed.findings(&*predicates(), "p", name));
    }
    assert!(["n1", "n2"].iter().all(|name| errors.is_unresolvable(bed.node(name))));
    let text = format!("0/2 nodes are unavailable: 2 {TAINTED}.");
    assert_eq!(errors.text(&bed.cluster.dims), text);
}

#[test]
fn nodes_08_taints_can_be_switched_off_but_not_the_cordon() {
    let nodes = vec![
        tainted(node("tainted", &[]), TaintEffect::NoSchedule),
        cordoned(node("cordoned", &[])),
    ];
    let bed = PluginFixture::new(nodes, vec![pod("p", &[])]);
    let off = plugin("predicates", &[("predicate.TaintTolerationEnable", json!(false))]);
    assert!(bed.findings(&*off, "p", "tainted").is_empty());
    assert_eq!(bed.reasons(&*off, "p", "cordoned"), [CORDONED]);
    assert_eq!(bed.reasons(&*predicates(), "p", "tainted"), [TAINTED]);
}

#[test]
fn nodes_09_ports_can_be_switched_off() {
    let pods = vec![running(with_port("r", 80), "n"), with_port("p", 80)];
    let bed = PluginFixture::new(vec![node("n", &[])], pods);
    let off = plugin("predicates", &[("predicate.NodePortsEnable", json!("false"))]);
    assert!(bed.findings(&*off, "p", "n").is_empty());
    assert_eq!(bed.reasons(&*predicates(), "p", "n"), [NO_PORT]);
}

#[test]
fn node_affinity_can_be_switched_off() {
    let bed =
        PluginFixture::new(vec![node("n", &[])], vec![contradicting("c"), selecting("p", "m")]);
    let off = plugin("predicates", &[("predicate.NodeAffinityEnable", json!(false))]);
    assert!(bed.findings(&*off, "p", "n").is_empty());
    assert_eq!(off.pre_predicate(bed.view(), bed.task("c")), Ok(()));
}

#[test]
fn nodes_14_equal_templates_in_two_namespaces_are_two_pods() {
    let mut pods = [selecting("a", "n1"), selecting("b", "n2")];
    for pod in &mut pods {
        pod.annotations.insert("volcano.sh/template-uid".into(), "job-worker".into());
    }
    pods[1].key.namespace = "other".into();
    let bed = PluginFixture::new(["n1", "n2"].map(|name| node(name, &[])).to_vec(), pods.to_vec());
    let cached = plugin("predicates", &[("predicate.CacheEnable", json!(true))]);
    for (pod, fits, refuses) in [("a", "n1", "n2"), ("b", "n2", "n1")] {
        assert!(bed.findings(&*cached, pod, fits).is_empty());
        assert_eq!(bed.reasons(&*cached, pod, refuses), [NO_MATCH]);
    }
}

#[test]
fn nodes_15_every_pod_of_a_job_gets_the_real_reason() {
    let bed = PluginFixture::new(
        vec![node("n", &[])],
        vec![selecting("p1", "elsewhere"), selecting("p2", "elsewhere")],
    );
    let cached = plugin("predicates", &[("predicate.CacheEnable", json!(true))]);
    for pod in ["p1", "p2"] {
        let findings = bed.findings(&*cached, pod, "n");
        assert_eq!(
            findings.iter().map(|found| found.code).collect::<Vec<_>>(),
            [Code::Unresolvable]
        );
        assert_eq!(bed.reasons(&*cached, pod, "n"), [NO_MATCH]);
    }
}

#[test]
fn nodes_18_a_port_that_was_given_away_in_this_cycle_is_taken() {
    for status in [TaskStatus::Allocated, TaskStatus::Pipelined] {
        let pods = vec![with_port("first", 80), with_port("second", 80)];
        let mut bed = PluginFixture::new(vec![node("n", &[])], pods);
        let (predicates, first) = (predicates(), bed.task("first"));
        assert!(bed.findings(&*predicates, "first", "n").is_empty());
        bed.cluster.set_task(first, status, Some(bed.node("n")));
        assert_eq!(bed.reasons(&*predicates, "second", "n"), [NO_PORT]);
        bed.cluster.set_task(first, TaskStatus::Pending, None);
        assert!(bed.findings(&*predicates, "second", "n").is_empty(), "discarded");
    }
}

#[test]
fn nodes_20_an_eviction_that_is_taken_back_takes_the_port_back() {
    let pods = vec![running(with_port("r", 80), "n"), with_port("p", 80)];
    let mut bed = PluginFixture::new(vec![node("n", &[("pods", "1")])], pods);
    let (predicates, victim) = (predicates(), bed.task("r"));
    bed.cluster.evict_task(victim);
    assert!(bed.findings(&*predicates, "p", "n").is_empty());
    bed.cluster.unevict_task(victim, TaskStatus::Running);
    assert_eq!(bed.reasons(&*predicates, "p", "n"), [FULL, NO_PORT]);
}

/// A pod with a required term that names two different nodes.
fn contradicting(name: &str) -> vc_model::PodRecord {
    let named = |node: &str| Requirement {
        key: "metadata.name".into(),
        operator: Operator::In,
        values: vec![node.into()],
    };
    let match_fields = vec![named("n1"), named("n2")];
    let term = NodeSelectorTerm { match_expressions: Vec::new(), match_fields };
    let mut pod = pod(name, &[]);
    pod.node_affinity.required = Some(vec![term]);
    pod
}

#[test]
fn nodes_31_terms_that_leave_no_node_fail_before_any_node() {
    let bed = PluginFixture::new(vec![node("n1", &[])], vec![contradicting("c"), pod("p", &[])]);
    let text = "plugin NodeAffinity pre-predicates failed pod affinity terms conflict";
    assert_eq!(predicates().pre_predicate(bed.view(), bed.task("c")), Err(text.to_owned()));
    assert_eq!(predicates().pre_predicate(bed.view(), bed.task("p")), Ok(()));
}

#[test]
fn a_node_that_only_pods_name_is_an_error() {
    let bed = PluginFixture::new(vec![], vec![running(pod("r", &[]), "gone"), pod("p", &[])]);
    let findings = bed.findings(&*predicates(), "p", "gone");
    assert_eq!(findings, [vc_model::Finding::new(Code::Error, "node info not found")]);
}
