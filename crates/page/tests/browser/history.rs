//! Views of a cluster in which a job had to make room for another one.

use serde_json::Value;
use vc_conf::Config;
use vc_engine::{CycleTime, Effect, Engine, EngineOptions, KNOWN};
use vc_model::ClusterEvent;
use vc_model::fixture::{START_MICROS, events_of};
use vc_page::{AnswerView, StateSource, Timeline, TimelineStep};

use crate::chromium::Chromium;
use crate::expected::{clock, counted, joined, row, rows, text};
use crate::served::{Served, View};
use crate::tab::Tab;

/// A configuration in which jobs make room for more important ones of their queue.
pub(crate) const CONF: &str = "actions: \"allocate, preempt\"\ntiers:\n- plugins:\n  \
    - name: priority\n  - name: gang\n- plugins:\n  - name: predicates\n";
/// What each cycle hears.
const CYCLES: &[&str] = &[
    "node n1 cpu=4\nqueue default\nqueue other\njob ml/low queue=default min=1 priority=1 running
     task a cpu=2 @n1 running x2",
    "job ml/high queue=default min=1 priority=9\n task a cpu=2",
    "job ml/later queue=other min=1 priority=1\n task a cpu=4",
];

/// Returns the answers after so many cycles, one a minute. `events` gives what a cycle hears. It
/// gets the minute, from 1, and what the cycle before has decided.
pub(crate) fn view_after(
    conf: &str,
    n_minutes: usize,
    events: impl Fn(usize, &[Effect]) -> Vec<ClusterEvent>,
) -> View {
    let config: Config = vc_conf::parse("test.conf", conf, &KNOWN).unwrap().config;
    let (mut engine, _warnings) = Engine::new(EngineOptions::default(), &config);
    engine.explain(true);
    let (mut timeline, mut view) = (Timeline::default(), None);
    let mut now_micros = START_MICROS;
    let mut decided: Vec<Effect> = Vec::new();
    for minute in 1..=n_minutes {
        now_micros += 60_000_000;
        let heard = events(minute, &decided);
        let n_events = heard.len();
        let (effects, report) = engine.cycle(heard, CycleTime { unix_micros: now_micros });
        timeline.record(&TimelineStep {
            cluster: engine.cluster(),
            effects: &effects,
            report: Some(&report),
            cycle: engine.n_cycles(),
            now_micros,
            took_micros: 7,
            n_events,
        });
        let source = StateSource::Daemon { behind_millis: 7 };
        view = Some(AnswerView::new(&engine, &report, source));
        decided = effects;
    }
    (engine, view.unwrap(), timeline)
}

/// Returns the cells that say for which job and with whose consent a pod was evicted.
fn grant(it: &Value) -> Vec<String> {
    row([&text(&it["action"]), &text(&it["for"]), &granted(it)])
}

fn granted(it: &Value) -> String {
    let plugins = joined(&it["plugins"], ", ");
    format!("{plugins} (tier {}), each {} needed", it["tier"], text(&it["minimal"]))
}

pub(crate) async fn show_evictions_with_their_certificates(chromium: &Chromium) {
    let view = view_after(CONF, CYCLES.len(), |minute, _| events_of(CYCLES[minute - 1]));
    let served = Served::open_view(view).await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/timeline")).await;
    tab.wait_for_view("Timeline").await;
    let timeline = served.get("/timeline").await;
    let evictions = rows(&timeline["evictions"]);
    assert_eq!(evictions.len(), 1, "{timeline}");
    let expected = evictions.iter().map(|it| {
        let start = ["pod", "time", "podGroup", "queue"].map(|name| match name {
            "time" => clock(&it[name]),
            name => text(&it[name]),
        });
        [start.to_vec(), grant(it)].concat()
    });
    assert_eq!(tab.table("Evictions").await, expected.collect::<Vec<_>>());
    let marks = tab.texts(".gantt > svg path.eviction + title").await;
    let it = &evictions[0];
    assert_eq!((&it["tier"], &it["minimal"]), (&1.into(), &"pod".into()));
    let mark = [&text(&it["pod"]), &text(&it["action"]), &clock(&it["time"]), &granted(it)];
    assert_eq!(marks, [mark.map(String::as_str).join(", ")]);
    let shown = tab.main_text().await;
    let count = counted(rows(&timeline["jobs"]).len() as u64, "job");
    assert!(shown.contains(&format!(" UTC: {count}, 1 eviction.")), "{shown}");
    check_victim(&tab, &served, it["pod"].as_str().unwrap()).await;
    check_cycles(&tab, &served).await;
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}

/// The job of the pod that was evicted says so.
async fn check_victim(tab: &Tab, served: &Served, pod: &str) {
    let (namespace, _) = pod.split_once('/').unwrap();
    let it = served.get(&format!("/namespaces/{namespace}/explanations/low?when=true")).await;
    tab.show("#/jobs/ml/low", "Job ml/low").await;
    let expected: Vec<Vec<String>> = rows(&it["evictions"])
        .iter()
        .map(|it| [row([&text(&it["pod"]), &text(&it["podGroup"])]), grant(it)].concat())
        .collect();
    assert_eq!(expected.len(), 1, "{it}");
    assert_eq!(expected[0][0], pod);
    assert_eq!(tab.table("Pods that were evicted").await, expected);
}

async fn check_cycles(tab: &Tab, served: &Served) {
    tab.show("#/summary", "Summary").await;
    let cycles = served.get("/cycles?last=20").await;
    let counts = |it: &Value| ["cycle", "evictions", "waiting"].map(|name| text(&it[name]));
    let expected: Vec<_> = rows(&cycles["items"]).iter().map(counts).collect();
    assert_eq!(expected.len(), CYCLES.len(), "{cycles}");
    assert!(expected.iter().any(|it| it[1] == "1"), "{cycles}");
    let shown = tab.table("Last cycles").await;
    let shown: Vec<_> = shown.iter().map(|it| [0, 5, 6].map(|column| it[column].clone())).collect();
    assert_eq!(shown, expected);
}
