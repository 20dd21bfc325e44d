//! `docs/metrics.md` is what the table says; dashboard and alerts use only names and labels that
//! exist, in the way that they need.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use vc_telemetry::{MetricKind, TABLE, reference};

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

/// A file of the chart.
fn monitoring(name: &str) -> String {
    let path = root().join("deploy/chart/monitoring").join(name);
    fs::read_to_string(&path).expect("it is shipped")
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
            MetricKind::Histogram => {
                known.extend(["bucket", "sum", "count"].map(|part| format!("{}_{part}", row.name)));
            }
            MetricKind::Gauge | MetricKind::Counter => {
                known.insert(row.name.to_owned());
            }
        }
    }
    for name in ["dashboard.json", "alerts.yaml"] {
        let text = monitoring(name);
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
    let text = monitoring("dashboard.json");
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

/// Labels that a scrape adds to every series.
const OF_TARGETS: [&str; 6] = ["cluster", "namespace", "job", "service", "instance", "pod"];

/// Labels that a series of this name is exposed with; `None`: there is no such name.
fn labels(series: &str) -> Option<Vec<&'static str>> {
    // These are the operating system's and not in the table.
    if series.starts_with("process_") {
        return Some(Vec::new());
    }
    TABLE.iter().find_map(|row| {
        let labels = row.labels.iter().copied();
        match (row.kind, series.strip_prefix(row.name)?) {
            (MetricKind::Histogram, "_bucket") => Some(labels.chain(["le"]).collect()),
            (MetricKind::Histogram, "_sum" | "_count") => Some(labels.collect()),
            (MetricKind::Gauge | MetricKind::Counter, "") => Some(labels.collect()),
            _ => None,
        }
    })
}

/// A series that an expression reads.
#[derive(Debug)]
struct Read<'a> {
    series: &'a str,
    /// What stands in the braces behind it.
    matchers: &'a str,
    /// Labels that the aggregations around it keep.
    kept: Vec<&'a str>,
}

impl<'a> Read<'a> {
    /// Names of labels in the braces.
    fn matched(&self) -> impl Iterator<Item = &'a str> {
        self.matchers.split(',').map(|matcher| word(matcher.trim()).0).filter(|it| !it.is_empty())
    }

    fn has(&self, label: &str) -> bool {
        let own = labels(self.series).unwrap_or_default();
        own.contains(&label) || OF_TARGETS.contains(&label)
    }
}

/// The word with which the text begins, if any, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    text.split_at(end.unwrap_or(text.len()))
}

/// What stands in the brackets with which the text begins, and what follows them.
fn inside(text: &str, [open, close]: [char; 2]) -> (&str, &str) {
    let inner = text.strip_prefix(open).unwrap_or_else(|| panic!("no {open}: {text}"));
    inner.split_once(close).unwrap_or_else(|| panic!("{open} is not closed: {text}"))
}

/// What an expression of PromQL reads, as far as dashboard and alerts use the language.
fn reads(expression: &str) -> Vec<Read<'_>> {
    let mut reads = Vec::new();
    // For each open parenthesis the labels that the aggregation before it keeps.
    let mut open: Vec<Vec<&str>> = Vec::new();
    let (mut kept, mut is_filter) = (Vec::new(), false);
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let (name, after) = word(rest);
        let next = after.trim_start();
        match (first, name) {
            ('(', _) => {
                open.push(std::mem::take(&mut kept));
                rest = &rest[1..];
            }
            (')', _) => {
                open.pop().unwrap_or_else(|| panic!(") closes nothing: {expression}"));
                rest = &rest[1..];
            }
            ('[', _) => rest = inside(rest, ['[', ']']).1,
            (_, "") => rest = &rest[first.len_utf8()..],
            (_, "by") => {
                let (list, behind) = inside(next, ['(', ')']);
                kept = list.split(',').map(str::trim).collect();
                assert!(behind.trim_start().starts_with('('), "no ( behind by: {expression}");
                rest = behind;
            }
            // What follows only says which series count; nothing of it is in the result.
            (_, "on") => {
                let (list, behind) = inside(next, ['(', ')']);
                let is_known = |label: &str| OF_TARGETS.contains(&label.trim());
                assert!(list.split(',').all(is_known), "on ({list}): {expression}");
                is_filter = true;
                rest = behind;
            }
            (_, "and" | "or" | "unless" | "offset") => rest = after,
            // A number, a function, an aggregation.
            _ if first.is_ascii_digit() || next.starts_with('(') || next.starts_with("by ") => {
                rest = after;
            }
            _ => {
                let (matchers, behind) = match after.starts_with('{') {
                    true => inside(after, ['{', '}']),
                    false => ("", after),
                };
                let kept = if is_filter { Vec::new() } else { open.concat() };
                is_filter = false;
                reads.push(Read { series: name, matchers, kept });
                rest = behind;
            }
        }
    }
    assert!(open.is_empty(), "( is not closed: {expression}");
    reads
}

/// The expressions of the dashboard, each with its legend.
fn targets() -> Vec<(String, String)> {
    let dashboard = monitoring("dashboard.json");
    let texts = |key: &str| -> Vec<String> {
        let begin = format!("\"{key}\": \"");
        let lines = dashboard.lines().filter_map(|line| line.trim().strip_prefix(begin.as_str()));
        let texts = lines.map(|line| line.trim_end_matches(',').strip_suffix('"'));
        texts.map(|text| text.expect("it ends in its line").replace("\\\"", "\"")).collect()
    };
    let (expressions, legends) = (texts("expr"), texts("legendFormat"));
    assert!(50 < expressions.len());
    assert_eq!(expressions.len(), legends.len());
    expressions.into_iter().zip(legends).collect()
}

/// The alerts: the expression, in one line, and all of the text.
fn alerts() -> Vec<(String, String)> {
    let file = monitoring("alerts.yaml");
    let split = |alert: &str| {
        let (_, from) = alert.split_once("\n    expr: ").expect("an alert has an expression");
        let (first, more) = from.split_once('\n').expect("something follows it");
        let more = more.lines().take_while(|line| line.starts_with("      "));
        let lines: Vec<&str> = [first.trim_start_matches('|')].into_iter().chain(more).collect();
        (lines.join(" "), alert.to_owned())
    };
    let alerts: Vec<_> = file.split("\n  - alert: ").skip(1).map(split).collect();
    assert!(5 < alerts.len());
    alerts
}

/// Whether series that come out of the expression have the label.
fn gives(expression: &str, label: &str) -> bool {
    reads(expression).iter().any(|read| match read.kept.is_empty() {
        true => read.has(label),
        false => read.kept.contains(&label),
    })
}

#[test]
fn labels_in_dashboard_and_alerts_exist() {
    for (expression, _) in targets().iter().chain(&alerts()) {
        let reads = reads(expression);
        assert!(!reads.is_empty(), "{expression}");
        for read in &reads {
            assert!(labels(read.series).is_some(), "{}: {expression}", read.series);
            for label in read.matched().chain(read.kept.iter().copied()) {
                assert!(read.has(label), "{} has no {label}: {expression}", read.series);
            }
        }
    }
    for (expression, legend) in &targets() {
        for label in legend.split("{{").skip(1).map(|rest| word(rest).0) {
            assert!(gives(expression, label), "legend {legend}: {expression}");
        }
    }
    for (expression, text) in &alerts() {
        for label in text.split("$labels.").skip(1).map(|rest| word(rest).0) {
            assert!(gives(expression, label), "{label} in the text of: {expression}");
        }
    }
}

#[test]
fn each_alert_leads_to_its_heading_of_the_troubleshooting_page() {
    const PAGE: &str =
        "https://github.com/vc-scheduler/vc-scheduler/blob/main/docs/troubleshooting.md#";
    for (_, text) in alerts() {
        let name = text.lines().next().expect("an alert has a name").to_lowercase();
        let url = format!("      runbook_url: {PAGE}{name}");
        assert!(text.lines().any(|line| line == url), "{name} lacks: {url}");
    }
}

#[test]
fn all_of_the_dashboard_is_about_the_chosen_job() {
    for (expression, _) in targets() {
        for read in reads(&expression) {
            let is_chosen = read.matchers.split(',').any(|matcher| matcher == "job=~\"$job\"");
            assert!(is_chosen, "{}: {expression}", read.series);
        }
    }
    // Names that other programs have too would be all of theirs.
    assert!(!monitoring("dashboard.json").contains("\"allValue\""));
}

#[test]
fn amounts_that_are_whole_are_not_divided() {
    for (expression, _) in targets() {
        for read in reads(&expression).iter().filter(|read| read.series.contains("_scalar_")) {
            assert!(read.matched().any(|label| label == "resource"), "{expression}");
        }
    }
}

/// Its series is not there before its first event.
#[test]
fn alerts_see_the_first_event_of_a_counter_with_labels() {
    let mut n_counters = 0;
    let is_born_late = |series: &str| {
        let mut rows = TABLE.iter().filter(|row| row.kind == MetricKind::Counter);
        rows.any(|row| row.name == series && !row.labels.is_empty())
    };
    for (expression, _) in &alerts() {
        for read in reads(expression).iter().filter(|read| is_born_late(read.series)) {
            if expression.contains(&format!("increase({}", read.series)) {
                let new = format!("unless {}", read.series);
                assert!(expression.contains(&new), "{}: {expression}", read.series);
                n_counters += 1;
            }
        }
    }
    assert!(3 < n_counters);
}

#[test]
fn alerts_about_names_of_others_are_about_our_processes() {
    for (expression, _) in &alerts() {
        if reads(expression).iter().any(|read| read.series.starts_with("rest_client_")) {
            assert!(expression.contains("and on (job, instance) volcano_leader"), "{expression}");
        }
    }
}

#[test]
fn expressions_are_taken_apart() {
    let expression =
        "sum by (kind, le) (rate(a_b{x=~\"1|2\", y=\"z\"}[5m]) and on (job) c) / 2 or d";
    let reads = reads(expression);
    let names: Vec<&str> = reads.iter().map(|read| read.series).collect();
    assert_eq!(names, ["a_b", "c", "d"]);
    assert_eq!(reads[0].matched().collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(reads[0].kept, ["kind", "le"]);
    assert!(reads[1].kept.is_empty() && reads[2].kept.is_empty());
}

#[test]
#[should_panic(expected = "( is not closed")]
fn a_parenthesis_that_is_not_closed_is_found() {
    reads("sum(rate(volcano_leader[5m])");
}

#[test]
#[should_panic(expected = "[ is not closed")]
fn a_bracket_that_is_not_closed_is_found() {
    reads("rate(volcano_leader[5m)");
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
        assert_eq!(row.kind == MetricKind::Histogram, !row.buckets.is_empty(), "{}", row.name);
        assert!(row.buckets.is_sorted(), "{}", row.name);
        assert!(!row.help.is_empty() && !row.updated.is_empty(), "{}", row.name);
    }
}
