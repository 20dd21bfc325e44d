//! When the page asks again, and what it shows while nobody answers.

use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::served::Served;
use crate::support::CLUSTER;
use crate::tab::{Tab, wait_until};

/// Polls after which a page that would poll has polled.
const ENOUGH_POLLS: usize = 3;

pub(crate) async fn ask_only_for_what_is_new(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/summary")).await;
    tab.wait_for_view("Summary").await;
    let state = &served.state;
    let unchanged = || state.n_answered("/summary", 304);
    let is_each_known = || 0 < unchanged() && 0 < state.n_answered("/cycles", 304);
    wait_until("an answer 304 for each path", is_each_known).await;
    let n_asked = state.n_asked();
    let before = unchanged();
    wait_until("more answers 304", || before + ENOUGH_POLLS <= unchanged()).await;
    assert_eq!(state.n_asked(), n_asked, "questions are asked though nothing has changed");
    state.replace(&format!("{CLUSTER}\nnode g5 cpu=64 gpu=8"));
    tab.wait("the new node", "dom.facts('dl.counts')[0][1] === '5'").await;
    wait_until("both answers", || n_asked + 2 <= state.n_asked()).await;
    assert_eq!(state.n_asked(), n_asked + 2, "each path is asked once after a change");
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}

pub(crate) async fn rest_while_hidden(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/queues")).await;
    tab.wait_for_view("Queues").await;
    let asked =
        |tab: &Tab| tab.requests().iter().filter(|address| address.ends_with("/queues")).count();
    tab.eval::<Value>("dom.hide(true), null").await;
    // A request that was on its way has been seen when the fence is.
    tab.take_problems().await;
    let before = asked(&tab);
    assert!(0 < before, "requests are not seen");
    // The polls of a second page are the clock.
    let other = Tab::open(&chromium.browser).await;
    other.goto(&served.page("#/queues")).await;
    wait_until("polls of the other page", || ENOUGH_POLLS < asked(&other)).await;
    tab.take_problems().await;
    assert_eq!(asked(&tab), before, "a page that nobody sees asks");
    tab.eval::<Value>("dom.hide(false), null").await;
    wait_until("a request of the page that is seen again", || before < asked(&tab)).await;
    for tab in [tab, other] {
        tab.expect_quiet(&served.origin(), &[]).await;
        tab.close().await;
    }
}

pub(crate) async fn show_the_age_while_nobody_answers(chromium: &Chromium) {
    let mut served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/jobs/ml/train")).await;
    tab.wait_for_view("Job ml/train").await;
    let verdict = tab.texts(".verdict").await;
    served.stop().await;
    let status = "dom.text(document.querySelector('.status'))";
    let announced = "document.getElementById('changes').textContent";
    let lost = r"/^▲ The scheduler has not answered for \d+s\. What is shown is as old\.$/";
    tab.wait("the age", &format!("{lost}.test({status})")).await;
    tab.wait("the announcement", &format!("{announced} === 'The scheduler does not answer.'"))
        .await;
    let older = r"/for ([2-9]|\d\d)s/";
    tab.wait("a greater age", &format!("{older}.test({status})")).await;
    assert_eq!(tab.texts(".verdict").await, verdict, "the view stays");
    served.restart().await;
    tab.wait("the status", &format!("{status}.startsWith('As of ')")).await;
    tab.wait("the announcement", &format!("{announced} === 'The scheduler answers again.'")).await;
    // The toleration that the job lacks is not needed any more.
    served.state.replace(&CLUSTER.replace(" taint=team=vision:NoSchedule", ""));
    let verdict = json!(verdict).to_string();
    let changed = format!("JSON.stringify(dom.texts('.verdict')) !== {}", json!(verdict));
    tab.wait("the new verdict", &changed).await;
    let told = format!("dom.texts('.verdict')[0].startsWith({announced}) && {announced} !== ''");
    tab.wait("the announcement of the new verdict", &told).await;
    tab.expect_quiet(&served.origin(), &["ERR_CONNECTION", "ERR_EMPTY_RESPONSE"]).await;
    tab.close().await;
}
