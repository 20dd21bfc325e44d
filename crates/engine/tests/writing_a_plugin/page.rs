//! docs/writing-a-plugin.md shows these files to the letter. A comment `<!-- source: PATH -->` names
//! the file of the block below it; `UPDATE_DOCS=1` writes the files into the page.

use std::fs;
use std::path::Path;

const PAGE: &str = "docs/writing-a-plugin.md";

#[test]
fn the_page_shows_these_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join(PAGE)).expect("the page");
    let made = filled(&page, |path| fs::read_to_string(root.join(path)).expect("a source file"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root.join(PAGE), &made).expect("the page can be written");
        return;
    }
    assert!(made == page, "{PAGE} differs from its sources: run `make docs`");
    for name in ["prefer_label", "max_pods", "keep_label", "scheduler"] {
        assert!(page.contains(&format!("/{name}.rs -->")), "{PAGE} does not show {name}.rs");
    }
}

/// The page with each block below a comment `<!-- source: PATH -->` replaced by that file.
fn filled(page: &str, read: impl Fn(&str) -> String) -> String {
    let (mut made, mut lines) = (String::new(), page.lines());
    while let Some(line) = lines.next() {
        made.push_str(line);
        made.push('\n');
        let path = line.strip_prefix("<!-- source: ").and_then(|rest| rest.strip_suffix(" -->"));
        if let Some(path) = path {
            for _fence in 0..2 {
                let _old = lines.by_ref().find(|line| line.starts_with("```"));
            }
            made.push_str(&format!("```rust\n{}```\n", read(path)));
        }
    }
    made
}
