//! Links between pages and to files, with their anchors; and the rows of the comparison with
//! Volcano, which are the same wherever they stand.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::{pages_of, root};

/// Folders with pages that have links.
const FOLDERS: &[&str] =
    &["", "docs", "docs/spec", "examples", "deploy/chart", "tests/apiserver", "tests/scenarios"];

/// The lines of a page without blocks of code, in which `#` begins a comment.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_inside ^= is_fence;
        !is_inside && !is_fence
    })
}

/// The anchors of a page, made from its headings as GitHub makes them: the second of two equal
/// headings gets `-1`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        let is_kept = |letter: &char| letter.is_alphanumeric() || "-_".contains(*letter);
        let plain: String = words.chars().filter(is_kept).collect();
        let count = counts.entry(plain.clone()).or_default();
        *count += 1;
        if *count == 1 { plain } else { format!("{plain}-{}", *count - 1) }
    };
    headings.map(anchor).collect()
}

/// What the links of a page lead to, without those to other hosts.
fn links(text: &str) -> Vec<String> {
    let of_line = |line: &str| -> Vec<String> {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        targets.map(str::to_owned).collect()
    };
    let all = prose(text).flat_map(of_line);
    let is_ours = |link: &String| !link.contains("://") && !link.contains(' ');
    all.filter(is_ours).filter(|link| !link.starts_with("mailto:")).collect()
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut faults = Vec::new();
    for page in pages_of(FOLDERS) {
        let text = fs::read_to_string(&page).expect("a page");
        for link in links(&text) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path {
                "" => page.clone(),
                path => page.parent().expect("a folder").join(path),
            };
            if !target.exists() {
                faults.push(format!("{}: {link} is not there", page.display()));
            } else if !anchor.is_empty() {
                let target = fs::read_to_string(target).expect("a page");
                if !anchors(&target).contains(anchor) {
                    faults.push(format!("{}: no heading {link}", page.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_picture_of_the_documents_is_shown_by_a_page() {
    let mut shown = BTreeSet::new();
    for page in pages_of(&["", "docs"]) {
        let text = fs::read_to_string(&page).expect("a page");
        let folder = page.parent().expect("a folder");
        // Links that lead nowhere are found above.
        shown.extend(links(&text).iter().filter_map(|link| folder.join(link).canonicalize().ok()));
    }
    let mut n_pictures = 0;
    for folder in ["docs", "docs/curves", "docs/page"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path().canonicalize().expect("a path");
            if path.extension().is_some_and(|extension| extension == "png" || extension == "svg") {
                n_pictures += 1;
                assert!(shown.contains(&path), "no page shows {}", path.display());
            }
        }
    }
    assert!(15 < n_pictures, "{n_pictures} pictures");
}

#[test]
fn headings_in_code_are_none_and_equal_ones_are_counted() {
    let page = "\
# One `a_b`, two
```
# comment
[no](link.md)
```
## C-1: x
## C-1: x
[a](b.md#c) [d](#e)
";
    let wanted = ["c-1-x", "c-1-x-1", "one-a_b-two"];
    assert_eq!(anchors(page), wanted.map(str::to_owned).into());
    assert_eq!(links(page), ["b.md#c", "#e"]);
}

/// The rows below this head of a table, each as its cells.
fn rows<'a>(page: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let table = page.split_once(head).expect("the table of the comparison").1;
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn the_comparison_with_volcano_is_the_same_everywhere() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect("a text file");
    let head = "| What | Volcano | vc-scheduler |";
    let (page, readme) = (read("docs/performance.md"), read("README.md"));
    let (page, readme) = (rows(&page, head), rows(&readme, head));
    assert_eq!(page, readme, "docs/performance.md and README.md");
    let code = read("benches/cycle/compare.rs") + &read("benches/wire/compare.rs");
    let measured: BTreeSet<&str> = {
        let texts = code.split("what: \"").skip(1);
        texts.filter_map(|text| text.split('"').next()).collect()
    };
    let shown: BTreeSet<&str> = page.iter().map(|row| row[0]).collect();
    assert_eq!(measured, shown, "make bench-compare and docs/performance.md");
}
