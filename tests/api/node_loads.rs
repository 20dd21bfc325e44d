//! The whole process with a load source: a loaded cluster takes no pod, a reload changes the source, and
//! a source that never answers holds nothing up. Specification: plugins-nodes.md 12, core.md 2.5.

use axum::Router;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use vc_sim::serve::NODES;

use crate::cluster::{Cluster, condition, gang, no_fault, poll};
use crate::reload::{FILE, Mounted};

fn conf(source: &str) -> String {
    format!(
        "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  \
         - name: usage\nmetrics: {{{source}}}\n"
    )
}

/// A Prometheus that gives these nodes so many percent. Answers its address.
async fn monitoring(nodes: &[String], percent: u32) -> String {
    let element = |node: &String| json!({"metric": {"instance": format!("{node}:9100")}, "value": [0, percent.to_string()]});
    let result: Vec<Value> = nodes.iter().map(element).collect();
    let answer = json!({"status": "success", "data": {"resultType": "vector", "result": result}});
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().fallback(move || std::future::ready(answer.to_string()));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

/// Waits until a line of the metrics begins so.
async fn measured(cluster: &Cluster, line: &str) {
    let has_line = async || {
        let text = cluster.replica.meter.metrics.encode();
        text.lines().any(|other| other.starts_with(line)).then_some(())
    };
    poll(line, has_line).await;
}

const READ: &str = "volcano_node_load_nodes{source=\"prometheus\",state=\"read\"} 2";

#[tokio::test]
async fn nodes_109_a_reload_changes_the_source_and_a_silent_one_holds_nothing_up() {
    let mounted = Mounted::new(&conf(""));
    let path = format!("--scheduler-conf={}", mounted.0.join(FILE).display());
    let cluster = Cluster::start(Vec::new(), &[&path], no_fault).await;
    let nodes = cluster.server.store.list(&NODES, None).objects;
    let names: Vec<String> = { nodes.iter() }
        .map(|node| node.value["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    let (full, idle) = (monitoring(&names, 99).await, monitoring(&names, 5).await);
    let source = |address: &str| conf(&format!("type: prometheus, address: \"{address}\""));
    mounted.write("..v2", &source(&full));
    measured(&cluster, READ).await;
    cluster.create(gang("first", 1, "1")).await;
    let waits = |pod: &Value| {
        let found = condition(pod, "PodScheduled").and_then(|found| found["message"].as_str());
        found.is_some_and(|text| text.contains("the CPU load of the node exceeds the upper limit."))
    };
    cluster.until(&vc_sim::serve::PODS, waits).await;
    mounted.write("..v3", &source(&idle));
    cluster.bound("first-0").await;
    // This one accepts connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    mounted.write("..v4", &source(&format!("http://{}", silent.local_addr().unwrap())));
    let _asked = silent.accept().await.unwrap();
    cluster.create(gang("second", 1, "1")).await;
    cluster.bound("second-0").await;
    mounted.write("..v5", &source("http://127.0.0.1:1"));
    measured(
        &cluster,
        "volcano_node_load_failures_total{cause=\"connection\",source=\"prometheus\"}",
    )
    .await;
    cluster.create(gang("third", 1, "1")).await;
    cluster.bound("third-0").await;
    assert!(!cluster.replica.meter.metrics.encode().contains("volcano_node_load_nodes{"));
    cluster.stop().await;
}
