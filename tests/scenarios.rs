//! Every scenario under `tests/scenarios`, through the whole engine. What a later version brings
//! stands in `tests/scenarios/skip.txt`, one `<name or prefix*>: <what> not built yet` a line.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use vc_sim::scenario::{
    self, EvaluatorChoice, ScenarioSuite, ScenarioVerdict, TestedScenario, Write,
};

struct Skip {
    /// A name, or the beginning of names with a `*` after it.
    pattern: String,
}

impl Skip {
    fn matches(&self, name: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == self.pattern,
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// The entries of a skip list. Empty lines and comments do not count.
fn skips(text: &str) -> Vec<Skip> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let entry = |line: &str| {
        let (pattern, reason) =
            line.split_once(": ").unwrap_or_else(|| panic!("no reason: {line}"));
        assert!(reason.ends_with(" not built yet"), "the reason must be `X not built yet`: {line}");
        Skip { pattern: pattern.to_owned() }
    };
    lines.map(entry).collect()
}

/// The faults of a run under a skip list, one text each.
fn faults(tested: &[TestedScenario], skips: &[Skip]) -> Vec<String> {
    let mut faults = Vec::new();
    for TestedScenario { name, verdict, file } in tested {
        let skipped = skips.iter().any(|skip| skip.matches(name));
        match (verdict, skipped) {
            (ScenarioVerdict::Passed, _) | (_, true) => {}
            (ScenarioVerdict::Failed(differences), false) => {
                faults.push(format!(
                    "{name} ({}):\n  {}",
                    file.display(),
                    differences.join("\n  ")
                ));
            }
            (other, false) => faults.push(format!("{name}: {other:?}")),
        }
    }
    for skip in skips {
        let mut matching = tested.iter().filter(|tested| skip.matches(&tested.name)).peekable();
        if matching.peek().is_none() {
            faults.push(format!("{}: on the list, but there is no such scenario", skip.pattern));
        } else if matching.all(|tested| tested.verdict == ScenarioVerdict::Passed) {
            // One that needs more than is built may pass by accident, not all of an area.
            faults.push(format!("{}: passes, take it off the list", skip.pattern));
        }
    }
    faults
}

#[test]
fn every_scenario_holds_or_is_not_built_yet() {
    let evaluators = EvaluatorChoice::Both;
    let suite =
        ScenarioSuite { paths: vec![folder()], filter: None, write: Write::Never, evaluators };
    let report = scenario::run(&suite).unwrap();
    let list = std::fs::read_to_string(folder().join("skip.txt")).unwrap();
    let faults = faults(&report.tested, &skips(&list));
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

const GUIDE: &str = include_str!("../docs/preempt-and-reclaim.md");

/// The files in the last column of the guide's table of symptoms.
fn files_of_the_guide() -> Vec<String> {
    let table = GUIDE.split("| Symptom | Cause | Remedy | File |").nth(1).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("|---"));
    let file = |row: &str| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        assert_eq!(cells.len(), 4, "four cells: {row}");
        cells[3].trim().trim_matches('`').to_owned()
    };
    rows.map(file).collect()
}

#[test]
fn every_symptom_of_the_guide_has_a_scenario_that_shows_it() {
    let files = files_of_the_guide();
    assert!(20 < files.len());
    for file in &files {
        assert!(folder().join(file).is_file(), "docs/preempt-and-reclaim.md: no such file: {file}");
    }
    for entry in std::fs::read_dir(folder().join("guide")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(GUIDE.contains(&name), "not in the guide: {name}");
    }
}

/// Scenario files that a page names.
fn files_in(page: &str) -> Vec<&str> {
    page.split('`').filter(|word| word.ends_with(".yaml") && word.contains('/')).collect()
}

#[test]
fn every_example_of_the_page_on_cohorts_is_there() {
    let page = include_str!("../docs/cohort.md");
    let of_config = |file: &str| file.starts_with("config/");
    let files: Vec<&str> = files_in(page).into_iter().filter(|file| !of_config(file)).collect();
    assert!(15 < files.len());
    for file in files {
        assert!(folder().join(file).is_file(), "docs/cohort.md: no such file: {file}");
    }
    for entry in std::fs::read_dir(folder().join("own")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.contains("cohort-") || page.contains(&name), "not on the page: {name}");
    }
}

#[test]
fn a_skip_list_that_is_out_of_date_is_a_fault() {
    let tested =
        |name: &str, verdict| TestedScenario { file: "f".into(), name: name.into(), verdict };
    let failed = || ScenarioVerdict::Failed(vec!["d".to_owned()]);
    let run =
        [tested("a/1", ScenarioVerdict::Passed), tested("a/2", failed()), tested("b/1", failed())];
    let reported = |list: &str| faults(&run, &skips(list));
    assert_eq!(reported("a/2: x not built yet\nb/*: y not built yet\n"), [""; 0]);
    assert_eq!(reported("# all\n\n*: x not built yet"), [""; 0]);
    let passes = reported("a/1: x not built yet\na/2: y not built yet\nb/*: z not built yet");
    assert_eq!(passes, ["a/1: passes, take it off the list"]);
    assert_eq!(reported("a/1*: x not built yet\n*: y not built yet").len(), 1);
    assert_eq!(reported("a/2: x not built yet"), ["b/1 (f):\n  d"]);
    let gone = reported("a/2: x not built yet\nb/1: x not built yet\nc/*: x not built yet");
    assert_eq!(gone, ["c/*: on the list, but there is no such scenario"]);
}
