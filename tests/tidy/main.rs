//! Keeps the architecture true: which crate may know which, what core code must not touch, how files begin.
//! Described in ARCHITECTURE.md; the dependencies in CONTRIBUTING.md.

mod broken_rules;
mod documents;
mod links;
mod source;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which of our crates each crate may depend on. A new arrow is reviewed here.
const ARROWS: &[(&str, &[&str])] = &[
    ("resource", &[]),
    ("model", &["resource"]),
    ("conf", &["text"]),
    ("cel", &["resource", "model"]),
    ("cohort", &["resource", "model"]),
    ("text", &[]),
    ("http", &[]),
    ("filters", &["cel", "resource", "model"]),
    ("framework", &["model", "conf", "resource"]),
    ("plugins", &["framework", "filters", "cohort", "model", "resource", "conf"]),
    ("actions", &["framework", "model", "resource", "conf"]),
    ("engine", &["actions", "plugins", "filters", "framework", "model", "resource", "conf"]),
    ("bundle", &["engine"]),
    ("answers", &["engine", "actions", "framework", "plugins", "model", "resource", "conf"]),
    ("objects", &["answers", "engine", "wire", "conf", "model", "resource"]),
    ("page", &["objects", "answers", "http", "engine", "model", "resource", "text"]),
    ("wire", &["model", "resource", "text"]),
    ("kube", &["text", "wire", "model", "engine"]),
    ("telemetry", &["engine"]),
    ("daemon", &["kube", "telemetry", "engine", "conf", "model", "wire"]),
    (
        "sim",
        &[
            "daemon", "objects", "answers", "bundle", "page", "kube", "text", "http", "wire",
            "engine", "plugins", "actions", "conf", "model", "resource",
        ],
    ),
    ("cli", &["objects", "page", "http", "kube", "sim", "conf", "text"]),
];

const CORE: &[&str] = &[
    "resource",
    "model",
    "cohort",
    "filters",
    "framework",
    "plugins",
    "actions",
    "engine",
    "answers",
];

const BANNED_DEPENDENCIES: &[&str] =
    &["tokio", "kube", "k8s-openapi", "prometheus", "rand", "axum"];

const BANNED_TEXTS: &[&str] =
    &["Instant::now", "SystemTime", "std::env", "println!", "std::fs", "std::net", "unsafe {"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Names under `[dependencies]` of a manifest.
fn dependencies(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).expect("a manifest");
    let lines = text.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let name = |line: &str| line.split(['=', '.']).next().map(|name| name.trim().to_owned());
    lines.filter_map(name).filter(|name| !name.is_empty() && !name.starts_with('#')).collect()
}

/// Names under any table of dependencies of a manifest.
fn all_dependencies(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).expect("a manifest");
    let (mut names, mut is_inside) = (Vec::new(), false);
    for line in text.lines() {
        if let Some(table) = line.strip_prefix('[') {
            is_inside = table.trim_end_matches(']').ends_with("dependencies");
        } else if is_inside && line.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            let name = line.split(['=', '.']).next().expect("a first part");
            names.push(name.trim().to_owned());
        }
    }
    names
}

/// The pages of the root folder and of docs, without the specification.
fn pages() -> Vec<PathBuf> {
    pages_of(&["", "docs"])
}

fn pages_of(folders: &[&str]) -> Vec<PathBuf> {
    let files = folders.iter().map(|folder| fs::read_dir(root().join(folder)).expect("a folder"));
    let paths = files.flatten().map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn crates() -> Vec<String> {
    let folders = fs::read_dir(root().join("crates")).expect("the folder crates");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().into_string().expect("a UTF-8 name")
    };
    let mut names: Vec<String> = folders.map(name).collect();
    names.sort();
    names
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn crates_know_only_what_the_table_says() {
    let table: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let listed: Vec<String> = table.keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(crates(), listed, "every crate has a row, every row a crate");
    for (name, allowed) in ARROWS {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        for dependency in dependencies(&manifest) {
            if let Some(ours) = dependency.strip_prefix("vc-") {
                assert!(allowed.contains(&ours), "vc-{name} must not depend on vc-{ours}");
            }
        }
    }
}

#[test]
fn the_architecture_shows_the_arrows() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    for (name, allowed) in ARROWS {
        let row = page.lines().find(|line| line.starts_with(&format!("| `vc-{name}` |")));
        let cells: Vec<&str> = row.unwrap_or_default().split(" | ").collect();
        let shown = cells.last().map(|cell| cell.trim_end_matches(['|', ' '])).unwrap_or_default();
        let shown: BTreeSet<&str> = shown.split(", ").filter(|name| *name != "-").collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        assert_eq!(shown, allowed, "ARCHITECTURE.md: vc-{name}");
    }
}

#[test]
fn a_page_says_why_of_every_dependency() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("the page");
    let table = text.split("| Dependency | Why |").nth(1).expect("the table of dependencies");
    let rows = table.lines().take_while(|line| line.is_empty() || line.starts_with('|'));
    let cells: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).collect();
    let named: BTreeSet<&str> = cells
        .iter()
        .flat_map(|cell| cell.split(','))
        .map(|name| name.trim_matches([' ', '`']))
        .collect();
    let manifests = crates().into_iter().map(|name| root().join("crates").join(name));
    for folder in manifests.chain([root()]) {
        for name in all_dependencies(&folder.join("Cargo.toml")) {
            let is_ours = name.starts_with("vc-");
            assert!(is_ours || named.contains(name.as_str()), "{}: {name}", folder.display());
        }
    }
}

#[test]
fn core_crates_have_no_edge_dependency() {
    for name in CORE {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        for dependency in dependencies(&manifest) {
            let banned = BANNED_DEPENDENCIES.contains(&dependency.as_str());
            assert!(!banned, "core crate vc-{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn core_code_has_no_clock_and_no_input_or_output() {
    for name in CORE {
        let mut files = Vec::new();
        sources(&root().join("crates").join(name).join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            for banned in BANNED_TEXTS {
                assert!(!text.contains(banned), "{} must not use {banned}", file.display());
            }
        }
    }
}

#[test]
fn every_file_says_what_it_is() {
    let mut files = Vec::new();
    for folder in ["src", "crates", "tests", "benches"] {
        sources(&root().join(folder), &mut files);
    }
    assert!(50 < files.len(), "the search for sources found only {}", files.len());
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        assert!(text.starts_with("//!"), "{} must begin with `//!`", file.display());
    }
}

#[test]
fn every_plugin_file_is_in_the_list() {
    let folder = root().join("crates/plugins/src");
    let list = fs::read_to_string(folder.join("lib.rs")).expect("the list of plugins");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        if text.contains("const ENTRY: PluginEntry") {
            let stem = file.file_stem().expect("a file name").to_string_lossy().into_owned();
            let module = match stem.as_str() {
                "mod" => {
                    file.parent().and_then(Path::file_name).expect("a folder").to_string_lossy()
                }
                _ => stem.as_str().into(),
            };
            let element = format!("{module}::ENTRY");
            assert!(list.contains(&element), "{} is not in vc_plugins::ALL", file.display());
        }
    }
}

#[test]
fn the_project_stands_alone() {
    let mut files = pages();
    files.push(root().join("Makefile"));
    for folder in ["src", "crates", "tests", "benches"] {
        sources(&root().join(folder), &mut files);
    }
    // A folder outside, and a document of it: nobody who has the project alone finds them.
    let outside = [["..", "shared/"].join("/"), ["DESIGN", "md"].join(".")];
    for file in files.iter().filter(|file| !file.ends_with("tests/tidy/main.rs")) {
        let text = fs::read_to_string(file).expect("a text file");
        for place in &outside {
            assert!(!text.contains(place), "{} names {place}", file.display());
        }
    }
}

#[test]
fn every_type_of_the_glossary_is_in_its_file() {
    let page = fs::read_to_string(root().join("docs/glossary.md")).expect("the glossary");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    for row in rows.filter(|row| row.ends_with(".rs`")) {
        let cells: Vec<&str> = row.split(" | ").map(|cell| cell.trim_matches('`')).collect();
        let &[_term, _meaning, name, file] = cells.as_slice() else { panic!("four cells: {row}") };
        let text = fs::read_to_string(root().join("crates").join(file));
        let text = text.unwrap_or_else(|error| panic!("glossary: {file}: {error}"));
        let name = name.rsplit("::").next().unwrap_or(name);
        let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        assert!(words.any(|word| word == name), "glossary: no {name} in {file}");
    }
}

#[test]
fn every_file_of_the_architecture_is_there() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let codes = page.split('`').skip(1).step_by(2).filter(|code| code.ends_with(".rs"));
    for file in codes {
        let is_there =
            [root().join(file), root().join("crates").join(file)].iter().any(|it| it.exists());
        assert!(is_there, "ARCHITECTURE.md: no file {file}");
    }
}

/// Numbers of a document's deviations that were never used.
const UNUSED: &[(&str, &str, &[u32])] = &[
    ("core.md", "C-", &[]),
    ("actions.md", "A", &[]),
    ("plugins-jobs-queues.md", "D", &[10, 19, 32]),
];

#[test]
fn every_deviation_is_told_to_users() {
    let page = fs::read_to_string(root().join("docs/differences-from-volcano.md")).expect("it");
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let reported: Vec<&str> = page.split(|letter| !is_part(letter)).collect();
    for &(file, letter, unused) in UNUSED {
        let text = fs::read_to_string(root().join("docs/spec").join(file)).expect("a chapter");
        let words = text.split(|letter| !is_part(letter));
        let numbers = words.filter_map(|word| word.strip_prefix(letter)?.parse::<u32>().ok());
        let numbers: BTreeSet<u32> = numbers.collect();
        assert!(30 < numbers.len(), "{file}: {numbers:?}");
        for number in numbers {
            let name = match letter {
                "C-" => format!("C-{number:02}"),
                _ => format!("{letter}{number}"),
            };
            let is_told = reported.contains(&name.as_str());
            assert_ne!(is_told, unused.contains(&number), "{file}: {name}");
        }
    }
}
