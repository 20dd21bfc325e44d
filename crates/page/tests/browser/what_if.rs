//! What-ifs: by the button of a remedy, by the form, and with a document that is wrong.

use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::expected::{result, row, rows, text};
use crate::served::Served;
use crate::tab::{Tab, wait_until};

const TRAIN: &str = "/namespaces/ml/explanations/train?when=true";

pub(crate) async fn try_a_remedy(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/jobs/ml/train")).await;
    tab.wait_for_view("Job ml/train").await;
    let explanation = served.get(TRAIN).await;
    let remedies = rows(&explanation["unblock"]).iter().filter(|it| it.get("change").is_some());
    let remedies: Vec<&Value> = remedies.collect();
    assert!(1 < remedies.len(), "{explanation}");
    for remedy in remedies {
        let about = text(&remedy["text"]);
        tab.click(&format!("Try: {about}")).await;
        let announced = "document.getElementById('changes').textContent";
        tab.wait(
            &format!("the result of {about:?}"),
            &format!("{announced}.startsWith({})", json!(format!("{about}: "))),
        )
        .await;
        let sent = served.state.last_changes();
        assert_eq!(sent, json!([remedy["change"]]), "{about}");
        let answer = served.suppose(&sent).await;
        let wanted = result(&answer);
        assert_eq!(tab.eval::<String>(announced).await, format!("{about}: {wanted}"));
        let list_item = format!("dom.action({}).closest('li')", json!(format!("Try: {about}")));
        let shown: String =
            tab.eval(&format!("dom.text({list_item}.querySelector('.result'))")).await;
        assert!(shown.starts_with(&wanted), "{wanted:?} does not begin {shown}");
        for pod in rows(&answer["placed"]) {
            let cells = format!(
                "+ placed {} {} {}",
                text(&pod["pod"]),
                text(&pod["podGroup"]),
                text(&pod["node"])
            );
            let cells_shown = shown.replace(char::is_whitespace, "");
            assert!(cells_shown.contains(&cells.replace(' ', "")), "{cells} is not in {shown}");
        }
        if about.contains("tolerate") {
            assert_eq!(rows(&answer["placed"]).len(), 2, "{answer}");
        }
    }
    tab.expect_quiet(&served.origin(), &["status of 429"]).await;
    tab.close().await;
}

pub(crate) async fn wait_when_there_are_too_many(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/jobs/ml/train")).await;
    tab.wait_for_view("Job ml/train").await;
    let n_answered = |code| served.state.n_answered("/whatifs", code);
    let button = "dom.action('Try: 1 more node like g1')";
    let is_disabled = format!("{button}.getAttribute('aria-disabled') === 'true'");
    served.state.refuse_next(2);
    tab.click("Try: 1 more node like g1").await;
    wait_until("the first refusal", || 0 < n_answered(429)).await;
    assert!(tab.eval::<bool>(&is_disabled).await, "it is still tried");
    tab.wait("the end of the trial", &format!("!({is_disabled})")).await;
    assert_eq!((n_answered(429), n_answered(200)), (2, 1));
    let shown = tab.texts(".result").await;
    assert!(matches!(&*shown, [shown] if shown.contains(" placed, ")), "{shown:?}");
    // Whoever is refused again and again is told.
    served.state.refuse_next(9);
    tab.click("Try: 1 more node like g1").await;
    tab.wait("the refusal", "dom.text(document.querySelector('.result')).includes('too many')")
        .await;
    assert_eq!((n_answered(429), n_answered(200)), (6, 1), "one and three repeats");
    tab.expect_quiet(&served.origin(), &["status of 429"]).await;
    tab.close().await;
}

pub(crate) async fn fill_in_the_form(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/whatif")).await;
    tab.wait_for_view("What if").await;
    tab.fill("Like node", "g1").await;
    tab.fill("Number", "2").await;
    tab.click("Add").await;
    tab.wait(
        "the first change",
        "dom.field('Changes as YAML or JSON, in order').value.includes('addNodes')",
    )
    .await;
    tab.eval::<Value>("dom.choose('Change', 'amount'), null").await;
    tab.wait("fields of an amount", "Boolean(dom.field('Amount'))").await;
    for (label, value) in [("Queue", "small"), ("Resource", "nvidia.com/gpu"), ("Amount", "8")] {
        tab.fill(label, value).await;
    }
    tab.click("Add").await;
    tab.wait(
        "the second change",
        "dom.field('Changes as YAML or JSON, in order').value.includes('setQueue')",
    )
    .await;
    tab.click("Evaluate").await;
    tab.wait("the difference", "dom.table('Placed with the changes only') !== null").await;
    let sent = served.state.last_changes();
    let wanted = json!([
        { "addNodes": { "like": "g1", "count": 2 } },
        { "setQueue": { "name": "small", "capability": { "nvidia.com/gpu": "8" } } },
    ]);
    assert_eq!(sent, wanted);
    let answer = served.suppose(&sent).await;
    assert_eq!(tab.texts("section strong").await, [result(&answer)]);
    let placed: Vec<Vec<String>> = rows(&answer["placed"])
        .iter()
        .map(|it| {
            row([
                &format!("+ placed {}", text(&it["pod"])),
                &text(&it["podGroup"]),
                &text(&it["node"]),
            ])
        })
        .collect();
    assert!(2 < placed.len(), "{answer}");
    assert_eq!(tab.table("Placed with the changes only").await, placed);
    let queues = tab.table("Queues").await;
    for queue in rows(&answer["queues"]) {
        let pair = &queue["allocated"]["nvidia.com/gpu"];
        let row = row([&text(&queue["queue"]), "nvidia.com/gpu", &text(&pair[0]), &text(&pair[1])]);
        assert!(pair.is_null() || queues.contains(&row), "{row:?} is not in {queues:?}");
    }
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}

pub(crate) async fn send_wrong_documents(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/whatif")).await;
    tab.wait_for_view("What if").await;
    let head = "apiVersion: answers.volcano.sh/v1\nkind: WhatIf\nspec:\n  changes:\n  - ";
    for change in ["addNode: {like: g1, count: 1}", "removeNodes: {names: [g9]}"] {
        let document = format!("{head}{change}\n");
        tab.fill("Changes as YAML or JSON, in order", &document).await;
        tab.click("Evaluate").await;
        let status = served.post_as("", "/whatifs", &document).await;
        let message = status["message"].as_str().unwrap();
        let (sentence, hint) = message.split_once("\nhint: ").unwrap_or((message, ""));
        let shown = format!("{} {sentence}", status["code"]);
        let shown = json!(shown.split_whitespace().collect::<Vec<_>>().join(" "));
        let problem = "dom.text(document.querySelector('.problem p'))";
        tab.wait(&format!("the problem {shown}"), &format!("{problem} === {shown}")).await;
        let hints = tab.texts(".problem p + p").await.concat();
        let wanted = if hint.is_empty() { String::new() } else { format!("Hint: {hint}") };
        assert_eq!(hints, wanted);
    }
    tab.expect_quiet(&served.origin(), &["status of 400"]).await;
    tab.close().await;
}
