//! The page for readers with a keyboard and a screen reader.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::VIEWS;
use crate::chromium::Chromium;
use crate::served::Served;
use crate::tab::Tab;

/// Presses of the tab key after which what was not reached is not reachable.
const MOST_STEPS: usize = 80;

pub(crate) async fn name_everything(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("")).await;
    let mut n_tables = 0;
    for &(hash, title) in VIEWS {
        tab.show(hash, title).await;
        let tree = tab.send("Accessibility.getFullAXTree", json!({})).await;
        n_tables += check_tree(tree["nodes"].as_array().unwrap(), hash);
    }
    assert!(5 < n_tables, "{n_tables} tables");
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}

/// Returns the value of a property of a node of the accessibility tree.
fn property<'a>(node: &'a Value, name: &str) -> &'a Value {
    let properties = node["properties"].as_array().into_iter().flatten();
    let found = { properties }.find(|it| it["name"] == name);
    found.map_or(&Value::Null, |it| &it["value"]["value"])
}

/// Checks the names of a view. Returns the number of its tables.
fn check_tree(nodes: &[Value], hash: &str) -> usize {
    let mut roles: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut titles, mut n_focusable) = (Vec::new(), 0);
    for node in nodes.iter().filter(|node| node["ignored"] == false) {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        let name = node["name"]["value"].as_str().unwrap_or_default();
        *roles.entry(role).or_default() += 1;
        if role == "heading" && property(node, "level") == 1 {
            titles.push(name);
        }
        if property(node, "focusable") == true {
            n_focusable += 1;
            assert!(!name.trim().is_empty(), "{hash}: no name: {node}");
        }
        if ["image", "img", "table", "columnheader", "rowheader"].contains(&role) {
            assert!(!name.trim().is_empty(), "{hash}: a {role} without name: {node}");
        }
    }
    let n_of = |role: &str| roles.get(role).copied().unwrap_or(0);
    assert!(n_of("table") <= n_of("columnheader"), "{hash}: a table without heads: {roles:?}");
    assert!(8 < n_focusable, "{hash}: {roles:?}");
    assert_eq!(titles.len(), 1, "{hash}: {titles:?}");
    for landmark in ["banner", "navigation", "main", "contentinfo"] {
        assert_eq!(roles.get(landmark), Some(&1), "{hash}: {landmark}: {roles:?}");
    }
    assert_eq!(roles.get("status"), Some(&1), "{hash}: the live region: {roles:?}");
    n_of("table")
}

/// Presses the tab key until the element with this name has the focus.
async fn tab_to(tab: &Tab, name: &str) {
    let mut passed = Vec::new();
    for _ in 0..MOST_STEPS {
        tab.press("Tab").await;
        let focused: String = tab.eval("dom.focused()").await;
        if focused == name {
            let outline = "getComputedStyle(document.activeElement).outlineStyle";
            assert_eq!(tab.eval::<String>(outline).await, "solid", "{name} has no focus ring");
            return;
        }
        passed.push(focused);
    }
    panic!("the tab key does not reach {name:?}: {passed:?}");
}

pub(crate) async fn walk_by_keyboard(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/summary")).await;
    tab.wait_for_view("Summary").await;
    tab.press("Tab").await;
    assert_eq!(tab.eval::<String>("dom.focused()").await, "Skip to content");
    tab_to(&tab, "Jobs").await;
    tab.press("Enter").await;
    tab.wait_for_view("Jobs that wait").await;
    assert_eq!(tab.eval::<String>("dom.focused()").await, "Jobs that wait");
    tab_to(&tab, "ml/train").await;
    tab.press("Enter").await;
    tab.wait_for_view("Job ml/train").await;
    assert_eq!(tab.eval::<String>("dom.focused()").await, "Job ml/train");
    let button = "Try: tolerate team=vision:NoSchedule";
    tab_to(&tab, button).await;
    tab.press("Enter").await;
    let announced = "document.getElementById('changes').textContent";
    tab.wait("the result", &format!("{announced}.includes('2 placed')")).await;
    assert_eq!(tab.eval::<String>("dom.focused()").await, button, "the focus stays");
    let polled = served.state.n_answered("/namespaces/{namespace}/explanations/{name}", 304);
    let is_polled =
        || polled < served.state.n_answered("/namespaces/{namespace}/explanations/{name}", 304);
    crate::tab::wait_until("a poll", is_polled).await;
    assert_eq!(tab.eval::<String>("dom.focused()").await, button, "the focus stays over a poll");
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}
