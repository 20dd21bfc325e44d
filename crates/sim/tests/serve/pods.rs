//! Bindings, simulated kubelets, evictions and deletions.

use std::time::Duration;

use serde_json::{Value, json};
use vc_sim::serve::{Change, DeleteOptions, Key, PODS, RUN_SECONDS, ServeOptions, start};

use crate::bed::{
    Cluster, GROUPS_PATH, MERGE, PODS_PATH, assert_refused, binding, names, pod, pod_group,
};

#[tokio::test]
async fn binding_happens_once() {
    let cluster = Cluster::start(1).await;
    let made = cluster.create(PODS_PATH, &pod("web")).await;
    let mut other = binding("node-0");
    other["metadata"] = json!({ "name": "web", "uid": "other" });
    assert_refused(&cluster.bind("web", &other).await, 409, "Conflict", "UID");
    let mut right = binding("node-0");
    right["metadata"] =
        json!({ "name": "web", "uid": made["metadata"]["uid"], "annotations": { "a": "b" } });
    let (code, status) = cluster.bind("web", &right).await;
    assert_eq!((code, &status["status"]), (201, &json!("Success")));
    let (_, bound) = cluster.get(&format!("{PODS_PATH}/web")).await;
    assert_eq!(bound["spec"]["nodeName"], "node-0");
    assert_eq!(bound["metadata"]["annotations"]["a"], "b");
    let conditions = bound["status"]["conditions"].as_array().unwrap();
    let scheduled = conditions.iter().find(|c| c["type"] == "PodScheduled").unwrap();
    assert_eq!(scheduled["status"], "True");
    let again = cluster.bind("web", &right).await;
    assert_refused(&again, 409, "Conflict", "already assigned to node \"node-0\"");
    let missing = cluster.bind("missing", &binding("node-0")).await;
    assert_refused(&missing, 404, "NotFound", "pods \"missing\" not found");
    let aimless = cluster.bind("web", &json!({ "metadata": {} })).await;
    assert_refused(&aimless, 400, "BadRequest", "target.name");
    let mut misnamed = binding("node-0");
    misnamed["metadata"] = json!({ "name": "other" });
    assert_refused(&cluster.bind("web", &misnamed).await, 400, "BadRequest", "URL");

    cluster.create(PODS_PATH, &pod("second")).await;
    let mut legacy = binding("node-0");
    legacy["metadata"] = json!({ "name": "second" });
    let (code, _) = cluster.post("/api/v1/namespaces/default/bindings", &legacy).await;
    assert_eq!(code, 201);
    let answer = cluster.get("/api/v1/namespaces/default/bindings").await;
    assert_refused(&answer, 405, "MethodNotAllowed", "");
}

#[tokio::test]
async fn pods_run_and_end_with_grace() {
    let cluster = Cluster::start(1).await;
    cluster.create(PODS_PATH, &pod("web")).await;
    let mut watch = cluster.watch(&format!("{PODS_PATH}?watch=true")).await;
    cluster.bind("web", &binding("node-0")).await;
    let running = watch.until("MODIFIED", |pod| pod["status"]["phase"] == "Running").await;
    let status = &running["status"];
    assert!(status["podIP"].is_string() && status["startTime"].is_string());
    assert_eq!(status["containerStatuses"][0]["ready"], true);
    let conditions = status["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"));

    let path = format!("{PODS_PATH}/web");
    let wrong = json!({ "preconditions": { "uid": "other" } });
    assert_refused(&cluster.delete(&path, &wrong).await, 409, "Conflict", "UID");
    let right = json!({ "preconditions": { "uid": running["metadata"]["uid"] } });
    let (code, marked) = cluster.delete(&path, &right).await;
    assert_eq!(code, 200);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    watch.until("DELETED", |pod| pod["metadata"]["name"] == "web").await;
    assert_refused(&cluster.get(&path).await, 404, "NotFound", "");
    assert_refused(&cluster.delete(&path, &Value::Null).await, 404, "NotFound", "");

    // Not bound, or without grace: gone at once.
    cluster.create(PODS_PATH, &pod("web")).await;
    assert_eq!(cluster.delete(&path, &Value::Null).await.1["kind"], "Pod");
    assert_eq!(cluster.get(&path).await.0, 404);
    cluster.create(PODS_PATH, &pod("web")).await;
    cluster.bind("web", &binding("node-0")).await;
    cluster.delete(&format!("{path}?gracePeriodSeconds=0"), &Value::Null).await;
    assert_eq!(cluster.get(&path).await.0, 404);
    // A node that nobody simulates runs nothing.
    cluster.create(PODS_PATH, &pod("lost")).await;
    cluster.bind("lost", &binding("nowhere")).await;
    let last = cluster.create(PODS_PATH, &pod("last")).await;
    cluster.bind("last", &binding("node-0")).await;
    let uid = &last["metadata"]["uid"];
    let is_last =
        |pod: &Value| pod["metadata"]["uid"] == *uid && pod["status"]["phase"] == "Running";
    watch.until("MODIFIED", is_last).await;
    let (_, lost) = cluster.get(&format!("{PODS_PATH}/lost")).await;
    assert_eq!(lost["status"]["phase"], "Pending");
}

#[tokio::test]
async fn eviction_and_log() {
    let cluster = Cluster::start(1).await;
    cluster.create(PODS_PATH, &pod("web")).await;
    let path = format!("{PODS_PATH}/web");
    let log = cluster.raw(&format!("GET {path}/log"), "").await;
    assert_eq!(log, (200, String::new()));
    assert_eq!(cluster.raw(&format!("GET {PODS_PATH}/none/log"), "").await.0, 404);
    let eviction = json!({ "deleteOptions": { "preconditions": { "uid": "other" } } });
    let answer = cluster.post(&format!("{path}/eviction"), &eviction).await;
    assert_refused(&answer, 409, "Conflict", "UID");
    assert_eq!(cluster.post(&format!("{path}/eviction"), &json!({})).await.0, 201);
    assert_eq!(cluster.get(&path).await.0, 404);
    for (method, path) in [("PUT", "/eviction"), ("GET", "/binding"), ("DELETE", "/status")] {
        cluster.create(PODS_PATH, &pod("a")).await;
        let head = format!("{method} {PODS_PATH}/a{path}");
        assert_refused(&cluster.send(&head, &Value::Null).await, 405, "MethodNotAllowed", "");
        cluster.delete(&format!("{PODS_PATH}/a"), &Value::Null).await;
    }
    assert_eq!(cluster.get(&format!("{PODS_PATH}/a/exec")).await.0, 404);
}

#[tokio::test]
async fn deletes_cascade() {
    let cluster = Cluster::start(0).await;
    let group = cluster.create(GROUPS_PATH, &pod_group("owner")).await;
    let owned = |name: &str| {
        let mut pod = pod(name);
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "name": "owner",
            "uid": group["metadata"]["uid"],
        }]);
        pod
    };
    cluster.create(PODS_PATH, &owned("a")).await;
    cluster.create(PODS_PATH, &pod("b")).await;
    let (code, status) = cluster.delete(&format!("{GROUPS_PATH}/owner"), &Value::Null).await;
    assert_eq!((code, &status["status"]), (200, &json!("Success")));
    assert_eq!(cluster.names(PODS_PATH).await, ["b"]);

    let group = cluster.create(GROUPS_PATH, &pod_group("owner")).await;
    let mut kept = owned("kept");
    kept["metadata"]["ownerReferences"][0]["uid"] = group["metadata"]["uid"].clone();
    cluster.create(PODS_PATH, &kept).await;
    let orphan = json!({ "propagationPolicy": "Orphan" });
    cluster.delete(&format!("{GROUPS_PATH}/owner"), &orphan).await;
    assert_eq!(cluster.names(PODS_PATH).await, ["b", "kept"]);

    let (_, list) =
        cluster.delete(&format!("{PODS_PATH}?labelSelector=app%3Db"), &Value::Null).await;
    assert_eq!(names(&list), ["b"]);
    assert_eq!(cluster.names(PODS_PATH).await, ["kept"]);
    let everywhere = cluster.delete("/api/v1/pods", &Value::Null).await;
    assert_refused(&everywhere, 405, "MethodNotAllowed", "");

    cluster.create("/api/v1/namespaces", &json!({ "metadata": { "name": "team" } })).await;
    cluster.create("/api/v1/namespaces/team/pods", &pod("a")).await;
    cluster.delete("/api/v1/namespaces/team", &Value::Null).await;
    assert_eq!(cluster.names("/api/v1/namespaces/team/pods").await, Vec::<String>::new());
    assert_eq!(cluster.get("/api/v1/namespaces/team").await.0, 404);
}

#[tokio::test]
async fn finalizers_hold_an_object() {
    let cluster = Cluster::start(0).await;
    let mut group = pod_group("g");
    group["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.create(GROUPS_PATH, &group).await;
    let path = format!("{GROUPS_PATH}/g");
    let (_, marked) = cluster.delete(&path, &Value::Null).await;
    assert_eq!(marked["kind"], "PodGroup");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let (code, _) =
        cluster.patch(&path, MERGE, &json!({ "metadata": { "finalizers": null } })).await;
    assert_eq!(code, 200);
    assert_eq!(cluster.get(&path).await.0, 404);
}

/// In-process, under paused time: hours pass in no time.
#[tokio::test(start_paused = true)]
async fn a_pod_ends_after_its_run_seconds() {
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = start(ServeOptions { listen, nodes: 1, ..ServeOptions::default() }).await.unwrap();
    let store = &server.store;
    let mut events = store.subscribe(&PODS);
    let began = tokio::time::Instant::now();
    let mut timed = pod("timed");
    timed["metadata"]["annotations"] = json!({ RUN_SECONDS: "3600" });
    let mut endless = pod("endless");
    endless["metadata"]["annotations"] = json!({ RUN_SECONDS: "for ever" });
    for pod in [&timed, &endless] {
        let made = store.create(&PODS, pod).unwrap();
        store.bind(&Key::of(&made.value), &binding("node-0")).unwrap();
    }
    let finished = 'wait: loop {
        for event in events.next().await.unwrap() {
            if event.object.value["status"]["phase"] == "Succeeded" {
                break 'wait event;
            }
        }
    };
    assert_eq!(finished.key(), Key::new("default", "timed"));
    assert!(began.elapsed() >= Duration::from_secs(3600));
    let endless = store.get(&PODS, "default", "endless").unwrap();
    assert_eq!(endless.value["status"]["phase"], "Running");
    // A finished pod needs no grace.
    store.delete(&PODS, &finished.key(), &DeleteOptions::default()).unwrap();
    assert!(store.get(&PODS, "default", "timed").is_none());
    let last = events.next().await.unwrap();
    assert_eq!(last.last().unwrap().change, Change::Deleted);
}
