//! `kubectl vc ui --html`. Specification: answers.md 14 (ANS-96), case 92.

use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{StatusCode, Uri};
use serde_json::{Value, json};
use vc_sim::report::report;

use crate::{BASE, examples, kubeconfig, run_options, text, url_of};

/// The answers in a page.
fn data(page: &str) -> Value {
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

/// What a scheduler with one job that waits answers: code and document.
fn answer(path: &str, n_asked: usize) -> (u16, Value) {
    let status = |code: u16, message: &str| {
        let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": code, "message": message});
        (code, status)
    };
    let job = |verdict: &str| {
        json!({"kind": "Explanation", "verdict": {"code": verdict},
            "subject": {"namespace": "ml", "name": "train-7f3c", "kind": "PodGroup"}})
    };
    match path {
        // The first question finds out whether this way leads to a scheduler.
        "/namespaces/ml/explanations?limit=1" => (200, json!({"items": [], "total": 1})),
        "/explanations?limit=5000" => status(403, "jo may not list explanations"),
        "/namespaces/ml/explanations?limit=5000" => {
            (200, json!({"items": [job("listed")], "total": 1}))
        }
        "/namespaces/ml/explanations/train-7f3c?kind=podgroup&when=true" => (200, job("whole")),
        "/queues" if n_asked == 1 => status(429, "too many questions: 20 a second, 50 at once"),
        "/queues" => {
            let queue = |name: &str, waiting: u32| json!({"name": name, "waiting": waiting});
            (200, json!({"items": [queue("a b", 1), queue("idle", 0)], "total": 2}))
        }
        "/queues/a%20b/line?limit=5000" => (200, json!({"items": [{"place": 1}]})),
        "/nodes?limit=5000&offset=0" => (200, json!({"items": [{"name": "n1"}], "total": 1})),
        "/nodes/n1" => (200, json!({"name": "n1", "jobs": []})),
        "/cycles?last=1000" => status(403, "jo may not list cycles"),
        "/timeline?from=1970-01-01T00%3A00%3A00Z" => (200, json!({"from": "x"})),
        "/runs?limit=5000" => status(403, "jo may not list explanations"),
        "/summary"
        | "/hypernodes?limit=5000"
        | "/nodelabels"
        | "/namespaces/ml/runs?limit=5000" => (200, json!({})),
        other => status(404, other),
    }
}

/// A scheduler with these answers.
async fn serve_answers() -> String {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let respond = move |uri: Uri| async move {
        let path = uri.path_and_query().unwrap().as_str().trim_start_matches(BASE).to_owned();
        let mut asked = asked.lock().unwrap();
        asked.push(path.clone());
        let n_asked = asked.iter().filter(|it| **it == path).count();
        let (code, document) = answer(&path, n_asked);
        (StatusCode::from_u16(code).unwrap(), document.to_string())
    };
    url_of(Router::new().fallback(respond)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_96_a_scheduler_is_asked_for_all_that_the_page_shows() {
    let url = serve_answers().await;
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), "secret");
    let call = |words: &[&str]| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-vc"));
        command.args(["ui", "--server", &url, "--html"]).args(words);
        command.env("KUBECONFIG", &config).current_dir(folder.path()).output().unwrap()
    };
    let saved = call(&["page.html"]);
    let said = "jobs of namespace ml alone: jo may not list explanations\n\
        without cycles: jo may not list cycles\n\
        jobs that run of namespace ml alone: jo may not list explanations\n";
    assert_eq!((text(&saved.stderr).as_str(), saved.status.code()), (said, Some(0)));
    assert!(text(&saved.stdout).starts_with("wrote page.html, "), "{}", text(&saved.stdout));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    let found = data(&page);
    let paths: BTreeSet<&str> = found.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "/explanations",
        "/hypernodes",
        "/nodelabels",
        "/nodes",
        "/queues",
        "/queues/a%20b/line",
        "/runs",
        "/summary",
        "/timeline",
    ];
    assert_eq!(paths, BTreeSet::from(expected));
    assert_eq!(found["/explanations"]["items"][0]["verdict"]["code"], "whole");
    assert_eq!(found["/nodes"]["items"], json!([{"name": "n1", "jobs": []}]));

    let again = call(&["page.html"]);
    let exists = "error: page.html exists\nhint: give another FILE, or - for standard output\n";
    assert_eq!((again.status.code(), text(&again.stderr).as_str()), (Some(1), exists));
    assert_eq!(data(&text(&call(&["-"]).stdout))["/explanations"], found["/explanations"]);
    assert_eq!(call(&["other.html", "--port", "1"]).status.code(), Some(2));
}

#[test]
fn ans_96_files_give_the_page_of_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let (conf, cluster) = (examples("scheduler.conf"), examples("taint.yaml"));
    let saved = Command::new(env!("CARGO_BIN_EXE_kubectl-vc"))
        .args(["ui", "--html", "page.html", "--scheduler-conf"])
        .arg(&conf)
        .arg("--from")
        .arg(&cluster)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!((saved.status.code(), text(&saved.stderr).as_str()), (Some(0), ""));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page == report(&run_options()).unwrap().html, "the same page");
}
