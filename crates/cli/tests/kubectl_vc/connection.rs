//! kubectl's flags about the connection. Specification: answers.md 13 (ANS-86), case 80.

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::get;
use serde_json::{Value, json};

use crate::front::{FixedAnswer, Front, status};
use crate::{
    BASE, call, explanation, front, kubeconfig, kubeconfig_of, kubeconfig_of_user, plugin, serve,
    text, url_of,
};

/// The requests that an API server got: each its path, and what it says of impersonation.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    fn add(&self, uri: &Uri, headers: &HeaderMap) {
        let all = |name: &str| {
            let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap());
            values.collect::<Vec<_>>().join(",")
        };
        let who = ["user", "uid", "group"].map(|name| all(&format!("impersonate-{name}")));
        self.0.lock().unwrap().push(format!("{} {}", uri.path(), who.join(" ")));
    }

    /// Returns the requests that have come since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// An API server that says the same to every request. Returns its URL, and what it was asked.
async fn serve_always((code, answer): FixedAnswer) -> (String, Requests) {
    let requests = Requests::default();
    let asked = requests.clone();
    let answer = move |uri: Uri, headers: HeaderMap| async move {
        asked.add(&uri, &headers);
        (StatusCode::from_u16(code).unwrap(), answer)
    };
    (url_of(Router::new().fallback(answer)).await, requests)
}

/// A server that never answers; its URL.
async fn serve_silence() -> String {
    url_of(Router::new().fallback(async || std::future::pending::<String>().await)).await
}

/// Asks about a job. Returns the exit code, the answer, and what is said beside it.
fn why(flags: &[&str], config: &Path) -> (Option<i32>, String, String) {
    let called = call(&[&["why", "train"], flags].concat(), config);
    (called.status.code(), text(&called.stdout), text(&called.stderr))
}

/// Changes a kubeconfig.
fn change(path: &Path, edit: impl FnOnce(&mut Value)) {
    let mut config = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    edit(&mut config);
    std::fs::write(path, config.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_86_the_api_server_is_asked_as_the_impersonated_user() {
    let folder = tempfile::tempdir().unwrap();
    let (url, requests) = serve_always((200, explanation())).await;
    let config = kubeconfig_of(folder.path(), "secret", &url);
    let as_jane = ["--as", "jane", "--as-group", "dev", "--as-group=ops", "--as-uid", "42"];
    let (code, out, said) = why(&as_jane, &config);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(out.starts_with("ml/train (job, "), "{out}");
    let path = format!("{BASE}/namespaces/ml/explanations/train");
    let expected = [format!("{BASE} jane 42 dev,ops"), format!("{path} jane 42 dev,ops")];
    assert_eq!(requests.take(), expected);
    // The flags may stand on either side of the verb.
    let words = ["--as", "jane", "why", "train", "--as-group", "dev"];
    assert_eq!(call(&words, &config).status.code(), Some(0));
    assert_eq!(requests.take(), [format!("{BASE} jane  dev"), format!("{path} jane  dev")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_86_the_lists_are_those_of_the_impersonated_user() {
    let folder = tempfile::tempdir().unwrap();
    let (url, requests) = serve_always(status(403, "nodes is forbidden: User \"jane\"")).await;
    let config = kubeconfig_of(folder.path(), "secret", &url);
    let (code, out, said) = why(&["--local", "--as", "jane"], &config);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(said.starts_with("error: cannot list Node: nodes is forbidden: "), "{said}");
    let requests = requests.take();
    assert!(!requests.is_empty() && requests.iter().all(|it| it.ends_with(" jane  ")));
}

/// By these ways the scheduler would review the token, and answer whoever it is of.
#[tokio::test(flavor = "multi_thread")]
async fn ans_86_nobody_is_asked_who_would_answer_another_user() {
    let folder = tempfile::tempdir().unwrap();
    let front = Front {
        labelled: vec![("volcano-system", "ask")],
        other: Some((200, explanation())),
        default: Some((200, explanation())),
        pods: vec![("volcano-system", "vc-0", "True")],
        ..Front::default()
    };
    let asked = front.asked.clone();
    let config = front::serve(folder.path(), front).await;
    let chart = "Service volcano-system/vc-scheduler-answers";
    let refused = "is not asked: it would answer the user of the token, not jane, who is \
        impersonated\n";
    let called = call(&["why", "big", "-n", "default", "--as", "jane"], &config);
    let (out, said) = (text(&called.stdout), text(&called.stderr));
    assert!(out.starts_with("default/big (PodGroup, "), "{out}{said}");
    let expected = format!("{chart} {refused}asked without the scheduler: ");
    assert!(said.starts_with(&expected), "{said}");
    // Where the lists do not do, the remedies are told.
    let url = serve(explanation()).await;
    let cases: [(&[&str], &str); 4] = [
        (&["cycles"], chart),
        (&["why", "big", "--watch"], chart),
        (&["why", "big", "--service", "a/b"], "Service a/b"),
        (&["why", "train", "--server", &url], &url),
    ];
    for (words, place) in cases {
        let called = call(&[words, &["--as", "jane"]].concat(), &config);
        let said = text(&called.stderr);
        assert!(said.starts_with(&format!("error: {place} {refused}hint: ")), "{said}");
        assert!(said.contains("; or give --token with a token of that user in place of --as"));
        assert_eq!((called.status.code(), text(&called.stdout)), (Some(1), String::new()));
    }
    // A kubeconfig may have such a user, too. A token does not end it, another user of it does.
    change(&config, |config| {
        config["users"][0]["user"]["as"] = "jane".into();
        let other = json!({"name": "jo", "user": {"token": "secret"}});
        config["users"].as_array_mut().unwrap().push(other);
    });
    for flags in [&["--server", &*url][..], &["--server", &*url, "--token", "secret"]] {
        let (_, out, said) = why(flags, &config);
        assert!(out.is_empty() && said.starts_with(&format!("error: {url} {refused}")), "{said}");
        assert!(said.contains("; or name another --user, or a kubeconfig "), "{said}");
    }
    let (code, _, said) = why(&["--server", &url, "--user", "jo", "-n", "ml"], &config);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(asked.take(), Vec::<String>::new());
}

/// Whoever is impersonated there must not be left out because something else cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn ans_86_a_kubeconfig_that_cannot_be_used_is_not_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let url = serve(explanation()).await;
    let flags = ["--server", url.as_str(), "--token", "secret", "-n", "ml"];
    let config = kubeconfig(folder.path(), "wrong");
    change(&config, |config| config["users"][0]["user"]["as"] = "jane".into());
    let missing = folder.path().join("missing");
    let both = std::env::join_paths([&config, &missing]).unwrap();
    let no_authority = kubeconfig(folder.path(), "no-authority");
    change(&no_authority, |config| {
        config["users"][0]["user"]["as"] = "jane".into();
        config["clusters"][0]["cluster"]["certificate-authority"] = "/nonexistent/ca.pem".into();
    });
    let of_nobody = kubeconfig(folder.path(), "of-nobody");
    change(&of_nobody, |config| config["users"][0]["user"]["as-groups"] = json!(["dev"]));
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "clusters: [").unwrap();
    let cases: [(&Path, &str); 4] = [
        (&no_authority, "error: kubeconfig: failed to load certificate authority: "),
        (Path::new(&both), "error: kubeconfig: failed to read kubeconfig from "),
        (&of_nobody, "error: kubeconfig: its user has as-uid, as-groups or as-user-extra, "),
        (&broken, "error: kubeconfig: failed to parse kubeconfig YAML: "),
    ];
    for (config, expected) in cases {
        let (code, out, said) = why(&flags, config);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{expected}");
        assert!(said.starts_with(expected), "{said}");
    }
    // Where there is none, or nobody is its user, the flags do.
    let files = [("empty", "kind: Config\n"), ("unset", "current-context: ''\n")];
    let [empty, unset] = files.map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    for config in [&missing, &empty, &unset] {
        let (code, _, said) = why(&flags, config);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{config:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_86_who_may_not_impersonate_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let words = "users \"jane\" is forbidden: User \"jo\" cannot impersonate resource \"users\" in \
        API group \"\" at the cluster scope";
    let (url, requests) = serve_always(status(403, words)).await;
    let config = kubeconfig_of(folder.path(), "secret", &url);
    let (code, _, said) = why(&["--as", "jane"], &config);
    assert_eq!((code, said), (Some(1), format!("error: {words}\n")));
    assert_eq!(requests.take(), [format!("{BASE} jane  ")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_86_a_token_takes_the_place_of_the_credentials() {
    let url = serve(explanation()).await;
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("none");
    let wrong = kubeconfig(folder.path(), "wrong");
    let exec = json!({ "exec": plugin(folder.path()) });
    let of_plugin = kubeconfig_of_user(folder.path(), "plugin", &exec);
    for config in [&wrong, &of_plugin, &nowhere] {
        let flags = ["--server", url.as_str(), "--token", "secret", "-n", "ml"];
        let (code, _, said) = why(&flags, config);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{config:?}");
    }
    assert!(!folder.path().join("runs").exists(), "nobody needs the plugin");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_86_a_cluster_and_a_user_of_the_kubeconfig_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _) = serve_always((200, explanation())).await;
    let scheduler = serve(explanation()).await;
    let config = kubeconfig(folder.path(), "wrong");
    let cluster = json!({"name": "other", "cluster": {"server": url}});
    let user = json!({"name": "jo", "user": {"token": "secret"}});
    change(&config, |config| {
        config["clusters"].as_array_mut().unwrap().push(cluster);
        config["users"].as_array_mut().unwrap().push(user);
    });
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--cluster", "other"], 0, ""),
        (&["--server", &scheduler, "--user", "jo"], 0, ""),
        (&["--server", &scheduler], 1, "error: the token was refused\n"),
        (
            &["--cluster", "x"],
            1,
            "error: kubeconfig: it has no cluster \"x\"\nhint: kubectl config get-clusters ",
        ),
        // An unknown user is not one without credentials.
        (
            &["--server", &scheduler, "--user", "x"],
            1,
            "error: kubeconfig: it has no user \"x\"\nhint: kubectl config get-users ",
        ),
    ];
    for (flags, expected, beginning) in cases {
        let (code, _, said) = why(flags, &config);
        assert_eq!(code, Some(expected), "{flags:?}: {said}");
        assert!(said.starts_with(beginning), "{flags:?}: {said}");
        assert_eq!(said.is_empty(), beginning.is_empty(), "{flags:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_86_a_request_that_takes_too_long_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let url = serve_silence().await;
    let config = kubeconfig_of(folder.path(), "secret", &url);
    let late = "it took longer than 50ms (--request-timeout)\n";
    let of_server = format!("error: no answer from {url}: {late}hint: give a longer ");
    let of_group = format!("error: no answer from the API server: {late}hint: ");
    let of_lists = format!("error: cannot list Node: {late}");
    let cases: [(&[&str], &str); 3] =
        [(&["--server", &url], &of_server), (&[], &of_group), (&["--local"], &of_lists)];
    for (flags, expected) in cases {
        let (code, out, said) = why(&[flags, &["--request-timeout", "50ms"]].concat(), &config);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{flags:?}");
        assert!(said.starts_with(expected), "{flags:?}: {said}");
    }
    // No limit is none, and a long one is not reached.
    let url = serve(explanation()).await;
    for limit in ["0", "0s", "300", "5m"] {
        let (code, _, said) = why(&["--server", &url, "--request-timeout", limit], &config);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{limit}");
    }
}

#[test]
fn ans_86_flags_that_make_no_sense_are_errors_of_usage() {
    let nowhere = Path::new("/nonexistent");
    let cases: [(&[&str], &str); 12] = [
        (&["--request-timeout", "soon"], "invalid value 'soon' for '--request-timeout <DURATION>'"),
        (&["--request-timeout=-5s"], "invalid value '-5s' for '--request-timeout <DURATION>'"),
        (&["--as", ""], "invalid value '' for '--as <USER>'"),
        (&["--as", "ja\nne"], "invalid value "),
        (&["--as-group", "dev"], "--as-group and --as-uid are about the user of --as\nhint: "),
        (&["--as-uid", "42"], "--as-group and --as-uid are about the user of --as\nhint: "),
        (&["--client-key", "a"], "--client-certificate needs --client-key, "),
        (&["--client-certificate", "a"], "--client-certificate needs --client-key, "),
        (
            &["--token", "a", "--client-certificate", "a", "--client-key", "b"],
            "--token and --client-certificate both say who asks\nhint: ",
        ),
        (
            &["--insecure-skip-tls-verify", "--certificate-authority", "a"],
            "with --insecure-skip-tls-verify no CA verifies anything\nhint: ",
        ),
        (&["--tls-server-name", "a b"], "invalid value 'a b' for '--tls-server-name <NAME>'"),
        (&["--token", "Bearer hush"], "--token: it is empty, or has spaces "),
    ];
    for (flags, expected) in cases {
        let (code, out, said) = why(flags, nowhere);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{flags:?}: {said}");
        assert!(said.starts_with(&format!("error: {expected}")), "{flags:?}: {said}");
        assert!(!said.contains("hush"), "the token is not repeated: {said}");
    }
    let (_, _, said) = why(&["--token", ""], nowhere);
    assert!(said.starts_with("error: --token: it is empty, "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_112_names_are_asked_for_with_these_flags() {
    let folder = tempfile::tempdir().unwrap();
    let queues = json!({"items": [{"name": "research"}]}).to_string();
    let requests = Requests::default();
    let asked = requests.clone();
    let answer = move |uri: Uri, headers: HeaderMap| async move {
        asked.add(&uri, &headers);
        queues
    };
    let discovery = get(async || "{}");
    let routes = Router::new().route(BASE, discovery).route(&format!("{BASE}/queues"), get(answer));
    let config = kubeconfig_of(folder.path(), "secret", &url_of(routes).await);
    let words = ["__complete", "--as", "jane", "--as-group=dev", "queues", ""];
    // A busy machine may take longer than completion waits.
    let offered = (0..30).map(|_| text(&call(&words, &config).stdout)).find(|out| out != ":4\n");
    assert_eq!(offered.as_deref(), Some("research\n:4\n"));
    let last = requests.take().pop();
    assert_eq!(last, Some(format!("{BASE}/queues jane  dev")));
    let flags = text(&call(&["__complete", "why", "--as"], &config).stdout);
    for flag in ["--as\t", "--as-group\t", "--as-uid\t"] {
        assert!(flags.lines().any(|line| line.starts_with(flag)), "{flags}");
    }
}
