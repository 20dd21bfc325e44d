//! Users with a client certificate, which the API server does not pass on. Specification: answers.md 13 (ANS-88,
//! ANS-89), case 80.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use axum::extract::{ConnectInfo, Path as Segments, Request};
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Router, http::StatusCode};
use serde_json::json;

use crate::front::status;
use crate::servers::{HasCertificate, asks_for_certificates, open_tunnel, serve_tls, tls_file};
use crate::{BASE, call, explanation, kubeconfig_of_user, text};

/// What the user of the certificate may do, and what the API server has.
#[derive(Clone, Copy, Default)]
struct Front {
    /// True if the API server has the group.
    has_group: bool,
    /// True if tokens of the ServiceAccount are given.
    gives_tokens: bool,
    /// True if the Service may be asked.
    passes_on: bool,
    /// Where tunnels lead.
    tunnels: Option<SocketAddr>,
}

fn refusal(code: u16, message: &str) -> Response {
    let (code, text) = status(code, message);
    (StatusCode::from_u16(code).unwrap(), text).into_response()
}

/// Refuses whoever shows no certificate, or sends a token in its place.
async fn check(
    ConnectInfo(HasCertificate(is_known)): ConnectInfo<HasCertificate>,
    request: Request,
    next: Next,
) -> Response {
    match is_known && !request.headers().contains_key("authorization") {
        true => next.run(request).await,
        false => refusal(401, "Unauthorized"),
    }
}

/// Answers a question that has the token of the ServiceAccount in this header.
fn answer(headers: &HeaderMap, header: &str) -> Response {
    match headers.get(header).map(|value| value.to_str().unwrap()) {
        Some("Bearer of-account") => explanation().into_response(),
        other => refusal(401, &format!("the token was refused: {other:?}")),
    }
}

/// An API server that knows users by their certificates; its address.
async fn serve(front: Front) -> SocketAddr {
    let give = move |Segments((namespace, name)): Segments<(String, String)>| async move {
        assert_eq!(
            (namespace.as_str(), name.as_str()),
            ("volcano-system", "vc-scheduler-answers-admin")
        );
        match front.gives_tokens {
            true => json!({"status": {"token": "of-account"}}).to_string().into_response(),
            false => refusal(403, "serviceaccounts \"vc-scheduler-answers-admin\" is forbidden"),
        }
    };
    let proxy = move |headers: HeaderMap| async move {
        match front.passes_on {
            true => answer(&headers, "x-answers-authorization"),
            false => refusal(403, "services \"https:vc-scheduler-answers:answers\" is forbidden"),
        }
    };
    let pods = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [
        {"metadata": {"namespace": "volcano-system", "name": "vc-0",
            "labels": {"scheduling.volcano.sh/answers": "true"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]});
    let forward = move |request: Request| async move {
        match front.tunnels {
            Some(target) => open_tunnel(request, target).into_response(),
            None => refusal(403, "pods \"vc-0\" is forbidden"),
        }
    };
    let space = "/api/v1/namespaces/{namespace}";
    let mut routes = Router::new()
        .route(&format!("{space}/serviceaccounts/{{name}}/token"), post(give))
        .route(&format!("{space}/services/{{name}}/proxy/{{*path}}"), any(proxy))
        .route(&format!("{space}/pods"), get(async move || pods.to_string()))
        .route(&format!("{space}/pods/{{name}}/portforward"), any(forward))
        .fallback(async || refusal(404, "the server could not find the requested resource"));
    if front.has_group {
        let answer = |headers: HeaderMap| async move {
            assert!(!headers.contains_key("x-answers-authorization"));
            explanation()
        };
        routes =
            routes.route(BASE, get(async || "{}")).route(&format!("{BASE}/{{*path}}"), any(answer));
    }
    serve_tls(asks_for_certificates(), routes.layer(from_fn(check))).await
}

/// A pod of a scheduler that would take certificates, and gets none.
async fn serve_pod() -> SocketAddr {
    let answer = |ConnectInfo(HasCertificate(is_shown)), headers: HeaderMap| async move {
        assert!(!is_shown, "the certificate of the user is for the API server alone");
        answer(&headers, "authorization")
    };
    let path = format!("{BASE}/namespaces/ml/explanations/train");
    serve_tls(asks_for_certificates(), Router::new().route(&path, get(answer))).await
}

/// A kubeconfig whose user has the certificate of this name, for this server.
fn kubeconfig(folder: &Path, certificate: &str, server: SocketAddr) -> PathBuf {
    let files = ["pem", "key"].map(|ending| tls_file(&format!("{certificate}.{ending}")));
    let user = json!({"client-certificate": files[0], "client-key": files[1]});
    let path = kubeconfig_of_user(folder, certificate, &user);
    let mut config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["clusters"][0]["cluster"] =
        json!({"server": format!("https://{server}"), "certificate-authority": tls_file("ca.pem")});
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_89_a_user_with_a_certificate_asks_with_the_token_of_an_account() {
    let folder = tempfile::tempdir().unwrap();
    let tunnels = Some(serve_pod().await);
    let with = Front { gives_tokens: true, passes_on: true, ..Front::default() };
    let cases = [
        ("the Service", with, ""),
        (
            "a tunnel",
            Front { passes_on: false, tunnels, ..with },
            "asked pod volcano-system/vc-0\n",
        ),
        ("the API server", Front { has_group: true, ..Front::default() }, ""),
    ];
    for (case, front, line) in cases {
        let config = kubeconfig(folder.path(), "client", serve(front).await);
        let called = call(&["why", "job/train"], &config);
        let (out, said) = (text(&called.stdout), text(&called.stderr));
        assert!(out.starts_with("ml/train (job, "), "{case}: {out}{said}");
        assert_eq!(said, line, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_89_without_the_right_to_a_token_the_user_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let front = Front { passes_on: true, tunnels: Some(serve_pod().await), ..Front::default() };
    let config = kubeconfig(folder.path(), "client", serve(front).await);
    let refused = "the kubeconfig has no token, and none of ServiceAccount \
        volcano-system/vc-scheduler-answers-admin is given: \
        serviceaccounts \"vc-scheduler-answers-admin\" is forbidden\n";
    // The lists of the cluster come next, and this user may not have them either.
    let called = call(&["why", "job/train"], &config);
    let (out, said) = (text(&called.stdout), text(&called.stderr));
    assert!(said.starts_with(&format!("{refused}error: cannot list Node: ")), "{said}");
    assert_eq!((called.status.code(), out.as_str()), (Some(1), ""));
    let service = ["--service", "volcano-system/vc-scheduler-answers"];
    let called = call(&[&["why", "job/train"], &service[..]].concat(), &config);
    let said = text(&called.stderr);
    let expected =
        format!("error: {refused}hint: ask for the right to create serviceaccounts/token ");
    assert!(said.starts_with(&expected), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_89_a_certificate_that_the_api_server_does_not_know_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(Front { has_group: true, ..Front::default() }).await;
    let called = call(&["why", "job/train"], &kubeconfig(folder.path(), "stranger", server));
    let said = text(&called.stderr);
    assert!(said.starts_with("error: no answer from the API server: "), "{said}");
    assert_eq!(called.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_86_files_of_the_flags_take_the_place_of_those_of_the_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(Front { has_group: true, ..Front::default() }).await;
    let config = kubeconfig(folder.path(), "stranger", server);
    let mut content: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    content["users"][0]["user"]["token"] = "other".into();
    content["clusters"][0]["cluster"]["certificate-authority"] = "/absent".into();
    content["clusters"][0]["cluster"]["tls-server-name"] = "nobody".into();
    std::fs::write(&config, content.to_string()).unwrap();
    let [ca, certificate, key] = ["ca.pem", "client.pem", "client.key"]
        .map(|name| tls_file(name).to_str().unwrap().to_owned());
    let authority = ["--certificate-authority", ca.as_str()];
    let user = ["--client-certificate", certificate.as_str(), "--client-key", key.as_str()];
    let localhost = ["--tls-server-name", "localhost"];
    let no_certificate = ["--client-certificate", key.as_str(), "--client-key", key.as_str()];
    let no_key = ["--client-certificate", certificate.as_str(), "--client-key", "/absent"];
    let unnamed = "error: no answer from the API server: ";
    let no_certificate_in = format!("error: cannot read {key}: it has no certificate\nhint: ");
    let cases = [
        ([&authority[..], &user, &localhost].concat(), ""),
        ([&["--insecure-skip-tls-verify"][..], &user].concat(), ""),
        // The name is still that of the kubeconfig.
        ([&authority[..], &user].concat(), unnamed),
        ([&authority[..], &localhost].concat(), unnamed),
        ([&authority[..], &no_certificate].concat(), &*no_certificate_in),
        ([&authority[..], &no_key].concat(), "error: cannot read /absent: "),
    ];
    for (flags, expected) in cases {
        let called = call(&[&["why", "job/train"], &flags[..]].concat(), &config);
        let (out, said) = (text(&called.stdout), text(&called.stderr));
        assert!(said.starts_with(expected), "{flags:?}: {said}");
        assert_eq!(said.is_empty(), expected.is_empty(), "{flags:?}: {said}");
        assert_eq!(out.starts_with("ml/train (job, "), expected.is_empty(), "{flags:?}: {out}");
    }
}
