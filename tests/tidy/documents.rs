//! The pages for users name what the code has: every action and plugin, every annotation and label,
//! every wait cause and every alert.

use std::collections::BTreeSet;
use std::fs;

use crate::root;

/// The text of a file of the project.
fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The section of a page below this heading, up to the next heading of the same or a higher level.
fn section(page: &str, heading: &str) -> String {
    let level = heading.chars().take_while(|&letter| letter == '#').count();
    let is_end = |line: &&str| {
        let hashes = line.chars().take_while(|&letter| letter == '#').count();
        0 < hashes && hashes <= level
    };
    let lines = page.lines().skip_while(|line| *line != heading).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !is_end(line)).collect();
    assert!(!lines.is_empty(), "no section {heading}");
    lines.join("\n")
}

/// The codes in the first cells of all rows: names between backquotes.
fn first_cells(section: &str) -> BTreeSet<&str> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn the_configuration_says_what_each_action_and_plugin_does() {
    let page = read("docs/configuration.md");
    let plugins = read("crates/plugins/src/lib.rs");
    // Names of modules have no hyphens.
    let plugins = plugins.replace('_', "-");
    let built = plugins.lines().filter_map(|line| line.trim().strip_suffix("::ENTRY,"));
    let actions = read("crates/actions/src/lib.rs");
    let names = actions.split("pub const NAMES").nth(1).expect("the names of the actions");
    let names = names.split(';').next().unwrap_or_default().split('"').skip(1).step_by(2);
    for (heading, names) in [
        ("## What each plugin does", built.collect::<BTreeSet<&str>>()),
        ("## What each action does", names.collect()),
    ] {
        assert!(7 < names.len(), "{heading}: {names:?}");
        assert_eq!(first_cells(&section(&page, heading)), names, "{heading}");
    }
}

/// The texts of a source file, without comments and without its tests.
fn literals(source: &str) -> Vec<&str> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split('"').skip(1).step_by(2)).collect()
}

/// True for a text that has the form of an annotation or a label of Kubernetes, Volcano or vcsim.
fn is_key(text: &str) -> bool {
    const DOMAINS: &[&str] = &["volcano.sh", "k8s.io", "kubernetes.io", "vcsim"];
    let Some((domain, name)) = text.split_once('/') else { return false };
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let is_version = name.starts_with('v') && name[1..].starts_with(|n: char| n.is_ascii_digit());
    let is_ours = DOMAINS.iter().any(|known| domain.ends_with(known));
    let is_known = is_ours || domain.starts_with("topology.");
    is_known && !name.is_empty() && !is_version && text.replace('/', "").chars().all(is_part)
}

/// The texts of a constant that is a list of texts.
fn list<'a>(source: &'a str, constant: &str) -> Vec<&'a str> {
    let text = source.split(&format!("const {constant}: &[&str] = &[")).nth(1);
    let text = text.unwrap_or_else(|| panic!("no list {constant}"));
    literals(text.split("];").next().unwrap_or_default())
}

/// Every key that the code reads or writes. The code puts some of them together from two parts.
fn keys_of_the_code() -> BTreeSet<String> {
    let mut files = Vec::new();
    ["src", "crates"].iter().for_each(|folder| crate::sources(&root().join(folder), &mut files));
    let in_tests = |file: &&std::path::PathBuf| file.components().any(|c| c.as_os_str() == "tests");
    let mut keys = BTreeSet::new();
    for file in files.iter().filter(|file| !in_tests(file)) {
        let text = fs::read_to_string(file).expect("a source file");
        keys.extend(literals(&text).into_iter().filter(|text| is_key(text)).map(str::to_owned));
    }
    let kept = read("crates/wire/src/annotations.rs");
    keys.extend(list(&kept, "VOLCANO").iter().map(|name| format!("volcano.sh/{name}")));
    keys.extend(list(&kept, "OTHERS").into_iter().map(str::to_owned));
    let reads = read("crates/plugins/src/cohort/queues.rs");
    let names = read("crates/plugins/src/cohort/arguments.rs");
    for part in reads.split("arguments::").skip(1) {
        let is_part = |letter: &char| letter.is_ascii_uppercase() || *letter == '_';
        let constant: String = part.chars().take_while(is_part).collect();
        let declared = names.split(&format!("const {constant}: Argument<")).nth(1);
        let declared = declared.filter(|_| !constant.is_empty());
        let value = declared.and_then(|rest| rest.split('"').nth(1));
        keys.extend(value.map(|value| format!("cohort.volcano.sh/{value}")));
    }
    let weight = reads.split("const WEIGHT: &str = \"").nth(1).and_then(|it| it.split('"').next());
    keys.extend(weight.map(|value| format!("cohort.volcano.sh/{value}")));
    // Resources and examples that have the form of a key.
    for other in ["node-role.kubernetes.io/", "requests.kubernetes.io/x"] {
        keys.remove(other);
    }
    keys
}

#[test]
fn every_annotation_and_label_has_a_row() {
    let page = read("docs/annotations.md");
    let page = page.split("## Pods").nth(1).expect("the tables");
    let named: BTreeSet<&str> = page.split('`').skip(1).step_by(2).collect();
    let keys = keys_of_the_code();
    assert!(70 < keys.len(), "{keys:?}");
    let lacking: Vec<&String> = keys.iter().filter(|key| !named.contains(key.as_str())).collect();
    assert!(lacking.is_empty(), "docs/annotations.md has no row for {lacking:?}");
    let unknown: Vec<&&str> =
        named.iter().filter(|name| is_key(name) && !keys.contains(**name)).collect();
    assert!(unknown.is_empty(), "docs/annotations.md names what nothing reads: {unknown:?}");
}

#[test]
fn only_keys_count_as_annotations_and_labels() {
    for (text, expected) in [
        ("volcano.sh/preemptable", true),
        ("cohort.volcano.sh/borrowWithinCohort.policy", true),
        ("topology.gke.io/zone", true),
        ("vcsim/run-seconds", true),
        ("scheduling.volcano.sh/v1beta1", false),
        ("volcano.sh/", false),
        ("cohort.volcano.sh/{key}", false),
        ("/var/run/secrets/kubernetes.io/serviceaccount", false),
        ("nvidia.com/gpu", false),
    ] {
        assert_eq!(is_key(text), expected, "{text}");
    }
    let source = "// \"a\"\nlet x = \"b\";\n#[cfg(test)]\nlet y = \"c\";\n";
    assert_eq!(literals(source), ["b"]);
}

/// The variants of an enum: names in the lines between these two texts.
fn variants(source: &str, begin: &str, end: &str) -> BTreeSet<String> {
    let body = source.split(begin).nth(1).and_then(|rest| rest.split(end).next());
    let lines = body.unwrap_or_else(|| panic!("no {begin}")).lines().map(str::trim);
    let names = lines.filter(|line| line.starts_with(|letter: char| letter.is_ascii_uppercase()));
    names.map(|line| line.chars().take_while(char::is_ascii_alphanumeric).collect()).collect()
}

/// The codes in the second cells of all rows of a section.
fn second_cells(section: &str) -> BTreeSet<String> {
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(1));
    cells.filter_map(|cell| Some(cell.strip_prefix('`')?.strip_suffix('`')?.to_owned())).collect()
}

#[test]
fn every_cause_has_a_row_in_troubleshooting() {
    let page = read("docs/troubleshooting.md");
    let waits = read("crates/framework/src/wait_cause.rs");
    let evicts = read("crates/framework/src/cause.rs");
    for (heading, causes) in [
        ("## A pod waits", variants(&waits, "\nwait_causes! {\n", "\n}\n")),
        ("## Nothing is evicted", variants(&evicts, "\npub enum Cause {\n", "\n}\n")),
    ] {
        assert!(9 < causes.len(), "{heading}: {causes:?}");
        assert_eq!(second_cells(&section(&page, heading)), causes, "{heading}");
    }
}

#[test]
fn every_reason_of_a_filter_has_a_row_in_troubleshooting() {
    let page = section(&read("docs/troubleshooting.md"), "## No node fits");
    let mut files = Vec::new();
    for name in ["filters", "plugins", "framework"] {
        crate::sources(&root().join("crates").join(name).join("src"), &mut files);
    }
    let texts: Vec<String> =
        files.iter().map(|file| fs::read_to_string(file).expect("a source file")).collect();
    let found = texts.iter().flat_map(|text| literals(text));
    let reasons: BTreeSet<&str> = found.filter(|text| text.starts_with("node(s) ")).collect();
    assert!(15 < reasons.len(), "{reasons:?}");
    for reason in reasons {
        // A text may go on in the next line of the source.
        let code = match reason.strip_suffix('\\') {
            Some(begin) => format!("`{begin}"),
            None => format!("`{reason}`"),
        };
        assert!(page.contains(&code), "no row for {reason}");
    }
}

/// `runbook_url` of an alert leads to its heading.
#[test]
fn every_alert_has_a_heading_in_troubleshooting() {
    let page = section(&read("docs/troubleshooting.md"), "## Alerts");
    let rules = read("deploy/chart/monitoring/alerts.yaml");
    let alerts: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert!(10 < alerts.len(), "{alerts:?}");
    assert_eq!(headings, alerts, "the order of the page is that of the rules");
}

/// The log begins its lines about refused requests with what was not done.
#[test]
fn every_refused_request_has_a_row_in_troubleshooting() {
    let page = section(&read("docs/troubleshooting.md"), "## Lines of the log");
    let mut files = Vec::new();
    crate::sources(&root().join("crates/kube/src"), &mut files);
    let mut found = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for call in ["failures.warn(\"", "self.done(answer, \""] {
            let texts = code.split(call).skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(texts.map(str::to_owned));
        }
    }
    assert!(10 < found.len(), "{found:?}");
    for text in found {
        assert!(page.contains(&format!("`{text}")), "no row for {text}");
    }
}
