//! What views of a large cluster cost the browser, with the limits of ANS-98. Runs only with `BROWSER_PART=large`, and
//! prints a row for each view: time to the first view, and time of the page's thread for it and for an update.
//! Figures: docs/performance.md.

use std::fmt::Write as _;
use std::io::{Write, stderr};
use std::time::Instant;

use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::served::Served;
use crate::tab::{Tab, wait_until};

const N_NODES: usize = 10_000;
const N_JOBS: usize = 10_000;
/// Rows of all lists of a view that are in the document at most.
const MOST_ROWS: usize = 160;
/// Milliseconds until the first view (ANS-98).
const FIRST_VIEW_MILLIS: u128 = 1_000;
/// Milliseconds of scripts in an update (ANS-98).
const UPDATE_MILLIS: f64 = 100.0;

/// Views, with their titles and the route that each asks.
const VIEWS: [(&str, &str, &str); 5] = [
    ("#/summary", "Summary", "/summary"),
    ("#/queues", "Queues", "/queues"),
    ("#/queues/research", "Queue research", "/queues/{name}/line"),
    ("#/jobs", "Jobs that wait", "/explanations"),
    ("#/nodes", "Nodes", "/nodes"),
];

fn cluster() -> String {
    let mut text = "queue research\n".to_owned();
    for at in 0..N_NODES {
        let (busy, zone) = (at % 9, at % 10);
        writeln!(text, "node n{at:05} cpu=64 gpu=8 zone=z{zone}").unwrap();
        writeln!(text, "job ml/r{at:05} queue=research running").unwrap();
        writeln!(text, " task a cpu=8 gpu={busy} @n{at:05} running").unwrap();
    }
    for at in 0..N_JOBS {
        writeln!(text, "job ml/w{at:05} queue=research min=2\n task a cpu=80 x2").unwrap();
    }
    text
}

/// Milliseconds of the page's thread so far: in scripts, and in all.
async fn busy(tab: &Tab) -> (f64, f64) {
    let found = tab.send("Performance.getMetrics", json!({})).await;
    let of = |name: &str| {
        let metrics = found["metrics"].as_array().unwrap();
        let found = metrics.iter().find(|it| it["name"] == name);
        1e3 * found.and_then(|it| it["value"].as_f64()).unwrap()
    };
    (of("ScriptDuration"), of("TaskDuration"))
}

const TWO_FRAMES: &str = "new Promise((done) => requestAnimationFrame(() => \
    requestAnimationFrame(() => done(null))))";

pub(crate) async fn measure_views(chromium: &Chromium) {
    let served = Served::open_cluster(&cluster()).await;
    served.state.explain_quickly();
    let tab = Tab::open(&chromium.browser).await;
    tab.send("Performance.enable", json!({})).await;
    for (hash, title, route) in VIEWS {
        // The answer is made before: a test build takes a hundred times as long for it as the program.
        tab.goto("about:blank").await;
        tab.goto(&served.page(hash)).await;
        tab.wait_for_view(title).await;
        tab.goto("about:blank").await;
        let (before, begin) = (busy(&tab).await, Instant::now());
        tab.goto(&served.page(hash)).await;
        tab.wait_for_view(title).await;
        tab.eval::<Value>(TWO_FRAMES).await;
        let (first, wall) = (busy(&tab).await, begin.elapsed().as_millis());
        let n_rows: usize = tab.eval("document.querySelectorAll('tbody tr').length").await;
        assert!(n_rows <= MOST_ROWS, "{hash}: {n_rows} rows are in the document");
        let answered = || served.state.n_answered(route, 200);
        let n_answered = answered();
        let before_update = busy(&tab).await;
        served.state.change();
        wait_until("an update", || n_answered < answered()).await;
        // Further answers of the same update.
        tab.eval::<Value>(TWO_FRAMES).await;
        tab.eval::<Value>(TWO_FRAMES).await;
        let update = busy(&tab).await;
        assert!(wall <= FIRST_VIEW_MILLIS, "{hash}: the first view takes {wall} ms");
        let scripts = update.0 - before_update.0;
        assert!(scripts <= UPDATE_MILLIS, "{hash}: scripts of an update take {scripts} ms");
        let line = format!(
            "{hash}: first view {wall} ms, of which scripts {:.0} ms and the thread {:.0} ms; update: scripts {:.0} ms, \
             thread {:.0} ms; {n_rows} rows\n",
            first.0 - before.0,
            first.1 - before.1,
            scripts,
            update.1 - before_update.1,
        );
        stderr().write_all(line.as_bytes()).unwrap();
    }
    tab.close().await;
}
