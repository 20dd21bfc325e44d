//! Requests that write: create, PUT, PATCH, and what is refused.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bed::{
    Cluster, GROUPS_PATH, MERGE, PODS_PATH, QUEUES_PATH, STRATEGIC, assert_refused, binding, pod,
    pod_group, version,
};

#[tokio::test]
async fn discovery_version_and_health() {
    let cluster = Cluster::start(0).await;
    for path in ["/healthz", "/livez", "/readyz", "/readyz?verbose"] {
        assert_eq!(cluster.raw(&format!("GET {path}"), "").await, (200, "ok".to_owned()));
    }
    assert_eq!(cluster.get("/version").await.1["minor"], "36");
    assert_eq!(cluster.get("/api").await.1["versions"], json!(["v1"]));
    let (_, groups) = cluster.get("/apis").await;
    let named = |group: &Value| group["name"] == "scheduling.volcano.sh";
    assert!(groups["groups"].as_array().unwrap().iter().any(named));
    let (_, group) = cluster.get("/apis/scheduling.volcano.sh").await;
    assert_eq!(group["preferredVersion"]["version"], "v1beta1");
    let (_, kinds) = cluster.get("/apis/scheduling.volcano.sh/v1beta1").await;
    let kinds: Vec<&Value> = kinds["resources"].as_array().unwrap().iter().collect();
    let listed: Vec<&str> = kinds.iter().map(|kind| kind["name"].as_str().unwrap()).collect();
    assert_eq!(listed, ["podgroups", "queues", "queues/status"]);
    assert_eq!(kinds[0]["namespaced"], true);
    assert_refused(&cluster.get("/openapi/v2").await, 404, "NotFound", "could not find");
    let (_, index) = cluster.get("/openapi/v3").await;
    let url = &index["paths"]["apis/apps/v1"]["serverRelativeURL"];
    let (_, document) = cluster.get(url.as_str().unwrap()).await;
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    assert_eq!(document["paths"][path]["patch"]["parameters"][0]["name"], "fieldValidation");
    assert_refused(&cluster.get("/apis/none/v1").await, 404, "NotFound", "could not find");
}

#[tokio::test]
async fn create_gives_identity_and_defaults() {
    let cluster = Cluster::start(0).await;
    let made = cluster.create(PODS_PATH, &pod("web")).await;
    let metadata = &made["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert!(metadata["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(made["spec"]["schedulerName"], "default-scheduler");
    assert_eq!(made["spec"]["priority"], 0);
    assert_eq!(made["status"]["phase"], "Pending");
    assert_eq!(cluster.get(&format!("{PODS_PATH}/web")).await, (200, made.clone()));

    let group = cluster.create(GROUPS_PATH, &pod_group("g")).await;
    assert_eq!(group["spec"]["queue"], "default");
    assert_eq!(group["status"]["phase"], "Pending");
    let queue = json!({ "metadata": { "name": "q" }, "status": { "state": "Closed" } });
    let queue = cluster.create(QUEUES_PATH, &queue).await;
    assert_eq!((&queue["spec"]["weight"], &queue["status"]["state"]), (&json!(1), &json!("Open")));
    assert_eq!(queue["kind"], "Queue");
    assert!(queue["metadata"].get("namespace").is_none());

    let mut limited = pod("limited");
    limited["spec"]["containers"][0]["resources"]["limits"] = json!({ "cpu": 2 });
    let limited = cluster.create(PODS_PATH, &limited).await;
    assert_eq!(limited["spec"]["containers"][0]["resources"]["requests"], json!({ "cpu": "2" }));

    let mut generated = pod("");
    generated["metadata"] = json!({ "generateName": "web-" });
    let (one, two) = (cluster.create(PODS_PATH, &generated), cluster.create(PODS_PATH, &generated));
    let (one, two) = (one.await, two.await);
    assert_ne!(one["metadata"]["name"], two["metadata"]["name"]);
    assert!(one["metadata"]["name"].as_str().unwrap().starts_with("web-"));
}

#[tokio::test]
async fn create_refuses_what_it_cannot_store() {
    let cluster = Cluster::start(0).await;
    cluster.create(PODS_PATH, &pod("web")).await;
    let again = cluster.post(PODS_PATH, &pod("web")).await;
    assert_refused(&again, 409, "AlreadyExists", "pods \"web\" already exists");
    let nowhere = cluster.post("/api/v1/namespaces/nowhere/pods", &pod("a")).await;
    assert_refused(&nowhere, 404, "NotFound", "namespaces \"nowhere\" not found");
    let upper = cluster.post(PODS_PATH, &pod("Upper")).await;
    assert_refused(&upper, 422, "Invalid", "metadata.name");
    assert_eq!(upper.1["details"]["causes"][0]["field"], "metadata.name");
    let long = "a".repeat(254);
    assert_refused(&cluster.post(PODS_PATH, &pod(&long)).await, 422, "Invalid", "253 characters");
    cluster.create(PODS_PATH, &pod(&long[..253])).await;
    let mut elsewhere = pod("a");
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    let answer = cluster.post(PODS_PATH, &elsewhere).await;
    assert_refused(&answer, 400, "BadRequest", "not that of the URL");
    let answer = cluster.post(PODS_PATH, &pod_group("a")).await;
    assert_refused(&answer, 400, "BadRequest", "apiVersion is not what the URL says");
    let mut mistyped = pod("a");
    mistyped["spec"]["nodeSelector"] = json!({ "gpu": true });
    let answer = cluster.post(PODS_PATH, &mistyped).await;
    assert_refused(&answer, 400, "BadRequest", "spec.nodeSelector: must be a map of strings");
    let mut versioned = pod("a");
    versioned["metadata"]["resourceVersion"] = json!("5");
    let answer = cluster.post(PODS_PATH, &versioned).await;
    assert_refused(&answer, 400, "BadRequest", "should not be set");
    for body in ["", "[]", "{\"metadata\": 5}", "{\"metadata\": {}}", "{"] {
        let (code, _) = cluster.raw(&format!("POST {PODS_PATH}"), body).await;
        assert!(code == 400 || code == 422, "{body}: {code}");
    }
    let yaml = format!("POST {PODS_PATH}\nContent-Type: application/yaml");
    assert_eq!(cluster.raw(&yaml, "kind: Pod").await.0, 415);
    let huge = format!("\"{}\"", "x".repeat(3 << 20));
    assert_eq!(cluster.raw(&format!("POST {PODS_PATH}"), &huge).await.0, 413);
    let dry = cluster.post(&format!("{PODS_PATH}?dryRun=All"), &pod("dry")).await;
    assert_refused(&dry, 400, "BadRequest", "dryRun");
    let answer = cluster.post("/api/v1/pods", &pod("a")).await;
    assert_refused(&answer, 405, "MethodNotAllowed", "does not allow this method");
}

#[tokio::test]
async fn priority_comes_from_the_class() {
    let cluster = Cluster::start(0).await;
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str, value: i64, default: bool| {
        let metadata = json!({ "name": name });
        json!({ "metadata": metadata, "value": value, "globalDefault": default })
    };
    cluster.create(path, &class("high", 100, false)).await;
    let mut high = pod("high");
    high["spec"]["priorityClassName"] = json!("high");
    assert_eq!(cluster.create(PODS_PATH, &high).await["spec"]["priority"], 100);
    let mut unknown = pod("unknown");
    unknown["spec"]["priorityClassName"] = json!("highest");
    let answer = cluster.post(PODS_PATH, &unknown).await;
    assert_refused(&answer, 403, "Forbidden", "no PriorityClass with name highest found");
    let mut claimed = pod("claimed");
    claimed["spec"]["priority"] = json!(7);
    let answer = cluster.post(PODS_PATH, &claimed).await;
    assert_refused(&answer, 403, "Forbidden", "spec.priority is 7 but its PriorityClass says 0");
    cluster.create(path, &class("usual", 5, true)).await;
    let usual = cluster.create(PODS_PATH, &pod("usual")).await;
    assert_eq!(usual["spec"]["priority"], 5);
    assert_eq!(usual["spec"]["priorityClassName"], "usual");
}

#[tokio::test]
async fn put_replaces_one_version() {
    let cluster = Cluster::start(0).await;
    let made = cluster.create(GROUPS_PATH, &pod_group("g")).await;
    let path = format!("{GROUPS_PATH}/g");
    let mut changed = made.clone();
    changed["spec"]["minMember"] = json!(3);
    changed["spec"]["unknown"] = json!({ "kept": null });
    changed["status"]["phase"] = json!("Inqueue");
    let (code, second) = cluster.put(&path, &changed).await;
    assert_eq!(code, 200);
    assert_eq!(second["spec"]["unknown"], json!({ "kept": null }));
    assert_eq!(second["status"]["phase"], "Inqueue");
    assert_eq!(second["metadata"]["generation"], 2);
    assert_ne!(version(&second), version(&made));
    let stale = cluster.put(&path, &changed).await;
    assert_refused(&stale, 409, "Conflict", "the object has been modified");
    // The same content again makes no new version.
    assert_eq!(cluster.put(&path, &second).await, (200, second.clone()));
    // What a manifest leaves out gets its default again.
    let mut manifest = pod_group("g");
    manifest["metadata"]["resourceVersion"] = second["metadata"]["resourceVersion"].clone();
    let (_, second) = cluster.put(&path, &manifest).await;
    assert_eq!(
        (&second["spec"]["queue"], &second["spec"]["minMember"]),
        (&json!("default"), &json!(2))
    );
    let mut blind = second.clone();
    blind["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let answer = cluster.put(&path, &blind).await;
    assert_refused(&answer, 422, "Invalid", "metadata.resourceVersion");
    let mut other = second.clone();
    other["metadata"]["uid"] = json!("other");
    assert_refused(&cluster.put(&path, &other).await, 409, "Conflict", "UID");
    let answer = cluster.put(&format!("{GROUPS_PATH}/missing"), &second).await;
    assert_refused(&answer, 404, "NotFound", "podgroups.scheduling.volcano.sh \"missing\"");
    let answer = cluster.put(&format!("{GROUPS_PATH}/g/status"), &second).await;
    assert_refused(&answer, 404, "NotFound", "could not find");
}

#[tokio::test]
async fn status_is_written_apart() {
    let cluster = Cluster::start(0).await;
    let queue = json!({ "metadata": { "name": "q", "labels": { "a": "1" } }, "spec": {} });
    let queue = cluster.create(QUEUES_PATH, &queue).await;
    let mut both = queue.clone();
    both["spec"]["weight"] = json!(7);
    both["status"]["allocated"] = json!({ "cpu": "1" });
    both["metadata"]["labels"] = json!({});
    let (_, after) = cluster.put(&format!("{QUEUES_PATH}/q/status"), &both).await;
    assert_eq!(after["spec"]["weight"], 1);
    assert_eq!(after["status"]["allocated"]["cpu"], "1");
    assert_eq!(after["metadata"]["labels"], json!({ "a": "1" }));
    assert_eq!(after["metadata"]["generation"], 1);
    let mut main = after.clone();
    main["spec"]["weight"] = json!(9);
    main["status"] = json!({});
    let (_, after) = cluster.put(&format!("{QUEUES_PATH}/q"), &main).await;
    assert_eq!(after["spec"]["weight"], 9);
    assert_eq!(after["status"]["allocated"]["cpu"], "1");

    // A built-in kind takes labels, annotations and finalizers from a status write.
    let mut web = cluster.create(PODS_PATH, &pod("web")).await;
    web["spec"]["schedulerName"] = json!("other");
    web["status"]["conditions"] = json!([{ "type": "PodScheduled", "status": "False" }]);
    web["metadata"]["annotations"] = json!({ "seen": "yes" });
    let path = format!("{PODS_PATH}/web/status");
    let (_, after) = cluster.put(&path, &web).await;
    assert_eq!(after["spec"]["schedulerName"], "default-scheduler");
    assert_eq!(after["status"]["conditions"][0]["status"], "False");
    assert_eq!(after["metadata"]["annotations"]["seen"], "yes");
    assert_eq!(after["metadata"]["labels"]["app"], "web");
    assert_refused(&cluster.put(&path, &web).await, 409, "Conflict", "has been modified");
}

#[tokio::test]
async fn patches() {
    let cluster = Cluster::start(0).await;
    let made = cluster.create(PODS_PATH, &pod("web")).await;
    let path = format!("{PODS_PATH}/web");
    let patch = json!({ "metadata": { "labels": { "app": null, "tier": "1" } } });
    let (code, after) = cluster.patch(&path, MERGE, &patch).await;
    assert_eq!((code, &after["metadata"]["labels"]), (200, &json!({ "tier": "1" })));
    let patch = json!({ "spec": { "containers": [{ "name": "main", "image": "new" }] } });
    let (_, after) = cluster.patch(&path, STRATEGIC, &patch).await;
    assert_eq!(after["spec"]["containers"][0]["image"], "new");
    assert_eq!(after["spec"]["containers"].as_array().unwrap().len(), 1);
    assert_eq!(after["metadata"]["generation"], 2);

    let status = |kind: &str, status: &str| {
        let condition = json!({ "type": kind, "status": status });
        json!({ "status": { "conditions": [condition] } })
    };
    let status_path = format!("{path}/status");
    cluster.patch(&status_path, STRATEGIC, &status("PodScheduled", "False")).await;
    let (_, after) = cluster.patch(&status_path, STRATEGIC, &status("Other", "True")).await;
    assert_eq!(after["status"]["conditions"].as_array().unwrap().len(), 2);
    let (_, after) = cluster.patch(&path, MERGE, &status("Lost", "True")).await;
    assert_eq!(after["status"]["conditions"].as_array().unwrap().len(), 2);

    let stale = json!({ "metadata": { "resourceVersion": version(&made) } });
    assert_refused(&cluster.patch(&path, MERGE, &stale).await, 409, "Conflict", "modified");
    let other = json!({ "metadata": { "uid": "other" } });
    assert_refused(&cluster.patch(&path, STRATEGIC, &other).await, 409, "Conflict", "UID");
    let bound = json!({ "spec": { "nodeName": "n" } });
    assert_refused(&cluster.patch(&path, MERGE, &bound).await, 422, "Invalid", "spec.nodeName");
    let broken = json!({ "spec": 5 });
    assert_refused(&cluster.patch(&path, MERGE, &broken).await, 400, "BadRequest", "spec: must be");
    for broken in [json!(5), json!({ "metadata": null }), json!({ "metadata": [1] })] {
        let (code, _) = cluster.patch(&path, MERGE, &broken).await;
        assert!(code == 400 || broken["metadata"].is_null() && code == 200, "{broken}: {code}");
    }
    assert_eq!(cluster.get(&path).await.1["metadata"]["name"], "web");
    for form in ["application/json-patch+json", "application/apply-patch+yaml", ""] {
        let answer = cluster.patch(&path, form, &json!([])).await;
        assert_refused(&answer, 415, "UnsupportedMediaType", "merge-patch+json");
    }
    cluster.create(GROUPS_PATH, &pod_group("g")).await;
    let path = format!("{GROUPS_PATH}/g");
    let answer = cluster.patch(&path, STRATEGIC, &json!({})).await;
    assert_refused(&answer, 415, "UnsupportedMediaType", "custom resources");
    let patch = json!({ "spec": { "minMember": 4 } });
    assert_eq!(cluster.patch(&path, MERGE, &patch).await.1["spec"]["minMember"], 4);
}

#[tokio::test]
async fn removing_the_last_gate_by_strategic_patch() {
    let cluster = Cluster::start(0).await;
    let mut gated = pod("web");
    gated["spec"]["schedulingGates"] = json!([{ "name": "a" }, { "name": "b" }]);
    cluster.create(PODS_PATH, &gated).await;
    let path = format!("{PODS_PATH}/web");
    let gate = |name: &str| {
        let gone = json!({ "name": name, "$patch": "delete" });
        json!({ "spec": { "schedulingGates": [gone] } })
    };
    let bound = cluster.bind("web", &binding("n")).await;
    assert_refused(&bound, 409, "Conflict", "scheduling gates");
    cluster.patch(&path, STRATEGIC, &gate("a")).await;
    let (code, after) = cluster.patch(&path, STRATEGIC, &gate("b")).await;
    assert_eq!((code, &after["spec"]["schedulingGates"]), (200, &json!([])));
    // Once more is no error.
    assert_eq!(cluster.patch(&path, STRATEGIC, &gate("b")).await, (200, after));
}

/// A page in a browser cannot reach the server by a name of its own (DNS rebinding).
#[tokio::test]
async fn a_request_to_a_foreign_name_is_refused() {
    let cluster = Cluster::start(1).await;
    let (code, status) = cluster.send("GET /api/v1/nodes\nHost: evil.example", &Value::Null).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    let text = status["message"].as_str().unwrap();
    assert!(text.starts_with("Host \"evil.example\" is not a name of this server"), "{text}");
    for host in ["localhost:8001", "127.0.0.1"] {
        let (code, _) =
            cluster.send(&format!("GET /api/v1/nodes\nHost: {host}"), &Value::Null).await;
        assert_eq!(code, 200, "{host}");
    }
}

/// Clients that send no whole head are cut off; they hold no place for ever.
#[tokio::test(start_paused = true)]
async fn a_slow_head_is_cut_off() {
    let cluster = Cluster::start(0).await;
    let mut stream = TcpStream::connect(cluster.server.addr).await.unwrap();
    stream.write_all(b"GET /api/v1/nodes HT").await.unwrap();
    let mut rest = Vec::new();
    // It returns when the server closes the connection.
    stream.read_to_end(&mut rest).await.unwrap();
}
