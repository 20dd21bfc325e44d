//! Every command of the pages, of the chart's notes and of the examples in `--help`, run as it is
//! written, in the order of its page, against the embedded API server. Ports and `/tmp` are
//! replaced, nothing else. Below `<!-- checked: what -->` each line that a page shows under a
//! command is a line of its output. A command that cannot run here has the reason in a comment before
//! its block: `<!-- not run: why -->`. Where `kubectl` is not installed, blocks with it are named and
//! left out.

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

/// Folders with pages.
const FOLDERS: &[&str] =
    &[".", "docs", "examples", "deploy/chart", "tests/apiserver", "tests/scenarios"];

/// Programs and their subcommands; the help of each is a page.
const HELPS: &[&[&str]] = &[
    &["vcsim", "run"],
    &["vcsim", "why"],
    &["vcsim", "what-if"],
    &["vcsim", "test"],
    &["vcsim", "serve"],
    &["vcsim", "load"],
    &["vcsim", "demo"],
    &["vc-scheduler", "check"],
    &["vc-scheduler"],
];

/// Name and text of every page.
fn pages() -> Vec<(String, String)> {
    let mut names: Vec<String> = FOLDERS.iter().flat_map(|folder| pages_in(folder)).collect();
    names.push("deploy/chart/templates/NOTES.txt".to_owned());
    let text =
        |name: String| (name.clone(), std::fs::read_to_string(project().join(name)).unwrap());
    names.into_iter().map(text).chain(HELPS.iter().map(|words| help(words))).collect()
}

fn pages_in(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(project().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let path = |name: String| format!("{folder}/{name}").trim_start_matches("./").to_owned();
    let mut pages: Vec<String> = names.filter(|name| name.ends_with(".md")).map(path).collect();
    pages.sort();
    pages
}

/// What a program says of itself.
fn help(words: &[&str]) -> (String, String) {
    let mut program = std::process::Command::new(shell::program(words[0]));
    let output = program.args(&words[1..]).arg("--help").output().unwrap();
    (format!("{} --help", words.join(" ")), String::from_utf8(output.stdout).unwrap())
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
            if !has_kubectl && block.commands.iter().any(|it| it.text.contains("kubectl")) {
                eprintln!("{page}:{}: not run: kubectl is not installed", block.line);
                continue;
            }
            for command in &block.commands {
                n_run += 1;
                let is_checked = block.mark == Mark::Checked;
                let missing = |output: &String| {
                    let line = command.missing_in(output).filter(|_| is_checked)?;
                    Some(format!("it does not print: {line}\n{output}"))
                };
                let problem = match reader.run(&command.text).await {
                    Ok(output) => missing(&output),
                    Err(problem) => Some(problem),
                };
                if let Some(problem) = problem {
                    faults.push(format!("{page}:{}: {}\n  {problem}", block.line, command.text));
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

#[test]
fn no_command_hides_behind_the_name_of_a_shell() {
    for (page, text) in pages() {
        for block in extract::blocks(&page, &text) {
            let is_shell = ["sh", "bash", "shell", "console"].contains(&block.language.as_str());
            assert!(!is_shell, "{page}:{}: write ``` alone, so that it runs", block.line);
        }
    }
}

/// The examples that a reader may start from, each named as it stands in commands.
fn examples(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => examples(&path, found),
            false => found.push(path.strip_prefix(project()).unwrap().display().to_string()),
        }
    }
}

#[test]
fn every_example_is_used_by_a_command_that_runs() {
    let mut files = Vec::new();
    examples(&project().join("examples"), &mut files);
    let pages = pages();
    let blocks = pages.iter().flat_map(|(name, text)| extract::blocks(name, text));
    let runs = blocks.filter(|block| !matches!(block.mark, Mark::NotRun(_)));
    let commands: Vec<String> =
        runs.flat_map(|block| block.commands).map(|command| command.text).collect();
    let words: Vec<&str> = commands.iter().flat_map(|command| command.split(' ')).collect();
    // A command that names a folder uses all of it.
    let is_used = |file: &str| words.iter().any(|word| Path::new(file).starts_with(word));
    for file in files.iter().filter(|file| !file.ends_with(".md")) {
        assert!(is_used(file), "no command uses {file}");
    }
}
