//! The page as a file, and what the browser reports.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use vc_page::{report_answers, report_html};

use crate::VIEWS;
use crate::chromium::Chromium;
use crate::served::Served;
use crate::support::{CLUSTER, view};
use crate::tab::Tab;

pub(crate) async fn report_nothing(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("")).await;
    for &(hash, title) in VIEWS {
        tab.show(hash, title).await;
        tab.expect_quiet(&served.origin(), &[]).await;
    }
    let places =
        tab.requests().into_iter().map(|it| it.trim_start_matches(&served.origin()).to_owned());
    let folders: BTreeSet<String> =
        places.map(|it| it.split('/').next().unwrap().to_owned()).collect();
    assert!(folders.contains("ui") && folders.contains("apis"), "{folders:?}");
    // What is looked at is seen: a script and a picture that the policy forbids, errors of scripts.
    let breaches = "(() => { const script = document.createElement('script'); \
        script.textContent = 'window.isBroken = true'; document.body.append(script); \
        const picture = new Image(); picture.src = 'http://127.0.0.1:9/x.png'; \
        document.body.append(picture); \
        document.querySelector('h1').setAttribute('onclick', 'alert(1)'); \
        console.error('on the console'); \
        setTimeout(() => { throw new Error('not caught'); }); })()";
    tab.eval::<Value>(breaches).await;
    assert!(!tab.eval::<bool>("Boolean(window.isBroken)").await, "an inline script runs");
    for wanted in ["script-src", "img-src", "on the console", "not caught"] {
        tab.wait_for_problem(wanted).await;
    }
    tab.close().await;
}

pub(crate) async fn open_a_report_without_network(chromium: &Chromium) {
    let (engine, mut answers, timeline) = view(CLUSTER);
    let mut recorded = report_answers(&mut answers, &engine, &timeline);
    // As if the file had the first jobs alone.
    recorded["/runs"]["total"] = json!(7_000);
    let html = report_html(&recorded);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs::write(&file, html).unwrap();
    let tab = Tab::open(&chromium.browser).await;
    let offline =
        json!({ "offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
    tab.send("Network.emulateNetworkConditions", offline).await;
    let address = format!("file://{}", file.display());
    tab.goto(&address).await;
    tab.wait_for_view("Summary").await;
    let served = Served::open().await;
    for &(hash, title) in VIEWS.iter().filter(|(_, title)| *title != "What if") {
        tab.show(hash, title).await;
        let problems = tab.texts(".problem").await;
        assert!(problems.is_empty(), "{hash}: {problems:?}");
    }
    assert!(!tab.texts("nav a").await.contains(&"What if".to_owned()), "a file has no what-ifs");
    for (query, sentence) in
        [("", "7,000 jobs, the first 2 are listed."), ("&namespace=ml", "1 job.")]
    {
        tab.show(&format!("#/jobs?show=running{query}"), "Jobs that run").await;
        let shown = format!("document.querySelector('main').textContent.includes('{sentence}')");
        tab.wait(sentence, &shown).await;
    }
    tab.show("#/jobs/ml/train", "Job ml/train").await;
    let it = served.get("/namespaces/ml/explanations/train?when=true").await;
    let shown = tab.main_text().await;
    let verdict = it["verdict"]["text"].as_str().unwrap();
    assert!(shown.contains(verdict), "{verdict:?} is not in {shown}");
    let remedies = it["unblock"].as_array().unwrap();
    assert_eq!(tab.texts(".remedies > li").await.len(), remedies.len());
    assert!(!shown.contains("Try"), "{shown}");
    assert_eq!(tab.requests().iter().filter(|it| !it.starts_with("data:")).count(), 1);
    tab.expect_quiet(&address, &[]).await;
    tab.close().await;
}
