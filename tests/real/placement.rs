//! Gangs whose pods keep each other away: by host ports, over zones, one per host. What does not
//! fit waits with its reason and takes the place once it is free, so nothing stays promised.
//! Specification: plugins-nodes.md 4.3, 4.5, 4.8.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::{text, until};
use crate::audit::Asked;
use crate::cluster::Cluster;
use crate::objects::{gang, name, node_of, refusal};
use crate::process::Scheduler;

const ZONE: &str = "topology.kubernetes.io/zone";

/// Labels the nodes: two in zone a, the others in zones of their own.
async fn zones(cluster: &Cluster, zones: &[&str]) {
    for (index, zone) in zones.iter().enumerate() {
        let labels = json!({"metadata": {"labels": {ZONE: zone}}});
        cluster.api.merge(&format!("/api/v1/nodes/node-{index}"), &labels).await.unwrap();
    }
}

/// A gang, each of whose pods has these further fields in its `spec`.
async fn submit(cluster: &Cluster, gang_name: &str, n_pods: u32, fields: &Value) {
    for mut object in gang(cluster.namespace, gang_name, n_pods, "100m") {
        if object["kind"] == "Pod" {
            for (field, value) in fields.as_object().unwrap() {
                object["spec"][field] = value.clone();
            }
        }
        cluster.api.create(&object).await.unwrap();
    }
}

/// Cordons a node, and waits until the scheduler has seen that, too: what can run there alone waits.
async fn cordon(cluster: &Cluster, node: &str) {
    let change = json!({"spec": {"unschedulable": true}});
    cluster.api.merge(&format!("/api/v1/nodes/{node}"), &change).await.unwrap();
    let there = json!({"nodeSelector": {"kubernetes.io/hostname": node}});
    let mut n_probes = 0;
    until("the cordon is known", async || {
        n_probes += 1;
        let probe = format!("probe-{n_probes}");
        submit(cluster, &probe, 1, &there).await;
        let decided = |pod: &Value| !node_of(pod).is_empty() || refusal(pod).is_some();
        let pod = cluster.pod(&format!("{probe}-0"), decided).await;
        refusal(&pod).map(drop)
    })
    .await;
}

fn selected(gang_name: &str) -> Value {
    json!({"matchLabels": {"gang": gang_name}})
}

fn nodes_of(pods: &[Value]) -> Vec<String> {
    let mut nodes: Vec<String> = pods.iter().map(|pod| node_of(pod).to_owned()).collect();
    nodes.sort();
    nodes
}

/// No pod of the gang has a node; all of them, or some of them, say this.
async fn waits(cluster: &Cluster, gang_name: &str, why: &str) {
    until(&format!("{gang_name} says: {why}"), async || {
        let pods = cluster.pods(gang_name).await;
        assert!(pods.iter().all(|pod| node_of(pod).is_empty()));
        let reported = |pod: &Value| refusal(pod).is_some_and(|(_, text)| text.contains(why));
        pods.iter().any(reported).then_some(())
    })
    .await;
}

async fn delete(cluster: &Cluster, gang_name: &str) {
    for pod in cluster.pods(gang_name).await {
        let path = cluster.path(&format!("pods/{}?gracePeriodSeconds=0", name(&pod)));
        cluster.api.delete(&path).await.unwrap();
    }
}

/// What does not fit beside the first gang runs when that is gone: nothing else was in the way.
async fn takes_over(cluster: &Cluster, first: &str, second: &str, n_pods: usize) -> Vec<Value> {
    delete(cluster, first).await;
    let pods = cluster.running(second, n_pods).await;
    // Each once.
    let of_gang = |asked: &Asked| asked.is_binding() && asked.name.starts_with(second);
    cluster.audit.comes_to(n_pods, of_gang).await;
    assert_eq!(cluster.audit.count(|asked| asked.code == 403), 0);
    pods
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_with_a_host_port_gets_a_host_for_each_pod() {
    let cluster = Cluster::take("host-ports", 2).await;
    let _scheduler = Scheduler::start(&cluster).await;
    let container = json!({"name": "main", "image": "x",
        "resources": {"requests": {"cpu": "100m"}},
        "ports": [{"containerPort": 8080, "hostPort": 8080}]});
    let fields = json!({"containers": [container]});
    submit(&cluster, "first", 2, &fields).await;
    assert_eq!(nodes_of(&cluster.running("first", 2).await), ["node-0", "node-1"]);
    submit(&cluster, "second", 2, &fields).await;
    waits(&cluster, "second", "didn't have free ports for the requested pod ports").await;
    let pods = takes_over(&cluster, "first", "second", 2).await;
    assert_eq!(nodes_of(&pods), ["node-0", "node-1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_spreads_over_zones() {
    let cluster = Cluster::take("zones", 4).await;
    zones(&cluster, &["a", "a", "b", "c"]).await;
    let _scheduler = Scheduler::start(&cluster).await;
    let spread = |gang_name: &str| {
        json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selected(gang_name)}]})
    };
    submit(&cluster, "first", 3, &spread("first")).await;
    let nodes = nodes_of(&cluster.running("first", 3).await);
    assert!(["node-0", "node-1"].contains(&nodes[0].as_str()), "{nodes:?}");
    assert_eq!(nodes[1..], ["node-2", "node-3"]);
    // Zone c can take none any more: the second pod of a zone is one too many.
    cordon(&cluster, "node-3").await;
    let other = json!({"metadata": {"labels": {ZONE: "b"}}});
    submit(&cluster, "second", 3, &spread("second")).await;
    waits(&cluster, "second", "didn't match pod topology spread constraints").await;
    // Without zone c there are two zones, and room in both.
    cluster.api.merge("/api/v1/nodes/node-3", &other).await.unwrap();
    let nodes = nodes_of(&takes_over(&cluster, "first", "second", 3).await);
    let in_a = nodes.iter().filter(|node| ["node-0", "node-1"].contains(&node.as_str())).count();
    assert!((1..=2).contains(&in_a), "{nodes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_that_keeps_apart_gets_a_host_for_each_pod() {
    let cluster = Cluster::take("apart", 3).await;
    let _scheduler = Scheduler::start(&cluster).await;
    // The second gang keeps away from the pods of both.
    let apart = |gangs: &[&str]| {
        let rule = json!({"key": "gang", "operator": "In", "values": gangs});
        let term = json!({"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchExpressions": [rule]}});
        json!({"affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
    };
    submit(&cluster, "first", 2, &apart(&["first"])).await;
    let hosts: BTreeSet<String> =
        nodes_of(&cluster.running("first", 2).await).into_iter().collect();
    assert_eq!(hosts.len(), 2);
    submit(&cluster, "second", 3, &apart(&["first", "second"])).await;
    waits(&cluster, "second", "didn't match pod anti-affinity rules").await;
    let pods = takes_over(&cluster, "first", "second", 3).await;
    assert_eq!(nodes_of(&pods), ["node-0", "node-1", "node-2"]);
    for pod in &pods {
        assert_eq!(text(&pod["status"]["nominatedNodeName"]), "");
    }
}
