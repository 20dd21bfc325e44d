//! What is stored at the start and over time, and the server as a process.

use std::sync::Arc;

use serde_json::{Value, json};
use vc_sim::serve::{
    Change, Expander, Key, NODES, ServeError, ServeOptions, ServedKind, Store, start,
};

use crate::bed::{Cluster, PODS_PATH, STRATEGIC, assert_refused, pod, version};

#[tokio::test]
async fn events_leases_and_large_nodes_are_stored() {
    let cluster = Cluster::start(0).await;
    let event = json!({
        "metadata": { "name": "web.1" }, "reason": "Evict", "type": "Warning",
        "involvedObject": { "kind": "Pod", "name": "web", "uid": "u" },
    });
    let path = "/api/v1/namespaces/default/events";
    cluster.create(path, &event).await;
    let patch = json!({ "count": 2 });
    assert_eq!(cluster.patch(&format!("{path}/web.1"), STRATEGIC, &patch).await.1["count"], 2);
    let of = |name: &str| {
        format!("{path}?fieldSelector=involvedObject.name%3D{name},involvedObject.kind%3DPod")
    };
    assert_eq!(cluster.names(&of("web")).await, ["web.1"]);
    assert_eq!(cluster.names(&of("other")).await, Vec::<String>::new());

    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let lease = json!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "a" } });
    let mut lease = cluster.create(path, &lease).await;
    lease["spec"]["holderIdentity"] = json!("b");
    assert_eq!(cluster.put(&format!("{path}/l"), &lease).await.0, 200);
    lease["spec"]["holderIdentity"] = json!("c");
    let answer = cluster.put(&format!("{path}/l"), &lease).await;
    assert_refused(&answer, 409, "Conflict", "modified");

    let labels: serde_json::Map<String, Value> =
        (0..10_000).map(|i| (format!("example.com/label-{i}"), json!("x"))).collect();
    let node = json!({ "metadata": { "name": "large", "labels": labels } });
    let node = cluster.create("/api/v1/nodes", &node).await;
    assert_eq!(node["metadata"]["labels"].as_object().unwrap().len(), 10_000);
    let select = "/api/v1/nodes?labelSelector=example.com/label-9999";
    assert_eq!(cluster.names(select).await, ["large"]);
}

struct Twins;

impl Expander for Twins {
    fn expand(&self, object: &Value) -> Vec<Value> {
        let name = object["metadata"]["name"].as_str().unwrap();
        let mut stranger = pod("stranger");
        stranger["kind"] = json!("Stranger");
        vec![pod(&format!("{name}-0")), pod(&format!("{name}-1")), stranger]
    }
}

fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": name, "namespace": "default" }, "spec": {},
    })
}

#[tokio::test]
async fn workloads_are_expanded_once() {
    let mut child = pod("has-pods-x");
    child["metadata"]["ownerReferences"] = json!([{ "kind": "Job", "uid": "u-1" }]);
    let mut with_pods = job("has-pods");
    with_pods["metadata"]["uid"] = json!("u-1");
    let objects = vec![child, with_pods, job("loaded")];
    let expander: Option<Arc<dyn Expander>> = Some(Arc::new(Twins));
    let cluster =
        Cluster::with(ServeOptions { objects, expander, ..ServeOptions::default() }).await;
    assert_eq!(cluster.names(PODS_PATH).await, ["has-pods-x", "loaded-0", "loaded-1"]);
    let path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";
    let made = cluster.create(path, &job("made")).await;
    let (_, first) = cluster.get(&format!("{PODS_PATH}/made-0")).await;
    let owner = &first["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("Job"), &made["metadata"]["uid"]));
    let (_, events) = cluster.get("/api/v1/namespaces/default/events").await;
    assert_eq!(events["items"][0]["reason"], "FailedCreate");
    assert_eq!(events["items"][0]["message"], "Error creating: kind is not served: Stranger");
    cluster.delete(&format!("{path}/made"), &Value::Null).await;
    assert_eq!(cluster.names(PODS_PATH).await, ["has-pods-x", "loaded-0", "loaded-1"]);
}

#[tokio::test]
async fn a_dump_keeps_what_its_objects_are() {
    let mut bound = pod("bound");
    bound["metadata"] = json!({
        "name": "bound", "namespace": "team", "uid": "u-7", "resourceVersion": "12345",
        "creationTimestamp": "2024-01-01T00:00:00Z",
    });
    bound["spec"]["nodeName"] = json!("node-0");
    bound["spec"]["priority"] = json!(9);
    bound["status"] = json!({ "phase": "Running" });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-0" } });
    let alien = json!({ "apiVersion": "v1", "kind": "Alien", "metadata": { "name": "x" } });
    let mut mistyped = pod("mistyped");
    mistyped["spec"] = json!("nothing");
    let objects = vec![bound, node, alien, mistyped];
    let cluster =
        Cluster::with(ServeOptions { nodes: 2, objects, ..ServeOptions::default() }).await;
    assert_eq!(
        cluster.server.rejected,
        [
            "Alien x: kind is not served: Alien of v1",
            "Pod mistyped: Pod cannot be read: spec: must be an object",
        ]
    );
    let (_, found) = cluster.get("/api/v1/namespaces/team/pods/bound").await;
    assert_eq!(found["metadata"]["uid"], "u-7");
    assert_eq!(found["metadata"]["creationTimestamp"], "2024-01-01T00:00:00Z");
    assert_ne!(version(&found), "12345");
    assert_eq!(
        (&found["spec"]["priority"], &found["status"]["phase"]),
        (&json!(9), &json!("Running"))
    );
    // A node of the dump wins over the simulated one of its name.
    let (_, node) = cluster.get("/api/v1/nodes/node-0").await;
    assert!(node.get("status").is_none());
    assert_eq!(cluster.names("/api/v1/nodes").await, ["node-0", "node-1"]);
}

#[tokio::test]
async fn starts_on_loopback_only_and_writes_a_kubeconfig() {
    let remote = ServeOptions { listen: "0.0.0.0:0".parse().unwrap(), ..ServeOptions::default() };
    let error = start(remote).await.err().unwrap();
    assert!(error.to_string().starts_with("not a loopback address: 0.0.0.0:0\nhint: "));
    let listen = "127.0.0.1:0".parse().unwrap();
    let broken = ServeOptions { listen, node_cpu: "many".into(), ..ServeOptions::default() };
    assert!(matches!(start(broken).await, Err(ServeError::NodeSize { field: "cpu", .. })));
    let path = std::env::temp_dir().join(format!("vcsim-kubeconfig-{}", std::process::id()));
    let cluster = Cluster::with(ServeOptions {
        write_kubeconfig: Some(path.clone()),
        ..ServeOptions::default()
    })
    .await;
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.contains(&format!("server: {}\n", cluster.server.url())));
    let taken = ServeOptions { listen: cluster.server.addr, ..ServeOptions::default() };
    assert!(matches!(start(taken).await, Err(ServeError::Listen { .. })));
    let nowhere = Some("/nowhere/kubeconfig".into());
    let lost = ServeOptions { listen, write_kubeconfig: nowhere, ..ServeOptions::default() };
    assert!(matches!(start(lost).await, Err(ServeError::Kubeconfig { .. })));
}

#[tokio::test]
async fn the_store_is_used_in_process() {
    let store = Arc::new(Store::new(None));
    let nodes = ServedKind::find("", "v1", "nodes").unwrap();
    assert_eq!(nodes, &NODES);
    let mut events = store.subscribe(nodes);
    let node = json!({ "metadata": { "name": "n" } });
    let made = store.create(nodes, &node).unwrap();
    assert_eq!((made.name(), made.namespace()), ("n", ""));
    assert_eq!(events.next().await.unwrap()[0].change, Change::Added);
    assert_eq!(store.list(nodes, None).objects.len(), 1);
    let key = Key::new("", "n");
    let same = store.update(nodes, &key, |_| Ok(())).unwrap();
    assert_eq!(same.revision, made.revision);
    store
        .update(nodes, &key, |node| {
            node["spec"]["unschedulable"] = json!(true);
            Ok(())
        })
        .unwrap();
    store.compact();
    assert_eq!(events.next().await.unwrap_err().code(), 410);
}
