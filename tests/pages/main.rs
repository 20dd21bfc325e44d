//! Every command of the pages in the root folder and in docs/ and of the chart's notes, run as it is
//! written, in the order of its page, against the embedded API server. Ports and `/tmp` are
//! replaced, nothing else. A command that cannot run here has the reason in a comment before its block:
//! `<!-- not run: why -->`. Where `kubectl` is not installed, blocks with it are named and left out.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "../common/guard.rs"]
mod guard;

mod extract;
mod names;
mod shell;

use std::path::{Path, PathBuf};

use extract::{Block, Mark};
use shell::{Reader, Shared};

/// Folder of the project.
fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Name and text of every page, in the order in which somebody reads them.
fn pages() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(project().join("docs")).unwrap();
    let mut names: Vec<String> = docs
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    names.sort();
    let of_root = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_owned);
    names.splice(0..0, of_root);
    names.push("deploy/chart/templates/NOTES.txt".to_owned());
    let text = |name: &String| std::fs::read_to_string(project().join(name)).unwrap();
    names.iter().map(|name| (name.clone(), text(name))).collect()
}

fn has_kubectl() -> bool {
    let version = std::process::Command::new("kubectl").args(["version", "--client"]).output();
    version.is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn every_command_runs_as_it_is_written() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pages");
    let _absent = std::fs::remove_dir_all(&folder);
    let shared = Shared::start(&folder).await;
    let (has_kubectl, pages) = (has_kubectl(), pages());
    let blocks: Vec<(&str, Vec<Block>)> =
        pages.iter().map(|(name, text)| (name.as_str(), extract::blocks(name, text))).collect();
    // What one page shows, another one uses.
    let files = || blocks.iter().flat_map(|(_, blocks)| blocks).filter_map(Block::file);
    let (mut n_run, mut faults) = (0, Vec::new());
    for (page, blocks) in &blocks {
        let mut reader = Reader::new(&folder, page, &shared, files());
        for block in blocks.iter().filter(|block| !block.commands.is_empty()) {
            if matches!(block.mark, Mark::NotRun(_)) {
                continue;
            }
            if !has_kubectl && block.commands.iter().any(|command| command.contains("kubectl")) {
                eprintln!("{page}:{}: not run: kubectl is not installed", block.line);
                continue;
            }
            for command in &block.commands {
                n_run += 1;
                if let Err(problem) = reader.run(command).await {
                    faults.push(format!("{page}:{}: {command}\n  {problem}", block.line));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(!has_kubectl || 15 < n_run, "{n_run} commands were found");
}

#[test]
fn every_flag_and_target_that_a_page_names_is_there() {
    let known = names::Known::ask();
    let mut faults = Vec::new();
    for (page, text) in pages() {
        for (line, command) in extract::all_commands(&page, &text) {
            for problem in known.unknown_in(&command) {
                faults.push(format!("{page}:{line}: {command}\n  {problem}"));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
