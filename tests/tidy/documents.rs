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
