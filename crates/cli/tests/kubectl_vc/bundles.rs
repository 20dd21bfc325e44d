//! `kubectl vc bundle`, and questions to a bundle. Specification: answers.md 15.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use axum::Router;
use axum::http::header::CONTENT_DISPOSITION;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::get;
use vc_bundle::{Bundle, BundleWriter, HistoryCopy, OBJECTS, Replay, TextPlace, encode_checkpoint};
use vc_sim::anonymous_bundle::anonymous_archive;
use vc_sim::bundle_objects::archive_with_objects;
use vc_sim::run::RunOptions;

use crate::{BASE, kubeconfig, run_options, text, url_of};

/// A scheduler with a bundle of a simulation.
async fn serve_bundle(contents: Vec<u8>) -> String {
    let answer = move |uri: Uri| async move {
        let query = uri.query().unwrap_or_default().to_owned();
        match query.as_str() {
            "cycles=9" => {
                let status = serde_json::json!({"apiVersion": "v1", "kind": "Status",
                    "status": "Failure", "code": 429, "message": "too many bundles: 1 a minute"});
                (StatusCode::TOO_MANY_REQUESTS, HeaderMap::new(), status.to_string().into_bytes())
            }
            _ => {
                let name = "attachment; filename=\"../bundle-2.tar.gz\"".parse().unwrap();
                let headers = HeaderMap::from_iter([(CONTENT_DISPOSITION, name)]);
                (StatusCode::OK, headers, contents)
            }
        }
    };
    let routes = Router::new().route(&format!("{BASE}/bundles/now"), get(answer));
    url_of(routes).await
}

/// A bundle of a simulation without its last state as objects, as a scheduler makes it.
fn bundle_of_scheduler() -> Vec<u8> {
    let options = RunOptions { keeps_history: true, ..run_options() };
    let bundle = vc_sim::run::run(&options).unwrap().bundle.unwrap().unwrap();
    // A copy lacks the files for people.
    let nothing = |_: TextPlace, _: &str| -> Option<String> { None };
    let bundle = Bundle::read(&*bundle).unwrap();
    let copy = bundle.renamed(&nothing, &|name: &str| name.to_owned()).unwrap();
    let mut archive = Vec::new();
    copy.write(&mut archive).unwrap();
    archive
}

/// A bundle of the state at the end of another one, as of a scheduler without a history.
fn state_alone(bundle: &[u8]) -> Vec<u8> {
    let bundle = Bundle::read(bundle).unwrap();
    let mut replay = Replay::new(&bundle, None).unwrap();
    while replay.step().is_some() {}
    let engine = replay.into_engine();
    let cycle = engine.n_cycles();
    let state = encode_checkpoint(&engine.into_checkpoint(0).unwrap()).unwrap();
    let writer = BundleWriter::new(&HistoryCopy::of_now(cycle, state), None).unwrap();
    let mut archive = Vec::new();
    writer.write(&mut archive).unwrap();
    archive
}

#[test]
fn ans_101_a_bundle_of_a_state_alone_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = state_alone(&bundle_of_scheduler());
    std::fs::write(folder.path().join("state.tar.gz"), bundle).unwrap();
    let call = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-vc"));
        command.args(words).args(["--from", "state.tar.gz"]).current_dir(folder.path());
        command.output().unwrap()
    };
    let note = "the bundle has a state and no recorded cycle: the next one was decided from the state, \
        and is compared with nothing\n";
    let asked = call(&["why", "job/train", "--exit-code"]);
    let (out, said) = (text(&asked.stdout), text(&asked.stderr));
    assert!(out.starts_with("ml/train (job, PodGroup train-7f3c, "), "{out}{said}");
    assert_eq!((asked.status.code(), &*said), (Some(3), note));
    let page = call(&["ui", "--html", "page.html"]);
    assert!(text(&page.stdout).starts_with("wrote page.html, "), "{}", text(&page.stderr));
    assert_eq!(text(&page.stderr), note);
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("\"source\":\"bundle\"") && page.contains("\"name\":\"train-7f3c\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_103_a_bundle_that_cannot_be_read_is_saved_as_it_came() {
    let url = serve_bundle(b"no archive".to_vec()).await;
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), "secret");
    let path = folder.path().join("odd.tar.gz");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-vc"));
    command.arg("bundle").arg(&path).args(["--server", &url]).env("KUBECONFIG", &config);
    let saved = command.output().unwrap();
    assert_eq!(saved.status.code(), Some(0), "{}", text(&saved.stderr));
    let why = "the bundle has no objects.yaml: no bundle: ";
    assert!(text(&saved.stderr).starts_with(why), "{}", text(&saved.stderr));
    assert_eq!(std::fs::read(&path).unwrap(), b"no archive");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_15_a_bundle_is_saved_and_asked() {
    let given = bundle_of_scheduler();
    let url = serve_bundle(given.clone()).await;
    let bundle = archive_with_objects(&given).unwrap();
    assert!(Bundle::read(&*bundle).unwrap().manifest().files.contains_key(OBJECTS));
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), "secret");
    let call = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-vc"));
        command.args(words).env("KUBECONFIG", &config).current_dir(folder.path());
        command.output().unwrap()
    };
    let saved = call(&["bundle", "--server", &url]);
    let wrote = format!("wrote bundle-2.tar.gz, {} KiB\n", bundle.len().div_ceil(1024));
    assert_eq!((text(&saved.stdout), text(&saved.stderr)), (wrote, String::new()));
    let path = folder.path().join("bundle-2.tar.gz");
    assert!(std::fs::read(&path).unwrap() == bundle, "it has its objects, in this folder");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let again = call(&["bundle", "--server", &url]);
    let exists =
        "error: bundle-2.tar.gz exists\nhint: give another FILE, or - for standard output\n";
    assert_eq!((again.status.code(), &*text(&again.stderr)), (Some(1), exists));
    assert!(call(&["bundle", "-", "--server", &url]).stdout == bundle);
    // -o is the file, too.
    assert!(call(&["bundle", "-o", "-", "--server", &url]).stdout == bundle);
    let named = call(&["bundle", "--output", "named.tar.gz", "--server", &url]);
    assert!(text(&named.stdout).starts_with("wrote named.tar.gz, "), "{}", text(&named.stderr));
    assert!(std::fs::read(folder.path().join("named.tar.gz")).unwrap() == bundle);
    let both = call(&["bundle", "-o", "a", "b", "--server", &url]);
    assert_eq!(both.status.code(), Some(2), "{}", text(&both.stderr));
    let refused = call(&["bundle", "--cycles", "9", "x", "--server", &url]);
    assert_eq!(text(&refused.stderr), "error: too many bundles: 1 a minute\n");
    // Without the scheduler.
    let asked = call(&["why", "job/train", "--exit-code", "--from", "bundle-2.tar.gz"]);
    let out = text(&asked.stdout);
    assert!(
        out.starts_with("ml/train (job, PodGroup train-7f3c, "),
        "{out}{}",
        text(&asked.stderr)
    );
    assert_eq!(asked.status.code(), Some(3));
    let other = call(&["queues", "--from", "bundle-2.tar.gz"]);
    let alone = "error: a bundle answers why NAME and ui --html alone\nhint: ";
    assert!(text(&other.stderr).starts_with(alone), "{}", text(&other.stderr));
    let page = call(&["ui", "--html", "page.html", "--from", "bundle-2.tar.gz"]);
    assert!(text(&page.stdout).starts_with("wrote page.html, "), "{}", text(&page.stderr));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("\"source\":\"bundle\"") && page.contains("\"name\":\"train-7f3c\""));
    // Without names.
    let shared = call(&["bundle", "--anonymize", "shared.tar.gz", "--server", &url]);
    assert_eq!(shared.status.code(), Some(0), "{}", text(&shared.stderr));
    let written = std::fs::read(folder.path().join("shared.tar.gz")).unwrap();
    assert!(written == anonymous_archive(&given).unwrap(), "it is the same each time");
    let asked = call(&["why", "train", "-n", "ml", "--from", "shared.tar.gz"]);
    let unknown = text(&asked.stderr);
    assert!(unknown.contains("train") && !unknown.contains("did you mean"), "{unknown}");
    assert_eq!(asked.status.code(), Some(1), "{unknown}");
}
