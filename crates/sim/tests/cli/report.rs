//! The page as a file. Specification: answers.md 14 (ANS-96), case 92.

use crate::common::{folder, vcsim};

const CLUSTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/cluster.yaml");
const WAITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gang-that-waits.yaml");

#[test]
fn ans_96_a_run_writes_the_page_of_a_report_into_a_new_file() {
    let folder = folder("ans_96_run");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (page, report) = (path("run.html"), path("report.html"));
    let call = |words: &[&str]| vcsim(&[words, &[CLUSTER, WAITS]].concat());
    let plain = call(&["run", "-o", "json"]);
    let ran = call(&["run", "-o", "json", "--html", &page]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.stdout, plain.stdout, "the result is the same");
    assert_eq!(call(&["report", "-o", &report]).code, 0);
    let written = std::fs::read_to_string(&page).unwrap();
    assert!(written.starts_with("<!doctype html>") && written.contains("\"quintet\""));
    assert!(written == std::fs::read_to_string(&report).unwrap(), "one page for both commands");

    std::fs::write(&page, "kept").unwrap();
    let again = call(&["run", "--html", &page]);
    let exists = format!("error: {page} exists\nhint: give another FILE\n");
    assert_eq!((again.code, &again.stderr), (1, &exists));
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "kept");
    let missing = "no\u{1b}[2Jwhere.yaml";
    let early = vcsim(&["run", "--html", &page, missing]);
    assert_eq!((early.code, early.stderr), (1, exists), "before anything is read");
    let refused = vcsim(&["run", "--html", &path("other.html"), missing]);
    assert_eq!(refused.stderr, vcsim(&["run", missing]).stderr);
    assert!(!refused.stderr.contains('\u{1b}'), "{:?}", refused.stderr);
    let none = call(&["run", "--cycles", "0", "--html", &path("none.html")]);
    assert!(none.code == 1 && none.stderr.starts_with("error: no cycle was run\n"));
    assert!(!folder.join("none.html").exists());
}
