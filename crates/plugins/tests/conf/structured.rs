//! Shapes of structured arguments, and of maps with fixed keys (core.md 2.4, C-09).

use serde_json::{Value, json};

use crate::support::load_argument;

/// Returns the number of warnings, or the problem that makes the file invalid.
fn problem(plugin: &str, key: &str, value: Value) -> Result<usize, String> {
    let loaded = load_argument(plugin, key, &value.to_string());
    let strip = |problem: String| problem.replace("tiers[0].plugins[0].arguments.", "");
    loaded.map(|loaded| loaded.warnings.len()).map_err(strip)
}

#[test]
fn right_shapes() {
    let sra = json!({"Enable": true, "resources": "nvidia.com/gpu", "weight": 10,
        "resourceWeight": {"nvidia.com/gpu": 1}});
    for (plugin, key, value) in [
        ("extender", "extender.managedResources", json!(["a", "b"])),
        ("extender", "extender.managedResources", json!("a, b")),
        ("predicates", "volumebinding.weight", json!(2.5)),
        ("predicates", "volumebinding.shape", json!([{"utilization": 0, "Score": 10}])),
        ("predicates", "dynamicresources.filterTimeoutSeconds", json!(-5)),
        ("resource-strategy-fit", "resources", json!({"cpu": {"type": "x", "weight": 1}})),
        ("resource-strategy-fit", "sra", sra),
        ("resource-strategy-fit", "resources", json!(null)),
    ] {
        assert_eq!(problem(plugin, key, value.clone()), Ok(0), "{key}: {value}");
    }
}

#[test]
fn wrong_shapes() {
    let fit = "resource-strategy-fit";
    for (plugin, key, value, expected) in [
        (
            "extender",
            "extender.managedResources",
            json!(["a", 1]),
            "extender.managedResources[1]: expected a string, found 1",
        ),
        (
            "extender",
            "extender.managedResources",
            json!(5),
            "extender.managedResources: expected a list of strings, found 5",
        ),
        (
            "predicates",
            "volumebinding.weight",
            json!("5"),
            "volumebinding.weight: expected a number, found \"5\"",
        ),
        (
            "predicates",
            "volumebinding.shape",
            json!({"utilization": 0}),
            "volumebinding.shape: expected a list, found {\"utilization\":0}",
        ),
        (fit, "resources", json!(["cpu"]), "resources: expected a map, found [\"cpu\"]"),
        (
            fit,
            "resources",
            json!({"cpu": {"weight": "1"}}),
            "resources.cpu.weight: expected a number, found \"1\"",
        ),
        (
            fit,
            "sra",
            json!({"enable": "true"}),
            "sra.enable: expected true or false without quotes, found \"true\"",
        ),
        (
            fit,
            "proportional",
            json!({"resourceProportion": {"gpu.cpu": true}}),
            "proportional.resourceProportion.gpu.cpu: expected a number, found true",
        ),
    ] {
        assert_eq!(problem(plugin, key, value), Err(expected.to_owned()));
    }
}

#[test]
fn an_unknown_inner_key_is_a_warning() {
    assert_eq!(problem("resource-strategy-fit", "sra", json!({"enabel": true})), Ok(1));
}

#[test]
fn a_section_is_a_map_with_known_keys() {
    for (section, value, told) in [
        ("thresholds", json!({"cpu": 80, "mem": 70}), None),
        ("thresholds", json!(null), None),
        ("thresholds", json!(80), Some("expected a map, found 80, it is ignored")),
        ("thresholds", json!({"memory": 70}), Some("unknown key memory, it is ignored")),
        ("estimator", json!({"be_cpu": "250m", "risk_factor": 1.2}), None),
        ("estimator", json!([1]), Some("expected a map, found [1], it is ignored")),
    ] {
        let loaded = load_argument("usage", section, &value.to_string()).unwrap();
        let messages: Vec<&str> = loaded.warnings.iter().map(|w| w.message.as_str()).collect();
        assert_eq!(messages, told.into_iter().collect::<Vec<_>>(), "{section}: {value}");
    }
}
