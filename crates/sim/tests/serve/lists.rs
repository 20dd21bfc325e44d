//! Lists, pages, tables and watches.

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::bed::{
    Cluster, GROUPS_PATH, MERGE, PODS_PATH, QUEUES_PATH, assert_refused, binding, names, pod,
    version,
};

#[tokio::test]
async fn lists_select() {
    let cluster = Cluster::start(2).await;
    for name in ["a", "b", "c"] {
        cluster.create(PODS_PATH, &pod(name)).await;
    }
    cluster.create("/api/v1/namespaces/kube-system/pods", &pod("a")).await;
    assert_eq!(cluster.bind("b", &binding("node-1")).await.0, 201);
    assert_eq!(cluster.names("/api/v1/pods").await, ["a", "b", "c", "a"]);
    let cases = [
        ("labelSelector=app%20in%20(a,c)", vec!["a", "c"]),
        ("labelSelector=app!%3Da,app", vec!["b", "c"]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        ("fieldSelector=metadata.name%3Dnone", vec![]),
        ("fieldSelector=spec.nodeName%3Dnode-1", vec!["b"]),
        ("fieldSelector=spec.nodeName%3D,metadata.name!%3Da", vec!["c"]),
        ("fieldSelector=spec.schedulerName%3Dvolcano", vec![]),
        ("resourceVersion=0&limit=0", vec!["a", "b", "c"]),
    ];
    for (query, expected) in cases {
        assert_eq!(cluster.names(&format!("{PODS_PATH}?{query}")).await, expected, "{query}");
    }
    let everywhere = "/api/v1/pods?fieldSelector=metadata.name%3Da,metadata.namespace%3Ddefault";
    assert_eq!(cluster.names(everywhere).await, ["a"]);
    assert_eq!(cluster.names("/api/v1/nodes").await, ["node-0", "node-1"]);
    for query in ["fieldSelector=spec.color%3Dred", "labelSelector=a%20b", "limit=many"] {
        let answer = cluster.get(&format!("{PODS_PATH}?{query}")).await;
        assert_refused(&answer, 400, "BadRequest", "");
    }
}

#[tokio::test]
async fn lists_in_pages() {
    let cluster = Cluster::start(0).await;
    for name in ["a", "b", "c", "d", "e"] {
        cluster.create(PODS_PATH, &pod(name)).await;
    }
    let (_, first) = cluster.get("/api/v1/pods?limit=2").await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["kind"], "PodList");
    let next = first["metadata"]["continue"].as_str().unwrap().to_owned();
    // Pages show what there was when the list began.
    cluster.create("/api/v1/namespaces/kube-public/pods", &pod("late")).await;
    cluster.delete(&format!("{PODS_PATH}/c"), &json!({"gracePeriodSeconds": 0})).await;
    let (_, second) = cluster.get(&format!("/api/v1/pods?limit=2&continue={next}")).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(version(&second), version(&first));
    let last = second["metadata"]["continue"].as_str().unwrap();
    let (_, third) = cluster.get(&format!("/api/v1/pods?limit=2&continue={last}")).await;
    assert_eq!(names(&third), ["e"]);
    assert!(third["metadata"].get("continue").is_none());
    let old =
        format!("/api/v1/pods?resourceVersion={}&resourceVersionMatch=Exact", version(&first));
    assert_refused(&cluster.get(&old).await, 410, "Expired", "too old");
    cluster.server.store.compact();
    let answer = cluster.get(&format!("/api/v1/pods?limit=2&continue={next}")).await;
    assert_refused(&answer, 410, "Expired", "too old resource version");
    let answer = cluster.get("/api/v1/pods?continue=nonsense").await;
    assert_refused(&answer, 400, "BadRequest", "continue key is not valid");
}

#[tokio::test]
async fn watch_follows_from_a_version() {
    let cluster = Cluster::start(0).await;
    let first = cluster.create(PODS_PATH, &pod("a")).await;
    let path = format!("{PODS_PATH}?watch=true&resourceVersion={}", version(&first));
    let mut watch = cluster.watch(&path).await;
    cluster.create("/api/v1/namespaces/kube-system/pods", &pod("elsewhere")).await;
    cluster.create(PODS_PATH, &pod("b")).await;
    let patch = json!({ "metadata": { "labels": { "x": "y" } } });
    cluster.patch(&format!("{PODS_PATH}/a"), MERGE, &patch).await;
    cluster.delete(&format!("{PODS_PATH}/b"), &Value::Null).await;
    assert_eq!(watch.label().await, "ADDED b");
    assert_eq!(watch.label().await, "MODIFIED a");
    let deleted = watch.next().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    let list = cluster.get(PODS_PATH).await.1;
    assert_eq!(version(&deleted["object"]), version(&list));

    // Without a version everything that exists comes first.
    let mut watch = cluster.watch(&format!("{PODS_PATH}?watch=1&timeoutSeconds=1")).await;
    assert_eq!(watch.label().await, "ADDED a");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn watch_with_selectors_sees_objects_come_and_go() {
    let cluster = Cluster::start(1).await;
    let list = cluster.get(PODS_PATH).await.1;
    let since = version(&list);
    let unbound =
        format!("{PODS_PATH}?watch=true&resourceVersion={since}&fieldSelector=spec.nodeName%3D");
    let labelled = format!("{PODS_PATH}?watch=true&resourceVersion={since}&labelSelector=x");
    let (mut unbound, mut labelled) =
        (cluster.watch(&unbound).await, cluster.watch(&labelled).await);
    cluster.create(PODS_PATH, &pod("a")).await;
    assert_eq!(unbound.label().await, "ADDED a");
    for labels in [json!({ "x": "1" }), json!({ "x": "2" }), json!({ "x": null })] {
        let patch = json!({ "metadata": { "labels": labels } });
        cluster.patch(&format!("{PODS_PATH}/a"), MERGE, &patch).await;
        assert_eq!(unbound.label().await, "MODIFIED a");
    }
    cluster.bind("a", &binding("node-0")).await;
    let gone = unbound.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert!(gone["object"]["spec"].get("nodeName").is_none());
    for expected in ["ADDED a", "MODIFIED a", "DELETED a"] {
        assert_eq!(labelled.label().await, expected);
    }
}

#[tokio::test]
async fn watch_as_a_streaming_list() {
    let cluster = Cluster::start(0).await;
    cluster.create(PODS_PATH, &pod("a")).await;
    cluster.create(PODS_PATH, &pod("b")).await;
    let query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersion=0";
    let answer = cluster.get(&format!("/api/v1/pods?{query}")).await;
    assert_refused(&answer, 422, "Invalid", "resourceVersionMatch");
    let query = format!("{query}&resourceVersionMatch=NotOlderThan");
    let mut watch = cluster.watch(&format!("/api/v1/pods?{query}")).await;
    assert_eq!(watch.label().await, "ADDED a");
    assert_eq!(watch.label().await, "ADDED b");
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    let object = &bookmark["object"];
    assert_eq!(object["kind"], "Pod");
    assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(version(object), version(&cluster.get("/api/v1/pods").await.1));
    cluster.create(PODS_PATH, &pod("c")).await;
    assert_eq!(watch.label().await, "ADDED c");
}

#[tokio::test]
async fn watch_is_told_410_when_the_log_does_not_reach_back() {
    let cluster = Cluster::start(0).await;
    let first = cluster.create(PODS_PATH, &pod("a")).await;
    cluster.create(PODS_PATH, &pod("b")).await;
    cluster.server.store.compact();
    // Versions of the future come from an earlier server on this address.
    for since in [version(&first), "999999"] {
        let path = format!("{PODS_PATH}?watch=true&resourceVersion={since}");
        let mut watch = cluster.watch(&path).await;
        let error = watch.next().await.unwrap();
        assert_eq!(error["type"], "ERROR");
        assert_eq!(error["object"]["code"], 410);
        assert_eq!(error["object"]["reason"], "Expired");
        assert_eq!(watch.next().await, None);
    }
}

#[tokio::test]
async fn tables_for_kubectl() {
    let cluster = Cluster::start(1).await;
    cluster.create(PODS_PATH, &pod("web")).await;
    let accept = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let (code, table) = cluster.send(&format!("GET {PODS_PATH}\n{accept}"), &Value::Null).await;
    assert_eq!((code, &table["kind"]), (200, &json!("Table")));
    let titles: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(titles[..5], ["Name", "Ready", "Status", "Restarts", "Age"]);
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..4], [json!("web"), json!("0/1"), json!("Pending"), json!("0")]);
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let (_, one) = cluster
        .send(&format!("GET /api/v1/nodes/node-0?includeObject=Object\n{accept}"), &Value::Null)
        .await;
    assert_eq!(one["rows"][0]["cells"][1], "Ready");
    assert_eq!(one["rows"][0]["object"]["kind"], "Node");
    for path in [QUEUES_PATH, GROUPS_PATH, "/api/v1/events", "/api/v1/configmaps"] {
        let (_, table) = cluster.send(&format!("GET {path}\n{accept}"), &Value::Null).await;
        assert_eq!(table["rows"], json!([]));
    }
    let mut watch = cluster.watch(&format!("{PODS_PATH}?watch=true\n{accept}")).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["object"]["kind"], "Table");
    assert_eq!(event["object"]["rows"][0]["cells"][0], "web");
}

#[tokio::test]
async fn stop_ends_watches() {
    let cluster = Cluster::start(0).await;
    let mut watch = cluster.watch("/api/v1/pods?watch=true&resourceVersion=1").await;
    let addr = cluster.server.addr;
    cluster.server.stop().await;
    assert_eq!(watch.next().await, None);
    assert!(TcpStream::connect(addr).await.is_err());
}
