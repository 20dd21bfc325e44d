//! Cases 95-99 of plugins-nodes.md: the plugin `resource-strategy-fit`.

use std::sync::Arc;

use serde_json::{Value, json};
use vc_framework::Points;
use vc_model::{Code, PodRecord, PodResourceStrategy, ResourceStrategy, TaskStatus};

use crate::bed::{PluginFixture, built, node, plugin, pod, running};

const FIT: &str = "resource-strategy-fit";

type Resources = [(&'static str, &'static str)];

/// One node n1 on which the pod `old` runs, and the pod `new`.
fn bed(capacity: &Resources, used: &Resources, requested: &Resources) -> PluginFixture {
    with_pod(capacity, used, pod("new", requested))
}

fn with_pod(capacity: &Resources, used: &Resources, new: PodRecord) -> PluginFixture {
    PluginFixture::new(vec![node("n1", capacity)], vec![running(pod("old", used), "n1"), new])
}

/// The score of the pod `new` on n1.
fn score(bed: &PluginFixture, arguments: &[(&str, Value)]) -> f64 {
    let (scores, _) = bed.scores(&mut *plugin(FIT, arguments), "new");
    scores[0]
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 0.05, "{what}: {found}, expected {expected}");
}

fn resources(entries: Value) -> (&'static str, Value) {
    ("resources", entries)
}

/// Request 100 and use 200 of cpu and of memory.
fn case_95(cpu: &'static str, memory: &'static str) -> PluginFixture {
    let capacity: &Resources = &[("cpu", cpu), ("memory", memory)];
    bed(capacity, &[("cpu", "200m"), ("memory", "200")], &[("cpu", "100m"), ("memory", "100")])
}

#[test]
fn nodes_95_strategies() {
    let cpu = |strategy: &str| resources(json!({"cpu": {"type": strategy, "weight": 1}}));
    let both = |cpu: i64, memory: i64| {
        resources(json!({
            "cpu": {"type": "LeastAllocated", "weight": cpu},
            "memory": {"type": "MostAllocated", "weight": memory},
        }))
    };
    let weight = ("resourceStrategyFitWeight", json!(20));
    for (cluster, arguments, expected, what) in [
        (case_95("500m", "500"), vec![cpu("LeastAllocated")], 400.0, "least"),
        (case_95("500m", "500"), vec![cpu("MostAllocated")], 600.0, "most"),
        (case_95("400m", "500"), vec![cpu("LeastAllocated")], 250.0, "least of 400"),
        (case_95("400m", "500"), vec![cpu("MostAllocated")], 750.0, "most of 400"),
        (case_95("500m", "500"), vec![both(2, 1)], 466.667, "least twice"),
        (case_95("500m", "500"), vec![both(1, 2)], 533.333, "most twice"),
        (case_95("0", "500"), vec![both(0, 5)], 500.0, "no cpu; weight 0 counts as 1"),
        (case_95("250m", "500"), vec![both(1, 1)], 0.0, "full"),
        (case_95("500m", "500"), vec![cpu("LeastAllocated"), weight], 800.0, "weight 20"),
        (case_95("500m", "500"), vec![], 400.0, "cpu and memory, least, by default"),
        (case_95("500m", "500"), vec![resources(json!({}))], 400.0, "empty is the default"),
    ] {
        assert_near(score(&cluster, &arguments), expected, what);
    }
    let nothing = bed(&[("cpu", "1"), ("memory", "1")], &[], &[]);
    assert_eq!(score(&nothing, &[]), 0.0, "nothing is requested");
}

#[test]
fn nodes_95_pipelined_tasks_do_not_count() {
    let mut cluster = case_95("500m", "500");
    let (new, n1) = (cluster.task("new"), cluster.node("n1"));
    cluster.cluster.set_task(new, TaskStatus::Pipelined, Some(n1));
    assert_near(score(&cluster, &[]), 400.0, "as before");
}

#[test]
fn nodes_95_weight() {
    let (negative, warnings) = built(FIT, &[("resourceStrategyFitWeight", json!(-1))]);
    assert!(warnings[0].message.contains("-1 is less than 0"), "{warnings:?}");
    assert_eq!(negative.points(), Points::NODE_ORDER);
    let off = [("resourceStrategyFitWeight", json!(0))];
    assert_eq!(plugin(FIT, &off).points(), Points::NONE);
}

/// The score of one unit of this resource on an empty node with two.
fn score_of(name: &'static str, entries: Value) -> (f64, usize) {
    let cluster = bed(&[("cpu", "4"), (name, "8")], &[], &[(name, "2")]);
    let (mut plugin, warnings) = built(FIT, &[resources(entries)]);
    (cluster.scores(&mut *plugin, "new").0[0], warnings.len())
}

#[test]
fn nodes_96_names() {
    let (most, least) = (json!({"type": "MostAllocated"}), json!({"type": "LeastAllocated"}));
    let v100 = "nvidia.com/gpu-v100";
    for (name, entries, expected, n_warnings) in [
        ("nvidia.com/gpu", json!({"nvidia.com/*": least, "nvidia.com/gpu": most}), 250.0, 0),
        (v100, json!({"nvidia.com/*": least, "nvidia.com/gpu-*": most}), 250.0, 0),
        (v100, json!({"nvidia.com/*": most, "nvidia.com/gpu": least}), 250.0, 0),
        (v100, json!({"amd.com/*": most}), 0.0, 0),
        (v100, json!({"*": most}), 0.0, 1),
        (v100, json!({"nvidia.com/**": most, "nvidia*/gpu": most}), 0.0, 2),
        (v100, json!({(v100): {"type": "Middle"}}), 750.0, 1),
    ] {
        let text = entries.to_string();
        let (score, warnings) = score_of(name, entries);
        assert_near(score, expected, &text);
        assert_eq!(warnings, n_warnings, "{text}");
    }
}

fn with_strategy(strategy: ResourceStrategy, weights: &[(&str, i64)]) -> PluginFixture {
    let weights = weights.iter().map(|(name, weight)| ((*name).into(), *weight)).collect();
    let strategy = Some(Arc::new(PodResourceStrategy { strategy, weights }));
    let requested: &Resources = &[("cpu", "100m"), ("memory", "100")];
    let new = PodRecord { resource_strategy: strategy, ..pod("new", requested) };
    let capacity: &Resources = &[("cpu", "500m"), ("memory", "500")];
    with_pod(capacity, &[("cpu", "200m"), ("memory", "300")], new)
}

#[test]
fn nodes_97_pod() {
    let (least, most) = (ResourceStrategy::LeastAllocated, ResourceStrategy::MostAllocated);
    let configured = [resources(json!({"cpu": {"type": "MostAllocated"}}))];
    for (strategy, weights, expected) in [
        (least, &[][..], 0.0),
        (least, &[("cpu", 1)], 400.0),
        (most, &[("cpu", 1), ("memory", 1)], 700.0),
        (most, &[("cpu", 0), ("memory", 1)], 800.0),
        (most, &[("cpu", 0)], 0.0),
        (most, &[("nvidia.com/*", 1), ("c*", 1)], 0.0),
    ] {
        let found = score(&with_strategy(strategy, weights), &configured);
        assert_near(found, expected, &format!("{strategy:?} {weights:?}"));
    }
}

fn sra(value: Value) -> [(&'static str, Value); 2] {
    [("resourceStrategyFitWeight", json!(0)), ("sra", value)]
}

#[test]
fn nodes_98_scarce() {
    let nodes = vec![
        node("n1", &[("cpu", "32")]),
        node("n2", &[("cpu", "8"), ("nvidia.com/t4", "16")]),
        node("n3", &[("cpu", "8"), ("nvidia.com/a10", "16")]),
        node("n4", &[("cpu", "8"), ("nvidia.com/t4", "8"), ("nvidia.com/a10", "16")]),
    ];
    let pods =
        vec![pod("new", &[("cpu", "1")]), pod("t4", &[("cpu", "1"), ("nvidia.com/t4", "1")])];
    let cluster = PluginFixture::new(nodes, pods);
    let list = "nvidia.com/t4, nvidia.com/a10,";
    let weights = json!({"nvidia.com/t4": 2, "nvidia.com/a10": 3});
    let all =
        sra(json!({"enable": true, "resources": list, "weight": 5, "resourceWeight": weights}));
    let scores =
        |arguments: &[(&str, Value)], pod| cluster.scores(&mut *plugin(FIT, arguments), pod).0;
    let near = |found: &[f64], expected: [f64; 4]| {
        found.iter().zip(expected).for_each(|(l, r)| assert_near(*l, r, &format!("{found:?}")));
    };
    near(&scores(&all, "new"), [500.0, 300.0, 200.0, 0.0]);
    near(&scores(&all, "t4"), [0.0, 300.0, 0.0, 0.0]);
    // Without weights each counts 1.
    let alike = sra(json!({"enable": true, "resources": list, "weight": 2}));
    near(&scores(&alike, "new"), [200.0, 100.0, 100.0, 0.0]);
    let none = sra(json!({"enable": true, "resources": " ,", "weight": 2}));
    near(&scores(&none, "new"), [0.0; 4]);
    // The two scores are added up.
    let both = [all[1].clone()];
    near(&scores(&both, "new"), [500.0 + 968.75, 300.0 + 875.0, 200.0 + 875.0, 875.0]);
}

#[test]
fn nodes_98_off() {
    for off in [
        json!({"enable": false, "resources": "x/y", "weight": 5}),
        json!({"enable": true, "resources": "x/y"}),
        json!({"enable": true, "resources": "x/y", "weight": 0}),
        json!({"enable": true, "resources": "x/y", "weight": -1}),
    ] {
        assert_eq!(plugin(FIT, &sra(off.clone())).points(), Points::NONE, "{off}");
    }
    let weights = json!({"x/y": -1});
    let negative =
        json!({"enable": true, "resources": "x/y", "weight": 1, "resourceWeight": weights});
    assert_eq!(built(FIT, &sra(negative)).1.len(), 1);
}

fn proportional(rates: Value) -> [(&'static str, Value); 1] {
    let list = "nvidia.com/gpu";
    [("proportional", json!({"enable": true, "resources": list, "resourceProportion": rates}))]
}

/// What is found against the pods on the node.
fn refusals(
    capacity: &Resources,
    pods: &[&Resources],
    arguments: &[(&str, Value)],
) -> Vec<Vec<String>> {
    let names: Vec<String> = (0..pods.len()).map(|number| format!("p{number}")).collect();
    let records = names.iter().zip(pods).map(|(name, requested)| pod(name, requested));
    let cluster = PluginFixture::new(vec![node("n1", capacity)], records.collect());
    let mut plugin = plugin(FIT, arguments);
    plugin.open(cluster.view());
    names.iter().map(|name| cluster.reasons(&*plugin, name, "n1")).collect()
}

#[test]
fn nodes_99_proportional() {
    let rates = json!({"nvidia.com/gpu.cpu": 4, "nvidia.com/gpu.memory": 4});
    let arguments = proportional(rates);
    let pods: &[&Resources] = &[&[("cpu", "4")], &[("cpu", "10")], &[("nvidia.com/gpu", "1")]];
    let failed = "proportional of resource nvidia.com/gpu check failed";
    let six: &Resources = &[("cpu", "30"), ("memory", "30G"), ("nvidia.com/gpu", "6")];
    assert_eq!(refusals(six, pods, &arguments), [vec![], vec![failed.to_owned()], vec![]]);
    let two: &Resources = &[("cpu", "26"), ("memory", "26G"), ("nvidia.com/gpu", "2")];
    assert_eq!(refusals(two, pods, &arguments), [vec![""; 0], vec![], vec![]]);
    let none: &Resources = &[("cpu", "26"), ("memory", "26G")];
    assert_eq!(refusals(none, pods, &arguments), [vec![""; 0], vec![], vec![]]);
    // Memory counts in gigabytes; a rate that is absent or negative is 1.
    let memory: &[&Resources] = &[&[("memory", "24G")], &[("memory", "25G")], &[("cpu", "24001m")]];
    let refused = [vec![], vec![failed.to_owned()], vec![failed.to_owned()]];
    assert_eq!(refusals(six, memory, &proportional(json!({}))), refused);
    let (_, warnings) = built(FIT, &proportional(json!({"nvidia.com/gpu.cpu": -1})));
    assert_eq!(warnings.len(), 1);
    assert_eq!(plugin(FIT, &arguments).points(), Points::NODE_ORDER.and(Points::PREDICATE));
}

#[test]
fn nodes_99_class() {
    let arguments = proportional(json!({"nvidia.com/gpu.cpu": 4, "nvidia.com/gpu.memory": 0}));
    let capacity: &Resources = &[("cpu", "30"), ("nvidia.com/gpu", "6")];
    let mut cluster = bed(capacity, &[("cpu", "4")], &[("cpu", "4")]);
    let mut plugin = plugin(FIT, &arguments);
    plugin.open(cluster.view());
    let codes = |cluster: &PluginFixture| -> Vec<Code> {
        cluster.findings(&*plugin, "new", "n1").iter().map(|finding| finding.code).collect()
    };
    assert_eq!(codes(&cluster), [Code::Unschedulable]);
    // With the other pod gone the rule holds.
    let old = cluster.task("old");
    cluster.cluster.evict_task(old);
    assert_eq!(codes(&cluster), []);
}

#[test]
fn nodes_99_order() {
    let list = "x/b, x/a";
    let arguments = [("proportional", json!({"enable": true, "resources": list}))];
    let capacity: &Resources = &[("cpu", "1"), ("x/a", "6"), ("x/b", "6")];
    let failed = "proportional of resource x/b check failed".to_owned();
    assert_eq!(refusals(capacity, &[&[("cpu", "1")]], &arguments), [[failed]]);
}
