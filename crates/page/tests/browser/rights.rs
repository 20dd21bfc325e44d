//! Tokens, and what a reader with fewer rights sees.

use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::expected::{result, rows, text};
use crate::served::Served;
use crate::tab::Tab;

/// The token of an administrator, which must be nowhere in the browser.
const SECRET: &str = "s3cret-of-the-admin";
const USERS: &[(&str, &str)] = &[
    (SECRET, "* * *"),
    ("mia", "list explanations *"),
    ("mia", "get explanations ml"),
    ("mia", "list queues *"),
    ("mia", "get queues *"),
    ("mia", "list summaries *"),
    ("mia", "list timelines *"),
    ("mia", "create whatifs ml"),
];

/// What a script of the page could find of a token.
const KEPT: &str = "(async () => JSON.stringify([localStorage, sessionStorage, document.cookie, \
    location.href, history.state, await indexedDB.databases(), await caches.keys(), \
    document.documentElement.outerHTML, \
    [...document.querySelectorAll('input')].map((it) => it.value)]))()";

/// Opens a view with a token that is written into the form.
async fn open_as(chromium: &Chromium, served: &Served, token: &str, hash: &str) -> Tab {
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page(hash)).await;
    tab.wait("the form for a token", "Boolean(dom.field('Token'))").await;
    tab.fill("Token", token).await;
    tab.press("Enter").await;
    tab
}

pub(crate) async fn ask_for_a_token(chromium: &Chromium) {
    let served = Served::with_users(USERS).await;
    let tab = open_as(chromium, &served, "nobody", "#/queues").await;
    tab.wait("the refusal", "dom.texts('.token p').includes('the token was refused.')").await;
    assert_eq!(
        tab.eval::<String>("dom.field('Token').value").await,
        "",
        "the field is empty again"
    );
    tab.fill("Token", SECRET).await;
    tab.click("Use this token").await;
    tab.wait_for_view("Queues").await;
    tab.wait("the queues", "document.querySelectorAll('tr.row').length > 2").await;
    let kept: String = tab.eval(KEPT).await;
    assert!(kept.contains("research"), "nothing is looked through: {kept}");
    assert!(!kept.contains(SECRET), "the token is kept: {kept}");
    let cookies = tab.send("Network.getAllCookies", json!({})).await;
    assert!(!cookies.to_string().contains(SECRET), "{cookies}");
    assert!(tab.requests().iter().all(|it| !it.contains(SECRET)), "the token is in an address");
    tab.reload().await;
    tab.wait("the form after a reload", "Boolean(dom.field('Token'))").await;
    let shown = tab.main_text().await;
    for wanted in
        ["a bearer token is needed.", "after a reload you are asked again", "kubectl vc ui"]
    {
        assert!(shown.contains(wanted), "{wanted:?} is not in {shown}");
    }
    assert!(!shown.contains("research"), "{shown}");
    tab.expect_quiet(&served.origin(), &["status of 401"]).await;
    tab.close().await;
}

pub(crate) async fn hide_what_a_reader_may_not_see(chromium: &Chromium) {
    let served = Served::with_users(USERS).await;
    let tab = open_as(chromium, &served, "mia", "#/jobs").await;
    tab.wait_for_view("Jobs that wait").await;
    tab.wait("the jobs", "document.querySelectorAll('tr.row').length > 2").await;
    let names: Vec<String> =
        tab.table("Jobs that wait").await.into_iter().map(|row| row[0].clone()).collect();
    let hidden = names.iter().filter(|name| name.starts_with("a job that you may not see"));
    assert_eq!((names.contains(&"ml/train".to_owned()), hidden.count()), (true, 1), "{names:?}");
    expect_nothing_of_prod(&tab).await;
    tab.show("#/queues/research", "Queue research").await;
    let line = tab.table("Jobs that wait in queue research").await;
    assert!(line.iter().any(|row| row[0].starts_with("a job that you may not see")), "{line:?}");
    expect_nothing_of_prod(&tab).await;
    tab.show("#/timeline", "Timeline").await;
    let jobs = tab.table("Jobs that ran").await;
    assert!(jobs.iter().any(|row| row[0].starts_with("a job that you may not see")), "{jobs:?}");
    expect_nothing_of_prod(&tab).await;
    for (hash, title, path) in [
        ("#/nodes", "Nodes", "/nodes"),
        ("#/nodes/g1", "Node g1", "/nodes/g1"),
        ("#/jobs/prod/serve", "Job prod/serve", "/namespaces/prod/explanations/serve"),
    ] {
        tab.show(hash, title).await;
        let status = served.get_as("mia", path).await;
        let (sentence, hint) = status["message"].as_str().unwrap().split_once("\nhint: ").unwrap();
        assert!(hint.contains("ClusterRole"), "{hint}");
        let shown = tab.texts(".problem p").await;
        assert_eq!(shown, [format!("403 {sentence}"), format!("Hint: {hint}")], "{hash}");
    }
    tab.expect_quiet(&served.origin(), &["status of 401", "status of 403"]).await;
    tab.close().await;
}

/// Fails if something of the other namespace is in the document.
async fn expect_nothing_of_prod(tab: &Tab) {
    let document: String = tab.eval("document.documentElement.outerHTML").await;
    for name in ["prod/", ">prod<", "prod%2F", "on-g2"] {
        if let Some((before, after)) = document.split_once(name) {
            let before: String = before.chars().rev().take(200).collect();
            let before: String = before.chars().rev().collect();
            let after: String = after.chars().take(200).collect();
            panic!("{name} is in the document: {before}{name}{after}");
        }
    }
}

pub(crate) async fn try_with_the_rights_of_a_namespace(chromium: &Chromium) {
    let served = Served::with_users(USERS).await;
    let tab = open_as(chromium, &served, "mia", "#/jobs/ml/train").await;
    tab.wait_for_view("Job ml/train").await;
    let path = "/namespaces/ml/explanations/train?when=true";
    tab.wait("the remedies", "document.querySelectorAll('.remedies > li').length > 0").await;
    expect_nothing_of_prod(&tab).await;
    let explanation = served.get_as("mia", path).await;
    let remedies = rows(&explanation["unblock"]);
    let remedy = remedies.iter().find(|it| it["kind"] == "tolerate").unwrap();
    tab.click(&format!("Try: {}", text(&remedy["text"]))).await;
    tab.wait("the difference", "dom.texts('.result strong').length === 1").await;
    let (whole, own) = ("/whatifs", "/namespaces/{namespace}/whatifs");
    assert_eq!((served.state.n_answered(whole, 403), served.state.n_answered(own, 200)), (1, 1));
    let document = json!({
        "apiVersion": "answers.volcano.sh/v1",
        "kind": "WhatIf",
        "spec": { "changes": [remedy["change"]], "cycles": "settled" },
    });
    let answer: Value =
        served.post_as("mia", "/namespaces/ml/whatifs", &document.to_string()).await;
    assert_eq!(tab.texts(".result strong").await, [result(&answer)]);
    tab.expect_quiet(&served.origin(), &["status of 401", "status of 403"]).await;
    tab.close().await;
}
