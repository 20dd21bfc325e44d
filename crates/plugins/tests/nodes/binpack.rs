//! The plugin `binpack`.

use serde_json::{Value, json};
use vc_framework::Points;
use vc_model::TaskStatus;

use crate::bed::{PluginFixture, built, node, plugin, pod, running};

const WEIGHTED: &[(&str, i64)] = &[
    ("binpack.weight", 10),
    ("binpack.cpu", 2),
    ("binpack.memory", 3),
    ("binpack.resources.nvidia.com/gpu", 7),
    ("binpack.resources.example.com/foo", 8),
];
const PLAIN: &[(&str, i64)] = &[("binpack.weight", 1), ("binpack.resources.nvidia.com/gpu", 23)];

fn arguments(weights: &'static [(&str, i64)], list: &str) -> Vec<(&'static str, Value)> {
    let weights = weights.iter().map(|&(key, weight)| (key, json!(weight)));
    weights.chain([("binpack.resources", json!(list))]).collect()
}

/// The cluster of section 9.
fn bed() -> PluginFixture {
    let nodes = vec![
        node("n1", &[("cpu", "2"), ("memory", "4Gi")]),
        node("n2", &[("cpu", "4"), ("memory", "16Gi"), ("nvidia.com/gpu", "4")]),
        node("n3", &[("cpu", "2"), ("memory", "4Gi"), ("example.com/foo", "16")]),
    ];
    let pods = vec![
        running(pod("p1", &[("cpu", "1"), ("memory", "1Gi")]), "n1"),
        running(pod("p2", &[("cpu", "1500m")]), "n3"),
        pod("p3", &[("cpu", "2"), ("memory", "10Gi"), ("nvidia.com/gpu", "2")]),
        pod("p4", &[("cpu", "3"), ("memory", "4Gi"), ("example.com/foo", "3")]),
    ];
    PluginFixture::new(nodes, pods)
}

fn check(arguments: &[(&str, Value)], expected: [(&str, [f64; 3]); 4]) {
    for (pod, expected) in expected {
        let (scores, _) = bed().scores(&mut *plugin("binpack", arguments), pod);
        let is_near = scores.iter().zip(expected).all(|(l, r)| (l - r).abs() < 0.001);
        assert!(is_near, "{pod}: {scores:?}, expected {expected:?}");
    }
}

#[test]
fn nodes_94_weighted() {
    check(
        &arguments(WEIGHTED, "nvidia.com/gpu, example.com/foo"),
        [
            ("p1", [700.0, 137.5, 0.0]),
            ("p2", [0.0, 375.0, 0.0]),
            ("p3", [0.0, 531.25, 0.0]),
            ("p4", [0.0, 173.0769, 0.0]),
        ],
    );
}

#[test]
fn nodes_94_plain() {
    check(
        &arguments(PLAIN, "nvidia.com/gpu"),
        [
            ("p1", [75.0, 15.625, 0.0]),
            ("p2", [0.0, 37.5, 0.0]),
            ("p3", [0.0, 50.5, 0.0]),
            ("p4", [0.0, 50.0, 0.0]),
        ],
    );
}

#[test]
fn pipelined_tasks_do_not_count_but_releasing_ones_do() {
    let mut bed = bed();
    let mut binpack = plugin("binpack", &[("binpack.memory", json!(0))]);
    let mut on_n2 = |bed: &PluginFixture| bed.scores(&mut *binpack, "p2").0[1];
    let (p4, n2) = (bed.task("p4"), bed.node("n2"));
    bed.cluster.set_task(p4, TaskStatus::Pipelined, Some(n2));
    assert_eq!(on_n2(&bed), 37.5);
    bed.cluster.set_task(p4, TaskStatus::Allocated, Some(n2));
    assert_eq!(on_n2(&bed), 0.0, "4.5 of 4 cpus");
    bed.cluster.set_task(p4, TaskStatus::Running, Some(n2));
    bed.cluster.evict_task(p4);
    assert_eq!(on_n2(&bed), 0.0);
}

#[test]
fn weights_that_say_nothing() {
    assert_eq!(plugin("binpack", &[("binpack.weight", json!(0))]).points(), Points::NONE);
    let none = [("binpack.cpu", json!(0)), ("binpack.memory", json!(0))];
    assert_eq!(bed().scores(&mut *plugin("binpack", &none), "p1").0, [0.0, 0.0, 0.0]);
    // Weight 0 of one resource leaves the other alone.
    let cpu_only = [("binpack.memory", json!(0))];
    assert_eq!(bed().scores(&mut *plugin("binpack", &cpu_only), "p1").0, [100.0, 25.0, 0.0]);
}

#[test]
fn negative_weights_count_as_1_and_are_reported() {
    let list = ("binpack.resources", json!(" nvidia.com/gpu ,, "));
    let negative = [
        ("binpack.cpu", json!(-2)),
        ("binpack.memory", json!(-1)),
        ("binpack.resources.nvidia.com/gpu", json!(-3)),
        list.clone(),
    ];
    let (mut corrected, warnings) = built("binpack", &negative);
    assert_eq!(warnings.len(), 3);
    let mut defaults = plugin("binpack", &[list]);
    for pod in ["p1", "p2", "p3", "p4"] {
        assert_eq!(bed().scores(&mut *corrected, pod), bed().scores(&mut *defaults, pod));
    }
}
