//! `deploy/chart/README.md`, made from values.yaml (`make docs` writes it, this test compares it), the schema
//! of the values, which must know each of them, and the versions that parts of a release share.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod values;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use values::ChartValue;

const HEAD: &str = "\
<!-- Made from values.yaml by `make docs`. -->
# Chart of vc-scheduler

Installs the scheduler with its custom resources, rights, configuration and metrics. How to begin, and what to
set beside Volcano: [install](https://github.com/vc-scheduler/vc-scheduler/blob/main/docs/install.md).

<!-- not run: needs helm and an image in a registry; tests/apiserver/render.sh renders the chart with helm -->
```
helm install vc-scheduler deploy/chart --namespace volcano-system --create-namespace \\
  --set image.repository=registry.example/vc-scheduler --set image.tag=0.1.0
helm test vc-scheduler --namespace volcano-system
```

`helm test` starts a pod that this scheduler has to bind, and that checks the configuration.

## Values

A value that is not in this table is refused.

| Value | Default | What it is |
|---|---|---|
";

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/chart")
}

fn chart_values() -> Vec<ChartValue> {
    values::read(&fs::read_to_string(chart().join("values.yaml")).unwrap())
}

#[test]
fn the_readme_has_the_values_as_they_are() {
    let mut page = HEAD.to_owned();
    for value in chart_values() {
        let default = match value.default.as_str() {
            "" => "see values.yaml".to_owned(),
            default => format!("`{default}`"),
        };
        let comment = value.comment.replace('|', "\\|");
        writeln!(page, "| `{}` | {default} | {comment} |", value.path).unwrap();
    }
    let file = chart().join("README.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let there = fs::read_to_string(&file).unwrap_or_default();
    assert!(there == page, "deploy/chart/README.md is not as `make docs` writes it");
}

#[test]
fn every_value_is_explained() {
    let lacking: Vec<String> = chart_values()
        .into_iter()
        .filter(|value| value.comment.is_empty())
        .map(|value| value.path)
        .collect();
    assert!(lacking.is_empty(), "values.yaml says nothing of {lacking:?}");
}

#[test]
fn the_chart_and_the_changelog_have_the_version_of_the_programs() {
    let version = env!("CARGO_PKG_VERSION");
    let read = |path: &str| fs::read_to_string(chart().join(path)).unwrap();
    let chart = read("Chart.yaml");
    for line in [format!("version: {version}"), format!("appVersion: {version}")] {
        assert!(chart.lines().any(|known| known == line), "Chart.yaml lacks {line}");
    }
    let heading = format!("## [{version}]");
    let changelog = read("../../CHANGELOG.md");
    assert!(changelog.lines().any(|line| line.starts_with(&heading)), "CHANGELOG.md: {heading}");
}

#[test]
fn the_image_is_built_with_the_toolchain_that_it_has() {
    let dockerfile = fs::read_to_string(chart().join("../../Dockerfile")).unwrap();
    let after = |start| dockerfile.lines().find_map(|line| line.strip_prefix(start)).unwrap();
    let image = after("FROM --platform=$BUILDPLATFORM rust:");
    let toolchain = after("ENV RUSTUP_TOOLCHAIN=");
    assert!(
        image.starts_with(&format!("{toolchain}-")),
        "{image} has another Rust than {toolchain}"
    );
    let number = |version: &str| -> Vec<u32> {
        version.split('.').map(|part| part.parse().unwrap()).collect()
    };
    assert!(number(env!("CARGO_PKG_RUST_VERSION")) <= number(toolchain), "{toolchain} is too old");
}

#[test]
fn base_images_are_named_by_digest() {
    let dockerfile = fs::read_to_string(chart().join("../../Dockerfile")).unwrap();
    let stages: Vec<&str> =
        dockerfile.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    let own: Vec<&str> =
        stages.iter().filter_map(|stage| stage.split_once(" AS ")).map(|(_, own)| own).collect();
    let mut n_external = 0;
    for stage in stages {
        let image = stage.split(' ').find(|word| !word.starts_with("--")).unwrap();
        if own.contains(&image) {
            continue;
        }
        n_external += 1;
        let digest = image.split_once("@sha256:").map(|(_, digest)| digest);
        let is_digest =
            |text: &str| text.len() == 64 && text.chars().all(|letter| letter.is_ascii_hexdigit());
        assert!(digest.is_some_and(is_digest), "{image} has no digest");
    }
    assert_eq!(n_external, 2);
}

/// Paths of the values that the schema knows by name: objects without named members are one value.
fn paths_of_schema(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    match schema["properties"].as_object() {
        Some(members) if schema["additionalProperties"] == false => {
            for (name, member) in members {
                let path = [path, name].join(".");
                paths_of_schema(member, path.trim_start_matches('.'), found);
            }
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

#[test]
fn the_schema_knows_every_value_and_no_other() {
    let schema = fs::read_to_string(chart().join("values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let mut known = BTreeSet::new();
    paths_of_schema(&schema, "", &mut known);
    let values: BTreeSet<String> = chart_values().into_iter().map(|value| value.path).collect();
    // A value with an object as its default: the schema may name the members of it.
    let is_below = |path: &str, value: &str| {
        path == value || path.strip_prefix(value).is_some_and(|rest| rest.starts_with('.'))
    };
    for value in &values {
        assert!(known.iter().any(|path| is_below(path, value)), "the schema lacks {value}");
    }
    for path in known.iter().filter(|path| *path != "global") {
        assert!(values.iter().any(|value| is_below(path, value)), "there is no value {path}");
    }
}
