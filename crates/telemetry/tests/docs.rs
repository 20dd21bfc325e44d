//! `docs/metrics.md` is what the table says; dashboard and alerts use only names that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use vc_telemetry::{Kind, TABLE, reference};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_page_of_metrics_is_up_to_date() {
    let path = root().join("docs/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, reference()).expect("docs can be written");
    }
    let page = fs::read_to_string(&path).expect("the page exists");
    assert!(page == reference(), "run: UPDATE_DOCS=1 cargo test -p vc-telemetry");
}

/// Names of the exposition that begin with `volcano_`, and the type of the metric.
fn exposed(text: &str) -> BTreeSet<&str> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let words = text.split(|character| !is_part(character));
    words.filter(|word| word.starts_with("volcano_")).collect()
}

#[test]
fn dashboard_and_alerts_name_only_metrics_that_exist() {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for row in TABLE {
        match row.kind {
            Kind::Histogram => {
                known.extend(["bucket", "sum", "count"].map(|part| format!("{}_{part}", row.name)));
            }
            Kind::Gauge | Kind::Counter => {
                known.insert(row.name.to_owned());
            }
        }
    }
    for name in ["dashboard.json", "alerts.yaml"] {
        let path = root().join("deploy/chart/monitoring").join(name);
        let text = fs::read_to_string(&path).expect("it is shipped");
        // Texts for people name a histogram without its parts.
        let people = |name: &&str| TABLE.iter().any(|row| row.name == *name);
        let names = exposed(&text);
        assert!(5 < names.len(), "{name} names metrics");
        for metric in names.into_iter().filter(|name| !people(name)) {
            assert!(known.contains(metric), "{name}: {metric}");
        }
    }
}

#[test]
fn the_dashboard_shows_every_metric_that_changes() {
    let path = root().join("deploy/chart/monitoring/dashboard.json");
    let text = fs::read_to_string(&path).expect("it is shipped");
    let shown = exposed(&text);
    let of_scrapes = |name: &str| name.starts_with("promhttp_");
    let missing: Vec<&str> = { TABLE.iter() }
        .filter(|row| !row.updated.starts_with("never") && !of_scrapes(row.name))
        .map(|row| row.name)
        .filter(|name| match name.starts_with("volcano_") {
            true => !shown.iter().any(|other| other.starts_with(name)),
            false => !text.contains(name),
        })
        .collect();
    assert!(missing.is_empty(), "no panel has these: {missing:?}");
}

#[test]
fn names_of_the_specification_are_in_the_table() {
    let text = fs::read_to_string(root().join("docs/spec/core.md")).expect("it is there");
    let section = text.split("\n## 9.1 ").nth(1).expect("9.1");
    let section = section.split("\n## 9.2 ").next().expect("9.1 ends");
    let mut n_names = 0;
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cell = row.split('|').nth(1).expect("a first cell");
        for name in cell.split('`').skip(1).step_by(2) {
            let name = format!("volcano_{name}");
            assert!(TABLE.iter().any(|row| row.name == name), "{name}");
            n_names += 1;
        }
    }
    assert_eq!(n_names, 21);
    for amount in ["allocated", "request", "deserved", "capacity", "real_capacity", "inqueue"] {
        for unit in ["milli_cpu", "memory_bytes", "scalar_resources"] {
            let name = format!("volcano_queue_{amount}_{unit}");
            assert!(TABLE.iter().any(|row| row.name == name), "{name}");
        }
    }
}

#[test]
fn every_row_is_one_metric() {
    let names: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), TABLE.len());
    for row in TABLE {
        assert_eq!(row.kind == Kind::Histogram, !row.buckets.is_empty(), "{}", row.name);
        assert!(row.buckets.is_sorted(), "{}", row.name);
        assert!(!row.help.is_empty() && !row.updated.is_empty(), "{}", row.name);
    }
}
