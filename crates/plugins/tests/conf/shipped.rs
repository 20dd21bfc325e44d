//! The files of `config/` and `docs/configuration.md` agree with the code (core.md 2.3, 2.6).

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use vc_conf::{SWITCHES, parse};

use crate::support::{all, declarations, known};

fn read(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

const SHIPPED: [&str; 4] = [
    "config/volcano-scheduler.conf",
    "config/volcano-scheduler-ci.conf",
    "config/volcano-scheduler-topology.conf",
    "config/volcano-scheduler-cohort.conf",
];

fn schema() -> Value {
    serde_json::from_str(&read("config/volcano-scheduler.schema.json")).expect("the schema is JSON")
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn words(list: &Value) -> BTreeSet<&str> {
    list.as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

#[test]
fn the_shipped_files_parse_without_warnings() {
    // A shipped file must not need more than is built.
    let names = [
        "priority",
        "gang",
        "conformance",
        "sla",
        "overcommit",
        "drf",
        "predicates",
        "proportion",
        "nodeorder",
        "binpack",
        "cohort",
    ];
    let known = known(&names, &["enqueue", "allocate", "preempt", "reclaim", "backfill"]);
    for path in SHIPPED {
        let loaded = parse(path, &read(path), &known).unwrap();
        assert_eq!(loaded.warnings, [], "{path}");
        assert_eq!(loaded.config.tiers.len(), 2, "{path}");
    }
}

#[test]
fn the_chart_constant_is_the_shipped_file() {
    let shipped = parse("shipped", &read("config/volcano-scheduler.conf"), &all()).unwrap();
    let constant = parse("constant", vc_conf::CHART, &all()).unwrap();
    assert_eq!(shipped, constant);
}

#[test]
fn the_schema_knows_every_plugin_switch_and_action() {
    let schema = schema();
    let plugin = &schema["$defs"]["plugin"]["properties"];
    let mut expected: BTreeSet<&str> = SWITCHES.iter().map(|(key, _, _)| *key).collect();
    expected.extend(["name", "arguments"]);
    assert_eq!(keys(plugin), expected);
    for (key, _, default) in SWITCHES {
        assert_eq!(plugin[key]["default"], Value::from(*default), "{key}");
    }
    let plugins: BTreeSet<&str> = declarations().iter().map(|plugin| plugin.name).collect();
    assert_eq!(words(&plugin["name"]["enum"]), plugins);
    assert_eq!(keys(&schema["$defs"]["pluginArguments"]), plugins);
    let actions: BTreeSet<&str> = vc_conf::ACTIONS.iter().copied().collect();
    assert_eq!(words(&schema["$defs"]["action"]["properties"]["name"]["enum"]), actions);
    assert_eq!(keys(&schema["$defs"]["actionArguments"]), actions);
}

#[test]
fn the_schema_allows_what_the_shipped_files_use() {
    let schema = schema();
    for path in SHIPPED {
        let file: Value = serde_yaml::from_str(&read(path)).unwrap();
        assert!(keys(&file).is_subset(&keys(&schema["properties"])), "{path}");
        for tier in file["tiers"].as_array().unwrap() {
            for plugin in tier["plugins"].as_array().unwrap() {
                let allowed = keys(&schema["$defs"]["plugin"]["properties"]);
                assert!(keys(plugin).is_subset(&allowed), "{path}: {plugin}");
            }
        }
    }
}

#[test]
fn the_document_names_every_switch_plugin_and_action() {
    let document = read("docs/configuration.md");
    for (key, _, default) in SWITCHES {
        let shown = if *default { "true" } else { "**false**" };
        let row = format!("| `{key}` | {shown} |");
        assert!(document.contains(&row), "{row}");
    }
    let plugins = declarations().into_iter().map(|plugin| plugin.name);
    for name in plugins.chain(vc_conf::ACTIONS.iter().copied()) {
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn the_example_of_the_document_is_a_valid_file() {
    let document = read("docs/configuration.md");
    let example = document.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let loaded = parse("example", example.unwrap(), &all()).unwrap();
    assert_eq!(loaded.warnings, []);
}
