//! Completion of the command line, as kubectl asks for it. Specification: answers.md 13 (ANS-112).

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::Uri;
use axum::routing::get;
use serde_json::{Value, json};

use crate::front::{Front, serve};
use crate::{BASE, call, explanation, kubeconfig, text, url_of};

const SERVICE: &str = "Service volcano-system/vc-scheduler-answers";

/// Completes the last word. Returns the words that are offered, sorted, and the directive.
fn complete(words: &[&str], config: &Path) -> String {
    let called = call(&[&["__complete"][..], words].concat(), config);
    let said = text(&called.stderr);
    assert_eq!((called.status.code(), said.as_str()), (Some(0), ""), "{words:?}");
    let out = text(&called.stdout);
    let offered = out.lines().map(|line| line.split('\t').next().unwrap_or_default());
    let mut offered: Vec<&str> = offered.collect();
    let directive = offered.pop().unwrap_or_default();
    offered.sort_unstable();
    offered.push(directive);
    offered.join(" ")
}

/// Completes names. A busy machine may take longer than completion waits, so what has no answer is
/// asked again.
fn check_names(words: &[&str], config: &Path, expected: &str) {
    let is_late = |offered: &String| offered == ":4" && expected != ":4";
    let mut offered = (0..30).map(|_| complete(words, config));
    let offered = offered.find(|offered| !is_late(offered));
    assert_eq!(offered.as_deref(), Some(expected), "{words:?}");
}

/// The verbs in the help.
fn verbs_of_help() -> BTreeSet<String> {
    let help = text(&call(&["-h"], Path::new("/nonexistent")).stdout);
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| *line != "Options:");
    // What goes on in the next line is indented by more.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn ans_112_all_verbs_of_the_help_are_offered_with_descriptions() {
    let nowhere = Path::new("/nonexistent");
    let verbs = verbs_of_help();
    assert!(10 < verbs.len() && verbs.contains("why"), "{verbs:?}");
    let verbs: Vec<String> = verbs.into_iter().chain([":4".to_owned()]).collect();
    assert_eq!(complete(&[""], nowhere), verbs.join(" "));
    assert_eq!(complete(&[], nowhere), verbs.join(" "));
    let out = text(&call(&["__complete", "top"], nowhere).stdout);
    assert_eq!(out, "top\tSums over the cluster\n:4\n");
}

#[test]
fn ans_112_verbs_flags_and_values_are_those_of_the_arguments() {
    let nowhere = Path::new("/nonexistent");
    let cases: &[(&[&str], &str)] = &[
        (&["w"], "what-if why :4"),
        (&["-n", "ml", "qu"], "queues :4"),
        (&["-n=ml", "--context", "why", "qu"], "queues :4"),
        (&["help", "no"], "nodes :4"),
        // Flags of the verb and of all verbs.
        (&["--s"], "--scheduler-conf --server --service --service-account :4"),
        (&["timeline", "--s"], "--scheduler-conf --server --service --service-account --since :4"),
        (&["why", "--wa"], "--watch :4"),
        (&["queues", "--wa"], ":4"),
        (&["--ve"], "--verbose --version :4"),
        (&["why", "--ve"], "--verbose :4"),
        // A flag is given once, but for lists.
        (&["why", "--watch", "--wa"], ":4"),
        (&["-Av", "why", "--ve"], ":4"),
        (&["why", "--from", "a", "--fr"], "--from :4"),
        // Values.
        (&["why", "-o", ""], "json text wide yaml :4"),
        (&["-o", ""], "json text wide yaml :4"),
        (&["why", "--output", "j"], "json :4"),
        (&["why", "--output=y"], "yaml :4"),
        (&["why", "-o=w"], "wide :4"),
        (&["-Ao", "te"], "text :4"),
        (&["why", "--kubeconfig", ""], ":0"),
        (&["what-if", "-f", ""], ":0"),
        (&["bundle", ""], ":0"),
        (&["bundle", "-o", ""], ":0"),
        (&["bundle", "--output", "j"], ":0"),
        (&["bundle", "-o", "a", "--ou"], ":4"),
        (&["top", "--o"], "--once --output :4"),
        (&["ui", "--port", ""], ":4"),
        // Nothing fits.
        (&["top", ""], ":4"),
        (&["bundle", "a", ""], ":4"),
        (&["why", "--", "--wa"], ":4"),
        (&["sing", ""], ":4"),
        (&["sing", "--"], ":4"),
        (&["why", "--loud", "--wa"], "--watch :4"),
        (&["why", "--loud=1"], ":4"),
        (&["why", "-ä", "--wa"], "--watch :4"),
    ];
    for (words, expected) in cases {
        assert_eq!(complete(words, nowhere), *expected, "{words:?}");
    }
    assert!(complete(&["why", "-"], nowhere).contains("--exit-code "));
}

/// What waits in namespace `ml`: a job, a pod, and a name that would begin a line of its own.
fn waiting() -> Value {
    let job: Value = serde_json::from_str(&explanation()).unwrap();
    let subject = |kind: &str, name: &str| json!({"subject": {"kind": kind, "name": name}});
    json!({"items": [job, subject("Pod", "solo"), subject("PodGroup", "top\nwhy"), {}]})
}

/// A scheduler with jobs, queues and nodes.
fn scheduler() -> Router {
    let named = |names: [&str; 2]| {
        let items = names.map(|name| json!({ "name": name }));
        json!({ "items": items }).to_string()
    };
    let (queues, nodes) = (named(["default", "research"]), named(["g1", "g2"]));
    let jobs = waiting().to_string();
    Router::new()
        .route(&format!("{BASE}/namespaces/ml/explanations"), get(async move || jobs))
        .route(&format!("{BASE}/nodes"), get(async move || nodes))
        .route(
            &format!("{BASE}/queues"),
            get(move |uri: Uri| async move {
                // A parameter would be refused.
                assert_eq!(uri.query(), None);
                queues
            }),
        )
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_112_names_are_asked_of_the_scheduler() {
    let url = url_of(scheduler()).await;
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), "secret");
    let cases: &[(&[&str], &str)] = &[
        (&["why", ""], "solo train :4"),
        (&["why", "t"], "train :4"),
        (&["why", "-n", "ml", "t"], "train :4"),
        (&["why", "--", "t"], "train :4"),
        (&["why", "job/"], "job/train :4"),
        (&["why", "podgroup/t"], "podgroup/train-7f3c :4"),
        (&["why", "pod/"], "pod/solo :4"),
        (&["queues", ""], "default research :4"),
        (&["line", "r"], "research :4"),
        (&["line", "x/"], ":4"),
        (&["timeline", "--queue", ""], "default research :4"),
        (&["timeline", "--queue=r"], "research :4"),
        (&["nodes", "g"], "g1 g2 :4"),
        (&["what-if", "--drain", "g1"], "g1 :4"),
        (&["what-if", "--add-nodes", ""], "g1= g2= :6"),
        (&["what-if", "--add-nodes", "g1=2"], ":4"),
        (&["what-if", "--set-queue", "r"], "research. :6"),
        // The verb has all its names, or nobody is asked.
        (&["why", "train", ""], ":4"),
        (&["why", "-A", ""], ":4"),
        (&["queues", "-A", "r"], "research :4"),
        (&["queues", "--from", "cluster.yaml", ""], ":4"),
        (&["queues", "--local", ""], ":4"),
        // The scheduler refuses.
        (&["why", "-n", "other", ""], ":4"),
    ];
    for (words, expected) in cases {
        check_names(&[&["--server", &*url][..], *words].concat(), &config, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_112_nobody_is_asked_who_would_have_to_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let list = || Some((200, waiting().to_string()));
    let found = Front {
        labelled: vec![("volcano-system", "ask")],
        other: list(),
        pods: vec![("volcano-system", "vc-0", "True")],
        ..Front::default()
    };
    let cases = [
        (Front { group: list(), default: list(), ..Front::default() }, "train :4", "group"),
        (Front { default: list(), ..Front::default() }, "train :4", SERVICE),
        (found, ":4", SERVICE),
    ];
    for (front, expected, way) in cases {
        let asked = front.asked.clone();
        let config = serve(folder.path(), front).await;
        check_names(&["why", "t"], &config, expected);
        let ways = asked.take();
        assert!(ways.iter().all(|it| it == way), "{ways:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_112_without_an_answer_no_names_are_offered() {
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), "secret");
    for words in [
        &["why", ""][..],
        &["--server", "http://127.0.0.1:1", "queues", ""],
        &["--server", "no URL", "nodes", ""],
        &["--context", "other", "nodes", ""],
        &["--service", "no-name", "nodes", ""],
    ] {
        assert_eq!(complete(words, &config), ":4", "{words:?}");
    }
    assert_eq!(complete(&["why", ""], Path::new("/nonexistent")), ":4");
    // A scheduler that never answers; a question of a verb would wait for more than a minute.
    let silent = Router::new().fallback(async || std::future::pending::<String>().await);
    let url = url_of(silent).await;
    let started = Instant::now();
    assert_eq!(complete(&["--server", &url, "why", ""], &config), ":4");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[test]
fn ans_112_the_script_passes_the_words_on() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubectl_complete-vc");
    let folder = Path::new(env!("CARGO_BIN_EXE_kubectl-vc")).parent().unwrap();
    for (words, expected) in
        [(&["why", "--output", "j"][..], "json\n:4\n"), (&["sing", ""], ":4\n")]
    {
        let mut command = Command::new(&script);
        let called = command.args(words).env("PATH", folder).output().unwrap();
        assert_eq!((&*text(&called.stdout), &*text(&called.stderr)), (expected, ""), "{words:?}");
    }
}
