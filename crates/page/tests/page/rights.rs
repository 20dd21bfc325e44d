//! Who may ask what, and what somebody is told who may not. Specification: answers.md 12, 16.

use std::sync::{Arc, Mutex};

use axum::Extension;
use http::HeaderMap;
use serde_json::json;
use vc_http::PeerCertificates;
use vc_page::{
    Access, BASE, Problem, ROUTES, Right, RouteOptions, Uncounted, User, UserSource, routes,
};

use crate::support::{CLUSTER, Page, Source, Table, USERS, example_path, view};

#[tokio::test]
async fn ans_77_without_a_good_token_nothing_is_answered() {
    let page = Page::new();
    let path = "namespaces/ml/explanations/train";
    type Headers = &'static [(&'static str, &'static str)];
    let cases: &[(Headers, u16, &str)] = &[
        (&[], 401, "a bearer token is needed\nhint: "),
        (&[("authorization", "Basic am86")], 401, "a bearer token is needed\nhint: "),
        (&[("authorization", "Bearer ")], 401, "a bearer token is needed\nhint: "),
        (&[("authorization", "Bearer nobody")], 401, "the token was refused"),
        (
            &[("authorization", "Bearer broken")],
            503,
            "the API server did not review the token: no answer within 10 s",
        ),
        // The API server takes the first header away.
        (
            &[("x-answers-authorization", "Bearer nobody"), ("authorization", "Bearer jo")],
            401,
            "the",
        ),
    ];
    for (headers, code, text) in cases {
        let reply = page.ask(path, headers).await;
        assert_eq!(reply.code, *code, "{headers:?}: {}", reply.text);
        assert!(reply.message().starts_with(text), "{headers:?}: {}", reply.text);
        assert_eq!(reply.headers.contains_key("www-authenticate"), *code == 401);
        assert_eq!(reply.headers.contains_key("retry-after"), *code == 503);
    }
    assert_eq!(page.ask(path, &[("x-answers-authorization", "bearer jo")]).await.code, 200);
}

const NO_CHANGES: &str = "{apiVersion: answers.volcano.sh/v1, kind: WhatIf, spec: {changes: []}}";

#[tokio::test]
async fn ans_78_each_route_needs_its_right() {
    let page = Page::new();
    for route in ROUTES {
        let path = &example_path(route);
        let ask = async |user: &str| match route.takes_body() {
            true => page.post(user, path, NO_CHANGES).await,
            false => page.get(user, path).await,
        };
        assert_eq!(ask("admin").await.code, 200, "{path}");
        let refused = ask("stranger").await;
        assert_eq!(refused.code, 403, "{path}");
        let place = if route.path.contains("{namespace}") { " in namespace ml" } else { "" };
        let expected = format!(
            "user stranger may not {} {}.answers.volcano.sh{place}\nhint: ",
            route.verb, route.resource
        );
        assert!(refused.message().starts_with(&expected), "{path}: {}", refused.text);
        let is_of_jo = route.path.starts_with("/namespaces/");
        assert_eq!(ask("jo").await.code == 200, is_of_jo, "{path}");
    }
    let other = page.get("jo", "namespaces/prod/explanations/serve").await;
    let expected = "user jo may not get explanations.answers.volcano.sh in namespace prod\n";
    assert!(other.code == 403 && other.message().starts_with(expected), "{}", other.text);
}

#[tokio::test]
async fn ans_12_documents_without_data_need_no_token() {
    let page = Page::of(Source(Err(Problem::unavailable("vc-scheduler-abc leads"))));
    for path in ["/healthz", "/apis", "/apis/answers.volcano.sh", "openapi.json"] {
        assert_eq!(page.ask(path, &[]).await.code, 200, "{path}");
    }
    let resources = page.ask("/apis/answers.volcano.sh/v1", &[]).await.json();
    let row = |name: &str| {
        let rows = resources["resources"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(row("explanations")["namespaced"], true);
    assert_eq!(row("queues")["verbs"], json!(["list", "get"]));
    let kinds =
        ["Bundle", "Cycle", "Explanation", "Node", "Queue", "Summary", "Timeline", "WhatIf"];
    let rows = resources["resources"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| &row["kind"]).collect::<Vec<_>>(), kinds);
    let standby = page.get("admin", "summary").await;
    assert_eq!((standby.code, standby.message()), (503, "vc-scheduler-abc leads".to_owned()));
    assert!(standby.headers.contains_key("retry-after"));
}

#[tokio::test(start_paused = true)]
async fn ans_74_a_user_who_asks_too_much_waits() {
    let page = Page::new();
    let mut codes = Vec::new();
    for _ in 0..51 {
        codes.push(page.get("jo", "namespaces/ml/explanations/nothing").await.code);
    }
    assert!(codes[..50].iter().all(|code| *code == 404));
    assert_eq!(codes[50], 429);
    assert_eq!(page.get("admin", "summary").await.code, 200, "others are not held up");
    tokio::time::advance(std::time::Duration::from_millis(50)).await;
    assert_eq!(page.get("jo", "namespaces/ml/explanations/nothing").await.code, 404);
}

/// The reader may list all jobs and see none: for each part of the list twenty namespaces are
/// reviewed.
#[tokio::test(start_paused = true)]
async fn ans_78_a_user_whose_rights_are_reviewed_too_often_waits() {
    let job = |number: usize| format!("job n{number:03}/j queue=research min=1\n task a cpu=100\n");
    let jobs: String = (0..400).map(job).collect();
    let cluster = format!("node c1 cpu=4\nqueue research\n{jobs}");
    let page = Page::of(Source(Ok(Mutex::new(view(&cluster)))));
    let part = |number: usize| format!("explanations?offset={}&limit=20", 20 * number);
    let mut n_parts = 0;
    let refused = loop {
        let reply = page.get("lister", &part(n_parts)).await;
        if reply.code != 200 {
            break reply;
        }
        n_parts += 1;
    };
    let text = "too many questions about rights: 40 a second, 200 at once";
    assert_eq!((refused.code, refused.message()), (429, text.to_owned()));
    assert!(refused.headers.contains_key("retry-after"));
    assert!((8..12).contains(&n_parts), "{n_parts} parts of a list were answered");
    assert_eq!(page.get("lister", &part(0)).await.code, 200, "what is known needs no review");
    assert_eq!(page.get("admin", &part(0)).await.code, 200, "others are not held up");
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(page.get("lister", &part(n_parts)).await.code, 200);
}

/// Without tokens all are one user. What-ifs keep their limit.
#[tokio::test(start_paused = true)]
async fn ans_74_who_needs_no_token_may_ask_on() {
    let page = Page::open(Source(Ok(Mutex::new(view(CLUSTER)))));
    for _ in 0..60 {
        assert_eq!(page.ask(&format!("{BASE}/summary"), &[]).await.code, 200);
    }
    let body =
        r#"{"apiVersion": "answers.volcano.sh/v1", "kind": "WhatIf", "spec": {"changes": []}}"#;
    for number in 0..6 {
        let reply = page.post("", "whatifs", body).await;
        assert_eq!(reply.code, if number < 5 { 200 } else { 429 }, "{number}");
    }
}

#[tokio::test]
async fn ans_90_a_page_of_others_cannot_read_what_needs_no_token() {
    let source = Source(Ok(Mutex::new(view(CLUSTER))));
    let page = Page::open(source);
    let path = format!("{BASE}/summary");
    for (host, code) in [("127.0.0.1:11253", 200), ("localhost", 200), ("evil.example", 403)] {
        assert_eq!(page.ask(&path, &[("host", host)]).await.code, code, "{host}");
    }
    assert_eq!(page.ask(&path, &[]).await.code, 200, "no browser");
    assert_eq!(page.ask("/ui/", &[("host", "evil.example")]).await.code, 403);
}

/// The rights of the table, and a front proxy that is believed on every connection with a certificate.
struct Proxied;

impl Access for Proxied {
    fn user_source(&self, peer: Option<&PeerCertificates>, headers: &HeaderMap) -> UserSource {
        let name = headers.get("x-remote-user").and_then(|name| name.to_str().ok());
        let user = name.map(|name| User { name: name.to_owned(), ..User::default() });
        peer.map_or(UserSource::Token, |_| UserSource::FrontProxy(user))
    }

    async fn user(&self, token: &str) -> Result<Option<User>, String> {
        Table(USERS).user(token).await
    }

    async fn may(&self, user: &User, right: &Right) -> Result<bool, String> {
        Table(USERS).may(user, right).await
    }
}

#[tokio::test]
async fn ans_80_a_request_of_the_front_proxy_needs_no_token() {
    let source = Source(Ok(Mutex::new(view(CLUSTER))));
    let options = RouteOptions { has_page: false };
    let plain = routes(Proxied, source, Arc::new(Uncounted), options);
    let proxied = Page::from(plain.clone().layer(Extension(PeerCertificates(Arc::new([])))));
    let (admin, guest) = (("x-remote-user", "admin"), ("x-remote-user", "guest"));
    let token = ("authorization", "Bearer admin");
    let nobody = "the API server's front proxy names no user";
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&Page, Headers<'_>, u16, &str); 6] = [
        (&proxied, &[admin], 200, ""),
        (&proxied, &[guest], 403, "user guest may not list summaries."),
        // A token that comes along is another user's affair.
        (&proxied, &[guest, token], 403, "user guest may not list summaries."),
        (&proxied, &[], 401, nobody),
        (&proxied, &[token], 401, nobody),
        (&Page::from(plain), &[admin], 401, "a bearer token is needed"),
    ];
    for (page, headers, code, text) in cases {
        let reply = page.ask("summary", headers).await;
        assert_eq!(reply.code, code, "{headers:?}: {}", reply.text);
        assert!(code == 200 || reply.message().starts_with(text), "{headers:?}: {}", reply.text);
    }
    assert_eq!(proxied.ask("/apis/answers.volcano.sh/v1", &[]).await.code, 200);
}

/// A Role for jobs of namespace ml by their names (`resourceNames`).
struct NamedJobs(&'static [&'static str]);

impl Access for NamedJobs {
    async fn user(&self, token: &str) -> Result<Option<User>, String> {
        Table(USERS).user(token).await
    }

    async fn may(&self, _user: &User, right: &Right) -> Result<bool, String> {
        let is_named = right.name.as_deref().is_some_and(|name| self.0.contains(&name));
        let place = (right.verb, right.resource, right.namespace.as_deref());
        Ok(is_named && place == ("get", "explanations", Some("ml")))
    }
}

#[tokio::test]
async fn ans_79_hints_name_jobs_for_whoever_may_see_all_of_the_namespace() {
    let cluster = format!(
        "{CLUSTER}\njob ml/pg-1 owner=api-77b8cd kind=ReplicaSet queue=research\n task a gpu=9
         job ml/pg-2 owner=api-5d9f7c kind=ReplicaSet queue=research\n task a gpu=9"
    );
    let source = || Source(Ok(Mutex::new(view(&cluster))));
    let options = RouteOptions { has_page: false };
    let role = NamedJobs(&["trian", "api", "train"]);
    let named = Page::from(routes(role, source(), Arc::new(Uncounted), options));
    let whole = Page::of(source());
    for (name, code, of_namespace, of_names) in [
        (
            "trian",
            404,
            "no job, PodGroup or pod ml/trian\nhint: did you mean train?",
            "no job, PodGroup or pod ml/trian\nhint: pods of other schedulers are not known here; \
                spec.schedulerName says whose a pod is",
        ),
        (
            "api?kind=deployment",
            409,
            "api means several: ml/pg-1, ml/pg-2\nhint: give the name of the PodGroup",
            "api means several\nhint: give the name of the PodGroup",
        ),
    ] {
        let path = format!("namespaces/ml/explanations/{name}");
        for (page, expected) in [(&whole, of_namespace), (&named, of_names)] {
            let reply = page.get("jo", &path).await;
            assert_eq!((reply.code, &*reply.message()), (code, expected), "{name}");
        }
    }
    assert_eq!(named.get("jo", "namespaces/ml/explanations/train").await.code, 200);
    assert_eq!(named.get("jo", "namespaces/ml/explanations/held").await.code, 403);
}
