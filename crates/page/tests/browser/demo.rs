//! The cluster of `vcsim demo`: every view, and why `giant` waits for ever.

use std::sync::Arc;

use serde_json::Value;
use vc_objects::input::Input;

use crate::chromium::Chromium;
use crate::job::check_job;
use crate::served::Served;
use crate::tab::Tab;
use crate::views::{check_summary, wait_for_jobs};

/// The manifests of the demo.
const MANIFESTS: [&str; 5] = [
    include_str!("../../../../config/demo/elastic.yaml"),
    include_str!("../../../../config/demo/gangs.yaml"),
    include_str!("../../../../config/demo/never-fits.yaml"),
    include_str!("../../../../config/demo/queues.yaml"),
    include_str!("../../../../config/demo/waits-for-room.yaml"),
];

/// Nodes of the demo, each of 32 cpu and 128 GiB.
const N_NODES: usize = 12;

/// Every view of the cluster, and its title.
const VIEWS: [(&str, &str); 8] = [
    ("#/queues", "Queues"),
    ("#/queues/research", "Queue research"),
    ("#/queues/product", "Queue product"),
    ("#/nodes", "Nodes"),
    ("#/nodes/node-0", "Node node-0"),
    ("#/timeline", "Timeline"),
    ("#/whatif", "What if"),
    ("#/jobs", "Jobs that wait"),
];

/// The cluster as text.
fn cluster() -> String {
    let mut input = Input::default();
    let file: Arc<str> = "demo".into();
    MANIFESTS.iter().for_each(|text| input.add_text(&file, text));
    let mut text: String =
        (0..N_NODES).map(|at| format!("node node-{at} cpu=32 memory=128Gi\n")).collect();
    for object in &input.objects {
        text.push_str(&lines(&object.value));
    }
    text
}

/// A queue or job of the manifests as lines of text.
fn lines(object: &Value) -> String {
    let (name, spec) = (object["metadata"]["name"].as_str().unwrap(), &object["spec"]);
    match object["kind"].as_str() {
        Some("Queue") => format!("queue {name} weight={}\n", spec["weight"]),
        Some("Job") => {
            let queue = spec["queue"].as_str().unwrap();
            let tasks = spec["tasks"].as_array().unwrap().iter().map(|task| {
                let requests = &task["template"]["spec"]["containers"][0]["resources"]["requests"];
                let amount = |name: &str| requests[name].as_str().unwrap();
                let (cpu, memory) = (amount("cpu"), amount("memory"));
                let (name, count) = (task["name"].as_str().unwrap(), &task["replicas"]);
                format!(" task {name} cpu={cpu} memory={memory} x{count}\n")
            });
            let min = &spec["minAvailable"];
            format!("job {name} queue={queue} min={min}\n{}", tasks.collect::<String>())
        }
        kind => panic!("the demo has a {kind:?} now"),
    }
}

pub(crate) async fn show_its_cluster(chromium: &Chromium) {
    let served = Served::open_cluster(&cluster()).await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("")).await;
    check_summary(&tab, &served).await;
    for (hash, title) in VIEWS {
        tab.show(hash, title).await;
    }
    let jobs = wait_for_jobs(&tab, &served, "/explanations").await;
    assert!(jobs.iter().any(|cells| cells[0] == "default/giant"), "{jobs:?}");
    tab.show("#/jobs/default/giant", "Job default/giant").await;
    let why = served.get("/namespaces/default/explanations/giant?when=true").await;
    assert_eq!(why["verdict"]["code"], "NeverFits", "{why}");
    check_job(&tab, &why).await;
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}
