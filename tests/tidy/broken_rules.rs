//! The patches of `tests/broken-rules`, each of which breaks a rule that `vcsim fuzz` must find broken:
//! each still fits the code, and has its row in docs/spec/invariants.md.

use std::fs;

use crate::root;

/// Name and text of every patch, in order.
fn patches() -> Vec<(String, String)> {
    let files = fs::read_dir(root().join("tests/broken-rules")).expect("the folder of patches");
    let paths = files.map(|file| file.expect("a file of the folder").path());
    let patches = paths.filter(|path| path.extension().is_some_and(|it| it == "patch"));
    let mut patches: Vec<(String, String)> = patches
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("a patch"))
        })
        .collect();
    patches.sort();
    patches
}

/// The files that a patch changes, each with the lines that its hunks expect there.
fn expected(patch: &str) -> Vec<(String, Vec<String>)> {
    let mut files: Vec<(String, Vec<String>)> = Vec::new();
    for line in patch.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            files.push((path.to_owned(), Vec::new()));
        } else if line.starts_with("--- ") || files.is_empty() {
            continue;
        } else if line.starts_with("@@") {
            let (_, hunks) = files.last_mut().expect("a file before its hunks");
            hunks.push(String::new());
        } else if let Some(line) = line.strip_prefix([' ', '-'])
            && let Some(hunk) = files.last_mut().and_then(|(_, hunks)| hunks.last_mut())
        {
            *hunk += line;
            hunk.push('\n');
        }
    }
    files
}

/// How often a text is in a file.
fn count(path: &str, text: &str) -> usize {
    fs::read_to_string(root().join(path)).unwrap_or_default().matches(text).count()
}

#[test]
fn every_broken_rule_fits_the_code() {
    let patches = patches();
    assert!(30 <= patches.len(), "{} patches", patches.len());
    for (number, (name, text)) in patches.iter().enumerate() {
        assert!(name.starts_with(&format!("{:02}-", number + 1)), "{name}: its number");
        assert!(text.starts_with("Rule: ") && text.contains(".\n--- a/"), "{name}: its rule");
        let files = expected(text);
        assert!(!files.is_empty(), "{name} changes nothing");
        for (path, hunks) in files {
            for hunk in hunks {
                let fault = "make it anew, and run `make broken-rules` for it";
                assert_eq!(count(&path, &hunk), 1, "{name} does not fit {path}: {fault}\n{hunk}");
            }
        }
    }
}

#[test]
fn every_broken_rule_has_a_row() {
    let page = fs::read_to_string(root().join("docs/spec/invariants.md")).expect("the page");
    let table = page.split("## Broken rules").nth(1).expect("the table of broken rules");
    let rows: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix("| `")).collect();
    let named: Vec<&str> = rows.iter().filter_map(|row| row.split('`').next()).collect();
    let patches: Vec<String> = patches().into_iter().map(|(name, _)| name).collect();
    assert_eq!(named, patches);
}

#[test]
fn a_patch_is_read_as_what_it_expects() {
    let patch = "Rule: x.\n--- a/f.rs\n+++ b/f.rs\n@@ -1,3 +1,2 @@\n one\n-two\n+2\n three\n";
    let hunks = vec!["one\ntwo\nthree\n".to_owned()];
    assert_eq!(expected(patch), [("f.rs".to_owned(), hunks)]);
}
