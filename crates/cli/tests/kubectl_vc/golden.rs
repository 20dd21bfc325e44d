//! Whole output of each verb, compared with the files of the folder `golden`. `UPDATE_GOLDEN=1` writes them.
//! Specification: answers.md 13 (ANS-86), case 78.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use axum::Router;
use axum::routing::get;

use crate::{BASE, examples, kubeconfig, text, url_of};

/// Verbs that are answered from files, each with the name of its golden file.
const FROM_FILES: [(&str, &[&str]); 11] = [
    ("why-job", &["why", "train"]),
    ("why", &["why"]),
    ("runs", &["runs"]),
    ("queues", &["queues"]),
    ("queue", &["queues", "research"]),
    ("line", &["line", "research"]),
    ("nodes", &["nodes"]),
    ("node", &["nodes", "g1"]),
    ("hypernodes", &["hypernodes"]),
    ("top", &["top"]),
    ("what-if", &["what-if", "--add-nodes", "g1=1", "--drain", "g2"]),
];
/// Verbs about what a scheduler remembers: the golden file, the words, and the path that is asked.
const OF_PROCESS: [(&str, &[&str], &str); 2] = [
    ("timeline", &["timeline", "--since", "2h"], "timeline"),
    ("cycles", &["cycles", "--last", "2"], "cycles"),
];
const FORMS: [&str; 3] = ["text", "wide", "json"];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl_vc/golden").join(name)
}

/// Compares an output with its file.
fn compare(name: &str, output: &Output) {
    // A release changes no golden file.
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let out = text(&output.stdout).replace(&version, "\"version\": \"VERSION\"");
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{name}: {out}");
    let path = golden(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &out).unwrap();
    }
    let hint = "UPDATE_GOLDEN=1 cargo test --workspace --test kubectl_vc golden";
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(out == expected, "{} is old\nhint: {hint}\n{out}", path.display());
}

/// `kubectl vc` where nothing of the machine counts but these variables.
fn command(words: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-vc"));
    command.args(words).env_clear().envs(variables.iter().copied());
    command
}

/// Words that name the cluster of the golden files.
fn files() -> Vec<String> {
    let paths = [examples("scheduler.conf"), golden("cluster.yaml")];
    let [conf, cluster] = paths.map(|path| path.to_str().unwrap().to_owned());
    ["--scheduler-conf".to_owned(), conf, "--from".to_owned(), cluster].to_vec()
}

#[test]
fn ans_86_verbs_about_files_print_what_they_did() {
    let files = files();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    for (name, words) in FROM_FILES {
        for form in FORMS {
            let output = command(&[words, &["-o", form], &files].concat(), &[]).output().unwrap();
            compare(&format!("{name}.{form}"), &output);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_86_verbs_about_what_a_scheduler_remembers_print_what_they_did() {
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), "secret");
    let config = [("KUBECONFIG", config.to_str().unwrap())];
    for (name, words, path) in OF_PROCESS {
        let document = fs::read_to_string(golden(&format!("{name}.document"))).unwrap();
        let routes = Router::new().route(&format!("{BASE}/{path}"), get(async move || document));
        let url = url_of(routes).await;
        for form in FORMS {
            let words = [words, &["-o", form, "--server", &url]].concat();
            compare(&format!("{name}.{form}"), &command(&words, &config).output().unwrap());
        }
    }
}

#[test]
fn ans_86_answers_have_neither_colours_nor_a_width() {
    let files = files();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let wide = [("COLUMNS", "300"), ("TERM", "xterm-256color"), ("CLICOLOR_FORCE", "1")];
    let narrow = [("COLUMNS", "80"), ("TERM", "xterm-256color"), ("CLICOLOR_FORCE", "1")];
    let plain = [("NO_COLOR", "1"), ("COLUMNS", "80"), ("CLICOLOR_FORCE", "1")];
    for (name, words) in FROM_FILES {
        for variables in [&wide[..], &narrow, &plain] {
            let output = command(&[words, &files].concat(), variables).output().unwrap();
            compare(&format!("{name}.text"), &output);
        }
    }
    // Help and errors of usage are those of the library for arguments, which knows NO_COLOR.
    for words in [&["sing"][..], &["--help"]] {
        let is_coloured = |variables: &[(&str, &str)]| {
            let Output { stdout, stderr, .. } = command(words, variables).output().unwrap();
            stdout.contains(&0x1b) || stderr.contains(&0x1b)
        };
        assert!(is_coloured(&narrow), "{words:?}");
        assert!(!is_coloured(&plain) && !is_coloured(&[]), "{words:?}");
    }
}
